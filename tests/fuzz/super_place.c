// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The superblock log of a zoned device, with any zone report. Input: for each of the two zones a byte for its state,
 * then capacity and write pointer (le32), then the contents of the last place of each zone, as far as the input goes.
 */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/base/err.h"
#include "lib/volume/super_place.h"

#define ZONE (1u << 20)

struct device {
	struct btrkit_io io;
	struct btrkit_zone zones[SUPER_LOG_ZONES];
	const uint8_t *bytes;
	size_t size;
};

static int device_zone(struct btrkit_io *io, uint64_t offset, struct btrkit_zone *ret)
{
	*ret = ((struct device *)io)->zones[offset / ZONE % SUPER_LOG_ZONES];
	return 0;
}

static int device_read(struct btrkit_io *io, uint64_t offset, void *buf, size_t len)
{
	const struct device *d = (struct device *)io;
	const size_t at = (size_t)(offset / ZONE % SUPER_LOG_ZONES) * SUPER_SIZE;

	memset(buf, 0, len);
	if (at < d->size)
		memcpy(buf, d->bytes + at, d->size - at < len ? d->size - at : len);
	return 0;
}

static const struct btrkit_io_ops device_ops = { .read = device_read, .zone = device_zone };

static size_t take_zone(struct btrkit_zone *z, uint64_t start, const uint8_t *data)
{
	le32 numbers[2];

	memcpy(numbers, data + 1, sizeof(numbers));
	*z = (struct btrkit_zone){ start, ZONE, le32_get(numbers[0]), start + le32_get(numbers[1]),
				   (enum btrkit_zone_state)(data[0] % 4) };
	return 1 + sizeof(numbers);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct device d = { .io = { .ops = &device_ops, .size = SUPER_LOG_ZONES * ZONE, .name = "fuzz" } };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct disk_super super;
	uint64_t at = 0;
	size_t used = 0;
	int ret;

	if (size < SUPER_LOG_ZONES * 9)
		return 0;
	for (unsigned i = 0; i < SUPER_LOG_ZONES; i++)
		used += take_zone(&d.zones[i], i * ZONE, data + used);
	d.bytes = data + used;
	d.size = size - used;
	ret = super_read(&d.io, 0, &super, &at, &err);
	if (ret && !err.message[0])
		abort();
	/* The superblock is inside the log, aligned to its size. */
	if (!ret && (at % SUPER_SIZE || at > SUPER_LOG_ZONES * ZONE - SUPER_SIZE))
		abort();
	return 0;
}
