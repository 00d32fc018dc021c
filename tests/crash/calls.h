/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_CRASH_CALLS_H
#define BTRKIT_TESTS_CRASH_CALLS_H

/*
 * The whole public interface as a table of calls. Each call draws its arguments at random, both valid and invalid ones.
 */

#include <btrkit/btrkit.h>

#define CALLS_BYTES (256u << 10)
#define CALLS_NAME_MAX 300u

/* State of one caller: one per sequence, or one per thread. */
struct caller {
	uint64_t seed;
	struct btrkit_error err; /* cleared before each call */
	struct btrkit_io *io;	 /* device of the filesystem */
	struct btrkit_fs *fs;
	bool writable;
	struct btrkit_txn *txn; /* open transaction, or NULL */
	bool may_commit;	/* commits in the middle are allowed */
	enum btrkit_commit_state state; /* result of the last commit */
	struct btrkit_file *file;
	struct btrkit_usage *usage;
	struct btrkit_usage_paths *paths;
	unsigned countdown; /* callback calls left until one aborts; 0: none */
	bool ended;	    /* a callback has aborted */
	char name[CALLS_NAME_MAX + 1];
};

enum calls_needs {
	CALLS_TXN = 1 << 0,	    /* needs an open transaction */
	CALLS_NO_TXN = 1 << 1,	    /* must not have one */
	CALLS_FILE = 1 << 2,	    /* needs an open file */
	CALLS_USAGE = 1 << 3,	    /* needs a result of btrkit_usage_load() */
	CALLS_ONE = 1 << 4,	    /* may return 1 */
	CALLS_WITHOUT_ERROR = 1 << 5, /* takes no struct btrkit_error */
	CALLS_SELDOM = 1 << 6	    /* slow */
};

struct call {
	const char *name;
	int (*call)(struct caller *c);
	unsigned needs; /* CALLS_* */
};

extern const struct call calls_reading[], calls_asking[], calls_changing[];
extern const size_t num_calls_reading, num_calls_asking, num_calls_changing;

/* Random number below @below; true with a chance of one in @many. */
unsigned calls_pick(struct caller *c, unsigned below);
bool calls_one_in(struct caller *c, unsigned many);
/* Usually the number of an existing object, otherwise any. */
uint64_t calls_root(struct caller *c);
uint64_t calls_inode(struct caller *c);
uint64_t calls_offset(struct caller *c);
uint64_t calls_address(struct caller *c);
/* Random name in c->name, *@len bytes long and NUL-terminated. */
const char *calls_name(struct caller *c, size_t *len);
const char *calls_path(struct caller *c);
enum btrkit_format calls_format(struct caller *c);
/* Random flags, usually from @known. */
unsigned calls_flags(struct caller *c, unsigned known);

/* Returns values for callbacks: usually 0, occasionally one that aborts. */
int calls_go_on(struct caller *c);
int calls_write(void *ctx, const void *data, size_t len);
int calls_progress(void *ctx, uint64_t done, uint64_t total);
int calls_damage(void *ctx, const struct btrkit_error *what);
int calls_problem(void *ctx, const char *path, size_t len, const struct btrkit_error *what);

#endif
