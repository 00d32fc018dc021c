// SPDX-License-Identifier: LGPL-2.1-or-later
/* The location of the bytes of a chunk for every profile, and parity. */
#include "tests/unit/unit.h"

#include "lib/volume/parity.h"
#include "lib/volume/raid_map.h"

#define STRIP ((uint64_t)CHUNK_STRIPE_LEN)

static const uint64_t profiles[] = { 0,	       BG_DUP,	  BG_RAID0, BG_RAID1, BG_RAID1C3,
				     BG_RAID1C4, BG_RAID10, BG_RAID5, BG_RAID6 };

/* Whatever is not data must be parity, in each row. */
static void expect_parity(const struct raid_shape *s, bool taken[12][40])
{
	const unsigned data = raid_data_stripes(s);

	for (unsigned stripe = 0; data > 1 && stripe < s->num_stripes; stripe++) {
		for (uint64_t row = 0; row < 30; row++) {
			uint64_t back;
			const enum raid_role role = raid_unmap(s, stripe, row * STRIP, &back);

			assert_int_equal(role == RAID_DATA, taken[stripe][row]);
			if (role == RAID_DATA)
				continue;
			assert_int_equal(back, row * data * STRIP);
			assert_int_equal(raid_strip_stripe(s, row, data + role - RAID_P), stripe);
		}
	}
}

/* In every shape, each location belongs to one byte only, and maps back to it. */
static void there_and_back(void **state)
{
	unsigned shapes = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(profiles); i++) {
		for (unsigned n = 1; n < 12; n++) {
			const struct raid_shape s = { profiles[i], n };
			bool taken[12][40] = { 0 };

			if (!raid_shape_valid(&s))
				continue;
			shapes++;
			for (uint64_t strip = 0; strip < 30ull * raid_data_stripes(&s); strip++) {
				for (unsigned copy = 0; copy < raid_copies(&s); copy++) {
					const uint64_t at = strip * STRIP + 4096;
					struct raid_place p = raid_map(&s, at, copy);
					uint64_t back;

					assert_true(p.stripe < n);
					assert_int_equal(raid_unmap(&s, p.stripe, p.offset, &back), RAID_DATA);
					assert_int_equal(back, at);
					assert_true(p.length >= STRIP - 4096);
					if (raid_data_stripes(&s) == 1)
						continue;
					assert_int_equal(p.length, STRIP - 4096);
					assert_false(taken[p.stripe][p.offset / STRIP]);
					taken[p.stripe][p.offset / STRIP] = true;
				}
			}
			expect_parity(&s, taken);
		}
	}
	assert_int_equal(shapes, 40);
}

/* Some locations, computed by hand. */
static void known_places(void **state)
{
	const struct raid_shape r10 = { BG_RAID10 | BG_DATA, 4 }, r6 = { BG_RAID6 | BG_DATA, 5 };
	struct raid_place p;

	(void)state;
	p = raid_map(&r10, 3 * STRIP + 7, 1);
	assert_int_equal(p.stripe, 3);
	assert_int_equal(p.offset, STRIP + 7);
	/* Row 1 is rotated by one stripe: its second strip is on stripe 2, P on 4 and Q on 0. */
	p = raid_map(&r6, 4 * STRIP, 0);
	assert_int_equal(p.stripe, 2);
	assert_int_equal(p.offset, STRIP);
	assert_int_equal(raid_strip_stripe(&r6, 1, 3), 4);
	assert_int_equal(raid_strip_stripe(&r6, 1, 4), 0);
	assert_false(raid_shape_valid(&(struct raid_shape){ BG_RAID10, 3 }));
	assert_false(raid_shape_valid(&(struct raid_shape){ BG_RAID5, 1 }));
	assert_false(raid_shape_valid(&(struct raid_shape){ BG_RAID1, 3 }));
	assert_false(raid_shape_valid(&(struct raid_shape){ 0, 2 }));
}

#define LEN 512u

static uint8_t twice(uint8_t x)
{
	return (uint8_t)(x << 1 ^ (x & 0x80 ? 0x1d : 0));
}

/* P and Q by their definition; any loss of up to two strips can be rebuilt. */
static void parity(void **state)
{
	uint8_t bytes[14][LEN], rebuilt[LEN], *strips[14], *known[14];

	(void)state;
	if (!parity_available())
		skip();
	for (unsigned n = 1; n <= 12; n++) {
		for (unsigned i = 0; i < n + 2; i++) {
			strips[i] = bytes[i];
			for (unsigned k = 0; k < LEN; k++)
				bytes[i][k] = (uint8_t)((i + 1) * 37 + k * (i + 3) + (k >> 3));
		}
		assert_int_equal(parity_generate(n, LEN, strips, strips[n], strips[n + 1], NULL), 0);
		for (unsigned k = 0; k < LEN; k++) {
			uint8_t p = 0, q = 0;

			for (unsigned i = n; i-- > 0;) {
				p ^= bytes[i][k];
				q = twice(q) ^ bytes[i][k];
			}
			assert_int_equal(p, bytes[n][k]);
			assert_int_equal(q, bytes[n + 1][k]);
		}
		for (unsigned want = 0; want < n; want++) {
			for (unsigned other = 0; other < n + 2; other++) {
				memcpy(known, strips, sizeof(known));
				known[other] = NULL;
				memset(rebuilt, 0, sizeof(rebuilt));
				assert_int_equal(parity_rebuild(n, LEN, known, true, want, rebuilt, NULL), 0);
				assert_memory_equal(rebuilt, bytes[want], LEN);
				/* A third missing strip is too many. */
				if (other == want || want + 1 == other)
					continue;
				known[want + 1] = NULL;
				assert_int_equal(parity_rebuild(n, LEN, known, true, want, rebuilt, NULL), -ENXIO);
			}
		}
	}
	assert_int_equal(parity_generate(256, LEN, strips, strips[0], NULL, NULL), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(there_and_back),
		cmocka_unit_test(known_places),
		cmocka_unit_test(parity),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
