/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CMD_EDIT_H
#define CMD_EDIT_H

/* Operations of `btrkit edit`, as words: edit.c takes them from arguments or a script, a table has who does them. */

#include <sys/stat.h>

#include "cmd.h"

struct edit {
	struct btrkit_fs *fs;
	struct btrkit_txn *txn;
	uint64_t root;	/* subvolume that paths start from */
	struct btrkit_write_options write;
	bool script;	/* that is read from the standard input */
	char *buffer;	/* of EDIT_BUFFER bytes, for file data; NULL as long as there was none */
	bool force_readonly;
	struct edit_forced *forced;	/* subvolumes that became writable in the transaction */
	size_t num_forced;
	const char *path;	/* that an operation has come to; NULL: to none yet */
};

#define EDIT_BUFFER (4u << 20)
#define EDIT_TOP_DIR 256	/* inode of a subvolume's root directory */

struct edit_forced {
	uint64_t id;
	bool again;	/* it is to be read-only again */
	bool received;	/* it was, as @uuid */
	uint8_t uuid[16];
};

struct edit_op {
	const char *name;	/* one word, or two with a blank between them */
	const char *args;	/* as in --help */
	const char *help;
	const char *letters;	/* of its options, which have no arguments; NULL: only -- is not taken for a word */
	int min, max;	/* words behind the options; -1: any number */
	/* @flags: a bit for each of @letters, in their order. @return 0, or a negative errno with what failed */
	int (*run)(struct edit *e, char **words, size_t n, unsigned flags, struct btrkit_error *err);
};

/* Ends with a NULL name. */
extern const struct edit_op edit_ops[];

