// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/unit/convert_rig.h"

#include <sys/stat.h>

#include "lib/format/items/files/file_extent.h"
#include "lib/format/items/free_space.h"
#include "lib/format/items/files/inode.h"
#include "lib/format/items/space_cache.h"
#include "tests/unit/device.h"

/*
 * Audit findings that are expected: planted leftovers that conversions do not remove, and the items that fill the tree.
 */
#define KNOWN (AUDIT_LEFTOVERS | AUDIT_ITEMS)

static void put(struct edit_tree *t, struct btrkit_key key, const void *data, size_t size)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;

	written_check(edit_insert(t, &key, data, (uint32_t)size, &err), &err);
}

static void put_header(struct edit_tree *t, uint64_t group, uint64_t ino)
{
	const struct btrkit_key location = KEY(ino, KEY_INODE_ITEM, 0);
	const struct disk_space_cache d = { .location = key_put(&location), .generation = le64_put(1) };

	put(t, KEY(OID_FREE_SPACE, 0, group), &d, sizeof(d));
}

static void put_inode(struct edit_tree *t, uint64_t ino, uint32_t mode)
{
	struct disk_inode_item d = { .generation = le64_put(1), .nlink = le32_put(1), .mode = le32_put(mode) };

	d.size = d.nbytes = le64_put(EXTENTS * EXTENT_BYTES);
	put(t, KEY(ino, KEY_INODE_ITEM, 0), &d, sizeof(d));
}

static void put_file(struct btrkit_txn *txn, struct edit_tree *t, uint64_t ino, bool inode)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;

	if (inode)
		put_inode(t, ino, S_IFREG | 0600);
	for (unsigned i = 0; i < EXTENTS; i++) {
		struct disk_file_extent d = { .generation = le64_put(1), .type = FILE_EXTENT_REG };
		struct extent_change add = { .data = true, .add = 1 };
		struct range r;

		written_check(txn_alloc_data(txn, EXTENT_BYTES, EXTENT_BYTES, &r, &err), &err);
		add.bytenr = r.start;
		add.num_bytes = r.length;
		add.ref = (struct extent_ref){ .type = KEY_EXTENT_DATA_REF,
					       .root = OID_ROOT_TREE,
					       .objectid = ino,
					       .offset = i * EXTENT_BYTES,
					       .count = 1 };
		written_check(txn_change_data_ref(txn, &add, &err), &err);
		d.disk_bytenr = le64_put(r.start);
		d.ram_bytes = d.num_bytes = d.disk_num_bytes = le64_put(EXTENT_BYTES);
		put(t, KEY(ino, KEY_EXTENT_DATA, i * EXTENT_BYTES), &d, sizeof(d));
	}
}

/* Everything that a v1 cache may consist of, and items that only look like part of one. */
static void plant_v1(struct written *w, bool leftover)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_fs *fs = written_open(w, BTRKIT_OPEN_WRITE);
	struct btrkit_txn *txn = written_start(fs);
	struct edit_tree *t = NULL;

	written_check(txn_tree(txn, OID_ROOT_TREE, &t, &err), &err);
	for (unsigned i = 0; i < FILES + NAMELESS; i++)
		put_file(txn, t, INO(i), i != FILES);
	/* Headers not in the order of the inodes, and some that name something that is not a cache file. */
	for (unsigned i = 0; i < FILES; i++)
		put_header(t, (1ull << 30) + i * 4096, INO((i * 7) % FILES));
	put_header(t, 1ull << 40, SUBVOLUME);
	put_header(t, (1ull << 40) + 4096, DIRECTORY);
	put_header(t, (1ull << 40) + 8192, OID_ROOT_TREE_DIR);
	put_inode(t, DIRECTORY, S_IFDIR | 0755);
	put(t, KEY(OID_ORPHAN, KEY_ORPHAN_ITEM, INO(1)), "", 0);
	put(t, KEY(OID_ORPHAN, KEY_ORPHAN_ITEM, INO(FILES + 1)), "", 0);
	put(t, KEY(OID_ORPHAN, KEY_ORPHAN_ITEM, SUBVOLUME), "", 0);
	txn->super.cache_generation = le64_put(txn->generation);
	if (leftover) {
		/* As mkfs.btrfs before 6.3 leaves it. */
		const struct disk_free_space_info info = { le32_put(0), le32_put(0) };

		written_check(txn_tree(txn, OID_FREE_SPACE_TREE, &t, &err), &err);
		put(t, KEY(1ull << 50, KEY_FREE_SPACE_INFO, 1 << 20), &info, sizeof(info));
	}
	written_commit(txn);
	btrkit_fs_close(fs);
}

/* Creates a device on top of @below, which is not modified. */
static void create(struct written *w, struct sparse *below)
{
	*w = (struct written){
		.bytes = device_create(sparse_create(SIZE, below), SIZE),
		.fail_at = UINT64_MAX, .failures = UINT64_MAX, .fail_read_at = UINT64_MAX
	};
}

static struct sparse *make_base(unsigned variant)
{
	struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct sparse *made;
	struct written w;

