// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reading from devices in memory whose strips were laid by hand: views, missing devices, errors, counters. */
#include "tests/unit/unit.h"

#include "lib/volume/parity.h"
#include "lib/volume/volume.h"

#define STRIP (64u << 10)
#define ROWS 7u
#define DEVICES_MAX 5u
#define LOGICAL (5ull << 20)
#define PHYSICAL (2ull * STRIP + 4096)

struct rig {
	unsigned n, data;
	uint64_t type;
	struct btrkit_io *io[DEVICES_MAX]; /* the volume's, but those that are missing */
	bool missing[DEVICES_MAX];
	uint8_t *bytes; /* of the chunk */
	struct volume *v;
};

/* The product with 2^i in the field with the polynomial 0x11d. */
static uint8_t times_power(uint8_t b, unsigned i)
{
	while (i--)
		b = (uint8_t)(b << 1 ^ (b & 0x80 ? 0x1d : 0));
	return b;
}

static void put(struct rig *r, unsigned stripe, unsigned row, const uint8_t *strip)
{
	assert_int_equal(btrkit_io_write(r->io[stripe], PHYSICAL + (uint64_t)row * STRIP, strip, STRIP, NULL), 0);
}

/* Rows of raid0 and raid10: the strips one after the other, each on as many devices as there are copies. */
static void lay_plain(struct rig *r, unsigned copies)
{
	for (unsigned row = 0; row < ROWS; row++)
		for (unsigned i = 0; i < r->n; i++)
			put(r, i, row, r->bytes + ((size_t)row * r->data + i / copies) * STRIP);
}

/* The first strip of row number R lies on stripe R, the others, P and Q on those after it, around the end. */
static void lay_parity(struct rig *r)
{
	uint8_t *p = malloc(STRIP), *q = malloc(STRIP);

	assert_true(p && q);
	for (unsigned row = 0; row < ROWS; row++) {
		const uint8_t *strips = r->bytes + (size_t)row * r->data * STRIP;

		memset(p, 0, STRIP);
		memset(q, 0, STRIP);
		for (unsigned i = 0; i < r->data; i++) {
			put(r, (row + i) % r->n, row, strips + (size_t)i * STRIP);
			for (unsigned k = 0; k < STRIP; k++) {
				p[k] ^= strips[(size_t)i * STRIP + k];
				q[k] ^= times_power(strips[(size_t)i * STRIP + k], i);
			}
		}
		put(r, (row + r->data) % r->n, row, p);
		if (r->n - r->data == 2)
			put(r, (row + r->data + 1) % r->n, row, q);
	}
	free(p);
	free(q);
}

/* @missing: a bit for each device. */
static struct rig make(uint64_t profile, unsigned n, unsigned missing)
{
	const unsigned parity = profile == BG_RAID5 ? 1 : profile == BG_RAID6 ? 2 : 0;
	const unsigned copies = profile == BG_RAID10 ? 2 : 1;
	struct rig r = { .n = n, .data = (n - parity) / copies, .type = BG_DATA | profile };
	struct disk_stripe stripes[DEVICES_MAX] = { 0 };
	struct btrkit_io *given[DEVICES_MAX];
	struct super supers[DEVICES_MAX] = { 0 };
	uint32_t random = 1;
	size_t size = (size_t)ROWS * r.data * STRIP, num_given = 0;
	struct chunk chunk = { .logical = LOGICAL, .length = size, .type = r.type, .num_stripes = (uint16_t)n,
			       .stripes = stripes };

	r.bytes = malloc(size);
	assert_non_null(r.bytes);
	for (size_t i = 0; i < size; i++)
		r.bytes[i] = (uint8_t)((random = random * 1664525u + 1013904223u) >> 24);
	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(btrkit_io_memory(PHYSICAL + (ROWS + 1) * STRIP, &r.io[i], NULL), 0);
		stripes[i] = (struct disk_stripe){ .devid = le64_put(i + 1), .offset = le64_put(PHYSICAL) };
		r.missing[i] = missing >> i & 1;
		supers[num_given].num_devices = n;
		supers[num_given].devid = i + 1;
		if (!r.missing[i])
			given[num_given++] = r.io[i];
	}
	if (parity)
		lay_parity(&r);
	else
		lay_plain(&r, copies);
	assert_int_equal(volume_create(given, supers, num_given, &r.v, NULL), 0);
	assert_int_equal(volume_add_chunk(r.v, &chunk, NULL), 0);
	return r;
}

