/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_SOURCE_STATE_H
#define BTRKIT_SOURCE_STATE_H

/* State of a source that is private to lib/source. */

#include <pthread.h>
#include <stdarg.h>

#include "lib/base/pool.h"
#include "lib/source/build.h"

/* source_inode.bits */
enum source_bits {
	BIT_NAMED = 1 << 0,	   /* a source_node refers to this inode */
	BIT_INLINE = 1 << 1,	   /* text is the contents */
	BIT_OWN_NODATACOW = 1 << 2, /* requested for the inode itself, not inherited */
	BIT_OWN_NODATASUM = 1 << 3,
	BIT_IMPLICIT = 1 << 4,	   /* directory without a member of its own so far */
	BIT_OPAQUE = 1 << 5	   /* opaque by a mark alone: layers below may still give its attributes */
};

/*
 * Tree of the paths in options. The inode of a node becomes known as names are added: an entry of a directory that is a
 * node (BIT_NAMED) may be a child of that node.
 */
struct source_node {
	const char *name;
	size_t len;
	uint32_t parent, child, sibling; /* SOURCE_NONE: none */
	uint32_t inode;			 /* SOURCE_NONE: not found yet */
	uint32_t subvolume;		 /* SOURCE_NONE: none */
	const struct btrkit_mkfs_inode_flags *flags;
};

/* The xattrs of one inode, collected until they are complete. */
struct xattr_build {
	struct source_xattr *at;
	uint32_t n, max;
	uint32_t inode; /* SOURCE_NONE: nothing collected */
};

#define XATTRS_KNOWN 256u /* a power of two */

struct source_state {
	const struct btrkit_mkfs_source *opts;
	struct source_limits limits;
	struct pool pool;
	uint32_t max_inodes, max_entries;
	struct source_node *nodes; /* number 0 is the top directory */
	uint32_t num_nodes;
	uint32_t last_node; /* cache: last node found by source_node_of() */
	bool whole_paths;   /* an exclude pattern contains a slash */
	/* Path of a directory, to match patterns. */
	char *path;
	size_t path_len, path_max;
	uint32_t path_of; /* inode of that directory; SOURCE_NONE: none */
	struct xattr_build xattrs;
	const struct source_xattrs *known[XATTRS_KNOWN]; /* by hash, to store equal sets once */
	/* Index of entries by parent and name, for archives and manifests. */
	uint32_t *index;
	size_t index_size; /* a power of two; 0: no index */
	uint64_t index_seed;
	/* Descriptors of the directories of all layers, or of the base directory of a manifest; -1: not open */
	int *roots;
	uint32_t layer;			    /* the one that is being read */
	struct source_whiteout *whiteouts; /* of layers; layers.c */
	bool in_between;	   /* LD_PRELOAD is set: fakeroot or similar */
	pthread_mutex_t stat_lock; /* serializes stat calls in that case */
	struct source_changes *changes; /* NULL: files must not change; changes.c */
	const struct source_target *targets;
	size_t num_targets;
	bool finished;
};

/* Checks and reads the options (options.c). */
int source_options_read(struct source *s, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In options.c: */
/* Returns the node of an entry of a directory. @return SOURCE_NONE: none */
uint32_t source_node_of(struct source *s, uint32_t parent, const char *name, size_t len);
/* Returns whether a name is excluded. @return 1: excluded; 0: not excluded, or too long; -ENOMEM */
int source_excludes(struct source *s, uint32_t parent, const char *name, size_t len,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;
bool source_takes_xattr(const struct source *s, const char *name);

/* In xattr_check.c: */
/* Checks that an inode with that mode may have the attribute. @return 0; -EINVAL; -EOPNOTSUPP */
int source_check_xattr(const char *name, const void *value, size_t size, uint32_t mode,
		       struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In options.c: */
int source_nodes_met(const struct source *s, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In xattr.c: */
/* Discards collected xattrs, or stores them in their inode. */
void source_xattrs_drop(struct source *s);
/* Returns whether two inodes have equal xattrs. NULL: none */
bool source_xattrs_equal(const struct source_xattrs *a, const struct source_xattrs *b);
int source_xattrs_flush(struct source *s, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In path.c: */
/* Stores a complete path without leading slash and escaping. @return its length; -ENOMEM */
ssize_t source_full_path(const struct source *s, uint32_t inode, char **buf, size_t *max);

#define PATH_SHOWN 120 /* maximum length of a path in a message */

/* Reports "PATH: ..." for an inode or for a name in a directory. @return -errnum */
int source_fail(const struct source *s, uint32_t inode, struct btrkit_error *err, int errnum, const char *fmt,
		...) BTRKIT_PRINTF(5, 6);
int source_fail_name(const struct source *s, uint32_t parent, const char *name, size_t len, struct btrkit_error *err,
		     int errnum, const char *fmt, ...) BTRKIT_PRINTF(7, 8);
/* Like source_fail(), for a path that is already escaped. */
int source_vfail(const char *path, struct btrkit_error *err, int errnum, const char *fmt, va_list args)
	BTRKIT_PRINTF(4, 0);

/* In options.c: */
/* Returns the flags that an inode of a type inherits from its directory. */
uint8_t source_flags_inherited(const struct source *s, uint32_t parent, uint32_t subvolume, uint32_t mode);
/* Returns the flags that options request for the inode itself. */
uint8_t source_flags_own(uint8_t bits, uint32_t mode);

#endif
