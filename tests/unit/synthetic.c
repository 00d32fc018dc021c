// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/unit/unit.h"
#include "tests/unit/synthetic.h"

#include "lib/base/csum.h"
#include "lib/format/feature_bits.h"
#include "lib/format/ids.h"
#include "lib/format/items/block_group.h"
#include "lib/format/items/root.h"
#include "lib/format/super.h"

static const uint8_t fsid[16] = "synthetic fsid.";

static void sign(uint8_t *block, size_t size)
{
	csum_kind_find(0)->compute(block + 32, size - 32, block);
}

static uint64_t physical(uint64_t bytenr, unsigned copy)
{
	return bytenr - SYN_LOGICAL + (copy ? SYN_COPY_2 : SYN_COPY_1);
}

void syn_get(struct synthetic *s, uint64_t bytenr, unsigned copy, uint8_t block[SYN_NODESIZE])
{
	assert_int_equal(btrkit_io_read(s->io, physical(bytenr, copy), block, SYN_NODESIZE, NULL), 0);
}

void syn_put(struct synthetic *s, uint64_t bytenr, unsigned copy, uint8_t block[SYN_NODESIZE], int signed_again)
{
	if (signed_again)
		sign(block, SYN_NODESIZE);
	assert_int_equal(btrkit_io_write(s->io, physical(bytenr, copy), block, SYN_NODESIZE, NULL), 0);
}

void syn_get_super(struct synthetic *s, unsigned mirror, struct disk_super *super)
{
	assert_int_equal(btrkit_io_read(s->io, super_offset(mirror), super, sizeof(*super), NULL), 0);
}

void syn_put_super(struct synthetic *s, unsigned mirror, struct disk_super *super, int signed_again)
{
	if (signed_again)
		sign((uint8_t *)super, sizeof(*super));
	assert_int_equal(btrkit_io_write(s->io, super_offset(mirror), super, sizeof(*super), NULL), 0);
}

/* Writes both copies of a block. @return its address */
static uint64_t put_block(struct synthetic *s, uint8_t *block, uint64_t owner, uint32_t nritems, uint8_t level)
{
	struct disk_header *h = (struct disk_header *)block;
	uint64_t at = s->next;

	memcpy(h->fsid, fsid, sizeof(fsid));
	h->bytenr = le64_put(at);
	h->flags = le64_put(1ull << 56 | HEADER_FLAG_WRITTEN);
	h->generation = le64_put(SYN_GENERATION);
	h->owner = le64_put(owner);
	h->nritems = le32_put(nritems);
	h->level = level;
	syn_put(s, at, 0, block, 1);
	syn_put(s, at, 1, block, 1);
	s->next += SYN_NODESIZE;
	assert_true(s->next <= SYN_LOGICAL + SYN_LENGTH);
	return at;
}

/* Writes a leaf with as many of the items as fit; *used: how many these are. */
static uint64_t put_leaf(struct synthetic *s, uint64_t owner, const struct syn_item *items, size_t n, size_t *used)
{
	uint8_t block[SYN_NODESIZE] = { 0 };
	struct disk_item *head = (struct disk_item *)(block + sizeof(struct disk_header));
	uint32_t end = SYN_NODESIZE - sizeof(struct disk_header);
	size_t i;

	for (i = 0; i < n && end >= (i + 1) * sizeof(*head) + items[i].size; i++) {
		end -= items[i].size;
		head[i] = (struct disk_item){ key_put(&items[i].key), le32_put(end), le32_put(items[i].size) };
		memcpy(block + sizeof(struct disk_header) + end, items[i].data, items[i].size);
	}
	*used = i;
	return put_block(s, block, owner, (uint32_t)i, 0);
}

struct child {
	struct btrkit_key key;
	uint64_t bytenr;
};

