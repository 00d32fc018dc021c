# SPDX-License-Identifier: LGPL-2.1-or-later
"""A filesystem in an image file, made by mkfs.btrfs and mounted through a loop device. Leftovers are cleaned up."""
import atexit
import contextlib
import ctypes
import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import ops

MKFS = os.environ.get('MKFS', 'mkfs.btrfs')
BTRFS = os.environ.get('BTRFS', 'btrfs')
BTRFSTUNE = os.environ.get('BTRFSTUNE', 'btrfstune')
SUPERS = (64 << 10, 64 << 20)
UNMOUNT_SECONDS = 100

_libc = ctypes.CDLL(None, use_errno=True)
_live = []


def cleanup():
    """Unmount everything that is mounted, in reverse order."""
    for image in _live[::-1]:
        image.umount()


atexit.register(cleanup)
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, lambda n, _: sys.exit(128 + n))


def run(*args, **kwargs):
    """Run a program that must succeed, and return its standard output. With two pipes Python would read a dump of many
    megabytes in small pieces, so errors go to a file."""
    with tempfile.TemporaryFile() as errors:
        done = subprocess.run(args, stdout=subprocess.PIPE, stderr=errors, check=False, **kwargs)
        if done.returncode:
            errors.seek(0)
            said = errors.read().decode(errors='replace')
            raise RuntimeError(f'{" ".join(map(str, args))}: exit {done.returncode}: {said}')
    return done.stdout


def progs_version():
    found = re.search(rb'v(\d+)\.(\d+)', run(BTRFS, '--version'))
    return tuple(map(int, found.groups())) if found else (0, 0)


def compat():
    """The options with which `btrkit dump-tree` prints the text of this btrfs-progs."""
    return [] if progs_version() >= (7, 1) else ['--compat', '6.19']


def peer_options(options):
    """Translate options for an older mkfs.btrfs, which has other defaults, following the rules of 6.19 between
    features."""
    off = options[options.index('-O') + 1].split(',') if '-O' in options else []
    given = [o for o in options if '-O' not in options or o not in ('-O', options[options.index('-O') + 1])]
    groups = '^block-group-tree' in off or '^no-holes' in off or '^free-space-tree' in off
    off = [f for f in off if f != '^block-group-tree'] + [('^' if groups else '') + 'block-group-tree']
    return given + ['-O', ','.join(off)]


def older(options):
    """For a mkfs.btrfs that has some features as runtime features (-R), or lacks one."""
    if '-O' not in options:
        return options
    at = options.index('-O') + 1
    features = [f for f in options[at].split(',') if f.lstrip('^') != 'block-group-tree']
    runtime = [f for f in features if f.lstrip('^') in ('free-space-tree', 'quota')]
    features = [f for f in features if f not in runtime]
    return (*options[:at - 1], *options[at + 1:], *(('-O', ','.join(features)) if features else ()),
            *(('-R', ','.join(runtime)) if runtime else ()))


def missing():
    """Return the reason why tests with a mounted filesystem cannot run here, or None."""
    if os.geteuid():
        return 'needs root'
    if not os.path.exists('/dev/loop-control'):
        return 'needs loop devices'
    if not os.access('/dev/kmsg', os.R_OK):
        return 'needs /dev/kmsg'
    with open('/proc/filesystems', encoding='ascii') as f:
        if '\tbtrfs\n' not in f.read():
            return 'needs a kernel with btrfs'
    for program in (MKFS, BTRFS, 'losetup', 'mount', 'umount'):
        if not shutil.which(program):
            return f'needs {program}'
    return None


def seed():
    """Random seed: the same in every run, so that results are reproducible, unless $SEED is set."""
    return int(os.environ.get('SEED', '1'))


