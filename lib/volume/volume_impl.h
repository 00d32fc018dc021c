/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_VOLUME_VOLUME_IMPL_H
#define BTRKIT_VOLUME_VOLUME_IMPL_H

/* Internals shared by the files of the volume. */

#include <stdatomic.h>

#include "lib/volume/raid_map.h"
#include "lib/volume/volume.h"

struct device {
	struct volume_device is;
	bool stale;  /* other devices were written later */
	bool closed; /* no chunks are placed here */
	uint64_t unmirrored; /* of a stale device: see volume_find_unmirrored() */
	struct btrkit_io *left_out; /* NULL, or the device, which is treated as missing */
	/* Updated by many threads. */
	atomic_uint_fast64_t read_errors, damaged;
};

struct volume {
	struct device *devices; /* those that were given, followed by missing ones */
	size_t num_devices, devices_max;
	struct volume_chunk **chunks; /* sorted by logical address, without overlap */
	size_t num_chunks, chunks_size;
	bool some_stale;
	btrkit_bad_read_fn bad_read; /* may be NULL */
	void *bad_read_ctx;
};

static inline struct raid_shape shape_of(const struct volume_chunk *c)
{
	return (struct raid_shape){ c->type, c->num_stripes };
}

/* In volume.c: */
/* The chunk that contains the whole range. @return 0 or -EUCLEAN */
int volume_find(const struct volume *v, uint64_t logical, uint64_t len, const struct volume_chunk **ret,
		struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
