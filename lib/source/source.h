/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_SOURCE_SOURCE_H
#define BTRKIT_SOURCE_SOURCE_H

/*
 * The contents of a new filesystem: names, inodes and their attributes in memory, read from a directory, an archive or
 * a manifest. Contents of files are not kept: those of a directory or manifest are read on demand, those of an archive
 * are passed on while it is read.
 *
 * Everything that depends on an order uses the order of names as bytes, independent of the order in which the source
 * delivered them, so that equal sources result in equal filesystems.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <btrkit/error.h>
#include <btrkit/mkfs.h>

#define SOURCE_NONE UINT32_MAX

#define SOURCE_NAME_MAX 255u

/* Packed to save memory: an inode has three of them. */
struct source_time {
	int64_t sec;
	uint32_t nsec;
} __attribute__((packed, aligned(4)));

/* Limits that follow from the node size. */
struct source_limits {
	uint32_t symlink; /* maximum length of a target */
	uint32_t xattr;	  /* maximum length of name and value together */
};

/* Sorted by name as bytes, without duplicates. */
struct source_xattr {
	const char *name;
	const void *value;
	uint32_t name_len, value_len;
};
struct source_xattrs {
	uint32_t n;
	struct source_xattr at[];
};

/* Inode flags in the new filesystem. */
enum source_flags {
	SOURCE_NODATACOW = 1 << 0, /* implies SOURCE_NODATASUM for regular files */
	SOURCE_NODATASUM = 1 << 1,
	SOURCE_NOCOMPRESS = 1 << 2, /* set when contents are compressed */
	/* As chattr(1) shows them; from archives. */
	SOURCE_SYNC = 1 << 3,
	SOURCE_IMMUTABLE = 1 << 4,
	SOURCE_APPEND = 1 << 5,
	SOURCE_NODUMP = 1 << 6,
	SOURCE_NOATIME = 1 << 7,
	SOURCE_DIRSYNC = 1 << 8
};
#define SOURCE_CHATTR 0x1f8u

struct source_inode {
	uint64_t size; /* of a regular file; of a symlink: length of its target */
	struct source_time atime, mtime, ctime;
	uint32_t mode, uid, gid;
	uint32_t rdev;	    /* of a device: from rdev_join() */
	uint32_t nlink;	    /* number of names, also above 65535, where link(2) stops; 1 for a directory */
	uint32_t subvolume; /* its subvolume; also for the root directory of one */
	uint32_t number;    /* number in its subvolume; 0: the root directory */
	uint32_t name;	    /* its first entry; SOURCE_NONE: the top directory */
	/*
	 * Entries of a directory, contiguous in source.entries; see layers.c for @count while layers are read. For
	 * regular files: used by the placement of contents.
	 */
	uint32_t first, count;
	uint32_t identity; /* of a regular file: checked by source_file_open() */
	/*
	 * A file with names in several subvolumes has an inode in each of them, and these share the contents.
	 * @next_sharing links these inodes; @contents of all of them names the first, whose contents are read.
	 */
	uint32_t contents, next_sharing;
	const struct source_xattrs *xattrs; /* NULL: none */
	const char *text; /* symlink: target; file of a manifest: contents or path of the contents, or NULL: own path */
	uint16_t flags;
	uint16_t layer; /* that has it, 0 is the lowest; of a directory: the highest */
	uint8_t bits;	/* private to lib/source */
};

struct source_entry {
	const char *name;
	uint32_t parent, inode; /* indices into source.inodes */
	uint32_t hash;		/* hash of directory items (dir_name_hash) */
	uint32_t by_hash;	/* index of the i-th entry of the directory by hash */
	uint32_t index;		/* directory index: 2 for the first entry of a directory, and so on */
	uint8_t len;
};

struct source_subvolume {
	const char *path; /* as given in the options; "": the top level */
	uint32_t root;	  /* inode of its root directory */
	uint32_t parent;  /* subvolume with its name; SOURCE_NONE: this is the top level */
	uint32_t entry;	  /* entry with its name */
	uint32_t num_inodes;
	bool readonly, is_default;
};

/* Anybody may read it after source_finish(). */
struct source {
	/*
	 * Number 0 is the top directory. After source_finish() they are in the order of @in_order, except for archives.
	 */
	struct source_inode *inodes;
	uint32_t num_inodes;
	struct source_entry *entries;
	uint32_t num_entries;
	struct source_subvolume *subvolumes; /* number 0 is the top level */
	uint32_t num_subvolumes;
	/* All inodes: those of subvolume 0 by their numbers, then those of subvolume 1, and so on. */
	uint32_t *in_order;
	uint64_t cut_links; /* additional inodes due to hard links across subvolumes */
	struct source_state *state; /* private to lib/source */
};

