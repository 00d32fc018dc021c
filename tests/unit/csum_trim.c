// SPDX-License-Identifier: LGPL-2.1-or-later
/* Removing checksums of data that is gone, compared with a model, and of data that was never committed. */
#include "tests/unit/unit.h"

#include "lib/commit/refs_head.h"
#include "lib/commit/settle.h"
#include "tests/unit/written.h"
#include "tests/random.h"

#define SECTOR 4096u

static uint64_t seed;

static uint32_t rnd(uint32_t n)
{
	random_step(&seed);
	return (uint32_t)(seed >> 33) % n;
}

#define CSUMS 400u

/* Ranges of data lose their checksums, however the items are arranged. */
static void checksums_go_with_their_data(void **state)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
	struct btrkit_txn *txn;
	struct btrkit_fs *fs;
	struct written w;

	(void)state;
	o.nodesize = 4096;
	written_make(&w, &o, 160ull << 20);
	fs = written_open(&w, BTRKIT_OPEN_WRITE);
	txn = written_start(fs);
	for (unsigned trial = 0; trial < 200; trial++) {
		bool model[CSUMS] = { false }, found[CSUMS] = { false };
		const uint64_t base = (trial + 1) * (16ull << 20);
		struct edit_tree *t = NULL;
		uint8_t sums[CSUMS * 4];
		int ret;

		seed = trial;
		written_check(txn_tree(txn, OID_CSUM_TREE, &t, &err), &err);
		for (unsigned at = rnd(5), n; at < CSUMS; at += n + rnd(3)) {
			n = 1 + rnd(rnd(2) ? 5 : 150);
			n = n > CSUMS - at ? CSUMS - at : n;
			for (unsigned i = 0; i < n; i++) {
				memset(sums + 4ul * i, (int)(at + i), 4);
				model[at + i] = true;
			}
			written_check(edit_insert(t, &KEY(OID_EXTENT_CSUM, KEY_EXTENT_CSUM, base + at * SECTOR), sums,
						  4 * n, &err),
				      &err);
		}
		for (unsigned i = 0; i < 10; i++) {
			const unsigned at = rnd(CSUMS), n = 1 + rnd(CSUMS - at);
			const struct range r = { base + (uint64_t)at * SECTOR,
						 (n > 40 ? n / 8 : n) * (uint64_t)SECTOR };

			written_check(csums_trim(txn, &r, &err), &err);
			for (unsigned j = 0; j < r.length / SECTOR; j++)
				model[at + j] = false;
		}
		for (ret = cursor_seek(&t->c, &KEY(OID_EXTENT_CSUM, KEY_EXTENT_CSUM, base), &err); !ret;
		     ret = cursor_next(&t->c, &err)) {
			const uint64_t at = (t->c.item.key.offset - base) / SECTOR;

			assert_true(t->c.item.size && at + t->c.item.size / 4 <= CSUMS);
			for (uint32_t i = 0; i < t->c.item.size / 4; i++) {
				found[at + i] = true;
				assert_int_equal(t->c.item.data[4 * i], (uint8_t)(at + i));
			}
		}
		assert_memory_equal(model, found, sizeof(model));
	}
	btrkit_fs_close(fs);
	written_destroy(&w);
}

/*
 * A file loses its data in the transaction that has written it, and references are applied while its checksums wait to
 * be inserted, which happens when space is short and several threads change files.
 */
static void waiting_checksums_go_too(void **state)
{
	static const uint8_t bytes[4 * SECTOR] = { 1 };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	const struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
	struct edit_tree *t = NULL;
	struct btrkit_txn *txn;
	struct btrkit_fs *fs;
	struct written w;
	uint64_t inode;

	(void)state;
	written_make(&w, &o, 160ull << 20);
	fs = written_open(&w, BTRKIT_OPEN_WRITE);
	txn = written_start(fs);
	written_check(btrkit_txn_create(txn, 5, 256, "file", 4, NULL, &inode, &err), &err);
	written_check(btrkit_txn_write(txn, 5, inode, 0, bytes, sizeof(bytes), NULL, &err), &err);
	written_check(btrkit_txn_truncate(txn, 5, inode, 0, &err), &err);
	assert_true(txn->csums.n);
	written_check(txn_run_refs(txn, &err), &err);
	written_check(btrkit_txn_flush(txn, &err), &err);
	written_check(txn_tree(txn, OID_CSUM_TREE, &t, &err), &err);
	assert_int_equal(cursor_seek(&t->c, &KEY(OID_EXTENT_CSUM, KEY_EXTENT_CSUM, 0), &err), 1);
	written_commit(txn);
	btrkit_fs_close(fs);
	written_verify(&w);
	written_destroy(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(checksums_go_with_their_data),
		cmocka_unit_test(waiting_checksums_go_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
