#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Options, exit codes and messages: help on stdout; usage errors exit with 2, failures with 1 and one line."""
import os
import re
import signal
import subprocess
import sys
import tempfile

import tool
from tool import BTRKIT, Super, check_failure, run

checks = 0


def check(condition, what):
    global checks
    assert condition, what
    checks += 1


def fails(command, *args, device, says):
    said = check_failure(command, device, run(command, *args))
    check(says in said, f'{command} {args}: {said!r} lacks {says!r}')


def misused(command, *args, says):
    said = check_failure(command, None, run(command, *args), status=16 if command == 'check' else 2)
    check(says in said, f'{command} {args}: {said!r} lacks {says!r}')


def general():
    status, out, err = run('--help')
    check(not status and not err and out.startswith(b'Usage: btrkit '), 'btrkit --help')
    commands = re.findall(r'^  ([a-z][a-z-]*)  +(\S.*)', out.decode(), re.M)
    check(len(commands) >= 3, commands)
    for name, summary in commands:
        status, out, err = run(name, '--help')
        text = out.decode()
        check(not status and not err and text.startswith(f'Usage: btrkit {name} '), f'{name} --help')
        check(summary in text and '--help' in text, f'{name} --help lacks its summary')
        for option in re.findall(r'--([a-z][a-z-]+)', text):
            check(option == 'help' or 'unknown option' not in run(name, f'--{option}')[2], f'{name} --{option}')
        misused(name, '--no-such-option', says="unknown option '--no-such-option'")
        misused(name, '-Z', says="unknown option '-Z'")
        misused(name, '--help=yes', says='takes no argument')
    status, out, err = run('--version')
    check(not status and not err and re.match(rb'btrkit \d+\.\d+\.\d+\nbuilt with .+\nlicence L?GPL-.+\n$', out), out)
    for args in ([], ['no-such-command'], ['--no-such-option']):
        status, out, err = run(*args)
        check(status == 2 and not out and err.startswith('btrkit: ') and err.count('\n') == 1, (args, err))


def misuse(image):
    for name in ('dump-super', 'dump-tree'):
        misused(name, says='too few arguments')
    misused('features', image, says='too many arguments')
    for args in (['dump-tree', '--path='], ['dump-tree', '--subvol=', '--path=x'], ['list-subvolumes', '--below='],
                 ['diff', '--from=', '--to=5'], ['diff', '--from=5', '--to=']):
        misused(*args, image, says='empty path')
    many = ','.join(['INODE_ITEM'] * 30)
    for last in ('ROOT_ITEM', 'EXTENT_DATA'):
        check(run('dump-tree', '--type', f'{many},{last}', image) == run('dump-tree', '--type', f'INODE_ITEM,{last}',
                                                                         image), 'a long list of types')
    misused('features', '--format', says="option '--format' needs an argument")
    misused('features', '--format', 'xml', says="'xml' is unknown")
    misused('dump-super', '-s', says="option '-s' needs an argument")
    misused('dump-super', '--all=1', image, says="option '--all' takes no argument")
    misused('dump-super', '-\u00fc', image, says="unknown option")
    misused('dump-super', '-i', '3', image, says='must be 0, 1 or 2')
    for bad in ('', 'x', '-1', '1x', '1 ', '99999999999999999999'):
        misused('dump-super', '--bytenr', bad, image, says='--bytenr')
        misused('dump-tree', '-b', bad, image, says='--block')
        misused('dump-tree', '-t', bad, image, says='is not a tree')
    misused('dump-super', '--bytenr', '16777215e', image, says='too large')
    misused('dump-tree', '--follow', image, says='--follow requires --block')
    for bad in ('0', 'fs_tree_tree', 'btrfs_', 'fsx', 'subvolume'):
        misused('dump-tree', '-t', bad, image, says=f"'{bad}' is not a tree")


