// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/mkfs/filled/units.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/base/le.h"
#include "lib/io/buffer.h"
#include "lib/mkfs/filled/unit.h"

/*
 * Adds a unit to the digest of all contents. Uses pieces instead of parts, so that holes and written zeros are equal.
 */
static void digest(const struct units *u, const struct unit *w)
{
	const struct units_config *c = &u->config;
	const struct csum_kind *hash = csum_kind_find(BTRKIT_CSUM_XXHASH64);
	struct {
		le64 so_far, inode, offset, bytes;
		uint8_t data[8];
	} all = { .so_far = le64_put(c->contents->digest) };

	for (unsigned i = 0; i < w->num_pieces; i++) {
		const struct mkfs_piece *p = &w->pieces[i];

		/* Inodes of an archive have no numbers yet and must not be accessed, but arrive in a fixed order. */
		if (!source_streams(c->source)) {
			const struct source_inode *n = &c->source->inodes[p->inode];

			all.inode = le64_put((uint64_t)n->subvolume << 32 | n->number);
		}
		all.offset = le64_put(p->file_offset);
		all.bytes = le64_put(p->disk_bytes);
		memcpy(all.data, p->digest, sizeof(all.data));
		hash->compute(&all, sizeof(all), (uint8_t *)&all.so_far);
	}
	c->contents->digest = le64_get(all.so_far);
}

static int finish(void *ctx, void *slot, struct btrkit_error *err)
{
	struct units *u = ctx;
	const struct units_config *c = &u->config;
	struct unit *w = slot;
	struct mkfs_contents *to = c->contents;

	if (c->digest)
		digest(u, w);
	to->compressed_from += w->from;
	to->compressed_to += w->to;
	for (unsigned i = 0; i < w->num_parts; i++) {
		const struct part *p = &w->parts[i];
		int ret = p->incompressible ? mkfs_contents_mark(to, p->inode, err) : 0;

		if (!ret && c->file_digests)
			ret = mkfs_contents_digest(to, p->inode, p->offset, p->digest, err);
		if (ret)
			return ret;
	}
	return mkfs_contents_add(to, c->compact, c->csum->size, c->sectorsize, w->pieces, w->num_pieces, err);
}

static int create_unit(struct units *u, struct unit *w, struct btrkit_error *err)
{
	const struct units_config *c = &u->config;
	const unsigned sectors = UNIT_BYTES / c->sectorsize;

	w->pieces_max = PARTS_MAX + sectors;
	w->bytes = io_buffer(UNIT_BYTES);
	w->pieces = calloc(w->pieces_max, sizeof(*w->pieces));
	w->sums = malloc((size_t)sectors * c->csum->size);
	/* Compressed data takes no more space than the input, which bounds the buffer. */
	if (c->compression)
		w->packed = malloc(UNIT_BYTES);
	if (!w->bytes || !w->pieces || !w->sums || (c->compression && !w->packed))
		return err_nomem(err);
	return 0;
}

static int create_encoder(struct units *u, struct btrkit_error *err)
{
	const struct units_config *c = &u->config;
	int ret;

	if (!c->compression)
		return 0;
	ret = encoder_create(c->compression, c->level, c->sectorsize, &u->encoders[u->num_encoders], err);
	u->num_encoders += !ret;
	return ret;
}

int units_create(const struct units_config *config, struct units **ret, struct btrkit_error *err)
{
	struct units *u = calloc(1, sizeof(*u));
	const unsigned threads = pipeline_threads(config->threads);
	int r = 0;

	if (!u)
		return err_nomem(err);
	u->config = *config;
	pthread_mutex_init(&u->lock, NULL);
	pthread_cond_init(&u->decided, NULL);
	u->num_units = UNITS_PER_THREAD * threads;
	u->units = calloc(u->num_units, sizeof(*u->units));
	u->slots = calloc(u->num_units, sizeof(*u->slots));
	if (!u->units || !u->slots)
		r = err_nomem(err);
	for (unsigned i = 0; !r && i < u->num_units; i++) {
		u->slots[i] = &u->units[i];
		r = create_unit(u, &u->units[i], err);
	}
	for (unsigned i = 0; !r && i < threads; i++)
		r = create_encoder(u, err);
	if (!r)
		r = pipeline_create(&(struct pipeline_ops){ unit_work, finish, u }, threads, u->slots, u->num_units,
				    &u->pipeline, err);
	if (r)
		units_destroy(u);
	else
		*ret = u;
	return r;
}

