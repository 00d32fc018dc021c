/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_ITERATE_H
#define BTRKIT_ITERATE_H

/**
 * @file
 * Iterators: the caller asks for one row after the other, instead of being called for each. They give the rows that the
 * functions with callbacks give, and suit bindings for languages whose own iterators work so.
 *
 * A function that makes an iterator has the name of what it iterates over, and the one that returns the next row is
 * named after the row. An iterator belongs to one thread at a time; any number may be in use. It holds nothing of the
 * filesystem between calls, so a filesystem may be changed meanwhile: then rows that were changed may or may not be
 * seen in their new state. Usage has rows that are found by number instead: see usage.h.
 *
 * Each `next` function returns 0 for a row, 1 if there are no more, and -EINVAL for an iterator over something else.
 * The row is valid until the next call for the same iterator.
 */

#include <btrkit/check.h>
#include <btrkit/fiemap.h>
#include <btrkit/subvolume.h>

BTRKIT_BEGIN_DECLS

/** An iterator over rows of one kind. Since: 0.2 */
struct btrkit_iter;

/**
 * Frees the iterator @p it, which must be done before its filesystem is closed. NULL is allowed.
 *
 * @return NULL
 * Since: 0.2
 */
struct btrkit_iter *btrkit_iter_free(struct btrkit_iter *it);

/**
 * Iterates over the entries of a directory that come after another: see btrkit_inode_entries_after(). Entries are read
 * in groups. Those before the first damage are returned; then the next call fails, and so does each after it.
 *
 * @param after	index of an entry; 0: start with the first
 * @param ret	receives the iterator; free it with btrkit_iter_free()
 * @return as btrkit_inode_entries_after()
 * Since: 0.2
 */
