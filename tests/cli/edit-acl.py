#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""`btrkit edit` changes ACLs as setfacl(1) does for the same arguments: random changes of files and directories give
the same ACLs after extraction. Skipped if setfacl is missing or the temporary directory does not support ACLs."""
import os
import random
import shutil
import subprocess
import sys
import tempfile

import editing
import tool
from editing import check, refused, works
from tool import run

NAMES = ('system.posix_acl_access', 'system.posix_acl_default')


def entry(rng, folder, with_perm):
    tag = rng.choice(('u', 'user', 'g', 'group', 'm', 'mask', 'o', 'other') if with_perm else ('u', 'g', 'user'))
    number = str(rng.choice((0, 7, 1000, 4294967294))) if tag[0] in 'ug' and (not with_perm or rng.randrange(3)) else ''
    word = f'{tag}:{number}'
    if with_perm:
        perm = ''.join(rng.choices('rwx-', k=rng.randrange(1, 5))) if rng.randrange(3) else str(rng.randrange(8))
        word += f':{perm}'
    return rng.choice(('d:', 'default:', '')) + word if folder else word


def words(rng, folder):
    if not rng.randrange(6):
        return [rng.choice(('-b', '-k'))]
    how = rng.choice(('-m', '-m', '-x'))
    return [how, ','.join(entry(rng, folder, how == '-m') for _ in range(rng.randrange(1, 4)))]


def acls(path):
    found = [os.stat(path).st_mode]
    for name in NAMES:
        try:
            found.append(os.getxattr(path, name))
        except OSError:
            found.append(None)
    return found


def as_setfacl(path, scratch, rng):
    lines, expected = ['mkdir acl\n'], {}
    for k in range(80):
        name, mode = f'n{k}', rng.randrange(0o1000)
        local = os.path.join(scratch, name)
        if k % 2:
            os.mkdir(local)
        else:
            os.close(os.open(local, os.O_CREAT, 0o600))
        os.chmod(local, mode)
        lines.append(f'{"mkdir" if k % 2 else "put /dev/null"} acl/{name}\nchmod {mode:o} acl/{name}\n')
        done = []
        for _ in range(rng.randrange(1, 6)):
            what = words(rng, k % 2)
            # Arguments that setfacl refuses are left out.
            if not subprocess.run(['setfacl', *what, local], stderr=subprocess.DEVNULL, check=False).returncode:
                lines.append(f'setfacl {" ".join(what)} acl/{name}\n')
                done.append(what)
        expected[name] = acls(local), done, oct(mode)
    works(path, ''.join(lines).encode())
    out = os.path.join(scratch, 'out')
    os.mkdir(out)
    code, _, err = run('extract', '-C', out, path, 'acl')
    check(code == 0, err)
    found = os.path.join(out, 'acl') if os.path.exists(os.path.join(out, 'acl')) else out
    for name, (want, *how) in expected.items():
        check(acls(os.path.join(found, name)) == want, name, how, acls(os.path.join(found, name)), want)
    check(sum(want[1] is not None for want, *_ in expected.values()) > 20)


def what_fails(path):
    works(path, b'mkdir d\nput /dev/null f\nln -s l l\n')
    for line, says in (('setfacl f', 'one of'), ('setfacl -m -x u:1:r f', 'one of'), ('setfacl -m f', 'take ENTRIES'),
                       ('setfacl -m u:1 f', 'invalid ACL entry'), ('setfacl -m u:x:r f', 'invalid ACL entry'),
                       ('setfacl -m u:4294967295:r f', 'invalid ACL entry'),
                       ('setfacl -m m:1:r f', 'invalid ACL entry'),
                       ('setfacl -m u:1:q f', 'invalid ACL entry'), ('setfacl -m u:1:8 f', 'invalid ACL entry'),
                       ('setfacl -m u:1:r, f', 'invalid ACL entry'), ('setfacl -m "" f', 'invalid ACL entry'),
                       ('setfacl -x u:1:r f', 'invalid ACL entry'), ('setfacl -x u: f', 'cannot be removed'),
                       ('setfacl -m d:u:1:r f', 'Permission denied'), ('setfacl -m u:1:r l', 'Too many levels'),
                       ('setfacl -m u:1:r absent', 'No such file')):
        refused(path, f'mkdir new\n{line}\n'.encode(), says=says, line=2)


def main():
    rng = random.Random(int(os.environ.get('SEED', '1')))
    with tempfile.TemporaryDirectory() as scratch:
        path, probe = editing.make_image(scratch), os.path.join(scratch, 'probe')
        with open(probe, 'wb'):
            pass
        if not shutil.which('setfacl') or subprocess.run(['setfacl', '-m', 'u:1:r', probe], check=False).returncode:
            tool.skip('needs setfacl, and ACLs')
        as_setfacl(path, scratch, rng)
        what_fails(path)
    print(f'{editing.checks} checks')


if __name__ == '__main__':
    sys.exit(main())
