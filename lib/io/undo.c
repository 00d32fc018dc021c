// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A backend that saves what it overwrites to an undo file. Writes are collected in memory, so that what many of them
 * overwrite is saved with one flush of the file before they go to the device.
 */
#include "lib/io/undo.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/format/super.h"
#include "lib/io/undo_pages.h"
#include "lib/io/zone.h"

static void lock(struct undo_io *u)
{
	pthread_mutex_lock(&u->log->lock);
	u->failure.err = 0;
}

static int unlock(struct undo_io *u, int ret)
{
	pthread_mutex_unlock(&u->log->lock);
	return ret;
}

/* Refuses writes after a failure of the file or the device. @return 0 or the error of that failure */
static int refuse(struct undo_io *u)
{
	const struct btrkit_error *first = u->log->failure.err ? &u->log->failure : &u->lost;

	if (first->err)
		u->failure = *first;
	return first->err;
}

static int undo_write(struct btrkit_io *io, uint64_t offset, const void *buf, size_t len)
{
	struct undo_io *u = (struct undo_io *)io;
	const uint8_t *from = buf;
	int ret;

	lock(u);
	ret = refuse(u);
	while (!ret && len) {
		size_t at = offset % UNDO_BLOCK, n = UNDO_BLOCK - at < len ? UNDO_BLOCK - at : len;

		ret = undo_put(u, offset / UNDO_BLOCK, at, from, n);
		from += n;
		offset += n;
		len -= n;
	}
	return unlock(u, ret);
}

static int undo_read(struct btrkit_io *io, uint64_t offset, void *buf, size_t len)
{
	struct undo_io *u = (struct undo_io *)io;
	int ret;

	lock(u);
	if (!u->num_pages) {
		unlock(u, 0);
		return u->below->ops->read(u->below, offset, buf, len);
	}
	ret = u->below->ops->read(u->below, offset, buf, len);
	for (size_t i = undo_page_from(u, offset / UNDO_BLOCK); !ret && i < u->num_pages; i++) {
		uint64_t start = u->pages[i].number * UNDO_BLOCK, from = start > offset ? start : offset;
		uint64_t end = start + UNDO_BLOCK;

		if (start >= offset + len)
			break;
		end = end < offset + len ? end : offset + len;
		memcpy((uint8_t *)buf + (from - offset),
		       u->pool + (size_t)u->pages[i].slot * UNDO_BLOCK + (from - start), (size_t)(end - from));
	}
	return unlock(u, ret);
}

static int undo_flush(struct btrkit_io *io)
{
	struct undo_io *u = (struct undo_io *)io;
	int ret;

	lock(u);
	ret = refuse(u);
	if (!ret)
		ret = undo_drain(u);
	unlock(u, 0);
	return ret ? ret : u->below->ops->flush(u->below);
}

/* Discards nothing, since the old contents would be lost. */
static int undo_discard(struct btrkit_io *io, uint64_t offset, uint64_t len)
{
	(void)io;
	(void)offset;
	(void)len;
	return 0;
}

/*
 * A reserved range will be written. Saving its old contents now gets them to disk with the flush for the first write.
 */
static int undo_reserve(struct btrkit_io *io, uint64_t offset, uint64_t len)
{
	struct undo_io *u = (struct undo_io *)io;
	int ret;

	/* Lock, so that the failure of an earlier call does not explain one of this call. */
	lock(u);
	ret = u->below->ops->reserve ? u->below->ops->reserve(u->below, offset, len) : 0;
	if (!ret)
		ret = undo_save(u, offset / UNDO_BLOCK, (offset + len + UNDO_BLOCK - 1) / UNDO_BLOCK);
	return unlock(u, ret);
}

static void undo_prefetch(struct btrkit_io *io, uint64_t offset, uint64_t len)
{
	struct undo_io *u = (struct undo_io *)io;

	if (u->below->ops->prefetch)
		u->below->ops->prefetch(u->below, offset, len);
}

static int undo_zone(struct btrkit_io *io, uint64_t offset, struct btrkit_zone *ret)
{
	return io_zone_below(((struct undo_io *)io)->below, offset, ret);
}

static void undo_explain(struct btrkit_io *io, struct btrkit_error *err)
{
	struct undo_io *u = (struct undo_io *)io;

	pthread_mutex_lock(&u->log->lock);
	/* An error that was only passed on has no failure recorded here. */
	if (u->failure.err == err->err)
		*err = u->failure;
	else if (!u->failure.err && u->below->ops->explain)
		u->below->ops->explain(u->below, err);
	unlock(u, 0);
}

static void release(struct undo_io *u)
{
	undo_pages_release(u);
	free(u);
}

static void undo_close(struct btrkit_io *io)
{
	struct undo_io *u = (struct undo_io *)io;

	lock(u);
	/* There is no caller to report errors to. */
	if (!refuse(u))
		(void)undo_drain(u);
	unlock(u, 0);
	btrkit_io_close(u->below);
	undo_log_drop(u->log);
	release(u);
}

static const struct btrkit_io_ops undo_ops = {
	.read = undo_read,
	.write = undo_write,
	.flush = undo_flush,
	.discard = undo_discard,
	.reserve = undo_reserve,
	.prefetch = undo_prefetch,
	.zone = undo_zone,
	.explain = undo_explain,
	.close = undo_close,
};

