// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/fuzz/device.h"

#include <stdlib.h>

#include "lib/format/disk.h"

#define RECORDS_MAX 1024
#define BLOCK_MIN 4096u
#define BLOCK_MAX 65536u
#define SUPER_AT 65536u

struct record {
	uint64_t offset;
	uint32_t len;
	bool data;
	const uint8_t *bytes;
};

struct sparse_io {
	struct btrkit_io io;
	struct record records[RECORDS_MAX];
	size_t count;
};

static int sparse_read(struct btrkit_io *io, uint64_t offset, void *buf, size_t len)
{
	struct sparse_io *s = (struct sparse_io *)io;

	if (offset > io->size || len > io->size - offset)
		return -6; /* ENXIO */
	memset(buf, 0, len);
	for (size_t i = 0; i < s->count; i++) {
		const struct record *r = &s->records[i];
		uint64_t from = r->offset > offset ? r->offset : offset;
		uint64_t end = r->offset + r->len < offset + len ? r->offset + r->len : offset + len;

		if (from < end)
			memcpy((uint8_t *)buf + (from - offset), r->bytes + (from - r->offset), (size_t)(end - from));
	}
	return 0;
}

static void sparse_close(struct btrkit_io *io)
{
	free(io);
}

static const struct btrkit_io_ops sparse_ops = { .read = sparse_read, .close = sparse_close };

static bool record_next(struct fuzz_choices *rest, uint8_t *data, struct record *ret)
{
	size_t left = (size_t)(rest->end - rest->pos);
	le64 offset;
	le32 len;

	if (left < sizeof(offset) + sizeof(len))
		return false;
	memcpy(&offset, rest->pos, sizeof(offset));
	memcpy(&len, rest->pos + sizeof(offset), sizeof(len));
	left -= sizeof(offset) + sizeof(len);
	ret->len = le32_get(len);
	if (ret->len < BLOCK_MIN || ret->len > BLOCK_MAX || ret->len > left)
		return false;
	ret->data = le64_get(offset) & 1;
	ret->offset = le64_get(offset) - ret->data;
	ret->bytes = rest->pos + sizeof(offset) + sizeof(len);
	if (!ret->data)
		fuzz_seal(data + (ret->bytes - data), ret->len);
	rest->pos = ret->bytes + ret->len;
	return true;
}

struct btrkit_io *fuzz_device_open(uint8_t *data, size_t size, bool dense, struct fuzz_choices *choices)
{
	struct sparse_io *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->io.ops = &sparse_ops;
	s->io.size = 1ull << 40;
	memcpy(s->io.name, "fuzz", 5);
	*choices = (struct fuzz_choices){ data, data + size };
	while (s->count < RECORDS_MAX && record_next(choices, data, &s->records[s->count])) {
		struct record *r = &s->records[s->count++];

		r->offset %= s->io.size;
		if (dense && r->offset != SUPER_AT)
			r->offset = SUPER_AT + BLOCK_MAX * s->count;
	}
	if (dense)
		s->io.size = SUPER_AT + BLOCK_MAX * (s->count + 1);
	return &s->io;
}

uint64_t fuzz_device_block(const struct btrkit_io *io, size_t i)
{
	const struct sparse_io *s = (const struct sparse_io *)io;
	le64 bytenr;

	for (size_t n = 0; n < s->count; n++) {
		if (s->records[n].data || s->records[n].offset == SUPER_AT || i--)
			continue;
		memcpy(&bytenr, s->records[n].bytes + offsetof(struct disk_header, bytenr), sizeof(bytenr));
		return le64_get(bytenr);
	}
	return 0;
}

uint64_t fuzz_choose(struct fuzz_choices *c, size_t bytes)
{
	uint64_t v = 0;

	for (size_t i = 0; i < bytes && c->pos < c->end; i++)
		v |= (uint64_t)*c->pos++ << 8 * i;
	return v;
}

void fuzz_ended(int ret, const struct btrkit_error *err)
{
	if (ret < 0 && ret != -27 && !err->message[0])
		abort();
}

static void json_in_string(struct fuzz_json *j, uint8_t c)
{
	if (j->utf8 ? (c & 0xc0) != 0x80 : c < 0x20 || (c >= 0x80 && c < 0xc2) || c > 0xf4)
		abort();
	if (j->utf8)
		j->utf8--;
	else if (c >= 0x80)
		j->utf8 = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : 1;
	else if (j->escape && !strchr("\"\\/bfnrtu", c))
		abort();
	else if (j->escape)
		j->escape = false;
	else if (c == '\\')
		j->escape = true;
	else if (c == '"')
		j->string = false;
}

static void json_byte(struct fuzz_json *j, uint8_t c)
{
	if (j->string) {
		json_in_string(j, c);
		return;
	}
	/* Each line is an object. */
	if (j->depth ? c == '\n' : c != '{' && c != '\n')
		abort();
	if (c == '"')
		j->string = true;
	else if (c == '{' || c == '[')
		j->depth++;
	else if (c == '}' || c == ']')
		j->depth--;
}

int fuzz_write_json(void *ctx, const void *data, size_t len)
{
	struct fuzz_json *j = ctx;

	for (size_t i = 0; i < len; i++)
		json_byte(j, ((const uint8_t *)data)[i]);
	return fuzz_write(&j->left, data, len);
}

void fuzz_json_ended(const struct fuzz_json *j, int ret)
{
	if (ret != -27 && (j->depth || j->string))
		abort();
}
