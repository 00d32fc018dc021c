/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_IO_UNDO_LOG_H
#define BTRKIT_IO_UNDO_LOG_H

/* An undo file that is being written: see undo_format.h. Several devices may share one. */

#include <pthread.h>

#include <btrkit/error.h>
#include <btrkit/io.h>

#include "lib/io/undo_format.h"

struct undo_log {
	struct btrkit_io *file;
	uint8_t id[16];
	uint8_t *queue;		/* what comes next in the file */
	size_t queued;
	uint64_t written;	/* bytes written to the file */
	uint64_t synced;	/* bytes of these that are on disk */
	unsigned devices;
	bool touched;		/* something was written to a device */
	struct btrkit_error failure;	/* of the file: from then on nothing is written, not even to devices */
	pthread_mutex_t lock;	/* for all of this, and for the state of the devices */
	unsigned users;
};

/*
 * Owns @file from then on, which is empty and grows on writes. The caller is the first user.
 * @return 0; -ENOMEM, or no random numbers: the caller keeps @file
 */
int undo_log_create(struct btrkit_io *file, struct undo_log **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;
void undo_log_use(struct undo_log *log);
/* The last user closes the file. It is removed if no device was written to and undo_file_create() created it. */
void undo_log_drop(struct undo_log *log);

/*
 * Appends a record. @payload must not be inside the queue. The lock is held, as below.
 * @return 0, or the current or earlier failure of the file
 */
int undo_log_append(struct undo_log *log, const struct disk_undo_record *head, const void *payload,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Waits until everything that was appended is on disk. */
int undo_log_sync(struct undo_log *log, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Prefixes the message with "undo file NAME: ". @return err->err */
int undo_blame_file(struct btrkit_error *err, const char *name);

/* In undo_file.c: */
/*
 * Creates an empty file that grows on writes, and makes its name durable. It must not exist, nor lie on one of
 * @devices.
 */
int undo_file_create(const char *path, struct btrkit_io *const *devices, size_t n, struct btrkit_io **ret,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Removes a file if undo_file_create() created it. */
void undo_file_remove(struct btrkit_io *file);

#endif
