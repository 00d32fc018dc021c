# SPDX-License-Identifier: LGPL-2.1-or-later
"""Filesystems that produce rare members of JSON lines: made by btrkit mkfs, or damaged."""
import contextlib
import os

import damages
import unpack
from tool import BTRKIT, run

FREE_SPACE_TREE, FREE_SPACE_INFO, FREE_SPACE_EXTENT, BLOCK_GROUP_ITEM, CACHE_HEADER = 10, 198, 199, 192, 0
CSUM_TREE = 7
CACHE_OBJECTID = (1 << 64) - 11
CACHE_GENERATION = 555  # offset in the superblock
MANIFEST = '''\
/ 0 40755 5 0 0 0 1.5 - - -
/block 0 60600 1 0 0 2049 1.5 - - -
/char 0 20600 1 0 0 259 1.5 - - -
/file 6 100644 1 1 2 0 1.5 - small\\n - user.a=\\x01\\xff user.b=
/link 4 120777 1 0 0 0 -1.5 file - -
/odd\\xff\\x0a 0 10600 1 0 0 0 1.5 - - -
'''


def must(*args, **how):
    status, out, err = run(*args, binary=BTRKIT, **how)
    assert status == 0, (args, status, err)
    return out


def make(folder, name, *options, devices=1, size=300 << 20):
    """Make a filesystem. Returns the paths of the devices, and the JSON output of mkfs."""
    paths = [os.path.join(folder, f'{name}-{i + 1}.img') for i in range(devices)]
    for path in paths if devices > 1 else ():
        with open(path, 'wb') as f:
            f.truncate(size)
    return paths, must('mkfs', '-K', '--format', 'json', *options, *paths)


def manifest(folder):
    """Device nodes, attributes and links, without root."""
    path = os.path.join(folder, 'manifest')
    with open(path, 'w', encoding='ascii') as f:
        f.write(MANIFEST)
    return make(folder, 'manifest', '--manifest', path, '--compress', 'zlib', '--label', 'a label', '--verify')


def tree(folder):
    """Nested subvolumes, read-only ones, and the default one."""
    root = os.path.join(folder, 'tree')
    for name in ('a/b', 'r/in', 'd'):
        os.makedirs(f'{root}/{name}')
        with open(f'{root}/{name}/file', 'wb') as f:
            f.write(b'text ' * 50000)
    names = ('rw:a', 'rw:a/b', 'ro:r', 'rw:r/in', 'default:d')
    return make(folder, 'tree', '--rootdir', root, '--compress', 'zlib', '--verify',
                *(f'--subvol={name}' for name in names))


@contextlib.contextmanager
def damaged(folder, name, change):
    """Context manager: a committed image with changes. It takes its full size on disk, so it is removed afterwards."""
    path = unpack.unpack(name, folder, quick=True)
    fs = damages.Filesystem(path)
    change(fs)
    fs.save()
    yield path
    os.unlink(path)


def poke_key(fs, tree, kind, objectid, new):
    """Change (objectid, offset) in an item's key; the order of keys must stay valid."""
    logical, slot, _, _ = fs.find(tree, kind, objectid)
    key = damages.u64_bytes(new[0]) + bytes([kind]) + damages.u64_bytes(new[1])
    damages.poke(fs, logical, damages.HEADER + slot * damages.ITEM, key)


def wrong_space_tree(fs):
    """Free space items refer to a block group that does not exist; the next one has a wrong range count, and in the
    last one a range is too short."""
    poke_key(fs, FREE_SPACE_TREE, FREE_SPACE_INFO, 13631488, (1 << 20, 8388608))
    poke_key(fs, FREE_SPACE_TREE, FREE_SPACE_EXTENT, 14155776, (1 << 20, 7864320))
    damages.poke_item(fs, FREE_SPACE_TREE, FREE_SPACE_INFO, 0, b'\7', 22020096)
    poke_key(fs, FREE_SPACE_TREE, FREE_SPACE_EXTENT, 64233472, (64233472, 16506880 - 4096))


def wrong_cache(fs):
    """The last data extent and the bytes used are smaller than the cache says."""
    poke_key(fs, damages.EXTENT_TREE, damages.EXTENT_ITEM, 93659136, (93659136, 65536 - 4096))
    damages.poke_item(fs, damages.EXTENT_TREE, BLOCK_GROUP_ITEM, 0, damages.u64_bytes(335872 - 4096), 93323264)


def old_cache(fs):
    """The cache header has another generation than the file, and the superblock another cache_generation."""
    damages.poke_item(fs, damages.ROOT_TREE, CACHE_HEADER, 17, b'\7', CACHE_OBJECTID)
    damages.poke_supers(fs, CACHE_GENERATION, b'\7')


def cache_of_nothing(fs):
    """The cache header refers to a block group that does not exist."""
    poke_key(fs, damages.ROOT_TREE, CACHE_HEADER, CACHE_OBJECTID, (CACHE_OBJECTID, 93323264 + 4096))


def nobody_has(fs):
    """The first extent of the file bar becomes a hole."""
    damages.poke_item(fs, damages.FS_TREE, damages.EXTENT_DATA, 21, bytes(16), 273)


def no_extent_tree(fs):
    """The extent tree is unreadable, so sharing is unknown."""
    leaf = fs.root(damages.EXTENT_TREE)
    fs.put(leaf, bytearray(fs.nodesize), checksum=False)


def lost_extents(folder):
    """A file of which a leaf of extents is unreadable."""
    os.makedirs(f'{folder}/of-extents')
    with open(f'{folder}/of-extents/sparse', 'wb') as f:
        for k in range(700):
            f.seek(2 * k * 4096)
            f.write(b'data' * 1024)
    image = f'{folder}/lost-extents.img'
    with open(image, 'wb') as f:
        f.truncate(128 << 20)
    assert run('mkfs', '-q', '--rootdir', f'{folder}/of-extents', image)[0] == 0
    fs = damages.Filesystem(image)
    fs.put(fs.leaf(damages.FS_TREE, 1), bytearray(fs.nodesize), checksum=False)
    fs.save()
    return image


def no_checksums(fs):
    """Of any data: the same problem in many files."""
    damages.poke(fs, fs.root(CSUM_TREE), 96, bytes(4))


SPACE = [('good-default', wrong_space_tree), ('good-cache-v1', wrong_cache), ('good-cache-v1', old_cache),
         ('good-cache-v1', cache_of_nothing)]
