// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/sweep/copies.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/io/buffer.h"

/* Verifies a copy. @good: NULL, or a good copy; an equal one need not be verified. @return 0, or why it is bad */
static int verify_copy(const struct btrkit_fs *fs, const struct node_ref *ref, const struct copy *copy,
		       const uint8_t *good, uint8_t *buf, struct btrkit_error *err)
{
	int ret = btrkit_io_read(copy->io, copy->physical, buf, fs->geometry.nodesize, err);

	if (ret)
		return ret;
	if (good && !memcmp(good, buf, fs->geometry.nodesize))
		return 0;
	return node_verify(&fs->rules, ref, buf, err);
}

bool sweep_copies_block(const struct sweep_copies *s, const struct node_ref *ref, uint8_t *buf)
{
	struct btrkit_error why[SWEEP_COPIES_MAX], err = BTRKIT_ERROR_INIT;
	struct copy copies[SWEEP_COPIES_MAX];
	bool bad[SWEEP_COPIES_MAX] = { false }, good = false;
	uint8_t *other = NULL;
	unsigned n;

	for (n = 0; n < SWEEP_COPIES_MAX; n++) {
		if (volume_map(s->fs->volume, ref->bytenr, s->fs->geometry.nodesize, n, &copies[n], NULL))
			break;
		if (!copies[n].io || copies[n].length < s->fs->geometry.nodesize)
			continue;
		if (good && !other)
			other = io_buffer(s->fs->geometry.nodesize);
		if (good && !other) {
			s->unreadable(s->ctx, ref, err_nomem(&err), &err);
			break;
		}
		why[n] = (struct btrkit_error)BTRKIT_ERROR_INIT;
		bad[n] = verify_copy(s->fs, ref, &copies[n], good ? buf : NULL, good ? other : buf, &why[n]);
		good |= !bad[n];
	}
	free(other);
	/* No copy is good; it may be possible to rebuild the block from parity. */
	if (!good) {
		const int ret = node_read_uncached(s->fs, ref, buf, &err);

		if (ret) {
			err_at_logical(&err, ref->bytenr);
			s->unreadable(s->ctx, ref, ret, &err);
			return false;
		}
	}
	for (unsigned i = 0; i < n; i++)
		if (bad[i])
			s->bad(s->ctx, ref, &copies[i], &why[i]);
	return true;
}

void sweep_run_release(struct sweep_run *run)
{
	free(run->blocks);
	free(run->others);
	run->blocks = run->others = NULL;
}

int sweep_run_init(const struct btrkit_fs *fs, struct sweep_run *run, struct btrkit_error *err)
{
	run->max = SWEEP_RUN_BYTES / fs->geometry.nodesize;
	run->blocks = io_buffer(SWEEP_RUN_BYTES);
	run->others = io_buffer(SWEEP_RUN_BYTES);
	if (run->blocks && run->others)
		return 0;
	sweep_run_release(run);
	return err_nomem(err);
}

/* Returns the number of blocks whose first copies are contiguous on disk; others are in another strip or chunk. */
static size_t in_one_piece(const struct btrkit_fs *fs, const struct node_ref *refs, size_t n)
{
	const uint64_t size = fs->geometry.nodesize;
	struct copy copy;

	while (volume_map(fs->volume, refs->bytenr, n * size, 0, &copy, NULL)) {
		if (n == 1)
			return 0;
		n = 1;
	}
	return (size_t)(copy.length / size);
}

/* Reads the first copy that can be read. @return its number, or SWEEP_COPIES_MAX */
static unsigned read_first(const struct btrkit_fs *fs, uint64_t logical, uint8_t *buf, size_t len)
{
	struct copy copy;

	for (unsigned m = 0; m < SWEEP_COPIES_MAX && !volume_map(fs->volume, logical, len, m, &copy, NULL); m++)
		if (copy.io && copy.length == len)
			return btrkit_io_read(copy.io, copy.physical, buf, len, NULL) ? SWEEP_COPIES_MAX : m;
	return SWEEP_COPIES_MAX;
}

/* Compares the other copies with the first, and marks blocks that differ as bad. @return whether all could be read */
static bool compare_others(const struct btrkit_fs *fs, struct sweep_run *run, uint64_t logical, size_t n,
			   unsigned first, bool *good)
{
	const size_t size = fs->geometry.nodesize;
	struct copy copy;

	for (unsigned m = first + 1; m < SWEEP_COPIES_MAX; m++) {
		if (volume_map(fs->volume, logical, n * size, m, &copy, NULL))
			break;
		if (!copy.io)
			continue;
		if (copy.length < n * size || btrkit_io_read(copy.io, copy.physical, run->others, n * size, NULL))
			return false;
		for (size_t i = 0; i < n; i++)
			good[i] = good[i] && !memcmp(run->blocks + i * size, run->others + i * size, size);
	}
	return true;
}

/* Reads all copies at once. If all are good and equal, there is nothing to report. */
static bool read_together(const struct btrkit_fs *fs, struct sweep_run *run, const struct node_ref *refs, size_t n,
			  bool *good)
{
	const size_t size = fs->geometry.nodesize;
	const unsigned first = read_first(fs, refs->bytenr, run->blocks, n * size);

	if (first == SWEEP_COPIES_MAX)
		return false;
	for (size_t i = 0; i < n; i++)
		good[i] = !node_verify(&fs->rules, &refs[i], run->blocks + i * size, NULL);
	return compare_others(fs, run, refs->bytenr, n, first, good);
}

size_t sweep_copies_run(const struct sweep_copies *s, struct sweep_run *run, const struct node_ref *refs, size_t n,
			bool *good)
{
	const size_t size = s->fs->geometry.nodesize, most = in_one_piece(s->fs, refs, n < run->max ? n : run->max);
	const bool together = most && read_together(s->fs, run, refs, most, good);

	n = most ? most : 1;
	for (size_t i = 0; i < n; i++) {
		uint8_t *block = run->blocks + i * size;

		/* Read the block alone to find out which copy is bad and why. */
		if (!together || !good[i])
			good[i] = sweep_copies_block(s, &refs[i], block);
	}
	return n;
}

void sweep_copies_prefetch(const struct btrkit_fs *fs, uint64_t logical, size_t n)
{
	const uint64_t len = (uint64_t)n * fs->geometry.nodesize;
	struct copy copy;

	for (unsigned m = 0; m < SWEEP_COPIES_MAX; m++) {
		for (uint64_t pos = 0; pos < len; pos += copy.length) {
			if (volume_map(fs->volume, logical + pos, len - pos, m, &copy, NULL))
				return;
			if (copy.io && copy.io->ops->prefetch)
				copy.io->ops->prefetch(copy.io, copy.physical, copy.length);
		}
	}
}
