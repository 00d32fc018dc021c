/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TYPES_H
#define BTRKIT_TYPES_H

/**
 * @file
 * Types and macros that every other header of btrkit uses.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The library is built with hidden symbols: what the headers declare is what it exports. */
#if defined(__GNUC__)
#define BTRKIT_VISIBLE _Pragma("GCC visibility push(default)")
#define BTRKIT_VISIBLE_END _Pragma("GCC visibility pop")
#else
#define BTRKIT_VISIBLE
#define BTRKIT_VISIBLE_END
#endif

#ifdef __cplusplus
#define BTRKIT_BEGIN_DECLS BTRKIT_VISIBLE extern "C" {
#define BTRKIT_END_DECLS } BTRKIT_VISIBLE_END
#else
#define BTRKIT_BEGIN_DECLS BTRKIT_VISIBLE
#define BTRKIT_END_DECLS BTRKIT_VISIBLE_END
#endif

#if defined(__GNUC__)
#define BTRKIT_MUST_CHECK __attribute__((warn_unused_result))
#define BTRKIT_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define BTRKIT_MUST_CHECK
#define BTRKIT_PRINTF(fmt, args)
#endif

/* For the macros whose names end with _INIT, where all of a struct is 0 or NULL. */
#ifdef __cplusplus
#define BTRKIT_ZEROS {}
#else
#define BTRKIT_ZEROS { 0 }
#endif

BTRKIT_BEGIN_DECLS

struct btrkit_error;
struct btrkit_io;
struct btrkit_fs;

/**
 * The key of an item, in CPU byte order. Keys order by objectid, then type, then offset.
 *
 * Since: 0.1
 */
struct btrkit_key {
	uint64_t objectid;
	uint8_t type;
	uint64_t offset;
};

/** How contents of files are compressed, with the numbers that extents have for it on disk. Since: 0.1 */
enum btrkit_compression {
	BTRKIT_COMPRESSION_NONE,
	BTRKIT_COMPRESSION_ZLIB,
	BTRKIT_COMPRESSION_LZO,
	BTRKIT_COMPRESSION_ZSTD
};

/**
 * Where the output of a report goes: called with the next @p len bytes of it. Returns 0, or a negative
 * errno, which ends the report and is what the report returns.
 *
 * Since: 0.1
 */
typedef int (*btrkit_write_fn)(void *ctx, const void *data, size_t len);

/**
 * Forms of what is printed. A function whose comment does not name one of them refuses it with -EINVAL.
 *
 * Since: 0.1
 */
enum btrkit_format {
	BTRKIT_FORMAT_TEXT,	/**< for people */
	BTRKIT_FORMAT_JSON,	/**< JSON Lines, of which the first is a header: see btrkit-format(5) */
	BTRKIT_FORMAT_TSV	/**< tab-separated values, a line each, without a header */
};

/**
 * Told how far something is, now and then, by one thread at a time. Returns 0, or a negative errno, which ends the work
 * and is what the function that does it returns.
 *
 * Since: 0.1
 */
typedef int (*btrkit_progress_fn)(void *ctx, uint64_t done, uint64_t total);

/**
 * Told of damage that is no reason to stop, by one thread at a time; @p what is valid during the call only. Returns 0,
 * or a negative errno, which ends the work and is what the function that does it returns.
 *
 * Since: 0.1
 */
typedef int (*btrkit_damage_fn)(void *ctx, const struct btrkit_error *what);

/**
 * Told a fact that is no failure but that a person should know (a mirror of the superblock was used, a
 * newer mirror exists): one line without a newline, valid during the call only.
 *
 * Since: 0.1
 */
typedef void (*btrkit_note_fn)(void *ctx, const char *line);

BTRKIT_END_DECLS

#endif
