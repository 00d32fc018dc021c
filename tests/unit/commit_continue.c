// SPDX-License-Identifier: LGPL-2.1-or-later
/* Commits that do not end the transaction: what they have is durable, what follows can be aborted, and others go on. */
#include "tests/unit/unit.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include <btrkit/btrkit.h>

#include "tests/unit/written.h"

#define SIZE (200ull << 20)
#define TOP 256u
#define BYTES_MAX (1u << 18)

static struct btrkit_error err;
static uint8_t bytes[BYTES_MAX], seen[BYTES_MAX];

static void must(int ret)
{
	char line[BTRKIT_ERROR_LINE];

	if (ret)
		fail_msg("%d: %s", ret, btrkit_error_format(&err, line, sizeof(line)));
}

static uint64_t create(struct btrkit_txn *txn, const char *name)
{
	uint64_t inode;

	must(btrkit_txn_create(txn, BTRKIT_TOP_LEVEL, TOP, name, strlen(name), NULL, &inode, &err));
	return inode;
}

static bool exists(struct btrkit_txn *txn, const char *name)
{
	struct btrkit_found found;
	const int ret = btrkit_txn_lookup(txn, BTRKIT_TOP_LEVEL, TOP, name, strlen(name), &found, &err);

	if (ret != -ENOENT)
		must(ret);
	return !ret;
}

static void what_follows_a_commit_can_be_aborted(void **state)
{
	const struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
	enum btrkit_commit_state reached;
	struct btrkit_fs_info info, later;
	struct btrkit_txn *txn;
	struct btrkit_fs *fs;
	struct written w;
	uint64_t file;
	size_t got;
	(void)state;

	written_make(&w, &o, SIZE);
	fs = written_open(&w, BTRKIT_OPEN_WRITE);
	must(btrkit_txn_start(fs, &txn, &err));
	file = create(txn, "committed");
	must(btrkit_txn_write(txn, BTRKIT_TOP_LEVEL, file, 0, bytes, 100000, NULL, &err));
	must(btrkit_txn_commit_and_continue(txn, &reached, &err));
	assert_int_equal(reached, BTRKIT_COMMIT_NEW);
	/* Without changes nothing is written. */
	btrkit_fs_get_info(fs, &info);
	must(btrkit_txn_commit_and_continue(txn, NULL, &err));
	btrkit_fs_get_info(fs, &later);
	assert_int_equal(info.generation, later.generation);
	must(btrkit_txn_write(txn, BTRKIT_TOP_LEVEL, file, 0, bytes + 7, 100000, NULL, &err));
	create(txn, "aborted");
	assert_true(exists(txn, "committed") && exists(txn, "aborted"));
	btrkit_txn_abort(txn);
	must(btrkit_txn_start(fs, &txn, &err));
	assert_true(exists(txn, "committed") && !exists(txn, "aborted"));
	must(btrkit_txn_read(txn, BTRKIT_TOP_LEVEL, file, 0, seen, sizeof(seen), &got, &err));
	assert_int_equal(got, 100000);
	assert_memory_equal(seen, bytes, got);
	btrkit_txn_abort(txn);
	btrkit_fs_close(fs);
	written_verify(&w);
	written_destroy(&w);
}

#define COMMITS 8u

/* What has returned before a commit begins is in it, whatever other threads do. */
struct counting {
	struct btrkit_txn *txn;
	atomic_uint done[3];	/* files that each thread has made */
	atomic_uint who;
	atomic_bool stop;
};

static void *make_files(void *ctx)
{
	struct counting *c = ctx;
	const unsigned who = atomic_fetch_add(&c->who, 1);
	const struct btrkit_write_options how = { .threads = 1 };
	struct btrkit_error own = BTRKIT_ERROR_INIT;
	char name[24];

	for (unsigned i = 0; !atomic_load(&c->stop); i++) {
		const size_t len = (size_t)snprintf(name, sizeof(name), "%u-%u", who, i);
		uint64_t inode;

		if (btrkit_txn_create(c->txn, BTRKIT_TOP_LEVEL, TOP, name, len, NULL, &inode, &own) ||
		    btrkit_txn_write(c->txn, BTRKIT_TOP_LEVEL, inode, 0, bytes + i % 1000, 5000, &how, &own))
			abort();
		atomic_store(&c->done[who], i + 1);
	}
	return NULL;
}

static void commits_among_threads(void **state)
{
	const struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
	struct counting c = { .stop = false };
	unsigned done[3] = { 0 };
	pthread_t threads[3];
	struct btrkit_fs *fs;
	struct written w;
	char name[24];
	size_t got;
	(void)state;

	written_make(&w, &o, SIZE);
	fs = written_open(&w, BTRKIT_OPEN_WRITE);
	must(btrkit_txn_start(fs, &c.txn, &err));
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, make_files, &c), 0);
	for (unsigned n = 0; n < COMMITS; n++) {
		/* Let each thread make some files in between. */
		for (unsigned i = 0; i < 3; i++) {
			while (atomic_load(&c.done[i]) < done[i] + 20)
				sched_yield();
		}
		for (unsigned i = 0; i < 3; i++)
			done[i] = atomic_load(&c.done[i]);
		must(btrkit_txn_commit_and_continue(c.txn, NULL, &err));
	}
	atomic_store(&c.stop, true);
	for (unsigned i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	btrkit_txn_abort(c.txn);
	btrkit_fs_close(fs);
	written_verify(&w);
	fs = written_open(&w, 0);
	for (unsigned i = 0; i < 3; i++) {
		for (unsigned k = 0; k < done[i]; k++) {
			struct btrkit_inode inode;
			struct btrkit_file *file;

			snprintf(name, sizeof(name), "%u-%u", i, k);
			must(btrkit_inode_find(fs, BTRKIT_TOP_LEVEL, name, &inode, &err));
			must(btrkit_file_open(fs, BTRKIT_TOP_LEVEL, inode.inode, &file, &err));
			must(btrkit_file_read(file, 0, seen, sizeof(seen), &got, &err));
			btrkit_file_close(file);
			assert_int_equal(got, 5000);
			assert_memory_equal(seen, bytes + k % 1000, got);
		}
	}
	btrkit_fs_close(fs);
	written_destroy(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_follows_a_commit_can_be_aborted),
		cmocka_unit_test(commits_among_threads),
	};

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * i >> 9 ^ i);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
