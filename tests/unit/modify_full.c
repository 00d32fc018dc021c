// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A filesystem that is full of data: writes fail without changing anything, unless a commit frees space and is allowed.
 * A filesystem that is full of metadata: files can still be truncated. And large writes, with and without threads.
 */
#include "tests/unit/unit.h"

#include "lib/delayed/delayed.h"
#include "lib/reserve/ticket.h"
#include "tests/unit/txn_rig.h"

#define TOP 256u
#define PIECE (4u << 20)

static const struct rig_kind kind = {
	"small", BTRKIT_PROFILE_SINGLE, BTRKIT_PROFILE_SINGLE, false, 4096, 0, 1, { 160 }
};

static uint64_t new_file(struct btrkit_txn *txn, unsigned number)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	uint64_t inode;
	char name[16];

	snprintf(name, sizeof(name), "f%u", number);
	rig_check(btrkit_txn_create(txn, BTRKIT_TOP_LEVEL, TOP, name, strlen(name), NULL, &inode, &err), &err);
	return inode;
}

static void fill_bytes(uint8_t *bytes, size_t len, unsigned seed)
{
	uint32_t x = seed;

	for (size_t i = 0; i < len; i++) {
		x = x * 1664525u + 1013904223u;
		bytes[i] = i % 4096 < 1500 ? (uint8_t)(x >> 24) : (uint8_t)(i / 3000);
	}
}

static void check_file(struct btrkit_fs *fs, uint64_t inode, const uint8_t *bytes, uint64_t size)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	uint8_t *there = malloc(size + 1);
	struct btrkit_file *open;
	size_t got;

	assert_non_null(there);
	rig_check(btrkit_file_open(fs, BTRKIT_TOP_LEVEL, inode, &open, &err), &err);
	rig_check(btrkit_file_read(open, 0, there, size + 1, &got, &err), &err);
	btrkit_file_close(open);
	assert_int_equal(got, size);
	if (size)
		assert_memory_equal(there, bytes, size);
	free(there);
}

static void test_full(void **state)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	uint8_t *bytes = malloc(PIECE);
	uint64_t files[64], inode;
	struct btrkit_txn *txn;
	struct btrkit_fs *fs;
	unsigned n = 0;
	struct rig r;
	int ret;

	(void)state;
	assert_non_null(bytes);
	fill_bytes(bytes, PIECE, 1);
	rig_make(&r, &kind);
	fs = rig_open(&r, BTRKIT_OPEN_WRITE, 0);
	rig_check(btrkit_txn_start(fs, &txn, &err), &err);
	do {
		files[n] = new_file(txn, n);
		ret = btrkit_txn_write(txn, BTRKIT_TOP_LEVEL, files[n++], 0, bytes, PIECE, NULL, &err);
	} while (!ret && n < 64);
	assert_int_equal(ret, -ENOSPC);
	assert_true(n > 10);
	rig_check(btrkit_txn_commit(txn, NULL, &err), &err);
	rig_verify(&r);
	check_file(fs, files[n - 1], bytes, 0);

	/* Truncated extents are not free before the commit. */
	rig_check(btrkit_txn_start(fs, &txn, &err), &err);
	rig_check(btrkit_txn_truncate(txn, BTRKIT_TOP_LEVEL, files[0], 0, &err), &err);
	inode = files[n - 1];
	assert_int_equal(btrkit_txn_write(txn, BTRKIT_TOP_LEVEL, inode, 100, bytes, PIECE - 100, NULL, &err), -ENOSPC);
	assert_int_equal(btrkit_txn_prealloc(txn, BTRKIT_TOP_LEVEL, inode, 0, 2 * PIECE, 0, &err), -ENOSPC);
	btrkit_txn_set_may_commit(txn, true);
	/* The transaction committed on its own: the rig must now protect a different committed state. */
	free(r.held[0]);
	r.held[0] = NULL;
	rig_check(btrkit_txn_truncate(txn, BTRKIT_TOP_LEVEL, inode, 0, &err), &err);
	rig_check(btrkit_txn_write(txn, BTRKIT_TOP_LEVEL, inode, 0, bytes, PIECE, NULL, &err), &err);
	assert_int_equal(btrkit_txn_write(txn, BTRKIT_TOP_LEVEL, files[0], 0, bytes, PIECE, NULL, &err), -ENOSPC);
	rig_check(btrkit_txn_commit(txn, NULL, &err), &err);
	rig_verify(&r);
	check_file(fs, inode, bytes, PIECE);
	check_file(fs, files[0], bytes, 0);
	check_file(fs, files[1], bytes, PIECE);
	btrkit_fs_close(fs);
	rig_destroy(&r);
	free(bytes);
}

