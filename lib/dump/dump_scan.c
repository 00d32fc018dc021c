// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Finds tree blocks on the devices by their headers, without using any tree. Threads read the devices in large pieces,
 * and look for the UUID of the filesystem wherever a block may begin. A block must also have a valid checksum.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "lib/base/each.h"
#include "lib/base/err.h"
#include "lib/base/pipeline.h"
#include "lib/dump/dump_tree_block.h"
#include "lib/dump/dump_tree_damage.h"
#include "lib/dump/dump_tree_lines.h"
#include "lib/dump/dump_tree_select.h"
#include "lib/format/key_names.h"
#include "lib/io/buffer.h"
#include "lib/volume/volume.h"

/* Small enough that the data is still in the processor's cache when it is examined. */
#define PIECE_BYTES (256u << 10)
#define THREADS_MAX 4u
#define AHEAD_BYTES (8u << 20)
#define REQUEST_BYTES (2u << 20)
/* Alignment of blocks on devices. */
#define STEP 4096u

struct piece {
	struct dump d;
	struct volume_device device;
	uint64_t offset;
	uint32_t len;	/* blocks that begin in this range belong to the piece */
	size_t have;	/* bytes read; the bytes after len are only read if a block extends into them */
	uint8_t *buf;
	struct node *node;
};

struct scan {
	struct btrkit_fs *fs;
	const struct btrkit_dump_options *o;
	const struct btrkit_dump_scan_options *how;
	btrkit_write_fn write;
	void *ctx;
	struct dump_select select;
	struct pipeline *pipeline;
	struct piece *pieces;
	void **slots;
	size_t num_pieces;
	uint64_t done, total;
	int damage;
	struct btrkit_error damage_error;
};

/* A superblock has the UUID at the same offset. */
static bool may_be_block(const struct scan *s, const uint8_t *at)
{
	const struct node_rules *rules = &s->fs->rules;
	bool own = !memcmp(at + 32, rules->fsid, sizeof(rules->fsid));

	for (size_t i = 0; !own && i < rules->num_seeds; i++)
		own = !memcmp(at + 32, rules->seeds[i], sizeof(rules->fsid));
	return own && le64_get(((const struct disk_super *)at)->magic) != SUPER_MAGIC;
}

static bool is_chosen(const struct scan *s, const struct node *n)
{
	const struct dump_pick *pick = s->select.picks ? &s->select.pick : NULL;
	bool any = !s->o->num_trees;

	for (size_t i = 0; !any && i < s->o->num_trees; i++)
		any = s->o->trees[i] == n->owner;
	if (!any || (s->select.filters &&
		     !dump_blocks_have(&s->select.blocks, n->bytenr, n->generation, n->level)))
		return false;
	any = !pick;
	for (uint32_t i = 0; !any && !n->level && i < n->nritems; i++) {
		const struct item item = leaf_item(n, i);

		any = dump_pick_item(pick, &item);
	}
	return any;
}

static void show(struct piece *p, const struct node *n, uint64_t physical, bool whole)
{
	struct emit *e = &p->d.e;

	dump_line(&p->d, "found", NULL);
	emit_u64(e, "devid", "device ", p->device.devid);
	emit_u64(e, "physical", " at ", physical);
	emit_u64(e, "bytenr", ": block ", n->bytenr);
	emit_u64(e, "generation", " generation ", n->generation);
	objectid_emit(e, "owner", " owner ", n->owner, 0);
	emit_u64(e, "level", " level ", n->level);
	emit_u64(e, "nritems", " items ", n->nritems);
	emit_text(e, "\n");
	emit_object_end(e);
	p->d.tree = n->owner;
	if (whole)
		dump_block(&p->d, n);
}

/* Read in steps after an error; unreadable steps are treated as zeros. */
static void read_steps(struct piece *p, uint64_t offset, uint8_t *to, size_t len)
{
	struct btrkit_error what = BTRKIT_ERROR_INIT;

	for (size_t at = 0; at < len; at += STEP) {
		const size_t n = len - at < STEP ? len - at : STEP;
		int ret = btrkit_io_read(p->device.io, offset + at, to + at, n, &what);

		if (!ret)
			continue;
		memset(to + at, 0, n);
		err_at_device(&what, p->device.devid, offset + at);
		dump_damaged_device(&p->d, ret, &what);
	}
}

