# SPDX-License-Identifier: LGPL-2.1-or-later
"""The small filesystems for writers.py. Each contains a tree `t` with a bit of everything; most also contain files
written by Linux. ROLES says which file or directory is used for what."""
import os
import random
import subprocess

import unpack
from tool import BTRKIT

TIME = 1600000000
SIZE = '160m'
ROLES = {'file': 't/plain', 'small': 't/small', 'dir': 't/dir', 'kept': 't/kept', 'clone': 't/clone',
         'nocow': 't/nocow', 'packed': 't/packed', 'holes': 't/holes', 'attr': 't/attr', 'sub': 't/sub',
         'snap': 't/snap', 'base': 't'}
# The files of good-default; images derived from it have the same ones.
LINUX = {'file': 'foo', 'clone': 'bar', 'dir': 'folder', 'holes': 'holes', 'small': 'folder/file3', 'sub': 'sub',
         'snap': 'snap', 'base': 'folder'}

# Further changes in each: preallocated space partly written, or shared; holes; nodatacow files.
SCRIPT = '''
clone t/plain t/clone
clone t/plain 8k 16k t/two 4k
put /dev/null t/kept
prealloc t/kept 0 96k
write t/kept 16k {local}/page
clone t/kept t/kept2
put /dev/null t/kept3
prealloc t/kept3 4k 32k
put /dev/null t/holes
truncate t/holes 200k
write t/holes 40k {local}/page
write t/holes 120k {local}/page
put /dev/null t/nocow
chattr +C t/nocow
write t/nocow 0 {local}/data
prealloc t/nocow 64k 32k
put {local}/page t/attr
setxattr user.one "a value" t/attr
setxattr user.two 0x00ff t/attr
setfacl -m u:7:r-x,g:8:rwx t/attr
mkdir t/acl
setfacl -m d:u:7:rwx t/acl
ln t/small t/dir/hard
mknod t/fifo p
mknod t/null c 1 3
subvolume create t/sub
put -r {local}/top/t/dir t/sub/dir
put {local}/data t/sub/data
put {local}/page t/sub/page
subvolume snapshot t/sub t/snap
subvolume snapshot -r t/sub t/ro
write t/sub/data 8k {local}/page
put {local}/page t/sub/later
rm t/snap/dir/f1
'''


def write(path, content):
    with open(path, 'wb') as f:
        f.write(content)
    os.utime(path, (TIME, TIME))


def make_local(folder):
    """Make the local files that are put into the filesystems; always the same."""
    lot = random.Random(1)
    os.makedirs(f'{folder}/top/t/dir/deep')
    write(f'{folder}/page', lot.randbytes(4096))
    write(f'{folder}/data', lot.randbytes(40000))
    write(f'{folder}/text', b'over and over again\n' * 3000)
    write(f'{folder}/top/t/plain', lot.randbytes(100000))
    write(f'{folder}/top/t/two', lot.randbytes(60000))
    write(f'{folder}/top/t/small', lot.randbytes(500))
    write(f'{folder}/top/t/empty', b'')
    for i in range(6):
        write(f'{folder}/top/t/dir/f{i}', lot.randbytes((100, 3000, 5000, 20000, 1, 9000)[i]))
    write(f'{folder}/top/t/dir/deep/last', lot.randbytes(8192))
    os.symlink('dir/f1', f'{folder}/top/t/link')
    for name in ('dir/deep', 'dir', ''):
        os.utime(f'{folder}/top/t/{name}', (TIME, TIME))


def contents(folder):
    """Contents of these files."""
    found = {name: open(f'{folder}/{name}', 'rb').read() for name in ('page', 'data', 'text')}
    top = f'{folder}/top/t/dir'
    found['dir'] = {name: open(f'{top}/{name}', 'rb').read() for name in
                    (*(f'f{i}' for i in range(6)), 'deep/last')}
    return found


def must(*args, script=None):
    done = subprocess.run([BTRKIT, *args], input=script, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 0, (args, done.stderr)


def devices(paths):
    return ['--noscan', *(word for path in paths[1:] for word in ('--device', path)), paths[0]]


def fill(paths, local, script):
    must('edit', *devices(paths), script=script.format(local=local).encode())
    must('edit', '--compress', 'zstd', *devices(paths), 'put', f'{local}/text', 't/packed')


def made(*options, number=1, more=''):
    """Recipe: made by mkfs alone, then changed by the script."""
    def make(folder, local):
        paths = [f'{folder}/{i}.img' for i in range(number)]
        must('mkfs', '-q', '-b', SIZE, '--rootdir', f'{local}/top', *options, *paths)
        fill(paths, local, SCRIPT + more)
        return paths
    return make


def linux(name, more=''):
    """Recipe: a committed image that Linux has written to, with the same changes."""
    def make(folder, local):
        path = unpack.unpack(name, folder, quick=True)
        must('edit', '--noscan', path, 'put', '-r', f'{local}/top/t', 't')
        fill([path], local, SCRIPT + more)
        return [path]
    return make


# How each is made, and which files outside of `t` play a role.
FILESYSTEMS = {
    'plain': (made(), {}),
    'small-nodes': (made('-n', '4k'), {}),
    'uncached': (made('-O', '^free-space-tree,^block-group-tree'), {}),
    'raid1': (made('-d', 'raid1', '-m', 'raid1', number=2), {}),
    'compressed': (made('--compress', 'zstd', '--csum', 'sha256'), {'file': 't/packed'}),
    'quota': (made('-O', 'quota'), {}),
    'mixed': (made('-M', '-O', '^no-holes'), {}),
    'linux': (linux('good-default'), LINUX),
    'linux-snapshots': (linux('good-generations'), {'file': 's1/f3', 'sub': 's0', 'snap': 's2', 'small': 's3/f1'}),
    'linux-clones': (linux('good-clones'), {'file': 'foo', 'clone': 'twice', 'holes': 'of-clone'}),
    'linux-quota': (linux('good-quota'), LINUX),
    'linux-v1': (linux('good-cache-v1'), LINUX),
    'linux-holes': (linux('good-holes-explicit'), {'kept': 'prealloc', 'holes': 'many', 'small': 'beyond'}),
    'linux-compressed': (linux('good-compressed'), {'packed': 'zlib-large', 'file': 'lzo-large', 'clone': 'clone',
                                                    'small': 'zstd-small'}),
    'linux-not-skinny': (linux('good-not-skinny'), LINUX),
}


def make(name, folder, local):
    """Return (devices, roles of files and directories)."""
    os.makedirs(folder)
    how, roles = FILESYSTEMS[name]
    return how(folder, local), {**ROLES, **roles}
