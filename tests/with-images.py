#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Run a program on images, which are unpacked to a temporary directory. Usage: with-images.py IMAGES NAME[,NAME...]
PROGRAM [ARG...]; the paths follow the arguments."""
import os
import subprocess
import sys
import tempfile


def main(images, names, *command):
    sys.path.insert(0, images)
    import unpack
    with tempfile.TemporaryDirectory() as folder:
        paths = [unpack.unpack(name, folder, quick=True) for name in names.split(',')]
        return subprocess.run([*command, *paths], env=dict(os.environ, TZ='UTC'), check=False).returncode


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
