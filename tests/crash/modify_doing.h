/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_CRASH_MODIFY_DOING_H
#define BTRKIT_TESTS_CRASH_MODIFY_DOING_H

/* Step-by-step changes of files. After a failed step the following ones do nothing. */

#include <btrkit/btrkit.h>

#define TOP 256u

struct doing {
	struct btrkit_fs *fs;
	struct btrkit_txn *txn; /* NULL between transactions */
	struct btrkit_error *err;
	int ret;
	bool may_commit;
};

/* Starts a transaction. */
struct doing doing_start(struct btrkit_fs *fs, struct btrkit_error *err);
/* Commit and start the next transaction. */
void doing_commit(struct doing *d);
/* Commits, and continues the transaction. */
void doing_continue(struct doing *d);
/* Commit, or abort after a failure. @return the result */
int doing_end(struct doing *d);
/* Accepts @error from the last step, -ENOSPC or another error that leaves the filesystem unchanged. */
void doing_allow(struct doing *d, int error);

/* Looks up a path below the top-level subvolume. */
struct btrkit_found at(struct doing *d, const char *path);
/* Parent directory and last component of a path. */
struct spot {
	uint64_t root, dir;
	const char *name;
	size_t len;
};
struct spot spot_of(struct doing *d, const char *path);

/* Makes a regular file, or another type according to @mode. */
struct btrkit_found make(struct doing *d, const char *path, uint32_t mode);
void make_symlink(struct doing *d, const char *path, const char *target);
void link_to(struct doing *d, const char *path, const char *name);
void drop(struct doing *d, const char *path);
void drop_dir(struct doing *d, const char *path);
void move(struct doing *d, const char *from, const char *to, unsigned flags);

/* @seed determines the contents; an odd one makes them compressible. */
void put(struct doing *d, const char *path, uint64_t offset, size_t len, unsigned seed, uint8_t compression);
void put_at(struct doing *d, const struct btrkit_found *f, uint64_t offset, size_t len, unsigned seed,
	    uint8_t compression);
void cut(struct doing *d, const char *path, uint64_t size);
void punch(struct doing *d, const char *path, uint64_t offset, uint64_t len);
void keep(struct doing *d, const char *path, uint64_t offset, uint64_t len, unsigned flags);
void share(struct doing *d, const char *from, uint64_t offset, uint64_t len, const char *to, uint64_t there);

void set_xattr(struct doing *d, const char *path, const char *name, size_t len);
void drop_xattr(struct doing *d, const char *path, const char *name);
void set_flags(struct doing *d, const char *path, uint32_t flags, uint32_t mask);
void set_acl(struct doing *d, const char *path, const char *name, unsigned perm);
void set_attr(struct doing *d, const char *path, const struct btrkit_attr *attr);

void subvolume(struct doing *d, const char *path);
void snapshot(struct doing *d, const char *from, const char *to, bool read_only);
void delete_subvolume(struct doing *d, const char *path);

#endif
