// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * copy-used DEVICE COPY [DEVICE COPY]...: copies the used ranges of a filesystem's devices, and nothing else, to other
 * devices or files that are as large. Superblocks are copied last, so that an incomplete copy is not a filesystem.
 *
 *	cc copy-used.c -o copy-used $(pkg-config --cflags --libs btrkit)
 */
#include <btrkit/btrkit.h>

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEVICES_MAX 64
#define SUPER_BYTES 4096

struct copying {
	struct btrkit_io *from[DEVICES_MAX], *to[DEVICES_MAX];
	uint64_t devid[DEVICES_MAX];
	size_t n;
	bool supers;		/* copy only superblocks, or everything else */
	uint64_t bytes;
	struct btrkit_error err;	/* of the call that failed */
	char buf[1 << 20];
};

/* Finds the devid of each device by the name with which it was opened. */
static int take_devid(void *ctx, const struct btrkit_device *device)
{
	struct copying *c = (struct copying *)ctx;

	for (size_t i = 0; device->name && i < c->n; i++)
		if (!strcmp(c->from[i]->name, device->name))
			c->devid[i] = device->devid;
	return 0;
}

static bool is_super(uint64_t at)
{
	for (unsigned i = 0; i < 3; i++)
		if (at == btrkit_super_offset(i))
			return true;
	return false;
}

static int copy(struct copying *c, size_t device, uint64_t at, uint64_t len)
{
	while (len) {
		size_t now = len < sizeof(c->buf) ? (size_t)len : sizeof(c->buf);
		int ret;

		/* A superblock is a piece of its own. */
		for (unsigned i = 0; i < 3; i++) {
			uint64_t super = btrkit_super_offset(i);

			if (super > at && super - at < now)
				now = (size_t)(super - at);
		}
		if (is_super(at))
			now = SUPER_BYTES;
		if (is_super(at) == c->supers) {
			ret = btrkit_io_read(c->from[device], at, c->buf, now, &c->err);
			if (!ret)
				ret = btrkit_io_write(c->to[device], at, c->buf, now, &c->err);
			if (ret)
				return ret;
			c->bytes += now;
		}
		at += now;
		len -= now;
	}
	return 0;
}

static int copy_range(void *ctx, const struct btrkit_used_range *range)
{
	struct copying *c = (struct copying *)ctx;

	for (size_t i = 0; i < c->n; i++)
		if (c->devid[i] == range->devid)
			return copy(c, i, range->physical, range->length);
	c->err.code = BTRKIT_INVALID;
	snprintf(c->err.message, sizeof(c->err.message), "device number %" PRIu64 " is not given", range->devid);
	return c->err.err = -ENODEV;
}

static int copy_all(struct copying *c, struct btrkit_fs *fs)
{
	int ret = btrkit_devices(fs, take_devid, c, &c->err);

	for (int supers = 0; !ret && supers < 2; supers++) {
		c->supers = supers;
		ret = btrkit_used_ranges(fs, 0, copy_range, c, &c->err);
		for (size_t i = 0; !ret && i < c->n; i++)
			ret = btrkit_io_flush(c->to[i], &c->err);
	}
	return ret;
}

static int open_pair(struct copying *c, char **names)
{
	int ret = btrkit_io_open(names[0], BTRKIT_IO_READ | BTRKIT_IO_EXCLUSIVE, &c->from[c->n], &c->err);

	if (ret)
		return ret;
	ret = btrkit_io_open(names[1], BTRKIT_IO_WRITE | BTRKIT_IO_EXCLUSIVE, &c->to[c->n], &c->err);
	if (ret)
		btrkit_io_close(c->from[c->n]);
	else
		c->n++;
	return ret;
}

int main(int argc, char **argv)
{
	static struct copying c = { .err = BTRKIT_ERROR_INIT };
	struct btrkit_fs *fs = NULL;
	char line[BTRKIT_ERROR_LINE];
	int ret = 0;

	if (argc < 3 || argc % 2 == 0 || argc > 2 * DEVICES_MAX) {
		fprintf(stderr, "usage: copy-used DEVICE COPY [DEVICE COPY]...\n");
		return 2;
	}
	for (int i = 1; !ret && i < argc; i += 2)
		ret = open_pair(&c, argv + i);
	if (!ret)
		ret = btrkit_fs_open(c.from, c.n, NULL, &fs, &c.err);
	if (!ret)
		ret = copy_all(&c, fs);
	if (ret)
		fprintf(stderr, "copy-used: %s\n", btrkit_error_format(&c.err, line, sizeof(line)));
	else
		printf("%" PRIu64 " bytes\n", c.bytes);
	btrkit_fs_close(fs);
	for (size_t i = 0; i < c.n; i++) {
		if (!fs)
			btrkit_io_close(c.from[i]);
		btrkit_io_close(c.to[i]);
	}
	return ret ? 1 : 0;
}
