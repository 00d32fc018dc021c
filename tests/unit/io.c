// SPDX-License-Identifier: LGPL-2.1-or-later
/* All backends keep the same contract: the same tests run on each. */
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config.h"

#include <btrkit/error.h>
#include <btrkit/io.h>
#include <btrkit/undo.h>

#define SIZE 100000u

static char path[] = "/tmp/btrkit-unit-io.XXXXXX";

/* A writable device of SIZE zero bytes. */
typedef struct btrkit_io *(*make_fn)(void);

static struct btrkit_io *make_memory(void)
{
	struct btrkit_io *io;

	assert_int_equal(btrkit_io_memory(SIZE, &io, NULL), 0);
	return io;
}

static struct btrkit_io *open_spec(const char *spec, unsigned flags)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_io *io = NULL;

	if (btrkit_io_open(spec, flags, &io, &err))
		fail_msg("%s: %s", spec, err.message);
	return io;
}

static void empty_file(off_t size)
{
	assert_int_equal(truncate(path, 0), 0);
	assert_int_equal(truncate(path, size), 0);
}

static struct btrkit_io *make_file(void)
{
	empty_file(SIZE);
	return open_spec(path, BTRKIT_IO_WRITE);
}

static struct btrkit_io *part_of_file(void)
{
	char spec[sizeof(path) + 64];

	snprintf(spec, sizeof(spec), "%s?offset=%u&size=%u", path, SIZE + 1, SIZE);
	return open_spec(spec, BTRKIT_IO_WRITE);
}

static struct btrkit_io *make_part(void)
{
	empty_file(3 * SIZE);
	return part_of_file();
}

static struct btrkit_io *make_fault_free(void)
{
	const struct btrkit_io_faults none = BTRKIT_IO_FAULTS_INIT;
	struct btrkit_io *io;

	assert_int_equal(btrkit_io_fault(make_memory(), &none, &io, NULL), 0);
	return io;
}

static struct btrkit_io *make_recorded(void)
{
	const struct btrkit_io_record_ops none = { 0 };
	struct btrkit_io *io;

	assert_int_equal(btrkit_io_record(make_memory(), &none, NULL, &io, NULL), 0);
	return io;
}

static void what_is_written_is_read(struct btrkit_io *io)
{
	uint8_t out[5000], in[5000];

	assert_int_equal(io->size, SIZE);
	for (size_t i = 0; i < sizeof(out); i++)
		out[i] = (uint8_t)(i * 7 + 1);
	assert_int_equal(btrkit_io_write(io, 12345, out, sizeof(out), NULL), 0);
	assert_int_equal(btrkit_io_flush(io, NULL), 0);
	assert_int_equal(btrkit_io_read(io, 12345, in, sizeof(in), NULL), 0);
	assert_memory_equal(in, out, sizeof(in));
	assert_int_equal(btrkit_io_read(io, 12344, in, 2, NULL), 0);
	assert_int_equal(in[0], 0);
	assert_int_equal(in[1], 1);
	if (io->ops->prefetch)
		io->ops->prefetch(io, 0, SIZE);
}

static void nothing_past_the_end(struct btrkit_io *io)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	uint8_t bytes[16] = { 0 };

	assert_int_equal(btrkit_io_read(io, SIZE - 16, bytes, 16, NULL), 0);
	assert_int_equal(btrkit_io_read(io, SIZE, bytes, 0, NULL), 0);
	assert_int_equal(btrkit_io_read(io, SIZE - 15, bytes, 16, &err), -ENXIO);
	assert_int_equal(err.code, BTRKIT_TRUNCATED);
	assert_int_equal(btrkit_io_read(io, UINT64_MAX - 8, bytes, 16, NULL), -ENXIO);
	assert_int_equal(btrkit_io_read(io, 0, bytes, SIZE_MAX, NULL), -ENXIO);
	assert_int_equal(btrkit_io_write(io, SIZE - 16, bytes, 16, NULL), 0);
	assert_int_equal(btrkit_io_write(io, SIZE - 15, bytes, 16, &err), -ENOSPC);
	assert_int_equal(btrkit_io_write(io, UINT64_MAX - 8, bytes, 16, NULL), -ENOSPC);
}

