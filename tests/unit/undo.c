// SPDX-License-Identifier: LGPL-2.1-or-later
/* Writes through an undo file can be undone, and whatever cannot be restored exactly is refused. */
#include "tests/unit/undo_rig.h"

#include <unistd.h>

/* Random calls in random order; reads are compared with a plain array. */
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

/* More than is queued in memory at once. */
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

/* Damage to the undo file is reported or harmless; a device must never be restored partially. */
static void check_damaged(struct rig *r, uint64_t *refused, uint64_t *harmless)
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
		check_damaged(&r, &refused, &harmless);
		sparse_write(r.file, at, &byte, 1);
	}
	/* Harmless damage is that of padding between records, and of the last record. */
	assert_true(refused > 10 * harmless);
	assert_true(harmless);
	for (uint64_t size = 0; size < r.file_end; size += 1 + rig_draw() % 16) {
		sparse_io(r.file)->size = size;
		check_damaged(&r, &refused, &harmless);
	}
	sparse_io(r.file)->size = r.file_end;
	rig_must_undo(&r, r.device);
	rig_end(&r);
}

/*
 * Any change by others to a sector in the undo file is noticed. The superblock counts too, although it was not written.
 */
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
	/* Two blocks, two blocks up to the end of the device (whose 1,696 bytes are 4 sectors), and the superblock. */
	assert_int_equal(refused, 16 + 8 + 4 + 8);
	rig_must_undo(&r, r.device);
	rig_end(&r);
}

static void what_does_not_fit_is_refused(void **state)
{
	const struct btrkit_undo_options flags = { .flags = 2 };
	struct sparse *other = sparse_create(100001, NULL);
	struct btrkit_io *ios[2] = { sparse_io(other), sparse_io(other) };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct rig r;

	(void)state;
	rig_seed(8);
	assert_int_equal(rig_start(&r, 100000, UINT64_MAX, 0, NULL), 0);
	rig_use(&r);
	assert_int_equal(rig_undo(&r, other, NULL, &err), -EINVAL);
	assert_non_null(strstr(err.message, "for a device of 100000 bytes, this one has 100001"));
	assert_int_equal(undo_run(sparse_io(r.file), ios, 2, NULL, NULL, &err), -EINVAL);
	assert_non_null(strstr(err.message, "was made for 1 devices, but 2 were given"));
	assert_int_equal(undo_run(sparse_io(r.file), ios, 1, &flags, NULL, NULL), -EINVAL);
	sparse_free(other);
	rig_end(&r);
}

/* A record with a valid checksum; its payload, if any, is zeros. */
struct made_record {
	uint8_t type, flags;
	uint16_t device;
	uint64_t offset, len;
	uint32_t payload;
	int ret;
};

static int undo_of_records(const struct made_record *records, size_t n)
{
	static const uint8_t zeros[UNDO_WINDOW];
	struct sparse *device = sparse_create(3 * MIB + 100, NULL), *file = sparse_create(1ull << 40, NULL);
	const struct disk_undo_device d = { .size = le64_put(3 * MIB + 100), .name = "no end" };
	struct btrkit_io *io = sparse_io(device);
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct undo_log *log;
	int ret;

	assert_int_equal(undo_log_create(sparse_io(file), &log, NULL), 0);
	for (size_t i = 0; i < n; i++) {
		const struct made_record *r = &records[i];
		const struct disk_undo_record head = {
			.payload = le32_put(r->payload),
			.offset = le64_put(r->offset),
			.len = le64_put(r->len),
			.device = le16_put(r->device),
			.type = r->type,
			.flags = r->flags,
		};

		const void *payload = r->type == UNDO_DEVICE ? (const void *)&d : zeros;

		assert_int_equal(undo_log_append(log, &head, payload, NULL), 0);
	}
	assert_int_equal(undo_log_sync(log, NULL), 0);
	sparse_io(file)->size = log->written;
	undo_log_drop(log);
	ret = undo_run(sparse_io(file), &io, 1, NULL, NULL, &err);
	assert_true(!ret || (err.err == ret && !strncmp(err.message, "undo file ", 10)));
	sparse_free(file);
	sparse_free(device);
	return ret;
}