def space_cache(image):
    misused('space-cache', says='too few arguments')
    misused('space-cache', 'status', says='too few arguments')
    misused('space-cache', 'status', image, image, says='too many arguments')
    misused('space-cache', 'heal', image, says="'heal' is unknown")
    for args in (['convert'], ['clear'], ['clear', 'v1'], ['clear', image]):
        misused('space-cache', *args, says='too few arguments')
    for args in (['convert', image, image], ['clear', 'v1', image, image]):
        misused('space-cache', *args, says='too many arguments')
    for bad in ('v3', 'V2', '', 'both'):
        misused('space-cache', 'convert', '--to', bad, image, says=f"--to: '{bad}' is unknown")
    for bad in ('v3', 'none', ''):
        misused('space-cache', 'clear', bad, image, says=f"clear: '{bad}' is unknown")
    for action, options in (('status', ('--to=v2', '--dry-run', '--undo=x', '--degraded')),
                            ('convert', ('--format=text',)), ('clear', ('--format=json', '--to=v1'))):
        for option in options:
            kind = ['v1'] if action == 'clear' else []
            misused('space-cache', action, option, *kind, image,
                    says=f"{option.split('=')[0]} cannot be used with '{action}'")
    misused('space-cache', 'convert', '--dry-run', '--undo', 'x', image, says='--undo and --dry-run cannot be combined')
    status, out, err = run('space-cache', 'status', image)
    check(not status and not err and out.startswith((b'block group ', b'leftover of v2')), err)
    check(out.endswith(b'in use:\t\tv2, valid\ncontradictions:\t0\n'), out[-200:])


def trees_by_name(image):
    for names in (('5', 'fs', 'FS_TREE', 'btrfs_fs_tree_objectid', '0x5'), ('7', 'csum', 'checksum', 'CSUM-tree'),
                  ('4', 'dev', 'DEVICE', 'device-tree'), ('10', 'free-space', 'FREE_SPACE_TREE')):
        texts = {run('dump-tree', '-t', name, image)[:2] for name in names}
        check(len(texts) == 1 and not texts.pop()[0], names)
    alone = [run('dump-tree', '-t', name, image)[1].split(b'\n') for name in ('fs', 'chunk', 'csum')]
    both = run('dump-tree', '-t', 'fs', '-t', 'chunk', '-t', 'csum', image)[1].split(b'\n')
    check(both == alone[0][:-4] + alone[1][1:-1] + alone[2][1:], 'repeated -t')


def failures(image, scratch):
    def make(name, data=b'', size=0):
        path = os.path.join(scratch, name)
        with open(path, 'wb') as f:
            f.write(data)
            f.truncate(max(size, len(data)))
        return path

    ext = bytearray(1 << 20)
    ext[1024 + 56:1024 + 58] = b'\x53\xef'
    for path in (make('empty'), make('zeros', size=1 << 20), make('ext4', ext), make('short', size=65536 + 4095),
                 scratch):
        for name in ('dump-super', 'dump-tree'):
            fails(name, path, device=path, says='not a btrfs filesystem')
    for name in ('dump-super', 'dump-tree'):
        fails(name, '/no/such/file', device='/no/such/file', says='No such file')
        fails(name, '/dev/null', device='/dev/null', says='')
        fails(name, f'{image}?offset=x', device=f'{image}?offset=x', says='')
    fails('dump-super', '-s', '2', image, device=image, says='the device ends before a superblock')
    fails('dump-super', '--bytenr', '4096', image, device=image, says='no superblock at 4096')
    fails('dump-tree', '-t', '300', image, device=image, says='no tree 300')
    fails('dump-tree', '-t', 'tree-log', image, device=image, says='no log tree')
    fails('dump-tree', '-b', '1', image, device=image, says='block 1 ')
    # Damage is reported with its place, too.
    status, out, err = run('dump-tree', '-b', '8796093022208', image)
    check(status == 1 and
          out.endswith(b'\ndamaged block 8796093022208: no chunk contains the address\n'), (status, out))
    check(err.count('\n') == 1 and '8796093022208' in err, err)
    fails('dump-tree', image, image, device=image, says='given twice')