struct units *units_destroy(struct units *u)
{
	if (!u)
		return NULL;
	pthread_mutex_lock(&u->lock);
	u->failed = true;
	pthread_cond_broadcast(&u->decided);
	pthread_mutex_unlock(&u->lock);
	pipeline_destroy(u->pipeline);
	for (unsigned i = 0; u->units && i < u->num_units; i++) {
		struct unit *w = &u->units[i];

		free(w->bytes);
		free(w->packed);
		free(w->pieces);
		free(w->sums);
	}
	while (u->num_encoders)
		encoder_destroy(u->encoders[--u->num_encoders]);
	while (u->files) {
		struct big_file *f = u->files;

		u->files = f->next;
		free(f);
	}
	pthread_mutex_destroy(&u->lock);
	pthread_cond_destroy(&u->decided);
	free(u->units);
	free(u->slots);
	free(u);
	return NULL;
}

static void submit(struct units *u)
{
	if (u->open)
		pipeline_submit(u->pipeline);
	u->open = NULL;
}

/* Ensures that the open unit has space for @len more bytes, or opens another one. */
static int need_room(struct units *u, size_t len, struct btrkit_error *err)
{
	struct unit *w = u->open;
	void *slot;
	int ret;

	if (w && w->num_parts < PARTS_MAX && w->used + len <= UNIT_BYTES)
		return 0;
	submit(u);
	if (u->config.progress) {
		ret = u->config.progress(u->config.progress_ctx, u->given_out, u->files_given_out);
		if (ret)
			return err_system(err, ret, "interrupted");
	}
	ret = pipeline_next(u->pipeline, &slot, err);
	if (ret)
		return ret;
	w = slot;
	w->num_parts = 0;
	w->used = w->packed_used = w->sums_used = 0;
	w->num_pieces = 0;
	w->from = w->to = 0;
	u->open = w;
	return 0;
}

static void add_part(struct units *u, const struct part *from)
{
	struct part *p = &u->open->parts[u->open->num_parts++];

	*p = *from;
	p->at = u->open->used;
	u->open->used += unit_whole_sectors(u, p->len);
	u->given_out += p->len;
	u->files_given_out += p->last;
}

static int new_file(struct units *u, struct big_file **ret, struct btrkit_error *err)
{
	struct big_file *f = calloc(1, sizeof(*f));

	if (!f)
		return err_nomem(err);
	f->next = u->files;
	u->files = f;
	*ret = f;
	return 0;
}

/* Returns the start of the unit with the next data at or after @offset. */
static uint64_t skip_hole(int fd, uint64_t offset, uint64_t size)
{
	const off_t data = fd < 0 ? (off_t)offset : lseek(fd, (off_t)offset, SEEK_DATA);

	if (data < 0)
		return errno == ENXIO ? size : offset;
	return (uint64_t)data - (uint64_t)data % UNIT_BYTES > offset ? (uint64_t)data - (uint64_t)data % UNIT_BYTES :
									offset;
}

static int add_big_file(struct units *u, uint32_t inode, uint64_t size, struct btrkit_error *err)
{
	struct part p = { .inode = inode,
			  .flags = u->config.source->inodes[inode].flags,
			  .size = size,
			  .first = true };
	int fd = -1, ret;

	ret = new_file(u, &p.file, err);
	if (!ret && size >= SPARSE_MIN) {
		fd = source_file_open(u->config.source, inode, err);
		ret = fd < 0 ? fd : 0;
	}
	for (uint64_t at = 0; !ret && at < size; at += p.len) {
		uint64_t left;

		/* The last unit is always read, because reading also checks that the file did not change. */
		if (at) {
			const uint64_t data = skip_hole(fd, at, size), end = (size - 1) - (size - 1) % UNIT_BYTES;

			at = data < end ? data : end;
		}
		left = size - at;
		p.offset = at;
		p.len = (uint32_t)(left < UNIT_BYTES ? left : UNIT_BYTES);
		p.last = left == p.len;
		ret = need_room(u, unit_whole_sectors(u, p.len), err);
		if (!ret)
			add_part(u, &p);
		p.first = false;
	}
	if (fd >= 0)
		close(fd);
	return ret;
}