/* A valid checksum does not make a record valid: all its fields are validated. */
static void records_are_checked(void **state)
{
	static const struct made_record good[] = {
		{ UNDO_DEVICE, 0, 0, 0, 0, sizeof(struct disk_undo_device), 0 },
		{ UNDO_OLD, UNDO_ZEROS, 0, 65536, 4096, 0, 0 },
		{ UNDO_OLD, 0, 0, MIB, MIB, MIB, 0 },
		{ UNDO_OLD, 0, 0, 3 * MIB, 100, 100, 0 },
		{ UNDO_NEW, 0, 0, 65536, 4096, 32, 0 },
	};
	static const struct made_record added[] = {
		{ UNDO_END, 0, 0, 0, 0, 0, 0 },
		{ UNDO_NEW, 0, 0, MIB + 4096, 8192, 64, 0 },
		{ UNDO_NEW, 0, 0, 3 * MIB, 100, 4, 0 },
		{ UNDO_OLD, 0, 0, 0, 4096, 4096, 0 },
		{ UNDO_OLD, 0, 0, 512, 4096, 4096, -EUCLEAN },
		{ UNDO_OLD, 0, 0, 0, 4095, 4095, -EUCLEAN },
		{ UNDO_OLD, 0, 0, 0, 0, 0, -EUCLEAN },
		{ UNDO_OLD, 0, 0, 0, 4096, 4095, -EUCLEAN },
		{ UNDO_OLD, UNDO_ZEROS, 0, 0, 4096, 4096, -EUCLEAN },
		{ UNDO_OLD, UNDO_ZEROS, 0, 0, 2 * MIB, 0, -EUCLEAN },
		{ UNDO_OLD, UNDO_ZEROS, 0, MIB - 4096, 8192, 0, -EUCLEAN },
		{ UNDO_OLD, UNDO_ZEROS, 0, 3 * MIB, 4096, 0, -EUCLEAN },
		{ UNDO_OLD, UNDO_ZEROS, 0, 4 * MIB, 4096, 0, -EUCLEAN },
		{ UNDO_OLD, UNDO_ZEROS, 0, UINT64_MAX - 4095, 4096, 0, -EUCLEAN },
		{ UNDO_OLD, UNDO_ZEROS, 0, 0, UINT64_MAX - 4095, 0, -EUCLEAN },
		{ UNDO_OLD, UNDO_ZEROS, 1, 0, 4096, 0, -EUCLEAN },
		/* Saved twice, entirely and partly. */
		{ UNDO_OLD, UNDO_ZEROS, 0, 65536, 4096, 0, -EUCLEAN },
		{ UNDO_OLD, UNDO_ZEROS, 0, MIB + 8192, 4096, 0, -EUCLEAN },
		/* New data for a range that was not saved. */
		{ UNDO_NEW, 0, 0, 0, 4096, 32, -EUCLEAN },
		{ UNDO_NEW, 0, 0, 65536, 8192, 64, -EUCLEAN },
		{ UNDO_NEW, 0, 0, 65536, 4096, 28, -EUCLEAN },
		{ UNDO_NEW, 0, 7, 65536, 4096, 32, -EUCLEAN },
		{ UNDO_DEVICE, 0, 0, 0, 0, sizeof(struct disk_undo_device), -EUCLEAN },
		{ UNDO_DEVICE, 0, 1, 0, 0, 10, -EUCLEAN },
		{ UNDO_DEVICE, 0, 1, 0, 0, sizeof(struct disk_undo_device), -EINVAL },
		{ 0, 0, 0, 0, 0, 0, -EOPNOTSUPP },
		{ UNDO_END + 1, 0, 0, 0, 0, 0, -EOPNOTSUPP },
	};
	struct made_record records[ARRAY_SIZE(good) + 1];

	(void)state;
	assert_int_equal(undo_of_records(good, ARRAY_SIZE(good)), 0);
	assert_int_equal(undo_of_records(good, ARRAY_SIZE(good) - 1), -EINVAL);
	assert_int_equal(undo_of_records(good, 0), -EINVAL);
	memcpy(records, good, sizeof(good));
	for (size_t i = 0; i < ARRAY_SIZE(added); i++) {
		int ret;

		records[ARRAY_SIZE(good)] = added[i];
		ret = undo_of_records(records, ARRAY_SIZE(records));
		if (ret != added[i].ret)
			fail_msg("record %zu: %d, not %d", i, ret, added[i].ret);
	}
	/* Without the superblock. */
	memcpy(records, good, sizeof(good));
	records[1] = (struct made_record){ UNDO_OLD, UNDO_ZEROS, 0, 0, 4096, 0, 0 };
	records[4].offset = 0;
	assert_int_equal(undo_of_records(records, ARRAY_SIZE(good)), -EUCLEAN);
}

/* Threads, each with its own part of the device. */
struct worker {
	struct btrkit_io *io;
	uint64_t from;
	uint8_t model[MIB];
	bool good;
};

