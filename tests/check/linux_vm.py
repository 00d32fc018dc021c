#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Ask Linux, in a virtual machine, about each row of the table of its rules: mount the image read-only and read
everything; mount a fresh copy writable, read, write, balance, remove everything, and mount it again. Prints rows whose
answers differ from the table, or writes them to it. Needs no root, but qemu-system-x86_64 and a kernel, which need not
be installed:

    apt-get download linux-image-VERSION && dpkg-deb -x linux-image-VERSION*.deb KERNEL
    linux_vm.py --kernel KERNEL/boot/vmlinuz-VERSION --modules KERNEL/usr/lib/modules/VERSION [OPTION]... [LINE]...

--build FOLDER   where cmd/btrkit, tests/check/check-linux and tests/check/check-init were built (default: build)
--table FILE     another table than linux.txt
--write          replace the last two columns of the table
--log FILE       write what the kernel says about each row
--accel NAME     the accelerator of qemu-system-x86_64 (default: tcg, which works everywhere; kvm is faster)
LINE             only the rows of these lines

Exits with 1 if an answer differs, and with 77 if there is no kernel or no virtual machine."""
import argparse
import collections
import errno
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, HERE)
import linux_images
import other_checks

SEPARATOR = ' | '
SECONDS = 60  # without a word from the machine, after which a case counts as hung
READ_ONLY, WRITABLE = 0, 1  # the remainders of the numbers of cases divided by 2
SKIPPED = 77
UNDAMAGED = 1000000  # more than a table has lines


def skip(why):
    print(f'skipped: {why}')
    sys.exit(SKIPPED)


def names(errors):
    return ', '.join(sorted(errno.errorcode[error] for error in errors))


def in_words(said):
    """Return the answer as a column of the table; said: {what: errors}."""
    for what, words in (('crash', 'crashes'), ('hang', 'hangs'), ('mount', 'refuses to mount'),
                        ('forced', 'turns read-only'), ('read', 'refuses to read some of it'),
                        ('write', 'refuses to write'), ('remove', 'refuses to remove some of it'),
                        ('again', 'refuses to mount again'),
                        ('umount', 'refuses to unmount')):
        if what in said:
            return f'{words} ({names(said[what])})' if said[what] else words
    return 'mounts'


class Machine:
    """What the virtual machine says, case by case."""

    def __init__(self, log):
        self.said = collections.defaultdict(lambda: collections.defaultdict(set))
        self.case, self.ended, self.done, self.log = None, -1, False, log

    def tell(self, line):
        if m := re.search(r'CASE (\d+)$', line):
            self.case = int(m[1])
            print(f'# line {self.case // 2}, {"writable" if self.case % 2 else "read-only"}', file=self.log)
        elif m := re.search(r'END (\d+)$', line):
            self.ended, self.case = int(m[1]), None
        elif line.endswith('ALL DONE'):
            self.done = True
        elif 'cannot' in line and not line.startswith('LOG'):
            raise RuntimeError(line)
        elif self.case is not None:
            print(line, file=self.log)
            if m := re.search(r'ANSWER (\w+) (\d+)$', line):
                self.said[self.case][m[1]].add(int(m[2]))
            elif re.search(r'Kernel panic|Oops|kernel BUG|general protection', line):
                _ = self.said[self.case]['crash']

    def lost(self):
        """The machine has ended, or was ended, during a case or between two."""
        if self.case is None:
            return
        if 'crash' not in self.said[self.case]:
            _ = self.said[self.case]['hang']
        self.ended, self.case = self.case, None


def ask(numbers, initrd, kernel, log):
    """Return {number of case: answer}."""
    machine, last = Machine(log), None
    while not machine.done and machine.ended < numbers[-1]:
        if machine.ended == last:
            raise RuntimeError('the machine does not start')
        last = machine.ended
        other_checks.watched(kernel, initrd, f'answer from={machine.ended + 1}', machine.tell, SECONDS)
        machine.lost()
    return {number: in_words(machine.said[number]) for number in numbers}


def cases_of(build, images, table, lines, folder):
    """Return (number, image, changes) of the cases: two for each row of the table, and for each undamaged image."""
    path = os.path.join(folder, 'cases')
    subprocess.run([os.path.join(build, 'tests/check/check-linux'), '--cases', path, table, *images.values()],
                   stdout=subprocess.DEVNULL, check=True)
    with open(path, encoding='ascii') as f:
        rows = [line.rstrip('\n').split('\t') for line in f]
    rows = [(int(line), image, changes) for line, image, changes in rows if not lines or int(line) in lines]
    rows += [(UNDAMAGED + i, image, '') for i, image in enumerate(sorted({image for _, image, _ in rows}))]
    return sorted((2 * line + how, image, changes) for line, image, changes in rows for how in (READ_ONLY, WRITABLE))


def read_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument('--kernel')
    parser.add_argument('--modules')
    parser.add_argument('--build', default='build')
    parser.add_argument('--table', default=os.path.join(HERE, 'linux.txt'))
    parser.add_argument('--write', action='store_true')
    parser.add_argument('--log', default=os.devnull)
    parser.add_argument('--accel', default='tcg')
    parser.add_argument('lines', nargs='*', type=int)
    args = parser.parse_args()
    if not shutil.which('qemu-system-x86_64'):
        skip('there is no qemu-system-x86_64')
    if not args.kernel or not args.modules:
        skip('no kernel and modules were given: --kernel FILE --modules FOLDER')
    os.environ['ACCEL'] = args.accel
    os.environ.setdefault('BTRKIT', os.path.join(args.build, 'cmd/btrkit'))
    return args


def main():
    args = read_arguments()
    with open(args.table, encoding='utf-8') as f:
        rows = f.read().split('\n')
    used = sorted({row.split(SEPARATOR)[1] for row in rows if SEPARATOR in row and not row.startswith('#')})
    differ = 0
    with tempfile.TemporaryDirectory(prefix='btrkit-vm-') as folder, open(args.log, 'w', 1, 'utf-8') as log:
        images = {name: linux_images.provide(name, folder) for name in used}
        cases = cases_of(args.build, images, args.table, args.lines, folder)
        initrd = os.path.join(folder, 'initrd')
        init = os.path.join(args.build, 'tests/check/check-init')
        other_checks.write_initrd(initrd, init, args.modules, images, cases)
        answers = ask([number for number, _, _ in cases], initrd, args.kernel, log)
    for number, image, _ in cases:
        if number // 2 >= UNDAMAGED and answers[number] != 'mounts':
            differ += 1
            print(image, 'undamaged', answers[number], sep=SEPARATOR)
    lines = sorted({number // 2 for number in answers if number // 2 < UNDAMAGED})
    for line in lines:
        columns = rows[line - 1].split(SEPARATOR)
        new = [answers[2 * line + READ_ONLY], answers[2 * line + WRITABLE]]
        if columns[-2:] != new:
            differ += 1
            print(line, columns[0], *columns[-2:], '->', *new, sep=SEPARATOR)
        rows[line - 1] = SEPARATOR.join(columns[:-2] + new)
    print(f'{len(lines)} rows, {differ} with other answers')
    if args.write:
        with open(args.table, 'w', encoding='utf-8') as f:
            f.write('\n'.join(rows))
    return differ != 0 and not args.write


if __name__ == '__main__':
    sys.exit(main())
