// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Finds cycles of directories, which no check of a single directory can detect. Every cycle has at least one directory
 * whose parent has a higher number. There are few of these, because only moving a directory makes them. The leaves that
 * have them are marked. From each, the parents are followed up to the top or to a directory that was visited before.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "lib/check/files/circles.h"
#include "lib/check/files/leaves.h"
#include "lib/check/files/span.h"
#include "lib/check/findings.h"
#include "lib/check/hash.h"
#include "lib/check/state.h"
#include "lib/check/trees/items.h"
#include "lib/check/trees/read.h"
#include "lib/check/trees/table.h"
#include "lib/check/trees/walk.h"
#include "lib/io/buffer.h"

#define MARKS_FIRST 1024u
/* Trees known to have no cycles. Most snapshots have the same directories as another one. */
#define KNOWN_MAX 1024u

/* A visited directory (0: unused slot), and the walk that visited it. */
struct mark {
	uint64_t dir, way;
};

struct circles {
	const struct leaves *l;
	struct check *c;
	const struct check_root *root;
	struct cursor cur;
	uint8_t *buf;	 /* a block */
	struct array at; /* const struct check_block *: blocks to read, level by level */
	struct mark *marks;
	size_t num_marks, room; /* a power of two */
	uint64_t ways, reported;
};

static struct mark *find_mark(const struct circles *s, uint64_t dir)
{
	size_t i = (size_t)check_hash(s->c, HASH_PARENT, &dir, 1, NULL, 0) & (s->room - 1);

	while (s->marks[i].dir && s->marks[i].dir != dir)
		i = (i + 1) & (s->room - 1);
	return &s->marks[i];
}

/* Keeps the hash table at most half full. @return whether there is room for another mark */
static bool make_room(struct circles *s)
{
	struct mark *old = s->marks;
	const size_t room = s->room;
	struct btrkit_error err = BTRKIT_ERROR_INIT;

	if (2 * (s->num_marks + 1) <= room)
		return true;
	s->marks = calloc(room ? 2 * room : MARKS_FIRST, sizeof(*s->marks));
	if (!s->marks) {
		s->marks = old;
		check_fail(s->c, err_nomem(&err), &err);
		return false;
	}
	s->room = room ? 2 * room : MARKS_FIRST;
	for (size_t i = 0; i < room; i++)
		if (old[i].dir)
			*find_mark(s, old[i].dir) = old[i];
	free(old);
	return true;
}

/* @return the parent of an inode, by its first name; 0: none, or lost, which is reported elsewhere */
static uint64_t parent_of(struct circles *s, uint64_t dir)
{
	struct inode_ref_iter it;
	struct inode_ref ref;

	if (dir == OID_FIRST_FREE || check_seek(s->c, &s->cur, &KEY(dir, KEY_INODE_REF, 0)) ||
	    s->cur.item.key.objectid != dir ||
	    (s->cur.item.key.type != KEY_INODE_REF && s->cur.item.key.type != KEY_INODE_EXTREF))
		return 0;
	it = inode_ref_first(&s->cur.item);
	return inode_ref_next(&it, &ref, NULL) ? 0 : ref.parent;
}

static void report_circle(struct circles *s, uint64_t dir)
{
	uint64_t lowest = dir, n = 1;
	struct check_location at = { .tree = s->root->root.id, .field = "key.offset" };

	for (uint64_t i = parent_of(s, dir); i && i != dir; i = parent_of(s, i), n++)
		if (i < lowest)
			lowest = i;
	at.key = &KEY(lowest, KEY_INODE_REF, parent_of(s, lowest));
	s->reported++;
	check_report_at(s->c, CHECK_DIR_CIRCLE, &at,
			"%" PRIu64 " directories contain each other, and no path leads to them", n);
}

/* Follows the parents of a directory, up to the top or to a directory that was visited before. */
static void go_up(struct circles *s, uint64_t dir)
{
	s->ways++;
	for (; dir && make_room(s); dir = parent_of(s, dir)) {
		struct mark *m = find_mark(s, dir);

		if (m->dir && m->way == s->ways)
			report_circle(s, dir);
		if (m->dir)
			return;
		*m = (struct mark){ dir, s->ways };
		s->num_marks++;
	}
}

