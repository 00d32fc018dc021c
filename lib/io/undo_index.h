/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_IO_UNDO_INDEX_H
#define BTRKIT_IO_UNDO_INDEX_H

/* The contents of an undo file: see undo_format.h. */

#include <btrkit/error.h>
#include <btrkit/io.h>

#include "lib/io/undo_format.h"

/* An OLD or NEW record. */
struct undo_entry {
	uint64_t offset;	/* on the device */
	uint64_t at;		/* of the payload, in the file */
	uint32_t len;
	uint16_t device;
	uint8_t type, flags;
};

struct undo_device {
	uint64_t size;
	char name[256];
};

struct undo_index {
	uint8_t id[16];
	struct undo_device *devices;
	unsigned num_devices;
	struct undo_entry *entries;	/* by device and window; in a window OLD before NEW, then by offset */
	size_t num_entries, room;
	uint64_t saved;			/* bytes of all OLD entries */
};

/*
 * Reads and verifies all of @file.
 * @return 0; -EINVAL: not an undo file; -EUCLEAN: damaged; -EOPNOTSUPP: a later version; -EIO, -ENOMEM
 */
int undo_index_load(struct btrkit_io *file, struct undo_index *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;
void undo_index_release(struct undo_index *index);

/* The number of entries from number @first on that belong to the same device and window. */
size_t undo_index_window(const struct undo_index *index, size_t first);

#endif