static void *work(void *arg)
{
	struct worker *w = arg;
	uint8_t seen[5000];

	w->good = !btrkit_io_read(w->io, w->from, w->model, MIB, NULL);
	for (unsigned i = 0; w->good && i < 400; i++) {
		size_t at = (i * 7919u) % (MIB - sizeof(seen)), len = 1 + i * 11 % sizeof(seen);

		if (i % 50 == 49) {
			w->good = !btrkit_io_flush(w->io, NULL);
		} else if (i % 3) {
			memset(w->model + at, (int)i, len);
			w->good = !btrkit_io_write(w->io, w->from + at, w->model + at, len, NULL);
		} else {
			w->good = !btrkit_io_read(w->io, w->from + at / 2, seen, len, NULL) &&
				  !memcmp(seen, w->model + at / 2, len);
		}
	}
	return NULL;
}

static void threads_keep_apart(void **state)
{
	char path[] = "/tmp/btrkit-unit-undo.XXXXXX";
	static struct worker workers[4];
	struct sparse *file = sparse_create(1ull << 40, NULL);
	static uint8_t bytes[8 * MIB];
	struct btrkit_io *below, *io;
	pthread_t threads[4];
	struct undo_log *log;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0 && !ftruncate(fd, 8 * MIB));
	assert_int_equal(btrkit_io_open(path, BTRKIT_IO_WRITE, &below, NULL), 0);
	assert_int_equal(undo_log_create(sparse_io(file), &log, NULL), 0);
	assert_int_equal(undo_io_create(log, below, &io, NULL), 0);
	for (unsigned i = 0; i < 4; i++) {
		workers[i].io = io;
		workers[i].from = i * 2 * MIB;
		assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
	}
	for (unsigned i = 0; i < 4; i++) {
		pthread_join(threads[i], NULL);
		assert_true(workers[i].good);
	}
	btrkit_io_close(io);
	sparse_io(file)->size = log->written + log->queued;
	undo_log_drop(log);
	assert_int_equal(btrkit_io_open(path, BTRKIT_IO_WRITE, &below, NULL), 0);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(btrkit_io_read(below, workers[i].from, bytes, MIB, NULL), 0);
		assert_memory_equal(bytes, workers[i].model, MIB);
	}
	assert_int_equal(undo_run(sparse_io(file), &below, 1, NULL, NULL, NULL), 0);
	assert_int_equal(btrkit_io_read(below, 0, bytes, sizeof(bytes), NULL), 0);
	assert_true(!bytes[0] && !memcmp(bytes, bytes + 1, sizeof(bytes) - 1));
	btrkit_io_close(below);
	close(fd);
	unlink(path);
	sparse_free(file);
}

/* Several devices may share one undo file. */
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
	assert_non_null(strstr(err.message, "was made for 2 devices, but 1 were given"));
	sparse_free(file);
	sparse_free(a);
	sparse_free(b);
}

/* Devices of equal size that share one undo file: their contents before and now. */
struct several {
	struct sparse *before[3], *now[3], *file;
	struct btrkit_io *ios[3];
	struct undo_log *log;
};

/* @seed: 0: equal contents on all */
static void several_start(struct several *s, uint64_t seed)
{
	uint8_t bytes[3000];

	s->file = sparse_create(1ull << 40, NULL);
	assert_int_equal(undo_log_create(sparse_io(s->file), &s->log, NULL), 0);
	for (unsigned i = 0; i < 3; i++) {
		s->before[i] = sparse_create(2 * MIB, NULL);
		if (seed)
			rig_seed(seed + i);
		for (size_t j = 0; seed && j < sizeof(bytes); j++)
			bytes[j] = (uint8_t)rig_draw();
		if (seed)
			sparse_write(s->before[i], 70000, bytes, sizeof(bytes));
		s->now[i] = sparse_create(2 * MIB, s->before[i]);
		snprintf(sparse_io(s->now[i])->name, 256, "number-%u", i);
		assert_int_equal(undo_io_create(s->log, sparse_io(s->now[i]), &s->ios[i], NULL), 0);
	}
}

static void several_write(struct several *s, unsigned i, uint64_t at, uint8_t byte)
{
	uint8_t bytes[5000];

	memset(bytes, byte, sizeof(bytes));
	assert_int_equal(btrkit_io_write(s->ios[i], at, bytes, sizeof(bytes), NULL), 0);
}

static void several_close(struct several *s)
{
	uint64_t size;

	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(btrkit_io_flush(s->ios[i], NULL), 0);
	for (unsigned i = 0; i < 3; i++)
		btrkit_io_close(s->ios[i]);
	size = s->log->written + UNDO_ALIGN;
	undo_log_drop(s->log);
	sparse_io(s->file)->size = size;
}

