#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Manifests as a source: a dump of a directory is read like that directory; each bad line is reported with its number.

SOURCE_LIST is the program that prints a source as text.
"""
import os
import re
import stat
import subprocess
import sys
import tempfile

LIST = os.environ['SOURCE_LIST']
compared = 0


def source(data, base, *options):
    done = subprocess.run([LIST, '-b', base, *options, 'manifest', '-'], input=data, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False, timeout=600)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def escape(data, more=b''):
    if data == b'-':
        return b'\\x2d'
    return b''.join(bytes([b]) if 0x20 < b < 0x7f and b != 0x5c and bytes([b]) not in more else b'\\x%02x' % b
                    for b in data)


def dump(top, inline=64):
    """Write a manifest like composefs."""
    lines, seen = [], {}

    def line(path, name):
        st = os.lstat(path)
        mode, payload, content = b'%o' % st.st_mode, b'-', b'-'
        if not stat.S_ISDIR(st.st_mode) and (st.st_dev, st.st_ino) in seen:
            mode, payload = b'@' + mode, escape(seen[st.st_dev, st.st_ino])
        elif stat.S_ISLNK(st.st_mode):
            payload = escape(os.readlink(path))
        elif stat.S_ISREG(st.st_mode) and st.st_size <= inline:
            with open(path, 'rb') as f:
                content = escape(f.read()) or b'-'
        elif stat.S_ISREG(st.st_mode):
            payload = escape(name[1:])
        seen[st.st_dev, st.st_ino] = name
        xattrs = [b' ' + escape(os.fsencode(n), b'=') + b'=' + escape(os.getxattr(path, n, follow_symlinks=False), b'=')
                  for n in os.listxattr(path, follow_symlinks=False)]
        lines.append(b'%s %d %s %d %d %d %d %d.%d %s %s -%s\n' % (
            escape(name), st.st_size, mode, st.st_nlink, st.st_uid, st.st_gid, st.st_rdev, st.st_mtime_ns // 10**9,
            st.st_mtime_ns % 10**9, payload, content, b''.join(xattrs)))
        if stat.S_ISDIR(st.st_mode):
            for entry in sorted(os.listdir(path), reverse=True):
                line(path + b'/' + entry, name.rstrip(b'/') + b'/' + entry)

    line(os.fsencode(top), b'/')
    return b''.join(lines)


def make_tree(top):
    os.makedirs(f'{top}/dir/deep')
    for size in (0, 1, 63, 64, 65, 5000):
        with open(f'{top}/dir/{size}', 'wb') as f:
            f.write(bytes(i * 7 % 256 for i in range(size)))
    with open(os.fsencode(top) + b'/a name = with \\ and \n and \xff', 'wb') as f:
        f.write(b'-')
    os.link(f'{top}/dir/5000', f'{top}/again')
    os.link(f'{top}/dir/65', f'{top}/dir/deep/link')
    os.symlink(b'-', f'{top}/dash')
    os.symlink(b'\xfftarget', f'{top}/symlink')
    os.mkfifo(f'{top}/-')
    os.utime(f'{top}/-', ns=(0, -1500000000))
    try:
        os.setxattr(f'{top}/dir/64', 'user.with = sign', b'\0\xff = -')
        os.setxattr(f'{top}/dir/65', 'user.empty', b'')
    except OSError as e:
        print(f'without attributes: {e}')
    if os.getuid() == 0:
        os.mknod(f'{top}/device', 0o20600, os.makedev(300, 70000))
        os.lchown(f'{top}/symlink', 4294967294, 1)


def bad(message, line, base, *options, before=b'/ 4096 40755 2 0 0 0 1.1 - - -\n/f 3 100644 1 0 0 0 1.1 - abc -\n'):
    global compared
    status, out, err = source(before + line, base, *options)
    assert (status, out) == (1, ''), (line, status, out)
    assert re.search(message, err) and err.count('\n') == 1, f'{err!r} does not say {message!r}'
    compared += 1


def wrong_lines(base):
    fields = [b'/a', b'3', b'100644', b'1', b'0', b'0', b'0', b'1.1', b'-', b'abc', b'-']

    def one(message, number, value, *options, more=b'', other=None):
        changed = list(fields)
        changed[number] = value
        for at, with_value in (other or {}).items():
            changed[at] = with_value
        bad(f'line 3: {message}', b' '.join(changed) + more + b'\n', base, *options)

    one('not an absolute path, field PATH', 0, b'a')
    one('leads out of the tree, field PATH', 0, b'/../a')
    one('parent directory is missing, field PATH', 0, b'/b/a')
    one('f: not a directory, but has entries', 0, b'/f/a')
    one('not an absolute path, field PATH', 0, rb'/a\x00b')
    one('is empty, field PATH', 0, b'')
    for escape_wrong in (rb'\q', rb'\x1', rb'\xgg', b'\\'):
        one('invalid escape sequence, field PATH', 0, b'/a' + escape_wrong)
        one('invalid escape sequence, field XATTR', 0, b'/a', more=b' user.x=' + escape_wrong)
    one('f: duplicate entry', 0, b'/f')
    for value in (b'x', b'-1', b'1x', b'9223372036854775808', b'99999999999999999999999'):
        one('invalid number, field SIZE', 1, value)
    one('length does not match SIZE, field CONTENT', 1, b'4')
    one('not an octal mode, field MODE', 2, b'108644')
    one('a: unknown file type', 2, b'644', other={9: b'-'})
    one('not an octal mode, field MODE', 2, b'1100644')
    one('invalid number, field NLINK', 3, b'-')
    one('invalid number, field UID', 4, b'4294967295')
    one('invalid number, field GID', 5, b'4294967295')
    one('invalid device number', 6, b'%d' % os.makedev(4096, 1), other={2: b'20644', 9: b'-'})
    one('whiteout', 6, b'0', other={2: b'20644', 9: b'-'})
    for value in (b'1', b'1.', b'.1', b'1.1000000000', b'x.1', b'1.-1'):
        one('not a time as SECONDS.NANOSECONDS, field MTIME', 7, value)
    for value in (b'../x', b'a/../../x', b'/'):
        one('leads out of the base directory, field PAYLOAD', 8, value, other={9: b'-'})
    one('contents nowhere: No such file', 8, b'nowhere', other={9: b'-'})
    one('contents a: No such file', 8, b'-', other={9: b'-'})
    one('does not match the contents, field SIZE', 8, b'four', other={9: b'-'})
    one('only allowed for regular files and links, field PAYLOAD', 8, b'x', other={2: b'40755', 9: b'-'})
    one('only allowed for regular files, field CONTENT', 9, b'abc', other={2: b'40755'})
    one('invalid target of a symbolic link, field PAYLOAD', 8, b'-', other={2: b'120777', 9: b'-'})
    one('invalid target of a hard link, field PAYLOAD', 8, b'-', other={2: b'@100644', 9: b'-'})
    one('hard link to /nowhere, which does not exist, field PAYLOAD', 8, b'/nowhere', other={2: b'@100644', 9: b'-'})
    one('hard link to a directory, field MODE', 8, b'/', other={2: b'@40755', 9: b'-'})
    one('missing =, field XATTR', 0, b'/a', more=b' user.x')
    one('missing =, field XATTR', 0, b'/a', more=b' ')
    one('name contains a zero byte, field XATTR', 0, b'/a', more=rb' user.\x00x=')
    one('a: attribute name of 0 bytes', 0, b'/a', more=b' =x')
    one('contains a zero byte', 0, b'/a\0')
    one('a: target of symbolic link is too long: 3950 bytes', 8, b'x' * 3950, other={2: b'120777', 9: b'-'})
    bad('line 3: 10 fields, but 11 are needed', b'/a 3 100644 1 0 0 0 1.1 - abc\n', base)
    bad('line 1: the top directory must come first, field PATH', b'/a 3 100644 1 0 0 0 1.1 - abc -', base,
        before=b'')
    bad('no line for the top directory', b'', base, before=b'')
    bad('line 1: .: not a directory', b'/ 3 100644 1 0 0 0 1.1 - abc -', base, before=b'')


def main():
    global compared
    with tempfile.TemporaryDirectory() as folder:
        tree = f'{folder}/tree'
        make_tree(tree)
        wanted = subprocess.run([LIST, '-n', 'directory', tree], stdout=subprocess.PIPE, check=True).stdout.decode()
        for inline in (0, 64, 1 << 20):
            made = dump(tree, inline)
            got = source(made, tree, '-n')
            assert got == (0, wanted, ''), (inline, got)
            compared += 1
        # Hard links come before their targets, and the last line has no newline.
        first, *lines = made.splitlines(keepends=True)
        links = [line for line in lines if b' @' in line and line.count(b'/') == 3]
        assert links
        got = source(first + b''.join(links) + b''.join(line for line in lines if line not in links)[:-1], tree, '-n')
        assert got == (0, wanted, ''), got
        status, out, err = source(made, tree, '-x', 'dir', '-x', 'again')
        assert status == 0 and '/dir' not in out, (out, err)
        with open(f'{folder}/four', 'wb') as f:
            f.write(b'four')
        wrong_lines(folder)
    print(f'{compared} manifests')
    return 0 if compared > 50 else 1


if __name__ == '__main__':
    sys.exit(main())
