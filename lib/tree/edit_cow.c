// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copies on write. A committed block is copied once in a transaction, and the pointer in its parent changes to the
 * copy. In file trees, whose blocks snapshots share, this affects the references to what the block points to:
 *
 * - If only this tree can reach the block, the copy inherits its references. But full backreferences, which are made in
 * the name of the block instead of a tree, are replaced by references in the name of the tree.
 *
 * - If others can reach it, too, and this tree created it, its references, which are in the name of the tree, now
 * belong to the copy. The block remains for the others, so it gets full backreferences.
 *
 * - If others can reach it, and another tree created it, its references remain, and the copy adds its own.
 *
 * These are Linux's rules, on which its code and its check depend. After a snapshot within the transaction, private
 * blocks may be shared, and are treated like committed ones.
 */
#include <errno.h>
#include <inttypes.h>

#include "lib/base/err.h"
#include "lib/format/items/files/file_extent.h"
#include "lib/tree/edit_path.h"

/* References that a block makes, full backreferences or in the name of a tree. */
struct child_refs {
	struct overlay *o;
	const struct node *n;
	uint64_t root; /* of the tree */
	bool full;
	int add;
};

static int change_data_ref(const struct child_refs *r, uint32_t slot, struct btrkit_error *err)
{
	struct overlay *o = r->o;
	struct item item = leaf_item(r->n, slot);
	struct file_extent fe;
	struct extent_change change;
	int ret;

	if (item.key.type != KEY_EXTENT_DATA)
		return 0;
	ret = file_extent_decode(&o->fs->items, &item, &fe, err);
	if (ret) {
		err_at_logical(err, r->n->bytenr);
		err_at_item(err, slot, &item.key);
		return ret;
	}
	if (fe.type == FILE_EXTENT_INLINE || !fe.disk_bytenr)
		return 0;
	change = (struct extent_change){ .bytenr = fe.disk_bytenr,
					 .num_bytes = fe.disk_num_bytes,
					 .data = true,
					 .add = r->add };
	if (r->full)
		change.ref = (struct extent_ref){ .type = KEY_SHARED_DATA_REF, .parent = r->n->bytenr };
	else
		change.ref = (struct extent_ref){ .type = KEY_EXTENT_DATA_REF,
						  .root = r->root,
						  .objectid = item.key.objectid,
						  .offset = item.key.offset - fe.offset };
	return overlay_change_ref(o, &change, err);
}

static int change_block_ref(const struct child_refs *r, uint32_t slot, struct btrkit_error *err)
{
	struct overlay *o = r->o;
	struct extent_change change = { .bytenr = le64_get(node_ptrs(r->n)[slot].blockptr),
					.num_bytes = r->n->size,
					.level = (uint8_t)(r->n->level - 1),
					.add = r->add };

	if (r->full)
		change.ref = (struct extent_ref){ .type = KEY_SHARED_BLOCK_REF, .parent = r->n->bytenr, .count = 1 };
	else
		change.ref = (struct extent_ref){ .type = KEY_TREE_BLOCK_REF, .root = r->root, .count = 1 };
	return overlay_change_ref(o, &change, err);
}

static int change_all(const struct child_refs *r, struct btrkit_error *err)
{
	int ret = 0;

	for (uint32_t i = 0; !ret && i < r->n->nritems; i++)
		ret = r->n->level ? change_block_ref(r, i, err) : change_data_ref(r, i, err);
	return ret;
}

int overlay_change_refs(struct overlay *o, const struct node *n, bool full, int add, struct btrkit_error *err)
{
	return change_all(&(struct child_refs){ o, n, n->owner, full, add }, err);
}

/* Whether another tree may be able to reach a block. Every tree has its own root block. */
static bool can_be_shared(const struct edit_tree *t, const struct node *n)
{
	return t->shareable && n->bytenr != t->c.root.bytenr &&
	       (n->generation <= t->last_snapshot || n->flags & HEADER_FLAG_RELOC);
}

/* Changes the references of @old, whose contents belong to another block of this tree from now on. */
static int change_refs(struct edit_tree *t, const struct node *old, uint64_t refs, uint64_t flags,
		       struct btrkit_error *err)
{
	struct overlay *o = t->overlay;
	const struct child_refs own = { o, old, t->c.root.id, false, 1 };
	int ret;

	if (refs == 1) {
		if (!(flags & EXTENT_FLAG_FULL_BACKREF))
			return 0;
		ret = change_all(&own, err);
		return ret ? ret : overlay_change_refs(o, old, true, -1, err);
	}
	if (old->owner != t->c.root.id || flags & EXTENT_FLAG_FULL_BACKREF)
		return change_all(&own, err);
	ret = overlay_change_refs(o, old, true, 1, err);
	return ret ? ret : overlay_set_full_backref(o, old->bytenr, old->level, err);
}

/* Whether only the extent tree can tell the number of references to a block of the tree. */
static bool must_ask(const struct edit_tree *t, const struct node *n)
{
	return n->private || can_be_shared(t, n);
}

