// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reads from devices in memory with hand-made strips: degraded reads, mirrors, missing devices, errors and counters. */
#include "tests/unit/unit.h"

#include "lib/format/raid.h"
#include "lib/volume/parity.h"
#include "lib/volume/volume.h"

#define STRIP (64u << 10)
#define ROWS 7u
#define DEVICES_MAX 12u
#define LOGICAL (5ull << 20)
#define PHYSICAL (2ull * STRIP + 4096)

struct rig {
	unsigned n, data;
	uint64_t type;
	struct btrkit_io *io[DEVICES_MAX]; /* of the volume, without the missing ones */
	bool missing[DEVICES_MAX];
	uint8_t *bytes; /* contents of the chunk */
	struct volume *v;
};

/* Reports about reads in which a copy was skipped. */
struct told {
	unsigned repaired, lost;
	unsigned failed;     /* in the last report, a bit for each device */
	unsigned ways;	     /* in the last report, number of failed parity combinations */
	struct btrkit_tried_copy served;
	uint64_t logical;
};

static void watch(void *ctx, const struct btrkit_bad_read *bad)
{
	struct told *t = ctx;

	t->failed = t->ways = 0;
	t->logical = bad->logical;
	*(bad->served ? &t->repaired : &t->lost) += 1;
	assert_true(bad->num_copies > 0);
	for (unsigned i = 0; i < bad->num_copies; i++) {
		const struct btrkit_tried_copy *c = &bad->copies[i];

		assert_int_equal(!c->err, bad->served && i + 1 == bad->num_copies);
		assert_int_equal(!c->err, !*c->why);
		if (!c->err)
			t->served = *c;
		else if (c->devid)
			t->failed |= 1u << (c->devid - 1);
		else
			t->ways++;
	}
}

/* Multiplies by 2^i in the Galois field with the polynomial 0x11d. */
static uint8_t times_power(uint8_t b, unsigned i)
{
	while (i--)
		b = (uint8_t)(b << 1 ^ (b & 0x80 ? 0x1d : 0));
	return b;
}

static void put(struct rig *r, unsigned stripe, unsigned nth, const uint8_t *strip)
{
	assert_int_equal(btrkit_io_write(r->io[stripe], PHYSICAL + (uint64_t)nth * STRIP, strip, STRIP, NULL), 0);
}

/* Writes the full stripes of RAID0 and RAID10: consecutive strips, each to as many devices as there are copies. */
static void lay_plain(struct rig *r, unsigned copies)
{
	for (unsigned full_stripe = 0; full_stripe < ROWS; full_stripe++)
		for (unsigned i = 0; i < r->n; i++)
			put(r, i, full_stripe, r->bytes + ((size_t)full_stripe * r->data + i / copies) * STRIP);
}

/* In full stripe R, the first strip is on stripe R, and the others, P and Q follow with wraparound. */
static void lay_parity(struct rig *r)
{
	uint8_t *p = malloc(STRIP), *q = malloc(STRIP);

	assert_true(p && q);
	for (unsigned full_stripe = 0; full_stripe < ROWS; full_stripe++) {
		const uint8_t *strips = r->bytes + (size_t)full_stripe * r->data * STRIP;

		memset(p, 0, STRIP);
		memset(q, 0, STRIP);
		for (unsigned i = 0; i < r->data; i++) {
			put(r, (full_stripe + i) % r->n, full_stripe, strips + (size_t)i * STRIP);
			for (unsigned k = 0; k < STRIP; k++) {
				p[k] ^= strips[(size_t)i * STRIP + k];
				q[k] ^= times_power(strips[(size_t)i * STRIP + k], i);
			}
		}
		put(r, (full_stripe + r->data) % r->n, full_stripe, p);
		if (r->n - r->data == 2)
			put(r, (full_stripe + r->data + 1) % r->n, full_stripe, q);
	}
	free(p);
	free(q);
}

