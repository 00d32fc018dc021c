#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""btrkit mkfs --undo and btrkit undo: previous contents are restored byte for byte; refusals and messages. Needs no
root."""
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time

import tool
from tool import BTRKIT, SUPER_OFFSETS, check_failure, digest, run, watched

M = 1 << 20
SIZE = 256 * M
checks = 0


def check(condition, what):
    global checks
    checks += 1
    assert condition, what


def make_file(path, size=SIZE, filled=()):
    with open(path, 'wb') as f:
        f.truncate(size)
        for at in filled:
            f.seek(at)
            f.write(os.urandom(300000))
    return path


def put(path, at, data):
    with open(path, 'r+b') as f:
        f.seek(at)
        f.write(data)


def done(*args):
    status, out, err = run(*args)
    check(not status and not err, f'{args}: exit {status}: {err}')
    return out.decode()


def refused(file, image, says, spec=None, **how):
    before = digest(image) if os.path.isfile(image) else None
    said = check_failure('undo', spec or image, run('undo', file, spec or image, **how))
    check(says in said, f'{said!r} lacks {says!r}')
    check(before is None or digest(image) == before, f'{says}: refused, and yet changed')


def undone(file, image, before, made):
    """Undo once more; make the filesystem again and undo that."""
    check(digest(image) == made != before, 'mkfs changed nothing')
    check('saved bytes restored' in done('undo', file, image), 'what was done is not said')
    check(digest(image) == before, f'{image}: other bytes than before')
    check(done('undo', file, image).startswith('nothing to do'), 'undone twice')
    check(digest(image) == before, 'nothing to do, and yet changed')
    check(os.path.getsize(file), 'the undo file is gone')


def contents(scratch):
    """Generate previous contents: zeros, random data, other filesystems, in files of various sizes."""
    yield 'zeros', make_file(f'{scratch}/zeros.img')
    yield 'random', make_file(f'{scratch}/random.img', filled=(0, 300000, 20 * M, 64 * M - 5, 66 * M, SIZE - 400000))
    yield 'odd', make_file(f'{scratch}/odd.img', SIZE + 4097, filled=(0, SIZE - 200000))
    own = make_file(f'{scratch}/own.img')
    done('mkfs', '-q', '-L', 'before', own)
    yield 'btrkit', own
    for name, options in (('mkfs.ext4', ['-q', '-F']), ('mkfs.xfs', ['-q', '-f'])):
        program = shutil.which(name) or shutil.which(name, path='/usr/sbin:/sbin')
        path = make_file(f'{scratch}/{name}.img', 400 * M)
        if program and not subprocess.run([program, *options, path], check=False).returncode:
            yield name, path
    if shutil.which(tool.MKFS):
        path = f'{scratch}/peer.img'
        tool.make_filesystem(path, f'{scratch}/files', size=SIZE)
        yield 'mkfs.btrfs', path


def comes_back(scratch):
    kinds = 0
    for name, image in contents(scratch):
        for options in ((), ('-M',), ('-b', '130m'), ('-n', '64k', '-d', 'dup')):
            file = f'{scratch}/file'
            before = digest(image)
            done('mkfs', '-q', '-f', *options, '--undo', file, image)
            check(stat.S_IMODE(os.stat(file).st_mode) == 0o600, 'others may read it')
            check(os.path.getsize(file) < 8 * M, f'{name}: {os.path.getsize(file)} bytes are kept')
            undone(file, image, before, digest(image))
            os.unlink(file)
        os.unlink(image)
        kinds += 1
    check(kinds >= 4, f'{kinds} kinds of contents')
    return kinds


def files(scratch):
    """The undo file must not exist before, and remains only if the device was written to."""
    image, file = make_file(f'{scratch}/image'), f'{scratch}/file'
    before = digest(image)
    make_file(file, 3)
    said = check_failure('mkfs', image, run('mkfs', '--undo', file, image))
    check(said == f'undo file {file}: cannot create: File exists', said)
    check(digest(image) == before and os.path.getsize(file) == 3, 'refused, and yet changed')
    os.unlink(file)
    said = check_failure('mkfs', image, run('mkfs', '--undo', f'{scratch}/none/file', image))
    check('No such file' in said, said)
    for options in (('-b', '50m'), ('-b', '1g')):
        check_failure('mkfs', image, run('mkfs', *options, '--undo', file, image))
        check(not os.path.exists(file), 'an undo file of nothing')
    # It restores the contents of an image, but not its size.
    sized = make_file(f'{scratch}/sized', 129 * M, (0, 1 << 16))
    sizes = ('-b', '130m'), ('-b', '129m'), ('--shrink',), ()
    before = digest(sized)
    for options in sizes:
        command = ('mkfs', '-qf', '--rootdir', f'{scratch}/none', *options, '--undo', file, sized)
        os.makedirs(f'{scratch}/none', exist_ok=True)
        if options == sizes[0]:
            said = check_failure('mkfs', sized, run(*command))
            check(f'the device has {129 * M}' in said and not os.path.exists(file), said)
        else:
            done(*command)
            done('undo', file, sized)
            os.unlink(file)
        check(digest(sized) == before, options)
    os.rmdir(f'{scratch}/none')
    done('mkfs', '-q', image)
    check_failure('mkfs', image, run('mkfs', '--undo', file, image))
    check(not os.path.exists(file), 'an undo file of nothing')
    # A part of a disk image is a device too, and only that part is restored.
    disk = make_file(f'{scratch}/disk', filled=(0, 100 * M, 230 * M - 100000))
    part = f'{disk}?offset=100m&size=130m'
    before = digest(disk)
    done('mkfs', '-q', '-f', '--undo', file, part)
    put(disk, 50 * M, b'of somebody else')
    done('undo', '-q', file, part)
    put(disk, 50 * M, bytes(16))
    check(digest(disk) == before, 'a part: other bytes than before')
    os.unlink(file)
    os.unlink(disk)


def refusals(scratch):
    image, file = make_file(f'{scratch}/image', filled=(0, 90 * M)), f'{scratch}/file'
    before = digest(image)
    done('mkfs', '-q', '-f', '--undo', file, image)
    made = digest(image)
    refused(f'{scratch}/none', image, f'undo file {scratch}/none: cannot open: No such file')
    refused(image, image, f'undo file {image}: is not an undo file')
    refused(file, f'{scratch}/none', 'cannot open for writing: No such file')
    refused(file, f'{scratch}', 'is a directory')
    refused(file, image, 'was made for a device of', spec=f'{image}?offset=4k')
    other = make_file(f'{scratch}/other', filled=(65536,))
    refused(file, other, 'the device has changed since, or the undo file belongs to another device, physical 65536')
    os.unlink(other)
    # Changes of the superblock show that the filesystem was used; changes elsewhere in saved ranges are detected too.
    for at, shown in ((65536 + 72, 65536), (65536 + 4095, 65536 + 3584), (SUPER_OFFSETS[1] + 300, SUPER_OFFSETS[1]),
                      (SIZE - 1, SIZE - 512), (0, 0)):
        with open(image, 'rb') as f:
            f.seek(at)
            old = f.read(1)
        put(image, at, bytes([old[0] ^ 1]))
        refused(file, image, f'the device has changed since, or the undo file belongs to another device, '
                             f'physical {shown}')
        put(image, at, old)
    with open(file, 'rb') as f:
        kept = f.read()
    put(file, 100, b'x')
    refused(file, image, f'undo file {file}: is damaged at 64')
    put(file, 0, kept)
    os.truncate(file, 30)
    refused(file, image, f'undo file {file}: is not an undo file')
    with open(file, 'wb') as f:
        f.write(kept)
    os.truncate(image, SIZE + 1)
    refused(file, image, f'undo file {file}: was made for a device of {SIZE} bytes, this one has {SIZE + 1}')
    os.truncate(image, SIZE)
    os.chmod(image, 0o400)
    refused(file, image, 'cannot open for writing', **tool.forbidden())
    os.chmod(image, 0o600)
    undone(file, image, before, made)
    os.unlink(file)


def unfinished(scratch):
    """After an incomplete undo every command reports its mark, and only mkfs -f overwrites it."""
    image, file = make_file(f'{scratch}/image'), f'{scratch}/file'
    done('mkfs', '-q', image)
    before = digest(image)
    done('mkfs', '-q', '-f', '--undo', file, image)
    with open(file, 'rb') as f:
        ident = f.read(32)[16:]
    for offset in SUPER_OFFSETS:
        mark = bytearray(512)
        mark[32:72] = ident + offset.to_bytes(8, 'little') + bytes(8) + b'btrkUNDO'
        text = b'An undo of this device is unfinished. Run btrkit undo again.\n'
        mark[256:256 + len(text)] = text
        put(image, offset, mark)
    for command in (['dump-super'], ['dump-super', '-s', '1'], ['dump-tree'], ['space-cache', 'status']):
        said = check_failure(command[0], image, run(*command, image))
        check('an undo is unfinished, run btrkit undo again' in said, f'{command}: {said}')
    said = check_failure('mkfs', image, run('mkfs', image))
    check('contains an unfinished undo: use -f to overwrite it' in said, said)
    marked = digest(image)
    # Overwriting can be undone too: that restores the mark, and the first undo can continue.
    second = f'{scratch}/second'
    done('mkfs', '-q', '-f', '--undo', second, image)
    refused(file, image, 'has changed since')
    done('undo', second, image)
    check(digest(image) == marked, 'the marks are not back')
    done('undo', file, image)
    check(digest(image) == before, 'not undone')
    done('dump-tree', image)
    for path in (file, second, image):
        os.unlink(path)


def kill(delay, *args):
    """Send SIGKILL after a delay: before, during or after its work."""
    process = subprocess.Popen([BTRKIT, *args], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(delay)
    process.kill()
    return process.wait()


def killed(scratch):
    """Whenever mkfs or undo is killed, the device can be restored."""
    image, file = make_file(f'{scratch}/image', filled=(0, 64 * M, 70 * M, SIZE - 300000)), f'{scratch}/file'
    before, kills = digest(image), 0
    started = time.monotonic()
    done('mkfs', '-q', '-f', '--undo', file, image)
    took = time.monotonic() - started
    for i in range(40):
        kills += kill(took * (i + 1) / 40, 'undo', file, image) != 0
        done('undo', '-q', file, image)
        check(digest(image) == before, f'undo was killed: {i}')
        os.unlink(file)
        kills += kill(took * (i + 1) / 40, 'mkfs', '-f', '--undo', file, image) != 0
        if os.path.exists(file):
            status, _, err = run('undo', file, image)
            check(not status or 'is not an undo file' in err, err)
        check(digest(image) == before, f'mkfs was killed: {i}')
        if os.path.exists(file):
            os.unlink(file)
        done('mkfs', '-q', '-f', '--undo', file, image)
    os.unlink(file)
    os.unlink(image)
    return kills


def several(scratch):
    """One undo file for several devices, which are restored in any order of arguments."""
    file, kills, alike = f'{scratch}/file', 0, 0
    for filled in ((), (65536, 70 * M)):
        images = [make_file(f'{scratch}/{i}', filled=filled) for i in range(3)]
        if not filled:
            done('mkfs', '-q', *images)
        before = [digest(image) for image in images]
        started = time.monotonic()
        done('mkfs', '-q', '-f', '-m', 'raid1c3', '--undo', file, *images)
        took = time.monotonic() - started
        made = [digest(image) for image in images]
        check(not set(made) & set(before), 'mkfs changed nothing')
        other = make_file(f'{scratch}/other', filled=(0,))
        for wrong, says in ((images[:2], f'undo file {file}: was made for 3 devices, but 2 were given'),
                            ([images[0], images[1], images[1]], 'is given twice'),
                            ([images[0], other, images[1]], 'has changed since'),
                            (images + [other], 'was made for 3 devices, but 4 were given'),
                            (['--ordered', images[1], images[0], images[2]], 'has changed since')):
            said = run('undo', file, *wrong)
            check(said[0] == 1 and says in said[2] and said[2].count('\n') == 1, said)
        check([digest(image) for image in images] == made, 'refused, and yet changed')
        with open(images[1], 'rb') as f:
            bytes_there = os.pread(f.fileno(), 7, 65536 + 100)
        put(images[1], 65536 + 100, b'changed')
        said = check_failure('undo', None, run('undo', file, *images))
        check('has changed since' in said, said)
        put(images[1], 65536 + 100, bytes_there)
        done('undo', file, *images)
        check([digest(image) for image in images] == before, 'other bytes than before')
        os.unlink(file)
        done('mkfs', '-q', '-f', '-m', 'raid1c3', '--undo', file, *images)
        done('undo', file, images[2], images[0], images[1])
        check([digest(image) for image in images] == before, 'other bytes than before')
        check(done('undo', file, *images).startswith('nothing to do'), 'undone twice')
        os.unlink(file)
        for i in range(12):
            kills += kill(took * (i + 1) / 12, 'mkfs', '-f', '-m', 'raid1c3', '--undo', file, *images) != 0
            if os.path.exists(file):
                kill(took * (i + 1) / 12, 'undo', file, *images)
                status, _, err = run('undo', file, *images)
                if status and 'cannot determine which device' in err:
                    alike += 1
                    status, _, err = run('undo', '--ordered', file, *images)
                check(not status or 'is not an undo file' in err, err)
                os.unlink(file)
            check([digest(image) for image in images] == before, f'killed: {i}')
        for image in images + [other]:
            os.unlink(image)
    print(f'three devices: {kills} kills, {alike} of them before the devices could be told apart')


def misuse():
    for args, says in (((), 'too few arguments'), (('file',), 'too few arguments'),
                       (('-x', 'f', 'i'), "unknown option '-x'")):
        check(says in check_failure('undo', None, run('undo', *args), status=2), args)


def quiet(scratch):
    image, file = make_file(f'{scratch}/image'), f'{scratch}/file'
    done('mkfs', '-q', '--undo', file, image)
    for option in ('-q', '--quiet'):
        check(done('undo', option, file, image) == '', option)
    for options, says in (((), True), (('-q',), False), (('--quiet',), False)):
        status, out, said = watched('undo', *options, file, image)
        check(not status and bool(out) == says == ('undoing: 50 %' in said) == bool(said), (options, out, said))
    os.unlink(file)
    os.unlink(image)


def main():
    print(f'undo of {BTRKIT}')
    with tempfile.TemporaryDirectory() as scratch:
        kinds = comes_back(scratch)
        files(scratch)
        refusals(scratch)
        unfinished(scratch)
        quiet(scratch)
        several(scratch)
        kills = killed(scratch)
        misuse()
    print(f'{kinds} kinds of contents, {kills} kills, {checks} checks')


if __name__ == '__main__':
    sys.exit(main())
