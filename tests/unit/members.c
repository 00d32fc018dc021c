// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Devices that do not belong to the same filesystem are recognized and named in the error; nothing is written to a
 * device that is refused.
 */
#include "tests/unit/unit.h"

#include <btrkit/btrkit.h>

#include "lib/commit/txn.h"
#include "lib/format/super.h"
#include "lib/tree/edit.h"
#include "tests/crash/sparse.h"

#define SIZE (300ull << 20)
#define DEVICES 3u

struct rig {
	struct sparse *made[DEVICES]; /* as mkfs wrote them */
	struct sparse *now[DEVICES];  /* copies on top of these, which tests change */
	char notes[1000];
};

static void make(struct sparse **at, size_t n, uint64_t size)
{
	struct btrkit_mkfs_options opts = BTRKIT_MKFS_OPTIONS_INIT;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_io *ios[DEVICES];

	for (size_t i = 0; i < n; i++) {
		at[i] = sparse_create(size, NULL);
		ios[i] = sparse_io(at[i]);
	}
	if (btrkit_mkfs(ios, n, &opts, NULL, &err))
		fail_msg("%s", err.message);
}

static void over(struct rig *r, unsigned i, struct sparse *below)
{
	if (r->now[i])
		sparse_free(r->now[i]);
	r->now[i] = sparse_create(SIZE, below);
	snprintf(sparse_io(r->now[i])->name, 256, "device-%c", (char)('a' + i));
}

static void start(struct rig *r)
{
	memset(r, 0, sizeof(*r));
	make(r->made, DEVICES, SIZE);
	for (unsigned i = 0; i < DEVICES; i++)
		over(r, i, r->made[i]);
}

static void end(struct rig *r)
{
	for (unsigned i = 0; i < DEVICES; i++) {
		sparse_free(r->now[i]);
		sparse_free(r->made[i]);
	}
}

static void take_note(void *ctx, const char *line)
{
	char *notes = ctx;

	strncat(notes, line, 999 - strlen(notes));
	strncat(notes, "\n", 999 - strlen(notes));
}

/* Opens the devices that @which names by letters. */
static int open_some(struct rig *r, const char *which, unsigned flags, struct btrkit_fs **fs, struct btrkit_error *err)
{
	const struct btrkit_open_options opts = { .flags = flags, .note = take_note, .note_ctx = r->notes };
	struct btrkit_io *ios[2 * DEVICES];
	size_t n = 0;

	r->notes[0] = '\0';
	for (; which[n]; n++)
		ios[n] = sparse_io(r->now[which[n] - 'a']);
	return btrkit_fs_open(ios, n, &opts, fs, err);
}

static void refused(struct rig *r, const char *which, unsigned flags, int ret, const char *says)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct sparse *before[DEVICES];
	struct btrkit_fs *fs = NULL;
	int got;

	for (unsigned i = 0; i < DEVICES; i++)
		before[i] = sparse_clone(r->now[i]);
	got = open_some(r, which, flags, &fs, &err);
	if (got != ret || !strstr(err.message, says))
		fail_msg("%s: %d: %s, not: %s", which, got, err.message, says);
	assert_null(fs);
	for (unsigned i = 0; i < DEVICES; i++) {
		assert_true(sparse_equal(before[i], r->now[i]));
		sparse_free(before[i]);
	}
}

static void opened(struct rig *r, const char *which, unsigned flags, const char *notes)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_fs *fs = NULL;

	if (open_some(r, which, flags, &fs, &err))
		fail_msg("%s: %s", which, err.message);
	assert_string_equal(r->notes, notes);
	btrkit_fs_close(fs);
}

/* Applies @change to all superblocks of a device. */
static void change_super(struct rig *r, unsigned i, void (*change)(struct disk_super *))
{
	for (unsigned mirror = 0; super_offset(mirror) + SUPER_SIZE <= SIZE; mirror++) {
		struct disk_super d;

		sparse_read(r->now[i], super_offset(mirror), &d, sizeof(d));
		change(&d);
		csum_kind_find(le16_get(d.csum_type))->compute(d.fsid, SUPER_SIZE - sizeof(d.csum), d.csum);
		sparse_write(r->now[i], super_offset(mirror), &d, sizeof(d));
	}
}

static void make_stale(struct disk_super *d)
{
	d->generation = d->chunk_root_generation = le64_put(0);
}

static void make_new(struct disk_super *d)
{
	d->generation = le64_put(le64_get(d->generation) + 1);
}

