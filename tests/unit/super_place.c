// SPDX-License-Identifier: LGPL-2.1-or-later
/* Superblock locations: the log of zoned devices, in hand-made states, as a writer leaves it, and in random states. */
#include "tests/unit/unit.h"

#include <btrkit/dump.h>
#include <btrkit/mkfs.h>

#include "lib/io/zone.h"
#include "lib/volume/super_place.h"
#include "tests/random.h"

#define MIB (1ull << 20)
#define ZONE (4 * MIB)

/* A zoned device: memory for its first zones, nothing after them. */
struct device {
	struct btrkit_io io;
	struct btrkit_io *memory;
	struct btrkit_zone log[SUPER_LOG_ZONES]; /* of each copy */
	int error;				 /* of the zone report */
};

static int device_read(struct btrkit_io *io, uint64_t offset, void *buf, size_t len)
{
	return btrkit_io_read(((struct device *)io)->memory, offset % (SUPER_LOG_ZONES * ZONE), buf, len, NULL);
}

static int device_zone(struct btrkit_io *io, uint64_t offset, struct btrkit_zone *ret)
{
	const struct device *d = (struct device *)io;
	const uint64_t number = offset / ZONE, start = number * ZONE;
	const struct btrkit_zone *like = &d->log[number % SUPER_LOG_ZONES];

	if (d->error)
		return d->error;
	*ret = *like;
	ret->start = start;
	ret->write_pointer = like->write_pointer - like->start + start;
	return 0;
}

static const struct btrkit_io_ops device_ops = { .read = device_read, .zone = device_zone };

static void device_init(struct device *d, uint64_t size, uint64_t capacity)
{
	*d = (struct device){ .io = { .ops = &device_ops, .size = size, .name = "zoned" } };
	for (unsigned i = 0; i < SUPER_LOG_ZONES; i++)
		d->log[i] = (struct btrkit_zone){ i * ZONE, ZONE, capacity, i * ZONE, BTRKIT_ZONE_EMPTY };
	assert_int_equal(btrkit_io_memory(SUPER_LOG_ZONES * ZONE, &d->memory, NULL), 0);
}

static void put_super(struct device *d, uint64_t at, uint64_t generation, bool magic)
{
	static struct disk_super super;

	super.magic = le64_put(magic ? SUPER_MAGIC : 0);
	super.generation = le64_put(generation);
	assert_int_equal(btrkit_io_write(d->memory, at, &super, sizeof(super), NULL), 0);
}

static int read_super(void *ctx, uint64_t at, struct disk_super *ret, struct btrkit_error *err)
{
	return btrkit_io_read(((struct device *)ctx)->memory, at, ret, sizeof(*ret), err);
}

/* The state of a zone in a row: the number of bytes written, or one of these. */
#define CONVENTIONAL UINT64_MAX
#define FULL (UINT64_MAX - 1)

static void set_zone(struct btrkit_zone *z, uint64_t written)
{
	z->state = written == CONVENTIONAL ? BTRKIT_ZONE_CONVENTIONAL :
		   written == FULL	   ? BTRKIT_ZONE_FULL :
		   written		   ? BTRKIT_ZONE_PARTLY :
					     BTRKIT_ZONE_EMPTY;
	z->write_pointer = z->start + (written < FULL ? written : 0);
}

static void test_states(void **state)
{
	const struct {
		uint64_t written[2];
		uint64_t generation[2]; /* of the last superblock in each */
		int ret;
		uint64_t at;
	} rows[] = {
		{ { 0, 0 }, { 0, 0 }, 1, 0 },
		{ { 4096, 0 }, { 0, 0 }, 0, 0 },
		{ { 5 * 4096, 0 }, { 0, 0 }, 0, 4 * 4096 },
		{ { FULL, 0 }, { 0, 0 }, 0, ZONE - 4096 },
		{ { ZONE, 0 }, { 0, 0 }, 0, ZONE - 4096 },
		{ { FULL, 4096 }, { 0, 0 }, 0, ZONE },
		{ { FULL, 3 * 4096 }, { 0, 0 }, 0, ZONE + 2 * 4096 },
		{ { 0, FULL }, { 0, 0 }, 0, 2 * ZONE - 4096 },
		{ { 7 * 4096, FULL }, { 0, 0 }, 0, 6 * 4096 },
		{ { FULL, FULL }, { 9, 8 }, 0, ZONE - 4096 },
		{ { FULL, FULL }, { 8, 9 }, 0, 2 * ZONE - 4096 },
		/* Invalid superblocks must not win by the number at the place of their generation. */
		{ { FULL, FULL }, { 8 | 1ull << 63, 7 }, 0, 2 * ZONE - 4096 },
		{ { FULL, FULL }, { 7, 8 | 1ull << 63 }, 0, ZONE - 4096 },
		/* An interrupted write. */
		{ { 2 * 4096 + 512, 0 }, { 0, 0 }, 0, 4096 },
		{ { FULL, 512 }, { 0, 0 }, 0, ZONE - 4096 },
		{ { ZONE - 512, 0 }, { 0, 0 }, 0, ZONE - 2 * 4096 },
		/* States that no sequence of writes can produce. */
		{ { 0, 4096 }, { 0, 0 }, -EUCLEAN, 0 },
		{ { 4096, 4096 }, { 0, 0 }, -EUCLEAN, 0 },
		{ { CONVENTIONAL, CONVENTIONAL }, { 0, 0 }, 0, 0 },
		{ { CONVENTIONAL, FULL }, { 0, 0 }, 0, 0 },
		{ { FULL, CONVENTIONAL }, { 0, 0 }, 0, ZONE },
	};
	struct device d;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct btrkit_error err = BTRKIT_ERROR_INIT;
		uint64_t at = 1;

		device_init(&d, 4 * ZONE, ZONE);
		for (unsigned z = 0; z < SUPER_LOG_ZONES; z++) {
			set_zone(&d.log[z], rows[i].written[z]);
			put_super(&d, (z + 1) * ZONE - 4096, rows[i].generation[z], rows[i].generation[z] >> 63 == 0);
		}
		print_message("row %zu\n", i);
		assert_int_equal(super_log_newest(d.log, read_super, &d, &at, &err), rows[i].ret);
		assert_int_equal(at, rows[i].ret ? 1 : rows[i].at);
		assert_int_equal(super_place(&d.io, 0, &at, &err), rows[i].ret < 0 ? rows[i].ret : 0);
		assert_int_equal(at, rows[i].ret < 0 ? 1 : rows[i].at);
		btrkit_io_close(d.memory);
	}
}

