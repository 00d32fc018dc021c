// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/unit/undo_rig.h"

static uint64_t seed_state;

void rig_seed(uint64_t seed)
{
	seed_state = seed;
}

uint64_t rig_draw(void)
{
	seed_state ^= seed_state >> 12;
	seed_state ^= seed_state << 25;
	seed_state ^= seed_state >> 27;
	return seed_state * 0x2545f4914f6cdd1dull;
}

static int file_call(struct rig *r)
{
	return r->calls++ >= r->fail_at ? r->error : 0;
}

static int on_file_write(void *ctx, uint64_t offset, const void *data, size_t len)
{
	struct rig *r = ctx;
	int ret = file_call(r);

	(void)data;
	if (ret)
		return ret;
	r->file_waits = true;
	assert_int_equal(offset, r->file_end);
	r->file_end += len;
	return 0;
}

static int on_file_flush(void *ctx)
{
	struct rig *r = ctx;
	int ret = file_call(r);

	if (!ret)
		r->file_waits = false;
	return ret;
}

static int on_device_write(void *ctx, uint64_t offset, const void *data, size_t len)
{
	struct rig *r = ctx;

	(void)offset;
	(void)data;
	(void)len;
	r->device_writes++;
	r->early_writes += r->file_waits;
	return 0;
}

static int on_device_discard(void *ctx, uint64_t offset, uint64_t len)
{
	(void)offset;
	(void)len;
	((struct rig *)ctx)->discards++;
	return 0;
}

/* Random data in some places, zeros elsewhere. */
static struct sparse *make_contents(uint64_t size)
{
	struct sparse *s = sparse_create(size, NULL);
	uint8_t bytes[3000];

	for (unsigned i = 0; i < 40; i++) {
		uint64_t at = rig_draw() % (size - sizeof(bytes));

		for (size_t j = 0; j < sizeof(bytes); j++)
			bytes[j] = (uint8_t)rig_draw();
		sparse_write(s, at, bytes, sizeof(bytes));
	}
	return s;
}

static const struct btrkit_io_record_ops file_ops = { on_file_write, on_file_flush, NULL };
static const struct btrkit_io_record_ops device_ops = { on_device_write, NULL, on_device_discard };

int rig_start(struct rig *r, uint64_t size, uint64_t file_fails_at, int error, struct btrkit_error *err)
{
	struct btrkit_io *file, *device;
	struct undo_log *log;
	int ret;

	*r = (struct rig){ .fail_at = file_fails_at, .error = error };
	r->before = make_contents(size);
	r->device = sparse_create(size, r->before);
	r->file = sparse_create(1ull << 40, NULL);
	assert_int_equal(btrkit_io_record(sparse_io(r->file), &file_ops, r, &file, NULL), 0);
	snprintf(file->name, sizeof(file->name), "the-file");
	assert_int_equal(btrkit_io_record(sparse_io(r->device), &device_ops, r, &device, NULL), 0);
	assert_int_equal(undo_log_create(file, &log, NULL), 0);
	ret = undo_io_create(log, device, &r->io, err);
	if (ret)
		btrkit_io_close(device);
	undo_log_drop(log);
	return ret;
}

void rig_close(struct rig *r)
{
	r->io = btrkit_io_close(r->io);
	assert_int_equal(r->early_writes, 0);
	assert_int_equal(r->discards, 0);
	sparse_io(r->file)->size = r->file_end;
}

void rig_end(struct rig *r)
{
	btrkit_io_close(r->io);
	sparse_free(r->file);
	sparse_free(r->device);
	sparse_free(r->before);
}

int rig_undo(struct rig *r, struct sparse *device, struct btrkit_undo_result *result, struct btrkit_error *err)
{
	struct btrkit_io *io = sparse_io(device);

	return undo_run(sparse_io(r->file), &io, 1, NULL, result, err);
}

void rig_must_undo(struct rig *r, struct sparse *device)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_undo_result result;

	if (rig_undo(r, device, &result, &err))
		fail_msg("undo: %s", err.message);
	assert_true(sparse_equal(device, r->before));
	assert_int_equal(rig_undo(r, device, &result, NULL), 0);
	assert_int_equal(result.restored, 0);
}

void rig_write(struct rig *r, uint64_t at, uint8_t byte)
{
	uint8_t bytes[5000];

	memset(bytes, byte, sizeof(bytes));
	assert_int_equal(btrkit_io_write(r->io, at, bytes, sizeof(bytes), NULL), 0);
}

void rig_use(struct rig *r)
{
	rig_write(r, 8192, 1);
	rig_write(r, 20000, 2);
	assert_int_equal(btrkit_io_flush(r->io, NULL), 0);
	assert_int_equal(btrkit_io_reserve(r->io, 40000, 6000, NULL), 0);
	rig_write(r, 21000, 3);
	assert_int_equal(btrkit_io_flush(r->io, NULL), 0);
	rig_write(r, 65536, 4);
	assert_int_equal(btrkit_io_flush(r->io, NULL), 0);
	rig_close(r);
}
