// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/tree/drop.h"

#include <inttypes.h>

#include "lib/base/err.h"
#include "lib/tree/edit_path.h"

struct step {
	struct node *n;
	uint32_t slot;
	uint64_t flags; /* EXTENT_FLAG_* */
};

struct walk {
	struct overlay *o;
	struct tree_drop *d;
	struct tree_root root;
	struct step path[LEVELS_MAX];  /* blocks that only this tree can reach */
	struct step below[LEVELS_MAX]; /* blocks that others can reach, too, below a slot of the path */
	uint64_t left; /* how many more references may change */
};

uint64_t tree_drop_excess(uint32_t nodesize)
{
	/* The contents of a block twice, and the block itself. */
	return 2 * (nodesize / sizeof(struct disk_key_ptr)) + 1;
}

static void spend(struct walk *w, uint64_t refs)
{
	w->left -= refs < w->left ? refs : w->left;
}

static void release(struct walk *w, struct step *path)
{
	for (unsigned i = 0; i < LEVELS_MAX; i++) {
		if (path[i].n)
			node_put(w->o->fs, path[i].n);
		path[i].n = NULL;
	}
}

static int lookup(struct walk *w, uint64_t bytenr, unsigned level, uint64_t *refs, uint64_t *flags,
		  struct btrkit_error *err)
{
	int ret = overlay_lookup_refs(w->o, bytenr, level, refs, flags, err);

	if (!ret && !*refs)
		ret = err_corrupt(err, "refs", "tree block %" PRIu64 ", which is in use, has no references", bytenr);
	return ret;
}

/* Drops the reference of a block to its child, or if @parent is NULL, that of the tree to its root block. */
static int drop_block(struct walk *w, const struct step *parent, uint64_t bytenr, unsigned level,
		      struct btrkit_error *err)
{
	struct extent_change drop = {
		.bytenr = bytenr,
		.num_bytes = w->o->fs->geometry.nodesize,
		.level = (uint8_t)level,
		.ref = { .type = KEY_TREE_BLOCK_REF, .root = w->root.id, .count = 1 },
		.add = -1,
	};

	if (parent && parent->flags & EXTENT_FLAG_FULL_BACKREF)
		drop.ref = (struct extent_ref){
			.type = KEY_SHARED_BLOCK_REF, .parent = parent->n->bytenr, .count = 1
		};
	spend(w, 1);
	return overlay_change_ref(w->o, &drop, err);
}

/* Enters a block that only this tree can reach. */
static int enter(struct walk *w, const struct node_ref *ref, uint64_t flags, struct btrkit_error *err)
{
	struct step *s = &w->path[ref->level];
	int ret = node_get(w->o->fs, ref, &s->n, err);

	if (ret)
		return ret;
	s->slot = 0;
	s->flags = flags;
	if (s->n->owner != w->root.id && !(flags & EXTENT_FLAG_FULL_BACKREF)) {
		ret = err_corrupt(err, "owner", "tree block is owned by tree %" PRIu64 ", which does not refer to it",
				  s->n->owner);
		err_at_logical(err, ref->bytenr);
	}
	if (!ret && s->n->level == 1)
		node_prefetch_children(w->o->fs, s->n, 0, s->n->nritems);
	return ret;
}

/* Converts a shared block to full backreferences, if its references are in the name of this tree. */
static int convert_block(struct walk *w, const struct node *n, uint64_t flags, struct btrkit_error *err)
{
	int ret;

	if (flags & EXTENT_FLAG_FULL_BACKREF)
		return 0;
	spend(w, 2ull * n->nritems + 1);
	ret = overlay_change_refs(w->o, n, true, 1, err);
	if (!ret)
		ret = overlay_change_refs(w->o, n, false, -1, err);
	return ret ? ret : overlay_set_full_backref(w->o, n->bytenr, n->level, err);
}

/* Where to continue in a shared block. */
static uint32_t slot_to_go_on(const struct walk *w, const struct node *n)
{
	bool exact;
	uint32_t slot;

	if (!w->d->converting)
		return 0;
	slot = node_lower_bound(n, &w->d->converted, &exact);
	return slot && !exact ? slot - 1 : slot;
}

/* Enters a block that others can reach, too, if this tree created it. @return 0; 1: it did not; <0 */
static int enter_shared(struct walk *w, const struct node_ref *ref, struct btrkit_error *err)
{
	struct step *s = &w->below[ref->level];
	uint64_t refs;
	int ret = lookup(w, ref->bytenr, ref->level, &refs, &s->flags, err);

	/* A leaf that has full backreferences already has nothing below it. */
	if (!ret && !ref->level && s->flags & EXTENT_FLAG_FULL_BACKREF)
		return 1;
	if (!ret)
		ret = node_get(w->o->fs, ref, &s->n, err);
	if (ret)
		return ret;
	spend(w, 1);
	if (s->n->owner != w->root.id) {
		node_put(w->o->fs, s->n);
		s->n = NULL;
		return 1;
	}
	ret = convert_block(w, s->n, s->flags, err);
	s->slot = s->n->level ? slot_to_go_on(w, s->n) : s->n->nritems;
	return ret;
}

