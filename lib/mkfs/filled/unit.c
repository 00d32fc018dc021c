// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/mkfs/filled/unit.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/base/zero.h"

size_t unit_whole_sectors(const struct units *u, size_t n)
{
	return (n + u->config.sectorsize - 1) & ~((size_t)u->config.sectorsize - 1);
}

int unit_blame(const struct units *u, uint32_t inode, int error, const char *what, struct btrkit_error *err)
{
	char path[512];

	source_path(u->config.source, inode, path, sizeof(path));
	return err_system(err, error, "%s: %s", path, what);
}

/* Reads a part from its file, and checks that the file did not change. */
static int read_part(const struct units *u, struct source_near *near, const struct part *p, uint8_t *to,
		     struct btrkit_error *err)
{
	const int fd = source_file_open_near(u->config.source, near, p->inode, err);
	size_t done = 0;
	int ret = 0;

	if (fd < 0)
		return fd;
	while (!ret && done < p->len) {
		const ssize_t n = pread(fd, to + done, p->len - done, (off_t)(p->offset + done));

		if (n < 0 && errno != EINTR)
			ret = unit_blame(u, p->inode, errno, "cannot be read", err);
		else if (!n)
			break;
		else if (n > 0)
			done += (size_t)n;
	}
	if (!ret)
		ret = source_file_unchanged(u->config.source, p->inode, fd, err);
	if (!ret && done < p->len && source_accepts_changes(u->config.source))
		memset(to + done, 0, p->len - done);
	else if (!ret && done < p->len)
		ret = unit_blame(u, p->inode, ESTALE, "was truncated while it was read", err);
	close(fd);
	return ret;
}

static void add_piece(struct unit *w, const struct mkfs_piece *piece)
{
	w->pieces[w->num_pieces++] = *piece;
}

static void sum_piece(const struct units *u, struct unit *w, struct mkfs_piece *piece)
{
	const struct csum_kind *csum = u->config.csum;

	piece->sums = w->sums + w->sums_used;
	for (uint32_t at = 0; at < piece->disk_bytes; at += u->config.sectorsize) {
		csum->compute(piece->data + at, u->config.sectorsize, w->sums + w->sums_used);
		w->sums_used += csum->size;
	}
}

/*
 * Adds pieces without compression, leaving out sectors of zeros. @len: full sectors, zero-padded past the end of the
 * file
 */
static void add_plain(const struct units *u, struct unit *w, const struct part *p, size_t from, size_t len)
{
	const uint32_t sector = u->config.sectorsize;
	const uint8_t *data = w->bytes + p->at + from;
	/* Only full sectors of the file can be shared. */
	const size_t whole = u->config.contents->shares ? p->len - p->len % sector : 0;

	for (size_t at = 0; at < len;) {
		struct mkfs_piece piece = { .inode = p->inode,
					    .file_offset = p->offset + from + at,
					    .data = data + at };
		size_t end = at;

		while (end < len && !is_all_zeros(data + end, sector))
			end += sector;
		piece.disk_bytes = piece.ram_bytes = (uint32_t)(end - at);
		if (whole > from + at)
			piece.shared = (uint32_t)(whole - from - at < end - at ? whole - from - at : end - at);
		if (piece.disk_bytes && !(p->flags & SOURCE_NODATASUM))
			sum_piece(u, w, &piece);
		if (piece.disk_bytes)
			add_piece(w, &piece);
		at = end + sector;
	}
}

/* @return 0: it was compressed; 1: compression does not pay; <0 */
static int compress(const struct units *u, struct unit *w, const struct part *p, size_t from, size_t len, size_t room,
		    bool in_item, struct btrkit_error *err)
{
	struct mkfs_piece piece = { .inode = p->inode,
				    .file_offset = p->offset + from,
				    .ram_bytes = (uint32_t)(in_item ? len : unit_whole_sectors(u, len)),
				    .data = w->packed + w->packed_used,
				    .compression = u->config.compression,
				    .in_item = in_item };
	size_t got;
	int ret;

	ret = encoder_run(w->encoder, w->bytes + p->at + from, len, w->packed + w->packed_used, room, &got, err);
	if (ret)
		return ret;
	piece.disk_bytes = (uint32_t)(in_item ? got : unit_whole_sectors(u, got));
	memset(w->packed + w->packed_used + got, 0, unit_whole_sectors(u, got) - got);
	if (!in_item)
		sum_piece(u, w, &piece);
	w->packed_used += unit_whole_sectors(u, got);
	w->from += len;
	w->to += piece.disk_bytes;
	add_piece(w, &piece);
	return 0;
}

