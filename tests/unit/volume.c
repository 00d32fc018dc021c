// SPDX-License-Identifier: LGPL-2.1-or-later
/* Chunks of a volume are added and removed, in any order. */
#include "tests/unit/unit.h"

#include "lib/volume/volume.h"

#define MIB (1ull << 20)
#define CHUNKS 100u

static const uint8_t uuid[16] = "device's own id";

static struct volume *make_volume(struct btrkit_io **io)
{
	struct super super = { .num_devices = 1, .devid = 7 };
	struct volume *v;

	memcpy(super.dev_uuid, uuid, sizeof(uuid));
	assert_int_equal(btrkit_io_memory(MIB, io, NULL), 0);
	assert_int_equal(volume_create(io, &super, 1, &v, NULL), 0);
	return v;
}

static void add(struct volume *v, unsigned i)
{
	struct disk_stripe stripes[2] = {
		{ .devid = le64_put(7), .offset = le64_put(2 * i * MIB) },
		{ .devid = le64_put(7), .offset = le64_put((2 * i + 1) * MIB) },
	};
	const struct chunk chunk = { .logical = (i + 1) * MIB, .length = MIB, .type = BG_DATA | BG_DUP,
				     .num_stripes = 2, .stripes = stripes };

	assert_int_equal(volume_add_chunk(v, &chunk, NULL), 0);
}

static void devices_are_told(void **state)
{
	struct btrkit_io *io;
	struct volume *v = make_volume(&io);
	const struct volume_device d = volume_device(v, 0);

	(void)state;
	assert_int_equal(volume_num_devices(v), 1);
	assert_ptr_equal(d.io, io);
	assert_int_equal(d.devid, 7);
	assert_memory_equal(d.uuid, uuid, sizeof(uuid));
	volume_destroy(v);
}

/* A device that was not given becomes known by its item, up to the limit of devices. */
static void missing_devices_are_entered(void **state)
{
	const struct super supers[2] = { { .num_devices = 1, .devid = 1 }, { .num_devices = 3, .devid = 2 } };
	struct btrkit_io *io[2];
	struct volume *v;

	(void)state;
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(btrkit_io_memory(MIB, &io[i], NULL), 0);
	assert_int_equal(volume_create(io, supers, 2, &v, NULL), 0);
	volume_add_device(v, 2, uuid);
	assert_int_equal(volume_num_devices(v), 2);
	volume_add_device(v, 9, uuid);
	assert_int_equal(volume_num_devices(v), 3);
	assert_int_equal(volume_device(v, 2).devid, 9);
	assert_null(volume_device(v, 2).io);
	assert_memory_equal(volume_device(v, 2).uuid, uuid, sizeof(uuid));
	for (unsigned i = 0; i < 9; i++)
		volume_add_device(v, 10 + i, uuid);
	assert_true(volume_num_devices(v) <= 4);
	volume_destroy(v);
}

static void chunks_come_and_go(void **state)
{
	bool there[CHUNKS] = { false };
	struct btrkit_io *io;
	struct volume *v = make_volume(&io);

	(void)state;
	for (unsigned step = 0; step < 2000; step++) {
		const unsigned i = step * 7919u % (CHUNKS + step % 7) % CHUNKS;
		struct copy copy;
		size_t n = 0;

		if (there[i])
			free(volume_take_chunk(v, (i + 1) * MIB));
		else
			add(v, i);
		there[i] = !there[i];
		for (unsigned k = 0; k < CHUNKS; k++) {
			assert_int_equal(volume_map(v, (k + 1) * MIB + 5, 1, 1, &copy, NULL), there[k] ? 0 : -EUCLEAN);
			if (!there[k])
				continue;
			assert_int_equal(copy.physical, (2 * k + 1) * MIB + 5);
			assert_int_equal(volume_chunk(v, n)->logical, (k + 1) * MIB);
			assert_int_equal(volume_chunk(v, n)->stripes[1].devid, 7);
			n++;
		}
		assert_int_equal(volume_num_chunks(v), n);
	}
	/* No chunk starts inside another one. */
	add(v, there[0] ? 1 : 0);
	assert_null(volume_take_chunk(v, MIB + 1));
	assert_int_equal(volume_map(v, MIB, 1, 0, &(struct copy){ 0 }, NULL), 0);
	volume_destroy(v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(devices_are_told),
		cmocka_unit_test(missing_devices_are_entered),
		cmocka_unit_test(chunks_come_and_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
