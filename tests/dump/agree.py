# SPDX-License-Identifier: LGPL-2.1-or-later
"""Check that the text and the JSON of dump-tree agree: every number, identifier and word of the text must occur in the
JSON of the same item or block."""
import re

NAMES = {'ROOT_TREE': 1, 'EXTENT_TREE': 2, 'CHUNK_TREE': 3, 'DEV_TREE': 4, 'FS_TREE': 5, 'ROOT_TREE_DIR': 6,
         'CSUM_TREE': 7, 'QUOTA_TREE': 8, 'UUID_TREE': 9, 'FREE_SPACE_TREE': 10, 'BLOCK_GROUP_TREE': 11,
         'RAID_STRIPE_TREE': 12, 'REMAP_TREE': 13, 'DEV_ITEMS': 1, 'FIRST_CHUNK_TREE': 256, 'DEV_STATS': 0,
         'BALANCE': -4, 'ORPHAN': -5, 'TREE_LOG': -6, 'LOG_FIXUP': -7, 'TREE_RELOC': -8, 'DATA_RELOC_TREE': -9,
         'EXTENT_CSUM': -10, 'FREE_SPACE': -11, 'FREE_INO': -12, 'CSUM_CHANGE': -13, 'MULTIPLE': -255}
NAME = re.compile(r'(?<=[( ])(?:%s)(?! ROOT_ITEM\))(?=[ )]|$)' % '|'.join(NAMES))
UUID = re.compile(r'\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b')
# Words that stand for values; all others are labels.
WORD = re.compile(r'\b[A-Z][A-Z0-9_]{2,}\b|\((?:none|zlib|lzo|zstd|inline|regular|prealloc)\)')
LABELS = {'DATA', 'METADATA', 'SYSTEM', 'UNKNOWN'}
ITEM = re.compile(r'\titem (\d+) key \((\S+) (\S+) (\S+)\) itemoff (\d+) itemsize (\d+)$')
BLOCK = re.compile(r'(node|leaf) \d+ (level \d+ )?items \d+ free space')


class Disagreement(Exception):
    pass


def without_names(line):
    """Remove user-defined names and data, which may look like anything, and local times, which repeat a number."""
    line = re.sub(r'( name: |\tname: |\t\tdata | name |\titem data ).*', r'\1', line)
    return re.sub(r'\(\d+-\d\d-\d\d \d\d:\d\d:\d\d\)', '', line)


def leaves(value, into):
    """All values at any depth, as numbers and words."""
    if isinstance(value, dict):
        for v in value.values():
            leaves(v, into)
    elif isinstance(value, list):
        for v in value:
            leaves(v, into)
    else:
        into.add(value)
    return into


def numbers(line, octal):
    for m in re.finditer(r'(mode )?(?<!\w)(-?)(?:0x([0-9a-f]+)|(\d+))(?![0-9a-zA-Z_])', line):
        mode, minus, digits, decimal = m.groups()
        if digits:
            yield m[0], {int(digits, 16), digits}
        elif mode and octal:
            yield m[0], {int(decimal, 8)}
        else:
            yield m[0], {int(minus + decimal), int(minus + decimal) % (1 << 64)}


def missing(text, said, octal):
    """Generate what is in the lines of @text but not in @said."""
    for line in text:
        line = without_names(line)
        for uuid in UUID.findall(line):
            if uuid not in said:
                yield uuid
        line = UUID.sub('', line)
        line = NAME.sub(lambda m: str(NAMES[m[0]] % (1 << 64)), line)
        line = re.sub(r'\bstripe \d+ devid', 'devid', line)  # index in the array
        line = re.sub(r'UNKNOWN\.(?=\d)', '', line)
        line = re.sub(r'(flags 0x[0-9a-f]+)\(none\)', r'\1', line)
        line = re.sub(r'\[\d+\] 0x', ' 0x', line)  # sector of a checksum
        for shown, values in numbers(line, octal):
            if not values & said:
                yield shown
        for word in WORD.findall(line):
            word = word.strip('()')
            if word not in said and not (word in LABELS and line.strip() == word):
                yield word


