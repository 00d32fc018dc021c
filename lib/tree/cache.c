// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/tree/cache.h"

#include <pthread.h>
#include <stdlib.h>

#include "lib/base/err.h"
#include "lib/base/hash.h"
#include "lib/io/buffer.h"
#include "lib/tree/filesystem.h"
#include "lib/tree/node.h"
#include "lib/tree/overlay.h"
#include "lib/tree/slab.h"

/* Shards avoid contention between threads. */
#define SHARDS 16
/*
 * Number of passed blocks kept per shard: scattered lookups come back to a block before they have passed that many
 * others.
 */
#define PASSED_MAX 16

struct shard {
	pthread_mutex_t lock;
	struct node *by_bytenr;
	struct node *idle; /* not pinned, least recently used first */
	struct node *passed; /* likewise, those that a scan has passed */
	struct slabs *slabs;
	size_t nodes, num_passed;
};

struct node_cache {
	size_t nodes_max; /* per shard */
	uint32_t nodesize;
	struct shard shards[SHARDS];
};

int node_cache_create(size_t budget, uint32_t nodesize, struct slabs *slabs, struct node_cache **ret,
		      struct btrkit_error *err)
{
	struct node_cache *c = calloc(1, sizeof(*c));

	if (!c)
		return err_nomem(err);
	c->nodesize = nodesize;
	c->nodes_max = budget / (nodesize + sizeof(struct node)) / SHARDS + 1;
	for (int i = 0; i < SHARDS; i++) {
		pthread_mutex_init(&c->shards[i].lock, NULL);
		c->shards[i].slabs = slabs;
	}
	*ret = c;
	return 0;
}

struct node_cache *node_cache_destroy(struct node_cache *c)
{
	struct node *node, *next;

	if (!c)
		return NULL;
	for (int i = 0; i < SHARDS; i++) {
		HASH_ITER(hh, c->shards[i].by_bytenr, node, next)
		{
			HASH_DEL(c->shards[i].by_bytenr, node);
			node_free(c->shards[i].slabs, node);
		}
		pthread_mutex_destroy(&c->shards[i].lock);
	}
	free(c);
	return NULL;
}

static struct shard *shard_of(struct node_cache *c, uint64_t bytenr)
{
	/* Neighbouring blocks go to different shards. */
	return &c->shards[bytenr / c->nodesize % SHARDS];
}

/* Removes an idle block from its list. The lock must be held. */
static void unlist(struct shard *s, struct node *node)
{
	if (node->passed) {
		DL_DELETE(s->passed, node);
		s->num_passed--;
		node->passed = false;
	} else {
		DL_DELETE(s->idle, node);
	}
}

/* Finds a block and pins it. The lock must be held. */
static struct node *pin_cached(struct shard *s, uint64_t bytenr)
{
	struct node *node;

	HASH_FIND(hh, s->by_bytenr, &bytenr, sizeof(bytenr), node);
	if (!node)
		return NULL;
	if (!node->pins++)
		unlist(s, node);
	node->again = true;
	return node;
}

static int read_node(struct btrkit_fs *fs, const struct node_ref *ref, struct node **ret, struct btrkit_error *err)
{
	struct node *node = io_buffer(io_buffer_round(sizeof(*node)) + fs->geometry.nodesize);
	int r;

	if (!node)
		return err_nomem(err);
	node->data = (uint8_t *)node + io_buffer_round(sizeof(*node));
	r = node_read_uncached(fs, ref, node->data, err);
	if (r) {
		free(node);
		return r;
	}
	node_describe(node, fs->geometry.nodesize);
	node->place = NODE_READ;
	node->private = false;
	node->passed = false;
	node->again = false;
	node->pins = 1;
	*ret = node;
	return 0;
}

/* Drops an idle block. The lock must be held. */
static void forget(struct shard *s, struct node *node)
{
	unlist(s, node);
	HASH_DEL(s->by_bytenr, node);
	node_free(s->slabs, node);
	s->nodes--;
}

/* Drops idle blocks until there is room for another one. The lock must be held. */
static void make_room(struct node_cache *c, struct shard *s)
{
	while (s->nodes >= c->nodes_max && (s->passed || s->idle))
		forget(s, s->passed ? s->passed : s->idle);
}

/*
 * Whether a block in the cache, pinned by the caller only, is older than the one now at its address. The lock must be
 * held.
 */
static bool is_stale(const struct node *node, const struct node_ref *ref)
{
	return node->pins == 1 && ref->generation != NODE_ANY && node->generation < ref->generation;
}

/* Checks a block in memory against the pointer that led to it. */
static int check_node(const struct node *node, const struct node_ref *ref, struct btrkit_error *err)
{
	const int ret = node_verify_ref(ref, node->data, err);

	if (ret)
		err_at_logical(err, ref->bytenr);
	return ret;
}

