// SPDX-License-Identifier: LGPL-2.1-or-later
/* An undo file that cannot be created or written, a device that fails, and lack of memory. */
#include "tests/unit/undo_rig.h"

#include <sys/stat.h>
#include <unistd.h>

#include "lib/io/file.h"
#include "tests/unit/memory.h"

static void a_failing_file_keeps_the_device(void **state)
{
	static const int errors[] = { -EIO, -ENOSPC };
	struct rig r;

	(void)state;
	for (unsigned i = 0; i < 2 * 40; i++) {
		struct btrkit_error err = BTRKIT_ERROR_INIT;
		uint8_t bytes[30000] = { 1 };
		unsigned writes;
		int ret;

		rig_seed(7);
		ret = rig_start(&r, 70 * MIB, i / 2, errors[i % 2], &err);
		for (unsigned j = 0; !ret && j < 30; j++) {
			bytes[1] = (uint8_t)j;
			ret = btrkit_io_write(r.io, (uint64_t)j * 2 * MIB, bytes, sizeof(bytes), &err);
			if (!ret && j % 3 == 2)
				ret = btrkit_io_flush(r.io, &err);
		}
		if (!ret) {
			/* There are ten steps, each of which is a write and a flush. */
			assert_int_equal(r.calls, 20);
			assert_int_equal(i / 2, 20);
			rig_end(&r);
			return;
		}
		assert_int_equal(ret, errors[i % 2]);
		assert_memory_equal(err.message, "undo file the-file: cannot ", 27);
		/* After that nothing more is written, and what was written can be undone. */
		writes = r.device_writes;
		if (r.io) {
			assert_int_equal(btrkit_io_flush(r.io, NULL), ret);
			assert_int_equal(btrkit_io_write(r.io, 0, bytes, 10, &err), ret);
			assert_memory_equal(err.message, "undo file the-file: cannot ", 27);
			rig_close(&r);
		}
		assert_int_equal(r.device_writes, writes);
		if (writes)
			rig_must_undo(&r, r.device);
		else
			assert_true(sparse_equal(r.device, r.before));
		rig_end(&r);
	}
	fail();
}

static void a_failing_device_is_told_of(void **state)
{
	(void)state;
	for (uint64_t k = 0; k < 20; k++) {
		struct btrkit_io_faults faults = BTRKIT_IO_FAULTS_INIT;
		struct btrkit_error err = BTRKIT_ERROR_INIT;
		struct sparse *device = sparse_create(MIB, NULL), *file = sparse_create(1ull << 40, NULL);
		uint8_t bytes[9000] = { 1 };
		struct btrkit_io *io, *below;
		struct undo_log *log;
		int ret;

		if (k % 2)
			faults.fail_read_after = k / 2;
		else
			faults.fail_write_after = k / 2;
		assert_int_equal(btrkit_io_fault(sparse_io(device), &faults, &below, NULL), 0);
		assert_int_equal(undo_log_create(sparse_io(file), &log, NULL), 0);
		ret = undo_io_create(log, below, &io, &err);
		if (ret) {
			btrkit_io_close(below);
			undo_log_drop(log);
		} else {
			ret = btrkit_io_write(io, 100, bytes, 9000, &err);
			if (!ret)
				ret = btrkit_io_flush(io, &err);
			if (!ret)
				ret = btrkit_io_write(io, 70000, bytes, 9000, &err);
			if (!ret)
				ret = btrkit_io_flush(io, &err);
			undo_log_drop(log);
			btrkit_io_close(io);
		}
		assert_int_equal(ret, k / 2 < (k % 2 ? 8 : 4) ? -EIO : 0);
		if (ret)
			assert_non_null(strstr(err.message, k == 2 || k == 6 ? "cannot flush" : " bytes at "));
		sparse_free(file);
		sparse_free(device);
	}
}

static int fail_once(void *ctx, uint64_t offset, const void *data, size_t len)
{
	bool *failed = ctx;

	(void)offset;
	(void)data;
	(void)len;
	if (*failed)
		return 0;
	*failed = true;
	return -EIO;
}

