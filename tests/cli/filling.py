# SPDX-License-Identifier: LGPL-2.1-or-later
"""Make a source tree to fill filesystems from, and check the result by btrfs-progs, without root."""
import os
import re
import shutil
import stat
import subprocess

import tool

BTRFS = os.environ.get('BTRFS', 'btrfs')
TIME = 1600000000123456789


def need_btrfs():
    if not shutil.which(BTRFS):
        tool.skip(f'needs {BTRFS}')


def make_tree(top):
    """Make directories, files of several sizes, a sparse file, and links of both kinds."""
    for folder in ('usr/lib', 'var/log', 'etc', 'home/user'):
        os.makedirs(f'{top}/{folder}')
    contents = {'usr/lib/text': b''.join(b'%d\n' % i for i in range(60000)), 'usr/lib/noise': os.urandom(300001),
                'var/log/short': b'a few bytes\n', 'var/log/long': b'the same line\n' * 20000, 'etc/empty': b'',
                'etc/sector': bytes(range(256)) * 16, 'home/user/page': os.urandom(4097)}
    for name, content in contents.items():
        with open(f'{top}/{name}', 'wb') as f:
            f.write(content)
    with open(f'{top}/var/hole', 'wb') as f:
        f.truncate(1 << 20)
        f.seek(500000)
        f.write(b'in the middle')
    os.symlink('lib/text', f'{top}/usr/symlink')
    os.link(f'{top}/etc/sector', f'{top}/home/hard')
    os.chmod(f'{top}/etc/sector', 0o640)
    os.chmod(f'{top}/usr/lib/text', 0o755)
    for folder, folders, files in os.walk(top, topdown=False):
        for name in folders + files:
            os.utime(f'{folder}/{name}', ns=(TIME, TIME), follow_symlinks=False)
    os.chmod(top, 0o750)
    os.utime(top, ns=(TIME, TIME))


def listing(top):
    """Describe everything below: type, mode, time and contents. Hard links are described as files."""
    found = {}
    for folder, folders, files in os.walk(top):
        for name in folders + files:
            path = f'{folder}/{name}'
            st = os.lstat(path)
            what = [stat.S_IFMT(st.st_mode)]
            if stat.S_ISLNK(st.st_mode):
                what.append(os.readlink(path))
            else:
                what.append(stat.S_IMODE(st.st_mode))
            # Times of directories change when something is added to them.
            if stat.S_ISREG(st.st_mode):
                what.append(st.st_mtime_ns)
                with open(path, 'rb') as f:
                    what.append(f.read())
            found[os.path.relpath(path, top)] = what
    return found


def checked(*images):
    """Check everything with `btrfs check`, including data."""
    done = subprocess.run([BTRFS, 'check', '--check-data-csum', images[0]], capture_output=True, text=True, check=False)
    return not done.returncode and 'no error found' in done.stderr + done.stdout


def restored(image, scratch):
    """Extract by `btrfs restore`, subvolumes included, and describe the result."""
    out = f'{scratch}/restored'
    shutil.rmtree(out, ignore_errors=True)
    os.mkdir(out)
    done = subprocess.run([BTRFS, 'restore', '-s', '-m', '-S', '-x', image, out], capture_output=True, text=True,
                          check=False)
    assert not done.returncode, f'btrfs restore {image}: {done.stderr}'
    return listing(out)


def superblock(image, field):
    status, out, err = tool.run('dump-super', image)
    assert not status, err
    return re.search(rf'^{re.escape(field)}[\t ]*(.*)$', out.decode(), re.M).group(1)


def tree(image, name):
    status, out, err = tool.run('dump-tree', '-t', name, image)
    assert not status, err
    return out.decode()


def subvolumes(image):
    """Return {name in the directory: (read-only, default)}."""
    items = re.split(r'\n\titem \d+ key ', tree(image, 'root'))
    readonly = {number: 'RDONLY' in item for item in items for number in re.findall(r'^\((\d+) ROOT_ITEM ', item)}
    default = next(number for item in items if 'name: default' in item
                   for number in re.findall(r'location key \((\S+) ROOT_ITEM', item))
    return {name: (readonly[number], number == default) for item in items
            for number, name in re.findall(r'^\(\S+ ROOT_REF (\d+)\).* name (\S+)', item, re.S)}


def holds_filesystem(image):
    return not tool.run('dump-super', image)[0]