static void change_uuid(struct disk_super *d)
{
	d->dev_item.uuid[3] ^= 1;
}

static void change_devid(struct disk_super *d)
{
	d->dev_item.devid = le64_put(9);
}

static void set_metadata_uuid(struct disk_super *d)
{
	d->incompat_flags = le64_put(le64_get(d->incompat_flags) | 1ull << 10);
	memcpy(d->metadata_uuid, d->dev_item.fsid, 16);
}

static void change_fsid(struct disk_super *d)
{
	set_metadata_uuid(d);
	memset(d->fsid, 0xaa, 16);
}

static void begin_change(struct disk_super *d)
{
	d->flags = le64_put(le64_get(d->flags) | 1ull << 36);
}

static void call_seed(struct disk_super *d)
{
	d->flags = le64_put(le64_get(d->flags) | SUPER_FLAG_SEEDING);
}

static void count_two(struct disk_super *d)
{
	d->num_devices = le64_put(2);
}

static void all_of_them(void **state)
{
	struct rig r;

	(void)state;
	start(&r);
	opened(&r, "abc", 0, "");
	opened(&r, "cab", BTRKIT_OPEN_WRITE, "");
	opened(&r, "ab", 0, "device 3 is missing, 1 of 3: all chunks can be read\n");
	refused(&r, "ab", BTRKIT_OPEN_WRITE, -EOPNOTSUPP, "filesystem has 3 devices, 2 given");
	/* The superblocks now count one device less than the chunk tree has. */
	for (unsigned i = 0; i < DEVICES; i++)
		change_super(&r, i, count_two);
	refused(&r, "ab", BTRKIT_OPEN_WRITE, -EOPNOTSUPP, "a device is missing");
	opened(&r, "abc", BTRKIT_OPEN_WRITE, "");
	end(&r);
}

static void another_filesystem(void **state)
{
	struct sparse *other;
	struct rig r;

	(void)state;
	start(&r);
	make(&other, 1, SIZE);
	over(&r, 2, other);
	refused(&r, "abc", 0, -EINVAL, "different filesystems: device-a of ");
	refused(&r, "ca", BTRKIT_OPEN_WRITE, -EINVAL, "device-a of ");
	opened(&r, "c", BTRKIT_OPEN_WRITE, "");
	/* A seed device is refused by a filesystem that was not made from it. */
	change_super(&r, 2, call_seed);
	refused(&r, "bc", 0, -EINVAL, "device-c is not device 1 of the filesystem: ");
	change_super(&r, 2, change_devid);
	refused(&r, "abc", 0, -EINVAL, "device-c is a device of the seed filesystem ");
	sparse_write(r.now[2], super_offset(0), (uint8_t[SUPER_SIZE]){ 0 }, SUPER_SIZE);
	sparse_write(r.now[2], super_offset(1), (uint8_t[SUPER_SIZE]){ 0 }, SUPER_SIZE);
	refused(&r, "abc", 0, -EMEDIUMTYPE, "device-c: not a btrfs filesystem");
	end(&r);
	sparse_free(other);
}

static void one_twice(void **state)
{
	struct rig r;

	(void)state;
	start(&r);
	refused(&r, "aba", 0, -EINVAL, "device 1 is given twice: device-a and device-a");
	over(&r, 2, r.made[1]);
	refused(&r, "abc", BTRKIT_OPEN_WRITE, -EINVAL, "device 2 is given twice: device-b and device-c");
	change_super(&r, 1, make_new);
	refused(&r, "abc", 0, -EINVAL, "device-b and device-c, which is a copy from another time");
	end(&r);
}

static void an_old_one(void **state)
{
	struct rig r;

	(void)state;
	start(&r);
	change_super(&r, 1, make_stale);
	refused(&r, "bac", BTRKIT_OPEN_WRITE, -EOPNOTSUPP, "device 2 (device-b) is stale, with generation ");
	assert_int_equal(r.notes[0], 0);
	opened(&r, "bac", 0, "device 2 is stale: it has generation 0, the filesystem 1\n");
	end(&r);
}

static void one_that_left(void **state)
{
	struct rig r;

	(void)state;
	start(&r);
	change_super(&r, 1, change_uuid);
	refused(&r, "abc", 0, -EINVAL, "device-b is not device 2 of the filesystem: that has the UUID ");
	change_super(&r, 1, change_devid);
	opened(&r, "acb", 0, "device-b, device 9, no longer belongs to the filesystem\n"
			     "device 2 is missing, 1 of 3: all chunks can be read\n");
	refused(&r, "acb", BTRKIT_OPEN_WRITE, -EOPNOTSUPP, "device-b, device 9, no longer belongs to the filesystem");
	end(&r);
}