/* Writes the next level for @n children, and overwrites @children with the new nodes. @return the number of nodes */
static size_t put_level(struct synthetic *s, uint64_t owner, struct child *children, size_t n, uint8_t level)
{
	/* Few children per node, so that a few hundred items make several levels. */
	const size_t fanout = 5;
	size_t nodes = 0;

	for (size_t i = 0; i < n; i += fanout) {
		uint8_t block[SYN_NODESIZE] = { 0 };
		struct disk_key_ptr *ptrs = (struct disk_key_ptr *)(block + sizeof(struct disk_header));
		size_t m = n - i < fanout ? n - i : fanout;

		for (size_t j = 0; j < m; j++)
			ptrs[j] = (struct disk_key_ptr){ key_put(&children[i + j].key),
							 le64_put(children[i + j].bytenr), le64_put(SYN_GENERATION) };
		children[nodes].key = children[i].key;
		children[nodes].bytenr = put_block(s, block, owner, (uint32_t)m, level);
		nodes++;
	}
	return nodes;
}

static uint64_t put_tree(struct synthetic *s, uint64_t owner, const struct syn_item *items, size_t n, uint8_t *level)
{
	struct child *children = calloc(n + 1, sizeof(*children));
	size_t count = 0, used = 0, at = 0;
	uint64_t root;

	assert_non_null(children);
	*level = 0;
	do {
		children[count].key = n ? items[at].key : KEY(0, 0, 0);
		children[count++].bytenr = put_leaf(s, owner, items + at, n - at, &used);
		at += used;
	} while (at < n);
	while (count > 1)
		count = put_level(s, owner, children, count, ++*level);
	root = children[0].bytenr;
	free(children);
	return root;
}

static void fill_root_item(struct disk_root_item *d, uint64_t bytenr, uint8_t level)
{
	*d = (struct disk_root_item){ 0 };
	d->generation = le64_put(SYN_GENERATION);
	d->generation_v2 = le64_put(SYN_GENERATION);
	d->bytenr = le64_put(bytenr);
	d->refs = le32_put(1);
	d->level = level;
}

static size_t fill_chunk(uint8_t *to)
{
	struct disk_chunk *c = (struct disk_chunk *)to;
	struct disk_stripe *stripes = (struct disk_stripe *)(c + 1);

	*c = (struct disk_chunk){
		.length = le64_put(SYN_LENGTH),
		.owner = le64_put(OID_EXTENT_TREE),
		.stripe_len = le64_put(65536),
		.type = le64_put(BG_SYSTEM | BG_DUP),
		.io_align = le32_put(65536),
		.io_width = le32_put(65536),
		.sector_size = le32_put(4096),
		.num_stripes = le16_put(2),
	};
	stripes[0] = (struct disk_stripe){ .devid = le64_put(1), .offset = le64_put(SYN_COPY_1) };
	stripes[1] = (struct disk_stripe){ .devid = le64_put(1), .offset = le64_put(SYN_COPY_2) };
	return sizeof(*c) + 2 * sizeof(*stripes);
}

static void put_supers(struct synthetic *s)
{
	struct disk_super d = { 0 };
	struct disk_key key = key_put(&KEY(OID_FIRST_CHUNK_TREE, KEY_CHUNK_ITEM, SYN_LOGICAL));

	memcpy(d.fsid, fsid, sizeof(fsid));
	memcpy(d.dev_item.fsid, fsid, sizeof(fsid));
	d.magic = le64_put(SUPER_MAGIC);
	d.generation = d.chunk_root_generation = le64_put(SYN_GENERATION);
	d.root = le64_put(s->root_root);
	d.chunk_root = le64_put(s->chunk_root);
	d.total_bytes = d.dev_item.total_bytes = le64_put(SYN_SIZE);
	d.num_devices = d.dev_item.devid = le64_put(1);
	d.sectorsize = d.stripesize = d.nodesize = d.leafsize = le32_put(SYN_NODESIZE);
	d.compat_ro_flags = le64_put(s->compat_ro);
	d.cache_generation = le64_put(s->cache_generation);
	d.incompat_flags = le64_put(INCOMPAT_MIXED_BACKREF | INCOMPAT_SKINNY_METADATA | INCOMPAT_NO_HOLES);
	memcpy(d.sys_chunk_array, &key, sizeof(key));
	d.sys_chunk_array_size = le32_put((uint32_t)(sizeof(key) + fill_chunk(d.sys_chunk_array + sizeof(key))));
	for (unsigned mirror = 0; mirror < 2; mirror++) {
		d.bytenr = le64_put(super_offset(mirror));
		syn_put_super(s, mirror, &d, 1);
	}
}

