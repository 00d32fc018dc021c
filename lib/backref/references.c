// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Finds the file extent items that refer to a data extent. A reference names either a tree and a file, or a leaf. The
 * contents of a leaf belong to all trees that reach it; these are found by following the references of tree blocks
 * upwards from the leaf.
 */
#include "lib/backref/references.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "lib/base/array.h"
#include "lib/base/err.h"
#include "lib/base/hash.h"
#include "lib/base/text.h"
#include "lib/format/items/files/file_extent.h"
#include "lib/backref/ancestors.h"

#define COMPRESSED_MAX (128u << 10) /* maximum compressed size of an extent */
#define KNOWN_MAX 65536		    /* maximum number of blocks remembered from one extent to the next */

int references_init(struct references *r, struct btrkit_fs *fs, struct btrkit_error *err)
{
	struct tree_root extent_tree = { 0 };
	int ret;

	*r = (struct references){ .fs = fs };
	ret = fs_find_root(fs, OID_EXTENT_TREE, &extent_tree, NULL, err);
	cursor_init(&r->extents, fs, &extent_tree);
	return ret;
}

void references_release(struct references *r)
{
	references_forget_trees(r);
	cursor_release(&r->extents);
	free(r->at);
}

/* State of the search for one extent. */
struct search {
	struct references *r;
	uint64_t bytenr, num_bytes;
	uint64_t total;		 /* number of references, by the extent's item */
	struct extent_ref *refs; /* references to the extent */
	size_t n, size;
	bool found, data;
	bool leaves; /* some of them name leaves */
	struct btrkit_error *err;
	struct btrkit_error now; /* a failure that may be reported; cleared only after one, for speed */
	/* Of the file that is searched: */
	struct cursor c;
	const struct extent_ref *ref;
	struct btrkit_key end; /* of the items that can refer to the extent */
	uint64_t items; /* that were found */
	int lost;	/* failure of the first block that could not be read, and that may have others; 0: none */
	struct btrkit_error what;
	struct array trees; /* uint64_t: those that reach such a block, besides that of the reference */
};

/* Reports what is lost. @return 0: it goes on; <0 */
static int tell(const struct search *s, int ret, const struct btrkit_error *what)
{
	return s->r->lost && ret != -ENOMEM ? s->r->lost(s->r->lost_ctx, what) : err_pass(s->err, what, ret);
}

static int add_data_ref(struct search *s, const struct extent_ref *ref)
{
	s->leaves |= ref->type == KEY_SHARED_DATA_REF;
	if (ref->type != KEY_EXTENT_DATA_REF && ref->type != KEY_SHARED_DATA_REF)
		return 0;
	if (s->n == s->size) {
		size_t size = s->size ? 2 * s->size : 4;
		struct extent_ref *more = reallocarray(s->refs, size, sizeof(*more));

		if (!more)
			return err_nomem(s->err);
		s->refs = more;
		s->size = size;
	}
	s->refs[s->n++] = *ref;
	return 0;
}

static int collect_data_ref(void *ctx, const struct extent_item *extent, const struct extent_ref *ref)
{
	struct search *s = ctx;

	s->found = true;
	s->data = extent->flags & EXTENT_FLAG_DATA;
	s->num_bytes = extent->num_bytes;
	s->total = extent->refs;
	return add_data_ref(s, ref);
}

/* Adds a reference from each of @n trees. */
static int add_references(struct search *s, const struct btrkit_reference *ref, const uint64_t *trees, size_t n)
{
	struct references *r = s->r;

	if (r->size - r->n < n) {
		size_t size = 2 * (r->n + n);
		struct btrkit_reference *more = reallocarray(r->at, size, sizeof(*more));

		if (!more)
			return err_nomem(s->err);
		r->at = more;
		r->size = size;
	}
	for (size_t i = 0; i < n; i++) {
		r->at[r->n] = *ref;
		r->at[r->n++].root = trees[i];
	}
	return 0;
}

/*
 * Adds an item that refers to the extent, once for each tree that reaches the leaf. @tree: one that does, or 0 if none
 * is known
 */