/* Fills the rest of the space with small files. Space that a failed write allocated is free again after a commit. */
static void fill_rest(struct btrkit_fs *fs, const uint8_t *bytes, unsigned n)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_txn *txn;

	for (size_t size = PIECE; size >= 4096; size /= size > 4096 ? 1024 : 2) {
		int ret;

		rig_check(btrkit_txn_start(fs, &txn, &err), &err);
		do
			ret = btrkit_txn_write(txn, BTRKIT_TOP_LEVEL, new_file(txn, n++), 0, bytes, size, NULL, &err);
		while (!ret);
		assert_int_equal(ret, -ENOSPC);
		rig_check(btrkit_txn_commit(txn, NULL, &err), &err);
	}
}

/* Punching a hole within a sector needs a new sector, and so does converting inline data to an extent. */
static void test_again(void **state)
{
	struct btrkit_clone clone = { .from_root = BTRKIT_TOP_LEVEL, .to_root = BTRKIT_TOP_LEVEL, .to_offset = 8192 };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	uint8_t *bytes = malloc(PIECE);
	struct btrkit_txn *txn;
	struct btrkit_fs *fs;
	uint64_t files[4];
	struct rig r;

	(void)state;
	assert_non_null(bytes);
	fill_bytes(bytes, PIECE, 3);
	rig_make(&r, &kind);
	fs = rig_open(&r, BTRKIT_OPEN_WRITE, 0);
	rig_check(btrkit_txn_start(fs, &txn, &err), &err);
	for (unsigned i = 0; i < 4; i++)
		files[i] = new_file(txn, i);
	for (unsigned i = 0; i < 4; i++)
		rig_check(btrkit_txn_write(txn, BTRKIT_TOP_LEVEL, files[i], 0, bytes, i ? 65536 : 1000, NULL, &err),
			  &err);
	rig_check(btrkit_txn_commit(txn, NULL, &err), &err);
	fill_rest(fs, bytes, 1000);
	clone.from_inode = files[0];
	clone.to_inode = files[1];
	for (unsigned row = 0; row < 2; row++) {
		rig_check(btrkit_txn_start(fs, &txn, &err), &err);
		assert_int_equal(btrkit_txn_punch(txn, BTRKIT_TOP_LEVEL, files[1], 100, 200, &err), -ENOSPC);
		assert_int_equal(btrkit_txn_clone(txn, &clone, &err), row ? -ENOSPC : -EINVAL);
		btrkit_txn_set_may_commit(txn, true);
		rig_check(btrkit_txn_truncate(txn, BTRKIT_TOP_LEVEL, files[2 + row], 0, &err), &err);
		if (!row)
			rig_check(btrkit_txn_punch(txn, BTRKIT_TOP_LEVEL, files[1], 100, 200, &err), &err);
		else
			rig_check(btrkit_txn_clone(txn, &clone, &err), &err);
		if (!row)
			rig_check(btrkit_txn_truncate(txn, BTRKIT_TOP_LEVEL, files[1], 8192, &err), &err);
		rig_check(btrkit_txn_commit(txn, NULL, &err), &err);
		rig_verify(&r);
		free(r.held[0]);
		r.held[0] = NULL;
		memset(bytes + 100, 0, 200);
		if (!row)
			check_file(fs, files[1], bytes, 8192);
		if (!row)
			fill_rest(fs, bytes, 5000);
	}
	btrkit_fs_close(fs);
	rig_destroy(&r);
	free(bytes);
}

/* Fills the space with one file, as far as there is space for data. */
static void fill_with_one(struct btrkit_fs *fs, const uint8_t *bytes)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_txn *txn;
	uint64_t inode, at = 0;

	rig_check(btrkit_txn_start(fs, &txn, &err), &err);
	inode = new_file(txn, 1000);
	for (size_t size = 65536; size >= 4096; size /= 2)
		for (; !btrkit_txn_write(txn, BTRKIT_TOP_LEVEL, inode, at, bytes, size, NULL, &err); at += size)
			;
	assert_int_equal(err.err, -ENOSPC);
	rig_check(btrkit_txn_commit(txn, NULL, &err), &err);
}

