// SPDX-License-Identifier: LGPL-2.1-or-later
/* A transaction's view of the filesystem: its private blocks, and the trees open for editing. */
#include "lib/tree/overlay.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/tree/cache.h"
#include "lib/tree/edit_path.h"
#include "lib/tree/known_bad.h"

int overlay_create(struct btrkit_fs *fs, uint64_t generation, const struct overlay_ops *ops, void *ctx,
		   struct failure *failure, struct overlay **ret, struct btrkit_error *err)
{
	struct overlay *o = calloc(1, sizeof(*o));

	if (!o)
		return err_nomem(err);
	*o = (struct overlay){ .fs = fs,
			       .generation = generation,
			       .ops = ops,
			       .ctx = ctx,
			       .failure = failure,
			       .root_tree = fs->root_tree,
			       .chunk_tree = fs->chunk_tree };
	pthread_mutex_init(&o->back, NULL);
	fs->overlay = o;
	*ret = o;
	return 0;
}

static void forget_trees(struct overlay *o)
{
	while (o->trees) {
		struct edit_tree *t = o->trees;

		o->trees = t->next;
		cursor_release(&t->c);
		free(t);
	}
}

static void free_dead(struct overlay *o)
{
	while (o->dead) {
		struct node *n = o->dead;

		o->dead = n->next;
		node_free(&o->fs->slabs, n);
	}
}

struct overlay *overlay_abort(struct overlay *o)
{
	struct node *n, *next;

	if (!o)
		return NULL;
	forget_trees(o);
	HASH_ITER(hh, o->nodes, n, next)
	{
		HASH_DEL(o->nodes, n);
		node_free(&o->fs->slabs, n);
	}
	free_dead(o);
	o->fs->root_tree = o->root_tree;
	o->fs->chunk_tree = o->chunk_tree;
	o->fs->overlay = NULL;
	stock_trim(&o->fs->stock);
	/* The next transaction will have the same generation as blocks that were built on the devices and read back. */
	node_cache_forget_generation(o->fs->cache, o->generation);
	pthread_mutex_destroy(&o->back);
	known_bad_free(o);
	free(o);
	return NULL;
}

struct overlay *overlay_commit(struct overlay *o)
{
	struct node *n, *next;

	forget_trees(o);
	HASH_ITER(hh, o->nodes, n, next)
	{
		HASH_DEL(o->nodes, n);
		if (n->data)
			node_cache_adopt(o->fs->cache, n);
		else
			node_free(&o->fs->slabs, n);
	}
	free_dead(o);
	o->fs->overlay = NULL;
	stock_trim(&o->fs->stock);
	pthread_mutex_destroy(&o->back);
	known_bad_free(o);
	free(o);
	return NULL;
}

struct node *overlay_find(const struct overlay *o, uint64_t bytenr)
{
	struct node *n;

	HASH_FIND(hh, o->nodes, &bytenr, sizeof(bytenr), n);
	return n;
}

struct edit_tree *overlay_open_tree(const struct overlay *o, uint64_t id)
{
	struct edit_tree *t;

	for (t = o->trees; t && t->c.root.id != id; t = t->next)
		;
	return t;
}

int overlay_alloc_block(struct overlay *o, uint64_t owner, unsigned level, const struct btrkit_key *first,
			uint64_t *bytenr, struct btrkit_error *err)
{
	o->edits++;
	return failure_note_any(o->failure, o->ops->alloc(o->ctx, owner, level, first, bytenr, err), err);
}

int overlay_lookup_refs(struct overlay *o, uint64_t bytenr, unsigned level, uint64_t *refs, uint64_t *flags,
			struct btrkit_error *err)
{
	return o->ops->lookup(o->ctx, bytenr, level, refs, flags, err);
}

int overlay_change_ref(struct overlay *o, const struct extent_change *change, struct btrkit_error *err)
{
	o->edits++;
	return failure_note_any(o->failure, o->ops->change(o->ctx, change, err), err);
}

int overlay_set_full_backref(struct overlay *o, uint64_t bytenr, unsigned level, struct btrkit_error *err)
{
	o->edits++;
	return failure_note_any(o->failure, o->ops->set_full_backref(o->ctx, bytenr, level, err), err);
}

/* Adds a newly allocated block. The caller fills in its data. */
static int add_node(struct edit_tree *t, unsigned level, const struct btrkit_key *first, struct node **ret,
		    struct btrkit_error *err)
{
	struct overlay *o = t->overlay;
	struct node *n = slab_take(&o->fs->slabs, o->fs->geometry.nodesize);
	int r;