/* @missing: a bit for each missing device; from bit 8 on, a bit for each device that is stale */
static struct rig make(uint64_t profile, unsigned n, unsigned missing)
{
	const unsigned parity = profile == BG_RAID5 ? 1 : profile == BG_RAID6 ? 2 : 0;
	const unsigned copies = raid_profile_find(profile)->copies;
	struct rig r = { .n = n, .data = (n - parity) / copies, .type = BG_DATA | profile };
	struct disk_stripe stripes[DEVICES_MAX] = { 0 };
	struct btrkit_io *given[DEVICES_MAX];
	struct super supers[DEVICES_MAX] = { 0 };
	uint32_t random = 1;
	unsigned stale = missing >> 8;
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
	for (unsigned i = 0; i < num_given; i++)
		if (stale >> (supers[i].devid - 1) & 1)
			volume_set_stale(r.v, i);
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

/* Reads a sector of each strip. @return how many can be read */
static unsigned readable(struct rig *r)
{
	unsigned n = 0;

	for (unsigned strip = 0; strip < ROWS * r->data; strip++)
		n += !read_at(r, (size_t)strip * STRIP + 4096u * (strip % 16), 4096, NULL);
	return n;
}

/* Looks up the counters by device id; missing devices come last in the volume. */
static struct volume_errors errors(struct rig *r, unsigned device)
{
	for (size_t i = 0; i < volume_num_devices(r->v); i++)
		if (volume_device(r->v, i).devid == device + 1)
			return volume_errors(r->v, i);
	fail();
	return (struct volume_errors){ 0 };
}

static void spoil(struct rig *r, unsigned stripe, unsigned full_stripe)
{
	uint8_t *strip = malloc(STRIP);

	assert_non_null(strip);
	memset(strip, 0x5a, STRIP);
	put(r, stripe, full_stripe, strip);
	free(strip);
}

/* Every set of missing devices: exactly the remaining data can be read, and volume_chunk_reachable() agrees. */
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

/* Without a check, a read may span strips, even if no single mirror has all of them. */
static void unchecked(void **state)
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

/*
 * How often a device must be counted as damaged if every data strip is read once, and those in @set are corrupt: for
 * its own data, and for other strips that can only be rebuilt by finding out that it is bad, which never applies to Q.
 */
static unsigned expected_damaged(const struct rig *r, unsigned device, unsigned set)
{
	unsigned n = 0;

	for (unsigned full_stripe = 0; set >> device & 1 && full_stripe < ROWS; full_stripe++) {
		const unsigned strip = (device + r->n - full_stripe % r->n) % r->n;

		n += strip < r->data;
		for (unsigned other = 0; strip <= r->data && other < r->data; other++)
			n += other != strip && set >> ((full_stripe + other) % r->n) & 1;
	}
	return n;
}

/*
 * Every choice of up to @spare corrupt strips per full stripe: everything can be read, and the right devices are
 * counted.
 */
static void expect_rebuilt(uint64_t profile, unsigned n, unsigned spare)
{
	for (unsigned set = 1; set < 1u << n; set++) {
		struct rig r;

		if ((unsigned)__builtin_popcount(set) > spare)
			continue;
		r = make(profile, n, 0);
		for (unsigned i = 0; i < n; i++)
			for (unsigned full_stripe = 0; set >> i & 1 && full_stripe < ROWS; full_stripe++)
				spoil(&r, i, full_stripe);
		assert_int_equal(readable(&r), ROWS * r.data);
		for (unsigned i = 0; i < n; i++) {
			assert_int_equal(errors(&r, i).damaged, expected_damaged(&r, i, set));
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
	for (unsigned n = 2; n <= 5; n++)
		expect_rebuilt(BG_RAID5, n, 1);
	for (unsigned n = 3; n <= 6; n++)
		expect_rebuilt(BG_RAID6, n, 2);
}

/*
 * One corrupt strip more than parity can repair: only corrupt data strips are lost, and each report lists the whole
 * full stripe.
 */
static void expect_lost(uint64_t profile, unsigned n, unsigned spare)
{
	for (unsigned set = 1; set < 1u << n; set++) {
		struct rig r;

		if ((unsigned)__builtin_popcount(set) != spare + 1)
			continue;
		r = make(profile, n, 0);
		for (unsigned i = 0; i < n; i++)
			for (unsigned full_stripe = 0; set >> i & 1 && full_stripe < ROWS; full_stripe++)
				spoil(&r, i, full_stripe);
		for (unsigned strip = 0; strip < ROWS * r.data; strip++) {
			const unsigned full_stripe = strip / r.data, device = (full_stripe + strip % r.data) % n;
			struct btrkit_error err = BTRKIT_ERROR_INIT;
			struct told told = { 0 };
			char place[64];

			volume_watch(r.v, watch, &told);
			if (!(set >> device & 1)) {
				assert_int_equal(read_at(&r, (size_t)strip * STRIP, 4096, &err), 0);
				assert_int_equal(told.repaired + told.lost, 0);
				continue;
			}
			assert_int_equal(read_at(&r, (size_t)strip * STRIP, 4096, &err), -EUCLEAN);
			assert_int_equal(err.devid, device + 1);
			assert_int_equal(told.lost, 1);
			assert_int_equal(told.failed, 1u << device);
			assert_int_equal(told.ways, 1);
			for (unsigned i = 0; i < n; i++) {
				snprintf(place, sizeof(place), "device %u at %u", i + 1,
					 (unsigned)PHYSICAL + full_stripe * STRIP);
				assert_int_equal(!!strstr(err.copies, place), i != device);
			}
		}
		unmake(&r);
	}
}

static void too_many_spoiled(void **state)
{
	(void)state;
	if (!parity_available())
		skip();
	expect_lost(BG_RAID5, 3, 1);
	expect_lost(BG_RAID5, 4, 1);
	expect_lost(BG_RAID6, 4, 2);
	expect_lost(BG_RAID6, 5, 2);
}

/* Every choice of corrupt copies: the first good copy is used, and the bad ones before it are counted and reported. */
static void expect_copies(uint64_t profile, unsigned n)
{
	const unsigned copies = raid_profile_find(profile)->copies;

	for (unsigned set = 1; set < 1u << n; set++) {
		struct rig r = make(profile, n, 0);
		unsigned damaged[DEVICES_MAX] = { 0 };

		for (unsigned i = 0; i < n; i++)
			for (unsigned full_stripe = 0; set >> i & 1 && full_stripe < ROWS; full_stripe++)
				spoil(&r, i, full_stripe);
		for (unsigned strip = 0; strip < ROWS * r.data; strip++) {
			const unsigned first = strip % r.data * copies;
			struct btrkit_error err = BTRKIT_ERROR_INIT;
			struct told told = { 0 };
			unsigned failed = 0, good = first;

			while (good < first + copies && set >> good & 1) {
				failed |= 1u << good;
				damaged[good++]++;
			}
			volume_watch(r.v, watch, &told);
			assert_int_equal(read_at(&r, (size_t)strip * STRIP, 4096, &err),
					 good < first + copies ? 0 : -EUCLEAN);
			assert_int_equal(told.failed, failed);
			assert_int_equal(told.lost, good == first + copies);
			assert_int_equal(told.repaired, good < first + copies && failed);
			if (told.repaired + told.lost)
				assert_int_equal(told.logical, LOGICAL + (uint64_t)strip * STRIP);
			if (!told.repaired)
				continue;
			assert_int_equal(told.served.mirror, good - first + 1);
			assert_int_equal(told.served.devid, good + 1);
			assert_int_equal(told.served.physical, PHYSICAL + strip / r.data * STRIP);
		}
		for (unsigned i = 0; i < n; i++)
			assert_int_equal(errors(&r, i).damaged, damaged[i]);
		unmake(&r);
	}
}

static void copies_spoiled(void **state)
{
	(void)state;
	expect_copies(BG_RAID1, 2);
	expect_copies(BG_RAID1C3, 3);
	expect_copies(BG_RAID1C4, 4);
	expect_copies(BG_RAID10, 4);
	expect_copies(BG_RAID10, 6);
}

static unsigned reads;

static int count_read(struct btrkit_io *io, uint64_t offset, void *buf, size_t len)
{
	(void)io, (void)offset;
	memset(buf, 0, len);
	reads++;
	return 0;
}

/* More strips than parity can cover: rebuilding is not even tried, however many combinations there would be. */
static void too_wide(void **state)
{
	const struct btrkit_io_ops ops = { .read = count_read };
	const struct super super = { .num_devices = 1, .devid = 1 };
	struct btrkit_io io = { .ops = &ops, .size = UINT64_MAX }, *given = &io;
	uint8_t buf[4096];

	(void)state;
	for (unsigned n = 257; n <= 258; n++) {
		struct disk_stripe stripes[258] = { 0 };
		struct chunk chunk = { .logical = LOGICAL, .length = (n - 2) * (uint64_t)STRIP,
				       .type = BG_DATA | BG_RAID6, .num_stripes = (uint16_t)n, .stripes = stripes };
		struct btrkit_error err = BTRKIT_ERROR_INIT;
		struct expected wrong = { (const uint8_t *)"x", 1 };
		struct volume *v;

		for (unsigned i = 0; i < n; i++)
			stripes[i] = (struct disk_stripe){ .devid = le64_put(1),
							   .offset = le64_put(i * (uint64_t)STRIP) };
		assert_int_equal(volume_create(&given, &super, 1, &v, NULL), 0);
		assert_int_equal(volume_add_chunk(v, &chunk, NULL), 0);
		reads = 0;
		assert_int_equal(volume_read(v, LOGICAL, buf, sizeof(buf), verify, &wrong, &err), -EUCLEAN);
		assert_string_equal(err.message, "not what was laid");
		assert_true(n == 257 && parity_available() ? reads > 256 * 254 : reads == 1);
		volume_release(v);
	}
}

/*
 * Data without a check is read from a stale device only if no other device has it, and is not rebuilt from stale
 * strips: that would give a state which never existed.
 */
static void left_behind(void **state)
{
	static const struct {
		uint64_t profile;
		unsigned n, stale, missing;
		bool right;
	} cases[] = { { BG_RAID1, 2, 1, 0, true },	{ BG_RAID1, 2, 1, 2, false },	{ BG_RAID1C3, 3, 3, 0, true },
		      { BG_RAID10, 4, 9, 0, true },	{ BG_RAID10, 4, 3, 0, false },	{ BG_RAID5, 3, 2, 0, true },
		      { BG_RAID5, 3, 2, 4, false },	{ BG_RAID6, 5, 12, 0, true },	{ BG_RAID6, 5, 4, 2, true } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rig r = make(cases[i].profile, cases[i].n, cases[i].missing | cases[i].stale << 8);
		const size_t len = (size_t)ROWS * r.data * STRIP;
		uint8_t *buf = malloc(len);
		struct told told = { 0 };

		assert_non_null(buf);
		for (unsigned d = 0; d < r.n; d++)
			for (unsigned full_stripe = 0; cases[i].stale >> d & 1 && full_stripe < ROWS; full_stripe++)
				spoil(&r, d, full_stripe);
		volume_watch(r.v, watch, &told);
		if (parity_available() || raid_profile_find(r.type)->copies > 1) {
			const int ret = volume_read_any(r.v, LOGICAL, buf, len, NULL);

			if (raid_profile_find(r.type)->parity && !cases[i].right) {
				assert_int_not_equal(ret, 0);
			} else {
				assert_int_equal(ret, 0);
				assert_int_equal(!memcmp(buf, r.bytes, len), cases[i].right);
			}
			/* Nothing to report: missing and stale devices are already known. */
			assert_int_equal(told.repaired + told.lost, 0);
		}
		free(buf);
		unmake(&r);
	}
}

/* One missing device, and a corrupt strip on another one, in all combinations. */
static void missing_and_spoiled(void **state)
{
	(void)state;
	if (!parity_available())
		skip();
	for (unsigned pair = 0; pair < 25; pair++) {
		struct rig r = make(BG_RAID6, 5, 1u << pair / 5);

		for (unsigned full_stripe = 0; full_stripe < ROWS; full_stripe++)
			spoil(&r, pair % 5, full_stripe);
		assert_int_equal(readable(&r), ROWS * r.data);
		unmake(&r);
	}
}

/* The error has the location of the first copy, followed by the failures of the others. */
static void all_failures_are_told(void **state)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct rig r = make(BG_RAID10, 4, 0);
	char line[BTRKIT_ERROR_LINE];

	(void)state;
	/* Strip 3 is in full stripe 1, on devices 3 and 4. */
	spoil(&r, 2, 1);
	spoil(&r, 3, 1);
	assert_int_equal(read_at(&r, 3 * STRIP + 8192, 4096, &err), -EUCLEAN);
	assert_string_equal(btrkit_error_format(&err, line, sizeof(line)),
			    "not what was laid, block 5447680, device 3, physical 208896; "
			    "copy 2 on device 4 at 208896: not what was laid");
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
	assert_string_equal(err.copies, "");
	assert_int_equal(err.devid, 2);
	assert_int_equal(err.physical, PHYSICAL + 4096);
	assert_int_equal(err.logical, LOGICAL + STRIP + 4096);
	unmake(&r);
	if (!parity_available())
		return;

	r = make(BG_RAID6, 6, 1);
	/* Row 0, strip 0: its device is missing, and P and the three other strips are bad. */
	for (unsigned i = 1; i < 4; i++)
		spoil(&r, i, 0);
	spoil(&r, 4, 0);
	assert_int_equal(read_at(&r, 0, 4096, &err), -EIO);
	assert_string_equal(btrkit_error_format(&err, line, sizeof(line)),
			    "device is missing, block 5242880, device 1, physical 135168; by parity from device 2 at "
			    "135168, device 3 at 135168, device 4 at 135168, device 5 at 135168, device 6 at 135168, "
			    "in each of 6 ways: not what was laid");
	unmake(&r);
	/* For wide full stripes only the first devices are listed. */
	r = make(BG_RAID6, 12, 0);
	for (unsigned i = 0; i < 3; i++)
		spoil(&r, i, 0);
	assert_int_equal(read_at(&r, 0, 4096, &err), -EUCLEAN);
	assert_non_null(strstr(err.copies, "device 9 at 135168 and 3 more, in each of 12 ways: not what was laid"));
	unmake(&r);
	r = make(BG_RAID5, 4, 5);
	assert_int_equal(volume_read_any(r.v, LOGICAL, (uint8_t[4096]){ 0 }, 4096, &err), -EIO);
	assert_string_equal(err.copies, "by parity from device 2 at 135168, device 3 at 135168, device 4 at 135168: "
					"too few strips are left to rebuild the data");
	unmake(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(degraded),
		cmocka_unit_test(unchecked),
		cmocka_unit_test(rebuilt),
		cmocka_unit_test(too_many_spoiled),
		cmocka_unit_test(copies_spoiled),
		cmocka_unit_test(too_wide),
		cmocka_unit_test(left_behind),
		cmocka_unit_test(missing_and_spoiled),
		cmocka_unit_test(all_failures_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