const struct btrkit_io *undo_below(const struct btrkit_io *io)
{
	return io->ops == &undo_ops ? ((const struct undo_io *)io)->below : io;
}

int undo_keep(struct btrkit_io *io, uint64_t offset, uint64_t len, struct btrkit_error *err)
{
	struct undo_io *u = (struct undo_io *)io;
	int ret;

	if (io->ops != &undo_ops || !len || offset > io->size || len > io->size - offset)
		return 0;
	lock(u);
	ret = refuse(u);
	if (!ret)
		ret = undo_save(u, offset / UNDO_BLOCK, (offset + len + UNDO_BLOCK - 1) / UNDO_BLOCK);
	if (ret && err)
		*err = u->failure;
	return unlock(u, ret);
}

static int introduce(struct undo_io *u)
{
	struct disk_undo_device d = { .size = le64_put(u->io.size) };
	struct disk_undo_record head = undo_record_of(u, UNDO_DEVICE, 0, 0, sizeof(d));
	struct disk_super disk;
	struct super s;

	if (!btrkit_io_read(u->below, super_offset(0), &disk, sizeof(disk), NULL) &&
	    !super_decode(&disk, super_offset(0), &s, NULL)) {
		d.devid = le64_put(s.devid);
		d.generation = le64_put(s.generation);
		memcpy(d.fsid, s.fsid, sizeof(d.fsid));
		memcpy(d.dev_uuid, s.dev_uuid, sizeof(d.dev_uuid));
	}
	memcpy(d.name, u->io.name, sizeof(d.name));
	return undo_log_append(u->log, &head, &d, &u->failure);
}

/*
 * Saves the superblocks first, whether they will be written or not: other programs that use the filesystem write to
 * them, and undo detects that.
 */
static int begin(struct undo_io *u)
{
	int ret;

	if (u->log->devices == UNDO_DEVICES_MAX)
		return err_set(&u->failure, BTRKIT_INVALID, "too many devices");
	u->device = u->log->devices;
	ret = introduce(u);
	for (unsigned mirror = 0; !ret && mirror < SUPER_MIRRORS; mirror++)
		if (u->io.size >= super_offset(mirror) + SUPER_SIZE)
			ret = undo_save(u, super_offset(mirror) / UNDO_BLOCK, super_offset(mirror) / UNDO_BLOCK + 1);
	if (!ret)
		u->log->devices++;
	return ret;
}

int undo_io_create(struct undo_log *log, struct btrkit_io *below, struct btrkit_io **ret, struct btrkit_error *err)
{
	struct undo_io *u;
	int r;

	if (!below->ops->write || !below->ops->flush)
		return err_set(err, BTRKIT_INVALID, "is not open for writing");
	u = calloc(1, sizeof(*u));
	if (!u)
		return err_nomem(err);
	u->io.ops = &undo_ops;
	u->io.size = below->size;
	memcpy(u->io.name, below->name, sizeof(u->io.name));
	u->below = below;
	u->log = log;
	lock(u);
	r = unlock(u, undo_pages_create(u) ? begin(u) : err_nomem(&u->failure));
	if (r) {
		if (err)
			*err = u->failure;
		release(u);
		return r;
	}
	undo_log_use(log);
	*ret = &u->io;
	return 0;
}

/* The callers keep the devices that were already added to the log. */
static void give_back(struct btrkit_io **ios, size_t n)
{
	while (n--) {
		struct undo_io *u = (struct undo_io *)ios[n];

		undo_log_drop(u->log);
		release(u);
	}
}

static int create_all(struct undo_log *log, struct btrkit_io *const *below, size_t n, struct btrkit_io **ios,
		      struct btrkit_error *err)
{
	for (size_t i = 0; i < n; i++) {
		int ret = undo_io_create(log, below[i], &ios[i], err);

		if (ret) {
			if (n > 1)
				err_name(err, below[i]->name);
			give_back(ios, i);
			return ret;
		}
	}
	return 0;
}

static int open_log(const char *file, struct btrkit_io *const *below, size_t n, struct undo_log **ret,
		    struct btrkit_error *err)
{
	struct btrkit_io *io;
	int r = undo_file_create(file, below, n, &io, err);

	if (r)
		return r;
	r = undo_log_create(io, ret, err);
	if (r) {
		undo_file_remove(io);
		btrkit_io_close(io);
	}
	return r;
}

int btrkit_io_undo(struct btrkit_io *const *below, size_t n, const char *file, unsigned flags, struct btrkit_io **ret,
		   struct btrkit_error *err)
{
	struct undo_log *log = NULL;
	struct btrkit_io **ios;
	int r;

	if (flags)
		return err_set(err, BTRKIT_INVALID, "unknown flag");
	if (!n || n > UNDO_DEVICES_MAX)
		return err_set(err, BTRKIT_INVALID, "unsupported number of devices: %zu", n);
	ios = calloc(n, sizeof(struct btrkit_io *));
	r = ios ? open_log(file, below, n, &log, err) : err_nomem(err);
	if (!r) {
		r = create_all(log, below, n, ios, err);
		undo_log_drop(log);
	}
	if (!r)
		memcpy(ret, ios, n * sizeof(struct btrkit_io *));
	free(ios);
	return r;
}
