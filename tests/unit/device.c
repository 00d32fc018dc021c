// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/unit/unit.h"

#include "tests/unit/device.h"
#include "tests/unit/memory.h"

static int device_read(struct btrkit_io *io, uint64_t offset, void *buf, size_t len)
{
	const bool counted = memory_pause();

	sparse_read(((struct device *)io)->at, offset, buf, len);
	memory_resume(counted);
	return 0;
}

static int device_write(struct btrkit_io *io, uint64_t offset, const void *buf, size_t len)
{
	const bool counted = memory_pause();

	sparse_write(((struct device *)io)->at, offset, buf, len);
	memory_resume(counted);
	return 0;
}

static int device_flush(struct btrkit_io *io)
{
	(void)io;
	return 0;
}

static void device_close(struct btrkit_io *io)
{
	struct device *d = (struct device *)io;

	if (!d->owner)
		return;
	sparse_free(d->at);
	free(d);
}

void device_init(struct device *d, struct sparse *at, uint64_t size)
{
	static const struct btrkit_io_ops ops = {
		.read = device_read, .write = device_write, .flush = device_flush, .close = device_close
	};

	*d = (struct device){ .io = { .ops = &ops, .size = size, .name = "device" }, .at = at };
}

struct btrkit_io *device_create(struct sparse *at, uint64_t size)
{
	struct device *d = malloc(sizeof(*d));

	assert_non_null(d);
	device_init(d, at, size);
	d->owner = true;
	return &d->io;
}
