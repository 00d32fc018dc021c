// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/dump/dump_tree_run.h"

#include <stdlib.h>

#include "lib/base/each.h"
#include "lib/base/err.h"
#include "lib/base/pipeline.h"
#include "lib/dump/dump_tree_block.h"
#include "lib/dump/dump_tree_damage.h"
#include "lib/dump/dump_tree_lines.h"
#include "lib/io/buffer.h"

/* Size of the blocks of a piece: the result should fit into the processor's cache. */
#define PIECE_BYTES (128u << 10)
/* More threads would not be faster, because the output is written by one thread. */
#define THREADS_MAX 8u
/* Text from the caller is submitted when it exceeds this size. */
#define TEXT_BYTES (192u << 10)
/* So is text with more than this number of losses. */
#define LOSSES_MAX 256u

static uint8_t *bytes_at(const struct dump_piece *p, size_t i)
{
	return p->buf + i * p->d.fs->geometry.nodesize;
}

static void show_lost(struct dump_piece *p, size_t i, int ret, struct btrkit_error *what)
{
	const struct node_ref *ref = &p->refs[i];

	if (p->dropped[i])
		return;
	if (ref->owner)
		err_at_tree(what, ref->owner);
	dump_damaged_block(&p->d, ref, ret, what);
}

static void show_good(struct dump_piece *p, size_t i, const struct node *n)
{
	p->d.tree = p->refs[i].owner ? p->refs[i].owner : n->owner;
	dump_block(&p->d, n);
}

/* Renders a block. @good: it is in the buffer and was verified */
static int show(struct dump_piece *p, size_t i, bool good, struct btrkit_error *err)
{
	struct node n = { .data = bytes_at(p, i) };
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	int ret = good ? 0 : node_read_uncached(p->d.fs, &p->refs[i], n.data, &what);

	if (dump_is_damage(ret)) {
		show_lost(p, i, ret, &what);
	} else if (ret) {
		return err_nomem(err);
	} else {
		node_describe(&n, p->d.fs->geometry.nodesize);
		show_good(p, i, &n);
	}
	return emit_failed(&p->d.e) ? err_nomem(err) : 0;
}

/* Renders a block through the cache, which includes modified blocks of a transaction. */
static int show_cached(struct dump_piece *p, size_t i, struct btrkit_error *err)
{
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	struct node *n;
	int ret = node_get(p->d.fs, &p->refs[i], &n, &what);

	if (dump_is_damage(ret)) {
		show_lost(p, i, ret, &what);
	} else if (ret) {
		return err_nomem(err);
	} else {
		show_good(p, i, n);
		node_pass(p->d.fs, n);
	}
	return emit_failed(&p->d.e) ? err_nomem(err) : 0;
}

static int work(void *ctx, void *slot, struct btrkit_error *err)
{
	struct dump_piece *p = slot;
	struct btrkit_fs *fs = p->d.fs;
	int ret = 0;

	(void)ctx;
	for (size_t i = 0; fs->overlay && !ret && i < p->n; i++)
		ret = show_cached(p, i, err);
	for (size_t i = 0; !fs->overlay && !ret && i < p->n;) {
		const size_t run = node_read_neighbours(fs, &p->refs[i], p->n - i, bytes_at(p, i));
		const size_t end = i + run + !run;

		for (; !ret && i < end; i++)
			ret = show(p, i, run && !node_verify(&fs->rules, &p->refs[i], bytes_at(p, i), NULL), err);
	}
	return ret;
}

static int put(const struct dump_run *run, const char *text, size_t len, struct btrkit_error *err)
{
	const int ret = len ? run->write(run->ctx, text, len) : 0;

	return ret ? err_system(err, ret, "cannot write the dump") : 0;
}

/* Replaces the previous heading, which nothing followed. */
static int keep_heading(struct dump_run *run, const struct emit *e, struct btrkit_error *err)
{
	char *text = realloc(run->heading, e->len + 1);

	if (!text)
		return err_nomem(err);
	memcpy(text, e->buf, e->len);
	run->heading = text;
	run->heading_len = e->len;
	return 0;
}

static int finish(void *ctx, void *slot, struct btrkit_error *err)
{
	struct dump_run *run = ctx;
	struct dump_piece *p = slot;
	int ret = dump_tell_losses(&p->d, err);

	if (ret)
		return ret;
	run->lost |= p->d.lost;
	if (p->d.damage && !run->damage) {
		run->damage = p->d.damage;
		run->damage_error = p->d.damage_error;
	}
	if (p->heading)
		return keep_heading(run, &p->d.e, err);
	if (p->d.e.len) {
		ret = put(run, run->heading, run->heading_len, err);
		run->heading_len = 0;
	}
	return ret ? ret : put(run, p->d.e.buf, p->d.e.len, err);
}

