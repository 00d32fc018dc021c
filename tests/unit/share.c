// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The rules by which Linux calls an extent shared, one by one, on a synthetic filesystem: a file whose extents have
 * different kinds of references. What Linux reports for such a file was derived from its code (fs/btrfs/backref.c);
 * whole filesystems are compared with Linux by the kernel tests.
 */
#include "tests/unit/unit.h"

#include <sys/stat.h>

#include <btrkit/fiemap.h>
#include <btrkit/usage.h>

#include "lib/backref/shared.h"
#include "lib/format/ids.h"
#include "lib/format/items/extent.h"
#include "lib/format/items/files/file_extent.h"
#include "lib/format/items/files/inode.h"
#include "tests/unit/synthetic.h"

#define INODE 257u
#define LENGTH 4096u
#define DATA_BYTENR (SYN_LOGICAL + SYN_LENGTH / 2) /* behind the trees; only they are read */
#define SNAPSHOT 5u		 /* generation of the last snapshot, lower than that of the filesystem */
#define BEFORE 4u		 /* generation of an extent that the snapshot may have */
#define AFTER 6u		 /* and of one that it cannot have */
#define OTHER_ROOT 300u

/* A reference, in short form. */
struct ref {
	uint8_t type; /* 0: none */
	uint64_t root_or_parent;
	uint64_t inode;
	int64_t offset; /* relative to the offset of the extent in the file */
	uint32_t count;
	bool keyed;
};

#define OWN                                                          \
	{                                                            \
		KEY_EXTENT_DATA_REF, OID_FS_TREE, INODE, 0, 1, false \
	}
#define THIS_LEAF UINT64_MAX /* the address of the leaf itself */

static const struct extent_case {
	const char *name;
	uint64_t generation;
	bool shared;
	struct ref refs[3];
} cases[] = {
	{ "one reference of its own", BEFORE, false, { OWN } },
	{ "no extent item", BEFORE, false, { { 0 } } },
	{ "another inode too", BEFORE, true, { OWN, { KEY_EXTENT_DATA_REF, OID_FS_TREE, 258, 0, 1, false } } },
	{ "another inode only", BEFORE, true, { { KEY_EXTENT_DATA_REF, OID_FS_TREE, 258, 0, 1, false } } },
	{ "another offset", BEFORE, true, { OWN, { KEY_EXTENT_DATA_REF, OID_FS_TREE, INODE, 8192, 1, false } } },
	{ "another offset, keyed", BEFORE, true, { OWN, { KEY_EXTENT_DATA_REF, OID_FS_TREE, INODE, 8192, 1, true } } },
	{ "another tree too", BEFORE, true, { OWN, { KEY_EXTENT_DATA_REF, OTHER_ROOT, INODE, 0, 1, false } } },
	{ "another tree only", BEFORE, true, { { KEY_EXTENT_DATA_REF, OTHER_ROOT, INODE, 0, 1, false } } },
	{ "another tree only, after the snapshot",
	  AFTER,
	  false,
	  { { KEY_EXTENT_DATA_REF, OTHER_ROOT, INODE, 0, 1, false } } },
	{ "another tree too, after the snapshot",
	  AFTER,
	  true,
	  { OWN, { KEY_EXTENT_DATA_REF, OTHER_ROOT, INODE, 0, 1, false } } },
	{ "relocation too", BEFORE, false, { OWN, { KEY_EXTENT_DATA_REF, OID_DATA_RELOC_TREE, INODE, 0, 1, false } } },
	{ "relocation of another inode",
	  BEFORE,
	  true,
	  { OWN, { KEY_EXTENT_DATA_REF, OID_DATA_RELOC_TREE, 9, 0, 1, false } } },
	{ "by this leaf, and relocation",
	  BEFORE,
	  true,
	  { { KEY_SHARED_DATA_REF, THIS_LEAF, 0, 0, 1, false },
	    { KEY_EXTENT_DATA_REF, OID_DATA_RELOC_TREE, 9, 0, 1, true } } },
	{ "a count above one", BEFORE, false, { { KEY_EXTENT_DATA_REF, OID_FS_TREE, INODE, 0, 2, false } } },
	{ "a count of zero beside", BEFORE, false, { OWN, { KEY_EXTENT_DATA_REF, OTHER_ROOT, INODE, 0, 0, true } } },
	{ "by this leaf only", BEFORE, false, { { KEY_SHARED_DATA_REF, THIS_LEAF, 0, 0, 1, false } } },
	{ "by this leaf twice", BEFORE, false, { { KEY_SHARED_DATA_REF, THIS_LEAF, 0, 0, 2, false } } },
	{ "by this leaf and by name", BEFORE, true, { OWN, { KEY_SHARED_DATA_REF, THIS_LEAF, 0, 0, 1, false } } },
	{ "by two leaves",
	  BEFORE,
	  true,
	  { { KEY_SHARED_DATA_REF, THIS_LEAF, 0, 0, 1, false }, { KEY_SHARED_DATA_REF, 4096, 0, 0, 1, true } } },
};

