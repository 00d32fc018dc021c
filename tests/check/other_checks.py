#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Let `btrfs check` and Linux (in a virtual machine) check damages of the matrix: whatever they object to must be found
by check as well.

    check-matrix --write CASES HARMLESS IMAGE...
    other_checks.py [OPTION]... CASES IMAGE...

--each N       at most N random cases per field ($SEED; default 1); with --each-image per field and image
--told RE      only cases with this result of check: "nothing", which is the default, or e.g. "BTR-.*"
--check        ask `btrfs check` ($BTRFS)
--kernel FILE --modules FOLDER --init FILE
               ask Linux: a kernel for qemu-system-x86_64, its lib/modules/VERSION, and check-init. A case that crashes
               the kernel counts as an objection. $ACCEL: kvm, where that is possible
--fields RE    only cases with matching names

Prints a line for each case with an objection although check found nothing, or with a finding but no objection, and the
counts; exits with 1 if there was one. Messages about the undamaged image do not count as objections."""
import argparse
import collections
import gzip
import lzma
import os
import random
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile

BTRFS = os.environ.get('BTRFS', 'btrfs')
# Modules that Linux requests by names other than their file names.
NAMED = ('crc32c-cryptoapi', 'crc32c_generic', 'crc32c-intel', 'xxhash_generic', 'sha256_generic', 'blake2b_generic')
TIMEOUT = 120   # seconds for one case


class Case(collections.namedtuple('Case', 'image name told changes')):
    @property
    def field(self):
        return self.name.rsplit(' ', 1)[0]


def read_cases(path, args):
    groups = collections.defaultdict(list)
    with open(path, encoding='utf-8') as f:
        for line in f:
            image, name, told, changes = line.rstrip('\n').split('\t')
            case = Case(os.path.basename(image), name, told, changes)
            if re.fullmatch(args.told, case.told) and re.search(args.fields, case.name):
                groups[case.image if args.each_image else '', case.field].append(case)
    rng = random.Random(int(os.environ.get('SEED', '1')))
    return [case for _, group in sorted(groups.items())
            for case in sorted(rng.sample(group, min(args.each, len(group))))]


def runs(changes):
    for change in changes.split():
        offset, text = change.split(':')
        yield int(offset), bytes.fromhex(text)


class Changed:
    """Context manager: an image with a case's changes, which are reverted at the end."""

    def __init__(self, path, changes):
        self.path, self.runs = path, list(runs(changes))

    def __enter__(self):
        with open(self.path, 'r+b') as f:
            self.kept = []
            for offset, data in self.runs:
                f.seek(offset)
                self.kept.append((offset, f.read(len(data))))
                f.seek(offset)
                f.write(data)

    def __exit__(self, *_):
        with open(self.path, 'r+b') as f:
            for offset, data in self.kept:
                f.seek(offset)
                f.write(data)


def plain(line):
    """Remove numbers from a message."""
    return re.sub(r'0x[0-9a-f]+|[0-9]+', 'N', line).strip()


