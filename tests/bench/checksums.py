#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Speed of checksums in blocks of 4 and 16 KiB (sectors and tree blocks) and of 256 KiB, which shows the speed of the
underlying library; compared with `openssl speed` and `xxhsum -b` if available. openssl's blake2b512 uses the same
compression function as blake2b-256."""
import re
import shutil
import subprocess

import pairs
from pairs import image


def openssl(name, size):
    """Return GB/s."""
    said = image.run('openssl', 'speed', '-seconds', '1', '-bytes', str(size), '-evp', name).decode()
    return float(re.search(r'([\d.]+)k\s*$', said)[1]) / 1e6


def xxhsum(size):
    """Return the best of the results that it prints over each other."""
    done = subprocess.run(['xxhsum', '-b3', f'-B{size}'], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=True)
    return max(float(m[1].replace(b',', b'')) for m in re.finditer(rb'XXH64 +:[^\r\n]*?([\d.,]+) MB/s', done.stdout)) \
        * 2 ** 20 / 1e9


def peer(name, size):
    if name in ('sha256', 'blake2b') and shutil.which('openssl'):
        return 'openssl', openssl('sha256' if name == 'sha256' else 'blake2b512', size)
    if name == 'xxhash64' and shutil.which('xxhsum'):
        return 'xxhsum', xxhsum(size)
    return None


def main():
    for line in image.run(pairs.program('bench-checksums')).decode().splitlines():
        name, size, ours = line.split()
        text = f'checksums {name}, blocks of {size} bytes: btrkit {ours} GB/s'
        found = peer(name, int(size))
        if found:
            text += f', {found[0]} {found[1]:.2f}, ratio {float(ours) / found[1]:.2f}'
        print(text)


if __name__ == '__main__':
    main()