def output(image):
    for name in ('dump-super', 'dump-tree', 'features', 'space-cache', '--help'):
        device = {'features': [], '--help': [], 'space-cache': ['status', image]}.get(name, [image])
        with open('/dev/full', 'wb') as full:
            done = subprocess.run([BTRKIT, name, *device], stdout=full, stderr=subprocess.PIPE, check=False)
        check(done.returncode == 1 and
              done.stderr == f'btrkit {name}: standard output: No space left on device\n'.encode(),
              (name, done.stderr))
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run([BTRKIT, name, *device], stdout=writer, stderr=subprocess.PIPE, check=False)
        os.close(writer)
        check(done.returncode == 1 and not done.stderr, f'{name} into a closed pipe: {done}')


def closed(image):
    """If stdout or stderr is closed, an opened device must not take its place."""
    before = tool.digest(image)
    for fd in (1, 2):
        done = subprocess.run([BTRKIT, 'edit', image, 'rmdir', 'no-such-directory'], stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False,
                              preexec_fn=lambda: os.close(fd))
        check(done.returncode == 1 and tool.digest(image) == before, f'descriptor {fd} is closed: {done}')
    done = subprocess.run([BTRKIT, 'dump-super', image], stderr=subprocess.PIPE, check=False,
                          preexec_fn=lambda: os.close(1))
    check(done.returncode == 1 and
          done.stderr == b'btrkit dump-super: standard output: Bad file descriptor\n', done)


def interrupted(image):
    status, _, said = tool.watched('dump-tree', '--scan', image, number=signal.SIGINT)
    check(status == 1 and said.endswith(f'btrkit dump-tree: {image}: interrupted\r\n'), said)


def one_line(image, scratch):
    """With any name, a failure stays on one line and contains no control characters."""
    odd = 'a\nb\x1b[31mc\x7f\u00fc\u009b'
    shown = r'a\012b\033[31mc\177' + '\u00fc' + r'\302\233'
    fails('dump-super', f'/no/{odd}', device=f'/no/{shown}', says='No such file')
    fails('fiemap', image, f'dir/{odd}/x', device=image, says=f'no such file or directory: dir/{shown}/x')
    misused('dump-tree', '-t', odd, image, says=f"'{shown}' is not a tree")
    link = os.path.join(scratch, odd)
    os.symlink(image, link)
    fails('fiemap', link, 'dir', device=os.path.join(scratch, shown), says='not a regular file: dir')
    status, out, err = run(odd)
    check(status == 2 and not out and err == f"btrkit: unknown command '{shown}' (see btrkit --help)\n", err)


def misspelt(image):
    """The nearest word is suggested, if one resembles the unknown one."""
    for args, says in (
            (['--verson'], "btrkit: unknown option '--verson', did you mean '--version'? (see btrkit --help)"),
            (['-x'], "btrkit: unknown option '-x' (see btrkit --help)"),
            (['chekc', image], "btrkit: unknown command 'chekc', did you mean 'check'? (see btrkit --help)"),
            (['dumptree', image], "btrkit: unknown command 'dumptree', did you mean 'dump-tree'? (see btrkit --help)"),
            (['frobnicate'], "btrkit: unknown command 'frobnicate' (see btrkit --help)")):
        status, out, err = run(*args)
        check(status == 2 and not out and err == says + '\n', err)
    for args, says in (
            (('fiemap', '--fromat=json', image), "unknown option '--fromat=json', did you mean '--format'?"),
            (('fiemap', '--colour', image), "unknown option '--colour' ("),
            (('fiemap', '--format', 'jsn', image), "--format: 'jsn' is unknown, did you mean 'json'?"),
            (('mkfs', '-O', '^noholes', image), "'noholes' is unknown, did you mean 'no-holes'?"),
            (('mkfs', '-d', 'rad1', image), "--data: 'rad1' is unknown, did you mean 'RAID1'?"),
            (('mkfs', '--csum', 'sha265', image), "--csum: 'sha265' is unknown, did you mean 'sha256'?"),
            (('edit', image, 'mkdri', 'x'), "unknown operation 'mkdri', did you mean 'mkdir'?")):
        status, out, err = run(*args)
        check(status in (1, 2) and not out and err.count('\n') == 1 and says in err, (args, err))


