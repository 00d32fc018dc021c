# SPDX-License-Identifier: LGPL-2.1-or-later
"""Two filesystems that start out equal: `btrkit edit` changes one, and Linux changes the other in the same way."""
import errno
import os
import re
import struct
import subprocess
import time

import image
import modify_state
from modify_ops import Linux, line

BTRKIT = os.environ['BTRKIT']
ERRORS = {os.strerror(number): number for number in errno.errorcode}
REFUSED = 'deleting default subvolume'
counts = {'operations': 0, 'failures': 0, 'paths': 0, 'sectors': 0}


def check_clean(path):
    done = subprocess.run([image.BTRFS, 'check', '--check-data-csum', path], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    text = done.stdout.decode(errors='replace')
    if done.returncode or 'no error found' not in text or 'ERROR' in text:
        raise AssertionError(f'btrfs check: exit {done.returncode}:\n{text[-3000:]}')


def failures(said):
    """The failures that edit reports, as {line: errno}."""
    ret = {}
    for text in said.splitlines():
        found = re.search(r': line (\d+): (.*)$', text)
        words = found and [w for w in ERRORS if w in found[2]]
        if not words:
            raise AssertionError(text)
        ret[int(found[1])] = ERRORS[max(words, key=len)]
    return ret


def edit(path, plan, options=()):
    """@plan: operations with the errno of Linux. Edit must succeed and fail in the same way."""
    script = b''.join(line(op, number) for op, number in plan)
    done = subprocess.run([BTRKIT, 'edit', *options, path], input=script, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)
    said = done.stderr.decode(errors='replace')
    found = failures(said)
    if done.returncode:
        last = max(found, default=0)
        raise AssertionError(f'{said.splitlines()[-1]}\n{plan[last - 1] if last else ""}')
    for k, (op, number) in enumerate(plan):
        if found.get(k + 1, 0) == number:
            continue
        # Linux checks names and values of attributes before it looks up the file.
        if op[0] in (b'setxattr', b'rmxattr') and found.get(k + 1) in (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG):
            continue
        raise AssertionError(f'line {k + 1}, {op!r:.700}: {name(found.get(k + 1, 0))}; Linux: {name(number)}')


def name(number):
    return errno.errorcode[number] if number else 'done'


def check(ours, theirs, bounds, compressed, loaded, what):
    """Compare two mounted filesystems, to which everything has been written."""
    a = modify_state.State(ours.mnt, bounds[0], compressed, loaded)
    b = modify_state.State(theirs.mnt, bounds[1], compressed, loaded)
    found = modify_state.differences(a, b)
    listed = [modify_state.subvolumes(img.mnt, state) for img, state in ((ours, a), (theirs, b))]
    found += [f'{path!r}: {listed[0].get(path)}; by Linux: {listed[1].get(path)}'
              for path in sorted(listed[0].keys() | listed[1].keys(), key=str)
              if listed[0].get(path) != listed[1].get(path)]
    if found:
        raise AssertionError(f'{what}: {len(found)} differences:\n' + '\n'.join(found[:12]))
    counts['paths'] += len(a.paths)
    counts['sectors'] += len(a.shared)


class Pair:
    """Two filesystems that start out equal: edit changes one, and Linux changes the other in the same way."""

    def __init__(self, folder, options=(), mount='', edit_options=(), size='1500M'):
        self.mount_options = ','.join(filter(None, ('noatime,nodev', mount)))
        self.compressed, self.edit_options = 'compress' in mount, edit_options
        # Whether Linux has read inodes of ours. It knows an inode's compression property only if that is in the same
        # leaf, and sets the flag for incompressible data only if it knows of no property.
        self.loaded = False
        self.folder, self.bounds = folder, ([], [])
        self.ours = image.Image(f'{folder}/ours.img', size)
        self.ours.mkfs(*image.peer_options(list(options)))
        self.theirs = None

    def begin(self):
        """Make and mount the second filesystem."""
        self.ours.umount()
        self.theirs = self.ours.copy(f'{self.folder}/theirs.img')
        self.theirs.mount(self.mount_options)

    def now(self, which):
        """Begin a new phase, in a new transaction. Sleep, because the clock for inode times is coarse."""
        img = (self.ours, self.theirs)[which]
        time.sleep(.02)
        if img.mnt:
            image.run(image.BTRFS, 'filesystem', 'sync', img.mnt)
        with open(img.path, 'rb') as f:
            f.seek(65536 + 72)
            self.bounds[which].append((time.time_ns(), struct.unpack('=Q', f.read(8))[0]))
        time.sleep(.02)

    def by_linux(self, operations, done=lambda op: None):
        """Run operations; returns each with its errno."""
        self.now(1)
        linux, ret = Linux(self.theirs.mnt), []
        for op in operations:
            ret.append((op, linux.run(op)))
            if not ret[-1][1]:
                done(op)
        counts['operations'] += len(ret)
        counts['failures'] += sum(bool(number) for _, number in ret)
        return ret

    def by_edit(self, plan, pieces=(), check=True):
        """@pieces: number of operations and options of each run; the last run gets the rest"""
        self.ours.umount()
        self.now(0)
        for count, options in (*pieces, (len(plan), ())):
            edit(self.ours.path, plan[:count], (*self.edit_options, *options))
            plan = plan[count:]
        if check:
            check_clean(self.ours.path)

    def by_linux_with_ours(self, plan):
        self.now(0)
        self.loaded = True
        linux = Linux(self.ours.mnt)
        for op, number in plan:
            got = linux.run(op)
            if got != number:
                raise AssertionError(f'Linux, with ours: {op!r:.700}: {name(got)}; with its own: {name(number)}')

    def read_anew(self):
        """Remount, so that Linux forgets its cached state, which could influence the next change."""
        self.theirs.umount()
        return self.theirs.mount(self.mount_options)

    def compare(self, what):
        if not self.ours.mnt:
            self.ours.mount(self.mount_options)
        for img in (self.ours, self.theirs):
            image.wait_for_cleaner(img.mnt)
        check(self.ours, self.theirs, self.bounds, self.compressed, self.loaded, what)

    def leave(self):
        """There must be no messages of Linux about our filesystem."""
        found = [text for text in self.ours.log.complaints(self.ours.loop) if REFUSED not in text]
        self.ours.umount()
        if found:
            raise AssertionError('\n'.join(found))
        check_clean(self.ours.path)

    def end(self):
        for img in filter(None, (self.ours, self.theirs)):
            img.remove()