/* Which operation some words ask for, and with what. @n: 1 or more. @return 0; -EINVAL: none, or not so */
struct edit_call {
	const struct edit_op *op;
	char **words;	/* behind the options */
	size_t n;
	unsigned flags;
};
int edit_judge(char **words, size_t n, struct edit_call *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Of several paths, what fails tells which one it is. */
int edit_do(struct edit *e, const struct edit_call *c, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* A failure that is not the library's. @error: errno. @return -@error */
int edit_fail(struct btrkit_error *err, int error, const char *what);

/* The words of a line; grown as needed. */
struct edit_words {
	char **word;
	size_t n, room;
};

/*
 * Splits a line of @len bytes, which is overwritten by what the words point to: separated by blanks; what stands in ''
 * is literal; a backslash elsewhere begins an escape: \\ \" \' \n \t, a blank or # after a backslash, \xHH or \ooo.
 * What begins with # where a word could begin is left out. @return 0; -EINVAL; -ENOMEM
 */
int edit_split(char *line, size_t len, struct edit_words *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* A number of bytes: decimal, hexadecimal or octal, with a suffix or none. @return 0; -EINVAL */
int edit_number(const char *s, uint64_t *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* What is said of a subvolume. @return 0; -ENOENT; ... */
int edit_subvolume(struct edit *e, uint64_t id, struct btrkit_subvolume *ret,
		   struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* --force-readonly: a read-only subvolume is writable up to the end of the transaction; without it nothing is done. */
int edit_unlock(struct edit *e, uint64_t root, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Whether it is read-only from now on. @forget: also one that was received may be writable */
int edit_set_read_only(struct edit *e, uint64_t id, bool read_only, bool forget,
		       struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Before a commit, and after it. */
int edit_lock_again(struct edit *e, struct btrkit_error *err) BTRKIT_MUST_CHECK;
void edit_say_forced(struct edit *e, const struct cmd_note *to);

/*
 * A path's directory, in which something is to be changed, and its last name: none for the root directory of the
 * subvolume that is begun from.
 */
struct edit_spot {
	uint64_t root;
	struct btrkit_place at;
	bool slash;	/* follows the name: it is of a directory */
};
int edit_spot(struct edit *e, const char *path, struct edit_spot *ret,
	      struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* The same of something new, with a mode, or 0 for a link: only behind a directory there may be a slash. */
int edit_spot_new(struct edit *e, const char *path, uint32_t mode, struct edit_spot *ret,
		  struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* What a path leads to; links are not followed. */
int edit_find(struct edit *e, const char *path, struct btrkit_found *ret,
	      struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* The same of what is to be changed. */
int edit_target(struct edit *e, const char *path, struct btrkit_found *ret,
		struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* The same, and the place of a subvolume that a snapshot has not taken along is a directory. @return also -EISDIR */
int edit_target_file(struct edit *e, const char *path, struct btrkit_found *ret,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* What has a path goes, if it is no directory. */
int edit_unlink(struct edit *e, const char *path, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Makes what is not there yet of a path's directories, and with @last of the path. */
int edit_make_dirs(struct edit *e, const char *path, bool last, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* A new inode at a path. @root: gets its subvolume; it and @inode may be NULL */
int edit_create(struct edit *e, const char *path, const struct btrkit_new_inode *what, uint64_t *root, uint64_t *inode,
		struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Options of put. */
#define EDIT_PUT_FORCE 1u	/* in the place of another one */
#define EDIT_PUT_PRESERVE 2u	/* with times and extended attributes */
#define EDIT_PUT_BELOW 4u	/* directories with what is in them */

/* A local file as it was found. */
struct edit_local {
	int dir;		/* that it is in, under that name; may be AT_FDCWD */
	const char *name;
	int fd;			/* of a regular file or a directory; -1: it is neither, and not opened */
	const char *path;	/* for messages */
	struct stat st;
};

/* A regular file, or what else has a descriptor. @made: gets the new inode */
int edit_put_local(struct edit *e, const struct edit_local *from, const char *path, unsigned flags,
		   struct btrkit_found *made, struct btrkit_error *err) BTRKIT_MUST_CHECK;
int edit_put_tree(struct edit *e, const char *local, const char *path, unsigned flags,
		  struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* An inode gets permissions, times and extended attributes of a local one. */
int edit_preserve(struct edit *e, const struct edit_local *local, uint64_t root, uint64_t inode,
		  struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* @below: a slash and the path below the top directory; "": that itself. @return 0; <0 ends the walk */
struct edit_visitor {
	void *ctx;
	int (*put)(void *ctx, const struct edit_local *local, const char *below, struct btrkit_error *err);
	/* A directory, after all that is in it. */
	int (*leave)(void *ctx, const struct edit_local *local, const char *below, struct btrkit_error *err);
};

/* A local file or directory with all that is below it; links are not followed. @return 0; <0 */
int edit_walk(const char *top, const struct edit_visitor *to, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* -ESTALE: a local file is not what it was. */
int edit_changed(struct btrkit_error *err, const char *local);

/* Local files that have several names, while the first of them was put, and not all. Begins with NULL. */
struct edit_link;
/* What became of the file under another name. @return NULL: nothing yet */
const struct btrkit_found *edit_links_find(struct edit_link *links, const struct stat *st);
/* It was put, or put again where no link is possible. @return 0; -ENOMEM */
int edit_links_add(struct edit_link **links, const struct stat *st, const struct btrkit_found *made,
		   struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* One of the further names was put. */
void edit_links_end(struct edit_link **links, const struct stat *st);
void edit_links_free(struct edit_link **links);

/* What a symbolic mode makes of a mode, whose type stays out of it. @return 0; -EINVAL: it is none */
int edit_mode(const char *s, uint32_t mode, uint32_t *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Operations that are more than a call of the library. */
int edit_put(struct edit *e, char **words, size_t n, unsigned flags, struct btrkit_error *err);
int edit_write(struct edit *e, char **words, size_t n, unsigned flags, struct btrkit_error *err);
int edit_rm(struct edit *e, char **words, size_t n, unsigned flags, struct btrkit_error *err);
int edit_chattr(struct edit *e, char **words, size_t n, unsigned flags, struct btrkit_error *err);
int edit_chmod(struct edit *e, char **words, size_t n, unsigned flags, struct btrkit_error *err);
int edit_chown(struct edit *e, char **words, size_t n, unsigned flags, struct btrkit_error *err);
int edit_clone(struct edit *e, char **words, size_t n, unsigned flags, struct btrkit_error *err);
int edit_prealloc(struct edit *e, char **words, size_t n, unsigned flags, struct btrkit_error *err);
int edit_punch(struct edit *e, char **words, size_t n, unsigned flags, struct btrkit_error *err);
int edit_rmxattr(struct edit *e, char **words, size_t n, unsigned flags, struct btrkit_error *err);
int edit_setfacl(struct edit *e, char **words, size_t n, unsigned flags, struct btrkit_error *err);
int edit_setxattr(struct edit *e, char **words, size_t n, unsigned flags, struct btrkit_error *err);
int edit_touch(struct edit *e, char **words, size_t n, unsigned flags, struct btrkit_error *err);
int edit_property_set(struct edit *e, char **words, size_t n, unsigned flags, struct btrkit_error *err);
int edit_subvolume_create(struct edit *e, char **words, size_t n, unsigned flags, struct btrkit_error *err);
int edit_subvolume_delete(struct edit *e, char **words, size_t n, unsigned flags, struct btrkit_error *err);
int edit_subvolume_set_default(struct edit *e, char **words, size_t n, unsigned flags, struct btrkit_error *err);
int edit_subvolume_snapshot(struct edit *e, char **words, size_t n, unsigned flags, struct btrkit_error *err);
int edit_subvolume_sync(struct edit *e, char **words, size_t n, unsigned flags, struct btrkit_error *err);

#endif
