#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The images for the table of Linux's rules: those in images/, and filesystems of several devices, which BTRKIT makes
here, and whose devices lie one behind the other in one file.

    linux_images.py NAME[,NAME...] PROGRAM [ARG...]    the paths of the images follow the arguments"""
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.append(os.path.join(HERE, '..', '..', 'images'))
import unpack

DEVICE_SIZE = 256 << 20
SEVERAL = {  # number of devices, whether to fill them, profile of data
    'two-raid1': (2, True, 'raid1'),
    'two-raid0': (2, True, 'raid0'),
    'three-raid5': (3, False, 'raid5'),
    'two-single': (2, False, 'single'),
}
UUID = '6b747274-6962-4b69-8000-0000000000aa'


def make_source(folder):
    """Make a directory with some files, of equal contents every time."""
    top = os.path.join(folder, 'source')
    os.makedirs(os.path.join(top, 'dir'), exist_ok=True)
    for name, size in (('small', 100), ('dir/large', 500000), ('dir/larger', 2000000)):
        with open(os.path.join(top, name), 'wb') as f:
            f.write(bytes(i * 7 % 251 for i in range(size)))
    return top


def make(name, folder):
    number, fill, data = SEVERAL[name]
    paths = [os.path.join(folder, f'{name}-{i}') for i in range(number)]
    for path in paths:
        with open(path, 'wb') as f:
            f.truncate(DEVICE_SIZE)
    contents = ('--rootdir', make_source(folder)) if fill else ()
    metadata = 'single' if data == 'single' else 'raid1'
    subprocess.run([os.environ.get('BTRKIT', 'btrkit'), 'mkfs', '-q', '-U', UUID, '-b', str(DEVICE_SIZE),
                    '-m', metadata, '-d', data, *contents, *paths], check=True,
                   env=dict(os.environ, SOURCE_DATE_EPOCH='1', DETERMINISTIC_SEED='1'))
    whole = os.path.join(folder, f'{name}.img')
    with open(whole, 'wb') as to:
        to.truncate(number * DEVICE_SIZE)
        for i, path in enumerate(paths):
            copy_data(path, to, i * DEVICE_SIZE)
            os.unlink(path)
    return whole


def copy_data(path, to, at):
    """Copy what is not a hole."""
    with open(path, 'rb') as f:
        end = 0
        while True:
            try:
                begin = os.lseek(f.fileno(), end, os.SEEK_DATA)
            except OSError:  # no data up to the end
                return
            end = os.lseek(f.fileno(), begin, os.SEEK_HOLE)
            os.pwrite(to.fileno(), os.pread(f.fileno(), end - begin, begin), at + begin)


def provide(name, folder):
    """Return the path of an image."""
    return make(name, folder) if name in SEVERAL else unpack.unpack(name, folder, quick=True)


def main(names, *command):
    with tempfile.TemporaryDirectory() as folder:
        paths = [provide(name, folder) for name in names.split(',')]
        return subprocess.run([*command, *paths], env=dict(os.environ, TZ='UTC'), check=False).returncode


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