/* A flush must report failures of earlier queued writes, even if a write already did. */
static void a_flush_tells_of_what_was_lost(void **state)
{
	static const struct btrkit_io_record_ops ops = { .write = fail_once };
	static const uint8_t bytes[MIB] = { 1 };
	struct sparse *device = sparse_create(16 * MIB, NULL), *file = sparse_create(1ull << 40, NULL);
	struct btrkit_error first = BTRKIT_ERROR_INIT, err = BTRKIT_ERROR_INIT;
	struct btrkit_io *below, *io;
	struct undo_log *log;
	bool failed = false;
	unsigned i;

	(void)state;
	assert_int_equal(btrkit_io_record(sparse_io(device), &ops, &failed, &below, NULL), 0);
	assert_int_equal(undo_log_create(sparse_io(file), &log, NULL), 0);
	assert_int_equal(undo_io_create(log, below, &io, NULL), 0);
	undo_log_drop(log);
	/* Writes are queued until there is no more room. */
	for (i = 0; i < 16 && !btrkit_io_write(io, i * (uint64_t)MIB, bytes, sizeof(bytes), &first); i++)
		;
	assert_in_range(i, 1, 15);
	assert_true(failed);
	assert_int_equal(first.err, -EIO);
	assert_int_equal(btrkit_io_flush(io, &err), -EIO);
	assert_string_equal(err.message, first.message);
	assert_int_equal(btrkit_io_write(io, 0, bytes, 10, &err), -EIO);
	assert_string_equal(err.message, first.message);
	assert_int_equal(btrkit_io_flush(io, NULL), -EIO);
	btrkit_io_close(io);
	sparse_free(file);
	sparse_free(device);
}

/* Number of calls of a device or file that succeed. */
struct calls {
	uint64_t left;
};

static int one_call(struct calls *c)
{
	return c->left ? (c->left--, 0) : -EIO;
}

static int on_write(void *ctx, uint64_t offset, const void *data, size_t len)
{
	(void)offset;
	(void)data;
	(void)len;
	return one_call(ctx);
}

static int on_flush(void *ctx)
{
	return one_call(ctx);
}

/* Each call of an undo fails in turn: it reports that, and running it again completes it. */
static void a_failing_undo_is_run_again(void **state)
{
	static const struct btrkit_io_record_ops ops = { on_write, on_flush, NULL };
	struct btrkit_undo_result result = { 0 };
	int ret = -EIO;
	struct rig r;

	(void)state;
	rig_seed(3);
	assert_int_equal(rig_start(&r, 100000, UINT64_MAX, 0, NULL), 0);
	rig_use(&r);
	for (uint64_t k = 0; ret; k++) {
		for (unsigned reads = 0; reads < 2; reads++) {
			struct sparse *device = sparse_create(100000, r.device);
			struct btrkit_io_faults faults = BTRKIT_IO_FAULTS_INIT;
			struct btrkit_error err = BTRKIT_ERROR_INIT;
			struct calls calls = { reads ? UINT64_MAX : k };
			struct btrkit_io *file, *io;

			if (reads)
				faults.fail_read_after = k;
			assert_int_equal(btrkit_io_record(sparse_io(device), &ops, &calls, &io, NULL), 0);
			assert_int_equal(btrkit_io_fault(sparse_io(r.file), &faults, &file, NULL), 0);
			ret = undo_run(file, &io, 1, NULL, &result, &err);
			btrkit_io_close(file);
			btrkit_io_close(io);
			assert_true(!ret || (ret == -EIO && err.message[0]));
			if (ret)
				rig_must_undo(&r, device);
			else
				assert_true(sparse_equal(device, r.before));
			sparse_free(device);
		}
	}
	assert_true(result.restored);
	rig_end(&r);
}

static char folder[] = "/tmp/btrkit-unit-undo.XXXXXX";
static char file_path[64], image_path[64];

static struct btrkit_io *open_image(unsigned flags)
{
	struct btrkit_io *io;

	assert_int_equal(btrkit_io_open(image_path, flags, &io, NULL), 0);
	return io;
}

static void refused(struct btrkit_io *below, const char *file, unsigned flags, int errnum)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_io *io = NULL;

	assert_int_equal(btrkit_io_undo(&below, 1, file, flags, &io, &err), -errnum);
	assert_int_equal(err.err, -errnum);
	assert_true(err.message[0]);
	assert_null(io);
}

static bool exists(void)
{
	return !access(file_path, F_OK);
}

