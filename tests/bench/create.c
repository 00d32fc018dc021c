// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * create DEV THREADS FILES NAMELEN [one-by-one]: create a directory for each thread, and in one transaction FILES empty
 * files in each; with one-by-one each file is inserted into the tree separately. Prints the total time in seconds,
 * including the commit, the time of each phase, and in how many batches how many index items were inserted.
 */
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
	unsigned name_len;
	bool one_by_one;
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
	fprintf(stderr, "create: %s\n", err->message);
	exit(1);
}

static void *work(void *arg)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct worker *w = arg;
	char name[256];

	for (unsigned long i = 0; i < w->files; i++) {
		snprintf(name, sizeof(name), "%0*lx", (int)w->name_len, (unsigned long)(uint32_t)(i * 0x9e3779b9u));
		check(btrkit_txn_create(w->txn, BTRKIT_TOP_LEVEL, w->dir, name, w->name_len, NULL, NULL, &err), &err);
		if (w->one_by_one)
			check(btrkit_txn_flush(w->txn, &err), &err);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_open_options opts = BTRKIT_OPEN_OPTIONS_INIT;
	struct btrkit_new_inode dir = BTRKIT_NEW_INODE_INIT;
	struct btrkit_write_stats stats;
	struct worker *workers;
	unsigned threads;
	double start, made, done;
	struct btrkit_txn *txn;
	struct btrkit_fs *fs;
	struct btrkit_io *io;

	if (argc != 5 && argc != 6)
		return 2;
	threads = (unsigned)atoi(argv[2]);
	workers = calloc(threads, sizeof(*workers));
	start = now();
	opts.flags = BTRKIT_OPEN_WRITE;
	check(btrkit_io_open(argv[1], BTRKIT_IO_WRITE | BTRKIT_IO_EXCLUSIVE, &io, &err), &err);
	check(btrkit_fs_open(&io, 1, &opts, &fs, &err), &err);
	check(btrkit_txn_start(fs, &txn, &err), &err);
	dir.mode = 040755;
	for (unsigned i = 0; i < threads; i++) {
		char name[32];

		workers[i] = (struct worker){ .txn = txn,
					      .files = strtoul(argv[3], NULL, 10) / threads,
					      .name_len = (unsigned)atoi(argv[4]),
					      .one_by_one = argc == 6 };
		snprintf(name, sizeof(name), "d%u", i);
		check(btrkit_txn_create(txn, BTRKIT_TOP_LEVEL, TOP, name, strlen(name), &dir, &workers[i].dir, &err),
		      &err);
	}
	for (unsigned i = 0; i < threads; i++)
		pthread_create(&workers[i].thread, NULL, work, &workers[i]);
	for (unsigned i = 0; i < threads; i++)
		pthread_join(workers[i].thread, NULL);
	made = now();
	check(btrkit_txn_commit(txn, NULL, &err), &err);
	done = now();
	btrkit_fs_get_write_stats(fs, &stats);
	printf("%.3f %.3f %.3f %" PRIu64 " %" PRIu64 "\n", done - start, made - start, done - made,
	       stats.index_batches.batches, stats.index_batches.items);
	btrkit_fs_close(fs);
	free(workers);
	return 0;
}
