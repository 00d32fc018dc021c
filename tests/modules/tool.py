# SPDX-License-Identifier: LGPL-2.1-or-later
"""Shared by the command line tests: the program under test, a small filesystem, modified superblocks."""
import ctypes
import hashlib
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time

BTRKIT = os.environ.get('BTRKIT', 'btrkit')
MKFS = os.environ.get('MKFS', 'mkfs.btrfs')
SUPER_OFFSETS = (65536, 64 << 20)
SUPER_SIZE = 4096

# Background jobs ignore these signals, and so would every program that they start.
for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, handler)

# A preloaded library keeps the sanitizer's runtime from being the first, which it checks, and may leak.
PRELOADED = {'ASAN_OPTIONS': ':'.join(filter(None, (os.environ.get('ASAN_OPTIONS'),
                                                    'verify_asan_link_order=0:detect_leaks=0')))}


def thinned(rows, step):
    """Return all rows, or one of @step with sanitizers: programs start slowly with these, and the results are checked
    in the other runs."""
    return list(rows)[::step if os.environ.get('SANITIZED') else 1]


def run(*args, binary=BTRKIT, **kwargs):
    done = subprocess.run([binary, *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                          stdin=subprocess.DEVNULL, timeout=600, **kwargs)
    return done.returncode, done.stdout, done.stderr.decode(errors='backslashreplace')


def digest(path, start=0, length=None, unit=1 << 16):
    """Digest of a file or of a part of it. Holes count as zeros and are not read."""
    found = hashlib.sha256()
    with open(path, 'rb') as f:
        size = f.seek(0, os.SEEK_END)
        end = size if length is None else min(start + length, size)
        found.update(b'%d' % end)
        at = start
        while at < end:
            try:
                at = max(at, start + (os.lseek(f.fileno(), at, os.SEEK_DATA) - start) // unit * unit)
            except OSError:
                break
            data = os.pread(f.fileno(), min(unit, max(end - at, 0)), at)
            if data.count(0) < len(data):
                found.update(b'%d:' % at + data)
            at += unit
    return found.hexdigest()


def catches(pid, number):
    """Whether a process has a handler for a signal."""
    with open(f'/proc/{pid}/status', encoding='ascii') as f:
        caught = re.search(r'^SigCgt:\t([0-9a-f]+)$', f.read(), re.M)
    return caught and int(caught.group(1), 16) >> (number - 1) & 1


def watched(*args, number=None, held=None):
    """Run with standard error on a terminal, and return what was written there. With @number, block the output until
    that signal was sent, which holds the program at its first progress output; @held is called with its process ID
    before."""
    master, slave = os.openpty()
    if number:
        termios.tcflow(slave, termios.TCOOFF)
    with subprocess.Popen([BTRKIT, *args], stdout=subprocess.PIPE, stderr=slave) as process:
        if number:
            while not catches(process.pid, number):
                assert process.poll() is None, 'it did not wait'
                time.sleep(0.01)
            try:
                if held:
                    held(process.pid)
            finally:
                process.send_signal(number)
                termios.tcflow(slave, termios.TCOON)
        out = process.communicate(timeout=600)[0]
    os.close(slave)
    said = b''
    # Read until the other side is closed, which is reported as an error.
    while True:
        try:
            said += os.read(master, 65536)
        except OSError:
            break
    os.close(master)
    return process.returncode, out, said.decode()


def forbidden():
    """Arguments for subprocess that make file permissions apply to the program even if this is root."""
    def drop():
        for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
            assert not ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP
    return {'preexec_fn': drop} if os.getuid() == 0 else {}


def skip(reason):
    print(f'skipped: {reason}')
    sys.exit(77)


def make_filesystem(path, folder, *options, size=120 << 20):
    """A filesystem made by mkfs.btrfs, with two files. Needs no root."""
    if not shutil.which(MKFS):
        skip('needs mkfs.btrfs')
    os.makedirs(f'{folder}/dir', exist_ok=True)
    with open(f'{folder}/big', 'wb') as f:
        f.write(bytes(i % 251 for i in range(300000)))
    with open(f'{folder}/dir/small', 'wb') as f:
        f.write(b'small\n')
    with open(path, 'wb') as f:
        f.truncate(size)
    status, _, err = run('-q', '-f', '-r', folder, *options, path, binary=MKFS)
    if status:
        skip(f'{MKFS} fails: {err}')


def crc_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


TABLE = crc_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


class Super:
    """The primary superblock of an image, for changes; the checksum is updated."""

    FLAGS, COMPAT, COMPAT_RO, INCOMPAT, FSID, METADATA_UUID = 56, 172, 180, 188, 32, 571

    def __init__(self, path):
        self.path = path
        with open(path, 'rb') as f:
            f.seek(SUPER_OFFSETS[0])
            self.data = bytearray(f.read(SUPER_SIZE))

    def get(self, offset):
        return struct.unpack_from('<Q', self.data, offset)[0]

    def put(self, offset, value):
        struct.pack_into('<Q', self.data, offset, value)

    def write(self):
        struct.pack_into('<I', self.data, 0, crc32c(self.data[32:]))
        with open(self.path, 'r+b') as f:
            f.seek(SUPER_OFFSETS[0])
            f.write(self.data)


def check_failure(command, device, result, status=1):
    """The program must have failed with a single line of the usual form and no output. Returns the message."""
    got, out, err = result
    head = f'btrkit {command}: {device}: ' if device else f'btrkit {command}: '
    assert got == status, f'{command}: exit {got}, not {status}: {err!r}'
    assert err.startswith(head), f'{command}: {err!r} does not begin with {head!r}'
    assert err.endswith('\n') and err.count('\n') == 1, f'{command}: not one line: {err!r}'
    assert status != 1 or not out, f'{command}: output beside a failure: {out[:200]!r}'
    return err[len(head):-1]
