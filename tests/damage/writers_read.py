# SPDX-License-Identifier: LGPL-2.1-or-later
"""Read everything in a filesystem, by btrkit and by Linux, which mounts it only read-only."""
import collections
import contextlib
import hashlib
import io
import json
import os
import re
import stat
import subprocess
import tarfile

from tool import BTRKIT
from writers_made import devices

SECONDS = 60
LARGE = 8 << 20     # larger files are not kept in memory

# @entries: path to Entry; @lost: paths that are damaged, or have damage below them; @codes: of check, None if the
# filesystem cannot be opened
State = collections.namedtuple('State', 'entries lost codes')


# @content: bytes of a file, or a hash of many; @what: everything else that must not change
class Entry(collections.namedtuple('Entry', 'content what time')):
    @property
    def is_dir(self):
        """A directory's time changes with its entries; the placeholder of a subvolume has the time of reading."""
        return self.what[0] == tarfile.DIRTYPE


def command(*args, script=None):
    """Return (exit status, output, lines on standard error); the exit status is None on timeout."""
    try:
        done = subprocess.run([BTRKIT, *args], input=script, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              check=False, timeout=SECONDS, **({} if script is not None else
                                                               {'stdin': subprocess.DEVNULL}))
    except subprocess.TimeoutExpired:
        return None, b'', []
    return done.returncode, done.stdout, done.stderr.decode(errors='backslashreplace').splitlines()


def entry_of(tar, member):
    content = b''
    if member.isreg():
        content = (tar.extractfile(member).read() if member.size <= LARGE else
                   hashlib.sha256(f'{member.size} {member.sparse}'.encode()).digest())
    what = (member.type in (tarfile.REGTYPE, tarfile.GNUTYPE_SPARSE) or member.type, member.mode, member.uid,
            member.gid, member.linkname if member.issym() else '', member.devmajor, member.devminor,
            tuple(sorted((name, value) for name, value in member.pax_headers.items()
                         if name.startswith('SCHILY.'))))
    return Entry(content, what, member.mtime)


def archived(data):
    """Read the entries of an archive; all names of a file get the same content."""
    entries = {}
    with contextlib.suppress(tarfile.ReadError), tarfile.open(fileobj=io.BytesIO(data)) as tar:
        for member in tar:
            path = member.name.rstrip('/')
            entries[path] = entries[member.linkname] if member.islnk() else entry_of(tar, member)
    return entries


def codes_of(paths):
    """Return the codes that check reports; None: the filesystem cannot be opened."""
    status, out, said = command('check', '--json', '--data', '--threads', '1', *devices(paths))
    if status is None or status < 0:
        raise AssertionError(f'check: exit {status}')
    codes = {row['code'] for row in map(json.loads, out.splitlines()) if 'code' in row}
    return codes if b'"summary"' in out else codes or None


def read(paths):
    status, out, said = command('extract', '-v', '--tar', '-', *devices(paths))
    if status is None or status < 0:
        raise AssertionError(f'extract: exit {status}')
    head = f'btrkit extract: {paths[0]}: '
    lost = {line[len(head):].split(': ')[0].strip('/') for line in said if line.startswith(head)}
    return State(archived(out) if out else {}, lost if out else {''}, codes_of(paths))


def inodes(paths):
    """Map paths to inode numbers, as far as they are known."""
    _, out, _ = command('ls', '-R', '-i', '--format', 'json', *devices(paths))
    found = {}
    for line in out.splitlines():
        row = json.loads(line)
        if 'inode' in row:
            found[row.get('path', '')] = row['inode']
    return found


def has_default(paths):
    """Whether Linux finds the default subvolume, which it needs for mounting."""
    _, out, _ = command('dump-tree', '-t', 'root', *devices(paths))
    return re.search(rb'(?s)key \(ROOT_TREE_DIR DIR_ITEM \d+\).*?name: default\n', out) is not None


@contextlib.contextmanager
def loops(paths):
    """Read-only loop devices."""
    made = []
    try:
        for path in paths:
            made.append(subprocess.run(['losetup', '--read-only', '--show', '-f', path], stdout=subprocess.PIPE,
                                       check=True).stdout.decode().strip())
        for one in made if len(made) > 1 else ():
            subprocess.run(['btrfs' if 'BTRFS' not in os.environ else os.environ['BTRFS'], 'device', 'scan', one],
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        yield made
    finally:
        for one in made:
            subprocess.run(['losetup', '-d', one], check=False)


def walked(top):
    """Map each path to (content, stat and attributes), or to the error."""
    found = {}
    for folder, folders, files in os.walk(os.fsencode(top)):
        for name in folders + files:
            path = os.path.join(folder, name)
            key = os.path.relpath(path, os.fsencode(top)).decode(errors='surrogateescape')
            try:
                st = os.lstat(path)
                content = b''
                if stat.S_ISREG(st.st_mode) and st.st_size <= LARGE:
                    with open(path, 'rb') as f:
                        content = f.read()
                elif stat.S_ISLNK(st.st_mode):
                    content = os.readlink(path)
                found[key] = Entry(content, (st.st_mode, st.st_uid, st.st_gid, st.st_rdev, st.st_size, tuple(
                    (n, os.getxattr(path, n, follow_symlinks=False))
                    for n in sorted(os.listxattr(path, follow_symlinks=False)))), st.st_mtime_ns)
            except OSError as e:
                found[key] = e.errno
    return found


def linux_reads(paths, folder):
    """What Linux reads in the top-level subvolume; None: it does not mount."""
    os.makedirs(folder, exist_ok=True)
    with loops(paths) as made:
        options = ','.join(['ro,rescue=nologreplay,subvolid=5', *(f'device={one}' for one in made[1:])])
        if subprocess.run(['mount', '-t', 'btrfs', '-o', options, made[0], folder], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, check=False).returncode:
            return None
        try:
            return walked(folder)
        finally:
            subprocess.run(['umount', folder], check=True)
