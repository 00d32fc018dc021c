// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Writes single copies to devices in memory: exactly the bytes of one mirror or one strip change, and what was damaged
 * can be read again in every way.
 */
#include "tests/unit/unit.h"

#include "lib/format/raid.h"
#include "lib/volume/raid_map.h"
#include "lib/volume/volume_write.h"

#define STRIP CHUNK_STRIPE_LEN
#define FULL_STRIPES 5u
#define DEVICES_MAX 6u
#define LOGICAL (5ull << 20)
#define PHYSICAL (2ull * STRIP + 4096)
#define DEVICE_SIZE (PHYSICAL + (FULL_STRIPES + 1) * STRIP)

struct rig {
	unsigned n;
	struct raid_shape shape;
	uint64_t length;
	struct btrkit_io *io[DEVICES_MAX];
	struct btrkit_io *out; /* the missing device, which is not of the volume */
	struct volume *v;
};

/* @missing: number of the missing device, from 1; 0: none */
static void make(struct rig *r, uint64_t profile, unsigned n, unsigned missing, uint64_t physical)
{
	struct disk_stripe stripes[DEVICES_MAX] = { 0 };
	struct btrkit_io *given[DEVICES_MAX];
	struct super supers[DEVICES_MAX] = { 0 };
	struct chunk chunk = { .logical = LOGICAL, .type = BG_DATA | profile, .num_stripes = (uint16_t)n,
			       .stripes = stripes };
	size_t num_given = 0;

	*r = (struct rig){ .n = n, .shape = { BG_DATA | profile, n } };
	r->length = chunk.length = (uint64_t)FULL_STRIPES * STRIP * raid_data_stripes(&r->shape);
	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(btrkit_io_memory(physical + (FULL_STRIPES + 1) * STRIP, &r->io[i], NULL), 0);
		stripes[i] = (struct disk_stripe){ .devid = le64_put(i + 1), .offset = le64_put(physical) };
		supers[num_given].num_devices = n;
		supers[num_given].devid = i + 1;
		if (i + 1 != missing)
			given[num_given++] = r->io[i];
		else
			r->out = r->io[i];
	}
	assert_int_equal(volume_create(given, supers, num_given, &r->v, NULL), 0);
	assert_int_equal(volume_add_chunk(r->v, &chunk, NULL), 0);
}

static void unmake(struct rig *r)
{
	btrkit_io_close(r->out);
	volume_destroy(r->v);
}

/* Counts the bytes on a device that have been written, and the place of the first. */
static uint64_t written(struct rig *r, unsigned device, uint8_t value, uint64_t *first)
{
	uint8_t *bytes = malloc(DEVICE_SIZE);
	uint64_t n = 0;

	assert_non_null(bytes);
	assert_int_equal(btrkit_io_read(r->io[device], 0, bytes, DEVICE_SIZE, NULL), 0);
	for (uint64_t i = 0; i < DEVICE_SIZE; i++) {
		if (!bytes[i])
			continue;
		assert_int_equal(bytes[i], value);
		*first = n++ ? *first : i;
	}
	free(bytes);
	return n;
}

static const struct {
	uint64_t profile;
	unsigned n;
} shapes[] = {
	{ 0, 1 },	   { BG_RAID0, 3 },  { BG_RAID1, 2 }, { BG_RAID1C3, 3 }, { BG_RAID1C4, 4 },
	{ BG_RAID10, 4 }, { BG_RAID5, 3 }, { BG_RAID6, 4 }, { BG_RAID6, 6 },
};