/* Number of references to a block of the tree, and its EXTENT_FLAG_*. */
static int find_refs(struct edit_tree *t, const struct node *n, uint64_t *refs, uint64_t *flags,
		     struct btrkit_error *err)
{
	struct overlay *o = t->overlay;
	int ret = 0;

	*refs = 1;
	*flags = 0;
	if (must_ask(t, n))
		ret = overlay_lookup_refs(o, n->bytenr, n->level, refs, flags, err);
	return ret || *refs ? ret : err_corrupt(err, "refs", "a block in use has no references");
}

static int copy_node(struct edit_tree *t, struct node *n, struct node **ret, struct btrkit_error *err)
{
	uint64_t refs, flags;
	struct node *copy;
	int r = find_refs(t, n, &refs, &flags, err);

	if (r)
		return r;
	if (n->private && refs == 1 && n->owner == t->c.root.id && !(flags & EXTENT_FLAG_FULL_BACKREF)) {
		/* The others that shared it have dropped it. */
		n->era = t->overlay->era;
		t->private++;
		t->private_inner += n->level > 0;
		*ret = n;
		return 0;
	}
	r = overlay_copy_node(t, n, &copy, err);
	if (!r)
		r = change_refs(t, n, refs, flags, err);
	if (!r)
		r = overlay_free_node(t, n->bytenr, n->level, !must_ask(t, n), err);
	if (!r)
		*ret = copy;
	return r;
}

bool edit_is_own(const struct edit_tree *t, const struct node *n)
{
	return n->private && !edit_may_share_private(t, n);
}

static int told(const struct edit_tree *t, const struct node *n, int ret, struct btrkit_error *err)
{
	if (ret) {
		err_at_tree(err, t->c.root.id);
		err_at_logical(err, n->bytenr);
	}
	return ret;
}

int edit_cow(struct edit_tree *t, struct node *n, struct node **ret, struct btrkit_error *err)
{
	if (edit_is_own(t, n)) {
		*ret = n;
		return 0;
	}
	return told(t, n, copy_node(t, n, ret, err), err);
}

int edit_let_go(struct edit_tree *t, const struct node *n, struct btrkit_error *err)
{
	uint64_t refs, flags;
	int ret = 0;

	if (!edit_is_own(t, n)) {
		ret = find_refs(t, n, &refs, &flags, err);
		if (!ret)
			ret = change_refs(t, n, refs, flags, err);
	}
	if (!ret)
		ret = overlay_free_node(t, n->bytenr, n->level, !must_ask(t, n), err);
	return told(t, n, ret, err);
}

/* Makes the root block of the tree private, and the path lead to it. */
static int cow_root(struct edit_tree *t, struct btrkit_error *err)
{
	int ret = cursor_descend(&t->c, &KEY(0, 0, 0), t->c.root.level, err);

	return ret ? ret : edit_cow_path(t, t->c.root.level, err);
}

static int snapshot(struct edit_tree *source, struct edit_tree *to, struct btrkit_error *err)
{
	struct overlay *o = source->overlay;
	struct node *root, *copy;
	int ret;

	if (o->era == UINT32_MAX)
		return err_system(err, EOVERFLOW, "too many snapshots in a transaction");
	ret = cow_root(source, err);
	if (ret)
		return ret;
	root = source->c.nodes[source->c.root.level];
	source->era = to->era = root->era = ++o->era;
	source->last_snapshot = to->last_snapshot = o->generation;
	source->private = 1;
	source->private_inner = root->level > 0;
	ret = overlay_copy_node(to, root, &copy, err);
	if (!ret)
		ret = overlay_change_refs(o, copy, false, 1, err);
	if (!ret)
		edit_set_root(to, copy);
	return ret;
}

int overlay_snapshot(struct edit_tree *source, uint64_t id, struct edit_tree **ret, struct btrkit_error *err)
{
	struct overlay *o = source->overlay;
	const struct tree_root root = { .id = id, .generation = o->generation, .key_offset = o->generation - 1 };
	struct edit_tree *to;
	int r;

	if (!source->shareable)
		return err_set(err, BTRKIT_INVALID, "tree %" PRIu64 " cannot be snapshotted",
			       source->c.root.id);
	r = overlay_open(o, &root, &to, err);
	if (!r)
		r = edit_ended(source, snapshot(source, to, err), err);
	cursor_release(&source->c);
	if (!r)
		*ret = to;
	return r;
}

int edit_cow_path(struct edit_tree *t, unsigned down_to, struct btrkit_error *err)
{
	struct cursor *c = &t->c;

	t->overlay->edits++;
	for (int level = c->root.level; level >= (int)down_to; level--) {
		struct node *n = c->nodes[level], *copy;
		int ret;

		ret = edit_cow(t, n, &copy, err);
		if (ret)
			return ret;
		if (copy == n)
			continue;
		if (level == c->root.level) {
			edit_set_root(t, copy);
		} else {
			struct disk_key_ptr *p = ptrs_of(c->nodes[level + 1]) + c->slots[level + 1];

			p->blockptr = le64_put(copy->bytenr);
			p->generation = le64_put(copy->generation);
		}
		node_put(c->fs, n);
		c->nodes[level] = copy;
	}
	return 0;
}