static void what_is_discarded_is_gone(struct btrkit_io *io)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	uint8_t bytes[300], seen[300];

	memset(bytes, 7, sizeof(bytes));
	assert_int_equal(btrkit_io_write(io, 50000, bytes, sizeof(bytes), NULL), 0);
	assert_int_equal(btrkit_io_discard(io, 50100, 100, NULL), 0);
	assert_int_equal(btrkit_io_read(io, 50000, seen, sizeof(seen), NULL), 0);
	memset(bytes + 100, 0, 100);
	assert_memory_equal(seen, bytes, sizeof(seen));
	assert_int_equal(btrkit_io_discard(io, 0, SIZE, NULL), 0);
	assert_int_equal(btrkit_io_discard(io, SIZE, 0, NULL), 0);
	assert_int_equal(btrkit_io_discard(io, 1, SIZE, &err), -ENOSPC);
	assert_int_equal(err.code, BTRKIT_NO_SPACE);
	assert_int_equal(btrkit_io_discard(io, UINT64_MAX, 2, NULL), -ENOSPC);
}

static void every_backend(void (*body)(struct btrkit_io *))
{
	static const make_fn makers[] = { make_memory, make_file, make_part, make_fault_free, make_recorded };

	for (size_t i = 0; i < ARRAY_SIZE(makers); i++) {
		struct btrkit_io *io = makers[i]();

		body(io);
		assert_null(btrkit_io_close(io));
	}
}

static void written_is_read(void **state)
{
	(void)state;
	every_backend(what_is_written_is_read);
}

static void ends_are_kept(void **state)
{
	(void)state;
	every_backend(nothing_past_the_end);
}

static void discarded_is_gone(void **state)
{
	(void)state;
	every_backend(what_is_discarded_is_gone);
}

/* The bytes before and after the part must not change. */
static void a_discard_stays_in_its_part(void **state)
{
	struct btrkit_io *whole, *part;
	uint8_t byte = 9, seen[2];

	(void)state;
	btrkit_io_close(make_part());
	whole = open_spec(path, BTRKIT_IO_WRITE);
	assert_int_equal(btrkit_io_write(whole, SIZE, &byte, 1, NULL), 0);
	assert_int_equal(btrkit_io_write(whole, 2 * SIZE + 1, &byte, 1, NULL), 0);
	part = part_of_file();
	assert_int_equal(btrkit_io_discard(part, 0, SIZE, NULL), 0);
	assert_int_equal(btrkit_io_read(whole, SIZE, seen, 1, NULL), 0);
	assert_int_equal(btrkit_io_read(whole, 2 * SIZE + 1, seen + 1, 1, NULL), 0);
	assert_int_equal(seen[0], 9);
	assert_int_equal(seen[1], 9);
	btrkit_io_close(part);
	btrkit_io_close(whole);
}

static blkcnt_t blocks_of_file(void)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_blocks;
}

/* Data becomes a hole; but an allocation without data was made on purpose, and stays. */
static void a_discard_of_a_file_keeps_what_was_allocated(void **state)
{
	static const uint8_t data[65536] = { 1 };
	struct btrkit_io *io;
	blkcnt_t allocated;
	int fd;

	(void)state;
	empty_file(1 << 20);
	io = open_spec(path, BTRKIT_IO_WRITE);
	assert_int_equal(btrkit_io_write(io, 65536, data, sizeof(data), NULL), 0);
	assert_int_equal(btrkit_io_flush(io, NULL), 0);
	assert_true(blocks_of_file() >= 128);
	assert_int_equal(btrkit_io_discard(io, 0, 1 << 20, NULL), 0);
	assert_int_equal(blocks_of_file(), 0);
	fd = open(path, O_RDWR);
	if (!fallocate(fd, 0, 0, 1 << 20)) {
		allocated = blocks_of_file();
		assert_int_equal(btrkit_io_discard(io, 0, 1 << 20, NULL), 0);
		assert_int_equal(blocks_of_file(), allocated);
	}
	close(fd);
	btrkit_io_close(io);
}

static void close_takes_null(void **state)
{
	(void)state;
	assert_null(btrkit_io_close(NULL));
}

static void a_part_is_where_it_was_said_to_be(void **state)
{
	uint8_t bytes[4] = "part", seen[4];
	struct btrkit_io *part = make_part(), *whole;

	(void)state;
	assert_int_equal(btrkit_io_write(part, 10, bytes, 4, NULL), 0);
	whole = open_spec(path, 0);
	assert_int_equal(btrkit_io_read(whole, SIZE + 11, seen, 4, NULL), 0);
	assert_memory_equal(seen, bytes, 4);
	btrkit_io_close(part);
	btrkit_io_close(whole);
}

static void a_device_opened_to_read_refuses_writes(void **state)
{
	struct btrkit_io *io;
	uint8_t byte = 1;

	(void)state;
	empty_file(SIZE);
	io = open_spec(path, 0);
	assert_int_equal(btrkit_io_write(io, 0, &byte, 1, NULL), -EROFS);
	assert_int_equal(btrkit_io_flush(io, NULL), -EROFS);
	assert_int_equal(btrkit_io_discard(io, 0, 1, NULL), -EROFS);
	btrkit_io_close(io);
}

