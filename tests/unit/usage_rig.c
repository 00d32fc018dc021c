// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/unit/unit.h"
#include "tests/unit/usage_rig.h"

#include <sys/stat.h>

static struct disk_file_extent file_extent(size_t i)
{
	return (struct disk_file_extent){
		.generation = le64_put(SYN_GENERATION),
		.ram_bytes = le64_put(RIG_LENGTH),
		.type = FILE_EXTENT_REG,
		.disk_bytenr = le64_put(rig_data(i)),
		.disk_num_bytes = le64_put(RIG_LENGTH),
		.num_bytes = le64_put(RIG_LENGTH),
	};
}

/* Tree 5: a file with all extents, and one with inline data. */
static size_t make_files(struct rig *r)
{
	size_t n = 0;

	r->inode.mode = le32_put(S_IFREG | 0644);
	r->inode.nlink = le32_put(1);
	r->inode.size = le64_put(RIG_EXTENTS * RIG_LENGTH);
	r->files[n++] = (struct syn_item){ KEY(257, KEY_INODE_ITEM, 0), &r->inode, sizeof(r->inode) };
	for (size_t i = 0; i < RIG_EXTENTS; i++) {
		r->extents[i] = file_extent(i);
		r->files[n++] = (struct syn_item){ KEY(257, KEY_EXTENT_DATA, i * RIG_LENGTH), &r->extents[i],
						   sizeof(r->extents[i]) };
	}
	r->inlined[0] = 1;
	r->inlined[8] = 100;
	/* This inode has no names. */
	r->nameless = r->inode;
	r->nameless.nlink = le32_put(0);
	r->files[n++] = (struct syn_item){ KEY(258, KEY_INODE_ITEM, 0), &r->nameless, sizeof(r->nameless) };
	r->files[n++] = (struct syn_item){ KEY(258, KEY_EXTENT_DATA, 0), r->inlined, sizeof(r->inlined) };
	return n;
}

static uint8_t *add_item(struct rig *r, const struct btrkit_key *key, uint64_t flags, uint32_t size)
{
	struct disk_extent_item *head = (struct disk_extent_item *)r->bytes[r->num_items];

	assert_true(r->num_items < RIG_ITEMS_MAX);
	*head = (struct disk_extent_item){ le64_put(1), le64_put(SYN_GENERATION), le64_put(flags) };
	r->items[r->num_items++] = (struct syn_item){ *key, head, (uint32_t)sizeof(*head) + size };
	return (uint8_t *)(head + 1);
}

static void add_block(struct rig *r, uint64_t bytenr)
{
	uint8_t block[SYN_NODESIZE];
	const struct disk_header *h = (const struct disk_header *)block;
	uint8_t *at;

	syn_get(&r->s, bytenr, 0, block);
	at = add_item(r, &KEY(bytenr, KEY_METADATA_ITEM, h->level), EXTENT_FLAG_TREE_BLOCK, 1 + sizeof(h->owner));
	at[0] = KEY_TREE_BLOCK_REF;
	memcpy(at + 1, &h->owner, sizeof(h->owner));
}

static void add_data(struct rig *r, size_t i)
{
	const struct extent_ref ref = {
		.type = KEY_EXTENT_DATA_REF, .root = OID_FS_TREE, .objectid = 257, .offset = i * RIG_LENGTH, .count = 1
	};

	extent_inline_ref_put(&ref, add_item(r, &KEY(rig_data(i), KEY_EXTENT_ITEM, RIG_LENGTH), EXTENT_FLAG_DATA,
					     (uint32_t)extent_inline_ref_size(ref.type)));
}

void rig_begin(struct rig *r)
{
	uint64_t first, second;
	size_t n;

	memset(r, 0, sizeof(*r));
	n = make_files(r);
	syn_begin(&r->s);
	first = r->s.next;
	syn_put_fs_tree(&r->s, r->files, n);
	second = r->s.next;
	r->snapshot.generation = r->snapshot.generation_v2 = le64_put(SYN_GENERATION);
	r->snapshot.bytenr = le64_put(r->s.fs_root);
	r->snapshot.level = r->s.fs_level;
	r->snapshot.refs = le32_put(1);
	syn_add_root_item(&r->s, &(struct syn_item){ KEY(256, KEY_ROOT_ITEM, 0), &r->snapshot, sizeof(r->snapshot) });
	/* Tree 257 has the inode and its first extent only. */
	syn_put_tree(&r->s, 257, r->files, 2);
	r->blocks_5 = (size_t)((second - first) / SYN_NODESIZE);
	r->blocks_257 = (size_t)((r->s.next - second) / SYN_NODESIZE);
	for (uint64_t at = first; at < r->s.next; at += SYN_NODESIZE)
		add_block(r, at);
	for (size_t i = 0; i < RIG_EXTENTS; i++)
		add_data(r, i);
}

void rig_finish(struct rig *r)
{
	syn_finish(&r->s, 0, r->items, r->num_items);
}

size_t rig_find(const struct rig *r, uint64_t bytenr)
{
	for (size_t i = 0; i < r->num_items; i++)
		if (r->items[i].key.objectid == bytenr)
			return i;
	fail_msg("no extent at %llu", (unsigned long long)bytenr);
	return 0;
}

void rig_drop(struct rig *r, size_t item)
{
	memmove(r->items + item, r->items + item + 1, (--r->num_items - item) * sizeof(r->items[0]));
}

static int hear(void *ctx, const struct btrkit_error *what)
{
	struct told *t = ctx;

	assert_true(what->message[0]);
	if (!t->n++)
		t->first = *what;
	t->last = *what;
	return 0;
}

int rig_load(struct rig *r, const struct btrkit_usage_options *opts, struct told *told, struct btrkit_usage **u,
	     struct btrkit_error *err)
{
	struct btrkit_usage_options o = BTRKIT_USAGE_OPTIONS_INIT;
	struct btrkit_fs *fs;
	int ret;

	if (opts)
		o = *opts;
	if (told) {
		*told = (struct told){ 0 };
		o.damage = hear;
		o.damage_ctx = told;
	}
	ret = syn_open(&r->s, NULL, &fs, err);
	if (ret)
		return ret;
	ret = btrkit_usage_load(fs, &o, u, err);
	btrkit_fs_close(fs);
	return ret;
}