static int add_item(struct search *s, uint64_t leaf, uint64_t tree, const struct btrkit_key *key,
		    const struct file_extent *fe)
{
	const struct btrkit_reference ref = { .inode = key->objectid,
					      .offset = key->offset,
					      .length = fe->num_bytes,
					      .extent_offset = fe->offset,
					      .compressed = fe->compression };
	const uint64_t *trees;
	size_t n;
	int ret;

	s->items++;
	ret = references_trees_of(s->r, leaf, 0, &trees, &n, &s->now);
	if (!ret)
		return add_references(s, &ref, trees, n);
	text_add(s->now.message, sizeof(s->now.message), "; %ssubvolumes that share leaf %" PRIu64
		 ", with a reference of inode %" PRIu64 ", are not known", tree ? "other " : "", leaf, key->objectid);
	ret = tell(s, ret, &s->now);
	s->now = (struct btrkit_error)BTRKIT_ERROR_INIT;
	return ret || !tree ? ret : add_references(s, &ref, &tree, 1);
}

/* Searches a leaf that a shared reference names. */
static int search_leaf(struct search *s, const struct extent_ref *ref)
{
	struct node_ref to = { ref->parent, NODE_ANY, 0, 0, NULL };
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	struct btrkit_fs *fs = s->r->fs;
	struct node *leaf;
	int ret;

	ret = node_get(fs, &to, &leaf, &what);
	if (ret) {
		text_add(what.message, sizeof(what.message), "; references to the extent in that leaf are missing: %u",
			 ref->count);
		return tell(s, ret, &what);
	}
	for (uint32_t i = 0; !ret && i < leaf->nritems; i++) {
		struct item item = leaf_item(leaf, i);
		struct file_extent fe;

		if (item.key.type != KEY_EXTENT_DATA)
			continue;
		ret = file_extent_decode(&fs->items, &item, &fe, &what);
		if (ret) {
			err_at_logical(&what, leaf->bytenr);
			err_at_item(&what, i, &item.key);
			ret = tell(s, ret, &what);
		} else if (fe.disk_bytenr == s->bytenr) {
			ret = add_item(s, leaf->bytenr, 0, &item.key, &fe);
		}
	}
	node_put(fs, leaf);
	return ret;
}

/* The file has references that may be lost: adds one without a range if it is not sure that all others were found. */
static int add_lost(struct search *s)
{
	const struct btrkit_reference ref = { .inode = s->ref->objectid, .offset = s->ref->offset };
	int ret;

	if (!s->lost || (s->items >= s->ref->count && !s->leaves))
		return 0;
	text_add(s->what.message, sizeof(s->what.message), "; inode %" PRIu64 " of subvolume %" PRIu64
		 " refers to the extent, but which of its bytes do is not known", ref.inode, s->ref->root);
	ret = tell(s, s->lost, &s->what);
	if (!ret)
		ret = add_references(s, &ref, &s->ref->root, 1);
	return ret ? ret : add_references(s, &ref, s->trees.at, s->trees.n);
}

static int note_lost(struct search *s, int ret, const struct btrkit_error *what)
{
	if (!s->r->lost || ret == -ENOMEM)
		return err_pass(s->err, what, ret);
	if (!s->lost) {
		s->lost = ret;
		s->what = *what;
	}
	return 0;
}

/* Finds the trees that reach a lost block, by its key in its parent. */
static int find_trees(struct search *s, const struct btrkit_key *first)
{
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	uint64_t bytenr, *to;
	const uint64_t *trees;
	unsigned level;
	size_t n = 0;
	int ret;

	if (cursor_lost_block(&s->c, &bytenr, &level))
		return 0;
	s->r->lost_block = bytenr;
	s->r->lost_key = *first;
	ret = references_trees_of(s->r, bytenr, level, &trees, &n, &what);
	s->r->lost_block = 0;
	for (size_t i = 0; !ret && i < n; i++) {
		to = array_add(&s->trees, sizeof(*to), s->err);
		if (!to)
			return -ENOMEM;
		*to = trees[i];
	}
	if (!ret)
		return 0;
	text_add(what.message, sizeof(what.message), "; other subvolumes that share block %" PRIu64 " are not known",
		 bytenr);
	return tell(s, ret, &what);
}