static void a_file_that_shrinks_is_truncated(void **state)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_io *io;
	uint8_t bytes[16];

	(void)state;
	empty_file(SIZE);
	io = open_spec(path, 0);
	assert_int_equal(truncate(path, 100), 0);
	assert_int_equal(btrkit_io_read(io, 90, bytes, 16, &err), -ENXIO);
	assert_int_equal(err.code, BTRKIT_TRUNCATED);
	btrkit_io_close(io);
}

static void refused(const char *spec, unsigned flags, int errnum, enum btrkit_code code)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_io *io = NULL;

	assert_int_equal(btrkit_io_open(spec, flags, &io, &err), -errnum);
	assert_int_equal(err.code, code);
	assert_true(err.message[0]);
	assert_null(io);
}

static void what_is_no_device_is_refused(void **state)
{
	char fifo[] = "/tmp/btrkit-unit-fifo.XXXXXX";
	int fd = mkstemp(fifo);

	(void)state;
	refused("/tmp", 0, EMEDIUMTYPE, BTRKIT_NOT_BTRFS);
	refused("/dev/null", 0, EINVAL, BTRKIT_INVALID);
	refused("/nonexistent/file", 0, ENOENT, BTRKIT_NOT_FOUND);
	refused("/tmp", BTRKIT_IO_WRITE, EINVAL, BTRKIT_INVALID);
	refused(path, 1u << 7, EINVAL, BTRKIT_INVALID);
	/* This fifo has no writer: opening it must not block. */
	assert_true(fd >= 0);
	close(fd);
	unlink(fifo);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	refused(fifo, 0, EINVAL, BTRKIT_INVALID);
	unlink(fifo);
}

/* Only one exclusive user at a time, even for different parts of the file. */
static void an_exclusive_device_is_one_writers(void **state)
{
	const unsigned flags = BTRKIT_IO_WRITE | BTRKIT_IO_EXCLUSIVE;
	char spec[sizeof(path) + 64];
	struct btrkit_io *io;

	(void)state;
	empty_file(SIZE);
	snprintf(spec, sizeof(spec), "%s?offset=4096", path);
	io = open_spec(path, flags);
	refused(path, flags, EBUSY, BTRKIT_BUSY);
	refused(spec, flags, EBUSY, BTRKIT_BUSY);
	btrkit_io_close(open_spec(path, BTRKIT_IO_READ));
	btrkit_io_close(io);
	io = open_spec(spec, flags);
	refused(path, flags, EBUSY, BTRKIT_BUSY);
	btrkit_io_close(io);
	btrkit_io_close(open_spec(path, flags));
	/* Readers do not prevent exclusive access. */
	io = open_spec(path, BTRKIT_IO_EXCLUSIVE);
	btrkit_io_close(open_spec(path, BTRKIT_IO_EXCLUSIVE));
	btrkit_io_close(open_spec(path, flags));
	btrkit_io_close(io);
}

static int signature_of(const char *spec, char *type, size_t size)
{
	struct btrkit_io *io = open_spec(spec, BTRKIT_IO_READ);
	int ret = btrkit_io_signature(io, type, size, NULL);

	btrkit_io_close(io);
	return ret;
}

/* An ext2 superblock is recognized by its magic, but only inside the chosen part. */
static void signatures_are_found(void **state)
{
	char spec[sizeof(path) + 64], type[16] = "x";
	const uint8_t magic[] = { 0x53, 0xef };
	struct btrkit_io *io;

	(void)state;
	empty_file(3 * SIZE);
#ifdef HAVE_BLKID
	assert_int_equal(signature_of(path, type, sizeof(type)), 0);
	assert_string_equal(type, "");
	snprintf(spec, sizeof(spec), "%s?offset=%u", path, SIZE);
	io = open_spec(spec, BTRKIT_IO_WRITE);
	assert_int_equal(btrkit_io_write(io, 1024 + 56, magic, sizeof(magic), NULL), 0);
	btrkit_io_close(io);
	assert_int_equal(signature_of(path, type, sizeof(type)), 0);
	assert_int_equal(signature_of(spec, type, sizeof(type)), 1);
	assert_string_equal(type, "ext2");
	assert_int_equal(signature_of(spec, type, 3), 1);
	assert_string_equal(type, "ex");
	empty_file(0);
	assert_int_equal(signature_of(path, type, sizeof(type)), 0);
#else
	(void)spec;
	(void)magic;
	assert_int_equal(signature_of(path, type, sizeof(type)), -EOPNOTSUPP);
#endif
	io = make_memory();
	assert_int_equal(btrkit_io_signature(io, type, sizeof(type), NULL), -EOPNOTSUPP);
	btrkit_io_close(io);
}

