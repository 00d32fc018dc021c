// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reads all leaves of all subvolumes in batches with several threads. */
#include <stdlib.h>

#include "lib/base/err.h"
#include "lib/io/buffer.h"
#include "lib/sweep/block.h"
#include "lib/sweep/leaves.h"
#include "lib/usage/damage.h"
#include "lib/usage/leaves.h"
#include "lib/usage/paths/paths.h"
#include "lib/usage/paths/paths_read.h"
#include "lib/usage/read.h"
#include "lib/usage/state.h"
#include "lib/usage/work.h"
#include "lib/volume/volume.h"

struct reading {
	struct paths_work *pw;
	const struct paths_reader *reader;
	struct paths_batch *batches;
	void **slots;
	size_t num_batches;
};

int paths_report(struct paths_work *pw, uint64_t subvolume, struct btrkit_error *what, struct btrkit_error *err)
{
	err_at_tree(what, subvolume);
	return usage_damage(&pw->w, what->err, what, err);
}

int paths_report_item(struct paths_batch *b, const uint8_t *leaf, uint32_t slot, int ret, struct btrkit_error *what,
		      struct btrkit_error *err)
{
	const struct btrkit_key key = block_item(leaf, slot).key;

	if (!ret)
		return 0;
	err_at_tree(what, b->subvolume->root.id);
	err_at_logical(what, le64_get(block_header(leaf)->bytenr));
	err_at_item(what, slot, &key);
	return usage_damage(&b->pw->w, ret, what, err);
}

int paths_seek(struct paths_batch *b, struct cursor *c, uint64_t inode, uint8_t type, struct btrkit_error *err)
{
	const struct btrkit_key key = KEY(inode, type, 0);
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	int ret = cursor_seek(c, &key, &what);

	if (ret < 0) {
		ret = usage_damage(&b->pw->w, ret, &what, err);
		return ret ? ret : 1;
	}
	return ret || c->item.key.objectid != inode;
}

static int work(void *ctx, void *slot, struct btrkit_error *err)
{
	const struct reading *g = ctx;
	struct paths_batch *b = slot;
	const size_t size = b->pw->w.fs->geometry.nodesize;
	int ret;

	b->found.n = b->names.n = b->ranges.n = 0;
	b->file = (struct paths_file){ 0 };
	ret = usage_read(&b->pw->w, b->want, NULL, b->n, b->buf, b->ok, err);
	for (size_t i = 0; !ret && i < b->n; i++)
		if (b->ok[i])
			ret = g->reader->leaf(b, b->buf + i * size, err);
	return ret ? ret : g->reader->end(b, err);
}

static int finish(void *ctx, void *slot, struct btrkit_error *err)
{
	const struct reading *g = ctx;
	struct paths_batch *b = slot;
	int ret = g->reader->gather(b, err);

	return ret ? ret : usage_progress(&b->pw->w, b->n, err);
}

static int create_batches(struct reading *g, struct btrkit_error *err)
{
	struct usage_work *w = &g->pw->w;
	const size_t blocks = usage_batch_blocks(w);

	g->num_batches = 2 * w->threads + 1;
	g->batches = calloc(g->num_batches, sizeof(*g->batches));
	g->slots = calloc(g->num_batches, sizeof(*g->slots));
	if (!g->batches || !g->slots)
		return err_nomem(err);
	for (size_t i = 0; i < g->num_batches; i++) {
		struct paths_batch *b = &g->batches[i];

		b->pw = g->pw;
		b->leaves = calloc(blocks, sizeof(*b->leaves));
		b->want = calloc(blocks, sizeof(*b->want));
		b->ok = calloc(blocks, sizeof(*b->ok));
		b->buf = io_buffer(blocks * w->fs->geometry.nodesize);
		g->slots[i] = b;
		if (!b->leaves || !b->want || !b->ok || !b->buf)
			return err_nomem(err);
	}
	return 0;
}

static void release_batches(struct reading *g)
{
	for (size_t i = 0; g->batches && i < g->num_batches; i++) {
		struct paths_batch *b = &g->batches[i];

		free(b->leaves);
		free(b->want);
		free(b->ok);
		free(b->buf);
		free(b->found.at);
		free(b->names.at);
		free(b->ranges.at);
	}
	free(g->batches);
	free(g->slots);
}

/* Fills a batch with leaves from number @from on. They are copied because the list is freed before they are read. */
static void fill_batch(struct paths_batch *b, struct paths_subvolume *s, const struct sweep_leaves *leaves, size_t from)
{
	const size_t most = usage_batch_blocks(&b->pw->w), left = leaves->list.n - from;
	const struct sweep_leaf *leaf = (const struct sweep_leaf *)leaves->list.at + from;
	const uint64_t size = b->pw->w.fs->geometry.nodesize;

	b->subvolume = s;
	b->n = left < most ? left : most;
	for (size_t i = 0, run = 0; i < b->n; i++) {
		b->leaves[i] = leaf[i];
		b->want[i] = sweep_leaf_ref(leaves, from + i);
		if (b->want[i].first_key)
			b->want[i].first_key = &b->leaves[i].key;
		/* Contiguous blocks are prefetched in one request. */
		if (i + 1 < b->n && leaf[i + 1].bytenr == leaf[i].bytenr + size)
			continue;
		volume_prefetch(b->pw->w.fs->volume, leaf[run].bytenr, (i + 1 - run) * size);
		run = i + 1;
	}
}

static int read_subvolume(struct reading *g, struct paths_subvolume *s, struct pipeline *p, struct btrkit_error *err)
{
	struct sweep_leaves leaves;
	int ret = usage_leaves_find(&g->pw->w, &s->root, &leaves, err);

	for (size_t i = 0; !ret && i < leaves.list.n;) {
		void *slot;

		ret = pipeline_next(p, &slot, err);
		if (ret)
			break;
		fill_batch(slot, s, &leaves, i);
		i += ((struct paths_batch *)slot)->n;
		pipeline_submit(p);
	}
	sweep_leaves_release(&leaves);
	return ret;
}

int paths_read(struct paths_work *pw, const struct paths_reader *reader, struct btrkit_error *err)
{
	struct reading g = { .pw = pw, .reader = reader };
	struct pipeline *p = NULL;
	int ret = create_batches(&g, err);

	if (!ret)
		ret = usage_pipeline(&pw->w, &(struct pipeline_ops){ work, finish, &g }, g.slots, g.num_batches, &p,
				     err);
	for (size_t i = 0; !ret && i < pw->num_subvolumes; i++)
		ret = read_subvolume(&g, &pw->subvolumes[i], p, err);
	if (!ret)
		ret = pipeline_drain(p, err);
	pipeline_destroy(p);
	release_batches(&g);
	return ret;
}
