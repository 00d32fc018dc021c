// SPDX-License-Identifier: LGPL-2.1-or-later
/* What is written over an undo file comes back, and what cannot be put back as it was is refused. */
#include "tests/unit/undo_rig.h"

/* Any calls, in any order; what is read is what a plain array has. */
static void use_at_random(struct rig *r, uint64_t size, unsigned calls)
{
	struct sparse *model = sparse_create(size, r->before);
	uint8_t bytes[20000], seen[20000];

	for (unsigned i = 0; i < calls; i++) {
		size_t len = 1 + rig_draw() % (rig_draw() % 2 ? sizeof(bytes) : 600);
		uint64_t at = rig_draw() % 8 ? rig_draw() % (size - len) : size - len;

		memset(bytes, (int)rig_draw(), len);
		bytes[0] = (uint8_t)rig_draw();
		switch (rig_draw() % 8) {
		case 0:
			assert_int_equal(btrkit_io_flush(r->io, NULL), 0);
			assert_true(sparse_equal(r->device, model));
			break;
		case 1:
			assert_int_equal(btrkit_io_reserve(r->io, at, len, NULL), 0);
			break;
		case 2:
			assert_int_equal(btrkit_io_discard(r->io, at, len, NULL), 0);
			break;
		case 3:
		case 4:
			assert_int_equal(btrkit_io_read(r->io, at, bytes, len, NULL), 0);
			sparse_read(model, at, seen, len);
			assert_memory_equal(bytes, seen, len);
			break;
		default:
			assert_int_equal(btrkit_io_write(r->io, at, bytes, len, NULL), 0);
			sparse_write(model, at, bytes, len);
		}
	}
	rig_close(r);
	assert_true(sparse_equal(r->device, model));
	sparse_free(model);
}

static void what_was_overwritten_comes_back(void **state)
{
	static const uint64_t sizes[] = { 21000, 65536 + 4095, 100000, 5 * MIB + 123, 70 * MIB };

	(void)state;
	for (uint64_t seed = 1; seed <= 60; seed++) {
		uint64_t size = sizes[seed % ARRAY_SIZE(sizes)];
		struct rig r;

		rig_seed(seed);
		assert_int_equal(rig_start(&r, size, UINT64_MAX, 0, NULL), 0);
		use_at_random(&r, size, 200);
		rig_must_undo(&r, r.device);
		rig_end(&r);
	}
}

/* More than waits in memory at once. */
static void large_writes_come_back(void **state)
{
	uint8_t *bytes = malloc(20 * MIB);
	struct rig r;

	(void)state;
	rig_seed(1);
	memset(bytes, 7, 20 * MIB);
	assert_int_equal(rig_start(&r, 80 * MIB, UINT64_MAX, 0, NULL), 0);
	for (unsigned i = 0; i < 3; i++) {
		bytes[i * 5000000] = (uint8_t)i;
		assert_int_equal(btrkit_io_write(r.io, 3 * MIB + 777, bytes, 20 * MIB, NULL), 0);
		assert_true(r.device_writes);
	}
	assert_int_equal(btrkit_io_read(r.io, 3 * MIB + 777, bytes, 20 * MIB, NULL), 0);
	assert_int_equal(bytes[10000000], 2);
	rig_close(&r);
	rig_must_undo(&r, r.device);
	rig_end(&r);
	free(bytes);
}

/* A damage of the file is told of, or does no harm: never does a device come half back. */
static void judge_damaged(struct rig *r, uint64_t *refused, uint64_t *harmless)
{
	struct sparse *device = sparse_create(100000, r->device);
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	int ret = rig_undo(r, device, NULL, &err);

	if (ret) {
		assert_true(ret == -EINVAL || ret == -EUCLEAN || ret == -EOPNOTSUPP);
		assert_true(err.message[0]);
		assert_true(sparse_equal(device, r->device));
		++*refused;
	} else {
		assert_true(sparse_equal(device, r->before));
		++*harmless;
	}
	sparse_free(device);
}

static void a_damaged_file_does_no_harm(void **state)
{
	uint64_t refused = 0, harmless = 0;
	struct rig r;

	(void)state;
	rig_seed(5);
	assert_int_equal(rig_start(&r, 100000, UINT64_MAX, 0, NULL), 0);
	rig_use(&r);
	for (uint64_t at = 0; at < r.file_end; at += 1 + rig_draw() % 16) {
		uint8_t byte, other;

		sparse_read(r.file, at, &byte, 1);
		other = byte ^ (uint8_t)(1u << rig_draw() % 8);
		sparse_write(r.file, at, &other, 1);
		judge_damaged(&r, &refused, &harmless);
		sparse_write(r.file, at, &byte, 1);
	}
	/* What does no harm is the filling between records, and the last one of them. */
	assert_true(refused > 10 * harmless);
	assert_true(harmless);
	for (uint64_t size = 0; size < r.file_end; size += 1 + rig_draw() % 16) {
		sparse_io(r.file)->size = size;
		judge_damaged(&r, &refused, &harmless);
	}
	sparse_io(r.file)->size = r.file_end;
	rig_must_undo(&r, r.device);
	rig_end(&r);
}

