// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Every operation is done in one transaction, then a commit; each allocation in it fails in turn. That must be
 * reported, the transaction can be aborted, nothing leaks (seen under AddressSanitizer), and the filesystem is in the
 * old state or, if the allocation was not essential, in the new one. If an operation has failed alone, what was done
 * before it can be committed.
 */
#include "tests/unit/unit.h"

#include <linux/fs.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <btrkit/btrkit.h>

#include "lib/commit/txn.h"
#include "tests/audit/audit.h"
#include "tests/unit/device.h"
#include "tests/unit/memory.h"

#define TOP 256u
#define BYTES (140u << 10)

/* What the steps of the plan pass on to each other. */
struct plan {
	struct btrkit_txn *txn;
	uint8_t *bytes;
	uint64_t dir, file, small, there, subvolume, snapshot;
	struct btrkit_error *err;
	bool insists; /* commit in spite of failures */
};

static int create(struct plan *p, uint64_t root, uint64_t dir, const char *name, uint32_t mode, uint64_t *inode)
{
	const struct btrkit_new_inode what = { .mode = mode, .target = S_ISLNK(mode) ? "to" : NULL,
					       .rdev = S_ISCHR(mode) ? makedev(1, 3) : 0 };

	return btrkit_txn_create(p->txn, root, dir, name, strlen(name), &what, inode, p->err);
}

static int put(struct plan *p, uint64_t inode, uint64_t at, size_t len, uint8_t compression)
{
	const struct btrkit_write_options how = { .compression = UNIT_CODECS ? compression : 0, .threads = 1 };

	return btrkit_txn_write(p->txn, BTRKIT_TOP_LEVEL, inode, at, p->bytes, len, &how, p->err);
}

static int unlink_name(struct plan *p, uint64_t dir, const char *name, enum btrkit_unlink_what what)
{
	return btrkit_txn_unlink(p->txn, BTRKIT_TOP_LEVEL, dir, name, strlen(name), what, p->err);
}

static int clone_range(struct plan *p, uint64_t root, uint64_t from, uint64_t to, uint64_t at)
{
	const struct btrkit_clone what = { root, from, 0, BTRKIT_TOP_LEVEL, to, at, 0 };

	return btrkit_txn_clone(p->txn, &what, p->err);
}

static int attributes(struct plan *p)
{
	const struct btrkit_attr attr = { .mask = BTRKIT_ATTR_MODE | BTRKIT_ATTR_UID, .mode = 0600, .uid = 7 };
	/* rw-, r--, --- */
	static const uint8_t acl[] = { 2, 0, 0, 0, 1, 0, 6, 0, 255, 255, 255, 255, 4, 0, 4, 0, 255, 255, 255, 255,
				       32, 0, 0, 0, 255, 255, 255, 255 };
	uint8_t value[64];
	size_t size;
	int ret = btrkit_txn_set_attr(p->txn, BTRKIT_TOP_LEVEL, p->file, &attr, p->err);

	if (!ret)
		ret = btrkit_txn_set_flags(p->txn, BTRKIT_TOP_LEVEL, p->file, FS_NODUMP_FL, FS_NODUMP_FL, p->err);
	if (!ret)
		ret = btrkit_txn_xattr_set(p->txn, BTRKIT_TOP_LEVEL, p->file, "user.a", p->bytes, 500, 0, p->err);
	if (!ret)
		ret = btrkit_txn_xattr_set(p->txn, BTRKIT_TOP_LEVEL, p->dir, "btrfs.compression", "zlib", 4, 0, p->err);
	if (!ret)
		ret = btrkit_txn_xattr_set(p->txn, BTRKIT_TOP_LEVEL, p->there, "user.old", "new", 3,
					   BTRKIT_XATTR_REPLACE, p->err);
	if (!ret)
		ret = btrkit_txn_xattr_get(p->txn, BTRKIT_TOP_LEVEL, p->there, "user.old", value, sizeof(value), &size,
					   p->err);
	if (!ret)
		ret = btrkit_txn_xattr_set(p->txn, BTRKIT_TOP_LEVEL, p->file, "system.posix_acl_access", acl,
					   sizeof(acl), 0, p->err);
	return ret ? ret : btrkit_txn_xattr_remove(p->txn, BTRKIT_TOP_LEVEL, p->file, "user.a", p->err);
}