/*
 * A write that is too large fails alone, but has allocated what there was. Until a commit nobody else can have that, so
 * the next write has to commit, although there is nothing else to commit.
 */
static void test_held(void **state)
{
	static const struct rig_kind kinds[] = {
		{ "small", BTRKIT_PROFILE_SINGLE, BTRKIT_PROFILE_SINGLE, false, 4096, 0, 1, { 160 } },
		{ "mixed", BTRKIT_PROFILE_SINGLE, BTRKIT_PROFILE_SINGLE, true, 4096, 0, 1, { 40 } },
	};
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	uint8_t *bytes = malloc(PIECE);

	(void)state;
	assert_non_null(bytes);
	fill_bytes(bytes, PIECE, 4);
	for (unsigned i = 0; i < 2 * ARRAY_SIZE(kinds); i++) {
		struct btrkit_txn *txn;
		struct btrkit_fs *fs;
		uint64_t files[2];
		struct rig r;

		rig_make(&r, &kinds[i / 2]);
		fs = rig_open(&r, BTRKIT_OPEN_WRITE, 0);
		rig_check(btrkit_txn_start(fs, &txn, &err), &err);
		files[0] = new_file(txn, 0);
		files[1] = new_file(txn, 1);
		rig_check(btrkit_txn_write(txn, BTRKIT_TOP_LEVEL, files[0], 0, bytes, 1 << 20, NULL, &err), &err);
		rig_check(btrkit_txn_commit(txn, NULL, &err), &err);
		fill_with_one(fs, bytes);
		rig_check(btrkit_txn_start(fs, &txn, &err), &err);
		rig_check(btrkit_txn_truncate(txn, BTRKIT_TOP_LEVEL, files[0], 0, &err), &err);
		rig_check(btrkit_txn_commit(txn, NULL, &err), &err);

		free(r.held[0]);
		r.held[0] = NULL;
		rig_check(btrkit_txn_start(fs, &txn, &err), &err);
		/* Once the first write may commit, too, which does not help it. */
		btrkit_txn_set_may_commit(txn, i % 2);
		assert_int_equal(btrkit_txn_write(txn, BTRKIT_TOP_LEVEL, files[1], 0, bytes, PIECE, NULL, &err),
				 -ENOSPC);
		btrkit_txn_set_may_commit(txn, true);
		rig_check(btrkit_txn_write(txn, BTRKIT_TOP_LEVEL, files[1], 0, bytes, 700000, NULL, &err), &err);
		rig_check(btrkit_txn_commit(txn, NULL, &err), &err);
		rig_verify(&r);
		check_file(fs, files[1], bytes, 700000);
		btrkit_fs_close(fs);
		rig_destroy(&r);
	}
	free(bytes);
}

struct extents {
	unsigned n;
	uint64_t bytes;
};

static int count_extent(void *ctx, const struct btrkit_file_extent *x)
{
	struct extents *e = ctx;

	e->n++;
	e->bytes += x->length;
	return 0;
}

/* Files of several kinds, with offsets that are not aligned to sectors. */
static void test_large(void **state)
{
	const size_t len = 20u << 20;
	const uint64_t at = 3000, size = at + len;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_write_options how = BTRKIT_WRITE_OPTIONS_INIT;
	uint8_t *bytes = calloc(1, size);
	struct rig r;

	(void)state;
	assert_non_null(bytes);
	fill_bytes(bytes + at, len, 2);
	for (unsigned row = 0; row < 4; row++) {
		struct extents e = { 0 };
		struct btrkit_txn *txn;
		struct btrkit_fs *fs;
		uint64_t inode;

		rig_make(&r, &kind);
		fs = rig_open(&r, BTRKIT_OPEN_WRITE, 0);
		rig_check(btrkit_txn_start(fs, &txn, &err), &err);
		how.compression = UNIT_CODECS ? row / 2 : 0;
		how.threads = row % 2 ? 5 : 1;
		inode = new_file(txn, 0);
		rig_check(btrkit_txn_write(txn, BTRKIT_TOP_LEVEL, inode, at, bytes + at, len, &how, &err), &err);
		rig_check(btrkit_txn_commit(txn, NULL, &err), &err);
		rig_verify(&r);
		check_file(fs, inode, bytes, size);
		rig_check(btrkit_inode_extents(fs, BTRKIT_TOP_LEVEL, inode, count_extent, &e, &err), &err);
		assert_true(how.compression ? e.n >= len >> 17 : e.n <= 4);
		btrkit_fs_close(fs);
		rig_destroy(&r);
	}
	free(bytes);
}