static void read_up_to(struct piece *p, size_t end)
{
	const size_t len = end - p->have;

	if (len && btrkit_io_read(p->device.io, p->offset + p->have, p->buf + p->have, len, NULL))
		read_steps(p, p->offset + p->have, p->buf + p->have, len);
	p->have = end;
}

static int work(void *ctx, void *slot, struct btrkit_error *err)
{
	const struct scan *s = ctx;
	struct piece *p = slot;
	const uint32_t size = s->fs->geometry.nodesize;
	const uint64_t left = p->device.io->size - p->offset;
	const size_t most = left < p->len + size ? (size_t)left : p->len + size;

	p->have = 0;
	read_up_to(p, p->len);
	for (size_t at = 0; at < p->len && at + size <= most; at += STEP) {
		const uint8_t *block = p->buf + at;
		const struct node_ref ref = { le64_get(((const struct disk_header *)block)->bytenr), NODE_ANY, 0,
					      LEVELS_MAX, NULL };

		if (!may_be_block(s, block))
			continue;
		read_up_to(p, at + size > p->have ? most : p->have);
		if (node_verify(&s->fs->rules, &ref, block, NULL))
			continue;
		memcpy(p->node->data, block, size);
		node_describe(p->node, size);
		if (is_chosen(s, p->node))
			show(p, p->node, p->offset + at, s->how->flags & BTRKIT_DUMP_SCAN_BLOCKS);
		/* No other block begins inside a valid block. */
		at += size - STEP;
	}
	return emit_failed(&p->d.e) ? err_nomem(err) : 0;
}

static int finish(void *ctx, void *slot, struct btrkit_error *err)
{
	struct scan *s = ctx;
	struct piece *p = slot;
	int ret = p->d.e.len ? s->write(s->ctx, p->d.e.buf, p->d.e.len) : 0;

	if (ret)
		return err_system(err, ret, "cannot write the dump");
	ret = dump_tell_losses(&p->d, err);
	if (ret)
		return ret;
	if (p->d.damage && !s->damage) {
		s->damage = p->d.damage;
		s->damage_error = p->d.damage_error;
	}
	s->done += p->len;
	ret = s->how->progress ? s->how->progress(s->how->progress_ctx, s->done, s->total) : 0;
	return ret ? err_system(err, ret, "stopped by the caller") : 0;
}

static int create(struct scan *s, const struct dump *like, struct btrkit_error *err)
{
	const unsigned processors = each_processor(), threads = processors < THREADS_MAX ? processors : THREADS_MAX;
	const uint32_t size = s->fs->geometry.nodesize;

	s->num_pieces = 2 * threads + 2;
	s->pieces = calloc(s->num_pieces, sizeof(*s->pieces));
	s->slots = calloc(s->num_pieces, sizeof(*s->slots));
	if (!s->pieces || !s->slots)
		return err_nomem(err);
	for (size_t i = 0; i < s->num_pieces; i++) {
		struct piece *p = &s->pieces[i];

		s->slots[i] = p;
		p->d = *like;
		p->d.begun = true;
		if (emit_init(&p->d.e, like->e.form, NULL, NULL))
			return err_nomem(err);
		emit_keep(&p->d.e, like->choice.filter);
		p->buf = io_buffer(PIECE_BYTES + size);
		p->node = malloc(sizeof(*p->node) + size);
		if (!p->buf || !p->node)
			return err_nomem(err);
		p->node->data = (uint8_t *)(p->node + 1);
	}
	return pipeline_create(&(struct pipeline_ops){ work, finish, s }, threads, s->slots, s->num_pieces,
			       &s->pipeline, err);
}

static void release(struct scan *s)
{
	pipeline_destroy(s->pipeline);
	for (size_t i = 0; s->pieces && i < s->num_pieces; i++) {
		emit_abandon(&s->pieces[i].d.e);
		dump_losses_free(&s->pieces[i].d.losses);
		free(s->pieces[i].buf);
		free(s->pieces[i].node);
	}
	free(s->pieces);
	free(s->slots);
}

