#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""`btrkit edit` on images, without root: the syntax of scripts, error messages with line numbers, that a failing script
has no effect, --commit-every and --undo. tests/kernel compares the operations with Linux."""
import json
import os
import random
import re
import resource
import subprocess
import sys
import tempfile

import editing
import tool
from editing import check, edit, refused, usage, works
from tool import BTRKIT, TABLE, check_failure, digest, run


def name_hash(name):
    crc = 0xFFFFFFFE
    for byte in name:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 255]
    return crc


def entries(path, directory=256):
    """Hash and length of all names in a directory."""
    code, out, err = run('dump-tree', '-t', '5', path)
    check(code == 0, err)
    found, key = [], None
    for row in out.decode(errors='surrogateescape').split('\n'):
        item = re.match(r'\titem \d+ key \((\d+) (\w+) (\d+)\)', row)
        if item:
            key = item.groups()
        length = re.match(r'\t\ttransid \d+ data_len 0 name_len (\d+)$', row)
        if length and key[:2] == (str(directory), 'DIR_ITEM'):
            found.append((int(key[2]), int(length[1])))
    return sorted(found)


def expected(names):
    return sorted((name_hash(name), len(name)) for name in names)


def quoted(name, rng):
    """Quote a name in one of the possible ways; usually different pieces are quoted differently."""
    parts = []
    while name or not parts:
        n = rng.randrange(1, len(name) + 1) if name else 0
        piece, name = name[:n], name[n:]
        way = rng.randrange(4)
        if way == 0 and b"'" not in piece and b'\n' not in piece:
            parts.append(b"'" + piece + b"'")
        elif way == 1:
            parts.append(b''.join(b'\\x%02x' % c for c in piece))
        elif way == 2:
            parts.append(b''.join(b'\\%03o' % c for c in piece))
        else:
            special = {10: b'\\n', 9: b'\\t', 34: b'\\"', 92: b'\\\\'}
            parts.append(b'"' + b''.join(special.get(c, bytes([c])) for c in piece) + b'"')
    return b''.join(parts)


def every_byte(path, scratch, rng):
    """Names of random bytes, created by one script, renamed by another and removed by a third."""
    usable = [c for c in range(1, 256) if c != ord('/')]
    names = {bytes([c]) for c in usable if c != ord('.')}
    while len(names) < 600:
        names.add(bytes(rng.choices(usable, k=rng.choice((1, 2, 3, 10, 255)))) + b'!')
        names = {name[:255] for name in names}
    names = sorted(names)
    works(path, b''.join(b'  mkdir -- ' + quoted(name, rng) + rng.choice((b'\n', b' \t# told\n', b' #\n'))
                         for name in names))
    check(entries(path) == expected(names))
    others = [name[::-1] + b'~' if len(name) < 255 else name for name in names]
    works(path, b''.join(b'mv -- ' + quoted(a, rng) + b'\t' + quoted(b, rng) + b'\n' for a, b in zip(names, others)))
    check(entries(path) == expected(others))
    works(path, b'# all\n\n' + b''.join(b'rmdir ./' + quoted(name, rng) + b'\n' for name in others))
    check(entries(path) == [])
    # Words from the command line are taken literally.
    works(path, ['mkdir', 'a"\\x41\' b'])
    check(entries(path) == expected([b'a"\\x41\' b']))
    works(path, b'rmdir a\\"\\\\x41\\\'\\ b')
    local = os.path.join(scratch, 'a b#')
    with open(local, 'wb') as f:
        f.write(b'contents')
    works(path, f'put "{local}" x#y'.encode())
    check(entries(path) == expected([b'x#y']))
    works(path, b'rm x#y')


def what_fails(path, scratch):
    """Errors are reported with their line number, and earlier lines of the script have no effect."""
    small, absent = os.path.join(scratch, 'small'), os.path.join(scratch, 'absent')
    with open(small, 'wb') as f:
        f.write(b'small')
    works(path, f'mkdir full\nmkdir full/d\nput {small} file\nln -s file link\nln -s loop loop\n'.encode())
    before = f'mkdir new\nput {small} new/file\n# nothing\n'
    for line, says in (
            ('mkdir "open', 'unterminated quote'), ("mkdir 'open", 'unterminated quote'),
            ('mkdir \\', 'nothing follows a backslash'), ('mkdir "a\\q"', 'unknown escape'),
            ('mkdir \\x4', 'two hexadecimal digits'), ('mkdir \\x4g', 'two hexadecimal digits'),
            ('mkdir \\400', 'octal'), ('mkdir \\18', 'octal'), ('mkdir \\000', 'zero byte'),
            ('mkdir \\x00', 'zero byte'),
            ('mkdir a\0b', 'zero byte'), ('frob x', "unknown operation 'frob'"), ("'' x", "unknown operation ''"),
            ('mkdir', 'mkdir takes [-p] PATH...'), ('mv a', 'mv takes'), ('mv a b c', 'mv takes'),
            ('rm -q a', 'unknown option'), ('rm -- -q', 'No such file or directory'),
            ('mkdir new', 'File exists'), ('mkdir -p file', 'File exists'), ('mkdir -p file/a', 'Not a directory'),
            ('mkdir no/such', 'No such file or directory'), ('mkdir file/x', 'Not a directory'),
            ('mkdir link/x', 'Not a directory'), ('mkdir ' + 'n' * 256, 'File name too long'),
            ('mkdir /', 'File exists'), ('mkdir ..', 'File exists'), ('rm -r full/d/..', 'must not end with'),
            ('rm -rf .', 'must not end with'), ('rm full/..', 'Is a directory'), ('mv . x', 'busy'),
            ('mv file full/.', 'busy'), ('mv -n file full/..', 'File exists'), ('rmdir full/d/..', 'not empty'),
            ('rmdir full/.', 'Invalid argument'), ('chmod -h 600 link', 'not supported'),
            ('chown -q 7 file', 'unknown option'), ('rmdir /', 'busy'), ('mv / x', 'busy'),
            ('rm -r /', 'busy'), ('rm full', 'Is a directory'), ('rmdir file', 'Not a directory'),
            ('rmdir full', 'Directory not empty'), ('rm absent', 'No such file'), ('rm -r absent', 'No such file'),
            ('mv file full', 'Is a directory'), ('mv full file', 'Not a directory'),
            ('mv full full/d/x', 'Invalid argument'), ('mv full/d full', 'Directory not empty'),
            ('mv -n file link', 'File exists'), ('mv -x file absent', 'No such file'), ('mv -nx file link', 'Invalid'),
            ('ln full x', 'Operation not permitted'), ('ln file link', 'File exists'), ('ln -s "" x', 'No such file'),
            ('ln -s ' + 't' * 5000, 'ln takes'), ('ln -s ' + 't' * 5000 + ' x', 'File name too long'),
            ('truncate full 0', 'Is a directory'), ('truncate loop 0', 'Too many levels of symbolic links'),
            ('mkdir loop/x', 'Too many levels of symbolic links'),
            ('truncate file 9223372036854775808', 'File too large'), ('truncate file 1x', "'1x' is not a valid number"),
            ('truncate 100 file', "'file' is not a valid number"),
            ('truncate file -1', "'-1' is not a valid number"),
            ('truncate file 99999999999999999999', 'Invalid argument'),
            ('truncate file 16e', 'Invalid argument'), (f'put {absent} x', 'No such file'),
            (f'put {small} file', 'exists'),
            (f'put {scratch} x', 'Is a directory'), (f'put -f {small} full', 'Is a directory'),
            (f'write file 8e {small}', 'File too large'), (f'write full 0 {small}', 'Is a directory'),
            ('mknod x q', 'b, c, p or s'), ('mknod x b 1', 'MAJOR and MINOR'), ('mknod x p 1 2', 'MAJOR and MINOR'),
            ('mknod x c 4096 0', 'out of range'), ('mknod x c 0 1048576', 'out of range')):
        refused(path, (before + line + '\nmkdir later\n').encode(), says=says, line=4)
    refused(path, b'mkdir a\nmkdir a', says='File exists', line=2)
    # A multi-line word is reported on a single line.
    refused(path, b'rm "a\\nb"', says='a\\012b', line=1)
    # Of several paths, the one that failed is reported, even if the error is about another inode below it.
    for line, says in (('rm -f absent file full', 'full: inode'), ('rmdir full/d full/none', 'full/none: "none"'),
                       ('chmod 755 full/none file', 'full/none: "none"'), ('mkdir -p a/b file/x', 'file/x'),
                       ('setxattr a b full', 'full: unsupported'), ('touch now full link/x', 'link/x')):
        refused(path, line.encode(), says=f'line 1: {says}', line=1)
    refused(path, ['rm', 'absent'], says='No such file or directory')
    for words in (['rm', ''], ['mkdir', 'new', ''], ['mkdir', '-p', ''], ['mv', '', 'x'], ['chmod', '755', ''],
                  ['put', '/dev/null', ''], ['subvolume', 'create', '-p', '']):
        refused(path, words, says='empty path')
    said = refused(path, b'mkdir a\n', '--subvol', 'absent', says='absent')
    check(said.lower().count('no such file') == 1, said)
    refused(path, ['put', absent, 'x'], says=f'{absent}: No such file or directory')
    # Written data may land in free space; no tree may change.
    empty = os.path.join(scratch, 'empty')
    with open(empty, 'wb'):
        pass
    refused(path, f'write full 0 {empty}'.encode(), says='Is a directory', line=1)
    big, tree = os.path.join(scratch, 'big'), run('dump-tree', path)
    with open(big, 'wb') as f:
        f.write(random.Random(1).randbytes(1 << 20))
    said = check_failure('edit', path, edit(path, f'put {big} x\nmkdir x\n'.encode()))
    check(said.startswith('line 2: ') and run('dump-tree', path) == tree, said)


def told_and_passed_over(path):
    """If a line begins with "-", its failure is ignored."""
    code, out, err = edit(path, b'-mkdir full\nmkdir one\n-rmdir full\n -rm absent\n-mkdir two\n')
    check(code == 0 and not out, code, err)
    check([re.match(f'btrkit edit: {path}: line (\\d): ', row)[1] for row in err.splitlines()] == ['1', '3', '4'], err)
    check(entries(path) == expected([b'full', b'file', b'link', b'loop', b'one', b'two']))
    refused(path, b'-mkdir three\n-frob\n', says='unknown', line=2)
    refused(path, b'-mkdir three\n-mkdir "\n', says='quote', line=2)
    works(path, b'rm -rf full file link loop one two absent')
    check(entries(path) == [])


def endless(path):
    """If memory runs out for an endless line, nothing of the script takes effect."""
    if os.environ.get('SANITIZED'):
        return
    before = digest(path)
    with subprocess.Popen(['sh', '-c', 'echo mkdir kept; exec cat /dev/zero'], stdout=subprocess.PIPE) as script:
        done = subprocess.run([BTRKIT, 'edit', path], stdin=script.stdout, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, check=False, timeout=600,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (300 << 20, 300 << 20)))
        script.stdout.close()
    check(done.returncode == 1 and b'cannot read the script: Cannot allocate memory' in done.stderr, done)
    check(digest(path) == before)


def commits(path):
    generation = tool.Super(path).get(72)
    works(path, b''.join(b'mkdir d%d\n# told\n\n' % i for i in range(10)), '--commit-every', '3')
    check(tool.Super(path).get(72) == generation + 4, 'commits')
    said = check_failure('edit', path, edit(path, b''.join(b'mkdir e%d\n' % i for i in range(5)) + b'mkdir e0\n',
                                            '--commit-every', '2'))
    check(said.startswith('line 6: ') and said.endswith('; what was done up to line 4 is kept'), said)
    check(entries(path) == expected([b'd%d' % i for i in range(10)] + [b'e%d' % i for i in range(4)]))
    generation = tool.Super(path).get(72)
    works(path, b'rm -r ' + b' '.join([b'd%d' % i for i in range(10)] + [b'e%d' % i for i in range(4)]))
    check(tool.Super(path).get(72) == generation + 1 and entries(path) == [])


def undo(path, scratch):
    before, file, big = digest(path), os.path.join(scratch, 'undo'), os.path.join(scratch, 'big')
    works(path, f'mkdir -p a/b/c\nput {big} a/b/f\nln a/b/f g\ntruncate g 10\n'.encode(), '--undo', file)
    check(digest(path) != before)
    refused(path, b'mkdir b', '--undo', file, says='File exists')
    code, _, err = run('undo', file, path)
    check(code == 0 and digest(path) == before, err)
    os.unlink(file)
    # Undo restores free space that a failed script wrote to.
    with open(big, 'wb') as f:
        f.write(random.Random(2).randbytes(1 << 20))
    check_failure('edit', path, edit(path, f'put {big} x\nmkdir x\n'.encode(), '--undo', file))
    check(digest(path) != before and run('undo', file, path)[0] == 0 and digest(path) == before)
    os.unlink(file)
    # Nothing is written, so no undo file remains.
    generation = tool.Super(path).get(72)
    works(path, b'# nothing\n', '--undo', file)
    check(digest(path) == before and not os.path.exists(file) and tool.Super(path).get(72) == generation)


def compressed(path, scratch):
    """--compress and holes, checked by the items in the tree."""
    text, sparse = os.path.join(scratch, 'text'), os.path.join(scratch, 'sparse')
    with open(text, 'wb') as f:
        f.write(b'text ' * 40000)
    with open(sparse, 'wb') as f:
        f.truncate(8 << 20)
        os.pwrite(f.fileno(), b'x' * 4096, 1 << 20)
        os.pwrite(f.fileno(), b'y' * 65536, 4 << 20)
    for kind, shown in (('no', 'none'), ('zlib:9', 'zlib'), ('lzo', 'lzo'), ('zstd:3', 'zstd')):
        works(path, f'put {text} f\n'.encode(), '--compress', kind)
        found = set(re.findall(r'extent compression \d \((\w+)\)', run('dump-tree', '-t', '5', path)[1].decode()))
        check(found == {shown}, kind, found)
        works(path, b'rm f\n')
    works(path, f'put {sparse} f\n'.encode())
    found = re.findall(r'extent data disk byte [1-9]\d* nr (\d+)', run('dump-tree', '-t', '5', path)[1].decode())
    check(found == ['4096', '65536'], found)
    works(path, b'rm f\n')


def attributes(path):
    works(path, b'mkdir at\nmknod at/p p\nput /dev/null at/f\nchmod 4711 at/f at/p\nchown 7:70000 at\n'
                b'chown :9 at/p\ntouch @1.5 at/f\ntouch -m @-1.25 at/p\n'
                b'setxattr user.a 0x00ff at/f at\nsetxattr user.b 0y at/f\n'
                b'rmxattr user.a at\n-rmxattr user.a at/f\nsetxattr -c user.c "" at/f\nchattr +di at\nchattr -i at\n')
    code, out, err = run('dump-tree', '-t', '5', path)
    check(code == 0, err)
    out = out.decode()
    for what in ('mode 104711', 'mode 10711', 'uid 7 gid 70000', 'uid 0 gid 9', 'atime 1.500000000',
                 'mtime 1.500000000', '(1969-12-31 23:59:58)', '.750000000 (1969', 'user.b', 'user.c', 'NODUMP'):
        check(what in out, what, out)
    check('user.a' not in out and 'IMMUTABLE' not in out, out)
    for script, says in (('chmod 10000 at', 'octal'), ('chmod 8 at', 'octal'), ('chmod -- -1 at', 'rwxXst'),
                         ('chown 4294967295 at', 'UID'), ('chown x at', 'UID'), ('chown 1: at', 'UID'),
                         ('touch @1.1234567890 at', '@SECONDS'), ('touch 5 at', '@SECONDS'), ('chattr x at', '+, -'),
                         ('chattr +x at', '+, -'), ('setxattr user.a 0x1 at', '0x'), ('setxattr user.a 0xgg at', '0x'),
                         ('setxattr -c user.b 1 at/f', 'exists'), ('setxattr -r user.z 1 at/f', 'No data'),
                         ('rmxattr user.z at', 'No data'), ('setxattr user.a 1 at/p', 'not permitted'),
                         ('setxattr none 1 at', 'not supported'), ('chmod 644 nowhere', 'nowhere')):
        refused(path, script.encode() + b'\n', line=1, says=says)
    usage('--', path, 'chmod', '644', says='chmod takes')
    # A missing attribute is not reported as damage.
    code, out, err = edit(path, b'-rmxattr user.z at\nsetxattr user.d 1 at\n')
    check(code == 0 and 'line 1: ' in err and 'user.z' in err and err.count('\n') == 1, code, err)
    check('user.d' in run('dump-tree', '-t', '5', path)[1].decode())


def through_links(path):
    """Attributes change behind a link as in coreutils, and with -h, or if no links are followed, those of the link."""
    def state():
        rows = [json.loads(run('stat', '--format', 'json', path, name)[1].splitlines()[1]) for name in 'fl']
        tree = run('dump-tree', '-t', '5', path)[1].decode()
        return [(row['uid'], row['mode'] & 0o7777, row['mtime'], row['flags'],
                 f'({row["inode"]} XATTR_ITEM' in tree) for row in rows]
    works(path, b'put /dev/null f\nln -s f l\nchmod 644 f\n')
    for words in ('chown 7', 'touch @5', 'chmod 600', 'chmod u+x', 'chattr +d', 'chattr -d', 'setxattr trusted.a 1',
                  'rmxattr trusted.a'):
        name, *operands = words.split()
        before = state()
        works(path, [name, *operands, 'l'])
        after = state()
        check(after[0] != before[0] and after[1] == before[1], words, before, after)
        if name == 'chmod':
            refused(path, ['chmod', '-h', *operands, 'l'], says='not supported')
        else:
            if name == 'chattr':
                works(path, ['chattr', '-h', operands[0], 'l'])
            else:
                works(path, [name, '-h', *operands, 'l'])
            check(state()[0] == after[0] and state()[1] != after[1], words, state())
            # Both ways to say it are the same.
            now = digest(path) and state()
            if name in ('chown', 'touch', 'chattr'):
                works(path, [name, *operands, 'l'], '--no-dereference')
                check(state() == now, words, state())
    works(path, ['touch', '-mh', '@9', 'l'])
    check(state()[1][2] != state()[0][2], state())
    refused(path, b'ln -s none dangling\nchown 5 dangling\n', says='No such file', line=2)
    works(path, b'ln -s none dangling\ntouch -h @5 dangling\nchmod -x f\nrm f l dangling\n')


def misplaced_options(path):
    """What looks like an option is never an operand, in any operation, unless -- comes before it."""
    words = {'chattr': '+d d', 'chmod': '700 d', 'chown': '0 d', 'clone': 'd e', 'ln': '-s d e', 'mkdir': 'z',
             'mknod': 'z p', 'mv': 'd e', 'prealloc': 'd 0 1', 'property set': 'd ro true', 'punch': 'd 0 1',
             'put': '/dev/null z', 'rm': '-r d', 'rmdir': 'd', 'rmxattr': 'user.a d', 'setfacl': '-b d',
             'setxattr': 'user.a 1 d', 'subvolume create': 'z', 'subvolume delete': 'z', 'subvolume set-default': '5',
             'subvolume snapshot': '/ z', 'subvolume sync': '', 'touch': 'now d', 'truncate': 'd 0',
             'write': 'd 0 /dev/null'}
    code, out, _ = run('edit', '--help')
    listed = [line.split('  ')[1] for line in out.decode().split('one operation on each line:')[1].splitlines()
              if line.startswith('  ') and line[2] != ' ']
    check(len(listed) == len(words) and all(any(row.startswith(name) for row in listed) for name in words), listed)
    works(path, ['mkdir', 'd'])
    before = digest(path)
    for name, operands in words.items():
        for option in ('--undo', '-q', '--subvol=d'):
            says = f"{name}: option '{option}' belongs before " + ('DEV' if option[1] == '-' else 'the operands')
            if operands:
                usage(path, *name.split(), *operands.split(), option, 'u', says=says)
                refused(path, f'{name} {operands} {option}\n'.encode(), says=says, line=1)
    check(digest(path) == before)
    usage(path, 'rm', '-r', '-f', 'd', '--undo', 'keep', says="'--undo' belongs before DEV")
    usage(path, '--undo', 'keep', 'rm', 'd', says="option '--undo' belongs before DEV")
    usage(path, 'rm', '--undo', 'keep', 'd', says="unknown option '--undo'")
    refused(path, b'mkdir a\n--undo rm\n', says='belongs before DEV', line=2)
    # Where a word may begin with -, and after --, nothing has changed.
    works(path, ['--', 'mkdir', 'e'])
    works(path, b'-- mkdir -- -q --undo\n-rmdir -- --undo\nrmdir ./-q\nchmod -x d\nchattr -d d\nchmod -- -x,+x d\n'
                b'setxattr user.a -v d\nsetxattr user.a -5 d\nsetxattr -- user.a --undo d\nrmdir d e\n')
    check(entries(path) == [])


def usage_errors(path):
    usage(says='too few arguments')
    usage('--undo', says='needs an argument')
    usage(path, 'frob', says="unknown operation 'frob'")
    usage(path, 'mkdir', says='mkdir takes [-p] PATH...')
    usage(path, 'rm', '-q', 'x', says='unknown option')
    usage('--compress', 'gzip', path, says="'gzip' is unknown")
    usage('--compress', 'zlib:10', path, says='no level')
    usage('--commit-every', '0', path, says='must not be 0')
    usage('--commit-every', '2', path, 'mkdir', 'x', says='requires a script')
    code, out, err = run('edit', '--help')
    check(code == 0 and not err)
    check(re.findall(r'^  ([a-z]+) ', out.decode(), re.M) == sorted(re.findall(r'^  ([a-z]+) ', out.decode(), re.M)))


def few_chunks(scratch):
    """Small changes use the existing chunks: a new chunk would stay and take space away from data."""
    path = os.path.join(scratch, 'large.img')
    with open(path, 'wb') as f:
        f.truncate(1 << 30)
    check(run('mkfs', '-q', path)[0] == 0)

    def chunks():
        code, out, err = run('list-chunks', path)
        check(code == 0, err)
        return [line.split(b' used ')[0] for line in out.splitlines() if line.startswith(b'chunk ')]
    before = chunks()
    works(path, b''.join(b'mkdir %d\n' % i for i in range(1000)))
    check(chunks() == before, before)


def main():
    rng = random.Random(int(os.environ.get('SEED', '1')))
    with tempfile.TemporaryDirectory() as scratch:
        path = editing.make_image(scratch)
        usage_errors(path)
        misplaced_options(path)
        every_byte(path, scratch, rng)
        what_fails(path, scratch)
        told_and_passed_over(path)
        endless(path)
        commits(path)
        undo(path, scratch)
        attributes(path)
        through_links(path)
        compressed(path, scratch)
        few_chunks(scratch)
        for bad in (os.path.join(scratch, 'no'), '/dev/null', scratch):
            check_failure('edit', bad, edit(bad, b'mkdir x\n'))
    print(f'{editing.checks} checks')


if __name__ == '__main__':
    sys.exit(main())
