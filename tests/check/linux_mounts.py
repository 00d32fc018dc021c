#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Mount each image of a table of Linux's rules read-only, one by one, read everything, and print what Linux answered,
or write it to the table. Run by hand, as root: a damaged filesystem can crash the kernel or hang it, and then this
stops at once.

    check-linux --write DIR TABLE IMAGE...
    linux_mounts.py [--write] TABLE DIR [LINE...]

With --write, the answers replace the last column of the table. LINE: only the rows of these lines."""
import ctypes
import errno
import itertools
import multiprocessing
import os
import subprocess
import sys
import tempfile

NAMES_MAX = 100000
SECONDS = 60  # after which a mount counts as hung
READ_ONLY = 1  # MS_RDONLY
SEPARATOR = ' | '
NOT_ASKED = ' | not asked'  # with the reason


def some_names(path):
    """Return the names in a directory, but not forever, as a damaged one can make it."""
    with os.scandir(path) as entries:
        return [entry.name for entry in itertools.islice(entries, NAMES_MAX)]


def read_all(top):
    """Return the names of the errors of reading everything below a directory: names, inodes, attributes, contents."""
    failed = set()

    def attempt(what, *arguments):
        try:
            return what(*arguments)
        except OSError as e:
            failed.add(errno.errorcode[e.errno])
            return None

    def visit(path):
        if not attempt(os.lstat, path):
            return
        for name in attempt(lambda: os.listxattr(path, follow_symlinks=False)) or ():
            attempt(lambda n=name: os.getxattr(path, n, follow_symlinks=False))
        if os.path.islink(path):
            attempt(os.readlink, path)
        elif os.path.isdir(path):
            for name in attempt(some_names, path) or ():
                visit(os.path.join(path, name))
        elif os.path.isfile(path):
            attempt(lambda: open(path, 'rb').read())

    visit(top)
    return failed


def mount(device, top):
    """Return the answer to mounting the device: None, or the name of an error."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(device.encode(), top.encode(), b'btrfs', READ_ONLY, None):
        return errno.errorcode[ctypes.get_errno()]
    return None


def answer(image, result):
    device = subprocess.run(['losetup', '-r', '-f', '--show', image], capture_output=True, text=True,
                            check=True).stdout.strip()
    with tempfile.TemporaryDirectory() as top:
        refused = mount(device, top)
        if refused:
            result.put(f'refuses to mount ({refused})')
        else:
            failed = read_all(top)
            subprocess.run(['umount', top], check=True)
            result.put(f'refuses to read some of it ({", ".join(sorted(failed))})' if failed else 'mounts')
    subprocess.run(['losetup', '-d', device], check=True)


def ask(image):
    result = multiprocessing.Queue()
    child = multiprocessing.Process(target=answer, args=(image, result))
    child.start()
    child.join(SECONDS)
    if child.is_alive():
        print(f'{image}: Linux does not answer; stopped', flush=True)
        os._exit(1)
    if child.exitcode:
        sys.exit(f'{image}: failed; stopped')
    return result.get()


def main(*arguments):
    write = arguments[:1] == ('--write',)
    table, folder, *lines = arguments[write:]
    with open(table, encoding='utf-8') as f:
        rows = f.read().split('\n')
    for number, row in enumerate(rows, 1):
        if SEPARATOR not in row or row.startswith('#') or NOT_ASKED in row or lines and str(number) not in lines:
            continue
        columns = row.split(SEPARATOR)
        columns[-1] = ask(os.path.join(folder, str(number)))
        print(number, columns[0], columns[-1], sep=SEPARATOR, flush=True)
        rows[number - 1] = SEPARATOR.join(columns)
    if write:
        with open(table, 'w', encoding='utf-8') as f:
            f.write('\n'.join(rows))


main(*sys.argv[1:])