	o.nodesize = variant & 1 ? 4096 : 16384;
	if (variant & 2)
		o.incompat &= ~(uint64_t)INCOMPAT_SKINNY_METADATA;
	o.mixed = variant & 4;
	if (o.mixed) {
		o.nodesize = o.sectorsize = 4096;
		o.data = o.metadata = BTRKIT_PROFILE_SINGLE;
	}
	o.compat_ro = variant & TREE ? BOTH : 0;
	create(&w, NULL);
	written_check(btrkit_mkfs(&w.bytes, 1, &o, NULL, &err), &err);
	plant_v1(&w, variant & LEFTOVER);
	made = ((struct device *)w.bytes)->at;
	free(w.bytes);
	return made;
}

void rig_make(struct written *w, unsigned variant)
{
	/* Each base is made once; tests modify copies of it. */
	static struct sparse *bases[2 * LEFTOVER];

	if (!bases[variant])
		bases[variant] = make_base(variant);
	create(w, bases[variant]);
}

static unsigned count_items(struct btrkit_fs *fs, const struct btrkit_key *first, const struct btrkit_key *last)
{
	struct cursor c;
	unsigned n = 0;
	int ret;

	cursor_init(&c, fs, &fs->root_tree);
	for (ret = cursor_seek(&c, first, NULL); !ret && key_cmp(&c.item.key, last) <= 0; ret = cursor_next(&c, NULL))
		n++;
	assert_true(ret >= 0);
	cursor_release(&c);
	return n;
}

/* Items that only look like parts of a cache must still be there. */
static void check_others(struct btrkit_fs *fs)
{
	assert_int_equal(count_items(fs, &KEY(DIRECTORY, 0, 0), &KEY(DIRECTORY, UINT8_MAX, UINT64_MAX)), 1);
	assert_int_equal(count_items(fs, &KEY(OID_ORPHAN, KEY_ORPHAN_ITEM, SUBVOLUME),
				     &KEY(OID_ORPHAN, KEY_ORPHAN_ITEM, SUBVOLUME)),
			 1);
	assert_true(count_items(fs, &KEY(OID_ROOT_TREE_DIR, 0, 0), &KEY(OID_ROOT_TREE_DIR, UINT8_MAX, UINT64_MAX)) > 1);
}

static void check_v1_gone(struct btrkit_fs *fs)
{
	struct v1_count n;

	assert_int_equal(v1_count(fs, &n, NULL), 0);
	assert_true(!n.headers && !n.files && !n.extents);
	assert_int_equal(count_items(fs, &KEY(OID_ORPHAN, 0, 0), &KEY(OID_ORPHAN, UINT8_MAX, UINT64_MAX)), 1);
}

void rig_check_whole(struct written *w)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_fs *fs = written_open(w, 0);

	written_check(audit(fs, KNOWN, NULL, &err), &err);
	check_others(fs);
	btrkit_fs_close(fs);
	written_check_but(w, KNOWN);
}

struct btrkit_space_summary rig_status(struct written *w)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_fs *fs = written_open(w, 0);
	struct btrkit_space_summary sum;

	written_check(btrkit_space_status(fs, NULL, &sum, &err), &err);
	btrkit_fs_close(fs);
	return sum;
}

void rig_check_v2(struct written *w)
{
	const struct btrkit_space_summary sum = rig_status(w);
	struct btrkit_fs *fs = written_open(w, 0);

	assert_int_equal(sum.in_use, BTRKIT_SPACE_CACHE_V2);
	assert_true(sum.valid && !sum.cache_generation && !sum.v2.leftovers);
	assert_int_equal(sum.v2.groups[BTRKIT_SPACE_EQUAL], sum.groups);
	check_v1_gone(fs);
	btrkit_fs_close(fs);
	rig_check_whole(w);
}

struct btrkit_space_change rig_convert(struct written *w, enum btrkit_space_cache_kind to, unsigned flags)
{
	struct btrkit_space_change_options opts = BTRKIT_SPACE_CHANGE_OPTIONS_INIT;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_space_change c = { 0 };
	struct btrkit_fs *fs = written_open(w, flags & BTRKIT_SPACE_DRY_RUN ? 0 : BTRKIT_OPEN_WRITE);

	opts.flags = flags;
	written_check(btrkit_space_convert(fs, to, &opts, &c, &err), &err);
	btrkit_fs_close(fs);
	return c;
}

void rig_put_super(struct written *w, uint64_t compat_ro, uint64_t cache_generation)
{
	struct btrkit_fs *fs = written_open(w, 0);

	for (unsigned mirror = 0; mirror < 2; mirror++) {
		struct disk_super d;

		assert_int_equal(btrkit_io_read(w->bytes, super_offset(mirror), &d, sizeof(d), NULL), 0);
		d.compat_ro_flags = le64_put(compat_ro);
		d.cache_generation = le64_put(cache_generation);
		fs->geometry.csum->compute(d.fsid, SUPER_SIZE - sizeof(d.csum), d.csum);
		assert_int_equal(btrkit_io_write(w->bytes, super_offset(mirror), &d, sizeof(d), NULL), 0);
	}
	btrkit_fs_close(fs);
}
