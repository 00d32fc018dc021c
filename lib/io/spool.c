// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/io/spool.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/err.h"

#define FIRST_BYTES 65536u

struct spool {
	uint8_t *buf; /* the first bytes */
	size_t room, memory;
	uint64_t size;
	int fd; /* the file with the rest; -1: none */
};

int spool_create(size_t memory, struct spool **ret, struct btrkit_error *err)
{
	struct spool *s = calloc(1, sizeof(*s));

	if (!s)
		return err_nomem(err);
	s->memory = memory;
	s->fd = -1;
	*ret = s;
	return 0;
}

struct spool *spool_destroy(struct spool *s)
{
	if (!s)
		return NULL;
	if (s->fd >= 0)
		close(s->fd);
	free(s->buf);
	free(s);
	return NULL;
}

uint64_t spool_size(const struct spool *s)
{
	return s->size;
}

static int open_file(struct spool *s, struct btrkit_error *err)
{
	const char *dir = getenv("TMPDIR");

	if (s->fd >= 0)
		return 0;
	if (!dir || !*dir)
		dir = "/var/tmp";
	s->fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (s->fd < 0)
		return err_system(err, errno, "cannot create a temporary file in %s", dir);
	return 0;
}

/* Makes room in memory for @len more bytes, as far as the limit allows. */
static int grow(struct spool *s, size_t len, struct btrkit_error *err)
{
	size_t room = s->room ? s->room : FIRST_BYTES;
	uint8_t *more;

	while (room < s->size + len && room < s->memory)
		room *= 2;
	if (room > s->memory)
		room = s->memory;
	if (room <= s->room)
		return 0;
	more = realloc(s->buf, room);
	if (!more)
		return err_nomem(err);
	s->buf = more;
	s->room = room;
	return 0;
}

int spool_append(struct spool *s, const void *data, size_t len, struct btrkit_error *err)
{
	const uint8_t *from = data;
	uint64_t at = s->size;
	size_t here = 0;
	int ret = 0;

	if (at < s->memory)
		ret = grow(s, len, err);
	if (!ret && at < s->room) {
		here = len < s->room - at ? len : s->room - (size_t)at;
		memcpy(s->buf + at, from, here);
	}
	if (!ret && here < len)
		ret = open_file(s, err);
	while (!ret && here < len) {
		const ssize_t n = pwrite(s->fd, from + here, len - here, (off_t)(at + here - s->room));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_system(err, errno, "cannot write a temporary file");
		here += (size_t)n;
	}
	if (!ret)
		s->size += len;
	return ret;
}

int spool_read(const struct spool *s, uint64_t offset, void *buf, size_t len, struct btrkit_error *err)
{
	uint8_t *to = buf;
	size_t here = 0;

	if (offset > s->size || len > s->size - offset)
		return err_set(err, BTRKIT_TRUNCATED,
			       "read of %zu bytes at %" PRIu64 " of a temporary file of %" PRIu64 " bytes",
			       len, offset, s->size);
	if (offset < s->room) {
		here = len < s->room - offset ? len : s->room - (size_t)offset;
		memcpy(to, s->buf + offset, here);
	}
	while (here < len) {
		const ssize_t n = pread(s->fd, to + here, len - here, (off_t)(offset + here - s->room));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return err_system(err, n ? errno : EIO, "cannot read a temporary file");
		here += (size_t)n;
	}
	return 0;
}