/* Each sector that the file has, changed by somebody else; the superblock is one though nothing was written to it. */
static void a_changed_device_is_refused(void **state)
{
	uint64_t refused = 0, size = 100000;
	struct rig r;

	(void)state;
	rig_seed(6);
	assert_int_equal(rig_start(&r, size, UINT64_MAX, 0, NULL), 0);
	rig_write(&r, 8192, 1);
	rig_write(&r, 95000, 2);
	rig_close(&r);
	for (uint64_t at = 100; at < size; at += 512) {
		struct sparse *device = sparse_create(size, r.device);
		struct btrkit_error err = BTRKIT_ERROR_INIT;
		uint8_t byte;
		int ret;

		sparse_read(device, at, &byte, 1);
		byte ^= 1;
		sparse_write(device, at, &byte, 1);
		ret = rig_undo(&r, device, NULL, &err);
		if (ret) {
			assert_int_equal(ret, -EINVAL);
			assert_int_equal(err.places, BTRKIT_AT_PHYSICAL);
			assert_int_equal(err.physical, at - at % 512);
			sparse_write(device, at, (uint8_t[]){ byte ^ 1 }, 1);
			assert_true(sparse_equal(device, r.device));
			refused++;
		}
		sparse_free(device);
	}
	/* Two blocks, two blocks up to the device's end (1,696 bytes are 4 sectors of it), the superblock. */
	assert_int_equal(refused, 16 + 8 + 4 + 8);
	rig_must_undo(&r, r.device);
	rig_end(&r);
}

static void what_does_not_fit_is_refused(void **state)
{
	const struct btrkit_undo_options flags = { .flags = 1 };
	struct sparse *other = sparse_create(100001, NULL);
	struct btrkit_io *ios[2] = { sparse_io(other), sparse_io(other) };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct rig r;

	(void)state;
	rig_seed(8);
	assert_int_equal(rig_start(&r, 100000, UINT64_MAX, 0, NULL), 0);
	rig_use(&r);
	assert_int_equal(rig_undo(&r, other, NULL, &err), -EINVAL);
	assert_non_null(strstr(err.message, "of a device of 100000 bytes, this one has 100001"));
	assert_int_equal(undo_run(sparse_io(r.file), ios, 2, NULL, NULL, NULL), -EOPNOTSUPP);
	assert_int_equal(undo_run(sparse_io(r.file), ios, 1, &flags, NULL, NULL), -EINVAL);
	sparse_free(other);
	rig_end(&r);
}

/* One file may have several devices. */
static void devices_have_one_file(void **state)
{
	struct sparse *a = sparse_create(MIB, NULL), *b = sparse_create(2 * MIB, NULL);
	struct sparse *file = sparse_create(1ull << 40, NULL);
	struct btrkit_io *ios[2], *below = sparse_io(a);
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	uint8_t byte = 1;
	struct undo_log *log;

	(void)state;
	assert_int_equal(undo_log_create(sparse_io(file), &log, NULL), 0);
	assert_int_equal(undo_io_create(log, sparse_io(a), &ios[0], NULL), 0);
	assert_int_equal(undo_io_create(log, sparse_io(b), &ios[1], NULL), 0);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(btrkit_io_write(ios[i], 1000 * i, &byte, 1, NULL), 0);
	btrkit_io_close(ios[0]);
	btrkit_io_close(ios[1]);
	sparse_io(file)->size = log->written + 64 * 1024;
	undo_log_drop(log);
	assert_int_equal(undo_run(sparse_io(file), &below, 1, NULL, NULL, &err), -EINVAL);
	assert_non_null(strstr(err.message, "is of 2 devices, 1 given"));
	sparse_free(file);
	sparse_free(a);
	sparse_free(b);
}

static int end_it(void *ctx, uint64_t done, uint64_t total)
{
	assert_true(done <= total);
	return done > total * *(uint64_t *)ctx / 4 ? -EINTR : 0;
}

/* An undo that was ended is named by whoever reads a superblock, and is completed by another one. */
static void an_unfinished_undo_has_a_name(void **state)
{
	uint64_t quarter = 1;
	const struct btrkit_undo_options opts = { 0, end_it, &quarter };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct disk_super disk;
	struct btrkit_io *io;
	struct super super;
	struct rig r;

	(void)state;
	rig_seed(9);
	assert_int_equal(rig_start(&r, 70 * MIB, UINT64_MAX, 0, NULL), 0);
	for (unsigned i = 0; i < 10; i++)
		rig_write(&r, i * 5 * MIB, 1);
	rig_close(&r);
	io = sparse_io(r.device);
	/* Before it has written anything, and after. */
	for (; quarter <= 3; quarter += 2) {
		assert_int_equal(undo_run(sparse_io(r.file), &io, 1, &opts, NULL, &err), -EINTR);
		for (unsigned mirror = 0; mirror < 2; mirror++) {
			sparse_read(r.device, super_offset(mirror), &disk, sizeof(disk));
			assert_int_equal(super_decode(&disk, super_offset(mirror), &super, &err), -EMEDIUMTYPE);
			assert_int_equal(!!strstr(err.message, "an undo is unfinished"), quarter == 3);
		}
	}
	assert_false(sparse_equal(r.device, r.before));
	rig_must_undo(&r, r.device);
	rig_end(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_overwritten_comes_back),
		cmocka_unit_test(large_writes_come_back),
		cmocka_unit_test(a_damaged_file_does_no_harm),
		cmocka_unit_test(a_changed_device_is_refused),
		cmocka_unit_test(what_does_not_fit_is_refused),
		cmocka_unit_test(devices_have_one_file),
		cmocka_unit_test(an_unfinished_undo_has_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