static void unmake(struct rig *r)
{
	for (unsigned i = 0; i < r->n; i++)
		if (r->missing[i])
			btrkit_io_close(r->io[i]);
	volume_destroy(r->v);
	free(r->bytes);
}

struct expected {
	const uint8_t *bytes;
	size_t len;
};

static int verify(void *ctx, const void *buf, struct btrkit_error *err)
{
	const struct expected *e = ctx;

	if (!memcmp(buf, e->bytes, e->len))
		return 0;
	if (err)
		snprintf(err->message, sizeof(err->message), "not what was laid");
	return -EUCLEAN;
}

static int read_at(struct rig *r, size_t at, size_t len, struct btrkit_error *err)
{
	static uint8_t buf[4096];
	struct expected e = { r->bytes + at, len };

	return volume_read(r->v, LOGICAL + at, buf, len, verify, &e, err);
}

/* How many sectors, one of each strip, are read. */
static unsigned readable(struct rig *r)
{
	unsigned n = 0;

	for (unsigned strip = 0; strip < ROWS * r->data; strip++)
		n += !read_at(r, (size_t)strip * STRIP + 4096u * (strip % 16), 4096, NULL);
	return n;
}

/* Errors on the devices in the order of their numbers; missing ones stand behind in the volume. */
static struct volume_errors errors(struct rig *r, unsigned device)
{
	for (size_t i = 0; i < volume_num_devices(r->v); i++)
		if (volume_device(r->v, i).devid == device + 1)
			return volume_errors(r->v, i);
	fail();
	return (struct volume_errors){ 0 };
}

static void spoil(struct rig *r, unsigned stripe, unsigned row)
{
	uint8_t *strip = malloc(STRIP);

	assert_non_null(strip);
	memset(strip, 0x5a, STRIP);
	put(r, stripe, row, strip);
	free(strip);
}

/* All sets of missing devices: what is read is what is left, and volume_chunk_reachable() says so. */
static void expect_degraded(uint64_t profile, unsigned n)
{
	for (unsigned missing = 0; missing + 1 < 1u << n; missing++) {
		struct rig r = make(profile, n, missing);
		const unsigned all = ROWS * r.data, got = readable(&r);
		const unsigned lost = (unsigned)__builtin_popcount(missing);
		bool whole = !missing;

		if (profile == BG_RAID5 || profile == BG_RAID6)
			whole = lost <= n - r.data;
		else if (profile == BG_RAID10)
			whole = !(missing & missing >> 1 & 5);
		assert_int_equal(got == all, whole);
		assert_int_equal(volume_chunk_reachable(r.v, 0), whole);
		if (profile == BG_RAID0)
			assert_int_equal(got, ROWS * (n - lost));
		for (unsigned i = 0; i < n; i++) {
			assert_int_equal(errors(&r, i).damaged, 0);
			assert_int_equal(errors(&r, i).read_errors, 0);
		}
		unmake(&r);
	}
}

static void degraded(void **state)
{
	(void)state;
	expect_degraded(BG_RAID0, 3);
	expect_degraded(BG_RAID10, 4);
	if (!parity_available())
		return;
	expect_degraded(BG_RAID5, 2);
	expect_degraded(BG_RAID5, 4);
	expect_degraded(BG_RAID6, 3);
	expect_degraded(BG_RAID6, 5);
}

