// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/io/undo_log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/crc32c.h"
#include "lib/base/err.h"
#include "lib/base/text.h"
#include "lib/base/uuid.h"

#define QUEUE_BYTES (UNDO_WINDOW + 65536)	/* more than the largest record */

int undo_blame_file(struct btrkit_error *err, const char *name)
{
	char text[sizeof(err->message)];

	memcpy(text, err->message, sizeof(text));
	snprintf(err->message, sizeof(err->message), "undo file %.80s: ", name);
	text_add(err->message, sizeof(err->message), "%s", text);
	return err->err;
}

static void begin(struct undo_log *log)
{
	struct disk_undo_header *h = (struct disk_undo_header *)log->queue;

	*h = (struct disk_undo_header){ .version = le32_put(UNDO_VERSION) };
	memcpy(h->magic, UNDO_MAGIC, sizeof(h->magic));
	memcpy(h->id, log->id, sizeof(h->id));
	h->csum = le32_put(~crc32c(~0u, &h->version, sizeof(*h) - sizeof(h->csum)));
	log->queued = sizeof(*h);
}

int undo_log_create(struct btrkit_io *file, struct undo_log **ret, struct btrkit_error *err)
{
	struct undo_log *log = calloc(1, sizeof(*log));
	int r;

	if (!log)
		return err_nomem(err);
	log->queue = malloc(QUEUE_BYTES);
	r = log->queue ? base_uuid_random(log->id, err) : err_nomem(err);
	if (r) {
		free(log->queue);
		free(log);
		return r;
	}
	begin(log);
	log->file = file;
	log->users = 1;
	pthread_mutex_init(&log->lock, NULL);
	*ret = log;
	return 0;
}

/* Records after a lost one would be taken for damage, so nothing is written after the first failure. */
static int fail(struct undo_log *log, struct btrkit_error *err)
{
	if (err)
		*err = log->failure;
	return log->failure.err;
}

static int push(struct undo_log *log, struct btrkit_error *err)
{
	if (log->failure.err)
		return fail(log, err);
	if (log->queued && btrkit_io_write(log->file, log->written, log->queue, log->queued, &log->failure)) {
		undo_blame_file(&log->failure, log->file->name);
		return fail(log, err);
	}
	log->written += log->queued;
	log->queued = 0;
	return 0;
}

int undo_log_append(struct undo_log *log, const struct disk_undo_record *head, const void *payload,
		    struct btrkit_error *err)
{
	struct disk_undo_record *r;
	size_t len = le32_get(head->payload), total = undo_align(sizeof(*head) + len);
	int ret = 0;

	if (log->failure.err)
		return fail(log, err);
	if (QUEUE_BYTES - log->queued < total)
		ret = push(log, err);
	if (ret)
		return ret;
	r = (struct disk_undo_record *)(log->queue + log->queued);
	*r = *head;
	memcpy(r->id, log->id, sizeof(r->id));
	r->synced = le64_put(log->synced);
	if (len)
		memcpy(r + 1, payload, len);
	memset((uint8_t *)(r + 1) + len, 0, total - sizeof(*r) - len);
	r->csum = le32_put(~crc32c(~0u, &r->payload, sizeof(*r) - sizeof(r->csum) + len));
	log->queued += total;
	return 0;
}

int undo_log_sync(struct undo_log *log, struct btrkit_error *err)
{
	int ret = push(log, err);

	if (ret || log->synced == log->written)
		return ret;
	if (btrkit_io_flush(log->file, &log->failure)) {
		undo_blame_file(&log->failure, log->file->name);
		return fail(log, err);
	}
	log->synced = log->written;
	return 0;
}

void undo_log_use(struct undo_log *log)
{
	pthread_mutex_lock(&log->lock);
	log->users++;
	pthread_mutex_unlock(&log->lock);
}

static int end(struct undo_log *log)
{
	const struct disk_undo_record head = { .type = UNDO_END };
	int ret = undo_log_sync(log, NULL);

	if (!ret)
		ret = undo_log_append(log, &head, NULL, NULL);
	return ret ? ret : undo_log_sync(log, NULL);
}

void undo_log_drop(struct undo_log *log)
{
	bool last;

	pthread_mutex_lock(&log->lock);
	last = !--log->users;
	pthread_mutex_unlock(&log->lock);
	if (!last)
		return;
	/* There is no caller to report errors to, and the file is usable without an END record. */
	if (log->touched)
		(void)end(log);
	else
		undo_file_remove(log->file);
	btrkit_io_close(log->file);
	pthread_mutex_destroy(&log->lock);
	free(log->queue);
	free(log);
}
