#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Passes every image to fuzz targets; good images a second time with file data, marked as having no checksums.
Usage: images.py BTRKIT IMAGES TARGET...
The targets correct bad checksums, so that they reach what is wrong beyond those in damaged images."""
import os
import subprocess
import sys
import tempfile

import pack


def main(binary, images, *targets):
    sys.path.insert(0, images)
    import unpack
    names = sorted(name.removesuffix('.img') for name in unpack.sums() if name.endswith('.img'))
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            path = unpack.unpack(name, folder, quick=True)
            pack.main(binary, path, folder, name)
            if name.startswith('good-'):
                pack.main(binary, path, folder, f'{name}-data', '--data')
            os.unlink(path)
        for target in targets:
            ret = subprocess.run([target, os.path.join(folder, 'image')], check=False).returncode
            if ret:
                return ret
    return 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
