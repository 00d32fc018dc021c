# SPDX-License-Identifier: LGPL-2.1-or-later
"""Normalize dumps of new filesystems: remove what may differ between two that were made with the same options.

What may differ, and why:

- addresses of blocks: the position of a block in its block group is arbitrary. Each address is replaced by a name for
  the block, so every pointer must still lead to the right block; the items of a leaf are compared in the order of these
  names, because their keys contain addresses. The positions of block groups, in the logical space and on each device,
  must not differ.
- the split into leaves: ours are packed full, mkfs.btrfs splits them as it inserts. The number of leaves and nodes may
  differ, but not their contents taken together.
- io_align, io_width and sub_stripes of a SYSTEM chunk with one copy: mkfs.btrfs writes it before its chunk allocator
  exists, with values unlike all later chunks, including those of Linux. Nothing reads them.
- without skinny-metadata, the key in a block's extent item: mkfs.btrfs keeps the one from when the block was allocated,
  while it had only its first block groups or no items.
- free ranges of a block group: mkfs.btrfs leaves gaps because it moves blocks while it works. Their sum must not
  differ.
- generations: mkfs.btrfs needs several transactions. But zero must stay zero, and other numbers must stay nonzero.
- backup roots, for the same reason: only the slot of the last transaction is compared.
- UUIDs that were not given: of each device, the chunk tree and the top-level subvolume. They are replaced by names, so
  equal ones must stay equal. The nil UUID is kept.
- with quota or squota, the limits of the single qgroup, where mkfs.btrfs leaves uninitialized memory, and the usage in
  the root item of the quota tree, which it sets to zero.
- times, where zero must stay zero too; checksums, which follow from the rest; the file name.
"""
import re
from collections import defaultdict

NIL = '00000000-0000-0000-0000-000000000000'
UUID = r'[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}'


class Names:
    """Knows what lies at which address, learned from a complete dump."""

    def __init__(self, text):
        self.blocks, self.lengths, self.uuids = {}, {}, {}
        for kind, address, owner in re.findall(r'^(leaf|node) (\d+) .*? owner (\S+)$', text, re.M):
            self.blocks[address] = f'<{kind} of {owner}>'
        for logical, length in re.findall(r'key \(FIRST_CHUNK_TREE CHUNK_ITEM (\d+)\).*\n\s+length (\d+) ', text):
            self.lengths[int(logical)] = int(length)
        self.learn_uuids(text)

    def learn_uuids(self, text):
        devices = re.findall(rf'key \(DEV_ITEMS DEV_ITEM (\d+)\).*?\n\t\tuuid ({UUID})', text, re.S)
        self.uuids = {uuid: f'device {number}' for number, uuid in devices}
        if not devices or len(self.uuids) != len(devices):
            raise ValueError(f'UUIDs of the devices: {devices}')
        for name, pattern in (('chunk tree', rf'chunk uuid ({UUID})'),
                              ('filesystem', rf'\nfs uuid ({UUID})'),
                              ('top level', rf'key \(FS_TREE ROOT_ITEM 0\).*?\n\t\tuuid ({UUID})')):
            found = set(re.findall(pattern, text, re.S)[:1] if name == 'top level' else re.findall(pattern, text))
            if len(found) != 1:
                raise ValueError(f'UUIDs of the {name}: {found}')
            self.uuids[found.pop()] = name

    def group_of(self, address):
        groups = self.lengths.items()
        return next((logical for logical, length in groups if logical <= address < logical + length), None)


def not_zero(match):
    return match.group(1) + ('0' if match.group(2) == '0' else 'N')


def without_numbers(text):
    """Generations and times."""
    for word in ('generation', 'generation_v2', 'gen', 'gen:', 'transid', 'chunk_root_generation',
                 'uuid_tree_generation', 'enable_gen'):
        text = re.sub(rf'(\b{re.escape(word)}\s+)(\d+)\b', not_zero, text)
    return re.sub(r'(\b[acmo]time )(\d+)(?:\.\d+)? \(.*?\)', not_zero, text)


def uuid_key(uuid):
    data = bytes.fromhex(uuid.replace('-', ''))
    first, second = (int.from_bytes(half, 'little') for half in (data[:8], data[8:]))
    return f'0x{first:016x} UUID_KEY_SUBVOL 0x{second:016x}'


def with_names(text, names, given):
    """@given: UUIDs that were specified; these are kept."""
    def named(table):
        return lambda m: m.group(1) + table.get(m.group(2), m.group(2)) + m.group(3)

    def uuid(match):
        found = match.group(0)
        return found if found == NIL or found in given else f'<UUID of the {names.uuids.get(found, found)}>'
    for pattern, table in (
            (r'(^(?:leaf|node) )(\d+)( )', names.blocks), (r'(\bbytenr )(\d+)( )', names.blocks),
            (r'(key \()(\d+)( (?:METADATA|EXTENT)_ITEM )', names.blocks), (r'(\bblock )(\d+)( gen )', names.blocks),
            (r'(^(?:chunk_)?root\s+)(\d+)($)', names.blocks),
            (r'(^\s+(?:backup_\w+_root|csum_root):\s+)(\d+)(\s)', names.blocks)):
        text = re.sub(pattern, named(table), text, flags=re.M)
    halves = {uuid_key(u): f'<UUID of the {name}>' for u, name in names.uuids.items()}
    text = re.sub(r'0x[0-9a-f]+ UUID_KEY_SUBVOL 0x[0-9a-f]+', lambda m: halves.get(m.group(0), m.group(0)), text)
    return re.sub(UUID, uuid, text)