static int names(struct plan *p)
{
	struct btrkit_place a = { BTRKIT_TOP_LEVEL, 0, "file", 4 }, again = { BTRKIT_TOP_LEVEL, 0, "again", 5 };
	const struct btrkit_place b = { BTRKIT_TOP_LEVEL, TOP, "other", 5 }, c = { BTRKIT_TOP_LEVEL, TOP, "there", 5 };
	struct btrkit_found found;
	int ret = create(p, BTRKIT_TOP_LEVEL, TOP, "dir", S_IFDIR | 0755, &p->dir);

	a.dir = again.dir = p->dir;
	if (!ret)
		ret = create(p, BTRKIT_TOP_LEVEL, p->dir, "file", S_IFREG | 0644, &p->file);
	if (!ret)
		ret = create(p, BTRKIT_TOP_LEVEL, p->dir, "small", S_IFREG | 0644, &p->small);
	if (!ret)
		ret = create(p, BTRKIT_TOP_LEVEL, p->dir, "node", S_IFCHR | 0644, NULL);
	if (!ret)
		ret = create(p, BTRKIT_TOP_LEVEL, p->dir, "link", S_IFLNK | 0777, NULL);
	if (!ret)
		ret = btrkit_txn_link(p->txn, BTRKIT_TOP_LEVEL, p->there, &again, p->err);
	if (!ret)
		ret = btrkit_txn_rename(p->txn, &a, &b, 0, p->err);
	if (!ret)
		ret = btrkit_txn_rename(p->txn, &b, &c, BTRKIT_RENAME_EXCHANGE, p->err);
	return ret ? ret : btrkit_txn_lookup(p->txn, BTRKIT_TOP_LEVEL, p->dir, "small", 5, &found, p->err);
}

static int data(struct plan *p)
{
	int ret = put(p, p->small, 0, 700, 0);

	if (!ret)
		ret = put(p, p->file, 3000, BYTES, 1);
	if (!ret)
		ret = put(p, p->there, 4096, 70000, 0);
	if (!ret)
		ret = btrkit_txn_prealloc(p->txn, BTRKIT_TOP_LEVEL, p->small, 8192, 65536, BTRKIT_PREALLOC_KEEP_SIZE,
					  p->err);
	if (!ret)
		ret = btrkit_txn_punch(p->txn, BTRKIT_TOP_LEVEL, p->file, 10000, 100000, p->err);
	if (!ret)
		ret = clone_range(p, BTRKIT_TOP_LEVEL, p->there, p->file, 1 << 20);
	if (!ret)
		ret = clone_range(p, BTRKIT_TOP_LEVEL, p->small, p->there, 1 << 20);
	return ret ? ret : btrkit_txn_truncate(p->txn, BTRKIT_TOP_LEVEL, p->file, 5000, p->err);
}

static int subvolumes(struct plan *p)
{
	uint64_t count;
	int ret;

	ret = btrkit_txn_subvolume_create(p->txn, BTRKIT_TOP_LEVEL, TOP, "sub", 3, NULL, &p->subvolume, p->err);
	if (!ret)
		ret = create(p, p->subvolume, TOP, "in", S_IFREG | 0644, NULL);
	if (!ret)
		ret = btrkit_txn_subvolume_snapshot(p->txn, BTRKIT_TOP_LEVEL, BTRKIT_TOP_LEVEL, TOP, "snap", 4, NULL,
						    &p->snapshot, p->err);
	if (!ret)
		ret = create(p, p->snapshot, TOP, "in", S_IFREG | 0644, NULL);
	if (!ret)
		ret = clone_range(p, p->snapshot, p->there, p->file, 0);
	if (!ret)
		ret = btrkit_txn_subvolume_set_read_only(p->txn, p->snapshot, true, false, p->err);
	if (!ret)
		ret = btrkit_txn_subvolume_set_default(p->txn, p->snapshot, p->err);
	if (!ret)
		ret = btrkit_txn_subvolume_delete(p->txn, p->subvolume, p->err);
	if (!ret)
		ret = unlink_name(p, p->dir, "again", BTRKIT_UNLINK_FILE);
	if (!ret)
		ret = unlink_name(p, p->dir, "small", BTRKIT_UNLINK_FILE);
	if (!ret)
		ret = btrkit_txn_flush(p->txn, p->err);
	return ret ? ret : btrkit_txn_subvolumes_clean(p->txn, &count, p->err);
}