/* A mirror is written where volume_map() says, and nowhere else. */
static void one_mirror_is_written(void **state)
{
	const size_t len = 3 * STRIP + 8192;
	const uint64_t at = LOGICAL + STRIP - 4096;
	uint8_t *buf = malloc(len);

	(void)state;
	assert_non_null(buf);
	memset(buf, 0x5a, len);
	for (unsigned i = 0; i < ARRAY_SIZE(shapes); i++) {
		for (unsigned mirror = 0; mirror < 4; mirror++) {
			uint64_t sum = 0, first;
			struct copy copy;
			struct rig r;
			int ret;

			make(&r, shapes[i].profile, shapes[i].n, 0, PHYSICAL);
			ret = volume_write_mirror(r.v, at, buf, len, mirror, NULL);
			assert_int_equal(ret, mirror >= raid_copies(&r.shape));
			for (unsigned k = 0; k < r.n; k++)
				sum += written(&r, k, 0x5a, &first);
			assert_int_equal(sum, ret ? 0 : len);
			for (size_t done = 0; !ret && done < len; done += copy.length) {
				assert_int_equal(volume_map(r.v, at + done, len - done, mirror, &copy, NULL), 0);
				assert_int_equal(btrkit_io_read(copy.io, copy.physical, buf, copy.length, NULL), 0);
				for (size_t k = 0; k < copy.length; k++)
					assert_int_equal(buf[k], 0x5a);
			}
			unmake(&r);
		}
	}
	free(buf);
}

/* In full stripe F, strip S is on stripe (F + S) modulo their number, which is how btrfs rotates them. */
static void one_strip_is_written(void **state)
{
	uint8_t buf[8192];

	(void)state;
	memset(buf, 0x7c, sizeof(buf));
	for (unsigned i = 0; i < ARRAY_SIZE(shapes); i++) {
		for (unsigned strip = 0; strip < 8; strip++) {
			for (unsigned full = 0; full < FULL_STRIPES; full++) {
				uint64_t sum = 0, first = 0, place = 0;
				unsigned data, on = 0;
				struct rig r;
				int ret;

				make(&r, shapes[i].profile, shapes[i].n, 0, PHYSICAL);
				data = raid_data_stripes(&r.shape);
				/* Any address of the full stripe stands for it: here one in its last strip. */
				ret = volume_write_strip(r.v, LOGICAL + ((uint64_t)full + 1) * data * STRIP - 4096,
							 strip, STRIP - sizeof(buf), buf, sizeof(buf), NULL);
				for (unsigned k = 0; k < r.n; k++) {
					const uint64_t n = written(&r, k, 0x7c, &first);

					place = n ? first : place;
					on = n ? k : on;
					sum += n;
				}
				if (!(shapes[i].profile & (BG_RAID5 | BG_RAID6)) || strip >= r.n) {
					assert_int_equal(ret, 1);
					assert_int_equal(sum, 0);
				} else {
					assert_int_equal(ret, 0);
					assert_int_equal(sum, sizeof(buf));
					assert_int_equal(on, (full + strip) % r.n);
					assert_int_equal(place, PHYSICAL + (full + 1) * STRIP - sizeof(buf));
				}
				unmake(&r);
			}
		}
	}
}