/* Converts a shared block, and those below, that this tree created. @return 0; 1: there is more; <0 */
static int convert(struct walk *w, const struct node_ref *top, struct btrkit_error *err)
{
	unsigned level = top->level;
	int ret = enter_shared(w, top, err);

	if (ret)
		return ret < 0 ? ret : 0;
	for (;;) {
		struct step *s = &w->below[level];
		struct btrkit_key key;
		struct node_ref ref;

		if (s->slot >= s->n->nritems) {
			node_put(w->o->fs, s->n);
			s->n = NULL;
			if (level++ == top->level)
				return 0;
			w->below[level].slot++;
			continue;
		}
		ref = node_child(s->n, s->slot, w->root.id, &key);
		if (!w->left) {
			w->d->converted = key;
			w->d->converting = true;
			return 1;
		}
		/* Blocks older than this tree were not created by it. */
		ret = ref.generation <= w->root.key_offset ? 1 : enter_shared(w, &ref, err);
		if (ret < 0)
			return ret;
		if (ret)
			s->slot++;
		else
			level--;
	}
}

/* Drops the child in the path's slot, or enters it if it must be deleted itself. @return 0; 1: more to convert; <0 */
static int drop_child(struct walk *w, unsigned *level, struct btrkit_error *err)
{
	struct step *s = &w->path[*level];
	struct btrkit_key key;
	const struct node_ref ref = node_child(s->n, s->slot, w->root.id, &key);
	uint64_t refs, flags;
	int ret = lookup(w, ref.bytenr, ref.level, &refs, &flags, err);

	if (ret)
		return ret;
	if (refs == 1) {
		ret = enter(w, &ref, flags, err);
		--*level;
		return ret;
	}
	if (ref.generation > w->root.key_offset && (ref.level || !(flags & EXTENT_FLAG_FULL_BACKREF)))
		ret = convert(w, &ref, err);
	if (ret)
		return ret;
	w->d->converting = false;
	s->slot++;
	return drop_block(w, s, ref.bytenr, ref.level, err);
}

/* Drops a block whose children are all deleted. */
static int leave(struct walk *w, unsigned level, struct btrkit_error *err)
{
	struct step *s = &w->path[level], *parent = level < w->root.level ? s + 1 : NULL;
	struct node *n = s->n;
	const uint64_t bytenr = n->bytenr;
	int ret = 0;

	if (!level) {
		spend(w, n->nritems);
		ret = overlay_change_refs(w->o, n, s->flags & EXTENT_FLAG_FULL_BACKREF, -1, err);
	}
	if (!ret)
		ret = drop_block(w, parent, bytenr, level, err);
	if (ret)
		return ret;
	s->n = NULL;
	if (n->private)
		overlay_forget_node(w->o, n);
	else
		node_put(w->o->fs, n);
	if (parent)
		parent->slot++;
	return 0;
}

/* Gets the path to where the last step ended. */
static int go_there(struct walk *w, unsigned *level, struct btrkit_error *err)
{
	const struct tree_drop *d = w->d;
	struct node_ref ref = { w->root.bytenr, w->root.generation, w->root.id, w->root.level, NULL };
	uint64_t refs, flags;
	int ret;

	if (d->progress.objectid && d->level > w->root.level)
		return err_corrupt(err, "drop_level", "drop level %u in a tree of level %u", d->level, w->root.level);
	for (*level = w->root.level;; --*level) {
		struct step *s = &w->path[*level];
		struct btrkit_key key;
		bool exact;

		ret = lookup(w, ref.bytenr, ref.level, &refs, &flags, err);
		if (!ret && refs != 1)
			ret = err_corrupt(err, "refs", "block of a tree that is being dropped has %" PRIu64
						       " references", refs);
		if (!ret)
			ret = enter(w, &ref, flags, err);
		if (ret || !d->progress.objectid)
			return ret;
		s->slot = node_lower_bound(s->n, &d->progress, &exact);
		if (*level == d->level)
			return 0;
		if (s->slot && !exact)
			s->slot--;
		if (s->slot == s->n->nritems)
			return err_corrupt(err, "drop_progress", "tree block has no items");
		ref = node_child(s->n, s->slot, w->root.id, &key);
		ref.first_key = NULL;
	}
}

/* @return 0: there is more; 1: all of it is deleted; <0 */
static int drop(struct walk *w, struct btrkit_error *err)
{
	unsigned level;
	int ret = go_there(w, &level, err);

	while (!ret && level <= w->root.level) {
		struct step *s = &w->path[level];

		if (!level || s->slot >= s->n->nritems) {
			ret = leave(w, level++, err);
			continue;
		}
		if (!w->left)
			break;
		ret = drop_child(w, &level, err);
	}
	if (ret < 0)
		return ret;
	if (level > w->root.level)
		return 1;
	w->d->progress = node_key(w->path[level].n, w->path[level].slot);
	w->d->level = (uint8_t)level;
	return 0;
}

int tree_drop_some(struct overlay *o, struct tree_drop *d, uint64_t refs, struct btrkit_error *err)
{
	struct walk w = { .o = o, .d = d, .left = refs };
	const uint64_t edits = o->edits;
	int ret = fs_find_root(o->fs, d->id, &w.root, NULL, err);

	if (ret)
		return ret;
	ret = drop(&w, err);
	release(&w, w.path);
	release(&w, w.below);
	if (ret < 0) {
		err_at_tree(err, d->id);
		/* Nothing is lost by a block that could not be entered. */
		if (o->edits != edits)
			failure_note(o->failure, ret, err);
	}
	return ret;
}
