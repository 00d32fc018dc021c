#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Space usage: compare `btrkit du` with compsize, and `btrkit du --paths` with `btrfs filesystem du -s`, on a
filesystem with 30 snapshots and a warm page cache. Then time and memory by the number of data extents, up to
$BENCH_EXTENTS (default 20 million), in order and shuffled, and by the number of snapshots, up to $BENCH_SNAPSHOTS
(1024). Memory has a limit, and so has the increase of the time per tree block from a filesystem of a quarter of the
size to the largest one. $BENCH_PLOT: file for an SVG plot. Creating all filesystems takes Linux most of an hour the
first time, and 15 GB."""
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass, field

import pairs
import workloads
from pairs import image

EXTENTS = int(os.environ.get('BENCH_EXTENTS', '20000000'))
SNAPSHOTS = int(os.environ.get('BENCH_SNAPSHOTS', '1024'))
PLOT = os.environ.get('BENCH_PLOT')
MIB = 1 << 20
GOAL = 1.3


def beside_mounted(path):
    with tempfile.TemporaryDirectory(prefix='btrkit-du-') as mnt:
        image.run('mount', '-o', 'loop,ro', path, mnt)
        try:
            if shutil.which('compsize'):
                pairs.compare('du of 31 subvolumes', pairs.process(pairs.BTRKIT, 'du', '--format', 'tsv', path),
                              {'compsize': pairs.process('compsize', mnt)}, 1 / 50)
            else:
                print('du beside compsize: skipped, there is no compsize')
            pairs.compare('du --paths of 31 subvolumes',
                          pairs.process(pairs.BTRKIT, 'du', '--paths', '--format', 'tsv', path),
                          {'btrfs filesystem du -s': pairs.process(image.BTRFS, 'filesystem', 'du', '-s', mnt)})
        finally:
            image.run('umount', mnt)


@dataclass
class Size:
    """A filesystem of a series, and its measurements."""
    number: int                                     # what the series varies
    path: str
    extents: int = 0
    blocks: int = 0
    runs: list = field(default_factory=list)        # (seconds, bytes of memory)

    def run(self):
        start = time.perf_counter()
        process = subprocess.Popen([pairs.BTRKIT, 'du', '--format', 'tsv', self.path], stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        if status:
            raise RuntimeError(f'du {self.path}: {status}')
        self.runs.append((time.perf_counter() - start, used.ru_maxrss << 10))

    def look(self):
        """Determine its contents, which also warms the page cache."""
        rows = image.run(pairs.BTRKIT, 'du', '--format', 'json', self.path).splitlines()
        total = next(row['total']['referenced'] for row in map(json.loads, rows) if 'total' in row)
        self.extents, self.blocks = total['extents'], total['blocks']

    @property
    def seconds(self):
        return statistics.median(seconds for seconds, _ in self.runs)

    @property
    def memory(self):
        return max(memory for _, memory in self.runs)

    @property
    def bound(self):
        return 24 * self.extents + 16 * self.blocks + 128 * MIB

    @property
    def each(self):
        """Microseconds per tree block."""
        return self.seconds / self.blocks * 1e6


def measure(series, sizes, of_largest):
    """Measure all sizes in turn, repeatedly. @of_largest: part of the largest size with which that is compared"""
    for size in sizes:
        size.look()
    for _ in range(pairs.PAIRS):
        for size in sizes:
            size.run()
    print(f'{series}: data extents, tree blocks; s (from, to), us a tree block; MiB, bound')
    for size in sizes:
        times = [seconds for seconds, _ in size.runs]
        print(f'    {size.number}: {size.extents}, {size.blocks}; {size.seconds:.3f} ({min(times):.3f}, '
              f'{max(times):.3f}), {size.each:.2f}; {size.memory / MIB:.0f}, {size.bound / MIB:.0f}: '
              f'{"reached" if size.memory <= size.bound else "not reached"}', flush=True)
    large = sizes[-1]
    small = next((size for size in sizes if size.number == large.number // of_largest), None)
    if not small:
        return
    ratio = large.each / small.each
    print(f'    time for a tree block, {large.number} to {small.number}: {ratio:.2f}, goal {GOAL}: '
          f'{"reached" if ratio <= GOAL else "not reached"}', flush=True)


def extents_of(name, shuffled):
    return [Size(number, pairs.made(f'{name}-{number}.img', lambda part, number=number:
                                    workloads.many_extents(part, number, shuffled=shuffled)))
            for number in ([EXTENTS // 4, EXTENTS] if shuffled else [EXTENTS >> i for i in range(4, -1, -1)])]


def snapshots():
    return [Size(number, pairs.made(f'du-snapshots-{number}.img', lambda part, number=number:
                                    workloads.changing_snapshots(part, number)))
            for number in (SNAPSHOTS >> i for i in range(10, -1, -2)) if number]


# The plot

WIDTH, HEIGHT, MARGIN = 360, 220, 56


def curve(sizes, value, top, color):
    """Each size is two or four times the previous one, so the points are equally spaced."""
    step = (WIDTH - 2 * MARGIN) / max(1, len(sizes) - 1)
    points = [(MARGIN + i * step, HEIGHT - MARGIN - value(size) / top * (HEIGHT - 2 * MARGIN))
              for i, size in enumerate(sizes)]
    yield f'<polyline fill="none" stroke="{color}" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}"/>'
    for x, y in points:
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{color}"/>'


def panel(title, sizes, *values):
    """@values: function and color of each curve"""
    top = max(value(size) for value, _ in values for size in sizes) * 1.1
    step = (WIDTH - 2 * MARGIN) / max(1, len(sizes) - 1)
    base = HEIGHT - MARGIN
    yield f'<text x="{WIDTH / 2}" y="24" text-anchor="middle">{title}</text>'
    yield f'<path fill="none" stroke="black" d="M{MARGIN},{MARGIN}V{base}H{WIDTH - MARGIN / 2}"/>'
    yield f'<text x="{MARGIN - 6}" y="{MARGIN}" text-anchor="end">{top:.3g}</text>'
    yield f'<text x="{MARGIN - 6}" y="{base}" text-anchor="end">0</text>'
    for i, size in enumerate(sizes):
        yield f'<text x="{MARGIN + i * step:.1f}" y="{base + 16}" text-anchor="middle">{size.number:.6g}</text>'
    for value, color in values:
        yield from curve(sizes, value, top, color)


def picture(series):
    parts = ['<svg xmlns="http://www.w3.org/2000/svg" font-family="sans-serif" font-size="10" '
             f'width="{WIDTH * 3}" height="{HEIGHT * len(series)}">']
    for row, (what, sizes) in enumerate(series.items()):
        for column, (title, *values) in enumerate((
                ('seconds', (lambda size: size.seconds, 'black')),
                ('us for a tree block', (lambda size: size.each, 'black')),
                ('MiB, and their bound', (lambda size: size.memory / MIB, 'black'),
                 (lambda size: size.bound / MIB, 'red')))):
            parts += [f'<g transform="translate({column * WIDTH},{row * HEIGHT})">',
                      *panel(f'{title}, by {what}', sizes, *values), '</g>']
    return '\n'.join([*parts, '</svg>', ''])


def main():
    pairs.skip_unless_possible()
    beside_mounted(pairs.made('many-snapshots.img', workloads.many_snapshots))
    series = {'data extents': extents_of('du', False), 'data extents, shuffled': extents_of('du-shuffled', True),
              'snapshots': snapshots()}
    for what, sizes in series.items():
        measure(what, sizes, 4)
    if PLOT:
        with open(PLOT, 'w', encoding='utf-8') as f:
            f.write(picture(series))


main()
