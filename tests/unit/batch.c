// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Batched writes as a recorder sees them: in order and merged; of two overlapping writes the later one wins. Every
 * write fails once in turn.
 */
#include "tests/unit/unit.h"

#include <btrkit/error.h>
#include <btrkit/io.h>

#include "lib/io/batch.h"

#define SIZE 65536u
#define WRITES 64u

/* What has reached the device since the log was last checked. */
struct log {
	struct {
		char what; /* w, f or d */
		uint64_t offset;
		uint64_t len;
	} rows[WRITES];
	size_t n;
	size_t fail_at; /* this call fails */
};

static int note(struct log *log, char what, uint64_t offset, uint64_t len)
{
	assert_true(log->n < WRITES);
	log->rows[log->n].what = what;
	log->rows[log->n].offset = offset;
	log->rows[log->n].len = len;
	return log->n++ == log->fail_at ? -EIO : 0;
}

static int note_write(void *ctx, uint64_t offset, const void *data, size_t len)
{
	assert_non_null(data);
	return note(ctx, 'w', offset, len);
}

static int note_flush(void *ctx)
{
	return note(ctx, 'f', 0, 0);
}

static int note_discard(void *ctx, uint64_t offset, uint64_t len)
{
	return note(ctx, 'd', offset, len);
}

static struct btrkit_io *recorded(struct log *log)
{
	const struct btrkit_io_record_ops ops = { note_write, note_flush, note_discard };
	struct btrkit_io *memory, *io;

	*log = (struct log){ .fail_at = SIZE_MAX };
	assert_int_equal(btrkit_io_memory(SIZE, &memory, NULL), 0);
	assert_int_equal(btrkit_io_record(memory, &ops, log, &io, NULL), 0);
	return io;
}

static struct io_batch *batch(struct btrkit_io *io, size_t budget)
{
	struct io_batch *b;

	assert_int_equal(io_batch_create(io, budget, &b, NULL), 0);
	return b;
}

static int put(struct io_batch *b, uint64_t offset, size_t len, uint8_t fill)
{
	uint8_t bytes[4096];

	assert_true(len <= sizeof(bytes));
	memset(bytes, fill, len);
	return io_batch_write(b, offset, bytes, len, NULL);
}

static void logged(const struct log *log, size_t at, uint64_t offset, uint64_t len)
{
	assert_true(at < log->n);
	assert_int_equal(log->rows[at].what, 'w');
	assert_int_equal(log->rows[at].offset, offset);
	assert_int_equal(log->rows[at].len, len);
}

static void holds(struct btrkit_io *io, uint64_t offset, const char *expected)
{
	char seen[64];

	assert_int_equal(btrkit_io_read(io, offset, seen, strlen(expected), NULL), 0);
	assert_memory_equal(seen, expected, strlen(expected));
}

static void a_recorder_tells_of_every_change(void **state)
{
	struct log log;
	struct btrkit_io *io = recorded(&log);
	uint8_t byte = 1;

	(void)state;
	assert_int_equal(btrkit_io_write(io, 5, &byte, 1, NULL), 0);
	assert_int_equal(btrkit_io_flush(io, NULL), 0);
	assert_int_equal(btrkit_io_discard(io, 7, 9, NULL), 0);
	assert_int_equal(btrkit_io_read(io, 5, &byte, 1, NULL), 0);
	assert_int_equal(log.n, 3);
	logged(&log, 0, 5, 1);
	assert_int_equal(log.rows[1].what, 'f');
	assert_int_equal(log.rows[2].what, 'd');
	assert_int_equal(log.rows[2].offset, 7);
	assert_int_equal(log.rows[2].len, 9);
	/* The recorder runs before the device: a write that it fails must not happen. */
	byte = 2;
	log.fail_at = 3;
	assert_int_equal(btrkit_io_write(io, 5, &byte, 1, NULL), -EIO);
	assert_int_equal(btrkit_io_read(io, 5, &byte, 1, NULL), 0);
	assert_int_equal(byte, 1);
	log.fail_at = 4;
	assert_int_equal(btrkit_io_flush(io, NULL), -EIO);
	log.fail_at = 5;
	assert_int_equal(btrkit_io_discard(io, 5, 1, NULL), -EIO);
	btrkit_io_close(io);
}

static void a_recorder_of_what_is_read_only_refuses(void **state)
{
	const struct btrkit_io_record_ops none = { 0 };
	struct btrkit_io *below, *io;
	char path[] = "/tmp/btrkit-unit-batch.XXXXXX";
	int fd = mkstemp(path);
	uint8_t byte = 1;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(btrkit_io_open(path, BTRKIT_IO_READ, &below, NULL), 0);
	assert_int_equal(btrkit_io_record(below, &none, NULL, &io, NULL), 0);
	remove(path);
	assert_int_equal(btrkit_io_write(io, 0, &byte, 0, NULL), -EROFS);
	assert_int_equal(btrkit_io_flush(io, NULL), -EROFS);
	assert_int_equal(btrkit_io_discard(io, 0, 0, NULL), 0);
	btrkit_io_close(io);
}

