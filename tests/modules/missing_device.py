# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every command that opens a filesystem on several devices, and the arguments that it needs besides a device."""
import re

from tool import run

# Arguments before and after the device. `file` exists in the top-level directory.
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
    """Whether a device was reported as missing."""
    status, _, err = result
    missing = 'is missing' in err or 'all are needed for writing' in err
    # 1: the address given to logical-resolve is not data; 4: check reports the missing device.
    assert status == 0 or status == 1 and err or missing, result
    return missing


def commands(device):
    """Generate the commands that have --noscan, with their arguments for @device."""
    address = re.search(rb'^chunk_root\t+(\d+)$', run('dump-super', device)[1], re.M)[1].decode()
    named = re.findall(r'^  ([a-z][a-z-]*) ', run('--help')[1].decode(), re.M)
    found = [name for name in named if b' --noscan ' in run(name, '--help')[1]]
    assert set(found) == set(ARGUMENTS), set(found) ^ set(ARGUMENTS)
    for name in found:
        before, after = ARGUMENTS[name]
        yield name, before, [device, *([address] if after is None else after)]
