/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_DUMP_DUMP_TREE_RUN_H
#define BTRKIT_DUMP_DUMP_TREE_RUN_H

/*
 * The order of a dump. The calling thread determines it: it writes headings, walks trees and submits the leaves. Other
 * threads read the leaves and render them into memory, and the results are written in order.
 */

#include "lib/dump/dump.h"
#include "lib/tree/node.h"

struct pipeline;

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

#endif