#define MANY_EXTENTS 200u
#define NAMES 4000u

static size_t long_name(char name[64], unsigned i)
{
	return (size_t)snprintf(name, 64, "a-name-that-takes-its-room-%u", i);
}

static uint64_t make_extents(struct btrkit_txn *txn, const uint8_t *bytes)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	const uint64_t inode = new_file(txn, 0);

	for (unsigned i = 0; i < MANY_EXTENTS; i++)
		rig_check(btrkit_txn_write(txn, BTRKIT_TOP_LEVEL, inode, 8192ull * i, bytes, 4096, NULL, &err), &err);
	return inode;
}

/* Creates names until there is no space for metadata; all leaves but the last are shared with a snapshot. */
static void fill_metadata(struct btrkit_fs *fs)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_txn *txn;
	uint64_t id;
	char name[64];
	int ret = 0;

	rig_check(btrkit_txn_start(fs, &txn, &err), &err);
	for (unsigned i = 0; i < NAMES; i++)
		rig_check(btrkit_txn_create(txn, BTRKIT_TOP_LEVEL, TOP, name, long_name(name, i), NULL, NULL, &err),
			  &err);
	rig_check(btrkit_txn_commit(txn, NULL, &err), &err);
	rig_check(btrkit_txn_start(fs, &txn, &err), &err);
	rig_check(btrkit_txn_subvolume_snapshot(txn, BTRKIT_TOP_LEVEL, BTRKIT_TOP_LEVEL, TOP, "snapshot", 8, NULL, &id,
						&err),
		  &err);
	for (unsigned i = NAMES; !ret; i++)
		ret = btrkit_txn_create(txn, BTRKIT_TOP_LEVEL, TOP, name, long_name(name, i), NULL, NULL, &err);
	assert_int_equal(ret, -ENOSPC);
	rig_check(btrkit_txn_commit(txn, NULL, &err), &err);
}

/* Whether @items items could be removed in one operation. */
static bool has_room(struct btrkit_txn *txn, unsigned items)
{
	const struct ticket_need need = { .items = items, .bytes = 4096, .removes = true };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	int ret;

	txn->tickets->credit = (struct delayed_amount){ 0 };
	ret = ticket_enter(txn, &need, &err);
	if (ret == -ENOSPC)
		return false;
	rig_check(ret, &err);
	sync_leave(&txn->sync);
	return true;
}

/*
 * Almost all of the space that is reserved for removals is in use: a file can still be truncated, a few extents at a
 * time.
 */
static void test_cut_off(void **state)
{
	static const struct rig_kind tiny = { "tiny", BTRKIT_PROFILE_SINGLE, BTRKIT_PROFILE_SINGLE, false, 4096, 0, 1,
					      { 50 } };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	uint8_t bytes[8192] = { 0 };
	struct btrkit_txn *txn;
	struct btrkit_fs *fs;
	uint64_t inode;
	char name[64];
	struct rig r;

	(void)state;
	fill_bytes(bytes, 4096, 4);
	rig_make(&r, &tiny);
	fs = rig_open(&r, BTRKIT_OPEN_WRITE, 0);
	rig_check(btrkit_txn_start(fs, &txn, &err), &err);
	inode = make_extents(txn, bytes);
	rig_check(btrkit_txn_commit(txn, NULL, &err), &err);
	fill_metadata(fs);
	rig_verify(&r);

	rig_check(btrkit_txn_start(fs, &txn, &err), &err);
	for (unsigned i = 0; i < NAMES && has_room(txn, 60); i += 7)
		rig_check(btrkit_txn_unlink(txn, BTRKIT_TOP_LEVEL, TOP, name, long_name(name, i), BTRKIT_UNLINK_FILE,
					    &err),
			  &err);
	assert_false(has_room(txn, 60));
	rig_check(btrkit_txn_truncate(txn, BTRKIT_TOP_LEVEL, inode, 6000, &err), &err);
	rig_check(btrkit_txn_commit(txn, NULL, &err), &err);
	rig_verify(&r);
	check_file(fs, inode, bytes, 6000);
	btrkit_fs_close(fs);
	rig_destroy(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_held),
		cmocka_unit_test(test_again),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_cut_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