/* A failed transaction stays failed, even if the caller ignores the error. Otherwise it can be committed. */
static void insist(struct plan *p, enum btrkit_commit_state *state, int ret)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	const int failed = btrkit_txn_failure(p->txn, NULL);
	const int again = btrkit_txn_commit(p->txn, state, &err);

	if (again != failed || (failed && failed != ret))
		fail_msg("%d: %s; and the commit: %d: %s", ret, p->err->message, again, err.message);
}

static int work(struct btrkit_fs *fs, struct plan *p, enum btrkit_commit_state *state)
{
	int ret = btrkit_txn_start(fs, &p->txn, p->err);

	if (ret)
		return ret;
	ret = names(p);
	if (!ret)
		ret = attributes(p);
	if (!ret)
		ret = data(p);
	if (!ret)
		ret = subvolumes(p);
	if (ret && p->insists)
		insist(p, state, ret);
	else if (ret)
		p->txn = btrkit_txn_abort(p->txn);
	return ret ? ret : btrkit_txn_commit(p->txn, state, p->err);
}

static struct sparse *base;

static void must(int ret, const struct btrkit_error *err)
{
	if (ret)
		fail_msg("%d: %s", ret, err->message);
}

static int open_fs(struct sparse *at, unsigned flags, struct btrkit_fs **fs, struct device *d, struct btrkit_error *err)
{
	struct btrkit_open_options opts = BTRKIT_OPEN_OPTIONS_INIT;
	struct btrkit_io *io = &d->io;

	device_init(d, at, sparse_io(at)->size);
	opts.flags = flags;
	return btrkit_fs_open(&io, 1, &opts, fs, err);
}

/* Makes a file, and enough others that the tree has two levels. */
static uint64_t make_base(uint8_t *bytes)
{
	struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_io *io;
	struct plan p = { .err = &err, .bytes = bytes };
	struct btrkit_fs *fs;
	struct device d;
	uint64_t there;

	base = sparse_create(120u << 20, NULL);
	io = sparse_io(base);
	o.nodesize = 4096;
	o.data = o.metadata = BTRKIT_PROFILE_SINGLE;
	must(btrkit_mkfs(&io, 1, &o, NULL, &err), &err);
	must(open_fs(base, BTRKIT_OPEN_WRITE, &fs, &d, &err), &err);
	must(btrkit_txn_start(fs, &p.txn, &err), &err);
	must(create(&p, BTRKIT_TOP_LEVEL, TOP, "there", S_IFREG | 0644, &there), &err);
	must(put(&p, there, 0, 50000, 0), &err);
	must(btrkit_txn_xattr_set(p.txn, BTRKIT_TOP_LEVEL, there, "user.old", "old", 3, 0, &err), &err);
	for (unsigned i = 0; i < 60; i++) {
		char name[16];

		snprintf(name, sizeof(name), "more-%u", i);
		must(create(&p, BTRKIT_TOP_LEVEL, TOP, name, S_IFREG | 0644, NULL), &err);
	}
	must(btrkit_txn_commit(p.txn, NULL, &err), &err);
	btrkit_fs_close(fs);
	return there;
}

/* @nothing: there may have been nothing to commit */
static void check_contents(struct sparse *at, uint64_t wanted, bool nothing, bool whole)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_fs *fs;
	struct device d;

	must(open_fs(at, 0, &fs, &d, &err), &err);
	assert_true(fs->super.generation == wanted || (nothing && fs->super.generation == wanted - 1));
	if (whole)
		must(audit(fs, 0, NULL, &err), &err);
	btrkit_fs_close(fs);
}

struct outcome {
	uint64_t needed, refused, done, alone;
};

