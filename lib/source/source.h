/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_SOURCE_SOURCE_H
#define BTRKIT_SOURCE_SOURCE_H

/*
 * What goes into a new filesystem: names, inodes and their attributes, in memory, read from a directory, an archive or
 * a manifest. Contents of files are not kept: of a directory or manifest they are read when they are asked for, an
 * archive hands them on as it is read.
 *
 * All in here that depends on an order is in the order of names as bytes, whatever the source delivered first, so that
 * equal sources make equal filesystems.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <btrkit/error.h>
#include <btrkit/mkfs.h>

#define SOURCE_NONE UINT32_MAX

#define SOURCE_LINKS_MAX 65535u /* names of an inode */
#define SOURCE_NAME_MAX 255u

/* Packed, as there are three in an inode. */
struct source_time {
	int64_t sec;
	uint32_t nsec;
} __attribute__((packed, aligned(4)));

/* What a filesystem of that node size can hold. */
struct source_limits {
	uint32_t symlink; /* bytes of a target */
	uint32_t xattr;	  /* bytes of name and value */
};

/* Names sorted as bytes, none twice. */
struct source_xattr {
	const char *name;
	const void *value;
	uint32_t name_len, value_len;
};
struct source_xattrs {
	uint32_t n;
	struct source_xattr at[];
};

/* The numbers are those that the struct has for --inode-flags. */
enum source_flags {
	SOURCE_NODATACOW = 1 << 0, /* of regular files: SOURCE_NODATASUM too */
	SOURCE_NODATASUM = 1 << 1,
	SOURCE_NOCOMPRESS = 1 << 2 /* set by who compresses */
};

struct source_inode {
	uint64_t size; /* regular files; of a symlink the length of its target */
	struct source_time atime, mtime, ctime;
	uint32_t mode, uid, gid;
	uint32_t rdev;	    /* devices: by rdev_join() */
	uint32_t nlink;	    /* names; 1 for a directory */
	uint32_t subvolume; /* number of the one it lies in; its root inode too */
	uint32_t number;    /* in its subvolume, from 0: the root */
	uint32_t name;	    /* the first of its entries; SOURCE_NONE: the root of all */
	/* A directory's entries, one after the other in source.entries. Of regular files for who places contents. */
	uint32_t first, count;
	uint32_t identity; /* of a regular file: what source_file_open() knows it by */
	/*
	 * Of a file that had names on both sides of a subvolume's boundary there is an inode in each, with the same
	 * contents: the next of these. The first of them, whose contents are read, is named by @contents of all.
	 */
	uint32_t contents, next_sharing;
	const struct source_xattrs *xattrs; /* NULL: none */
	const char *text; /* the target of a symlink; of a file in a manifest where its contents are, NULL: its name */
	uint8_t flags;
	uint8_t bits; /* what only lib/source uses */
};

struct source_entry {
	const char *name;
	uint32_t parent, inode; /* inode numbers as indices into source.inodes */
	uint32_t hash;		/* crc32c as directory items have it (dir_name_hash) */
	uint32_t by_hash;	/* entry number @i of a directory in the order of hashes is that with this index */
	uint32_t index;		/* the directory index of it: 2 for the first of a directory, and so on */
	uint8_t len;
};

struct source_subvolume {
	const char *path; /* as asked for; "": the top level */
	uint32_t root;	  /* its inode */
	uint32_t parent;  /* the subvolume in which its name is; SOURCE_NONE: the top level */
	uint32_t entry;	  /* that name */
	uint32_t num_inodes;
	bool readonly, is_default;
};

/* Readable by anybody after source_finish(). */
struct source {
	/* Number 0 is the root. After source_finish() they lie in the order of @in_order, but for an archive's. */
	struct source_inode *inodes;
	uint32_t num_inodes;
	struct source_entry *entries;
	uint32_t num_entries;
	struct source_subvolume *subvolumes; /* number 0 is the top level */
	uint32_t num_subvolumes;
	/* All inodes of all subvolumes: first of subvolume 0 in the order of their numbers, then of 1 and so on. */
	uint32_t *in_order;
	uint64_t cut_links; /* inodes that there are more because a subvolume's boundary cuts hard links */
	struct source_state *state; /* what only lib/source uses */
};

/*
 * Contents of regular files as an archive delivers them, each file once and none while another is open; nothing is
 * called for empty ones. What is not written is zeros. An inode's size, flags and subvolume are final when it begins.
 */
struct source_sink {
	int (*begin)(void *ctx, uint32_t inode, struct btrkit_error *err);
	int (*write)(void *ctx, uint64_t offset, const void *buf, size_t len, struct btrkit_error *err);
	int (*end)(void *ctx, struct btrkit_error *err);
	void *ctx;
};

/*
 * An empty source, by the options of struct btrkit_mkfs_source (which must live as long).
 * @return 0; -EINVAL: an option; -ENOMEM
 */
int source_create(const struct btrkit_mkfs_source *opts, const struct source_limits *limits, struct source **ret,
		  struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * Files and devices (@inode 0) that are to be written, and so are no source: whoever finds one refuses it. @targets
 * have to live as long.
 */
struct source_target {
	dev_t device;
	ino_t inode;
};
void source_set_targets(struct source *s, const struct source_target *targets, size_t n);
/* Whether what is read can be read at all, as far as that is known before. @return 0; -EINVAL: a target; <0 */
int source_judge(const struct source *s, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* NULL is allowed. */
struct source *source_destroy(struct source *s);

/*
 * Reads all of it, as the options say; of an archive the contents go to @sink, which is not used otherwise.
 * source_finish() is called at the end. @sink may be NULL where no contents come through it.
 * @return 0; -EINVAL: what cannot be in a filesystem, by name; -EUCLEAN: a broken archive or manifest; <0
 */
int source_read(struct source *s, const struct source_sink *sink, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Whether contents come through the sink; else by source_file_open(). */
bool source_streams(const struct source *s);

/*
 * Opens the contents of a regular file, by any thread.
 * @return a descriptor; -ESTALE: it is not what it was when the source was read, by name; <0
 */
int source_file_open(const struct source *s, uint32_t inode, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* The directory of a thread's last file, since the next one is often beside it. */
struct source_near {
	uint32_t dir;
	int fd;
};
#define SOURCE_NEAR_INIT { SOURCE_NONE, -1 }
void source_near_end(struct source_near *near);
/* The same for many files; whether it is what it was only source_file_unchanged() tells. */
int source_file_open_near(const struct source *s, struct source_near *near, uint32_t inode,
			  struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* After the contents were read: whether it is still what it was. @return 0; -ESTALE, by name; <0 */
int source_file_unchanged(const struct source *s, uint32_t inode, int fd, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * The path of an inode by its first name, without a leading slash, cut in front if @size is too small; for messages.
 * Escaped for a terminal. Always ends in 0. Also before source_finish().
 */
void source_path(const struct source *s, uint32_t inode, char *buf, size_t size);

/* The same of a name in a directory, whether it is there or not. */
void source_path_of_name(const struct source *s, uint32_t parent, const char *name, size_t len, char *buf,
			 size_t size);
/* The end of any bytes, as source_path() shows them. */
void source_escape(const char *bytes, size_t len, char *buf, size_t size);

/* The next name of a path, which goes on behind it; slashes and single dots are passed over. *@len is 0 at the end. */
const char *source_next_name(const char **path, size_t *len);
/* The entry of a directory with that name, after source_finish(). @return its index or SOURCE_NONE */
uint32_t source_lookup(const struct source *s, uint32_t dir, const char *name, size_t len);

/* The name of what is read, for messages. */
const char *source_name(const struct source *s);

#endif
