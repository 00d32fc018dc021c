/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_IO_UNDO_LOG_H
#define BTRKIT_IO_UNDO_LOG_H

/* An undo file that is being written: see undo_format.h. Several devices may have one in common. */

#include <pthread.h>

#include <btrkit/error.h>
#include <btrkit/io.h>

#include "lib/io/undo_format.h"

struct undo_log {
	struct btrkit_io *file;
	uint8_t id[16];
	uint8_t *queue;		/* what follows in the file */
	size_t queued;
	uint64_t written;	/* bytes that were handed to the file */
	uint64_t synced;	/* of these, those that are on disk */
	unsigned devices;
	bool touched;		/* something was written to a device */
	struct btrkit_error failure;	/* of the file: from then on nothing is written, to no device either */
	pthread_mutex_t lock;	/* of all of this, and of the devices' own state */
	unsigned users;
};

/*
 * Owns @file from then on, which is empty and takes writes behind its end. The one user there is is the caller.
 * @return 0; -ENOMEM, or no random numbers: @file stays the caller's
 */
int undo_log_create(struct btrkit_io *file, struct undo_log **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;
void undo_log_use(struct undo_log *log);
/* The last user closes the file; one that no device was written after is removed, if undo_file_create() made it. */
void undo_log_drop(struct undo_log *log);

/*
 * Appends a record. @payload may lie anywhere but in the queue. The lock is held, as below.
 * @return 0, or the failure of the file, now or before
 */
int undo_log_append(struct undo_log *log, const struct disk_undo_record *head, const void *payload,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Returns when all that was appended is on disk. */
int undo_log_sync(struct undo_log *log, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* "undo file NAME: " before what a failure says. @return err->err */
int undo_blame_file(struct btrkit_error *err, const char *name);

/*
 * Makes an empty file that must not exist and must not lie on one of @devices, and sees that its name stays. It takes
 * writes behind its end.
 */
int undo_file_create(const char *path, struct btrkit_io *const *devices, size_t n, struct btrkit_io **ret,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Removes a file that undo_file_create() made, and no other. */
void undo_file_remove(struct btrkit_io *file);

#endif
