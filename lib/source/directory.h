/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_SOURCE_DIRECTORY_H
#define BTRKIT_SOURCE_DIRECTORY_H

/*
 * What threads do with directories beside each other: nothing in here looks at the source, which one of them changes.
 */

#include "lib/source/files.h"

#define SCAN_RANGE 512u	       /* names that are looked at in one go */
#define XATTR_LIST_SIZE 65536u /* what Linux hands out at most */
#define XATTR_VALUE_SIZE 65536u

/* What failed; becomes an error where the source may be looked at. */
struct scan_failure {
	int errnum; /* ESTALE: it changed */
	const char *what;
	const char *name; /* in the directory; NULL: the directory itself */
};

/* A directory that is being read. */
struct scan_dir {
	struct scan_dir *next;
	uint32_t inode;
	int fd;
	struct stat stat;
	char *path;   /* on the host, ends in a slash; NULL: too long */
	char *names;  /* each with a zero byte behind it */
	uint32_t *at; /* where each begins */
	uint32_t n, taken;
	unsigned users; /* threads that look at its names */
};

struct scan_found {
	const char *name;
	struct source_attr attr;
	dev_t device;
	ino_t inode;
	bool linked;		   /* has names elsewhere */
	bool target;
	size_t text;		   /* where the target of a link lies in bytes */
	size_t xattrs, xattrs_end; /* and the attributes: struct scan_xattr, name, zero byte, value */
};

struct scan_xattr {
	uint32_t name_len, value_len;
};

/* What a thread has of its own. */
struct scan_worker {
	const struct source *targets; /* of which only those are asked for */
	struct scan_found found[SCAN_RANGE];
	uint32_t n;
	char *bytes;
	size_t len, max;
	dev_t plain; /* a device whose files have no attributes */
	bool has_plain;
	char path[PATH_MAX + 32];
	char list[XATTR_LIST_SIZE];
	char value[XATTR_VALUE_SIZE];
};

/* Opens a directory, which must be @st, and lists it. Fills in all but the inode and the path. */
int scan_open(struct scan_dir *d, int root, char *path, struct scan_failure *failure) BTRKIT_MUST_CHECK;
/* Whether it is what it was when it was opened. Closes it in any case. */
int scan_close(struct scan_dir *d, struct scan_failure *failure) BTRKIT_MUST_CHECK;
void scan_free(struct scan_dir *d);
/* Looks at names from @start on, which w->found then tells of. */
int scan_range(struct scan_worker *w, const struct scan_dir *d, uint32_t start, uint32_t n,
	       struct scan_failure *failure) BTRKIT_MUST_CHECK;
/* The attributes of the directory itself, as the only thing found. */
int scan_top(struct scan_worker *w, const struct scan_dir *d, struct scan_failure *failure) BTRKIT_MUST_CHECK;

void scan_attr(const struct stat *st, struct source_attr *ret);

#endif