static int scan_device(struct scan *s, const struct volume_device *device, struct btrkit_error *err)
{
	struct btrkit_io *io = device->io;
	int ret = 0;

	for (uint64_t at = 0; !ret && at < io->size; at += PIECE_BYTES) {
		const uint64_t ahead = at + AHEAD_BYTES, left = io->size - at;
		struct piece *p;
		void *slot;

		ret = pipeline_next(s->pipeline, &slot, err);
		if (ret)
			break;
		p = slot;
		p->device = *device;
		p->offset = at;
		p->len = left < PIECE_BYTES ? (uint32_t)left : PIECE_BYTES;
		p->d.e.len = 0;
		p->d.damage = 0;
		pipeline_submit(s->pipeline);
		/* Prefetch in larger requests than the pieces. */
		if (io->ops->prefetch && ahead < io->size && !(at % REQUEST_BYTES))
			io->ops->prefetch(io, ahead,
					  io->size - ahead < REQUEST_BYTES ? io->size - ahead : REQUEST_BYTES);
	}
	return ret;
}

static int scan_all(struct scan *s, struct btrkit_error *err)
{
	const struct volume *v = s->fs->volume;
	int ret = 0;

	for (size_t i = 0; i < volume_num_devices(v); i++)
		s->total += volume_device(v, i).io ? volume_device(v, i).io->size : 0;
	for (size_t i = 0; !ret && i < volume_num_devices(v); i++) {
		const struct volume_device device = volume_device(v, i);

		if (device.io)
			ret = scan_device(s, &device, err);
	}
	return ret ? ret : pipeline_drain(s->pipeline, err);
}

/* Writes the first line of the output. */
static int begin(struct scan *s, struct dump *like, struct btrkit_error *err)
{
	struct dump d = *like;
	int ret;

	if (emit_init(&d.e, like->e.form, s->write, s->ctx))
		return err_nomem(err);
	dump_begin(&d);
	ret = emit_finish(&d.e);
	return ret ? err_system(err, ret, "cannot write the dump") : 0;
}

static int check_options(const struct btrkit_dump_options *o, const struct btrkit_dump_scan_options *how,
			 struct btrkit_error *err)
{
	if (how->flags & ~(unsigned)BTRKIT_DUMP_SCAN_BLOCKS)
		return err_set(err, BTRKIT_INVALID, "unknown flags 0x%x", how->flags);
	if (o->num_blocks || o->flags & ~(unsigned)(BTRKIT_DUMP_HIDE_NAMES | BTRKIT_DUMP_CSUM_HEADERS |
						    BTRKIT_DUMP_CSUM_ITEMS |
						    BTRKIT_DUMP_COMPAT_6_19))
		return err_set(err, BTRKIT_INVALID, "this option is not supported for a scan");
	if (o->select && (o->select->path || o->select->flags & BTRKIT_DUMP_WITH_EXTENTS))
		return err_set(err, BTRKIT_INVALID, "a scan does not support paths and extents of files");
	return 0;
}

int btrkit_dump_scan(struct btrkit_fs *fs, const struct btrkit_dump_options *opts,
		     const struct btrkit_dump_scan_options *scan, btrkit_write_fn write, void *ctx,
		     struct btrkit_error *err)
{
	static const struct btrkit_dump_options everything = BTRKIT_DUMP_OPTIONS_INIT;
	static const struct btrkit_dump_scan_options only_list = BTRKIT_DUMP_SCAN_OPTIONS_INIT;
	struct scan s = { .fs = fs, .o = opts ? opts : &everything, .how = scan ? scan : &only_list, .write = write,
			  .ctx = ctx };
	struct dump like;
	int ret = check_options(s.o, s.how, err);

	if (!ret)
		ret = dump_like(fs, s.o, &like, err);
	if (ret)
		return ret;
	ret = dump_select_begin(fs, s.o, &s.select, err);
	like.pick = s.select.picks ? &s.select.pick : NULL;
	if (!ret)
		ret = create(&s, &like, err);
	if (!ret)
		ret = begin(&s, &like, err);
	if (!ret)
		ret = scan_all(&s, err);
	release(&s);
	dump_select_end(&s.select);
	dump_choice_free(&like.choice);
	if (!ret && s.damage && err)
		*err = s.damage_error;
	return ret ? ret : s.damage;
}