static void several_end(struct several *s)
{
	sparse_free(s->file);
	for (unsigned i = 0; i < 3; i++) {
		sparse_free(s->now[i]);
		sparse_free(s->before[i]);
	}
}

/* Undos with the devices in an order given as digits. If it is refused, nothing may be written. */
static int several_undo(struct several *s, const char *order, unsigned flags, struct btrkit_error *err)
{
	const struct btrkit_undo_options opts = { .flags = flags };
	struct sparse *was[3];
	struct btrkit_io *ios[3];
	const size_t n = strlen(order);
	int ret;

	for (unsigned i = 0; i < 3; i++)
		was[i] = sparse_clone(s->now[i]);
	for (size_t i = 0; i < n; i++)
		ios[i] = sparse_io(s->now[order[i] - '0']);
	ret = undo_run(sparse_io(s->file), ios, n, &opts, NULL, err);
	for (unsigned i = 0; i < 3; i++) {
		if (!sparse_equal(s->now[i], ret ? was[i] : s->before[i]))
			fail_msg("%s: device %u, %d", order, i, ret);
		sparse_free(was[i]);
	}
	return ret;
}

static void devices_come_in_any_order(void **state)
{
	static const char *const orders[] = { "012", "021", "102", "120", "201", "210" };

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(orders); i++) {
		struct btrkit_error err = BTRKIT_ERROR_INIT;
		struct several s;

		several_start(&s, i % 2 ? 7 : 0);
		for (unsigned j = 0; j < 3; j++)
			several_write(&s, j, 65536, (uint8_t)(j + 1));
		several_write(&s, 1, 3 * MIB / 2, 9);
		several_close(&s);
		/* A device is missing, and one is given twice. */
		assert_int_equal(several_undo(&s, "01", 0, &err), -EINVAL);
		assert_non_null(strstr(err.message, "was made for 3 devices, but 2 were given"));
		assert_int_equal(several_undo(&s, "011", 0, &err), -EINVAL);
		assert_non_null(strstr(err.message, "none of the devices is number-2, or it has changed since"));
		if (i) {
			assert_int_equal(several_undo(&s, orders[i], BTRKIT_UNDO_ORDERED, &err), -EINVAL);
			assert_non_null(strstr(err.message, "has changed since"));
		}
		sparse_write(s.now[1], 3 * MIB / 2 + 700, "x", 1);
		assert_int_equal(several_undo(&s, orders[i], 0, &err), -EINVAL);
		assert_non_null(strstr(err.message, "number-1: the device has changed since"));
		sparse_write(s.now[1], 3 * MIB / 2 + 700, "\t", 1);
		err = (struct btrkit_error)BTRKIT_ERROR_INIT;
		if (several_undo(&s, orders[i], 0, &err))
			fail_msg("%s: %s", orders[i], err.message);
		/* Attempts to match devices must leave no error. */
		assert_int_equal(err.err, 0);
		assert_string_equal(err.message, "");
		several_end(&s);
	}
}

/* Power failed before anything was written by which the devices differ: equal devices must not be mixed up. */
static void devices_that_are_alike(void **state)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct several s;

	(void)state;
	several_start(&s, 11);
	/* Overwrite everything that differed with equal data. */
	for (unsigned i = 0; i < 3; i++)
		several_write(&s, i, 69000, 5);
	for (unsigned i = 0; i < 2; i++)
		several_write(&s, i, MIB, 5);
	several_close(&s);
	assert_int_equal(several_undo(&s, "012", 0, &err), -EINVAL);
	assert_non_null(strstr(err.message, "cannot determine which device is number-0"));
	assert_int_equal(several_undo(&s, "012", BTRKIT_UNDO_ORDERED, &err), 0);
	/* If the first window does not identify the devices, the rest does. */
	assert_int_equal(several_undo(&s, "210", 0, &err), 0);
	several_end(&s);
}

static int end_it(void *ctx, uint64_t done, uint64_t total)
{
	assert_true(done <= total);
	return done > total * *(uint64_t *)ctx / 4 ? -EINTR : 0;
}

/* Reading a superblock reports an interrupted undo, and another undo completes it. */
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
	/* Before it has written anything, and afterwards. */
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
		cmocka_unit_test(records_are_checked),
		cmocka_unit_test(threads_keep_apart),
		cmocka_unit_test(devices_have_one_file),
		cmocka_unit_test(devices_come_in_any_order),
		cmocka_unit_test(devices_that_are_alike),
		cmocka_unit_test(an_unfinished_undo_has_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
