# SPDX-License-Identifier: LGPL-2.1-or-later
"""Time two ways to do the same work in turns, A B A B, so that disturbances affect both; the ratio of the medians
counts. Images are made once in $BENCH_DIR (default build/bench) and kept there. A "way" is a function that does the
work once and returns milliseconds."""
import errno
import itertools
import os
import shutil
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, 'tests/modules'))

import image        # noqa: E402

BTRKIT = os.environ.get('BTRKIT', os.path.join(ROOT, 'build/cmd/btrkit'))
FOLDER = os.environ.get('BENCH_DIR', os.path.join(ROOT, 'build/bench'))
PAIRS = int(os.environ.get('BENCH_PAIRS', '7'))


def skip_unless_possible():
    reason = image.missing()
    if reason:
        print(f'skipped: {reason}')
        sys.exit(77)


def made(name, make):
    """Return the path of an image, which is made if missing. An unfinished one has another name."""
    os.makedirs(FOLDER, exist_ok=True)
    path = os.path.join(FOLDER, name)
    if not os.path.exists(path):
        print(f'making {path}', file=sys.stderr)
        part = image.Image(path + '.part', None)
        try:
            make(part)
        finally:
            part.umount()
        os.rename(part.path, path)
    return path


def made_folder(name, make):
    """The same for several files in a directory; returns their paths."""
    path = os.path.join(FOLDER, name)
    if not os.path.exists(path):
        print(f'making {path}', file=sys.stderr)
        shutil.rmtree(path + '.part', ignore_errors=True)
        os.makedirs(path + '.part')
        make(path + '.part')
        os.rename(path + '.part', path)
    return sorted(os.path.join(path, each) for each in os.listdir(path) if each.endswith('.img'))


def compiled(name):
    """Compile a program from this directory."""
    os.makedirs(FOLDER, exist_ok=True)
    binary = os.path.join(FOLDER, name)
    image.run(os.environ.get('CC', 'cc'), '-O2', '-D_GNU_SOURCE', '-o', binary, os.path.join(HERE, f'{name}.c'))
    return binary


def program(name):
    """Path of a program that was built with the library."""
    return os.path.join(os.path.dirname(os.path.dirname(BTRKIT)), 'tests/bench', name)


class Xfs:
    """A directory for very large files, on XFS in a sparse image."""

    def __init__(self, name, size='200G'):
        self.path = os.path.join(FOLDER, name)
        self.mnt = self.path + '.mnt'
        self.size = size

    def __enter__(self):
        os.makedirs(self.mnt, exist_ok=True)
        if not os.path.exists(self.path):
            image.run('truncate', '-s', self.size, self.path + '.part')
            image.run('mkfs.xfs', '-q', self.path + '.part')
            os.rename(self.path + '.part', self.path)
        image.run('mount', '-o', 'loop,discard', self.path, self.mnt)
        return self.mnt

    def __exit__(self, *_):
        image.run('umount', self.mnt)
        os.rmdir(self.mnt)


def process(*args):
    """A way: run a whole process with output to /dev/null."""
    def way():
        start = time.perf_counter()
        subprocess.run(args, stdout=subprocess.DEVNULL, check=True)
        return (time.perf_counter() - start) * 1e3
    return way


def reported(*args):
    """A way: run a process whose last but one word is its own measurement in milliseconds."""
    return lambda: float(image.run(*args).split()[-2])


def cold(way):
    """The same with cold caches: of images, mounted filesystems and programs."""
    def after_drop():
        os.sync()
        with open('/proc/sys/vm/drop_caches', 'w', encoding='ascii') as caches:
            caches.write('3')
        return way()
    return after_drop


def read_data(path):
    """Read the allocated parts of a sparse file."""
    with open(path, 'rb', buffering=0) as f:
        end = 0
        while True:
            try:
                at = os.lseek(f.fileno(), end, os.SEEK_DATA)
            except OSError as e:
                if e.errno != errno.ENXIO:
                    raise
                return
            end = os.lseek(f.fileno(), at, os.SEEK_HOLE)
            f.seek(at)
            while at < end:
                got = len(f.read(min(1 << 20, end - at)))
                if not got:
                    return
                at += got


def warm(path, way):
    """The same with the whole image in the page cache: btrfs-progs drops it from the cache when closing it, so the next
    program would start cold."""
    def after_read():
        read_data(path)
        return way()
    return after_read


def compare(work, ours, peers, *goals, pairs=PAIRS):
    """Print medians of the ways, ours in turn with each peer, {name: way}; a goal is the ratio to the corresponding
    peer. Returns the median of ours."""
    for each in (ours, *peers.values()):
        each()                                  # warms the page cache for all
    times = {'btrkit': [], **{name: [] for name in peers}}
    for _ in range(pairs):
        for name, way in peers.items():
            times['btrkit'].append(ours())
            times[name].append(way())
    median = {name: statistics.median(each) for name, each in times.items()}
    spread = {name: f'{min(each):.1f}-{max(each):.1f}' for name, each in times.items()}
    print(f'{work}: btrkit {median["btrkit"]:.1f} ms ({spread["btrkit"]})')
    for name, goal in itertools.zip_longest(peers, goals):
        ratio = median['btrkit'] / median[name]
        verdict = ''
        if goal:
            verdict = f', goal {goal:.3f}: {"reached" if ratio <= goal else "not reached"}'
        print(f'    {name}: {median[name]:.1f} ms ({spread[name]}), ratio {ratio:.3f}{verdict}')
    sys.stdout.flush()
    return median['btrkit']
