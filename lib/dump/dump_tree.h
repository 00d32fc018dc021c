/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_DUMP_DUMP_TREE_H
#define BTRKIT_DUMP_DUMP_TREE_H

/*
 * Parts of btrkit_dump_tree(). The calling thread determines the order: it writes headings, walks trees and submits the
 * leaves. Other threads read the leaves and render them into memory, and the results are written in order.
 */

#include <btrkit/dump.h>

#include <errno.h>

#include "lib/base/emit.h"
#include "lib/dump/dump_fields.h"
#include "lib/dump/dump_tree_pick.h"
#include "lib/tree/filesystem.h"
#include "lib/tree/node.h"

struct pipeline;

/* State to render blocks. Each piece of the output has its own. */
struct dump {
	struct btrkit_fs *fs;
	struct emit e;
	struct dump_choice choice;	/* members to keep of JSON lines; without a filter, all */
	unsigned render;	/* RENDER_* */
	bool csum_headers;
	bool begun;
	const struct dump_pick *pick;	/* which items of leaves to show; NULL: all */
	uint64_t tree;		/* of the printed blocks: that of the walk, or the owner of a single block */
	/* The first unreadable block or invalid item. The dump continues after it. */
	int damage;
	struct btrkit_error damage_error;
	bool lost;	/* parts of the output are missing */
};

static inline bool dump_is_json(const struct dump *d)
{
	return d->e.form == EMIT_JSON;
}

/*
 * Initializes with the options for lines and the format. Call dump_choice_free() for its choice. @return 0; -EINVAL;
 * -ENOMEM
 */
int dump_like(struct btrkit_fs *fs, const struct btrkit_dump_options *o, struct dump *ret,
	      struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In dump_tree_lines.c: */
/* Prints the first line, unless that was done. A dump that fails before it finds anything prints nothing. */
void dump_begin(struct dump *d);

/* Prints the start of the line before a tree, in JSON the whole line. @key: of the tree's root item, or NULL. */
void dump_heading(struct dump *d, const char *title, const struct btrkit_key *key, const struct tree_root *root);

/* Begins a JSON line of the given kind, with the location of @n if it is not NULL. Nothing is printed in text. */
void dump_line(struct dump *d, const char *kind, const struct node *n);

/* The beginning of a JSON line, prepared once for all lines of a block. */
struct dump_prefix {
	char text[128];
	size_t len;	/* 0: not prepared, the beginning is generated for each line */
};

void dump_prefix_make(struct dump_prefix *p, struct dump *d, const char *kind, const struct node *n);
void dump_prefix_line(const struct dump_prefix *p, struct dump *d, const char *kind, const struct node *n);

/* Prints the superblock's backup roots, and its totals for the filesystem. */
void dump_backups(struct dump *d);
void dump_totals(struct dump *d);

/* In dump_tree_block.c: */
/* Prints a node with its pointers, or a leaf with its items. Leaves without selected items are omitted. */
void dump_block(struct dump *d, const struct node *n);

/* In dump_tree_damage.c: */
/* Stores the failure, if it is the first. */
void dump_blame(struct dump *d, int ret, const struct btrkit_error *what);

/* Prints that a block cannot be read because of @what, with the location and the error of each copy. */
void dump_damaged_block(struct dump *d, const struct node_ref *ref, int ret, const struct btrkit_error *what);
/* Reports an invalid item, in JSON on a line after the item. */
void dump_damaged_item(struct dump *d, const struct node *n, uint32_t slot, int ret, const struct btrkit_error *what);
/* Reports an invalid root item @key. @shown: the tree is printed anyway, because the item has a valid location */
void dump_damaged_root(struct dump *d, const struct btrkit_key *key, bool shown, int ret,
		       const struct btrkit_error *what);
/* Report that chunks cannot be read. Blocks in them will not be found. */
void dump_damaged_chunks(struct dump *d, int ret, const struct btrkit_error *what);
/* Report that a part of a device cannot be read. */
void dump_damaged_device(struct dump *d, int ret, const struct btrkit_error *what);
/* Report that the pointer in slot @slot of @n leads to keys that cannot be there. */
void dump_damaged_pointer(struct dump *d, const struct node *n, uint32_t slot, uint64_t tree);

/* Whether an error is damage of the filesystem, so that the dump can continue. */
static inline bool dump_is_damage(int ret)
{
	return ret && ret != -ENOMEM;
}

/* A piece of the output. */
struct dump_piece {
	struct dump d;		/* its buffer may already have text, which precedes the blocks */
	bool heading;		/* is a heading, which is only printed if something follows */
	size_t n;		/* number of blocks to read */
	struct node_ref *refs;
	struct btrkit_key *keys;	/* storage for refs[i].first_key */
	bool *dropped;		/* refs[i] may have been freed and reused, so it is omitted if it is invalid */
	uint8_t *buf;
};

/* The whole output. */
struct dump_run {
	struct btrkit_fs *fs;
	btrkit_write_fn write;
	void *ctx;
	struct dump like;	/* initial state of the pieces */
	struct pipeline *pipeline;
	struct dump_piece *pieces;
	void **slots;
	size_t num_pieces, blocks_max;	/* of a piece */
	struct dump_piece *piece;	/* being filled, or NULL */
	/* Results of finished pieces: */
	int damage;
	struct btrkit_error damage_error;
	bool lost;
	char *heading;		/* pending heading, printed when something follows */
	size_t heading_len;
};

/* In dump_tree_run.c: */
/* Sets up the output. @like: how the pieces render. Call dump_run_end() in any case. @return 0; -ENOMEM; -EAGAIN */
int dump_run_begin(struct dump_run *run, const struct dump *like, btrkit_write_fn write, void *ctx,
		   struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * Gets the dump for text that the caller renders next. *ret is valid until the next call. @return 0, or an error of the
 * output
 */
int dump_run_text(struct dump_run *run, struct dump **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Like dump_run_text(), for a heading, which is dropped if nothing follows before the next heading. */
int dump_run_heading(struct dump_run *run, struct dump **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Adds a block. @dropped: it may have been freed and reused, so it is omitted if it is invalid */
int dump_run_block(struct dump_run *run, const struct node_ref *ref, bool dropped,
		   struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Selects the items of leaves for the following blocks. */
void dump_run_pick(struct dump_run *run, const struct dump_pick *pick);
/* Writes everything. Afterwards, run->damage is the first damage found. */
int dump_run_drain(struct dump_run *run, struct btrkit_error *err) BTRKIT_MUST_CHECK;
void dump_run_end(struct dump_run *run);

enum dump_order {
	DUMP_ONE_BLOCK,		/* only this block */
	DUMP_BREADTH_FIRST,	/* also all blocks below, level by level */
	DUMP_DEPTH_FIRST,
	DUMP_LEAVES,		/* only leaves, in the order of keys */
};

/* Which parts of a tree to show. */
struct dump_what {
	enum dump_order order;
	const struct dump_blocks *blocks;	/* which blocks; NULL: all */
	const struct dump_pick *pick;		/* which items of leaves; NULL: all */
	/* For a subvolume being deleted: blocks before this key, and below this level, were freed. */
	bool dropping;
	struct btrkit_key drop_key;
	uint8_t drop_level;
};

/* In dump_tree_walk.c: */
/*
 * Dumps the block at @ref and everything below it. Unreadable blocks are reported in their place.
 * @return 0, -ENOMEM, or an error of the output
 */
int dump_tree_walk(struct dump_run *run, const struct node_ref *ref, const struct dump_what *what,
		   struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
