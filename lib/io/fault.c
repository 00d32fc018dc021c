// SPDX-License-Identifier: LGPL-2.1-or-later
/* A backend on top of another that fails on request: the source of I/O errors in tests. */
#include <btrkit/io.h>

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/io/zone.h"

struct fault_io {
	struct btrkit_io io;
	struct btrkit_io *below;
	struct btrkit_io_faults faults;
	atomic_uint_fast64_t reads, writes;
	atomic_int told; /* the last result of the backend below, whose explain() knows about it */
};

static int tell(struct fault_io *f, int ret)
{
	atomic_store(&f->told, ret);
	return ret;
}

static int inject(struct fault_io *f)
{
	(void)tell(f, 0);
	return f->faults.error ? f->faults.error : -EIO;
}

static int fault_read(struct btrkit_io *io, uint64_t offset, void *buf, size_t len)
{
	struct fault_io *f = (struct fault_io *)io;

	if (atomic_fetch_add(&f->reads, 1) >= f->faults.fail_read_after)
		return inject(f);
	return tell(f, f->below->ops->read(f->below, offset, buf, len));
}

static int fault_write(struct btrkit_io *io, uint64_t offset, const void *buf, size_t len)
{
	struct fault_io *f = (struct fault_io *)io;

	if (!f->below->ops->write)
		return -EROFS;
	if (atomic_fetch_add(&f->writes, 1) >= f->faults.fail_write_after)
		return inject(f);
	return tell(f, f->below->ops->write(f->below, offset, buf, len));
}

static int fault_flush(struct btrkit_io *io)
{
	struct fault_io *f = (struct fault_io *)io;

	if (!f->below->ops->flush)
		return -EROFS;
	if (atomic_fetch_add(&f->writes, 1) >= f->faults.fail_write_after)
		return inject(f);
	return tell(f, f->below->ops->flush(f->below));
}

static int fault_discard(struct btrkit_io *io, uint64_t offset, uint64_t len)
{
	struct fault_io *f = (struct fault_io *)io;

	if (!f->below->ops->write)
		return -EROFS;
	return tell(f, f->below->ops->discard ? f->below->ops->discard(f->below, offset, len) : 0);
}

static int fault_reserve(struct btrkit_io *io, uint64_t offset, uint64_t len)
{
	struct fault_io *f = (struct fault_io *)io;

	return tell(f, f->below->ops->reserve ? f->below->ops->reserve(f->below, offset, len) : 0);
}

static int fault_zone(struct btrkit_io *io, uint64_t offset, struct btrkit_zone *ret)
{
	return io_zone_below(((struct fault_io *)io)->below, offset, ret);
}

static int fault_resize(struct btrkit_io *io, uint64_t size)
{
	struct fault_io *f = (struct fault_io *)io;
	int ret = tell(f, f->below->ops->resize ? f->below->ops->resize(f->below, size) : -EOPNOTSUPP);

	if (!ret)
		f->below->size = size;
	return ret;
}

static void fault_explain(struct btrkit_io *io, struct btrkit_error *err)
{
	struct fault_io *f = (struct fault_io *)io;

	if (f->below->ops->explain && atomic_load(&f->told) == err->err)
		f->below->ops->explain(f->below, err);
}

static void fault_close(struct btrkit_io *io)
{
	btrkit_io_close(((struct fault_io *)io)->below);
	free(io);
}

static const struct btrkit_io_ops fault_ops = {
	.read = fault_read,
	.write = fault_write,
	.flush = fault_flush,
	.discard = fault_discard,
	.reserve = fault_reserve,
	.zone = fault_zone,
	.resize = fault_resize,
	.explain = fault_explain,
	.close = fault_close,
};

int btrkit_io_fault(struct btrkit_io *below, const struct btrkit_io_faults *faults, struct btrkit_io **ret,
		    struct btrkit_error *err)
{
	struct fault_io *f = calloc(1, sizeof(*f));

	if (!f)
		return err_nomem(err);
	f->io.ops = &fault_ops;
	f->io.size = below->size < faults->truncate_at ? below->size : faults->truncate_at;
	memcpy(f->io.name, below->name, sizeof(f->io.name));
	f->below = below;
	f->faults = *faults;
	*ret = &f->io;
	return 0;
}