/* A cursor_lost_fn. */
static int lose_block(void *ctx, int ret, const struct btrkit_error *what)
{
	struct btrkit_key first, end;
	struct search *s = ctx;

	/* The items of the file, or those that can refer to the extent, end before it. */
	if (!cursor_lost_keys(&s->c, &first, &end) && key_cmp(&first, &s->end) >= 0)
		return 1;
	ret = note_lost(s, ret, what);
	return ret ? ret : find_trees(s, &first);
}

/* After the failure @ret: moves to the first item behind what cannot be read. @return 0; 1: there is none; <0 */
static int go_around(struct search *s, int ret)
{
	struct btrkit_key first, end;
	int r;

	if (ret == -ENOMEM)
		return err_nomem(s->err);
	r = lose_block(s, ret, &s->now);
	s->now = (struct btrkit_error)BTRKIT_ERROR_INIT;
	if (r)
		return r;
	if (cursor_lost_keys(&s->c, &first, &end) || key_cmp(&end, &s->end) >= 0)
		return 1;
	return cursor_next_around(&s->c, &end, true, lose_block, s, s->err);
}

/* Searches the items of the file from @at on. @return 0; <0 */
static int search_items(struct search *s, const struct btrkit_key *at)
{
	const uint64_t inode = s->ref->objectid, end = s->end.offset, start = s->ref->offset, bytenr = s->bytenr;
	struct cursor *c = &s->c;
	int ret = cursor_seek(c, at, &s->now);

	for (;;) {
		struct file_extent fe;

		if (ret < 0)
			ret = go_around(s, ret);
		if (ret || c->item.key.objectid != inode || c->item.key.type != KEY_EXTENT_DATA ||
		    c->item.key.offset >= end)
			return ret < 0 ? ret : 0;
		ret = file_extent_decode(&c->fs->items, &c->item, &fe, &s->now);
		if (ret) {
			ret = note_lost(s, cursor_blame(c, ret, &s->now), &s->now);
			s->now = (struct btrkit_error)BTRKIT_ERROR_INIT;
		} else if (fe.disk_bytenr == bytenr && c->item.key.offset - fe.offset == start) {
			ret = add_item(s, cursor_leaf(c)->bytenr, s->ref->root, &c->item.key, &fe);
		}
		if (ret)
			return ret;
		ret = cursor_next(c, &s->now);
	}
}

/* Searches the file that a reference names. Its items begin where the start of the extent would be in the file. */
static int search_file(struct search *s, const struct extent_ref *ref)
{
	const uint64_t span = s->num_bytes < COMPRESSED_MAX ? COMPRESSED_MAX : s->num_bytes;
	/* The offset may be negative, modulo 2^64; the file begins at 0. */
	const struct btrkit_key at = KEY(ref->objectid, KEY_EXTENT_DATA, ref->offset > INT64_MAX ? 0 : ref->offset);
	struct tree_root root;
	int ret;

	s->ref = ref;
	s->end = KEY(ref->objectid, KEY_EXTENT_DATA, ref->offset + span);
	s->items = 0;
	s->lost = 0;
	s->trees.n = 0;
	ret = fs_try_tree(s->r->fs, ref->root, &root, NULL, &s->now);
	if (ret == 1)
		return 0;
	if (ret) {
		ret = note_lost(s, ret, &s->now);
		s->now = (struct btrkit_error)BTRKIT_ERROR_INIT;
		return ret ? ret : add_lost(s);
	}
	cursor_init(&s->c, s->r->fs, &root);
	ret = search_items(s, &at);
	cursor_release(&s->c);
	return ret ? ret : add_lost(s);
}