static void read_leaf(struct circles *s, const struct node *leaf)
{
	uint64_t file = 0; /* an inode known not to be a directory */

	for (uint32_t i = 0; i < leaf->nritems && !check_failed(s->c); i++) {
		const struct item item = leaf_item(leaf, i);
		struct inode_ref_iter it;
		struct inode_ref ref;

		if (item.key.type == KEY_INODE_ITEM && item.size >= sizeof(struct disk_inode_item) &&
		    !S_ISDIR(le32_get(((const struct disk_inode_item *)item.data)->mode)))
			file = item.key.objectid;
		if ((item.key.type != KEY_INODE_REF && item.key.type != KEY_INODE_EXTREF) || item.key.objectid == file)
			continue;
		it = inode_ref_first(&item);
		while (!inode_ref_next(&it, &ref, NULL))
			if (span_is_rising(&ref, item.key.objectid))
				go_up(s, item.key.objectid);
	}
}

/* Whether a directory in or below a block has a parent with a higher number. */
static bool is_marked(const struct circles *s, const struct check_block *b)
{
	return b && (check_block_level(b) ? b->below && leaves_below(s->l, b)->span.flags & SPAN_RISING :
					    (atomic_load(&b->state) & CHECK_RISING) != 0);
}

/* Reads a block of the list, and appends its children to the list. */
static void read_block(struct circles *s, const struct check_block *b)
{
	const struct node_ref ref = check_block_ref(s->c, b);
	const struct check_block **to;
	struct btrkit_key key;
	struct node n;

	if (!check_reread(s->c, &ref, s->buf))
		return;
	n = check_node(s->c, s->buf);
	if (!n.level) {
		read_leaf(s, &n);
		return;
	}
	for (uint32_t i = 0; i < n.nritems; i++) {
		const uint64_t bytenr = node_child(&n, i, 0, &key).bytenr;
		const struct check_block *child = check_find_block(&s->c->tables, bytenr, NULL);

		if (!is_marked(s, child) || check_block_level(child) + 1u != n.level)
			continue;
		to = check_list_add(s->c, &s->at, sizeof(*to));
		if (!to)
			return;
		*to = child;
	}
}

/* Blocks in the table are sorted by address, so comparing pointers is enough. */
static int compare_blocks(const void *x, const void *y)
{
	const struct check_block *const *a = x, *const *b = y;

	return *a < *b ? -1 : *a > *b;
}

/*
 * Reads the blocks of a level, from one of the list to the last one. Damaged nodes may lead to a block in many ways, so
 * that going all of them would never end. @return where the next level begins in the list
 */
static size_t read_level(struct circles *s, size_t from)
{
	const struct check_block **at = s->at.at;
	size_t end = from;

	qsort(&at[from], s->at.n - from, sizeof(*at), compare_blocks);
	for (size_t i = from; i < s->at.n; i++)
		if (i == from || at[i] != at[end - 1])
			at[end++] = at[i];
	s->at.n = end;
	/* The list moves when it grows. */
	for (size_t i = from; i < end && !check_failed(s->c); i++)
		read_block(s, ((const struct check_block **)s->at.at)[i]);
	return end;
}

static bool is_known(const struct check *c, uint64_t dirs)
{
	const uint64_t *known = c->circles.at;

	for (size_t i = 0; i < c->circles.n; i++)
		if (known[i] == dirs)
			return true;
	return false;
}

void check_circles(const struct leaves *l, const struct check_root *root, const struct check_block *top, uint64_t dirs)
{
	struct circles s = { .l = l, .c = l->c, .root = root, .buf = io_buffer(l->c->items.nodesize) };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	uint64_t *known;

	if (!s.buf) {
		check_fail(s.c, err_nomem(&err), &err);
		return;
	}
	if (is_marked(&s, top) && !is_known(s.c, dirs)) {
		cursor_init(&s.cur, s.c->fs, &root->root);
		read_block(&s, top);
		for (size_t i = 0; i < s.at.n && !check_failed(s.c);)
			i = read_level(&s, i);
		cursor_release(&s.cur);
		known = s.reported || s.c->circles.n >= KNOWN_MAX ? NULL :
								    check_list_add(s.c, &s.c->circles, sizeof(*known));
		if (known)
			*known = dirs;
	}
	free(s.marks);
	free(s.at.at);
	free(s.buf);
}