static void writes_come_out_in_order_and_merged(void **state)
{
	struct log log;
	struct btrkit_io *io = recorded(&log);
	struct io_batch *b = batch(io, 32768);

	(void)state;
	assert_int_equal(put(b, 3000, 1000, 'c'), 0);
	assert_int_equal(put(b, 50000, 10, 'z'), 0);
	assert_int_equal(put(b, 1000, 1000, 'a'), 0);
	assert_int_equal(put(b, 2000, 1000, 'b'), 0);
	assert_int_equal(put(b, 4001, 1, 'd'), 0);
	assert_int_equal(put(b, 50010, 0, 'z'), 0);
	assert_int_equal(log.n, 0);
	assert_int_equal(io_batch_drain(b, NULL), 0);
	assert_int_equal(log.n, 3);
	logged(&log, 0, 1000, 3000);
	logged(&log, 1, 4001, 1);
	logged(&log, 2, 50000, 10);
	holds(io, 1999, "ab");
	holds(io, 2999, "bc");
	holds(io, 50000, "zzzzzzzzzz");
	assert_int_equal(io_batch_drain(b, NULL), 0);
	assert_int_equal(log.n, 3);
	io_batch_destroy(b);
	btrkit_io_close(io);
}

static void the_latest_write_of_a_byte_wins(void **state)
{
	struct log log;
	struct btrkit_io *io = recorded(&log);
	struct io_batch *b = batch(io, 32768);

	(void)state;
	assert_int_equal(put(b, 106, 4, 'x'), 0);
	assert_int_equal(put(b, 100, 8, 'a'), 0);
	assert_int_equal(put(b, 102, 2, 'b'), 0);
	assert_int_equal(put(b, 100, 1, 'c'), 0);
	assert_int_equal(put(b, 101, 2, 'd'), 0);
	assert_int_equal(io_batch_drain(b, NULL), 0);
	assert_int_equal(log.n, 1);
	logged(&log, 0, 100, 10);
	holds(io, 100, "cddbaaaaxx");
	/* A write inside a later one is dropped; a write that extends past the next one is not. */
	assert_int_equal(put(b, 203, 2, 'i'), 0);
	assert_int_equal(put(b, 200, 10, 'o'), 0);
	assert_int_equal(put(b, 208, 1, 'p'), 0);
	assert_int_equal(put(b, 210, 1, 'q'), 0);
	assert_int_equal(io_batch_drain(b, NULL), 0);
	assert_int_equal(log.n, 2);
	holds(io, 200, "oooooooopoq");
	io_batch_destroy(b);
	btrkit_io_close(io);
}

static void a_full_queue_is_written_out(void **state)
{
	struct log log;
	struct btrkit_io *io = recorded(&log);
	struct io_batch *b = batch(io, 3000);

	(void)state;
	assert_int_equal(put(b, 20000, 1000, 1), 0);
	assert_int_equal(put(b, 10000, 1000, 2), 0);
	assert_int_equal(log.n, 0);
	assert_int_equal(put(b, 0, 1000, 3), 0);
	assert_int_equal(log.n, 2);
	logged(&log, 0, 10000, 1000);
	logged(&log, 1, 20000, 1000);
	/* A write larger than the queue: the queued writes go out before it. */
	assert_int_equal(put(b, 500, 4000, 4), 0);
	assert_int_equal(log.n, 4);
	logged(&log, 2, 0, 1000);
	logged(&log, 3, 500, 4000);
	/* The number of small writes in the queue is bounded too. */
	for (unsigned i = 0; i < 1000; i++)
		assert_int_equal(put(b, 60000 - i, 1, 5), 0);
	assert_true(log.n > 4);
	io_batch_destroy(b);
	btrkit_io_close(io);
}

static void nothing_is_queued_past_the_end(void **state)
{
	struct log log;
	struct btrkit_io *io = recorded(&log);
	struct io_batch *b = batch(io, 3000);

	(void)state;
	assert_int_equal(put(b, SIZE - 1, 1, 1), 0);
	assert_int_equal(put(b, SIZE, 1, 1), -ENOSPC);
	assert_int_equal(put(b, UINT64_MAX, 2, 1), -ENOSPC);
	assert_int_equal(io_batch_drain(b, NULL), 0);
	assert_int_equal(log.n, 1);
	io_batch_destroy(b);
	btrkit_io_close(io);
}

/* A failed write ends the run: nothing after it is written, and a later drain does not retry it. */
static void every_failing_write_is_told(void **state)
{
	(void)state;
	for (size_t at = 0; at < 4; at++) {
		struct btrkit_error err = BTRKIT_ERROR_INIT;
		struct log log;
		struct btrkit_io *io = recorded(&log);
		struct io_batch *b = batch(io, 32768);

		log.fail_at = at;
		for (unsigned i = 4; i--;)
			assert_int_equal(put(b, 1000 * i, 10, 1), 0);
		assert_int_equal(io_batch_drain(b, &err), -EIO);
		assert_int_equal(err.code, BTRKIT_IO);
		assert_int_equal(log.n, at + 1);
		assert_int_equal(io_batch_drain(b, NULL), 0);
		assert_int_equal(log.n, at + 1);
		io_batch_destroy(b);
		btrkit_io_close(io);
	}
	assert_null(io_batch_destroy(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_recorder_tells_of_every_change),
		cmocka_unit_test(a_recorder_of_what_is_read_only_refuses),
		cmocka_unit_test(writes_come_out_in_order_and_merged),
		cmocka_unit_test(the_latest_write_of_a_byte_wins),
		cmocka_unit_test(a_full_queue_is_written_out),
		cmocka_unit_test(nothing_is_queued_past_the_end),
		cmocka_unit_test(every_failing_write_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
