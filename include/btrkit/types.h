/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TYPES_H
#define BTRKIT_TYPES_H

/**
 * @file
 * Types and macros that all other headers use.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The library is built with hidden symbols: it exports what the headers declare. */
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

/* For _INIT macros whose structs are initialised with zeros and NULLs. */
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
 * Key of an item, in CPU byte order. Keys are ordered by objectid, then type, then offset. Never grows.
 *
 * Since: 0.1
 */
struct btrkit_key {
	uint64_t objectid;
	uint8_t type;
	uint64_t offset;
};

/** Compression of file data, numbered as in file extent items on disk. Since: 0.1 */
enum btrkit_compression {
	BTRKIT_COMPRESSION_NONE,
	BTRKIT_COMPRESSION_ZLIB,
	BTRKIT_COMPRESSION_LZO,
	BTRKIT_COMPRESSION_ZSTD
};

/**
 * Receives the next @p len bytes of the output. Returns 0, or a negative errno, which stops the output and becomes the
 * return value of the function that prints.
 *
 * Since: 0.1
 */
typedef int (*btrkit_write_fn)(void *ctx, const void *data, size_t len);

/**
 * Output formats.
 *
 * Since: 0.1
 */
enum btrkit_format {
	BTRKIT_FORMAT_TEXT,	/**< human-readable */
	BTRKIT_FORMAT_JSON	/**< JSON Lines; the first line is a header: see btrkit-format(5) */
};

/**
 * Reports progress from time to time, from one thread at a time. Returns 0, or a negative errno, which stops the work
 * and becomes the return value of the function that does it.
 *
 * Since: 0.1
 */
typedef int (*btrkit_progress_fn)(void *ctx, uint64_t done, uint64_t total);

/**
 * Reports damage that does not stop the work, from one thread at a time. @p what is valid only during the call. Returns
 * 0, or a negative errno, which stops the work and becomes the return value of the function that does it.
 *
 * Since: 0.1
 */
typedef int (*btrkit_damage_fn)(void *ctx, const struct btrkit_error *what);

/**
 * Reports a condition that is no failure but that a person should know, such as that a mirror of the superblock is
 * used. @p line is one line without a newline, valid only during the call.
 *
 * Since: 0.1
 */
typedef void (*btrkit_note_fn)(void *ctx, const char *line);

/**
 * Reports something that could not be read or was left out. @p path has @p len bytes, is not terminated, and is valid
 * only during the call, as is @p what. Returns 0 to continue, or a negative errno that stops the work.
 *
 * Since: 0.1
 */
typedef int (*btrkit_problem_fn)(void *ctx, const char *path, size_t len, const struct btrkit_error *what);

BTRKIT_END_DECLS

#endif