int units_add_file(struct units *u, uint32_t inode, struct btrkit_error *err)
{
	const uint64_t size = u->config.source->inodes[inode].size;
	struct part p = { .inode = inode,
			  .flags = u->config.source->inodes[inode].flags,
			  .size = size,
			  .len = (uint32_t)size,
			  .first = true,
			  .last = true };
	int ret;

	if (!size)
		return 0;
	if (size > UNIT_BYTES)
		return add_big_file(u, inode, size, err);
	ret = need_room(u, unit_whole_sectors(u, p.len), err);
	if (!ret)
		add_part(u, &p);
	return ret;
}

static int stream_begin(void *ctx, uint32_t inode, struct btrkit_error *err)
{
	struct units *u = ctx;

	u->stream_inode = inode;
	u->stream_first = true;
	u->stream_file = NULL;
	return u->config.source->inodes[inode].size > UNIT_BYTES ? new_file(u, &u->stream_file, err) : 0;
}

/* Adds a part for the range of the file around @offset, filled with zeros. */
static int stream_open(struct units *u, uint64_t offset, struct btrkit_error *err)
{
	const uint64_t size = u->config.source->inodes[u->stream_inode].size;
	struct part p = { .inode = u->stream_inode,
			  .flags = u->config.source->inodes[u->stream_inode].flags,
			  .size = size,
			  .offset = offset - offset % UNIT_BYTES,
			  .first = u->stream_first,
			  .filled = true,
			  .file = u->stream_file };
	int ret;

	p.len = (uint32_t)(size - p.offset < UNIT_BYTES ? size - p.offset : UNIT_BYTES);
	p.last = p.offset + p.len == size;
	ret = need_room(u, unit_whole_sectors(u, p.len), err);
	if (ret)
		return ret;
	add_part(u, &p);
	memset(u->open->bytes + u->open->parts[u->open->num_parts - 1].at, 0, p.len);
	u->stream_first = false;
	return 0;
}

static bool stream_has(const struct units *u, uint64_t offset)
{
	const struct part *p = u->open && u->open->num_parts ? &u->open->parts[u->open->num_parts - 1] : NULL;

	return p && !u->stream_first && p->inode == u->stream_inode && offset >= p->offset &&
	       offset < p->offset + p->len;
}

static int stream_write(void *ctx, uint64_t offset, const void *buf, size_t len, struct btrkit_error *err)
{
	struct units *u = ctx;
	const uint64_t size = u->config.source->inodes[u->stream_inode].size;
	const uint8_t *from = buf;

	if (offset > size || len > size - offset)
		return unit_blame(u, u->stream_inode, EINVAL, "contents are longer than the file size", err);
	while (len) {
		const struct part *p;
		size_t n;
		int ret = stream_has(u, offset) ? 0 : stream_open(u, offset, err);

		if (ret)
			return ret;
		p = &u->open->parts[u->open->num_parts - 1];
		n = (size_t)(p->offset + p->len - offset);
		n = n < len ? n : len;
		memcpy(u->open->bytes + p->at + (offset - p->offset), from, n);
		from += n;
		offset += n;
		len -= n;
	}
	return 0;
}

static int stream_end(void *ctx, struct btrkit_error *err)
{
	(void)ctx;
	(void)err;
	return 0;
}

struct source_sink units_sink(struct units *u)
{
	return (struct source_sink){ stream_begin, stream_write, stream_end, u };
}

int units_finish(struct units *u, struct btrkit_error *err)
{
	int ret;

	submit(u);
	ret = pipeline_drain(u->pipeline, err);
	if (!ret)
		mkfs_contents_settle(u->config.contents, u->config.source);
	return ret;
}