static void files_are_new_ones(void **state)
{
	struct btrkit_io *below = open_image(BTRKIT_IO_READ), *io;
	struct btrkit_undo_result result;
	uint8_t bytes[100] = { 9 };
	uint64_t start;
	struct stat st;
	int fd;

	(void)state;
	refused(below, file_path, 0, EINVAL);
	assert_false(exists());
	btrkit_io_close(below);
	below = open_image(BTRKIT_IO_WRITE | BTRKIT_IO_EXCLUSIVE);
	refused(below, file_path, 1, EINVAL);
	refused(below, image_path, 0, EEXIST);
	refused(below, "/nonexistent/file", 0, ENOENT);
	refused(below, "", 0, ENOENT);
	refused(below, folder, 0, EEXIST);

	assert_int_equal(btrkit_io_undo(&below, 1, file_path, 0, &io, NULL), 0);
	assert_true(exists());
	assert_true(io_file_place(io, &fd, &start));
	assert_false(fstat(fd, &st));
	assert_int_equal(st.st_size, MIB);
	refused(io, file_path, 0, EEXIST);
	/* Nothing has been written yet. */
	assert_int_equal(btrkit_io_reserve(io, 0, 5000, NULL), 0);
	btrkit_io_close(io);
	assert_false(exists());

	below = open_image(BTRKIT_IO_WRITE | BTRKIT_IO_EXCLUSIVE);
	assert_int_equal(btrkit_io_undo(&below, 1, file_path, 0, &io, NULL), 0);
	assert_int_equal(btrkit_io_write(io, 5, bytes, sizeof(bytes), NULL), 0);
	btrkit_io_close(io);
	assert_int_equal(stat(file_path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	below = open_image(BTRKIT_IO_WRITE);
	assert_int_equal(btrkit_undo(image_path, &below, 1, NULL, NULL, NULL), -EINVAL);
	assert_int_equal(btrkit_undo("/nonexistent", &below, 1, NULL, NULL, NULL), -ENOENT);
	assert_int_equal(btrkit_undo(file_path, &below, 1, NULL, &result, NULL), 0);
	assert_int_equal(result.restored, 512);
	assert_int_equal(result.saved, 8192);
	assert_int_equal(btrkit_io_read(below, 5, bytes, sizeof(bytes), NULL), 0);
	assert_int_equal(bytes[0], 0);
	btrkit_io_close(below);
	unlink(file_path);
}

static void make_two(struct btrkit_io *ios[2])
{
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(btrkit_io_memory(MIB, &ios[i], NULL), 0);
}

/* Devices are told apart by reading them; a read error must not be blamed on the undo file. */
static void a_device_that_fails_is_not_the_file(void **state)
{
	struct btrkit_io_faults faults = BTRKIT_IO_FAULTS_INIT;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_io *ios[2];

	(void)state;
	make_two(ios);
	assert_int_equal(btrkit_io_undo(ios, 2, file_path, 0, ios, NULL), 0);
	assert_int_equal(btrkit_io_write(ios[0], 0, "x", 1, NULL), 0);
	btrkit_io_close(ios[0]);
	btrkit_io_close(ios[1]);
	make_two(ios);
	faults.fail_read_after = 0;
	assert_int_equal(btrkit_io_fault(ios[0], &faults, &ios[0], NULL), 0);
	assert_int_equal(btrkit_undo(file_path, ios, 2, NULL, NULL, &err), -EIO);
	assert_memory_equal(err.message, "cannot read ", 12);
	btrkit_io_close(ios[0]);
	btrkit_io_close(ios[1]);
	unlink(file_path);
}

/* Each allocation fails in turn: nothing is written that cannot be undone, and nothing leaks. */
static void memory_that_runs_out_is_told_of(void **state)
{
	struct btrkit_error err;
	uint8_t bytes[9000];
	int ret = -ENOMEM;
	uint64_t k;

	(void)state;
	memset(bytes, 5, sizeof(bytes));
	for (k = 0; ret; k++) {
		struct btrkit_io *below, *io;

		assert_int_equal(btrkit_io_memory(80 * MIB, &below, NULL), 0);
		memory_count(k, true);
		err = (struct btrkit_error)BTRKIT_ERROR_INIT;
		ret = btrkit_io_undo(&below, 1, file_path, 0, &io, &err);
		if (!ret)
			below = io;
		for (unsigned i = 0; !ret && i < 3; i++)
			ret = btrkit_io_write(io, i * 30 * MIB, bytes, sizeof(bytes), &err);
		if (!ret)
			ret = btrkit_io_flush(io, &err);
		assert_true(!ret || ret == -ENOMEM);
		assert_true(!ret || err.code == BTRKIT_NO_MEMORY);
		btrkit_io_close(below);
		memory_end();
		assert_int_equal(exists(), !ret);
	}
	assert_true(k > 10);
	for (ret = -ENOMEM, k = 0; ret; k++) {
		struct btrkit_io *below;

		assert_int_equal(btrkit_io_memory(80 * MIB, &below, NULL), 0);
		for (unsigned i = 0; i < 3; i++)
			assert_int_equal(btrkit_io_write(below, i * 30 * MIB, bytes, sizeof(bytes), NULL), 0);
		memory_count(k, true);
		ret = btrkit_undo(file_path, &below, 1, NULL, NULL, &err);
		memory_end();
		assert_true(!ret || (ret == -ENOMEM && err.code == BTRKIT_NO_MEMORY));
		btrkit_io_close(below);
	}
	assert_true(k > 5);
	unlink(file_path);
}

static int create_folder(void **state)
{
	FILE *f;

	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(file_path, sizeof(file_path), "%s/file", folder);
	snprintf(image_path, sizeof(image_path), "%s/image", folder);
	f = fopen(image_path, "w");
	return !f || fclose(f) || truncate(image_path, MIB);
}

/* A file that counts the bytes read from it. */
static struct counting {
	struct btrkit_io io;
	struct sparse *file;
	uint64_t bytes;
} counting;

static int count_read(struct btrkit_io *io, uint64_t offset, void *buf, size_t len)
{
	struct counting *c = (struct counting *)io;

	c->bytes += len;
	sparse_read(c->file, offset, buf, len);
	return 0;
}

static void count_close(struct btrkit_io *io)
{
	(void)io;
}

/* After the last record, many false records begin, each claiming a payload of a MiB that overlaps the others. */
static void a_file_that_was_made_up_is_refused_soon(void **state)
{
	static const struct btrkit_io_ops ops = { .read = count_read, .close = count_close };
	struct disk_undo_record made = { .payload = le32_put(UNDO_WINDOW), .synced = le64_put(UINT64_MAX) };
	struct disk_undo_record broken = made;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_io *device;
	uint64_t end;
	struct rig r;

	(void)state;
	rig_seed(9);
	assert_int_equal(rig_start(&r, 100000, UINT64_MAX, 0, NULL), 0);
	rig_use(&r);
	end = undo_align(r.file_end);
	sparse_read(r.file, offsetof(struct disk_undo_header, id), made.id, sizeof(made.id));
	broken.csum = le32_put(1);
	sparse_write(r.file, end, &broken, UNDO_ALIGN / 2);
	for (uint64_t at = end + UNDO_ALIGN; at < end + 2 * MIB; at += UNDO_ALIGN)
		sparse_write(r.file, at, &made, sizeof(made));
	counting = (struct counting){ .io = { .ops = &ops, .size = end + 2 * MIB }, .file = r.file };
	device = sparse_io(r.device);
	assert_int_equal(undo_run(&counting.io, &device, 1, NULL, NULL, &err), -EUCLEAN);
	assert_non_null(strstr(err.message, "is damaged at "));
	assert_true(counting.bytes < 3 * counting.io.size);
	rig_end(&r);
}

static int remove_folder(void **state)
{
	(void)state;
	unlink(file_path);
	unlink(image_path);
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_failing_file_keeps_the_device),
		cmocka_unit_test(a_failing_device_is_told_of),
		cmocka_unit_test(a_flush_tells_of_what_was_lost),
		cmocka_unit_test(a_device_that_fails_is_not_the_file),
		cmocka_unit_test(a_failing_undo_is_run_again),
		cmocka_unit_test(a_file_that_was_made_up_is_refused_soon),
		cmocka_unit_test(files_are_new_ones),
		cmocka_unit_test(memory_that_runs_out_is_told_of),
	};

	return cmocka_run_group_tests(tests, create_folder, remove_folder);
}
