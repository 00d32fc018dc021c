# SPDX-License-Identifier: LGPL-2.1-or-later
"""A filesystem in an image file, made by mkfs.btrfs and mounted through a loop device. What is left is cleaned up."""
import atexit
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

MKFS = os.environ.get('MKFS', 'mkfs.btrfs')
BTRFS = os.environ.get('BTRFS', 'btrfs')
BTRFSTUNE = os.environ.get('BTRFSTUNE', 'btrfstune')

_live = []


def cleanup():
    """Unmounts all that is mounted, the last first."""
    for image in _live[::-1]:
        image.umount()


atexit.register(cleanup)
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, lambda n, _: sys.exit(128 + n))


def run(*args, **kwargs):
    """Runs a program that must succeed; its standard output."""
    done = subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, **kwargs)
    if done.returncode:
        said = done.stderr.decode(errors='replace')
        raise RuntimeError(f'{" ".join(map(str, args))}: exit {done.returncode}: {said}')
    return done.stdout


def peer_options(options):
    """An older mkfs.btrfs has another default; with 6.19's rules between the features."""
    off = options[options.index('-O') + 1].split(',') if '-O' in options else []
    given = [o for o in options if '-O' not in options or o not in ('-O', options[options.index('-O') + 1])]
    groups = '^block-group-tree' in off or '^no-holes' in off or '^free-space-tree' in off
    off = [f for f in off if f != '^block-group-tree'] + [('^' if groups else '') + 'block-group-tree']
    return given + ['-O', ','.join(off)]


def missing():
    """Why tests with a mounted filesystem cannot run here, or None."""
    if os.geteuid():
        return 'needs root'
    if not os.path.exists('/dev/loop-control'):
        return 'needs loop devices'
    with open('/proc/filesystems', encoding='ascii') as f:
        if '\tbtrfs\n' not in f.read():
            return 'needs a kernel with btrfs'
    for program in (MKFS, BTRFS, 'losetup', 'mount', 'umount'):
        if not shutil.which(program):
            return f'needs {program}'
    return None


def complaints(devices, since):
    """What Linux said of devices since a time; nothing where its log cannot be read."""
    done = subprocess.run(['dmesg'], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    found = re.findall(r'^\[ *([\d.]+)\] (BTRFS (?:error|critical|warning) \(device (\w+)\).*)$',
                       done.stdout.decode(errors='replace'), re.M)
    names = [os.path.basename(device) for device in devices]
    return [said for when, said, name in found if name in names and float(when) > since
            and 'space cache v1 is being deprecated' not in said]


class Image:
    def __init__(self, path, size='300M'):
        self.path, self.loop, self.mnt = path, None, None
        if size:
            if os.path.exists(path):
                os.unlink(path)
            run('truncate', '-s', size, path)

    def mkfs(self, *args):
        run(MKFS, '-q', '-f', *args, self.path)

    def mount(self, options='', readonly=False):
        """The top level, whatever the default subvolume is."""
        assert not self.mnt
        _live.append(self)
        self.loop = run('losetup', '-f', '--show', *(['-r'] if readonly else []), self.path).decode().strip()
        self.mnt = tempfile.mkdtemp(prefix='btrkit-test-')
        parts = ['subvolid=5', *(['ro'] if readonly else []), *([options] if options else [])]
        run('mount', '-t', 'btrfs', '-o', ','.join(parts), self.loop, self.mnt)
        return self.mnt

    def umount(self):
        if self.mnt:
            if os.path.ismount(self.mnt):
                for _ in range(50):
                    if not subprocess.run(['umount', self.mnt], stderr=subprocess.DEVNULL, check=False).returncode:
                        break
                    time.sleep(0.1)
            os.rmdir(self.mnt)
        if self.loop:
            subprocess.run(['losetup', '-d', self.loop], check=False)
        self.mnt = self.loop = None
        if self in _live:
            _live.remove(self)

    def generation(self):
        return self._superblock(0x48)

    def log_root(self):
        return self._superblock(0x60)

    def _superblock(self, offset):
        with open(self.path, 'rb') as f:
            f.seek(0x10000 + offset)
            return int.from_bytes(f.read(8), 'little')

    def copy(self, path):
        """The image as it is now, mounted or not."""
        run('cp', '--sparse=auto', self.path, path)
        return Image(path, size=None)

    def remove(self):
        self.umount()
        if os.path.exists(self.path):
            os.unlink(self.path)
