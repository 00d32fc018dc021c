/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_SOURCE_DIRECTORY_H
#define BTRKIT_SOURCE_DIRECTORY_H

/*
 * The part of scanning that threads do in parallel. It does not access the source, which another thread may be
 * changing, except for the targets.
 */

#include "lib/source/files.h"

#define SCAN_RANGE 512u	       /* names taken at a time */
#define XATTR_LIST_SIZE 65536u /* limit of Linux */
#define XATTR_VALUE_SIZE 65536u

/* A failure. It becomes an error message under the lock, where the source can be accessed. */
struct scan_failure {
	int errnum; /* ESTALE: the file changed */
	const char *what;
	const char *name; /* name in the directory; NULL: the directory itself */
	const char *attribute; /* NULL: it is not about one */
};

/* A directory being read. */
struct scan_dir {
	struct scan_dir *next;
	uint32_t inode;
	int fd;
	struct stat stat;
	char *path;   /* path on the host, ends in a slash; NULL: too long */
	char *names;  /* zero-terminated, one after another */
	uint32_t *at; /* offset of each name */
	uint32_t n, taken;
	unsigned users; /* threads working on its names */
	bool accept_changes; /* of times; set by the caller of scan_open() */
	bool changed;	     /* since it was found, which scan_close() reports */
	bool file_whiteouts; /* of a layer: empty files with an attribute may be whiteouts */
};

struct scan_found {
	const char *name;
	struct source_attr attr;
	dev_t device;
	ino_t inode;
	bool linked;		   /* nlink > 1 */
	bool target;
	size_t text;		   /* offset of a symlink's target in bytes */
	size_t xattrs, xattrs_end; /* range of xattrs: struct scan_xattr, name, zero byte, value */
};

struct scan_xattr {
	uint32_t name_len, value_len;
};

/* State of one thread. */
struct scan_worker {
	const struct source *source; /* only its targets and options are accessed */
	struct scan_found found[SCAN_RANGE];
	uint32_t n;
	char *bytes;
	size_t len, max;
	char path[PATH_MAX + 32];
	char list[XATTR_LIST_SIZE];
	char value[XATTR_VALUE_SIZE];
};

/* In directory_scan.c: */
/* Opens the directory that d->stat describes, and lists it. The caller has set the inode and the path. */
int scan_open(struct scan_dir *d, int root, char *path, struct scan_failure *failure) BTRKIT_MUST_CHECK;
/* Checks that the directory did not change since it was opened. Always closes it. */
int scan_close(struct scan_dir *d, struct scan_failure *failure) BTRKIT_MUST_CHECK;
void scan_free(struct scan_dir *d);
/* Examines @n names from @start on, and stores the results in w->found. */
int scan_range(struct scan_worker *w, const struct scan_dir *d, uint32_t start, uint32_t n,
	       struct scan_failure *failure) BTRKIT_MUST_CHECK;
/* Stores the attributes and xattrs of the directory itself in w->found[0]. */
int scan_top(struct scan_worker *w, const struct scan_dir *d, struct scan_failure *failure) BTRKIT_MUST_CHECK;

/* Results of scan_layered() besides 0: a new name. */
#define SCAN_HIDDEN 1
#define SCAN_MERGED 2

/* In directory_layers.c: */
/*
 * Decides about a name that was found in a layer. @inode: receives the directory that it is merged with
 * @return 0; SCAN_HIDDEN: not to be added; SCAN_MERGED; -EOPNOTSUPP; -ENOMEM
 */
int scan_layered(struct source *s, const struct scan_worker *w, const struct scan_dir *d, const struct scan_found *f,
		 uint32_t *inode, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Returns what overlayfs's attribute "opaque" of a directory says: about files that are whiteouts, about all below. */
bool scan_has_file_whiteouts(const struct scan_worker *w, const struct scan_found *f);
bool scan_is_opaque(const struct scan_worker *w, const struct scan_found *f);

/* In directory_scan.c: */
void scan_attr(const struct stat *st, struct source_attr *ret);

#endif