static void what_cannot_be_written_is_told(void **state)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	uint8_t buf[8192] = { 1 };
	struct rig r;

	(void)state;
	make(&r, BG_RAID5, 3, 2, PHYSICAL);
	/* Strip 1 of the first full stripe is on the second device. */
	assert_int_equal(volume_write_strip(r.v, LOGICAL, 1, 4096, buf, 4096, &err), -EIO);
	assert_true(err.places & BTRKIT_AT_DEVID && err.devid == 2 && err.physical == PHYSICAL + 4096);
	assert_int_equal(volume_write_strip(r.v, LOGICAL, 0, 0, buf, 4096, NULL), 0);
	assert_int_equal(volume_write_mirror(r.v, LOGICAL + STRIP, buf, 4096, 0, NULL), -EIO);
	assert_int_equal(volume_write_mirror(r.v, LOGICAL, buf, 4096, 0, NULL), 0);
	/* Outside of the strip, and of the chunk. */
	assert_int_equal(volume_write_strip(r.v, LOGICAL, 0, STRIP - 4096, buf, 8192, NULL), -EINVAL);
	assert_int_equal(volume_write_strip(r.v, LOGICAL, 0, STRIP + 1, buf, 0, NULL), -EINVAL);
	assert_int_equal(volume_write_strip(r.v, LOGICAL + r.length, 0, 0, buf, 4096, NULL), -EUCLEAN);
	assert_int_equal(volume_write_mirror(r.v, LOGICAL + r.length - 4096, buf, 8192, 0, NULL), -EUCLEAN);
	unmake(&r);

	/* The first superblock is in the second strip of each device. */
	make(&r, BG_RAID1, 2, 0, 0);
	assert_int_equal(volume_write_mirror(r.v, LOGICAL + STRIP - 4096, buf, 8192, 1, &err), -EINVAL);
	assert_int_equal(err.devid, 2);
	assert_int_equal(volume_write_mirror(r.v, LOGICAL + STRIP - 4096, buf, 4096, 1, NULL), 0);
	assert_int_equal(volume_write_mirror(r.v, LOGICAL + STRIP + 4095, buf, 1, 1, NULL), -EINVAL);
	assert_int_equal(volume_write_mirror(r.v, LOGICAL + STRIP + 4096, buf, 4096, 1, NULL), 0);
	unmake(&r);
}

struct wanted {
	const uint8_t *bytes;
	size_t len;
	unsigned right, wrong;
};

static int accept_none(void *ctx, const void *buf, struct btrkit_error *err)
{
	struct wanted *w = ctx;

	(void)err;
	*(memcmp(buf, w->bytes, w->len) ? &w->wrong : &w->right) += 1;
	return -EUCLEAN;
}

static int accept_right(void *ctx, const void *buf, struct btrkit_error *err)
{
	const struct wanted *w = ctx;

	(void)err;
	return memcmp(buf, w->bytes, w->len) ? -EUCLEAN : 0;
}

/* A damaged strip is rebuilt from the others, and written: then all ways to read give the right bytes. */
static void a_damaged_strip_is_repaired(void **state)
{
	static uint8_t right[STRIP], wrong[STRIP], found[STRIP];
	struct wanted w = { right, STRIP, 0, 0 };
	struct rig r;

	(void)state;
	UNIT_NEEDS(UNIT_PARITY);
	for (unsigned i = 0; i < STRIP; i++)
		right[i] = (uint8_t)(i * 7 + i / 256);
	make(&r, BG_RAID5, 3, 0, PHYSICAL);
	/* The other data strip is zero, so P is equal to this one. */
	assert_int_equal(volume_write_strip(r.v, LOGICAL, 0, 0, right, STRIP, NULL), 0);
	assert_int_equal(volume_write_strip(r.v, LOGICAL, 2, 0, right, STRIP, NULL), 0);
	assert_int_equal(volume_read(r.v, LOGICAL, found, STRIP, accept_none, &w, NULL), -EUCLEAN);
	assert_int_equal(w.right, 2);
	assert_int_equal(volume_write_mirror(r.v, LOGICAL, wrong, STRIP, 0, NULL), 0);
	assert_int_equal(volume_read(r.v, LOGICAL, found, STRIP, accept_none, &w, NULL), -EUCLEAN);
	assert_int_equal(w.right, 3);
	assert_int_equal(w.wrong, 1);
	assert_int_equal(volume_read(r.v, LOGICAL, found, STRIP, accept_right, &w, NULL), 0);
	assert_int_equal(volume_write_mirror(r.v, LOGICAL, found, STRIP, 0, NULL), 0);
	assert_int_equal(volume_read(r.v, LOGICAL, found, STRIP, accept_none, &w, NULL), -EUCLEAN);
	assert_int_equal(w.right, 5);
	assert_int_equal(w.wrong, 1);
	unmake(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_mirror_is_written),
		cmocka_unit_test(one_strip_is_written),
		cmocka_unit_test(what_cannot_be_written_is_told),
		cmocka_unit_test(a_damaged_strip_is_repaired),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