#define CASES ARRAY_SIZE(cases)

static uint64_t bytenr_of(size_t i)
{
	return DATA_BYTENR + 2 * i * LENGTH; /* with gaps, so that rows are not merged */
}

/* Data that must stay valid until the trees are written. */
static struct disk_inode_item inode_item;
static struct disk_file_extent extents[CASES];
static uint8_t extent_items[CASES + 1][200];
static struct disk_extent_data_ref keyed[CASES * 3];
static le32 keyed_counts[CASES * 3];
static struct syn_item fs_items[CASES + 2];
static struct syn_item tree_items[CASES * 4 + 1];

static void make_file(void)
{
	inode_item = (struct disk_inode_item){ .generation = le64_put(BEFORE), .transid = le64_put(BEFORE) };
	inode_item.size = le64_put(CASES * LENGTH);
	inode_item.nlink = le32_put(1);
	inode_item.mode = le32_put(S_IFREG | 0644);
	fs_items[0] = (struct syn_item){ KEY(INODE, KEY_INODE_ITEM, 0), &inode_item, sizeof(inode_item) };
	for (size_t i = 0; i < CASES; i++) {
		extents[i] = (struct disk_file_extent){
			.generation = le64_put(cases[i].generation),
			.ram_bytes = le64_put(LENGTH),
			.type = FILE_EXTENT_REG,
			.disk_bytenr = le64_put(bytenr_of(i)),
			.disk_num_bytes = le64_put(LENGTH),
			.num_bytes = le64_put(LENGTH),
		};
		fs_items[1 + i] = (struct syn_item){ KEY(INODE, KEY_EXTENT_DATA, i * LENGTH), &extents[i],
						     sizeof(extents[i]) };
	}
}

static struct disk_extent_data_ref data_ref(const struct ref *r, size_t i)
{
	return (struct disk_extent_data_ref){ le64_put(r->root_or_parent), le64_put(r->inode),
					      le64_put(i * LENGTH + (uint64_t)r->offset), le32_put(r->count) };
}

static uint64_t parent_of(const struct synthetic *s, const struct ref *r)
{
	return r->root_or_parent == THIS_LEAF ? s->fs_root : r->root_or_parent;
}

/* Writes the item of extent @i, with its inline references, to @to. @return its size */
static uint32_t put_extent_item(const struct synthetic *s, size_t i, uint8_t *to)
{
	struct disk_extent_item *head = (struct disk_extent_item *)to;
	uint8_t *at = (uint8_t *)(head + 1);
	uint64_t refs = 0;

	for (const struct ref *r = cases[i].refs; r < cases[i].refs + 3 && r->type; r++) {
		refs += r->count;
		if (r->keyed)
			continue;
		*at++ = r->type;
		if (r->type == KEY_EXTENT_DATA_REF) {
			struct disk_extent_data_ref d = data_ref(r, i);

			memcpy(at, &d, sizeof(d));
			at += sizeof(d);
		} else {
			le64 parent = le64_put(parent_of(s, r));
			le32 count = le32_put(r->count);

			memcpy(at, &parent, sizeof(parent));
			memcpy(at + sizeof(parent), &count, sizeof(count));
			at += sizeof(parent) + sizeof(count);
		}
	}
	*head = (struct disk_extent_item){ le64_put(refs), le64_put(BEFORE), le64_put(EXTENT_FLAG_DATA) };
	return (uint32_t)(at - to);
}