class KernelLog:
    """Messages of Linux about btrfs from now on. They are selected by position in the log, because its clock differs
    from that of processes. Must be created when the device is attached: earlier messages belong to a previous user of
    the device."""

    def __init__(self):
        self.file = open('/dev/kmsg', 'rb', buffering=0,
                         opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK))
        self.file.seek(0, os.SEEK_END)
        self.said = []

    def lines(self, *devices):
        """Only messages about these devices, because other tests may run at the same time."""
        while True:
            try:
                record = self.file.read(8192)
            except BrokenPipeError:
                raise RuntimeError('messages of Linux were lost') from None
            if record is None:
                break
            self.said.append(record.decode(errors='replace').split(';', 1)[-1].split('\n')[0])
        names = [os.path.basename(device) for device in devices]
        return [line for line in self.said
                if (found := re.match(r'BTRFS\b.* \(device (\w+)', line)) and found[1] in names]

    def complaints(self, *devices):
        return [line for line in self.lines(*devices) if not re.match('BTRFS (info|notice|debug)', line)
                and 'space cache v1 is being deprecated' not in line]


def sync(path):
    """Commit the filesystem that contains @path; sync(2) would wait for all filesystems of the machine."""
    fd = os.open(path, os.O_RDONLY)
    try:
        if _libc.syncfs(fd):
            raise OSError(ctypes.get_errno(), 'syncfs', path)
    finally:
        os.close(fd)


def _generations(paths):
    """Return the superblocks of mounted devices, and whether they have the same generation, so that no commit is in
    progress."""
    supers = []
    for path in paths:
        with open(path, 'rb') as f:
            supers += [block for at in SUPERS if len(block := os.pread(f.fileno(), 4096, at)) == 4096]
    generations = {block[0x48:0x50] for block in supers}
    return supers, len(generations) == 1


def still(paths, work):
    """Return the result of @work() on a consistent state of mounted devices: repeat it if Linux committed meanwhile.
    What a superblock refers to is not overwritten before the next superblock is written."""
    for _ in range(100):
        before, whole = _generations(paths)
        made = work()
        if whole and _generations(paths)[0] == before:
            return made
        time.sleep(0.1)
    raise RuntimeError('Linux does not stop committing')


def until(attempt, what):
    """Repeat @attempt() until it returns something: a commit may have interfered."""
    for _ in range(20):
        made = attempt()
        if made:
            return made
    raise RuntimeError(f'no {what}')


def wait_for_cleaner(mnt):
    """Wait until no deleted subvolume is left, on disk too. This ioctl wakes the cleaner, which otherwise sleeps until
    the next commit, up to half a minute; `btrfs subvolume sync` and syncfs(2) would wait that long."""
    for _ in range(1200):
        ops.sync(mnt)
        if not run(BTRFS, 'subvolume', 'list', '-d', mnt).strip():
            ops.sync(mnt)
            return
        time.sleep(0.05)
    raise RuntimeError('the cleaner does not finish')


@contextlib.contextmanager
def committed():
    """Hold a lock while committed images are mounted: Linux cannot mount two filesystems with the same UUID at a
    time."""
    with open('/run/lock/btrkit-test-images', 'wb') as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        yield


def attach(path, *options):
    """@return a loop device over a file"""
    return run('losetup', '-f', '--show', *options, path).decode().strip()


def detach(*devices):
    """Make Linux forget the devices: otherwise it would confuse the next filesystem there, or the same one elsewhere,
    with the old one. Programs that scan all devices may keep one busy for a moment.
    """
    def backing(device):
        try:
            with open(f'/sys/block/{os.path.basename(device)}/loop/backing_file', encoding='utf-8') as f:
                return f.read()
        except OSError:
            return None

    before = {device: backing(device) for device in devices}
    for device in devices:
        subprocess.run([BTRFS, 'device', 'scan', '--forget', device], stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, check=False)
        subprocess.run(['losetup', '-d', device], check=False)
    for device in devices:
        for _ in range(100):
            if backing(device) is None or backing(device) != before[device]:
                break
            time.sleep(0.05)


@contextlib.contextmanager
def loops(paths, *options):
    """Loop devices over files."""
    made = []
    try:
        for path in paths:
            made.append(attach(path, *options))
        yield made
    finally:
        detach(*made)


