#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""--device: each command that has this option reports the other device as missing without it, and works with it.
Commands that search for devices by themselves do not search among files. BTRKIT is the program under test."""
import os
import tempfile

import missing_device
from tool import run


def main():
    asked = 0
    with tempfile.TemporaryDirectory(prefix='btrkit-devices-') as folder:
        paths = [f'{folder}/{name}.img' for name in ('one', 'other')]
        for path in paths:
            with open(path, 'wb') as f:
                f.truncate(128 << 20)
        os.mkdir(f'{folder}/source')
        with open(f'{folder}/source/file', 'wb') as f:
            f.write(b'text\n')
        status, _, err = run('mkfs', '-q', '-d', 'raid1', '-m', 'raid1', '-r', f'{folder}/source', *paths)
        assert status == 0, err
        for name, before, after in missing_device.commands(paths[0]):
            assert missing_device.misses(run(name, *before, *after)), name
            if b' --device DEV ' in run(name, '--help')[1]:
                assert not missing_device.misses(run(name, *before, '--device', paths[1], *after)), name
                asked += 1
    assert asked > 10, asked
    print(f'{asked} commands')


main()