static size_t put_keyed(const struct synthetic *s, size_t i, struct syn_item *to)
{
	size_t n = 0;

	for (size_t k = 0; k < 3; k++) {
		const struct ref *r = &cases[i].refs[k];

		if (!r->type || !r->keyed)
			continue;
		if (r->type == KEY_EXTENT_DATA_REF) {
			keyed[3 * i + k] = data_ref(r, i);
			to[n++] = (struct syn_item){ KEY(bytenr_of(i), r->type,
							 extent_data_ref_hash(r->root_or_parent, r->inode,
									      i * LENGTH + (uint64_t)r->offset)),
						     &keyed[3 * i + k], sizeof(keyed[0]) };
		} else {
			keyed_counts[3 * i + k] = le32_put(r->count);
			to[n++] = (struct syn_item){ KEY(bytenr_of(i), r->type, parent_of(s, r)),
						     &keyed_counts[3 * i + k], sizeof(le32) };
		}
	}
	return n;
}

/*
 * Makes the extent tree: the item of the leaf of the file, with a reference of each of @owners, then those of its
 * extents.
 */
static size_t make_extent_tree(const struct synthetic *s, const uint64_t *owners, size_t num_owners)
{
	struct disk_extent_item *head = (struct disk_extent_item *)extent_items[CASES];
	uint8_t *at = (uint8_t *)(head + 1);
	size_t n = 0;

	*head = (struct disk_extent_item){ le64_put(num_owners), le64_put(BEFORE), le64_put(EXTENT_FLAG_TREE_BLOCK) };
	for (size_t i = 0; i < num_owners; i++) {
		le64 root = le64_put(owners[i]);

		*at++ = KEY_TREE_BLOCK_REF;
		memcpy(at, &root, sizeof(root));
		at += sizeof(root);
	}
	tree_items[n++] = (struct syn_item){ KEY(s->fs_root, KEY_METADATA_ITEM, 0), head,
					     (uint32_t)(at - extent_items[CASES]) };
	for (size_t i = 0; i < CASES; i++) {
		if (!cases[i].refs[0].type)
			continue;
		tree_items[n++] = (struct syn_item){ KEY(bytenr_of(i), KEY_EXTENT_ITEM, LENGTH), extent_items[i],
						     put_extent_item(s, i, extent_items[i]) };
		n += put_keyed(s, i, tree_items + n);
	}
	return n;
}

struct listed {
	size_t n;
	bool shared[CASES];
};

static int take_file(void *ctx, const struct btrkit_fiemap_file *file)
{
	(void)ctx;
	assert_int_equal(file->inode, INODE);
	return 0;
}

static int take_rows(void *ctx, const struct btrkit_extent *rows, size_t n)
{
	struct listed *l = ctx;

	for (size_t i = 0; i < n; i++) {
		assert_true(l->n < CASES);
		assert_int_equal(rows[i].logical, l->n * LENGTH);
		l->shared[l->n++] = rows[i].flags & BTRKIT_EXTENT_SHARED;
	}
	return 0;
}

static struct btrkit_fs *make(struct synthetic *s, uint64_t last_snapshot, const uint64_t *owners, size_t num_owners)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_fs *fs = NULL;

	make_file();
	syn_begin(s);
	syn_put_fs_tree(s, fs_items, CASES + 1);
	assert_int_equal(s->fs_level, 0);
	syn_finish(s, last_snapshot, tree_items, make_extent_tree(s, owners, num_owners));
	if (syn_open(s, NULL, &fs, &err))
		fail_msg("%s", err.message);
	return fs;
}

static void list(uint64_t last_snapshot, const uint64_t *owners, size_t num_owners, struct listed *l)
{
	const struct btrkit_fiemap_sink sink = { take_file, take_rows, l };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct synthetic s;
	struct btrkit_fs *fs = make(&s, last_snapshot, owners, num_owners);

	*l = (struct listed){ 0 };
	if (btrkit_fiemap_all(fs, &sink, NULL, &err))
		fail_msg("%s", err.message);
	assert_int_equal(l->n, CASES);
	btrkit_fs_close(fs);
	syn_destroy(&s);
}

static void references_decide(void **state)
{
	static const uint64_t own[] = { OID_FS_TREE };
	struct listed l;

	(void)state;
	list(SNAPSHOT, own, 1, &l);
	for (size_t i = 0; i < CASES; i++)
		if (l.shared[i] != cases[i].shared)
			fail_msg("%s: %s", cases[i].name, l.shared[i] ? "shared" : "not shared");
}

static void shared_leaf_decides(void **state)
{
	static const uint64_t both[] = { OID_FS_TREE, OTHER_ROOT };
	struct listed l;

	(void)state;
	list(SNAPSHOT, both, 2, &l);
	for (size_t i = 0; i < CASES; i++)
		assert_true(l.shared[i]);
}

