/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_VOLUME_VOLUME_H
#define BTRKIT_VOLUME_VOLUME_H

/*
 * The devices of a filesystem as one logical address space. Chunks are told to it, by the system chunk array first and
 * by the reader of the chunk tree after; it knows no trees.
 */

#include <btrkit/filesystem.h>

#include "lib/format/items/chunk.h"
#include "lib/format/super.h"

struct volume;

#define VOLUME_DEVICES_MAX 1024 /* of a filesystem, far more than anybody has */

/*
 * @devices become the volume's, on success only. They must have been judged: no two have one devid; @supers stands
 * beside them. Some may be missing.
 * @return 0, -ENOMEM
 */
int volume_create(struct btrkit_io *const *devices, const struct super *supers, size_t n, struct volume **ret,
		  struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Device number @device was not there when the others were written last. */
void volume_set_stale(struct volume *v, size_t device);
/* Who is told when a copy is passed over. */
void volume_watch(struct volume *v, btrkit_repair_fn repair, void *ctx);
/* Closes the devices. NULL is allowed. */
struct volume *volume_destroy(struct volume *v);
/* The same but for the devices, which become the caller's again. */
struct volume *volume_release(struct volume *v);

/*
 * Adds a device that the filesystem has: one that is not there is missing. What is more than there is room for, after
 * what superblocks count, is left out.
 */
void volume_add_device(struct volume *v, uint64_t devid, const uint8_t uuid[16]);

/*
 * Adds a chunk. One that is there already must be equal.
 * @return 0; -EOPNOTSUPP: a profile that is not read; -EUCLEAN: overlap, or outside its devices; -ENOMEM
 */
int volume_add_chunk(struct volume *v, const struct chunk *chunk, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Where a stripe begins. */
struct volume_stripe {
	unsigned device; /* its number in the volume */
	uint64_t devid;
	uint64_t physical;
};

/* A chunk as the volume knows it. */
struct volume_chunk {
	uint64_t logical, length;
	uint64_t type;		/* BG_* */
	uint64_t stripe_length; /* of the device extent that each stripe is */
	unsigned num_stripes;
	struct volume_stripe stripes[];
};

/* Takes out the chunk that begins at @logical, or NULL. The caller's, for free() or volume_put_chunk(). */
struct volume_chunk *volume_take_chunk(struct volume *v, uint64_t logical);
/* Puts one back that was taken out. That does not fail as long as there are no more chunks than there were once. */
void volume_put_chunk(struct volume *v, struct volume_chunk *chunk);

size_t volume_num_chunks(const struct volume *v);
/* Chunk number @i in the order of addresses. */
const struct volume_chunk *volume_chunk(const struct volume *v, size_t i);
/* Whether all of the chunk can be read, as far as that depends on missing devices. */
bool volume_chunk_reachable(const struct volume *v, size_t i);
/* The number of the first chunk that ends behind @logical, which may begin behind it too, or volume_num_chunks(). */
size_t volume_chunk_from(const struct volume *v, uint64_t logical);
/* The number of the chunk that begins at @logical, or volume_num_chunks(). */
size_t volume_find_chunk(const struct volume *v, uint64_t logical);

/* A device of the volume, which keeps it open. */
struct volume_device {
	struct btrkit_io *io; /* NULL: it is missing */
	uint64_t devid;
	uint8_t uuid[16];
};

size_t volume_num_devices(const struct volume *v);
struct volume_device volume_device(const struct volume *v, size_t i);

/* One copy of a range. */
struct copy {
	struct btrkit_io *io;
	uint64_t devid;
	uint64_t physical;
	uint64_t length; /* of the range, as much as lies there in one piece */
};

/*
 * Where copy @mirror (from 0) of a range begins, what parity could rebuild not counted; the device may be missing. The
 * range must lie in one chunk.
 * @return 0; 1: there are no more copies; -EUCLEAN: no chunk has the range
 */
int volume_map(const struct volume *v, uint64_t logical, uint64_t len, unsigned mirror, struct copy *ret,
	       struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Judges bytes that were read: 0, or a negative errno with the reason, upon which the next copy is tried. */
typedef int (*volume_verify_fn)(void *ctx, const void *buf, struct btrkit_error *err);

/*
 * Reads the first copy that @verify accepts, or what parity makes of the other strips. On failure the first copy's
 * error is told, and beside it all others.
 */
int volume_read(const struct volume *v, uint64_t logical, void *buf, size_t len, volume_verify_fn verify, void *ctx,
		struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Reads what nobody judges: of each strip the first copy that can be read, or what parity makes of the others. Strips
 * are apart, as no device may have all of a copy. Devices that others have left behind are read last, and nothing is
 * rebuilt from them.
 */
int volume_read_any(const struct volume *v, uint64_t logical, void *buf, size_t len,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* What was met on a device since the filesystem was opened. */
struct volume_errors {
	uint64_t read_errors; /* reads that failed */
	uint64_t damaged;     /* copies that were not accepted */
};
struct volume_errors volume_errors(const struct volume *v, size_t device);

/* How many bytes of devices a byte of file data takes, as statfs(2) of a mounted filesystem reckons. */
unsigned volume_data_factor(const struct volume *v);

/* Tells the device of the first copy that the range will be read soon. A range without a chunk is ignored. */
void volume_prefetch(const struct volume *v, uint64_t logical, uint64_t len);

#endif