/* Adds a small file as an inline extent. @return 0; 1: not applicable to this file; <0 */
static int add_inline(const struct units *u, struct unit *w, const struct part *p, struct btrkit_error *err)
{
	const struct units_config *c = &u->config;
	const uint64_t size = p->size;
	struct mkfs_piece piece = { .inode = p->inode,
				    .ram_bytes = p->len,
				    .disk_bytes = p->len,
				    .data = w->bytes + p->at,
				    .in_item = true };
	int ret = 1;

	if (size > c->sectorsize || !p->first || !p->last)
		return 1;
	if (is_all_zeros(piece.data, p->len))
		return 0;
	if (w->encoder && !(p->flags & SOURCE_NODATASUM)) {
		const size_t room = size - 1 < c->inline_max ? (size_t)size - 1 : c->inline_max;

		ret = compress(u, w, p, 0, p->len, room, true, err);
	}
	if (ret != 1 || size >= c->sectorsize || size > c->inline_max)
		return ret;
	add_piece(w, &piece);
	return 0;
}

static void decide(struct units *u, struct big_file *f, enum verdict verdict)
{
	pthread_mutex_lock(&u->lock);
	f->verdict = verdict;
	pthread_cond_broadcast(&u->decided);
	pthread_mutex_unlock(&u->lock);
}

/* The first part of the file is in an earlier unit, which another thread already works on. */
static enum verdict wait_for_verdict(struct units *u, const struct big_file *f)
{
	enum verdict verdict;

	pthread_mutex_lock(&u->lock);
	while (f->verdict == UNKNOWN && !u->failed)
		pthread_cond_wait(&u->decided, &u->lock);
	verdict = f->verdict;
	pthread_mutex_unlock(&u->lock);
	return verdict;
}

/* Compresses a part in steps of the maximum size of a compressed extent. */
static int add_packed(struct units *u, struct unit *w, struct part *p, struct btrkit_error *err)
{
	enum verdict verdict = p->first ? UNKNOWN : wait_for_verdict(u, p->file);
	const size_t whole = unit_whole_sectors(u, p->len);
	int ret = 0;

	for (size_t at = 0; ret >= 0 && at < whole; at += ENCODE_MAX) {
		const size_t len = p->len - at < ENCODE_MAX ? p->len - at : ENCODE_MAX;
		const size_t sectors = unit_whole_sectors(u, len);

		ret = 1;
		if (is_all_zeros(w->bytes + p->at + at, len))
			continue;
		/* Compression must save at least one sector. */
		if (verdict != NOT_WORTHWHILE && sectors > u->config.sectorsize)
			ret = compress(u, w, p, at, len, sectors - u->config.sectorsize, false, err);
		if (ret == 1)
			add_plain(u, w, p, at, sectors);
		if (ret >= 0 && verdict == UNKNOWN && !p->offset && !at && sectors > u->config.sectorsize)
			verdict = ret ? NOT_WORTHWHILE : WORTHWHILE;
	}
	if (p->first && p->file)
		decide(u, p->file, verdict == NOT_WORTHWHILE ? NOT_WORTHWHILE : WORTHWHILE);
	p->incompressible = p->first && verdict == NOT_WORTHWHILE;
	return ret < 0 ? ret : 0;
}

static void digest_pieces(struct unit *w)
{
	const struct csum_kind *hash = csum_kind_find(BTRKIT_CSUM_XXHASH64);

	for (unsigned i = 0; i < w->num_pieces; i++)
		hash->compute(w->pieces[i].data, w->pieces[i].disk_bytes, w->pieces[i].digest);
}

static void take_encoder(struct units *u, struct unit *w)
{
	pthread_mutex_lock(&u->lock);
	w->encoder = u->config.compression ? u->encoders[--u->num_encoders] : NULL;
	pthread_mutex_unlock(&u->lock);
}

static void give_encoder_back(struct units *u, struct unit *w, bool failed)
{
	pthread_mutex_lock(&u->lock);
	if (w->encoder)
		u->encoders[u->num_encoders++] = w->encoder;
	if (failed) {
		u->failed = true;
		pthread_cond_broadcast(&u->decided);
	}
	pthread_mutex_unlock(&u->lock);
}

int unit_work(void *ctx, void *slot, struct btrkit_error *err)
{
	struct units *u = ctx;
	struct unit *w = slot;
	struct source_near near = SOURCE_NEAR_INIT;
	int ret = 0;

	take_encoder(u, w);
	for (unsigned i = 0; ret >= 0 && i < w->num_parts; i++) {
		struct part *p = &w->parts[i];

		if (!p->filled)
			ret = read_part(u, &near, p, w->bytes + p->at, err);
		if (ret < 0)
			break;
		memset(w->bytes + p->at + p->len, 0, unit_whole_sectors(u, p->len) - p->len);
		if (u->config.file_digests)
			p->digest = digest_unit(w->bytes + p->at, p->len);
		ret = add_inline(u, w, p, err);
		if (ret == 1 && w->encoder && !(p->flags & SOURCE_NODATASUM))
			ret = add_packed(u, w, p, err);
		else if (ret == 1)
			add_plain(u, w, p, 0, unit_whole_sectors(u, p->len));
	}
	source_near_end(&near);
	if (ret >= 0 && u->config.digest)
		digest_pieces(w);
	give_encoder_back(u, w, ret < 0);
	return ret < 0 ? ret : 0;
}
