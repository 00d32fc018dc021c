# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every command that opens a filesystem of several devices, and what it needs besides a device."""
import re

from tool import run

# Before the device, and after it. Files are below the top: `file` is there.
ARGUMENTS = {
    'cat': ([], ['file']),
    'check': ([], []),
    'diff': (['--from', 'fs', '--to', 'fs'], []),
    'du': ([], []),
    'dump-tree': ([], []),
    'edit': ([], ['chmod', '600', 'file']),
    'extract': (['--tar=-'], ['file']),
    'fiemap': ([], ['file']),
    'inode-resolve': ([], ['256']),
    'list-chunks': ([], []),
    'list-devices': ([], []),
    'list-subvolumes': ([], []),
    'logical-resolve': ([], None),
    'ls': ([], []),
    'map-logical': ([], None),
    'space-cache': (['status'], []),
    'stat': ([], ['file']),
    'tree-stats': ([], []),
}


def misses(result):
    """Whether a device was not there."""
    status, _, err = result
    missing = 'is missing' in err or 'all are needed for writing' in err
    # 1: what logical-resolve is asked about is no data; 4: check tells that a device is missing.
    assert status == 0 or status == 1 and err or missing, result
    return missing


def commands(device):
    """Those that have --noscan, with their command lines for @device."""
    address = re.search(rb'^chunk_root\t+(\d+)$', run('dump-super', device)[1], re.M)[1].decode()
    named = re.findall(r'^  ([a-z][a-z-]*) ', run('--help')[1].decode(), re.M)
    found = [name for name in named if b' --noscan ' in run(name, '--help')[1]]
    assert set(found) == set(ARGUMENTS), set(found) ^ set(ARGUMENTS)
    for name in found:
        before, after = ARGUMENTS[name]
        yield name, before, [device, *([address] if after is None else after)]