def free_space(items, names, leftovers):
    """Replace the free ranges of each block group by their sum. @leftovers: drop ranges that belong to no block
    group"""
    kept, free = [], defaultdict(int)
    for item in items:
        address, kind, size = re.match(r'key \((\d+) FREE_SPACE_(\w+) (\d+)\)', item).groups()
        group = names.group_of(int(address))
        if not group and not leftovers:
            raise ValueError(f'free space outside block groups: {item}')
        if group and kind == 'EXTENT':
            free[group] += int(size)
        elif group:
            kept.append(re.sub(r'extent count \d+', 'extent count -', item))
    return kept + [f'group {group} has {size} bytes free' for group, size in free.items()]


def without_first_chunk(text):
    if 'type SYSTEM|single' in text:
        text = re.sub(r'io_align \d+ io_width \d+', 'io_align - io_width -', text)
        text = re.sub(r'sub_stripes \d+', 'sub_stripes -', text)
    return text


def mended(text):
    """The dump of mkfs.btrfs without its bugs in quota items."""
    text = re.sub(r'(QGROUP_LIMIT .*\n\t\t)flags \S+\n\t\tmax_referenced .*\n\t\trsv_.*',
                  r'\1flags 0\n\t\tmax_referenced 0 max_exclusive 0\n\t\trsv_referenced 0 rsv_exclusive 0', text)
    nodesize = re.search(r'key \(FS_TREE ROOT_ITEM 0\).*\n.* bytes_used (\d+)', text).group(1)
    return re.sub(r'(key \(QUOTA_TREE ROOT_ITEM 0\).*\n.* bytes_used )0(\n.* refs )0\n',
                  rf'\g<1>{nodesize}\g<2>1\n', text)


def item_text(item):
    item = re.sub(r'itemoff \d+ ', '', item.rstrip('\n'))
    return without_first_chunk(re.sub(r'tree block key \(.*\) level', 'tree block key - level', item))


def parse(text):
    """Generate each block: its header, its items, and what the dump prints after it."""
    for block in re.split(r'\n(?=(?:leaf|node) \d+ (?:items|level))', text.partition('\n')[2]):
        head, *items = re.split(r'\n\titem \d+ ', block)
        after = ''
        if items:
            # A line that is not indented does not belong to the last item.
            body = items[-1].split('\n')
            cut = next((i for i, line in enumerate(body[1:], 1) if not line.startswith('\t')), len(body))
            items[-1], after = '\n'.join(body[:cut]), '\n'.join(body[cut:])
        yield head, [item_text(item) for item in items], after.strip('\n')


def canonical_tree(text, given=(), leftovers=False):
    """Return a list of lines: the blocks of each tree, then its items, sorted by their text."""
    names = Names(text)
    trees = {}
    for head, items, after in parse(text):
        owner = re.search(r' owner (\S+)$', head, re.M)
        heads, all_items, afters = trees.setdefault(owner.group(1) if owner else '', ([], [], []))
        # The keys in a node depend on where leaves begin.
        heads.append(re.sub(r'^\tkey \(.*\) (block \d+)', r'\t\1', head, flags=re.M))
        all_items += items
        afters.append(after)
    lines = []
    for owner, (heads, items, afters) in trees.items():
        if owner == 'FREE_SPACE_TREE':
            items = free_space(items, names, leftovers)
        if owner == 'FREE_SPACE_TREE' or len(heads) > 1:
            heads = [re.sub(r'^(leaf \d+) items \d+ free space \d+', r'\1', head) for head in heads]
        items = sorted(with_names(without_numbers(item), names, given) for item in items)
        for piece in (*heads, *items, *filter(None, afters)):
            lines += with_names(without_numbers(piece), names, given).split('\n')
    return lines


def chunks_and_devices(text):
    """For trees that need more leaves in mkfs.btrfs than in ours: only chunks, device extents and device items."""
    uuids = Names(text).uuids
    items = [item for _, items, _ in parse(text) for item in items
             if re.match(r'key \(\S+ (?:CHUNK_ITEM|DEV_EXTENT|DEV_ITEM) ', item)]
    return sorted(re.sub(UUID, lambda m: uuids[m.group(0)], item) for item in items)


def canonical_super(text, tree, given=()):
    """@tree: dump of the trees of the same filesystem, by which addresses are named"""
    names = Names(tree)
    root = re.search(r'^root\s+(\d+)$', text, re.M).group(1)
    text, _, backups = text.partition('backup_roots[4]:')
    found = re.findall(rf'\n\tbackup \d:(\n\t\tbackup_tree_root:\t{root}\tgen: (\d+)\t(?:.*\n\t\t)*.*)', backups)
    # The same block may have been the root more than once.
    slots = [slot for slot, gen in found if int(gen) == max(int(gen) for _, gen in found)]
    text = without_first_chunk(re.sub(r', device=.*', '', text))
    text = re.sub(r'^(csum\s+)0x[0-9a-f]+', r'\1-', text, flags=re.M)
    text += f'{len(slots)} backup of the last transaction' + ''.join(slot.rstrip() for slot in slots)
    return with_names(without_numbers(text), names, given).split('\n')