	if (!n)
		return err_nomem(err);
	r = overlay_alloc_block(o, t->c.root.id, level, first, &n->bytenr, err);
	if (r) {
		node_free(&o->fs->slabs, n);
		return r;
	}
	n->generation = o->generation;
	n->owner = t->c.root.id;
	n->flags = MIXED_BACKREF_REV;
	n->level = (uint8_t)level;
	n->private = true;
	n->era = o->era;
	HASH_ADD(hh, o->nodes, bytenr, sizeof(n->bytenr), n);
	if (!n->hh.tbl) {
		node_free(&o->fs->slabs, n);
		return err_nomem(err);
	}
	o->num_nodes++;
	t->private++;
	t->private_inner += level > 0;
	*ret = n;
	return 0;
}

static void sign_header(const struct node *n, struct disk_header *h)
{
	h->bytenr = le64_put(n->bytenr);
	h->flags = le64_put(n->flags);
	h->generation = le64_put(n->generation);
	h->owner = le64_put(n->owner);
	h->level = n->level;
}

int overlay_new_node(struct edit_tree *t, unsigned level, const struct btrkit_key *first, struct node **ret,
		     struct btrkit_error *err)
{
	struct btrkit_fs *fs = t->overlay->fs;
	struct disk_header *h;
	uint8_t uuid[16];
	int r;

	r = fs_chunk_tree_uuid(fs, uuid, err);
	if (!r)
		r = add_node(t, level, first, ret, err);
	if (r)
		return r;
	h = (struct disk_header *)(*ret)->data;
	*h = (struct disk_header){ .level = 0 };
	memcpy(h->fsid, fs->rules.fsid, sizeof(h->fsid));
	memcpy(h->chunk_tree_uuid, uuid, sizeof(h->chunk_tree_uuid));
	sign_header(*ret, h);
	if (!level && t->shareable)
		overlay_add_young(t->overlay, *ret);
	t->blocks++;
	t->changed = true;
	t->overlay->created++;
	return 0;
}

int overlay_copy_node(struct edit_tree *t, const struct node *from, struct node **ret, struct btrkit_error *err)
{
	struct btrkit_key first = { 0 };
	struct node *n;
	int r;

	if (from->nritems)
		first = node_key(from, 0);
	r = add_node(t, from->level, from->nritems ? &first : NULL, &n, err);
	if (r)
		return r;
	memcpy(n->data, from->data, n->size);
	n->nritems = from->nritems;
	sign_header(n, (struct disk_header *)n->data);
	t->overlay->copied++;
	*ret = n;
	return 0;
}

void overlay_forget_node(struct overlay *o, struct node *n)
{
	HASH_DEL(o->nodes, n);
	overlay_grown_up(o, n);
	if (!n->data)
		o->num_away--;
	n->next = o->dead;
	o->dead = n;
	o->num_nodes--;
}

int overlay_free_node(struct edit_tree *t, uint64_t bytenr, unsigned level, bool last, struct btrkit_error *err)
{
	struct overlay *o = t->overlay;
	const struct extent_change drop = {
		.bytenr = bytenr,
		.num_bytes = o->fs->geometry.nodesize,
		.level = (uint8_t)level,
		.ref = { .type = KEY_TREE_BLOCK_REF, .root = t->c.root.id, .count = 1 },
		.add = -1,
		.last = last,
	};
	uint64_t refs = 1, flags;
	struct node *n = overlay_find(o, bytenr);
	int ret = 0;

	if (n && edit_may_share_private(t, n)) {
		ret = overlay_lookup_refs(o, bytenr, level, &refs, &flags, err);
	} else if (n) {
		t->private--;
		t->private_inner -= level > 0;
	}
	if (ret)
		return ret;
	if (n && refs <= 1)
		overlay_forget_node(o, n);
	o->freed++;
	return overlay_change_ref(o, &drop, err);
}

void edit_set_root(struct edit_tree *t, const struct node *n)
{
	struct btrkit_fs *fs = t->overlay->fs;

	t->c.root.bytenr = n->bytenr;
	t->c.root.generation = n->generation;
	t->c.root.level = n->level;
	t->changed = true;
	if (t->c.root.id == OID_ROOT_TREE)
		fs->root_tree = t->c.root;
	else if (t->c.root.id == OID_CHUNK_TREE)
		fs->chunk_tree = t->c.root;
}

int overlay_open(struct overlay *o, const struct tree_root *root, struct edit_tree **ret, struct btrkit_error *err)
{
	struct edit_tree *t = calloc(1, sizeof(*t));

	if (!t)
		return err_nomem(err);
	t->overlay = o;
	t->shareable = oid_is_file_tree(root->id);
	cursor_init(&t->c, o->fs, root);
	t->next = o->trees;
	o->trees = t;
	*ret = t;
	return 0;
}

