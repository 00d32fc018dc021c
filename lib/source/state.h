/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_SOURCE_STATE_H
#define BTRKIT_SOURCE_STATE_H

/* What only lib/source uses of a source. */

#include <pthread.h>
#include <stdarg.h>

#include "lib/base/pool.h"
#include "lib/source/build.h"

/* source_inode.bits */
enum source_bits {
	BIT_NAMED = 1 << 0,	   /* a node of the tree of options is this inode */
	BIT_INLINE = 1 << 1,	   /* text is the contents */
	BIT_OWN_NODATACOW = 1 << 2, /* asked for by its own name; not that of a directory above */
	BIT_OWN_NODATASUM = 1 << 3,
	BIT_IMPLICIT = 1 << 4	   /* a parent that has not come itself yet */
};

/*
 * The paths that options name, as a tree. Which inode a node is becomes known as names are added: an entry of a
 * directory that is a node (BIT_NAMED) may be one of the node's children.
 */
struct source_node {
	const char *name;
	size_t len;
	uint32_t parent, child, sibling; /* SOURCE_NONE: none */
	uint32_t inode;			 /* SOURCE_NONE: not met yet */
	uint32_t subvolume;		 /* SOURCE_NONE: none */
	const struct btrkit_mkfs_inode_flags *flags;
};

/* An attribute that waits until all of its inode are known. */
struct xattr_build {
	struct source_xattr *at;
	uint32_t n, max;
	uint32_t inode; /* SOURCE_NONE: nothing waits */
};

#define XATTRS_KNOWN 256u /* a power of two */

struct source_state {
	const struct btrkit_mkfs_source *opts;
	struct source_limits limits;
	struct pool pool;
	uint32_t max_inodes, max_entries;
	struct source_node *nodes; /* 0 is the top directory */
	uint32_t num_nodes;
	uint32_t last_node; /* that was found, by the inode of a directory */
	bool whole_paths;   /* some pattern has a slash */
	/* The path of a directory, for patterns. */
	char *path;
	size_t path_len, path_max;
	uint32_t path_of; /* inode; SOURCE_NONE: of none */
	struct xattr_build xattrs;
	const struct source_xattrs *known[XATTRS_KNOWN]; /* by hash, so that equal ones are kept once */
	/* Entries by parent and name, in archives and manifests. */
	uint32_t *index;
	size_t index_size; /* a power of two; 0: no index */
	uint64_t index_seed;
	/* Of a directory, or of a manifest's contents. -1: not open */
	int root;
	bool in_between;	   /* a library answers for files in place of the system, as fakeroot's */
	pthread_mutex_t stat_lock; /* its stat calls are not made for threads */
	const struct source_target *targets;
	size_t num_targets;
	bool finished;
};

/* Options (options.c). */
int source_options_read(struct source *s, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* The node that an entry of a directory is. @return SOURCE_NONE: none */
uint32_t source_node_of(struct source *s, uint32_t parent, const char *name, size_t len);
/* @return 1: left out; 0, also of a name that is too long; -ENOMEM */
int source_excludes(struct source *s, uint32_t parent, const char *name, size_t len,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;
bool source_takes_xattr(const struct source *s, const char *name);
/* Whether an inode with that mode may have it. @return 0; -EINVAL; -EOPNOTSUPP */
int source_judge_xattr(const char *name, const void *value, size_t size, uint32_t mode,
		       struct btrkit_error *err) BTRKIT_MUST_CHECK;
int source_nodes_met(const struct source *s, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* What waits goes to its inode, or away. */
void source_xattrs_drop(struct source *s);
int source_xattrs_flush(struct source *s, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* All of a path, without a slash in front, not escaped. @return its length; -ENOMEM */
ssize_t source_full_path(const struct source *s, uint32_t inode, char **buf, size_t *max);

#define PATH_SHOWN 120 /* bytes of a path in a message, whose room is limited */

/* "PATH: ..." of an inode, or of a name in a directory, with an errno. Returns it, negative. */
int source_fail(const struct source *s, uint32_t inode, struct btrkit_error *err, int errnum, const char *fmt,
		...) BTRKIT_PRINTF(5, 6);
int source_fail_name(const struct source *s, uint32_t parent, const char *name, size_t len, struct btrkit_error *err,
		     int errnum, const char *fmt, ...) BTRKIT_PRINTF(7, 8);
/* The same of a path that is escaped already. */
int source_vfail(const char *path, struct btrkit_error *err, int errnum, const char *fmt, va_list args)
	BTRKIT_PRINTF(4, 0);

/* What flags an inode has from its directory, by its type. */
uint8_t source_flags_inherited(const struct source *s, uint32_t parent, uint32_t subvolume, uint32_t mode);
/* With what its own name asks for. */
uint8_t source_flags_own(uint8_t bits, uint32_t mode);
#endif