/* Relocation trees and the data relocation tree do not make an extent shared. */
static void relocation_is_nobody(void **state)
{
	static const uint64_t own[] = { OID_FS_TREE, OID_DATA_RELOC_TREE };
	struct listed l;

	(void)state;
	list(SNAPSHOT, own, 2, &l);
	for (size_t i = 0; i < CASES; i++)
		assert_int_equal(l.shared[i], cases[i].shared);
}

/*
 * In a tree that was never part of a snapshot, Linux goes by the references of the extent only, not by shared leaves.
 */
static void without_snapshot_leaves_do_not_count(void **state)
{
	static const uint64_t both[] = { OID_FS_TREE, OTHER_ROOT };
	struct listed l;

	(void)state;
	list(0, both, 2, &l);
	for (size_t i = 0; i < CASES; i++)
		assert_int_equal(l.shared[i], cases[i].shared && strcmp(cases[i].name, "another tree only") != 0);
}

static int ignore_damage(void *ctx, const struct btrkit_error *what)
{
	(void)ctx;
	(void)what;
	return 0;
}

/* Returns whether usage, which asks about any file in any tree, must call the extent of a case shared. */
static bool shared_in_usage(const struct extent_case *c)
{
	/* It goes by the trees that reach the leaf, not by the name in a reference. */
	if (!strcmp(c->name, "another tree only"))
		return false;
	/* Without another reference, that inode could be the one. */
	return c->shared && strcmp(c->name, "another inode only");
}

/* The usage of space, which reads all references in one pass, follows the same rule. */
static void usage_decides_alike(void **state)
{
	static const uint64_t own[] = { OID_FS_TREE };
	struct btrkit_usage_options opts = BTRKIT_USAGE_OPTIONS_INIT;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct synthetic s;
	struct btrkit_fs *fs = make(&s, SNAPSHOT, own, 1);
	struct btrkit_usage *u = NULL;

	(void)state;
	opts.damage = ignore_damage; /* the extent tree lacks items of blocks */
	if (btrkit_usage_load(fs, &opts, &u, &err))
		fail_msg("%s", err.message);
	assert_int_equal(btrkit_usage_num_extents(u), CASES);
	for (size_t i = 0; i < CASES; i++) {
		struct btrkit_usage_extent x;

		btrkit_usage_get_extent(u, i, &x);
		assert_int_equal(x.bytenr, bytenr_of(i));
		if (x.linux_shared != shared_in_usage(&cases[i]))
			fail_msg("%s: %s", cases[i].name, x.linux_shared ? "shared" : "not shared");
	}
	btrkit_usage_free(u);
	btrkit_fs_close(fs);
	syn_destroy(&s);
}

static struct extent_ref memory_ref(const struct ref *r)
{
	return (struct extent_ref){ .type = r->type,
				    .root = r->type == KEY_EXTENT_DATA_REF ? r->root_or_parent : 0,
				    .parent = r->type == KEY_SHARED_DATA_REF ? r->root_or_parent : 0,
				    .objectid = r->inode,
				    .offset = (uint64_t)r->offset,
				    .count = r->count };
}

/* Wherever the references of an extent are cut in two, as at the end of a batch of leaves, they say as much. */
static void parts_are_joined(void **state)
{
	(void)state;
	for (size_t i = 0; i < CASES; i++) {
		struct shared_refs whole = { 0 };
		size_t n = 0;

		for (; n < 3 && cases[i].refs[n].type; n++) {
			const struct extent_ref ref = memory_ref(&cases[i].refs[n]);

			shared_add(&whole, &ref);
		}
		for (size_t cut = 0; cut <= n; cut++) {
			struct shared_refs part[2] = { { 0 }, { 0 } };

			for (size_t k = 0; k < n; k++) {
				const struct extent_ref ref = memory_ref(&cases[i].refs[k]);

				shared_add(&part[k >= cut], &ref);
			}
			shared_join(&part[0], &part[1]);
			if (shared_in_any_file(&part[0]) != shared_in_any_file(&whole))
				fail_msg("%s: differs if cut at %zu", cases[i].name, cut);
			assert_true(part[0].differ || part[0].count == whole.count);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(references_decide),
		cmocka_unit_test(shared_leaf_decides),
		cmocka_unit_test(relocation_is_nobody),
		cmocka_unit_test(without_snapshot_leaves_do_not_count),
		cmocka_unit_test(usage_decides_alike),
		cmocka_unit_test(parts_are_joined),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