def some_paths_fail(scratch):
    """fiemap reports each path that it cannot list, lists the others, and fails."""
    image, folder = os.path.join(scratch, 'paths.img'), os.path.join(scratch, 'paths')
    os.makedirs(f'{folder}/directory')
    for name in 'ab':
        with open(f'{folder}/{name}', 'wb') as f:
            f.write(b'x' * 8192)
    check(not run('mkfs', '-q', '--rootdir', folder, image)[0], 'mkfs')
    for form in 'text', 'tsv', 'json':
        good = run('fiemap', '--format', form, image, 'a', 'b')
        status, out, err = run('fiemap', '--format', form, image, 'none', 'a', 'directory', 'a/', 'b', '../none/../b')
        check(not good[0] and status == 1 and out == good[1], (form, status, out, good))
        lines = err.splitlines()
        check(len(lines) == 4 and all(line.startswith(f'btrkit fiemap: {image}: ') for line in lines), lines)
        for line, says in zip(lines, ('no such file or directory: none', 'not a regular file: directory',
                                      'a/: Not a directory', 'no such file or directory: ../none/../b')):
            check(line.endswith(says), line)
        status, out, err = run('fiemap', '--format', form, image, 'none')
        check(status == 1 and not out and err.count('\n') == 1, (form, out, err))


def superblocks(image):
    status, out, err = run('dump-super', image, image)
    check(not status and not err and out.count(b'superblock: bytenr=65536') == 2, 'several devices')
    check(out == run('dump-super', image)[1] * 2, 'several devices')
    copies = run('dump-super', '-a', image)[1]
    check(copies == run('dump-super', '-s', '0', image)[1] + run('dump-super', '-i', '1', image)[1], '-a')
    check(run('dump-super', '--bytenr', '64m', image) == run('dump-super', '-s', '67108864', image), '--bytenr')
    status, out, err = run('dump-super', '-F', '--bytenr', '0', image)
    check(not status and not err and b"magic\t\t\t........ [DON'T MATCH]\n" in out, '-F')
    changed = Super(image)
    good = bytes(changed.data)
    changed.data[299] ^= 1
    with open(image, 'r+b') as f:
        f.seek(tool.SUPER_OFFSETS[0])
        f.write(changed.data)
    check(b"[DON'T MATCH]" in run('dump-super', image)[1], 'a damaged superblock')
    status, out, err = run('dump-tree', '-r', image)
    check(not status and out, 'the mirror is used')
    check(err.startswith(f'btrkit dump-tree: {image}: superblock mirror 1 is used') and err.count('\n') == 1, err)
    # An erased superblock copy is reported next to the others.
    with open(image, 'r+b') as f:
        f.seek(tool.SUPER_OFFSETS[0])
        f.write(bytes(tool.SUPER_SIZE))
    status, out, err = run('dump-super', '-a', image)
    check(status == 1 and err.startswith(f'btrkit dump-super: {image}: not a btrfs filesystem; no superblock'), err)
    check(out == run('dump-super', '-s', '1', image)[1], '-a without a primary')
    # Only the array of chunks may be unparsable; the rest is still shown.
    changed.data[:] = good
    changed.data[811 + 8] = 1
    changed.write()
    status, out, err = run('dump-super', '-f', image)
    check(status == 1 and b'backup_roots[4]:' in out and err.count('\n') == 1 and 'item of type 1' in err, err)


def main():
    general()
    with tempfile.TemporaryDirectory() as scratch:
        image = os.path.join(scratch, 'fs.img')
        tool.make_filesystem(image, os.path.join(scratch, 'files'), '-R', 'free-space-tree')
        misuse(image)
        trees_by_name(image)
        space_cache(image)
        failures(image, scratch)
        output(image)
        closed(image)
        interrupted(image)
        one_line(image, scratch)
        misspelt(image)
        some_paths_fail(scratch)
        superblocks(image)
    print(f'{checks} checks')


if __name__ == '__main__':
    sys.exit(main())
