// SPDX-License-Identifier: LGPL-2.1-or-later
/* A backend on top of another that reports all modifications, from which tests derive crash states. */
#include <btrkit/io.h>

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/io/zone.h"

struct record_io {
	struct btrkit_io io;
	struct btrkit_io *below;
	struct btrkit_io_record_ops ops;
	void *ctx;
	atomic_int told; /* the last result of the backend below, whose explain() knows about it */
};

static int tell(struct record_io *r, int ret)
{
	atomic_store(&r->told, ret);
	return ret;
}

/* An error of the listener does not come from the backend below. */
static int heard(struct record_io *r, int ret)
{
	(void)tell(r, 0);
	return ret;
}

static int record_read(struct btrkit_io *io, uint64_t offset, void *buf, size_t len)
{
	struct record_io *r = (struct record_io *)io;

	return tell(r, r->below->ops->read(r->below, offset, buf, len));
}

static int record_write(struct btrkit_io *io, uint64_t offset, const void *buf, size_t len)
{
	struct record_io *r = (struct record_io *)io;
	int ret;

	if (!r->below->ops->write)
		return -EROFS;
	ret = heard(r, r->ops.write ? r->ops.write(r->ctx, offset, buf, len) : 0);
	return ret ? ret : tell(r, r->below->ops->write(r->below, offset, buf, len));
}

static int record_flush(struct btrkit_io *io)
{
	struct record_io *r = (struct record_io *)io;
	int ret;

	if (!r->below->ops->flush)
		return -EROFS;
	ret = heard(r, r->ops.flush ? r->ops.flush(r->ctx) : 0);
	return ret ? ret : tell(r, r->below->ops->flush(r->below));
}

static int record_discard(struct btrkit_io *io, uint64_t offset, uint64_t len)
{
	struct record_io *r = (struct record_io *)io;
	int ret;

	if (!r->below->ops->write)
		return -EROFS;
	ret = heard(r, r->ops.discard ? r->ops.discard(r->ctx, offset, len) : 0);
	return ret || !r->below->ops->discard ? ret : tell(r, r->below->ops->discard(r->below, offset, len));
}

static void record_prefetch(struct btrkit_io *io, uint64_t offset, uint64_t len)
{
	struct record_io *r = (struct record_io *)io;

	if (r->below->ops->prefetch)
		r->below->ops->prefetch(r->below, offset, len);
}

static int record_reserve(struct btrkit_io *io, uint64_t offset, uint64_t len)
{
	struct record_io *r = (struct record_io *)io;

	return tell(r, r->below->ops->reserve ? r->below->ops->reserve(r->below, offset, len) : 0);
}

static int record_zone(struct btrkit_io *io, uint64_t offset, struct btrkit_zone *ret)
{
	return io_zone_below(((struct record_io *)io)->below, offset, ret);
}

static int record_resize(struct btrkit_io *io, uint64_t size)
{
	struct record_io *r = (struct record_io *)io;
	int ret = tell(r, r->below->ops->resize ? r->below->ops->resize(r->below, size) : -EOPNOTSUPP);

	if (!ret)
		r->below->size = size;
	return ret;
}

static void record_explain(struct btrkit_io *io, struct btrkit_error *err)
{
	struct record_io *r = (struct record_io *)io;

	if (r->below->ops->explain && atomic_load(&r->told) == err->err)
		r->below->ops->explain(r->below, err);
}

static void record_close(struct btrkit_io *io)
{
	btrkit_io_close(((struct record_io *)io)->below);
	free(io);
}

static const struct btrkit_io_ops record_ops = {
	.read = record_read,
	.write = record_write,
	.flush = record_flush,
	.discard = record_discard,
	.reserve = record_reserve,
	.resize = record_resize,
	.prefetch = record_prefetch,
	.zone = record_zone,
	.explain = record_explain,
	.close = record_close,
};

int btrkit_io_record(struct btrkit_io *below, const struct btrkit_io_record_ops *ops, void *ctx,
		     struct btrkit_io **ret, struct btrkit_error *err)
{
	struct record_io *r = calloc(1, sizeof(*r));

	if (!r)
		return err_nomem(err);
	r->io.ops = &record_ops;
	r->io.size = below->size;
	memcpy(r->io.name, below->name, sizeof(r->io.name));
	r->below = below;
	r->ops = *ops;
	r->ctx = ctx;
	*ret = &r->io;
	return 0;
}