def check_says(path):
    """Return exit status and complaints, without those about the undamaged filesystem."""
    try:
        done = subprocess.run([BTRFS, 'check', path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                              timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        return 'no end', set()
    said = {plain(line) for line in done.stdout.decode(errors='replace').splitlines()}
    return done.returncode, {line for line in said if line and not re.match(
        r'\[N/N\]|Opening|Checking|UUID|found N bytes|total |btree space|file data blocks|referenced', line)}


def ask_check(cases, images, folder):
    """{case: objection}"""
    found = {}
    for image in sorted({case.image for case in cases}):
        path = f'{folder}/{image}'
        subprocess.run(['cp', '--sparse=always', images[image], path], check=True)
        normal = check_says(path)
        for case in cases:
            if case.image != image:
                continue
            with Changed(path, case.changes):
                status, said = check_says(path)
            new = sorted(said - normal[1])
            if status != normal[0] or new:
                found[case] = f'exit {status}: {"; ".join(new)}'
        os.unlink(path)
    return found


def pieces(path):
    """The nonzero parts of an image, in the format that the guest reads."""
    with open(path, 'rb') as f:
        size = os.fstat(f.fileno()).st_size
        out, at, run = [struct.pack('<Q', size)], 0, None
        parts = []
        while at < size:
            try:
                at = os.lseek(f.fileno(), at, os.SEEK_DATA) // 4096 * 4096
            except OSError:
                break
            f.seek(at)
            block = f.read(4096)
            if block.count(0) != len(block):
                if run is not None and parts[run][0] + len(parts[run][1]) == at and len(parts[run][1]) < 1 << 20:
                    parts[run][1].extend(block)
                else:
                    parts.append((at, bytearray(block)))
                    run = len(parts) - 1
            at += 4096
        for offset, data in parts:
            out += [struct.pack('<QQ', offset, len(data)), bytes(data)]
        return b''.join(out)


def module_files(folder):
    found = {}
    for root, _, names in os.walk(folder):
        for name in names:
            if m := re.fullmatch(r'(.*)\.ko(\.xz|\.gz|\.zst)?', name):
                found[m[1].replace('_', '-')] = os.path.join(root, name)
    return found


def unpacked(path):
    if path.endswith('.xz'):
        return lzma.open(path).read()
    if path.endswith('.gz'):
        return gzip.open(path).read()
    if path.endswith('.zst'):
        return subprocess.run(['zstd', '-dc', path], stdout=subprocess.PIPE, check=True).stdout
    with open(path, 'rb') as f:
        return f.read()


def modules(folder):
    """[(name, bytes)] of all modules that btrfs and loop need, in load order."""
    files, done = module_files(folder), {}

    def add(name):
        name = name.replace('_', '-')
        if name in done or name not in files:
            return
        data = unpacked(files[name])
        m = re.search(rb'\0depends=([^\0]*)\0', data)
        for other in m[1].decode().split(',') if m and m[1] else ():
            add(other)
        done[name] = data

    for name in (*NAMED, 'loop', 'btrfs'):
        add(name)
    return list(done.items())


def cpio(files):
    """Make an initramfs."""
    out, folders = [], set()

    def entry(name, mode, data=b'', rdev=(0, 0)):
        fields = (len(out) + 1, mode, 0, 0, 1, 0, len(data), 0, 0, *rdev, len(name) + 1, 0)
        head = b'070701' + b''.join(b'%08X' % field for field in fields) + name.encode() + b'\0'
        out.append(head + bytes(-len(head) % 4) + data + bytes(-len(data) % 4))

    for name, data in files:
        at = ''
        for part in name.split('/')[:-1]:
            at = f'{at}/{part}' if at else part
            if at not in folders:
                folders.add(at)
                entry(at, 0o40755)
        entry(name, 0o100755, data)
    entry('dev', 0o40755)
    # The init process writes to it.
    entry('dev/console', 0o20600, rdev=(5, 1))
    entry('TRAILER!!!', 0)
    return b''.join(out)


def boot(kernel, initrd, words, tell):
    """Run the machine with words for its command line; @tell is called with its output lines."""
    args = ['qemu-system-x86_64', '-accel', os.environ.get('ACCEL', 'tcg'), '-cpu', 'max', '-m', '2G', '-nographic',
            '-no-reboot', '-nodefaults', '-serial', 'stdio', '-kernel', kernel, '-initrd', initrd, '-append',
            f'console=ttyS0 quiet loglevel=0 panic=-1 oops=panic hung_task_panic=1 {words}']
    with subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT) as guest:
        try:
            for line in guest.stdout:
                if not tell(line.decode(errors='replace').rstrip()):
                    break
        finally:
            guest.kill()


def watched(kernel, initrd, words, tell, seconds=TIMEOUT):
    """The same; a case that says nothing for so many seconds is killed."""
    command = [sys.executable, os.path.abspath(__file__), '--boot', kernel, initrd, words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as process:
        try:
            buffer = b''
            while select.select([process.stdout], [], [], seconds)[0]:
                data = os.read(process.stdout.fileno(), 1 << 16)
                if not data:
                    break
                *lines, buffer = (buffer + data).split(b'\n')
                for line in lines:
                    tell(line.decode(errors='replace').rstrip())
        finally:
            # Including the virtual machine that it started.
            os.killpg(process.pid, signal.SIGKILL)


def write_initrd(path, init, module_folder, images, cases):
    """Write the initramfs for check-init; images: {name: path}, cases: (number, name of the image, changes)."""
    loaded = modules(module_folder)
    with open(init, 'rb') as f:
        files = [('init', f.read())]
    files += [(f'modules/{name}', data) for name, data in loaded]
    files.append(('modules/list', '\n'.join(name for name, _ in loaded).encode()))
    files += [(f'images/{name}', pieces(image)) for name, image in images.items()]
    files.append(('cases', ''.join(f'{number} {name} {changes}\n' for number, name, changes in cases).encode()))
    with open(path, 'wb') as f:
        f.write(cpio(files))


def ask_linux(cases, images, folder, kernel, module_folder, init):
    """{case: objection}"""
    names = sorted({case.image for case in cases})
    all_cases = [(name, '') for name in names] + [(case.image, case.changes) for case in cases]
    initrd = f'{folder}/initrd'
    write_initrd(initrd, init, module_folder, {name: images[name] for name in names},
                 [(i, *case) for i, case in enumerate(all_cases)])
    said, at, ended, done = collections.defaultdict(set), None, -1, False

    def tell(line):
        nonlocal at, ended, done
        if os.environ.get('VERBOSE'):
            print(line, file=sys.stderr)
        if m := re.search(r'CASE (\d+)$', line):
            at = int(m[1])
        elif m := re.search(r'END (\d+)$', line):
            ended, at = int(m[1]), None
        elif line.endswith('ALL DONE'):
            done = True
        elif at is not None and re.search(r'Kernel panic|Oops|kernel BUG|general protection', line):
            said[at].add(f'ENDED {plain(line)}')
        elif at is not None and line.startswith('STEP'):
            said[at].add(line)
        elif at is not None and line.startswith('LOG') and not re.search(
                r'BTRFS (info|notice|debug)|transid N|scanned by|deprecated', line):
            said[at].add(plain(line))
        elif 'cannot' in line:
            raise RuntimeError(line)

    while not done:
        before = ended
        watched(kernel, initrd, f'from={ended + 1}', tell)
        if not done:
            if ended == before and at is None:
                raise RuntimeError('the machine does not start')
            if at is not None:
                said[at].add('ENDED the machine')
                ended, at = at, None
            if ended + 1 >= len(all_cases):
                done = True
    found = {}
    normal = {name: said[i] for i, name in enumerate(names)}
    for i, case in enumerate(cases, len(names)):
        new = sorted(said[i] - normal[case.image])
        if new:
            found[case] = '; '.join(new)
    return found


def main():
    if sys.argv[1:2] == ['--boot']:
        boot(sys.argv[2], sys.argv[3], sys.argv[4], lambda line: print(line, flush=True) or True)
        return 0
    parser = argparse.ArgumentParser()
    parser.add_argument('--each', type=int, default=1)
    parser.add_argument('--each-image', action='store_true')
    parser.add_argument('--told', default='nothing')
    parser.add_argument('--fields', default='')
    parser.add_argument('--check', action='store_true')
    parser.add_argument('--kernel')
    parser.add_argument('--modules')
    parser.add_argument('--init')
    parser.add_argument('cases')
    parser.add_argument('images', nargs='+')
    args = parser.parse_args()
    images = {os.path.basename(path): path for path in args.images}
    cases = [case for case in read_cases(args.cases, args) if case.image in images]
    checks = {}
    with tempfile.TemporaryDirectory(prefix='btrkit-checks-') as folder:
        if args.check:
            checks['btrfs check'] = ask_check(cases, images, folder)
        if args.kernel:
            checks['Linux'] = ask_linux(cases, images, folder, args.kernel, args.modules, args.init)
    silent, differ = args.told == 'nothing', 0
    for case in cases:
        for name, found in checks.items():
            if silent == (case in found):
                print(f'{name}: {case.image} {case.name}: {found.get(case, case.told)}')
                differ += 1
    for name, found in checks.items():
        print(f'{name}: {len(cases)} cases, objects to {len(found)}')
    return differ != 0


if __name__ == '__main__':
    sys.exit(main())