int btrkit_iter_entries(struct btrkit_fs *fs, uint64_t root, uint64_t inode, uint64_t after, struct btrkit_iter **ret,
			struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Iterates over the entries of a directory that come after another, also those behind damage: see
 * btrkit_inode_entries_around(). They come by ascending index, also those that were found otherwise, so that a listing
 * can be resumed after any of them. All entries are read first, and those that come after @p after are in memory.
 *
 * @param after	index of an entry; 0: all
 * @param lost	called for each part that is missing, by this function only
 * @param ctx	passed to @p lost
 * @param ret	receives the iterator; free it with btrkit_iter_free()
 * @return as btrkit_inode_entries_around()
 * Since: 0.2
 */
int btrkit_iter_entries_around(struct btrkit_fs *fs, uint64_t root, uint64_t inode, uint64_t after,
			       btrkit_lost_fn lost, void *ctx, struct btrkit_iter **ret,
			       struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** Returns the next entry of @p it. @return 0; 1: the end; as btrkit_inode_entries_after(). Since: 0.2 */
int btrkit_iter_next_entry(struct btrkit_iter *it, const struct btrkit_dir_entry **ret,
			   struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Iterates over the extended attributes of an inode: see btrkit_inode_xattrs().
 *
 * @param ret	receives the iterator; free it with btrkit_iter_free()
 * @return as btrkit_inode_xattrs()
 * Since: 0.2
 */
int btrkit_iter_xattrs(struct btrkit_fs *fs, uint64_t root, uint64_t inode, struct btrkit_iter **ret,
		       struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** Returns the next attribute of @p it. @return 0; 1: the end; as btrkit_inode_xattrs(). Since: 0.2 */
int btrkit_iter_next_xattr(struct btrkit_iter *it, const struct btrkit_xattr **ret,
			   struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Iterates over the file extent items of a regular file: see btrkit_inode_extents().
 *
 * @param ret	receives the iterator; free it with btrkit_iter_free()
 * @return as btrkit_inode_extents()
 * Since: 0.2
 */
int btrkit_iter_file_extents(struct btrkit_fs *fs, uint64_t root, uint64_t inode, struct btrkit_iter **ret,
			     struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** Returns the next file extent of @p it. @return 0; 1: the end; as btrkit_inode_extents(). Since: 0.2 */
int btrkit_iter_next_file_extent(struct btrkit_iter *it, const struct btrkit_file_extent **ret,
				 struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Iterates over the extents of one file, with the flags of FIEMAP: see btrkit_fiemap_path(). All rows of the file are
 * in memory, 32 bytes for each.
 *
 * @param path	of the file within the subvolume @p root
 * @param ret	receives the iterator; free it with btrkit_iter_free()
 * @return as btrkit_fiemap_path()
 * Since: 0.2
 */
int btrkit_iter_fiemap(struct btrkit_fs *fs, uint64_t root, const char *path, struct btrkit_iter **ret,
		       struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Iterates over the extents of one file, as btrkit_iter_fiemap() does, also those behind damage: see @c problem of
 * struct btrkit_fiemap_sink. btrkit_iter_fiemap() fails at the first damage, and has no rows then.
 *
 * @param lost	called for each part that is missing, by this function only
 * @param ctx	passed to @p lost
 * @param ret	receives the iterator; free it with btrkit_iter_free()
 * @return as btrkit_fiemap_path()
 * Since: 0.2
 */
int btrkit_iter_fiemap_around(struct btrkit_fs *fs, uint64_t root, const char *path, btrkit_lost_fn lost, void *ctx,
			      struct btrkit_iter **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** Returns the next extent of @p it. @return 0; 1: the end. Since: 0.2 */
int btrkit_iter_next_extent(struct btrkit_iter *it, const struct btrkit_extent **ret,
			    struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Iterates over the subvolumes, ordered by objectid: see btrkit_subvolume_next(). At damage, each further call fails;
 * btrkit_subvolumes_around() goes on behind it.
 *
 * @param after	objectid; 0: start with the top level
 * @param ret	receives the iterator; free it with btrkit_iter_free()
 * @return 0, -ENOMEM
 * Since: 0.2
 */
int btrkit_iter_subvolumes(struct btrkit_fs *fs, uint64_t after, struct btrkit_iter **ret,
			   struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** Returns the next subvolume of @p it. @return 0; 1: the end; as btrkit_subvolume_next(). Since: 0.2 */
int btrkit_iter_next_subvolume(struct btrkit_iter *it, const struct btrkit_subvolume **ret,
			       struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Iterates over the devices: see btrkit_devices(). They are all read first.
 *
 * @param ret	receives the iterator; free it with btrkit_iter_free()
 * @return as btrkit_devices()
 * Since: 0.2
 */
int btrkit_iter_devices(struct btrkit_fs *fs, struct btrkit_iter **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** Returns the next device of @p it. @return 0; 1: the end. Since: 0.2 */
int btrkit_iter_next_device(struct btrkit_iter *it, const struct btrkit_device **ret,
			    struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Iterates over the chunks: see btrkit_chunks(). They are all read first.
 *
 * @param ret	receives the iterator; free it with btrkit_iter_free()
 * @return as btrkit_chunks()
 * Since: 0.2
 */
int btrkit_iter_chunks(struct btrkit_fs *fs, struct btrkit_iter **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** Returns the next chunk of @p it. @return 0; 1: the end. Since: 0.2 */
int btrkit_iter_next_chunk(struct btrkit_iter *it, const struct btrkit_chunk **ret,
			   struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Checks a filesystem, and iterates over the findings: see btrkit_check().
 *
 * @param opts	as for btrkit_check(), may be NULL; its finding callback is not called
 * @param result	receives statistics; may be NULL
 * @param ret	receives the iterator; free it with btrkit_iter_free()
 * @return as btrkit_check()
 * Since: 0.2
 */
int btrkit_iter_findings(struct btrkit_fs *fs, const struct btrkit_check_options *opts,
			 struct btrkit_check_result *result, struct btrkit_iter **ret,
			 struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** Returns the next finding of @p it. @return 0; 1: the end. Since: 0.2 */
int btrkit_iter_next_finding(struct btrkit_iter *it, const struct btrkit_finding **ret,
			     struct btrkit_error *err) BTRKIT_MUST_CHECK;

BTRKIT_END_DECLS

#endif