/*
 * Receives the contents of regular files of an archive, one file after another. Empty files are left out. Ranges that
 * are not written are zeros. Size, flags and subvolume of the inode are final when begin() is called.
 */
struct source_sink {
	int (*begin)(void *ctx, uint32_t inode, struct btrkit_error *err);
	int (*write)(void *ctx, uint64_t offset, const void *buf, size_t len, struct btrkit_error *err);
	int (*end)(void *ctx, struct btrkit_error *err);
	void *ctx;
};

/* In build.c: */
/*
 * Creates an empty source. @opts must stay valid.
 * @return 0; -EINVAL: an invalid option; -ENOMEM
 */
int source_create(const struct btrkit_mkfs_source *opts, const struct source_limits *limits, struct source **ret,
		  struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * Files and devices (@inode 0) that will be written and must therefore not be read: a reader that finds one fails.
 * @targets must stay valid.
 */
struct source_target {
	dev_t device;
	ino_t inode;
};

/* In open.c: */
void source_set_targets(struct source *s, const struct source_target *targets, size_t n);
/* Checks what can be checked about the source before it is read. @return 0; -EINVAL: it is a target; <0 */
int source_check(const struct source *s, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In build.c: */
/* NULL is allowed. */
struct source *source_destroy(struct source *s);

/* In open.c: */
/*
 * Reads the source and calls source_finish(). The contents of an archive are passed to @sink. It may be NULL for other
 * kinds of sources.
 * @return 0; -EINVAL: something that a filesystem cannot contain (the message has the name); -EUCLEAN: a broken archive
 * or manifest; <0
 */
int source_read(struct source *s, const struct source_sink *sink, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In options.c: */
/* Returns whether contents are passed to the sink; otherwise use source_file_open(). */
bool source_streams(const struct source *s);

/* In open.c: */
/*
 * Opens the contents of a regular file. May be called by any thread.
 * @return a descriptor; -ESTALE: the file changed since the source was read (the message has the name); <0
 */
int source_file_open(const struct source *s, uint32_t inode, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Cache of a thread for the directory of its last file, because the next file is often in the same one. */
struct source_near {
	uint32_t dir, layer;
	int fd;
};
#define SOURCE_NEAR_INIT { SOURCE_NONE, 0, -1 }
void source_near_end(struct source_near *near);
/* Like source_file_open() for many files, but does not check whether the file changed: call source_file_unchanged(). */
int source_file_open_near(const struct source *s, struct source_near *near, uint32_t inode,
			  struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Checks after reading contents that the file did not change. @return 0; -ESTALE (the message has the name); <0 */
int source_file_unchanged(const struct source *s, uint32_t inode, int fd, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In changes.c: */
/* Returns whether files that change while they are read are taken as they were found first. */
bool source_accepts_changes(const struct source *s);
#define SOURCE_CHANGES_SHOWN 20u
/* Returns the number of files and directories that changed; source_change(): the path of one of the first. */
uint64_t source_num_changes(const struct source *s);
const char *source_change(const struct source *s, unsigned i);

/* In path.c: */
/*
 * Stores the path of an inode by its first name for messages: without a leading slash, escaped for a terminal,
 * shortened at the front if @size is too small, always zero-terminated. Also works before source_finish().
 */
void source_path(const struct source *s, uint32_t inode, char *buf, size_t size);

/* Like source_path() for a name in a directory, which need not exist. */
void source_path_of_name(const struct source *s, uint32_t parent, const char *name, size_t len, char *buf,
			 size_t size);
/* Escapes bytes like source_path(), keeping the end if @size is too small. */
void source_escape(const char *bytes, size_t len, char *buf, size_t size);

/* Returns the next name of a path and advances *path. Skips slashes and single dots. *len is 0 at the end. */
const char *source_next_name(const char **path, size_t *len);

/* In finish.c: */
/* Finds an entry of a directory by name after source_finish(). @return its index or SOURCE_NONE */
uint32_t source_lookup(const struct source *s, uint32_t dir, const char *name, size_t len);

/* In path.c: */
/* Returns the name of the source, or of the layer that is being read, for messages. */
const char *source_name(const struct source *s);

#endif