static void an_impossible_memory_is_refused(void **state)
{
	struct btrkit_io *io = NULL;

	(void)state;
	assert_int_equal(btrkit_io_memory(0, &io, NULL), -EINVAL);
	assert_int_equal(btrkit_io_memory(UINT64_MAX, &io, NULL), -EINVAL);
	assert_null(io);
}

static void faults_come_when_told(void **state)
{
	struct btrkit_io_faults faults = BTRKIT_IO_FAULTS_INIT;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_io *io;
	uint8_t bytes[8] = { 0 };

	(void)state;
	faults.fail_read_after = 2;
	faults.fail_write_after = 1;
	assert_int_equal(btrkit_io_fault(make_memory(), &faults, &io, NULL), 0);
	assert_int_equal(btrkit_io_read(io, 0, bytes, 8, NULL), 0);
	assert_int_equal(btrkit_io_write(io, 0, bytes, 8, NULL), 0);
	assert_int_equal(btrkit_io_write(io, 0, bytes, 8, &err), -EIO);
	assert_int_equal(err.code, BTRKIT_IO);
	assert_int_equal(btrkit_io_flush(io, NULL), -EIO);
	assert_int_equal(btrkit_io_read(io, 0, bytes, 8, NULL), 0);
	assert_int_equal(btrkit_io_read(io, 0, bytes, 8, &err), -EIO);
	assert_int_equal(btrkit_io_read(io, 0, bytes, 8, NULL), -EIO);
	btrkit_io_close(io);

	faults.error = -ENOSPC;
	faults.fail_write_after = 0;
	assert_int_equal(btrkit_io_fault(make_memory(), &faults, &io, NULL), 0);
	assert_int_equal(btrkit_io_write(io, 0, bytes, 8, NULL), -ENOSPC);
	btrkit_io_close(io);
}

/* Any errno of a failing device is reported as an I/O error, since it would mean something else to the caller. */
static void a_device_that_fails_is_told_as_such(void **state)
{
	static const int errors[] = { -EAGAIN, -ENOENT, -EEXIST, -EINVAL, -EACCES, -ENODEV, -ENODATA };
	struct btrkit_io_faults faults = { 0, 0, UINT64_MAX, 0, { 0 } };
	uint8_t bytes[8] = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
		struct btrkit_error err = BTRKIT_ERROR_INIT;
		struct btrkit_io *io;

		faults.error = errors[i];
		assert_int_equal(btrkit_io_fault(make_memory(), &faults, &io, NULL), 0);
		assert_int_equal(btrkit_io_read(io, 0, bytes, 8, &err), -EIO);
		assert_true(err.code == BTRKIT_IO && err.err == -EIO);
		assert_non_null(strstr(err.message, strerror(-errors[i])));
		assert_int_equal(btrkit_io_write(io, 0, bytes, 8, NULL), -EIO);
		assert_int_equal(btrkit_io_flush(io, NULL), -EIO);
		btrkit_io_close(io);
	}
}

static void a_fault_backend_truncates(void **state)
{
	struct btrkit_io_faults faults = BTRKIT_IO_FAULTS_INIT;
	struct btrkit_io *io;
	uint8_t bytes[8];

	(void)state;
	faults.truncate_at = 100;
	assert_int_equal(btrkit_io_fault(make_memory(), &faults, &io, NULL), 0);
	assert_int_equal(io->size, 100);
	assert_int_equal(btrkit_io_read(io, 92, bytes, 8, NULL), 0);
	assert_int_equal(btrkit_io_read(io, 93, bytes, 8, NULL), -ENXIO);
	btrkit_io_close(io);
}

static int create_file(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	if (fd < 0)
		return -1;
	close(fd);
	return 0;
}

static int remove_file(void **state)
{
	(void)state;
	return unlink(path);
}

/* A backend of an application, which sets its own error message. */
struct talker {
	struct btrkit_io io;
	bool broken;
};

#define LOOSE "the cable is loose"

static int talker_read(struct btrkit_io *io, uint64_t offset, void *buf, size_t len)
{
	(void)offset;
	memset(buf, 0, len);
	return ((struct talker *)io)->broken ? -EIO : 0;
}

static int talker_write(struct btrkit_io *io, uint64_t offset, const void *buf, size_t len)
{
	(void)offset;
	(void)buf;
	(void)len;
	return ((struct talker *)io)->broken ? -EIO : 0;
}