static void run(uint64_t at, bool on, struct plan p, struct outcome *o)
{
	enum btrkit_commit_state state = BTRKIT_COMMIT_OLD;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct sparse *copy = sparse_create(120u << 20, base);
	uint64_t generation;
	struct btrkit_fs *fs;
	struct device d;
	int ret;

	p.err = &err;
	must(open_fs(copy, BTRKIT_OPEN_WRITE, &fs, &d, &err), &err);
	generation = fs->super.generation;
	memory_count(at, on);
	ret = work(fs, &p, &state);
	o->needed = memory_end();
	if (ret && (ret != -ENOMEM || err.code != BTRKIT_NO_MEMORY))
		fail_msg("allocation %llu%s: %d: %s", (unsigned long long)at, on ? " and on" : "", ret, err.message);
	if (!ret && state != BTRKIT_COMMIT_NEW)
		fail_msg("allocation %llu: success, but not the new state", (unsigned long long)at);
	o->refused += !!ret;
	o->done += !ret;
	o->alone += ret && state == BTRKIT_COMMIT_NEW;
	btrkit_fs_close(fs);
	check_contents(copy, state == BTRKIT_COMMIT_NEW ? generation + 1 : generation,
		       ret && state == BTRKIT_COMMIT_NEW, state == BTRKIT_COMMIT_NEW || at % 64 == 0);
	sparse_free(copy);
}

static void test_each(void **state)
{
	struct outcome o = { 0 };
	struct plan p = { .bytes = malloc(BYTES) };
	uint64_t needed;

	(void)state;
	assert_non_null(p.bytes);
	for (uint32_t i = 0; i < BYTES; i++)
		p.bytes[i] = (uint8_t)(i * i >> 9);
	p.there = make_base(p.bytes);
	run(MEMORY_SUFFICES, false, p, &o);
	needed = o.needed;
	for (uint64_t at = 0; at < needed; at++) {
		p.insists = true;
		run(at, false, p, &o);
		p.insists = false;
		run(at, true, p, &o);
	}
	print_message("%llu allocations: %llu runs failed, %llu did without, %llu failed alone\n",
		      (unsigned long long)needed, (unsigned long long)o.refused, (unsigned long long)o.done,
		      (unsigned long long)o.alone);
	assert_true(o.alone > needed / 8);
	assert_true(o.refused > needed);
	sparse_free(base);
	free(p.bytes);
}

#define AGAIN (3u << 20) /* more than is written at a time */

static int put_all(struct btrkit_txn *txn, uint64_t inode, uint8_t byte, size_t len, struct btrkit_error *err)
{
	static uint8_t bytes[AGAIN];

	memset(bytes, byte, len);
	return btrkit_txn_write(txn, BTRKIT_TOP_LEVEL, inode, 0, bytes, len, NULL, err);
}

static void expect_bytes(struct btrkit_fs *fs, uint64_t inode, uint8_t byte, size_t len)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	static uint8_t there[AGAIN];
	struct btrkit_file *file;
	size_t got;

	must(btrkit_file_open(fs, BTRKIT_TOP_LEVEL, inode, &file, &err), &err);
	must(btrkit_file_read(file, 0, there, len, &got, &err), &err);
	assert_int_equal(got, len);
	for (size_t i = 0; i < len; i++)
		assert_int_equal(there[i], byte);
	btrkit_file_close(file);
}

/* Makes a write fail, and writes the same preallocated space again. @return whether the first one has failed */
static bool write_again(struct btrkit_fs *fs, uint64_t at, unsigned *alone)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_txn *txn;
	char name[16];
	uint64_t inode;
	int ret;

	snprintf(name, sizeof(name), "%u", (unsigned)at);
	must(btrkit_txn_start(fs, &txn, &err), &err);
	must(btrkit_txn_create(txn, BTRKIT_TOP_LEVEL, TOP, name, strlen(name), NULL, &inode, &err), &err);
	must(btrkit_txn_prealloc(txn, BTRKIT_TOP_LEVEL, inode, 0, AGAIN, 0, &err), &err);
	memory_count(at, false);
	ret = put_all(txn, inode, 1, AGAIN, &err);
	memory_end();
	if (ret && btrkit_txn_failure(txn, NULL)) {
		btrkit_txn_abort(txn);
		return true;
	}
	*alone += ret != 0;
	must(put_all(txn, inode, 2, AGAIN / 2, &err), &err);
	must(btrkit_txn_commit(txn, NULL, &err), &err);
	expect_bytes(fs, inode, 2, AGAIN / 2);
	return ret;
}