/*
 * Writes one superblock after the other as Linux does: after the last one, or to the other zone, which is reset first.
 * @finished: the device reports a zone as full when no more superblock fits into it
 */
static void write_next(struct device *d, uint64_t generation, bool finished)
{
	const uint64_t room = d->log[0].capacity / 4096;
	struct btrkit_zone *z = &d->log[generation / room % 2];

	if (generation % room == 0)
		set_zone(z, 0);
	put_super(d, z->write_pointer, generation, true);
	set_zone(z, generation % room + 1 == room && finished ? FULL : z->write_pointer - z->start + 4096);
}

static void test_round(void **state)
{
	/* The zone capacity is less than the zone size, and not a multiple of the superblock size. */
	const uint64_t capacity = 20 * 4096 + 512;

	(void)state;
	for (unsigned finished = 0; finished < 2; finished++) {
		struct device d;

		device_init(&d, 4 * ZONE, capacity);
		for (uint64_t generation = 0; generation < 20 * 7; generation++) {
			struct disk_super super;
			uint64_t at;

			write_next(&d, generation, finished);
			assert_int_equal(super_read(&d.io, 0, &super, &at, NULL), 0);
			assert_int_equal(le64_get(super.generation), generation);
			assert_true(at % ZONE < capacity / 4096 * 4096);
		}
		btrkit_io_close(d.memory);
	}
}

static void test_places(void **state)
{
	struct device d;
	struct btrkit_io *plain, *wrapped;
	struct disk_super super;
	uint64_t at;

	(void)state;
	device_init(&d, (512ull << 30) + 2 * ZONE, ZONE);
	set_zone(&d.log[0], 3 * 4096);
	assert_int_equal(super_place(&d.io, 0, &at, NULL), 0);
	assert_int_equal(at, 2 * 4096);
	assert_int_equal(super_place(&d.io, 1, &at, NULL), 0);
	assert_int_equal(at, (512ull << 30) + 2 * 4096);
	assert_int_equal(super_place(&d.io, 2, &at, NULL), 1);
	assert_int_equal(super_read(&d.io, 2, &super, &at, NULL), -ENXIO);
	d.io.size -= 512;
	assert_int_equal(super_place(&d.io, 1, &at, NULL), 1);
	d.io.size = ZONE;
	assert_int_equal(super_place(&d.io, 0, &at, NULL), 1);
	d.io.size = (4096ull << 30) + 2 * ZONE;
	assert_int_equal(super_place(&d.io, 2, &at, NULL), 0);
	assert_int_equal(at, (4096ull << 30) + 2 * 4096);

	/* Wrappers of a device pass on its zone report. */
	assert_int_equal(btrkit_io_fault(&d.io, &(struct btrkit_io_faults)BTRKIT_IO_FAULTS_INIT, &wrapped, NULL), 0);
	assert_int_equal(super_place(wrapped, 1, &at, NULL), 0);
	assert_int_equal(at, (512ull << 30) + 2 * 4096);
	free(wrapped);
	assert_int_equal(btrkit_io_record(&d.io, &(struct btrkit_io_record_ops){ 0 }, NULL, &wrapped, NULL), 0);
	assert_int_equal(super_place(wrapped, 1, &at, NULL), 0);
	assert_int_equal(at, (512ull << 30) + 2 * 4096);
	free(wrapped);

	d.error = -EIO;
	assert_int_equal(super_place(&d.io, 0, &at, NULL), -EIO);
	d.error = 1;
	assert_int_equal(super_place(&d.io, 1, &at, NULL), 0);
	assert_int_equal(at, 64 * MIB);
	btrkit_io_close(d.memory);

	assert_int_equal(btrkit_io_memory(MIB, &plain, NULL), 0);
	assert_int_equal(super_place(plain, 0, &at, NULL), 0);
	assert_int_equal(at, 65536);
	btrkit_io_close(plain);
}