/* What nobody judges is read across strips, though no view has all of it. */
static void unjudged(void **state)
{
	static const struct {
		uint64_t profile;
		unsigned n, missing;
	} cases[] = { { BG_RAID0, 3, 0 }, { BG_RAID10, 4, 9 }, { BG_RAID10, 4, 6 }, { BG_RAID5, 4, 4 },
		      { BG_RAID6, 5, 10 } };

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rig r = make(cases[i].profile, cases[i].n, cases[i].missing);
		const size_t len = (size_t)ROWS * r.data * STRIP - 300;
		uint8_t *buf = malloc(len);

		assert_non_null(buf);
		if (parity_available() || r.n == 3 || r.type & BG_RAID10) {
			assert_int_equal(volume_read_any(r.v, LOGICAL + 200, buf, len, NULL), 0);
			assert_memory_equal(buf, r.bytes + 200, len);
		}
		free(buf);
		unmake(&r);
	}
}

/* Every choice of as many strips of a row as may be spoiled: all is read, and the data's devices are counted. */
static void expect_rebuilt(uint64_t profile, unsigned n, unsigned spare)
{
	for (unsigned set = 1; set < 1u << n; set++) {
		struct rig r;

		if ((unsigned)__builtin_popcount(set) > spare)
			continue;
		r = make(profile, n, 0);
		for (unsigned i = 0; i < n; i++)
			for (unsigned row = 0; set >> i & 1 && row < ROWS; row++)
				spoil(&r, i, row);
		assert_int_equal(readable(&r), ROWS * r.data);
		for (unsigned i = 0; i < n; i++) {
			unsigned strips = 0;

			for (unsigned row = 0; row < ROWS; row++)
				strips += (i + n - row % n) % n < r.data;
			assert_int_equal(errors(&r, i).damaged, set >> i & 1 ? strips : 0);
			assert_int_equal(errors(&r, i).read_errors, 0);
		}
		unmake(&r);
	}
}

static void rebuilt(void **state)
{
	(void)state;
	if (!parity_available())
		skip();
	expect_rebuilt(BG_RAID5, 2, 1);
	expect_rebuilt(BG_RAID5, 5, 1);
	expect_rebuilt(BG_RAID6, 3, 2);
	expect_rebuilt(BG_RAID6, 5, 2);
}

/* One device missing and a strip of another spoiled, wherever both are. */
static void missing_and_spoiled(void **state)
{
	(void)state;
	if (!parity_available())
		skip();
	for (unsigned pair = 0; pair < 25; pair++) {
		struct rig r = make(BG_RAID6, 5, 1u << pair / 5);

		for (unsigned row = 0; row < ROWS; row++)
			spoil(&r, pair % 5, row);
		assert_int_equal(readable(&r), ROWS * r.data);
		unmake(&r);
	}
}

/* The failure told is that of the first copy, with its place. */
static void first_failure_is_told(void **state)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct rig r = make(BG_RAID10, 4, 0);

	(void)state;
	/* Strip 3 is in row 1 on devices 3 and 4. */
	spoil(&r, 2, 1);
	spoil(&r, 3, 1);
	assert_int_equal(read_at(&r, 3 * STRIP + 8192, 4096, &err), -EUCLEAN);
	assert_string_equal(err.message, "not what was laid");
	assert_int_equal(err.devid, 3);
	assert_int_equal(err.physical, PHYSICAL + STRIP + 8192);
	assert_int_equal(err.logical, LOGICAL + 3 * STRIP + 8192);
	assert_int_equal(errors(&r, 2).damaged, 1);
	assert_int_equal(errors(&r, 3).damaged, 1);
	assert_int_equal(errors(&r, 0).damaged + errors(&r, 1).damaged, 0);
	unmake(&r);

	r = make(BG_RAID0, 3, 2);
	err = (struct btrkit_error)BTRKIT_ERROR_INIT;
	assert_int_equal(read_at(&r, STRIP + 4096, 4096, &err), -EIO);
	assert_string_equal(err.message, "device is missing");
	assert_int_equal(err.devid, 2);
	assert_int_equal(err.physical, PHYSICAL + 4096);
	assert_int_equal(err.logical, LOGICAL + STRIP + 4096);
	unmake(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(degraded),
		cmocka_unit_test(unjudged),
		cmocka_unit_test(rebuilt),
		cmocka_unit_test(missing_and_spoiled),
		cmocka_unit_test(first_failure_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