/* With parity, data stays in memory until the commit: what a write that failed has left must not be used. */
static void test_written_again(void **state)
{
	struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
	struct btrkit_open_options write = BTRKIT_OPEN_OPTIONS_INIT;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_io *io[3];
	struct btrkit_fs *fs;
	unsigned alone = 0;

	(void)state;
	UNIT_NEEDS(UNIT_PARITY);
	o.data = BTRKIT_PROFILE_RAID5;
	o.metadata = BTRKIT_PROFILE_RAID1;
	write.flags = BTRKIT_OPEN_WRITE;
	for (unsigned i = 0; i < ARRAY_SIZE(io); i++)
		must(btrkit_io_memory(400u << 20, &io[i], &err), &err);
	must(btrkit_mkfs(io, ARRAY_SIZE(io), &o, NULL, &err), &err);
	must(btrkit_fs_open(io, ARRAY_SIZE(io), &write, &fs, &err), &err);
	for (uint64_t at = 0; write_again(fs, at, &alone); at++)
		;
	assert_true(alone > 4);
	must(audit(fs, 0, NULL, &err), &err);
	btrkit_fs_close(fs);
}

#define LARGE 3000u /* bytes of an attribute */
#define ATTRIBUTES 14u

static int set_large(struct btrkit_txn *txn, uint64_t inode, unsigned i, struct btrkit_error *err)
{
	uint8_t value[LARGE];
	char name[16];

	memset(value, (int)i + 1, sizeof(value));
	snprintf(name, sizeof(name), "user.%u", i);
	return btrkit_txn_xattr_set(txn, BTRKIT_TOP_LEVEL, inode, name, value, sizeof(value), 0, err);
}

static void expect_large(struct btrkit_txn *txn, uint64_t inode, unsigned i)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	uint8_t value[LARGE];
	char name[16];
	size_t size;

	snprintf(name, sizeof(name), "user.%u", i);
	must(btrkit_txn_xattr_get(txn, BTRKIT_TOP_LEVEL, inode, name, value, sizeof(value), &size, &err), &err);
	assert_int_equal(size, LARGE);
	for (unsigned k = 0; k < LARGE; k++)
		assert_int_equal(value[k], i + 1);
}

/* Gives an inode many items. Allocation @at of each addition fails, which is then repeated. @return whether any did */
static bool add_many(struct btrkit_fs *fs, uint64_t at)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_txn *txn;
	uint64_t inode;
	bool any = false;

	must(btrkit_txn_start(fs, &txn, &err), &err);
	must(btrkit_txn_create(txn, BTRKIT_TOP_LEVEL, TOP, "many", 4, NULL, &inode, &err), &err);
	for (unsigned i = 0; i < ATTRIBUTES && !btrkit_txn_failure(txn, NULL); i++) {
		int ret;

		memory_count(at, false);
		ret = set_large(txn, inode, i, &err);
		memory_end();
		any |= ret != 0;
		if (btrkit_txn_failure(txn, NULL))
			break;
		if (ret)
			must(set_large(txn, inode, i, &err), &err);
		for (unsigned k = 0; k <= i; k++)
			expect_large(txn, inode, k);
	}
	btrkit_txn_abort(txn);
	return any;
}

/* What failed to be added leaves the other items of the inode as they were. */
static void test_many_items(void **state)
{
	struct sparse *copy = sparse_create(120u << 20, NULL);
	struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_io *io = sparse_io(copy);
	struct btrkit_fs *fs;
	struct device d;

	(void)state;
	must(btrkit_mkfs(&io, 1, &o, NULL, &err), &err);
	must(open_fs(copy, BTRKIT_OPEN_WRITE, &fs, &d, &err), &err);
	for (uint64_t at = 0; add_many(fs, at); at++)
		;
	btrkit_fs_close(fs);
	sparse_free(copy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each),
		cmocka_unit_test(test_written_again),
		cmocka_unit_test(test_many_items),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