static int talker_flush(struct btrkit_io *io)
{
	return ((struct talker *)io)->broken ? -EIO : 0;
}

static int talker_range(struct btrkit_io *io, uint64_t offset, uint64_t len)
{
	(void)offset;
	(void)len;
	return ((struct talker *)io)->broken ? -EIO : 0;
}

static void talker_explain(struct btrkit_io *io, struct btrkit_error *err)
{
	(void)io;
	snprintf(err->message, sizeof(err->message), LOOSE);
}

static void talker_close(struct btrkit_io *io)
{
	(void)io;
}

static const struct btrkit_io_ops talker_ops = {
	.read = talker_read,
	.write = talker_write,
	.flush = talker_flush,
	.reserve = talker_range,
	.explain = talker_explain,
	.close = talker_close,
};

static void expect_explained(struct btrkit_io *io)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	char byte = 0;

	assert_int_equal(btrkit_io_read(io, 0, &byte, 1, &err), -EIO);
	assert_string_equal(err.message, LOOSE);
	err = (struct btrkit_error)BTRKIT_ERROR_INIT;
	assert_int_equal(btrkit_io_reserve(io, 0, 1, &err), -EIO);
	assert_string_equal(err.message, LOOSE);
	err = (struct btrkit_error)BTRKIT_ERROR_INIT;
	assert_int_equal(btrkit_io_flush(io, &err), -EIO);
	assert_string_equal(err.message, LOOSE);
}

static int refuse_flush(void *ctx)
{
	(void)ctx;
	return -EIO;
}

static void what_lies_below_explains(void **state)
{
	const struct btrkit_io_record_ops heard = { 0 }, deaf = { .flush = refuse_flush };
	struct btrkit_io_faults faults = BTRKIT_IO_FAULTS_INIT;
	struct talker talker = { .io = { .ops = &talker_ops, .size = SIZE } };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_io *io, *below = &talker.io;
	char byte, undo[sizeof(path) + 8];

	(void)state;
	assert_int_equal(btrkit_io_record(below, &heard, NULL, &io, NULL), 0);
	talker.broken = true;
	expect_explained(io);
	btrkit_io_close(io);
	assert_int_equal(btrkit_io_record(below, &deaf, NULL, &io, NULL), 0);
	assert_int_equal(btrkit_io_flush(io, &err), -EIO);
	assert_string_equal(err.message, "cannot flush: Input/output error");
	btrkit_io_close(io);
	assert_int_equal(btrkit_io_fault(below, &faults, &io, NULL), 0);
	expect_explained(io);
	btrkit_io_close(io);
	/* Errors that the wrapper injects itself have a generic message. */
	faults.fail_read_after = 0;
	assert_int_equal(btrkit_io_fault(below, &faults, &io, NULL), 0);
	assert_int_equal(btrkit_io_read(io, 0, &byte, 1, &err), -EIO);
	assert_string_equal(err.message, "cannot read 1 bytes at 0: Input/output error");
	assert_int_equal(btrkit_io_flush(io, &err), -EIO);
	assert_string_equal(err.message, LOOSE);
	btrkit_io_close(io);
	talker.broken = false;
	snprintf(undo, sizeof(undo), "%s.undo", path);
	unlink(undo);
	assert_int_equal(btrkit_io_undo(&below, 1, undo, 0, &io, NULL), 0);
	talker.broken = true;
	expect_explained(io);
	btrkit_io_close(io);
	unlink(undo);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(written_is_read),
		cmocka_unit_test(ends_are_kept),
		cmocka_unit_test(discarded_is_gone),
		cmocka_unit_test(a_discard_stays_in_its_part),
		cmocka_unit_test(a_discard_of_a_file_keeps_what_was_allocated),
		cmocka_unit_test(close_takes_null),
		cmocka_unit_test(a_part_is_where_it_was_said_to_be),
		cmocka_unit_test(a_device_opened_to_read_refuses_writes),
		cmocka_unit_test(a_file_that_shrinks_is_truncated),
		cmocka_unit_test(what_is_no_device_is_refused),
		cmocka_unit_test(an_exclusive_device_is_one_writers),
		cmocka_unit_test(signatures_are_found),
		cmocka_unit_test(an_impossible_memory_is_refused),
		cmocka_unit_test(faults_come_when_told),
		cmocka_unit_test(a_device_that_fails_is_told_as_such),
		cmocka_unit_test(a_fault_backend_truncates),
		cmocka_unit_test(what_lies_below_explains),
	};

	return cmocka_run_group_tests(tests, create_file, remove_file);
}
