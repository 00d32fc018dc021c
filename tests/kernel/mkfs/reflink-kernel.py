#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""mkfs --reflink: the image shares blocks with the source files, on btrfs and XFS, and equals one made by copying;
where that is not possible, it fails with a message."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

from image import BTRFS, Image, attach, missing, run, sync

BTRKIT = os.environ['BTRKIT']
OPTIONS = ['-q', '--verify', '--deterministic']
checks = 0


def check(condition, what):
    global checks
    assert condition, what
    checks += 1


class Xfs(Image):
    """An Image is mounted as btrfs."""
    def mkfs(self, *args):
        run('mkfs.xfs', '-q', '-f', '-m', 'reflink=1', self.path)

    def mount(self, options='', readonly=False):
        self.loop = attach(self.path)
        self.mnt = tempfile.mkdtemp(prefix='btrkit-test-')
        run('mount', '-t', 'xfs', self.loop, self.mnt)
        return self.mnt


def mkfs(*args):
    done = subprocess.run([BTRKIT, 'mkfs', *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    return done.returncode, done.stderr.decode()


def shared_bytes(path):
    sync(path)
    text = run('filefrag', '-v', '-b1', path).decode()
    return sum(int(length) for length in re.findall(r'^ *\d+:(?:[^:]*:){2} *(\d+):.*\bshared\b', text, re.M))


def contents(path):
    with open(path, 'rb') as f:
        return f.read()


def make_tree(top):
    os.makedirs(f'{top}/dir')
    for size in (100, 4096, 4097, 70000, 1 << 20, (3 << 20) + 5):
        with open(f'{top}/dir/{size}', 'wb') as f:
            f.write(os.urandom(size))
    with open(f'{top}/holes', 'wb') as f:
        for at in (8192, 300000, 5 << 20):
            f.seek(at)
            f.write(os.urandom(50000))
        f.truncate(7 << 20)
    with open(f'{top}/text', 'wb') as f:
        f.write(b'compressible ' * 100000)


def whole_sectors(top):
    """Count what can be shared: whole sectors that are not zeros."""
    count = 0
    for folder, _, names in os.walk(top):
        for name in names:
            data = contents(f'{folder}/{name}')
            count += sum(4096 for at in range(0, len(data) - 4095, 4096) if any(data[at:at + 4096]))
    return count


def on(image):
    image.mkfs()
    top = image.mount()
    make_tree(f'{top}/tree')
    sync(top)
    args = [*OPTIONS, '--rootdir', f'{top}/tree']
    for more in ([], ['-d', 'dup'], ['--compress', 'no', '--threads', '1', '--csum', 'sha256']):
        for name, option in (('copied', []), ('shared', ['--reflink'])):
            if os.path.exists(f'{top}/{name}'):
                os.unlink(f'{top}/{name}')
            status, err = mkfs(*args, *more, *option, f'{top}/{name}')
            check(not status and not err, (more, option, err))
        check(contents(f'{top}/copied') == contents(f'{top}/shared'), f'{more}: not what it is with copies')
        check(shared_bytes(f'{top}/copied') == 0, 'copies are shared')
        wanted = whole_sectors(f'{top}/tree')
        check(shared_bytes(f'{top}/shared') == wanted, f'{shared_bytes(f"{top}/shared")} bytes shared, not {wanted}')
    run(BTRFS, 'check', '--check-data-csum', f'{top}/shared')
    # Nothing is compressed.
    os.unlink(f'{top}/copied')
    check(mkfs(*args, '--compress', 'zstd', '--reflink', f'{top}/copied') == (0, ''), 'with --compress')
    check(shared_bytes(f'{top}/copied') == wanted, 'with --compress')
    elsewhere = f'{os.path.dirname(image.path)}/elsewhere'
    status, err = mkfs(*args, '--reflink', elsewhere)
    check(status == 1 and 'cannot share its blocks with the image: ' in err and err.count('\n') == 1, err)
    check(not os.path.exists(elsewhere), 'an image is left behind')
    image.remove()


def nodatacow_is_copied(scratch):
    """Linux lets a file without checksums share its blocks only with another one; the image has some."""
    image = Image(f'{scratch}/nodatacow', '400M')
    image.mkfs()
    top = image.mount()
    make_tree(f'{top}/tree')
    for name, size in (('tree/dir/log', 300000), ('tree/other', 8192)):
        open(f'{top}/{name}', 'wb').close()
        run('chattr', '+C', f'{top}/{name}')
        with open(f'{top}/{name}', 'wb') as f:
            f.write(os.urandom(size))
    sync(top)
    for name, option in (('copied', []), ('shared', ['--reflink'])):
        done = mkfs(*OPTIONS, '--rootdir', f'{top}/tree', *option, f'{top}/{name}')
        check(done == (0, ''), (name, done))
    check(contents(f'{top}/copied') == contents(f'{top}/shared'), 'not what it is with copies')
    wanted = whole_sectors(f'{top}/tree') - 300000 // 4096 * 4096 - 8192
    check(shared_bytes(f'{top}/shared') == wanted, f'{shared_bytes(f"{top}/shared")} bytes shared, not {wanted}')
    run(BTRFS, 'check', '--check-data-csum', f'{top}/shared')
    image.remove()


def main():
    why = missing() or (None if shutil.which('filefrag') else 'needs filefrag')
    if why:
        print(why)
        return 77
    with tempfile.TemporaryDirectory(prefix='btrkit-reflink-') as scratch:
        on(Image(f'{scratch}/btrfs', '400M'))
        nodatacow_is_copied(scratch)
        with open('/proc/filesystems', encoding='ascii') as f:
            xfs = '\txfs\n' in f.read() and shutil.which('mkfs.xfs')
        if xfs:
            image = Xfs(f'{scratch}/xfs', '400M')
            try:
                on(image)
            finally:
                image.umount()
        for source in ('--tar', '--manifest'):
            status, err = mkfs('--reflink', source, '/dev/null', f'{scratch}/x')
            check(status == 2 and 'only be shared with the files of a directory' in err, err)
        status, err = mkfs('--reflink', f'{scratch}/x')
        check(status == 2 and '--reflink needs --rootdir' in err, err)
    print(f'{checks} checks')
    return 0


if __name__ == '__main__':
    sys.exit(main())
