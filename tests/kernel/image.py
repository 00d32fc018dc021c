# SPDX-License-Identifier: LGPL-2.1-or-later
"""A filesystem in an image file, made by mkfs.btrfs and mounted through a loop device. What is left is cleaned up."""
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
    """Unmounts all that is mounted, the last first."""
    for image in _live[::-1]:
        image.umount()


atexit.register(cleanup)
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, lambda n, _: sys.exit(128 + n))


def run(*args, **kwargs):
    """Runs a program that must succeed; its standard output. From two pipes at a time Python would read a dump of many
    megabytes in small pieces."""
    with tempfile.TemporaryFile() as errors:
        done = subprocess.run(args, stdout=subprocess.PIPE, stderr=errors, check=False, **kwargs)
        if done.returncode:
            errors.seek(0)
            said = errors.read().decode(errors='replace')
            raise RuntimeError(f'{" ".join(map(str, args))}: exit {done.returncode}: {said}')
    return done.stdout


def peer_options(options):
    """An older mkfs.btrfs has another default; with 6.19's rules between the features."""
    off = options[options.index('-O') + 1].split(',') if '-O' in options else []
    given = [o for o in options if '-O' not in options or o not in ('-O', options[options.index('-O') + 1])]
    groups = '^block-group-tree' in off or '^no-holes' in off or '^free-space-tree' in off
    off = [f for f in off if f != '^block-group-tree'] + [('^' if groups else '') + 'block-group-tree']
    return given + ['-O', ','.join(off)]


def older(options):
    """For a mkfs.btrfs to which some features are options of the run, and that lacks one."""
    if '-O' not in options:
        return options
    at = options.index('-O') + 1
    features = [f for f in options[at].split(',') if f.lstrip('^') != 'block-group-tree']
    runtime = [f for f in features if f.lstrip('^') in ('free-space-tree', 'quota')]
    features = [f for f in features if f not in runtime]
    return (*options[:at - 1], *options[at + 1:], *(('-O', ','.join(features)) if features else ()),
            *(('-R', ','.join(runtime)) if runtime else ()))


def missing():
    """Why tests with a mounted filesystem cannot run here, or None."""
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
    """Of what is random: the same in every run, whose verdict is then about what is tested. $SEED is another one."""
    return int(os.environ.get('SEED', '1'))


class KernelLog:
    """What Linux says of btrfs from now on. What belongs to it goes by the place in the log: no clock of a process is
    that of its times. Begun when a device is attached: before, it was somebody else's."""

    def __init__(self):
        self.file = open('/dev/kmsg', 'rb', buffering=0,
                         opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK))
        self.file.seek(0, os.SEEK_END)
        self.said = []

    def lines(self, *devices):
        """Of these devices: other tests may run beside."""
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
    """Linux commits the filesystem that @path lies in; sync(2) would wait for all others of the machine."""
    fd = os.open(path, os.O_RDONLY)
    try:
        if _libc.syncfs(fd):
            raise OSError(ctypes.get_errno(), 'syncfs', path)
    finally:
        os.close(fd)


def _generations(paths):
    """What the superblocks of mounted devices say, and whether all say the same generation: one commit is done."""
    supers = []
    for path in paths:
        with open(path, 'rb') as f:
            supers += [block for at in SUPERS if len(block := os.pread(f.fileno(), 4096, at)) == 4096]
    generations = {block[0x48:0x50] for block in supers}
    return supers, len(generations) == 1


def still(paths, work):
    """What @work() makes of mounted devices, all of it of one moment: Linux may commit by itself meanwhile. What a
    superblock leads to stays as it is until the next one is written."""
    for _ in range(100):
        before, whole = _generations(paths)
        made = work()
        if whole and _generations(paths)[0] == before:
            return made
        time.sleep(0.1)
    raise RuntimeError('Linux does not stop committing')


def until(attempt, what):
    """The first that @attempt() comes to: others were undone by a commit."""
    for _ in range(20):
        made = attempt()
        if made:
            return made
    raise RuntimeError(f'no {what}')


def wait_for_cleaner(mnt):
    """Until no deleted subvolume is left, and that is on disk. This sync wakes the cleaner, which otherwise sleeps
    until the next commit, for half a minute: so long does `btrfs subvolume sync` wait, and so would who calls
    syncfs(2)."""
    for _ in range(1200):
        ops.sync(mnt)
        if not run(BTRFS, 'subvolume', 'list', '-d', mnt).strip():
            ops.sync(mnt)
            return
        time.sleep(0.05)
    raise RuntimeError('the cleaner does not finish')


@contextlib.contextmanager
def committed():
    """While committed images are mounted: Linux has no two filesystems of one id, and another test may have them."""
    with open('/run/lock/btrkit-test-images', 'wb') as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        yield


def attach(path, *options):
    """@return a loop device over a file"""
    return run('losetup', '-f', '--show', *options, path).decode().strip()


def detach(*devices):
    """Linux forgets them, or it would take the next filesystem there, or the same one elsewhere, for what it has known.
    Whoever looks at all devices of the machine keeps one for a moment.
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
    """Read-only if nothing else is said: Linux writes to what it mounts, even when nobody else does."""
    run('mount', *(options or ('-o', 'ro')), device, folder)
    try:
        yield
    finally:
        run('umount', folder)


class Wedged(RuntimeError):
    """Linux does not let a filesystem go."""


def unmount(folder, devices):
    """Whether it could be. On the smallest filesystems with nodes of 64 KiB Linux 6.18 may make no end of it: to delete
    an empty chunk its cleaner waits for room, which is made by a new chunk, which is empty and to be deleted. As
    sync(2) of all others waits with it, the files of the loop devices @devices are then made empty."""
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
    """What Linux wedges is done anew, by @work() from its beginning."""
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
        """With options of the newest mkfs.btrfs, by whichever there is."""
        try:
            self.mkfs(*options)
        except RuntimeError as e:
            if 'unrecognized' not in str(e):
                raise
            self.mkfs(*older(options))

    def mount(self, options='', readonly=False):
        """The top level, whatever the default subvolume is."""
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
        """The image as it is now, mounted or not."""
        def cp():
            run('cp', '--sparse=auto', self.path, path)

        still([self.path], cp) if self.mnt else cp()
        return Image(path, size=None)

    def copy_with_log(self, path, work):
        """A copy with a log tree, which @work() makes by fsync. Whoever has all filesystems synced takes it away."""
        def attempt():
            work()
            copy = self.copy(path)
            return copy if copy.log_root() else None

        return until(attempt, 'log tree')

    def remove(self):
        self.umount()
        if os.path.exists(self.path):
            os.unlink(self.path)
