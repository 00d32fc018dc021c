// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Damage to one copy of one block, or a read error in it, is reported for that copy and block only, wherever the block
 * is in a read request for several.
 */
#include "tests/unit/unit.h"

#include <btrkit/btrkit.h>
#include <errno.h>
#include <pthread.h>

#include "tests/crash/sparse.h"

#define SIZE (256ull << 20)
#define READS_MAX 64
#define THREADS 3

/* A device that records the reads of several blocks, and that fails reads of a given range. */
struct disk {
	struct btrkit_io io;
	struct btrkit_io *below;
	uint32_t nodesize;
	uint64_t lost, lost_len;
	bool only_blocks; /* reads of more than one block fail */
	pthread_mutex_t lock;
	struct {
		uint64_t at, len;
	} reads[READS_MAX];
	size_t num_reads;
};

static int disk_read(struct btrkit_io *io, uint64_t offset, void *buf, size_t len)
{
	struct disk *d = (struct disk *)io;

	pthread_mutex_lock(&d->lock);
	if (len > d->nodesize && d->num_reads < READS_MAX) {
		d->reads[d->num_reads].at = offset;
		d->reads[d->num_reads++].len = len;
	}
	pthread_mutex_unlock(&d->lock);
	if (d->only_blocks && len > d->nodesize)
		return -EIO;
	if (d->lost_len && offset < d->lost + d->lost_len && d->lost < offset + len)
		return -EIO;
	return btrkit_io_read(d->below, offset, buf, len, NULL);
}

static void disk_close(struct btrkit_io *io)
{
	(void)io;
}

static const struct btrkit_io_ops disk_ops = { .read = disk_read, .close = disk_close };

/* The finding; there should be only one. */
struct found {
	unsigned n;
	char code[64];
	uint64_t physical;
};

static int note(void *ctx, const struct btrkit_finding *f)
{
	struct found *found = ctx;

	found->n++;
	snprintf(found->code, sizeof(found->code), "%s", f->code->name);
	found->physical = f->what.physical;
	return 0;
}

static struct found check_disk(struct disk *d)
{
	struct btrkit_open_options how = BTRKIT_OPEN_OPTIONS_INIT;
	struct btrkit_check_options opts = BTRKIT_CHECK_OPTIONS_INIT;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct found found = { .n = 0 };
	struct btrkit_io *io = &d->io;
	struct btrkit_fs *fs;

	how.flags = BTRKIT_OPEN_PARTIAL;
	assert_int_equal(btrkit_fs_open(&io, 1, &how, &fs, &err), 0);
	/* Record only what the check itself reads, not the opening. */
	d->num_reads = 0;
	opts.threads = THREADS;
	opts.finding = note;
	opts.ctx = &found;
	assert_int_equal(btrkit_check(fs, &opts, NULL, &err), 0);
	btrkit_fs_close(fs);
	return found;
}

static void expect_copy(const struct found *found, uint64_t physical)
{
	assert_int_equal(found->n, 1);
	assert_string_equal(found->code, "BTR-BLOCK-COPY");
	assert_int_equal(found->physical, physical);
}

/* Damage each block of a request, and make each block unreadable. @return the number of blocks */
static unsigned try_blocks(struct disk *d, struct sparse *s, uint64_t at, uint64_t len)
{
	struct found found;
	unsigned n = 0;

	for (uint64_t pos = at; pos < at + len; pos += d->nodesize, n++) {
		const uint64_t middle = pos + d->nodesize / 2;
		uint8_t byte;

		sparse_read(s, middle, &byte, 1);
		byte ^= 1;
		sparse_write(s, middle, &byte, 1);
		found = check_disk(d);
		expect_copy(&found, pos);
		byte ^= 1;
		sparse_write(s, middle, &byte, 1);

		d->lost = middle;
		d->lost_len = 512;
		found = check_disk(d);
		expect_copy(&found, pos);
		d->lost_len = 0;
	}
	return n;
}

static void make(struct disk *d, struct sparse *s, uint32_t nodesize)
{
	struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_io *io = sparse_io(s);

	o.nodesize = nodesize;
	o.metadata = BTRKIT_PROFILE_DUP;
	assert_int_equal(btrkit_mkfs(&io, 1, &o, NULL, &err), 0);
	*d = (struct disk){ .io = { .ops = &disk_ops, .size = SIZE, .name = "disk" },
			    .below = sparse_io(s),
			    .nodesize = nodesize };
	pthread_mutex_init(&d->lock, NULL);
}

static void a_copy_of_one_of_many(void **state)
{
	static const uint32_t sizes[] = { 4096, 16384, 65536 };

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct sparse *s = sparse_create(SIZE, NULL);
		struct disk d, before;
		unsigned n = 0;
		size_t num;

		make(&d, s, sizes[i]);
		assert_int_equal(check_disk(&d).n, 0);
		num = d.num_reads;
		/* At least one request for each copy. */
		assert_true(num >= 2);
		assert_true(num < READS_MAX);
		before = d;
		for (size_t r = 0; r < num; r++)
			n += try_blocks(&d, s, before.reads[r].at, before.reads[r].len);
		assert_true(n >= 8);
		pthread_mutex_destroy(&d.lock);
		sparse_free(s);
	}
}

/* Long reads fail, but each block can be read by itself, as after a transient error. */
static void only_one_by_one(void **state)
{
	struct sparse *s = sparse_create(SIZE, NULL);
	struct disk d;

	(void)state;
	make(&d, s, 16384);
	d.only_blocks = true;
	assert_int_equal(check_disk(&d).n, 0);
	assert_true(d.num_reads > 0);
	pthread_mutex_destroy(&d.lock);
	sparse_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_copy_of_one_of_many),
		cmocka_unit_test(only_one_by_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
