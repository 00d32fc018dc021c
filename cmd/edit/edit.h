/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CMD_EDIT_H
#define CMD_EDIT_H

/* Operations of `btrkit edit`. edit.c takes their words from arguments or a script; a table maps them to functions. */

#include <sys/stat.h>

#include "cmd/cmd.h"

struct edit {
	struct btrkit_fs *fs;
	struct btrkit_txn *txn;
	uint64_t root;	/* subvolume that paths start from */
	struct btrkit_write_options write;
	bool script;	/* operations are read from stdin */
	char *buffer;	/* of EDIT_BUFFER bytes, for file data; NULL until needed */
	bool force_readonly;
	struct edit_forced *forced;	/* subvolumes made writable in the transaction */
	size_t num_forced;
	const char *path;	/* that the operation is working on; NULL: none yet */
	bool no_links;		/* paths follow no symbolic links */
	struct btrkit_found *above; /* memory for resolving a path: see edit_path.c */
	size_t room_above;
	struct edit_known *known; /* directories of the last path, between edit_know() and edit_forget(); or NULL */
};

#define EDIT_BUFFER (4u << 20)

struct edit_forced {
	uint64_t id;
	bool again;	/* make it read-only again */
	bool received;	/* it had the received UUID @uuid */
	uint8_t uuid[16];
};

struct edit_op {
	const char *name;	/* one word, or two separated by a space */
	const char *args;	/* for --help */
	const char *help;
	const char *letters;	/* its options, without arguments */
	int min, max;	/* number of words after the options; -1: no maximum */
	/* @flags: a bit for each of @letters, in their order. @return 0; a negative errno */
	int (*run)(struct edit *e, char **words, size_t n, unsigned flags, struct btrkit_error *err);
	unsigned dashes; /* so many of the first words may begin with -, which makes no option of them */
	bool sign;	/* the first word is a mode or flags: it begins with - and has other letters than @letters */
};

/* Ends with a NULL name. */
extern const struct edit_op edit_ops[];

/* An operation with its words. @n: 1 or more. @return 0; -EINVAL: unknown operation, or wrong usage */
struct edit_call {
	const struct edit_op *op;
	char **words;	/* after the options */
	size_t n;
	unsigned flags;
};