int overlay_try_tree(struct overlay *o, uint64_t id, struct edit_tree **ret, struct btrkit_error *err)
{
	struct edit_tree *t = overlay_open_tree(o, id);
	struct root_item item;
	struct tree_root root;
	int r;

	if (t) {
		*ret = t;
		return 0;
	}
	r = fs_try_tree(o->fs, id, &root, &item, err);
	if (!r)
		r = overlay_open(o, &root, &t, err);
	if (r)
		return r;
	t->last_snapshot = item.last_snapshot;
	*ret = t;
	return 0;
}

int overlay_tree(struct overlay *o, uint64_t id, struct edit_tree **ret, struct btrkit_error *err)
{
	const int r = overlay_try_tree(o, id, ret, err);

	return r == 1 ? err_set(err, BTRKIT_NOT_FOUND, "no tree %" PRIu64, id) : r;
}

int overlay_new_tree(struct overlay *o, uint64_t id, struct edit_tree **ret, struct btrkit_error *err)
{
	const struct tree_root root = { .id = id, .generation = o->generation };
	struct edit_tree *t = NULL;
	struct node *n;
	int r;

	r = overlay_open(o, &root, &t, err);
	if (!r)
		r = edit_ended(t, overlay_new_node(t, 0, NULL, &n, err), err);
	if (r)
		return r;
	t->fresh = true;
	edit_set_root(t, n);
	*ret = t;
	return 0;
}

int overlay_adopt_tree(struct overlay *o, const struct tree_root *root, uint64_t blocks, struct edit_tree **ret,
		       struct btrkit_error *err)
{
	int r = overlay_open(o, root, ret, err);

	if (r)
		return r;
	(*ret)->fresh = true;
	(*ret)->changed = true;
	(*ret)->blocks = (int64_t)blocks;
	return 0;
}

int overlay_committed_root(struct overlay *o, uint64_t id, struct tree_root *ret, struct btrkit_error *err)
{
	if (id == OID_ROOT_TREE || id == OID_CHUNK_TREE) {
		*ret = id == OID_ROOT_TREE ? o->root_tree : o->chunk_tree;
		return 0;
	}
	return fs_find_root_in(o->fs, &o->root_tree, id, ret, NULL, err);
}

static int check_items(const struct overlay *o, const struct node *n, struct btrkit_error *err)
{
	struct item_ctx ctx = o->fs->items;

	ctx.owner = n->owner;
	for (uint32_t i = 0; !n->level && i < n->nritems; i++) {
		struct item item = leaf_item(n, i);
		int ret = item_validate(&ctx, &item, err);

		if (ret && !known_bad_stands(o, n->owner, &item)) {
			err_at_item(err, i, &item.key);
			return ret;
		}
	}
	return 0;
}

int overlay_seal(const struct overlay *o, struct node *n, struct btrkit_error *err)
{
	const struct btrkit_fs *fs = o->fs;
	struct disk_header *h = (struct disk_header *)n->data;
	struct btrkit_key first;
	struct node_ref ref = { n->bytenr, n->generation, n->owner, n->level, NULL };
	uint32_t used = n->level ? n->nritems * (uint32_t)sizeof(struct disk_key_ptr) :
				   n->nritems * (uint32_t)sizeof(struct disk_item);
	uint32_t end = n->level ? leaf_room(n->size) : leaf_end(n);
	int ret;

	if (n->nritems) {
		first = node_key(n, 0);
		ref.first_key = &first;
	}
	/* Do not write leftovers of earlier contents. */
	if (used < end)
		memset(n->data + sizeof(*h) + used, 0, end - used);
	n->flags = MIXED_BACKREF_REV | HEADER_FLAG_WRITTEN;
	sign_header(n, h);
	/* A copied block still has the one of its source, which a conversion has changed. */
	memcpy(h->fsid, fs->rules.fsid, sizeof(h->fsid));
	memset(h->csum, 0, sizeof(h->csum));
	fs->geometry.csum->compute(h->fsid, fs->geometry.nodesize - sizeof(h->csum), h->csum);
	ret = node_verify(&fs->rules, &ref, n->data, err);
	if (!ret)
		ret = check_items(o, n, err);
	if (ret) {
		err_at_tree(err, n->owner);
		err_at_logical(err, n->bytenr);
	}
	return ret;
}

int overlay_blocks(const struct overlay *o, struct sort_entry **ret, size_t *n, struct btrkit_error *err)
{
	struct sort_entry *all = NULL;
	struct node *node, *next;
	size_t count = 0;

	if (o->num_nodes)
		all = reallocarray(NULL, o->num_nodes, sizeof(*all));
	if (o->num_nodes && !all)
		return err_nomem(err);
	HASH_ITER(hh, o->nodes, node, next)
	{
		if (node->data)
			all[count++] = (struct sort_entry){ 0, node->bytenr, node };
	}
	sort_entries(all, count);
	*ret = all;
	*n = count;
	return 0;
}
