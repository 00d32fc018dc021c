// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/volume/volume_write.h"

#include <inttypes.h>

#include "lib/base/err.h"
#include "lib/volume/volume_impl.h"

static bool has_super(uint64_t physical, size_t len)
{
	for (unsigned mirror = 0; mirror < SUPER_MIRRORS; mirror++)
		if (physical < super_offset(mirror) + SUPER_SIZE && physical + len > super_offset(mirror))
			return true;
	return false;
}

static int write_stripe(const struct volume *v, const struct volume_chunk *c, unsigned stripe, uint64_t offset,
			const void *buf, size_t len, struct btrkit_error *err)
{
	const struct volume_stripe *s = &c->stripes[stripe];
	struct btrkit_io *io = v->devices[s->device].is.io;
	const uint64_t physical = s->physical + offset;
	int ret;

	if (!io)
		ret = err_because(err, BTRKIT_CAUSE_DEVICE_MISSING, err_set(err, BTRKIT_IO, "device is missing"));
	else if (has_super(physical, len))
		ret = err_set(err, BTRKIT_INVALID, "a superblock is in the range of %zu bytes", len);
	else
		ret = btrkit_io_write(io, physical, buf, len, err);
	if (ret)
		err_at_device(err, s->devid, physical);
	return ret;
}

int volume_write_mirror(const struct volume *v, uint64_t logical, const void *buf, size_t len, unsigned mirror,
			struct btrkit_error *err)
{
	const struct volume_chunk *c;
	struct raid_shape shape;
	int ret;

	ret = volume_find(v, logical, len, &c, err);
	if (ret)
		return ret;
	shape = shape_of(c);
	if (mirror >= raid_copies(&shape))
		return 1;
	for (size_t done = 0, n; !ret && done < len; done += n) {
		const struct raid_place place = raid_map(&shape, logical + done - c->logical, mirror);

		n = place.length < len - done ? (size_t)place.length : len - done;
		ret = write_stripe(v, c, place.stripe, place.offset, (const uint8_t *)buf + done, n, err);
	}
	return ret;
}

int volume_write_strip(const struct volume *v, uint64_t logical, unsigned strip, uint32_t offset, const void *buf,
		       size_t len, struct btrkit_error *err)
{
	const struct volume_chunk *c;
	struct raid_shape shape;
	uint64_t number;
	int ret;

	ret = volume_find(v, logical, 1, &c, err);
	if (ret)
		return ret;
	if (offset > CHUNK_STRIPE_LEN || len > CHUNK_STRIPE_LEN - offset)
		return err_set(err, BTRKIT_INVALID, "%zu bytes from %" PRIu32 " on are not within a strip", len,
			       offset);
	shape = shape_of(c);
	if (!raid_profile_find(c->type)->parity || strip >= shape.num_stripes)
		return 1;
	number = raid_map(&shape, logical - c->logical, 0).offset / CHUNK_STRIPE_LEN;
	return write_stripe(v, c, raid_strip_stripe(&shape, number, strip), number * CHUNK_STRIPE_LEN + offset, buf,
			    len, err);
}
