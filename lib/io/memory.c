// SPDX-License-Identifier: LGPL-2.1-or-later
/* A device in memory, for unit tests and programs without a file. */
#include <btrkit/io.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"

struct memory_io {
	struct btrkit_io io;
	uint8_t *bytes;
};

static int memory_read(struct btrkit_io *io, uint64_t offset, void *buf, size_t len)
{
	memcpy(buf, ((struct memory_io *)io)->bytes + offset, len);
	return 0;
}

static int memory_write(struct btrkit_io *io, uint64_t offset, const void *buf, size_t len)
{
	memcpy(((struct memory_io *)io)->bytes + offset, buf, len);
	return 0;
}

static int memory_flush(struct btrkit_io *io)
{
	(void)io;
	return 0;
}

static int memory_discard(struct btrkit_io *io, uint64_t offset, uint64_t len)
{
	memset(((struct memory_io *)io)->bytes + offset, 0, len);
	return 0;
}

static int memory_resize(struct btrkit_io *io, uint64_t size)
{
	struct memory_io *m = (struct memory_io *)io;
	uint8_t *bytes;

	if (size > SIZE_MAX / 2)
		return -EFBIG;
	bytes = realloc(m->bytes, size ? size : 1);
	if (!bytes)
		return -ENOMEM;
	m->bytes = bytes;
	if (size > io->size)
		memset(bytes + io->size, 0, size - io->size);
	return 0;
}

static void memory_close(struct btrkit_io *io)
{
	free(((struct memory_io *)io)->bytes);
	free(io);
}

static const struct btrkit_io_ops memory_ops = {
	.read = memory_read,
	.write = memory_write,
	.flush = memory_flush,
	.discard = memory_discard,
	.resize = memory_resize,
	.close = memory_close,
};

int btrkit_io_memory(uint64_t size, struct btrkit_io **ret, struct btrkit_error *err)
{
	struct memory_io *m;

	if (!size || size > SIZE_MAX / 2)
		return err_set(err, BTRKIT_INVALID, "invalid size of a memory device");
	m = calloc(1, sizeof(*m));
	if (!m)
		return err_nomem(err);
	m->bytes = calloc(1, size);
	if (!m->bytes) {
		free(m);
		return err_nomem(err);
	}
	m->io.ops = &memory_ops;
	m->io.size = size;
	snprintf(m->io.name, sizeof(m->io.name), "memory");
	*ret = &m->io;
	return 0;
}