@contextlib.contextmanager
def loop(path, *options):
    with loops([path], *options) as (device,):
        yield device


@contextlib.contextmanager
def mounted(device, folder, *options):
    """Mount read-only by default, because Linux writes to what it mounts even if nobody else does."""
    run('mount', *(options or ('-o', 'ro')), device, folder)
    try:
        yield
    finally:
        run('umount', folder)


class Wedged(RuntimeError):
    """Linux does not finish unmounting a filesystem."""


def unmount(folder, devices):
    """Return whether it was unmounted. On the smallest filesystems with 64 KiB nodes Linux 6.18 may hang: to delete an
    empty chunk its cleaner waits for space, which is made by a new chunk, which is empty and must be deleted. Every
    sync(2) on the machine would hang too, so the files of the loop devices @devices are then truncated."""
    process = subprocess.Popen(['umount', folder], stderr=subprocess.DEVNULL)
    try:
        return process.wait(UNMOUNT_SECONDS) == 0
    except subprocess.TimeoutExpired:
        for device in devices:
            os.truncate(run('losetup', '-nO', 'BACK-FILE', device).decode().strip(), 0)
            run('losetup', '-c', device)
        process.wait()
    raise Wedged(f'Linux did not unmount {folder} in {UNMOUNT_SECONDS} s')


def unless_wedged(work, *args):
    """Repeat @work() from the beginning if Linux hangs."""
    for _ in range(2):
        try:
            return work(*args)
        except Wedged:
            cleanup()
    return work(*args)


class Image:
    def __init__(self, path, size='300M'):
        self.path, self.loop, self.mnt = path, None, None
        if size:
            if os.path.exists(path):
                os.unlink(path)
            run('truncate', '-s', size, path)

    def mkfs(self, *args):
        run(MKFS, '-q', '-f', *args, self.path)

    def mkfs_newer(self, *options):
        """With options of the newest mkfs.btrfs, whichever version is installed."""
        try:
            self.mkfs(*options)
        except RuntimeError as e:
            if 'unrecognized' not in str(e):
                raise
            self.mkfs(*older(options))

    def mount(self, options='', readonly=False):
        """Mount the top level, whatever the default subvolume is."""
        assert not self.mnt
        _live.append(self)
        self.loop = attach(self.path, *(['-r'] if readonly else []))
        self.log = KernelLog()
        self.mnt = tempfile.mkdtemp(prefix='btrkit-test-')
        parts = ['subvolid=5', *(['ro'] if readonly else []), *([options] if options else [])]
        run('mount', '-t', 'btrfs', '-o', ','.join(parts), self.loop, self.mnt)
        return self.mnt

    def umount(self):
        if self.mnt:
            if os.path.ismount(self.mnt):
                for _ in range(50):
                    if unmount(self.mnt, self.devices()):
                        break
                    time.sleep(0.1)
            os.rmdir(self.mnt)
        if self.loop:
            detach(self.loop)
        self.mnt = self.loop = None
        if self in _live:
            _live.remove(self)

    def devices(self):
        return [self.loop] if self.loop else []

    def generation(self):
        return self._superblock(0x48)

    def log_root(self):
        return self._superblock(0x60)

    def _superblock(self, offset):
        with open(self.path, 'rb') as f:
            f.seek(0x10000 + offset)
            return int.from_bytes(f.read(8), 'little')

    def copy(self, path):
        """Copy the current image, mounted or not."""
        def cp():
            run('cp', '--sparse=auto', self.path, path)

        still([self.path], cp) if self.mnt else cp()
        return Image(path, size=None)

    def copy_with_log(self, path, work):
        """Make a copy with a log tree, which @work() creates by fsync. A sync of all filesystems would remove it."""
        def attempt():
            work()
            copy = self.copy(path)
            return copy if copy.log_root() else None

        return until(attempt, 'log tree')

    def remove(self):
        self.umount()
        if os.path.exists(self.path):
            os.unlink(self.path)