static int create_piece(struct dump_run *run, struct dump_piece *p, struct btrkit_error *err)
{
	p->d = run->like;
	if (emit_init(&p->d.e, run->like.e.form, NULL, NULL))
		return err_nomem(err);
	emit_keep(&p->d.e, run->like.choice.filter);
	p->refs = calloc(run->blocks_max, sizeof(*p->refs));
	p->keys = calloc(run->blocks_max, sizeof(*p->keys));
	p->dropped = calloc(run->blocks_max, sizeof(*p->dropped));
	p->buf = io_buffer(run->blocks_max * run->fs->geometry.nodesize);
	return p->refs && p->keys && p->dropped && p->buf ? 0 : err_nomem(err);
}

int dump_run_begin(struct dump_run *run, const struct dump *like, btrkit_write_fn write, void *ctx,
		   struct btrkit_error *err)
{
	const unsigned processors = each_processor();
	/* Blocks of a transaction are accessed by one thread only. */
	const unsigned threads = like->fs->overlay ? 0 : processors < THREADS_MAX ? processors : THREADS_MAX;
	int ret = 0;

	*run = (struct dump_run){ .fs = like->fs, .write = write, .ctx = ctx, .like = *like };
	run->num_pieces = 2 * threads + 2;
	run->blocks_max = PIECE_BYTES / like->fs->geometry.nodesize;
	run->blocks_max += !run->blocks_max;
	run->pieces = calloc(run->num_pieces, sizeof(*run->pieces));
	run->slots = calloc(run->num_pieces, sizeof(*run->slots));
	if (!run->pieces || !run->slots)
		return err_nomem(err);
	for (size_t i = 0; !ret && i < run->num_pieces; i++) {
		run->slots[i] = &run->pieces[i];
		ret = create_piece(run, &run->pieces[i], err);
	}
	return ret ? ret : pipeline_create(&(struct pipeline_ops){ work, finish, run }, threads, run->slots,
					   run->num_pieces, &run->pipeline, err);
}

void dump_run_end(struct dump_run *run)
{
	pipeline_destroy(run->pipeline);
	for (size_t i = 0; run->pieces && i < run->num_pieces; i++) {
		struct dump_piece *p = &run->pieces[i];

		emit_abandon(&p->d.e);
		dump_losses_free(&p->d.losses);
		free(p->refs);
		free(p->keys);
		free(p->dropped);
		free(p->buf);
	}
	free(run->pieces);
	free(run->slots);
	free(run->heading);
}

/* Submits the current piece. */
static void submit(struct dump_run *run)
{
	if (!run->piece)
		return;
	if (run->piece->n)
		dump_begin(&run->piece->d);
	run->like.begun = run->piece->d.begun;
	run->piece = NULL;
	pipeline_submit(run->pipeline);
}

/* Ensures that there is a current piece. */
static int begin_piece(struct dump_run *run, struct btrkit_error *err)
{
	struct dump_piece *p;
	void *slot;
	int ret;

	if (run->piece)
		return 0;
	ret = pipeline_next(run->pipeline, &slot, err);
	if (ret)
		return ret;
	p = slot;
	p->d.begun = run->like.begun;
	p->d.pick = run->like.pick;
	p->d.csum_headers = run->like.csum_headers;
	p->d.damage = 0;
	p->d.lost = false;
	p->d.e.len = 0;
	p->heading = false;
	p->n = 0;
	run->piece = p;
	return 0;
}

int dump_run_text(struct dump_run *run, struct dump **ret, struct btrkit_error *err)
{
	int r;

	if (run->piece && (run->piece->heading || run->piece->n || run->piece->d.e.len > TEXT_BYTES ||
			   run->piece->d.losses.n > LOSSES_MAX))
		submit(run);
	r = begin_piece(run, err);
	if (!r && emit_failed(&run->piece->d.e))
		r = err_nomem(err);
	if (!r)
		*ret = &run->piece->d;
	return r;
}

int dump_run_heading(struct dump_run *run, struct dump **ret, struct btrkit_error *err)
{
	int r;

	submit(run);
	r = begin_piece(run, err);
	if (r)
		return r;
	/* The first line precedes all headings. */
	if (!run->piece->d.begun) {
		dump_begin(&run->piece->d);
		submit(run);
		r = begin_piece(run, err);
	}
	if (r)
		return r;
	run->piece->heading = true;
	*ret = &run->piece->d;
	return 0;
}

int dump_run_block(struct dump_run *run, const struct node_ref *ref, bool dropped, struct btrkit_error *err)
{
	struct dump_piece *p;
	int ret;

	if (run->piece && run->piece->heading)
		submit(run);
	ret = begin_piece(run, err);
	if (ret)
		return ret;
	p = run->piece;
	p->refs[p->n] = *ref;
	p->dropped[p->n] = dropped;
	if (ref->first_key) {
		p->keys[p->n] = *ref->first_key;
		p->refs[p->n].first_key = &p->keys[p->n];
	}
	if (++p->n == run->blocks_max)
		submit(run);
	return 0;
}

void dump_run_pick(struct dump_run *run, const struct dump_pick *pick)
{
	if (run->like.pick != pick)
		submit(run);
	run->like.pick = pick;
}

int dump_run_drain(struct dump_run *run, struct btrkit_error *err)
{
	submit(run);
	return pipeline_drain(run->pipeline, err);
}
