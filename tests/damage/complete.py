#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Check that every image has a test, a checksum and a description, and that each of these has an image. Usage:
complete.py IMAGES NAME..., the names that tests use."""
import os
import sys

SUFFIX = '.tar.xz'


def main(images, *tested):
    sys.path.insert(0, images)
    import unpack
    archives = {name[:-len(SUFFIX)] for name in os.listdir(images) if name.endswith(SUFFIX)}
    sums = unpack.sums()
    with open(os.path.join(images, 'README.md'), encoding='utf-8') as f:
        told = {line.split()[1] for line in f if line.startswith('| ') and not line.startswith('| image')}
    problems = []
    for what, names in (('tests', set(tested)), ('README.md', told),
                        ('SHA256SUMS', {name[:-len(SUFFIX)] for name in sums if name.endswith(SUFFIX)})):
        problems += [f'{name} is not in {what}' for name in sorted(archives - names)]
        problems += [f'{what} has {name}, which is no image' for name in sorted(names - archives)]
    for name in sorted(archives):
        if unpack.file_sum(os.path.join(images, name + SUFFIX)) != sums.get(name + SUFFIX):
            problems.append(f'{name}: not the sum of SHA256SUMS')
    print(f'{len(archives)} images', *problems, sep='\n')
    return int(bool(problems) or len(archives) < 12)


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
