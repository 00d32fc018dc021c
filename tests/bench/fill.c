// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * fill DEV THREADS ROUNDS BYTES [full]: in each round, THREADS threads create files of BYTES bytes until there is no
 * space, each in its own directory, and then remove them all. Prints for each round the files, seconds and commits for
 * filling and removing; then the latency of reservations. With full, it is filled once more at the end.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <btrkit/btrkit.h>

#define TOP 256	/* its root directory */

struct worker {
	pthread_t thread;
	struct btrkit_txn *txn;
	uint64_t dir;
	unsigned long files;
	size_t bytes;
	bool remove;
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void check(int ret, const struct btrkit_error *err)
{
	if (!ret)
		return;
	fprintf(stderr, "fill: %s\n", err->message);
	exit(1);
}

static void *work(void *arg)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct worker *w = arg;
	char name[32], *data = malloc(w->bytes);
	unsigned long i = 0;

	memset(data, 'x', w->bytes);
	for (;; i++) {
		const size_t len = (size_t)snprintf(name, sizeof(name), "file_%lu", i);
		uint64_t inode;
		int ret;

		if (w->remove && i == w->files)
			break;
		if (w->remove) {
			check(btrkit_txn_unlink(w->txn, BTRKIT_TOP_LEVEL, w->dir, name, len, BTRKIT_UNLINK_FILE, &err),
			      &err);
			continue;
		}
		ret = btrkit_txn_create(w->txn, BTRKIT_TOP_LEVEL, w->dir, name, len, NULL, &inode, &err);
		if (ret == -ENOSPC)
			break;
		check(ret, &err);
		ret = btrkit_txn_write(w->txn, BTRKIT_TOP_LEVEL, inode, 0, data, w->bytes, NULL, &err);
		if (ret == -ENOSPC) {
			check(btrkit_txn_unlink(w->txn, BTRKIT_TOP_LEVEL, w->dir, name, len, BTRKIT_UNLINK_FILE, &err),
			      &err);
			break;
		}
		check(ret, &err);
	}
	w->files = i;
	free(data);
	return NULL;
}

/* @return seconds */
static double phase(struct btrkit_fs *fs, struct worker *workers, unsigned threads, bool removes,
		    struct btrkit_reserve_stats *sum)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_reserve_stats stats;
	const double start = now();
	struct btrkit_txn *txn;

	check(btrkit_txn_start(fs, &txn, &err), &err);
	btrkit_txn_set_may_commit(txn, true);
	for (unsigned i = 0; i < threads; i++) {
		workers[i].txn = txn;
		workers[i].remove = removes;
		pthread_create(&workers[i].thread, NULL, work, &workers[i]);
	}
	for (unsigned i = 0; i < threads; i++)
		pthread_join(workers[i].thread, NULL);
	btrkit_txn_get_reserve_stats(txn, &stats);
	for (unsigned i = 0; i < BTRKIT_RESERVE_BUCKETS; i++)
		sum->latency_log2[i] += stats.latency_log2[i];
	sum->tickets += stats.tickets;
	sum->item_runs += stats.item_runs;
	sum->ref_runs += stats.ref_runs;
	sum->chunks += stats.chunks;
	sum->commits += stats.commits;
	check(btrkit_txn_commit(txn, NULL, &err), &err);
	return now() - start;
}

static uint64_t commits(struct btrkit_fs *fs)
{
	struct btrkit_write_stats stats;

	btrkit_fs_get_write_stats(fs, &stats);
	return stats.commits;
}

int main(int argc, char **argv)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_open_options opts = BTRKIT_OPEN_OPTIONS_INIT;
	struct btrkit_new_inode dir = BTRKIT_NEW_INODE_INIT;
	struct btrkit_reserve_stats sum = { 0 };
	struct worker *workers;
	struct btrkit_txn *txn;
	struct btrkit_fs *fs;
	struct btrkit_io *io;
	unsigned threads;

	if (argc != 5 && argc != 6)
		return 2;
	threads = (unsigned)atoi(argv[2]);
	workers = calloc(threads, sizeof(*workers));
	opts.flags = BTRKIT_OPEN_WRITE;
	check(btrkit_io_open(argv[1], BTRKIT_IO_WRITE | BTRKIT_IO_EXCLUSIVE, &io, &err), &err);
	check(btrkit_fs_open(&io, 1, &opts, &fs, &err), &err);
	check(btrkit_txn_start(fs, &txn, &err), &err);
	dir.mode = 040755;
	for (unsigned i = 0; i < threads; i++) {
		char name[32];

		workers[i].bytes = strtoul(argv[4], NULL, 10);
		snprintf(name, sizeof(name), "d%u", i);
		check(btrkit_txn_create(txn, BTRKIT_TOP_LEVEL, TOP, name, strlen(name), &dir, &workers[i].dir, &err),
		      &err);
	}
	check(btrkit_txn_commit(txn, NULL, &err), &err);
	for (int round = 0; round < atoi(argv[3]); round++) {
		unsigned long files = 0;
		const uint64_t before = commits(fs);
		const double filled = phase(fs, workers, threads, false, &sum);
		const uint64_t between = commits(fs);
		double removed;

		for (unsigned i = 0; i < threads; i++)
			files += workers[i].files;
		removed = phase(fs, workers, threads, true, &sum);
		printf("%lu files: %.3f s and %" PRIu64 " commits to fill, %.3f s and %" PRIu64 " to remove\n", files,
		       filled, between - before, removed, commits(fs) - between);
		fflush(stdout);
	}
	if (argc == 6)
		phase(fs, workers, threads, false, &sum);
	printf("%" PRIu64 " tickets, %" PRIu64 " runs of items, %" PRIu64 " of references, %" PRIu64 " chunks, %" PRIu64
	       " commits\n",
	       sum.tickets, sum.item_runs, sum.ref_runs, sum.chunks, sum.commits);
	for (unsigned i = 0; i < BTRKIT_RESERVE_BUCKETS; i++) {
		if (sum.latency_log2[i])
			printf("%12llu ns %10" PRIu64 "\n", 1ull << i, sum.latency_log2[i]);
	}
	btrkit_fs_close(fs);
	free(workers);
	return 0;
}