/* In edit_call.c: */
int edit_check(char **words, size_t n, struct edit_call *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In edit_ops.c: */
/* Runs an operation. If it has several paths, the error message names the one that failed. */
int edit_do(struct edit *e, const struct edit_call *c, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Sets an error that does not come from the library. @error: errno. @return -@error */
int edit_fail(struct btrkit_error *err, int error, const char *what);

/* The words of a line; grown as needed. */
struct edit_words {
	char **word;
	size_t n, room;
};

/* In edit_words.c: */
/*
 * Splits a line of @len bytes in place; the words point into it. Words are separated by blanks. Text in '' is literal;
 * elsewhere a backslash starts an escape: \\ \" \'
 *  \t, a backslash before a blank or #, \xHH or \ooo. A # at the start of a word starts a comment. @return 0; -EINVAL;
 * -ENOMEM
 */
int edit_split(char *line, size_t len, struct edit_words *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Parses a number of bytes: decimal, hexadecimal or octal, with an optional suffix. @return 0; -EINVAL */
int edit_number(const char *s, uint64_t *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In edit_force.c: */
/* Gets the information about a subvolume. @return 0; -ENOENT; ... */
int edit_subvolume(struct edit *e, uint64_t id, struct btrkit_subvolume *ret,
		   struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * With --force-readonly, makes a read-only subvolume writable until the end of the transaction; otherwise does nothing.
 */
int edit_unlock(struct edit *e, uint64_t root, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Makes a subvolume read-only or writable. @forget: allow the latter for a received subvolume */
int edit_set_read_only(struct edit *e, uint64_t id, bool read_only, bool forget,
		       struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* To be called before and after a commit, respectively. */
int edit_lock_again(struct edit *e, struct btrkit_error *err) BTRKIT_MUST_CHECK;
void edit_say_forced(struct edit *e, const struct cmd_note *to);

/* What a path ends with: a name, a slash that is the whole path, a dot, or two dots. Only a name can be changed. */
enum edit_last { EDIT_NAME, EDIT_ROOT, EDIT_DOT, EDIT_DOTDOT };

/*
 * The directory of a path, which is to be changed, and its last name. The name is empty if the path does not end with
 * one. Symbolic links within the path are followed as if that subvolume was mounted as the
 * root directory of a system.
 */
struct edit_spot {
	uint64_t root;
	struct btrkit_place at;
	enum edit_last last;
	bool slash;	/* a slash follows the name: it must be a directory */
};

/* In edit_path.c: */
int edit_spot(struct edit *e, const char *path, struct edit_spot *ret,
	      struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Like edit_spot(), for a new inode of a mode, or 0 for a link: only a directory may have a slash after its name. */
int edit_spot_new(struct edit *e, const char *path, uint32_t mode, struct edit_spot *ret,
		  struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In edit_known.c: */
/*
 * Begins to remember the directories of the last path, so that those of the next one need not be looked up again: only
 * for a caller that neither moves nor removes directories meanwhile. Call edit_forget() in the end. @return 0; -ENOMEM
 */
int edit_know(struct edit *e, struct btrkit_error *err) BTRKIT_MUST_CHECK;
void edit_forget(struct edit *e);
/* Gets how much of @path is known, in bytes, and how many of e->above lead there; otherwise changes neither. */
int edit_known_find(struct edit *e, const char *path, size_t *end, size_t *above,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Adds the directory that the first @end bytes of that path lead to. @return 0; -ENOMEM */
int edit_known_add(struct edit *e, size_t end, size_t above, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Drops what is known of directories behind the first @above, which will be overwritten. */
void edit_known_go_up(struct edit *e, size_t above);

/* In edit_path.c: */
/* Looks up a path. A symbolic link that is the last name is what is found, unless a slash follows. */
int edit_find(struct edit *e, const char *path, struct btrkit_found *ret,
	      struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Looks up a path, and follows a symbolic link that is the last name, as open(2) does. */
int edit_find_target(struct edit *e, const char *path, struct btrkit_found *ret,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Looks up an inode that is to be changed, or a symbolic link itself: as edit_find(). */
int edit_inode(struct edit *e, const char *path, struct btrkit_found *ret,
	       struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Looks up an inode that is to be changed, through a symbolic link: as edit_find_target(). */
int edit_target(struct edit *e, const char *path, struct btrkit_found *ret,
		struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Looks up a file as edit_target() does; the empty directory in place of a subvolume is none. @return also -EISDIR */
int edit_target_file(struct edit *e, const char *path, struct btrkit_found *ret,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Removes a path, unless it is a directory. */
int edit_unlink(struct edit *e, const char *path, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Creates the missing directories of a path; @last: including the last name. */
int edit_make_dirs(struct edit *e, const char *path, bool last, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Creates an inode. @root: gets its subvolume; it and @inode may be NULL */
int edit_create(struct edit *e, const char *path, const struct btrkit_new_inode *what, uint64_t *root, uint64_t *inode,
		struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Options of put. */
#define EDIT_PUT_FORCE 1u	/* replace existing files */
#define EDIT_PUT_PRESERVE 2u	/* keep times and extended attributes */
#define EDIT_PUT_BELOW 4u	/* copy directories recursively */

/* A local file as it was found. */
struct edit_local {
	int dir;		/* its directory, where it has that name; may be AT_FDCWD */
	const char *name;
	int fd;			/* of a regular file or a directory; -1: others are not opened */
	const char *path;	/* for messages */
	struct stat st;
};

/* In edit_put.c: */
/* Copies a regular file, or anything else that is read from a descriptor. @made: gets the new inode */
int edit_put_local(struct edit *e, const struct edit_local *from, const char *path, unsigned flags,
		   struct btrkit_found *made, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In edit_put_tree.c: */
int edit_put_tree(struct edit *e, const char *local, const char *path, unsigned flags,
		  struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In edit_preserve.c: */
/* Gives an inode the permissions, times and extended attributes of a local one. */
int edit_preserve(struct edit *e, const struct edit_local *local, uint64_t root, uint64_t inode,
		  struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* @below: a slash and the path relative to the top directory; "": the top itself. @return 0; <0 ends the walk */
struct edit_visitor {
	void *ctx;
	int (*put)(void *ctx, const struct edit_local *local, const char *below, struct btrkit_error *err);
	/* Called for a directory after everything in it. */
	int (*leave)(void *ctx, const struct edit_local *local, const char *below, struct btrkit_error *err);
};

/* In edit_put_walk.c: */
/* Visits a local file or directory recursively, without following symbolic links. @return 0; <0 */
int edit_walk(const char *top, const struct edit_visitor *to, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Reports that a local file was changed meanwhile. @return -ESTALE */
int edit_changed(struct btrkit_error *err, const char *local);

/* Local files with several names, as long as not all of them have been copied. Initially NULL. */
struct edit_link;

/* In edit_links.c: */
/* Finds the copy made under another name. @return NULL: none yet */
const struct btrkit_found *edit_links_find(struct edit_link *links, const struct stat *st);
/* Records a copy, again if a link to the first was not possible. @return 0; -ENOMEM */
int edit_links_add(struct edit_link **links, const struct stat *st, const struct btrkit_found *made,
		   struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Records that another name was created. */
void edit_links_end(struct edit_link **links, const struct stat *st);
void edit_links_free(struct edit_link **links);

/* In edit_mode.c: */
/* Applies a symbolic mode to the permissions of @mode; its type is left alone. @return 0; -EINVAL: invalid mode */
int edit_mode(const char *s, uint32_t mode, uint32_t *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In edit_put.c: */
/* Operations that are more than one call of the library. */
int edit_put(struct edit *e, char **words, size_t n, unsigned flags, struct btrkit_error *err);
int edit_write(struct edit *e, char **words, size_t n, unsigned flags, struct btrkit_error *err);

/* In edit_remove.c: */
int edit_rm(struct edit *e, char **words, size_t n, unsigned flags, struct btrkit_error *err);

/* In edit_attr.c: */
int edit_chattr(struct edit *e, char **words, size_t n, unsigned flags, struct btrkit_error *err);
int edit_chmod(struct edit *e, char **words, size_t n, unsigned flags, struct btrkit_error *err);
int edit_chown(struct edit *e, char **words, size_t n, unsigned flags, struct btrkit_error *err);

/* In edit_ranges.c: */
int edit_clone(struct edit *e, char **words, size_t n, unsigned flags, struct btrkit_error *err);
int edit_prealloc(struct edit *e, char **words, size_t n, unsigned flags, struct btrkit_error *err);
int edit_punch(struct edit *e, char **words, size_t n, unsigned flags, struct btrkit_error *err);

/* In edit_attr.c: */
int edit_rmxattr(struct edit *e, char **words, size_t n, unsigned flags, struct btrkit_error *err);

/* In edit_acl.c: */
int edit_setfacl(struct edit *e, char **words, size_t n, unsigned flags, struct btrkit_error *err);

/* In edit_attr.c: */
int edit_setxattr(struct edit *e, char **words, size_t n, unsigned flags, struct btrkit_error *err);
int edit_touch(struct edit *e, char **words, size_t n, unsigned flags, struct btrkit_error *err);

/* In edit_subvolume.c: */
int edit_property_set(struct edit *e, char **words, size_t n, unsigned flags, struct btrkit_error *err);
int edit_subvolume_create(struct edit *e, char **words, size_t n, unsigned flags, struct btrkit_error *err);
int edit_subvolume_delete(struct edit *e, char **words, size_t n, unsigned flags, struct btrkit_error *err);
int edit_subvolume_set_default(struct edit *e, char **words, size_t n, unsigned flags, struct btrkit_error *err);
int edit_subvolume_snapshot(struct edit *e, char **words, size_t n, unsigned flags, struct btrkit_error *err);
int edit_subvolume_sync(struct edit *e, char **words, size_t n, unsigned flags, struct btrkit_error *err);

#endif