static int compare(const void *x, const void *y)
{
	const struct btrkit_reference *a = x, *b = y;

	if (a->root != b->root)
		return a->root < b->root ? -1 : 1;
	if (a->inode != b->inode)
		return a->inode < b->inode ? -1 : 1;
	if (a->offset != b->offset)
		return a->offset < b->offset ? -1 : 1;
	return a->length < b->length ? -1 : a->length > b->length;
}

/* An item in a leaf shared with a snapshot is found by the references of both. */
static void sort_and_join(struct references *r)
{
	size_t kept = 0;

	if (!r->n)
		return;
	qsort(r->at, r->n, sizeof(*r->at), compare);
	for (size_t i = 1; i < r->n; i++)
		if (compare(&r->at[kept], &r->at[i]))
			r->at[++kept] = r->at[i];
	r->n = kept + 1;
}

/* Whether items with references to the extent may have keys from @key on. */
static bool is_ref_key(const struct search *s, const struct btrkit_key *key)
{
	return key->objectid == s->bytenr && key->type <= KEY_SHARED_DATA_REF;
}

/* A cursor_lost_fn, for the extent tree. */
static int lose_refs(void *ctx, int ret, const struct btrkit_error *what)
{
	struct btrkit_key first, end;
	struct search *s = ctx;

	(void)ret;
	(void)what;
	return !cursor_lost_keys(&s->r->extents, &first, &end) && !is_ref_key(s, &first);
}

/* Collects the references behind a lost block of the extent tree, whose keys end before @at. @return 0; -ENOMEM */
static int load_refs_behind(struct search *s, struct btrkit_key at)
{
	struct cursor *c = &s->r->extents;
	bool first = true;
	int ret;

	while (!(ret = cursor_next_around(c, &at, first, lose_refs, s, s->err)) && is_ref_key(s, &at)) {
		struct btrkit_error what = BTRKIT_ERROR_INIT;
		struct extent_ref ref;

		first = false;
		if (at.type >= KEY_TREE_BLOCK_REF && at.type != KEY_EXTENT_REF_V0 &&
		    !extent_keyed_ref_decode(&c->item, &ref, &what))
			ret = add_data_ref(s, &ref);
		if (ret)
			return ret;
	}
	return ret < 0 ? ret : 0;
}

/* Collects the references in the extent tree. */
static int load_refs(struct search *s)
{
	const int ret = extent_for_each_ref(&s->r->extents, s->bytenr, collect_data_ref, s, &s->now);
	struct btrkit_error what;
	struct btrkit_key first, end;
	uint64_t known = 0;
	int r = 0;

	/* The visitor wants memory, too, and says so to the caller. */
	if (ret == -ENOMEM)
		return err_nomem(s->err);
	if (!ret || !s->found)
		return err_pass(s->err, &s->now, ret);
	what = s->now;
	s->now = (struct btrkit_error)BTRKIT_ERROR_INIT;
	if (!cursor_lost_keys(&s->r->extents, &first, &end)) {
		if (!is_ref_key(s, &first))
			return 0;
		if (s->r->lost)
			r = load_refs_behind(s, end);
	}
	if (r)
		return r;
	for (size_t i = 0; i < s->n; i++)
		known += s->refs[i].count;
	text_add(what.message, sizeof(what.message), "; of %" PRIu64 " references to the extent, %" PRIu64 " are known",
		 s->total, known);
	return tell(s, ret, &what);
}

int references_load(struct references *r, uint64_t bytenr, struct btrkit_error *err)
{
	struct search s = { .r = r, .bytenr = bytenr, .err = err };
	int ret;

	r->n = 0;
	if (r->num_known >= KNOWN_MAX)
		references_forget_trees(r);
	ret = load_refs(&s);
	if (!ret && (!s.found || !s.data))
		ret = err_set(err, BTRKIT_NOT_FOUND, "no data extent begins at %" PRIu64, bytenr);
	for (size_t i = 0; !ret && i < s.n; i++)
		ret = s.refs[i].type == KEY_SHARED_DATA_REF ? search_leaf(&s, &s.refs[i]) : search_file(&s, &s.refs[i]);
	free(s.refs);
	free(s.trees.at);
	if (!ret)
		sort_and_join(r);
	return ret;
}