class Agreement:
    def __init__(self):
        self.items = self.blocks = self.values = 0

    def __str__(self):
        return f'{self.items} items and {self.blocks} blocks say the same as text'

    def compare(self, text, values, what):
        """@values: the JSON lines"""
        items = [v for v in values if v.get('kind') == 'item']
        nodes = [v for v in values if v.get('kind') == 'node']
        pointers = [v for v in values if v.get('kind') == 'pointer']
        parts, lines = [], text.split('\n')
        for line in lines:
            if ITEM.match(line) or BLOCK.match(line) or not line.startswith('\t'):
                parts.append([line])
            elif parts:
                parts[-1].append(line)
        found = [p for p in parts if ITEM.match(p[0])]
        if len(found) != len(items):
            raise Disagreement(f'{what}: {len(found)} items as text, {len(items)} in JSON')
        for part, item in zip(found, items):
            self.item(part, item, what)
        self.nodes(lines, nodes, pointers, what)

    def item(self, part, item, what):
        slot, oid, kind, offset, at, size = ITEM.match(part[0]).groups()
        key = item['key']
        same = (int(slot), kind, int(at), int(size)) == (item['slot'], key['type_name'], item['offset'], item['size'])
        for shown, value in ((oid, key['objectid']), (offset, key['offset'])):
            if shown.isdigit():
                same &= int(shown) == value
        said = leaves(item, set())
        lacks = list(missing(part[1:], said, kind == 'INODE_ITEM'))
        if not same or lacks:
            raise Disagreement(f'{what}: JSON lacks {lacks} of\n' + '\n'.join(part) + f'\n{item}')
        self.items += 1

    def nodes(self, lines, nodes, pointers, what):
        heads = [i for i, line in enumerate(lines) if BLOCK.match(line)]
        if len(heads) != len(nodes):
            raise Disagreement(f'{what}: {len(heads)} blocks as text, {len(nodes)} in JSON')
        shown = [line for line in lines if re.match(r'\tkey \(.*\) block \d+ gen \d+$', line)]
        if len(shown) != len(pointers):
            raise Disagreement(f'{what}: {len(shown)} pointers as text, {len(pointers)} in JSON')
        for i, node in zip(heads, nodes):
            lacks = list(missing(lines[i:i + 4], leaves(node, set()), False))
            if lacks:
                raise Disagreement(f'{what}: JSON lacks {lacks} of {lines[i:i + 4]}: {node}')
            self.blocks += 1
        for line, pointer in zip(shown, pointers):
            block, generation = re.search(r' block (\d+) gen (\d+)$', line).groups()
            if (int(block), int(generation)) != (pointer['blockptr'], pointer['generation']) or \
                    pointer['key']['type_name'] not in line:
                raise Disagreement(f'{what}: {line}: {pointer}')


def self_test():
    """The comparison must notice a lost number, word or identifier."""
    item = {'kind': 'item', 'slot': 3, 'key': {'objectid': 257, 'type_name': 'INODE_ITEM', 'offset': 0}, 'offset': 9,
            'size': 160, 'item': {'generation': 7, 'mode': 0o100644, 'flags': 3, 'flags_names': ['NODATASUM'],
                                  'uuid': '00000000-0000-0000-0000-000000000001'}}
    text = ['\titem 3 key (257 INODE_ITEM 0) itemoff 9 itemsize 160', '\t\tgeneration 7 mode 100644',
            '\t\tflags 0x3(NODATASUM)', '\t\tuuid 00000000-0000-0000-0000-000000000001']
    Agreement().item(text, item, 'good')
    for at, part, change in ((0, 'itemoff 9', 'itemoff 8'), (1, '7', '8'), (1, '644', '600'), (2, '0x3', '0x4'),
                             (2, 'NODATASUM', 'NODATACOW'), (3, '1', '2')):
        bad = list(text)
        bad[at] = bad[at].replace(part, change)
        try:
            Agreement().item(bad, item, 'bad')
        except Disagreement:
            continue
        raise AssertionError(f'{bad[at]} was not seen')