/* If a single device contradicts the device item, it can be read, but not written. */
static void one_alone(void **state)
{
	struct sparse *alone;
	struct rig r;

	(void)state;
	start(&r);
	make(&alone, 1, SIZE);
	over(&r, 0, alone);
	opened(&r, "a", BTRKIT_OPEN_WRITE, "");
	change_super(&r, 0, change_uuid);
	opened(&r, "a", 0, "");
	refused(&r, "a", BTRKIT_OPEN_WRITE, -EUCLEAN, "device 1 has a different UUID in its superblock");
	over(&r, 0, alone);
	change_super(&r, 0, change_devid);
	refused(&r, "a", BTRKIT_OPEN_WRITE, -EUCLEAN, "is on device 1, which does not exist");
	end(&r);
	sparse_free(alone);
}

static void an_fsid_half_changed(void **state)
{
	struct rig r;

	(void)state;
	start(&r);
	for (unsigned i = 0; i < DEVICES; i++)
		change_super(&r, i, set_metadata_uuid);
	opened(&r, "abc", BTRKIT_OPEN_WRITE, "");
	change_super(&r, 1, change_fsid);
	refused(&r, "abc", 0, -EINVAL, "unfinished fsid change: ");
	change_super(&r, 0, change_fsid);
	change_super(&r, 2, change_fsid);
	opened(&r, "abc", BTRKIT_OPEN_WRITE, "");
	change_super(&r, 2, begin_change);
	refused(&r, "abc", 0, -EOPNOTSUPP, "device-c: not supported: unfinished change of the metadata uuid");
	end(&r);
}

/* Another program commits to one of the devices, before the transaction starts, or between its start and its commit. */
static void expect_changed(unsigned device, bool before)
{
	enum btrkit_commit_state reached = BTRKIT_COMMIT_OLD;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct sparse *as_it_was[DEVICES];
	struct edit_tree *t = NULL;
	struct btrkit_txn *txn;
	struct btrkit_fs *fs;
	struct rig r;
	int ret;

	start(&r);
	assert_int_equal(open_some(&r, "abc", BTRKIT_OPEN_WRITE, &fs, NULL), 0);
	if (before && device < DEVICES)
		change_super(&r, device, make_new);
	for (unsigned j = 0; before && j < DEVICES; j++)
		as_it_was[j] = sparse_clone(r.now[j]);
	ret = btrkit_txn_start(fs, &txn, &err);
	assert_int_equal(ret, before && device < DEVICES ? -EBUSY : 0);
	if (!before && device < DEVICES)
		change_super(&r, device, make_new);
	for (unsigned j = 0; !before && j < DEVICES; j++)
		as_it_was[j] = sparse_clone(r.now[j]);
	if (!ret) {
		assert_int_equal(txn_tree(txn, OID_FS_TREE, &t, &err), 0);
		assert_int_equal(edit_insert(t, &KEY(1000, 99, 0), "bytes", 5, &err), 0);
		ret = btrkit_txn_commit(txn, &reached, &err);
	}
	assert_int_equal(ret, device < DEVICES ? -EBUSY : 0);
	assert_int_equal(reached, device < DEVICES ? BTRKIT_COMMIT_OLD : BTRKIT_COMMIT_NEW);
	for (unsigned j = 0; j < DEVICES; j++) {
		assert_true(sparse_equal(as_it_was[j], r.now[j]) == (device < DEVICES));
		sparse_free(as_it_was[j]);
	}
	if (ret)
		assert_true(err.devid == device + 1 && err.physical == super_offset(0) &&
			    strstr(err.message, "superblock was changed by another program since it was read"));
	btrkit_fs_close(fs);
	end(&r);
}

static void changed_since(void **state)
{
	(void)state;
	for (unsigned device = 0; device <= DEVICES; device++) {
		expect_changed(device, false);
		expect_changed(device, true);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_of_them),	 cmocka_unit_test(another_filesystem),
		cmocka_unit_test(one_twice),	 cmocka_unit_test(an_old_one),
		cmocka_unit_test(one_that_left), cmocka_unit_test(an_fsid_half_changed),
		cmocka_unit_test(changed_since), cmocka_unit_test(one_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
