/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_REPORT_DUMP_TREE_H
#define BTRKIT_REPORT_DUMP_TREE_H

/*
 * The parts of btrkit_dump_tree(). The caller's thread says what comes next: it writes headings, goes down trees, and
 * names the leaves; threads read these and render them into memory; what they have made is written in order.
 */

#include <btrkit/dump.h>

#include <errno.h>

#include "lib/base/emit.h"
#include "lib/report/dump_fields.h"
#include "lib/report/dump_tree_pick.h"
#include "lib/tree/filesystem.h"
#include "lib/tree/node.h"

struct pipeline;

/* What renders blocks; each piece of the output has its own. */
struct dump {
	struct btrkit_fs *fs;
	struct emit e;
	struct dump_choice choice;	/* what JSON has of each line; without a filter, all */
	unsigned render;	/* RENDER_* */
	bool csum_headers;
	bool begun;
	const struct dump_pick *pick;	/* which items of leaves are shown; NULL: all */
	uint64_t tree;		/* whose blocks are printed: of the walk, or the owner of a block that was chosen */
	/* The first block that cannot be read, or item that its validator refused; the dump goes on. */
	int damage;
	struct btrkit_error damage_error;
	bool lost;	/* not all is there that should be */
};

static inline bool dump_is_json(const struct dump *d)
{
	return d->e.form == EMIT_JSON;
}

/* What is asked for of lines, and a form; dump_choice_free() its choice. @return 0; -EINVAL; -ENOMEM */
int dump_like(struct btrkit_fs *fs, const struct btrkit_dump_options *o, struct dump *ret,
	      struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* The line that comes first, unless it is there: a dump that fails before it finds anything prints nothing. */
void dump_begin(struct dump *d);

/* The beginning of the line before a tree, in JSON all of it. @key: of its root item, or NULL. */
void dump_heading(struct dump *d, const char *title, const struct btrkit_key *key, const struct tree_root *root);

/* The beginning of a line of JSON: what it is about, and, if @n is not NULL, where that lies. Nothing in text. */
void dump_line(struct dump *d, const char *kind, const struct node *n);

/* The same, made once for all lines of a block. */
struct dump_prefix {
	char text[128];
	size_t len;	/* 0: it is made anew for each line */
};

void dump_prefix_make(struct dump_prefix *p, struct dump *d, const char *kind, const struct node *n);
void dump_prefix_line(const struct dump_prefix *p, struct dump *d, const char *kind, const struct node *n);

/* The superblock's backup roots, and what it says of the filesystem. */
void dump_backups(struct dump *d);
void dump_totals(struct dump *d);

/* A node with its pointers, or a leaf with its items; one of which no item is picked is left out. */
void dump_block(struct dump *d, const struct node *n);

/* Keeps what failed, if it is the first. */
void dump_blame(struct dump *d, int ret, const struct btrkit_error *what);

/* In the place of a block that cannot be read, for @what: where each of its copies lies and what is wrong with it. */
void dump_damaged_block(struct dump *d, const struct node_ref *ref, int ret, const struct btrkit_error *what);
/* An item that its validator refused: a line of JSON behind it. */
void dump_damaged_item(struct dump *d, const struct node *n, uint32_t slot, int ret, const struct btrkit_error *what);
/* In the place of the tree of an item @key, which is refused; @shown: before it, since the item says where it lies. */
void dump_damaged_root(struct dump *d, const struct btrkit_key *key, bool shown, int ret,
		       const struct btrkit_error *what);
/* Chunks cannot be read, without which blocks are not found. */
void dump_damaged_chunks(struct dump *d, int ret, const struct btrkit_error *what);
/* In the place of what may lie on a device where that cannot be read. */
void dump_damaged_device(struct dump *d, int ret, const struct btrkit_error *what);
/* In the place of what the pointer in slot @slot of @n leads to, which cannot lie there. */
void dump_damaged_pointer(struct dump *d, const struct node *n, uint32_t slot, uint64_t tree);

/* Whether a failure is of the filesystem, so that the dump can go on with what else there is. */
static inline bool dump_is_damage(int ret)
{
	return ret && ret != -ENOMEM;
}

/* A part of the output. */
struct dump_piece {
	struct dump d;		/* what is in its buffer already stands before the blocks */
	bool heading;		/* is to stand only before something */
	size_t n;		/* blocks that are to be read */
	struct node_ref *refs;
	struct btrkit_key *keys;	/* what refs[i].first_key points to */
	bool *dropped;		/* refs[i] may be something else by now, and is left out then */
	uint8_t *buf;
};

/* The output as a whole. */
struct dump_run {
	struct btrkit_fs *fs;
	btrkit_write_fn write;
	void *ctx;
	struct dump like;	/* what pieces begin as */
	struct pipeline *pipeline;
	struct dump_piece *pieces;
	void **slots;
	size_t num_pieces, blocks_max;	/* of a piece */
	struct dump_piece *piece;	/* that is being put together, or NULL */
	/* Of what is finished: */
	int damage;
	struct btrkit_error damage_error;
	bool lost;
	char *heading;		/* that waits for what it stands before */
	size_t heading_len;
};

/* @like: what the pieces render as. dump_run_end() follows in any case. @return 0; -ENOMEM; -EAGAIN */
int dump_run_begin(struct dump_run *run, const struct dump *like, btrkit_write_fn write, void *ctx,
		   struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* What the caller renders next goes into *@ret, which holds until the next call. @return 0, or what failed */
int dump_run_text(struct dump_run *run, struct dump **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* The same of what is left out if nothing comes before the next heading. */
int dump_run_heading(struct dump_run *run, struct dump **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* The block comes next. @dropped: it may be something else by now, and is left out then */
int dump_run_block(struct dump_run *run, const struct node_ref *ref, bool dropped,
		   struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* From now on these items of leaves. */
void dump_run_pick(struct dump_run *run, const struct dump_pick *pick);
/* All is written. run->damage is then what was met first. */
int dump_run_drain(struct dump_run *run, struct btrkit_error *err) BTRKIT_MUST_CHECK;
void dump_run_end(struct dump_run *run);

enum dump_order {
	DUMP_ALONE,		/* this block only */
	DUMP_BREADTH_FIRST,	/* everything below too: a level after the other */
	DUMP_DEPTH_FIRST,
	DUMP_LEAVES,		/* only leaves, in key order */
};

/* What of a tree is shown. */
struct dump_what {
	enum dump_order order;
	const struct dump_blocks *blocks;	/* which blocks; NULL: all */
	const struct dump_pick *pick;		/* which items of leaves; NULL: all */
	/* Of a subvolume that is being deleted: what lies before that key, and below that level, was freed. */
	bool dropping;
	struct btrkit_key drop_key;
	uint8_t drop_level;
};

/*
 * The block that @ref names and what lies below it. What cannot be read is told in its place.
 * @return 0, -ENOMEM, or what the sink refused
 */
int dump_tree_walk(struct dump_run *run, const struct node_ref *ref, const struct dump_what *what,
		   struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