/* Contradictory reports, and a zone that is too small for a superblock. */
static void test_impossible(void **state)
{
	const struct btrkit_zone zones[] = {
		{ 0, ZONE, ZONE + 1, 0, BTRKIT_ZONE_EMPTY },
		{ 0, ZONE, ZONE, ZONE + 1, BTRKIT_ZONE_PARTLY },
		{ ZONE, ZONE, 4096, 0, BTRKIT_ZONE_PARTLY },
		{ 0, ZONE, 4095, 0, BTRKIT_ZONE_FULL },
		{ 0, 0, 0, 0, BTRKIT_ZONE_EMPTY },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(zones); i++) {
		struct device d;
		uint64_t at;

		device_init(&d, 4 * ZONE, ZONE);
		d.log[0] = d.log[1] = zones[i];
		assert_int_equal(super_place(&d.io, 0, &at, NULL), -EUCLEAN);
		btrkit_io_close(d.memory);
	}
}

static int take(void *ctx, const void *text, size_t len)
{
	char *to = ctx;

	strncat(to, text, len < 4095 - strlen(to) ? len : 4095 - strlen(to));
	return 0;
}

/* The nominal offset means the newest superblock in the log; any other offset means itself. */
static void test_dump(void **state)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	char text[4096] = "";
	struct device d;

	(void)state;
	device_init(&d, 4 * ZONE, ZONE);
	assert_int_equal(btrkit_dump_super(&d.io, 65536, 0, BTRKIT_FORMAT_TEXT, take, text, &err), -EMEDIUMTYPE);
	put_super(&d, 0, 5, true);
	put_super(&d, 4096, 6, true);
	set_zone(&d.log[0], 2 * 4096);
	assert_int_equal(btrkit_dump_super(&d.io, 65536, 0, BTRKIT_FORMAT_TEXT, take, text, &err), 0);
	assert_non_null(strstr(text, "superblock: bytenr=65536, device=zoned\n"));
	assert_non_null(strstr(text, "\ngeneration\t\t6\n"));
	*text = 0;
	assert_int_equal(btrkit_dump_super(&d.io, 0, 0, BTRKIT_FORMAT_TEXT, take, text, &err), 0);
	assert_non_null(strstr(text, "\ngeneration\t\t5\n"));
	d.io.size = 128 * MIB;
	assert_int_equal(btrkit_dump_super(&d.io, 64 * MIB, 0, BTRKIT_FORMAT_TEXT, take, text, &err), -ENOENT);
	btrkit_io_close(d.memory);
}

/* mkfs refuses zoned devices. */
static void test_mkfs(void **state)
{
	const struct btrkit_mkfs_options opts = BTRKIT_MKFS_OPTIONS_INIT;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_io *io;
	struct device d;

	(void)state;
	device_init(&d, 1024 * MIB, ZONE);
	io = &d.io;
	assert_int_equal(btrkit_mkfs(&io, 1, &opts, NULL, &err), -EOPNOTSUPP);
	assert_string_equal(err.message, "zoned devices are not supported");
	btrkit_io_close(d.memory);
}

/* Whatever a device reports, superblocks are looked for only inside the log. */
static void test_random(void **state)
{
	uint64_t random = 1;

	(void)state;
	for (unsigned i = 0; i < 20000; i++) {
		uint64_t pick[8], at;
		struct device d = { .io = { .ops = &device_ops, .size = 4 * ZONE } };
		int ret;

		for (unsigned k = 0; k < ARRAY_SIZE(pick); k++) {
			random_step(&random);
			pick[k] = random >> 33;
		}
		for (unsigned z = 0; z < SUPER_LOG_ZONES; z++) {
			const uint64_t capacity = pick[z] % 4 ? pick[z] % ZONE : ZONE;

			d.log[z] = (struct btrkit_zone){ z * ZONE, ZONE, capacity,
							 z * ZONE + pick[2 + z] % (capacity + 2),
							 (enum btrkit_zone_state)(pick[4 + z] % 4) };
		}
		d.memory = (struct btrkit_io *)&(struct btrkit_io){ .size = 0 };
		ret = super_place(&d.io, 0, &at, NULL);
		if (ret) {
			assert_true(ret == -EUCLEAN || ret == -ENXIO);
			continue;
		}
		assert_true(at <= 2 * ZONE - 4096 && at % 4096 == 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_states), cmocka_unit_test(test_round),	 cmocka_unit_test(test_places),
		cmocka_unit_test(test_dump),   cmocka_unit_test(test_impossible), cmocka_unit_test(test_mkfs),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
