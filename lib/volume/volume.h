/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_VOLUME_VOLUME_H
#define BTRKIT_VOLUME_VOLUME_H

/*
 * The devices of a filesystem as one logical address space. The caller adds the chunks: first those of the system chunk
 * array, then those of the chunk tree. The volume itself does not read trees.
 */

#include <btrkit/filesystem.h>

#include "lib/format/items/devices/chunk.h"
#include "lib/format/super.h"

struct volume;

#define VOLUME_DEVICES_MAX 1024 /* far more than any filesystem has */

/*
 * Creates a volume. On success it owns @devices. Their @supers must have been validated, with unique devids. Devices
 * may be missing.
 * @return 0, -ENOMEM
 */
int volume_create(struct btrkit_io *const *devices, const struct super *supers, size_t n, struct volume **ret,
		  struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Marks a device as stale: it was missing when the other devices were last written. */
void volume_set_stale(struct volume *v, size_t device);
/* Whether the device of that number is known to be stale. */
bool volume_is_stale(const struct volume *v, uint64_t devid);
/* Treats a device as missing from now on. It remains open, and is closed or released with the volume. */
void volume_leave_out(struct volume *v, size_t device);
/* Sets the callback for copies that could not be used. */
void volume_watch(struct volume *v, btrkit_bad_read_fn bad_read, void *ctx);
/* Frees the volume and closes the devices. @v may be NULL. */
struct volume *volume_destroy(struct volume *v);
/* Frees the volume, and return ownership of the devices to the caller. */
struct volume *volume_release(struct volume *v);

/*
 * Adds a device of the filesystem, as missing unless it is known already. Ignored if there are more devices than the
 * superblocks count.
 */
void volume_add_device(struct volume *v, uint64_t devid, const uint8_t uuid[16]);

/*
 * Adds a chunk. Adding an identical chunk again is allowed.
 * @return 0; -EOPNOTSUPP: unsupported profile; -EUCLEAN: overlap, or outside of its devices; -ENOMEM
 */
int volume_add_chunk(struct volume *v, const struct chunk *chunk, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Location of a stripe. */
struct volume_stripe {
	unsigned device; /* index of the device in the volume */
	uint64_t devid;
	uint64_t physical;
};

/* A chunk of the volume. */
struct volume_chunk {
	uint64_t logical, length;
	uint64_t type;		/* BG_* */
	uint64_t stripe_length; /* length of each device extent */
	unsigned num_stripes;
	struct volume_stripe stripes[];
};

/*
 * Removes the chunk at @logical and returns it, or NULL if there is none. The caller must pass it to free() or
 * volume_put_chunk().
 */
struct volume_chunk *volume_take_chunk(struct volume *v, uint64_t logical);
/* Adds a chunk that volume_take_chunk() removed. Cannot fail, unless there are more chunks than before. */
void volume_put_chunk(struct volume *v, struct volume_chunk *chunk);

size_t volume_num_chunks(const struct volume *v);
/* Chunk @i in the order of addresses. */
const struct volume_chunk *volume_chunk(const struct volume *v, size_t i);
/* Whether the whole chunk can be read despite missing devices. */
bool volume_chunk_reachable(const struct volume *v, size_t i);
/* Whether Linux writes to the chunk despite missing devices: it counts them, whichever stripes they have. */
bool volume_chunk_writable(const struct volume *v, size_t i);
/*
 * Types and profiles, with BG_SINGLE, of the chunks on a stale device that cannot be read without stale devices.
 * volume_find_unmirrored() finds them, when all stale devices are marked and all chunks added.
 */
void volume_find_unmirrored(struct volume *v, size_t device);
uint64_t volume_unmirrored(const struct volume *v, uint64_t devid);
/*
 * Index of the first chunk that ends after @logical, whether or not it contains @logical; volume_num_chunks() if there
 * is none.
 */
size_t volume_chunk_from(const struct volume *v, uint64_t logical);
/* Index of the chunk that starts at @logical, or volume_num_chunks(). */
size_t volume_find_chunk(const struct volume *v, uint64_t logical);

/* Whether a transaction adds or removes a device. In both cases it can be read and written like others. */
enum volume_state { VOLUME_MEMBER, VOLUME_JOINING, VOLUME_LEAVING };

/* A device, owned by the volume. */
struct volume_device {
	struct btrkit_io *io; /* NULL: missing */
	uint64_t devid;
	uint8_t uuid[16];
	enum volume_state state;
};

size_t volume_num_devices(const struct volume *v);
struct volume_device volume_device(const struct volume *v, size_t i);

/* In volume_devices.c: */
/*
 * Devices of an open volume join and leave by the following, which must not be called while other threads use it.
 * volume_make_room() makes sure that volume_join() has room, which makes the device the last one; the volume owns it
 * from then on. volume_drop_device() closes one that no chunk uses, and the index of each device after it changes.
 * @return 0; -EINVAL: too many devices; -ENOMEM
 */
int volume_make_room(struct volume *v, struct btrkit_error *err) BTRKIT_MUST_CHECK;
void volume_join(struct volume *v, struct btrkit_io *io, uint64_t devid, const uint8_t uuid[16]);
void volume_set_state(struct volume *v, size_t i, enum volume_state state);
void volume_drop_device(struct volume *v, size_t i);
/* Whether any chunk has a stripe on a device. */
bool volume_device_in_use(const struct volume *v, uint64_t devid);

/* Says that no new chunks are placed on a device, or that they are. */
void volume_set_closed(struct volume *v, size_t i, bool closed);
/* Whether new chunks are placed on a device: not if it is closed, leaves, is missing, or does not exist. */
bool volume_takes_chunks(const struct volume *v, uint64_t devid);

/* One copy of a range. */
struct copy {
	struct btrkit_io *io;
	uint64_t devid;
	uint64_t physical;
	uint64_t length; /* contiguous bytes there, at most those of the range */
};

/* In volume.c: */
/*
 * Finds the start of copy @mirror (from 0) of a range, not counting what parity can rebuild. The device may be missing.
 * The range must be in one chunk.
 * @return 0; 1: no such copy; -EUCLEAN: the range is not in a chunk
 */
int volume_map(const struct volume *v, uint64_t logical, uint64_t len, unsigned mirror, struct copy *ret,
	       struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Verifies data that was read. @return 0, or a negative errno with the reason, to try the next copy */
typedef int (*volume_verify_fn)(void *ctx, const void *buf, struct btrkit_error *err);

/* In volume_read.c: */
/*
 * Reads the first copy that @verify accepts, or rebuilds the data from parity. On failure, the error is that of the
 * first copy, with those of all others in err->copies.
 */
int volume_read(const struct volume *v, uint64_t logical, void *buf, size_t len, volume_verify_fn verify, void *ctx,
		struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Reads data that cannot be verified: for each strip, the first copy that can be read, or else rebuilt from parity.
 * Strips are handled separately, because no device may have all strips of a copy. Stale devices are used as the last
 * resort, and never to rebuild data.
 */
int volume_read_any(const struct volume *v, uint64_t logical, void *buf, size_t len,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Errors of a device since the filesystem was opened. */
struct volume_errors {
	uint64_t read_errors; /* failed reads */
	uint64_t damaged;     /* copies that failed verification */
};
struct volume_errors volume_errors(const struct volume *v, size_t device);

/* In volume.c: */
/* Number of bytes on devices per byte of file data, as in the statfs(2) of a mounted filesystem. */
unsigned volume_data_factor(const struct volume *v);

/* Announce a read of the range to the device with the first copy. Ranges without a chunk are ignored. */
void volume_prefetch(const struct volume *v, uint64_t logical, uint64_t len);

#endif