static int get_private(struct overlay *o, struct node *node, const struct node_ref *ref, struct node **ret,
		       struct btrkit_error *err)
{
	int r = overlay_bring_back(o, node, err);

	if (!r)
		r = check_node(node, ref, err);
	if (!r)
		*ret = node;
	return r;
}

/* The block, pinned. NULL: it is not in the cache, or only an older block of that address was. */
static struct node *take_cached(struct shard *s, const struct node_ref *ref)
{
	struct node *node;

	pthread_mutex_lock(&s->lock);
	node = pin_cached(s, ref->bytenr);
	if (node && is_stale(node, ref)) {
		node->pins--;
		DL_APPEND(s->idle, node);
		forget(s, node);
		node = NULL;
	}
	pthread_mutex_unlock(&s->lock);
	return node;
}

/* Inserts a block that was read. @return it, or the one of a thread that was faster, pinned; NULL: no memory */
static struct node *put_in(struct node_cache *c, struct shard *s, struct node *node)
{
	struct node *other;

	pthread_mutex_lock(&s->lock);
	other = pin_cached(s, node->bytenr);
	if (!other) {
		make_room(c, s);
		HASH_ADD(hh, s->by_bytenr, bytenr, sizeof(node->bytenr), node);
		if (node->hh.tbl) {
			s->nodes++;
			other = node;
		}
	}
	pthread_mutex_unlock(&s->lock);
	if (other != node)
		free(node);
	return other;
}

int node_get(struct btrkit_fs *fs, const struct node_ref *ref, struct node **ret, struct btrkit_error *err)
{
	struct shard *s = shard_of(fs->cache, ref->bytenr);
	struct node *node;
	int r;

	if (fs->overlay) {
		node = overlay_find(fs->overlay, ref->bytenr);
		if (node)
			return get_private(fs->overlay, node, ref, ret, err);
	}
	node = take_cached(s, ref);
	if (node) {
		r = check_node(node, ref, err);
		if (r) {
			node_put(fs, node);
			return r;
		}
	} else {
		r = read_node(fs, ref, &node, err);
		if (r)
			return r;
		node = put_in(fs->cache, s, node);
		if (!node)
			return err_nomem(err);
	}
	*ret = node;
	return 0;
}

void node_put(struct btrkit_fs *fs, struct node *node)
{
	struct shard *s = shard_of(fs->cache, node->bytenr);

	/* Private blocks stay until the transaction ends. */
	if (node->private)
		return;
	pthread_mutex_lock(&s->lock);
	if (!--node->pins)
		DL_APPEND(s->idle, node);
	pthread_mutex_unlock(&s->lock);
}

bool node_cached(const struct btrkit_fs *fs, uint64_t bytenr)
{
	struct shard *s = shard_of(fs->cache, bytenr);
	const struct node *node;

	pthread_mutex_lock(&s->lock);
	HASH_FIND(hh, s->by_bytenr, &bytenr, sizeof(bytenr), node);
	pthread_mutex_unlock(&s->lock);
	return node != NULL;
}

void node_pass(struct btrkit_fs *fs, struct node *node)
{
	struct shard *s = shard_of(fs->cache, node->bytenr);

	if (node->private)
		return;
	pthread_mutex_lock(&s->lock);
	if (!--node->pins && node->again) {
		DL_APPEND(s->idle, node);
	} else if (!node->pins) {
		DL_APPEND(s->passed, node);
		node->passed = true;
		if (++s->num_passed > PASSED_MAX)
			forget(s, s->passed);
	}
	pthread_mutex_unlock(&s->lock);
}

void node_cache_adopt(struct node_cache *c, struct node *node)
{
	struct shard *s = shard_of(c, node->bytenr);
	struct node *old;

	node->private = false;
	node->passed = false;
	node->again = false;
	node->pins = 0;
	pthread_mutex_lock(&s->lock);
	HASH_FIND(hh, s->by_bytenr, &node->bytenr, sizeof(node->bytenr), old);
	if (old && !old->pins)
		forget(s, old);
	make_room(c, s);
	HASH_ADD(hh, s->by_bytenr, bytenr, sizeof(node->bytenr), node);
	/* Without memory, the block is dropped and read again when needed. */
	if (node->hh.tbl) {
		DL_APPEND(s->idle, node);
		s->nodes++;
	} else {
		node_free(s->slabs, node);
	}
	pthread_mutex_unlock(&s->lock);
}

void node_cache_forget_generation(struct node_cache *c, uint64_t generation)
{
	for (int i = 0; i < SHARDS; i++) {
		struct shard *s = &c->shards[i];
		struct node *node, *next;

		pthread_mutex_lock(&s->lock);
		HASH_ITER(hh, s->by_bytenr, node, next)
		{
			if (!node->pins && node->generation == generation)
				forget(s, node);
		}
		pthread_mutex_unlock(&s->lock);
	}
}
