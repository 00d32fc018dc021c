/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_CRASH_CALLS_H
#define BTRKIT_TESTS_CRASH_CALLS_H

/* The whole public interface as a table of calls, each with arguments by chance, good ones and bad ones. */

#include <btrkit/btrkit.h>

#define CALLS_BYTES (256u << 10)
#define CALLS_NAME_MAX 300u

/* Somebody who calls: a sequence has one, or one for each thread. */
struct caller {
	uint64_t seed;
	struct btrkit_error err; /* empty before each call */
	struct btrkit_io *io;	 /* of the filesystem */
	struct btrkit_fs *fs;
	bool writable;
	struct btrkit_txn *txn; /* that is open, or NULL */
	bool may_commit;	/* in between */
	enum btrkit_commit_state state; /* of the last commit */
	struct btrkit_file *file;
	struct btrkit_usage *usage;
	struct btrkit_usage_paths *paths;
	unsigned countdown; /* calls of callbacks after which one ends the work */
	bool ended;	    /* one has done so */
	char name[CALLS_NAME_MAX + 1];
};

enum calls_needs {
	CALLS_TXN = 1 << 0,	    /* an open transaction */
	CALLS_NO_TXN = 1 << 1,	    /* none */
	CALLS_FILE = 1 << 2,	    /* an open file */
	CALLS_USAGE = 1 << 3,	    /* an answer of btrkit_usage_load() */
	CALLS_ONE = 1 << 4,	    /* what it returns may be 1 */
	CALLS_WITHOUT_ERROR = 1 << 5, /* it takes no struct btrkit_error */
	CALLS_SELDOM = 1 << 6	    /* it takes long */
};

struct call {
	const char *name;
	int (*call)(struct caller *c);
	unsigned needs; /* CALLS_* */
};

extern const struct call calls_reading[], calls_asking[], calls_changing[];
extern const size_t num_calls_reading, num_calls_asking, num_calls_changing;

/* By chance: a number below @below; whether one of so many. */
unsigned calls_pick(struct caller *c, unsigned below);
bool calls_one_in(struct caller *c, unsigned many);
/* Mostly what is there, else anything. */
uint64_t calls_root(struct caller *c);
uint64_t calls_inode(struct caller *c);
uint64_t calls_offset(struct caller *c);
uint64_t calls_address(struct caller *c);
/* In c->name, of *@len bytes; also terminated. */
const char *calls_name(struct caller *c, size_t *len);
const char *calls_path(struct caller *c);
enum btrkit_format calls_format(struct caller *c);
/* Flags of which @known are known. */
unsigned calls_flags(struct caller *c, unsigned known);

/* What callbacks return: 0, or once in a while an end. */
int calls_go_on(struct caller *c);
int calls_write(void *ctx, const void *data, size_t len);
int calls_progress(void *ctx, uint64_t done, uint64_t total);
int calls_damage(void *ctx, const struct btrkit_error *what);
int calls_problem(void *ctx, const char *path, size_t len, const struct btrkit_error *what);

#endif