void syn_begin(struct synthetic *s)
{
	uint8_t chunk[256], level;
	struct syn_item chunk_item = { KEY(OID_FIRST_CHUNK_TREE, KEY_CHUNK_ITEM, SYN_LOGICAL), chunk, 0 };

	*s = (struct synthetic){ .next = SYN_LOGICAL };
	assert_int_equal(btrkit_io_memory(SYN_SIZE, &s->io, NULL), 0);
	chunk_item.size = (uint32_t)fill_chunk(chunk);
	s->chunk_root = put_tree(s, OID_CHUNK_TREE, &chunk_item, 1, &level);
}

void syn_put_fs_tree(struct synthetic *s, const struct syn_item *items, size_t n)
{
	s->fs_root = put_tree(s, OID_FS_TREE, items, n, &s->fs_level);
}

void syn_add_root_item(struct synthetic *s, const struct syn_item *item)
{
	assert_true(s->num_more < SYN_MORE_MAX);
	s->more[s->num_more++] = *item;
}

void syn_put_tree(struct synthetic *s, uint64_t id, const struct syn_item *items, size_t n)
{
	struct disk_root_item *root = &s->more_roots[s->num_more_roots++];
	uint8_t level;
	uint64_t bytenr = put_tree(s, id, items, n, &level);

	assert_true(s->num_more_roots <= ARRAY_SIZE(s->more_roots));
	fill_root_item(root, bytenr, level);
	syn_add_root_item(s, &(struct syn_item){ KEY(id, KEY_ROOT_ITEM, 0), root, sizeof(*root) });
}

void syn_finish(struct synthetic *s, uint64_t last_snapshot, const struct syn_item *extents, size_t n)
{
	struct disk_root_item roots[2];
	struct syn_item root_items[3 + SYN_MORE_MAX] = {
		{ KEY(OID_EXTENT_TREE, KEY_ROOT_ITEM, 0), &roots[0], sizeof(roots[0]) },
	};
	size_t num = 1;
	uint8_t level;

	s->extent_root = put_tree(s, OID_EXTENT_TREE, extents, n, &level);
	fill_root_item(&roots[0], s->extent_root, level);
	fill_root_item(&roots[1], s->fs_root, s->fs_level);
	roots[1].last_snapshot = le64_put(last_snapshot);
	if (s->early.data)
		root_items[num++] = s->early;
	root_items[num++] = (struct syn_item){ KEY(OID_FS_TREE, KEY_ROOT_ITEM, 0), &roots[1], sizeof(roots[1]) };
	memcpy(root_items + num, s->more, s->num_more * sizeof(*root_items));
	s->root_root = put_tree(s, OID_ROOT_TREE, root_items, num + s->num_more, &level);
	assert_int_equal(level, 0);
	put_supers(s);
}

void syn_create(struct synthetic *s, const struct syn_item *items, size_t n)
{
	/* No used bytes, since the blocks have no extent items. */
	const struct disk_block_group empty = {
		.chunk_objectid = le64_put(OID_FIRST_CHUNK_TREE),
		.flags = le64_put(BG_SYSTEM | BG_DUP),
	};
	const struct syn_item group = { KEY(SYN_LOGICAL, KEY_BLOCK_GROUP_ITEM, SYN_LENGTH), &empty, sizeof(empty) };

	syn_begin(s);
	syn_put_fs_tree(s, items, n);
	syn_finish(s, 0, &group, 1);
}

void syn_destroy(struct synthetic *s)
{
	s->io = btrkit_io_close(s->io);
}

int syn_open(struct synthetic *s, const struct btrkit_open_options *opts, struct btrkit_fs **fs,
	     struct btrkit_error *err)
{
	int ret = btrkit_fs_open(&s->io, 1, opts, fs, err);

	if (!ret)
		s->io = NULL;
	return ret;
}
