/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_H
#define BTRKIT_CHECK_H

/**
 * @file
 * Every structure of a filesystem against every other. Nothing is written.
 *
 * What is wrong is told as findings. Each has a code that stays what it is from release to release;
 * btrkit_check_codes() has them all.
 */

#include <btrkit/device.h>
#include <btrkit/error.h>

BTRKIT_BEGIN_DECLS

/** What a finding means to who mounts the filesystem. Since: 0.1 */
enum btrkit_check_severity {
	/** Linux refuses to mount it or to read this, or makes the filesystem read-only when it meets it. */
	BTRKIT_CHECK_REFUSED,
	/** Linux goes on with something wrong: wrong counters, lost space, files that are not what they say. */
	BTRKIT_CHECK_MISBEHAVES,
	/** Left behind by somebody, and in nobody's way. */
	BTRKIT_CHECK_LEFTOVER
};

#define BTRKIT_CHECK_SEVERITIES 3

/** A kind of finding. Since: 0.1 */
struct btrkit_check_code {
	const char *name; /**< as in "BTR-EXTENT-REFCOUNT" */
	enum btrkit_check_severity severity;
	const char *meaning; /**< a sentence without its full stop */
	uint64_t reserved[2];	/**< 0 */
};

/**
 * What a severity is called in text and JSON: "refused", "misbehaves", "leftover".
 *
 * @param severity	one of them
 * @return a constant of the library; NULL: there is no such severity
 * Since: 0.1
 */
const char *btrkit_check_severity_name(enum btrkit_check_severity severity);

/**
 * All codes, in the order in which findings are told.
 *
 * @param n	gets how many there are
 * @return an array of @p n, a constant of the library
 * Since: 0.1
 */
const struct btrkit_check_code *btrkit_check_codes(size_t *n);

/** A finding. Strings are valid during the call that it is handed to. Since: 0.1 */
struct btrkit_finding {
	const struct btrkit_check_code *code;
	struct btrkit_error what; /**< the message, and where: those places that are known */
	/** What there is and what there should be, where those are numbers. */
	bool has_values;
	uint64_t found, expected;
	const char *path; /**< of the file that is meant, from the top of its subvolume on; NULL: there is none */
	/** How often the same was met in this place: 1, or more where trees share it. */
	uint64_t times;
};

/** Flags of struct btrkit_check_options. Since: 0.1 */
enum btrkit_check_flags {
	/**
	 * Read all data that has checksums, every copy of it, decompress what is compressed, and judge parity. A
	 * filesystem with a tree of raid stripes is refused, with -EOPNOTSUPP.
	 */
	BTRKIT_CHECK_DATA = 1 << 0
};

/** How to look. Initialise with BTRKIT_CHECK_OPTIONS_INIT. Since: 0.1 */
struct btrkit_check_options {
	unsigned flags;	  /**< BTRKIT_CHECK_* */
	unsigned threads; /**< at most so many; 0: as many as there are CPUs */
	/**
	 * Bytes that tables of extents and of what refers to them may take in memory; 0: as many as they need. Beyond
	 * it they lie in a file in @c spill; without one the work ends with -ENOMEM.
	 */
	uint64_t memory;
	const char *spill; /**< a directory for that file, which has no name; NULL: none */
	unsigned repeats;  /**< findings of one code that are told one by one, others are counted; 0: 32 */
	/**
	 * A share of the work is done; what the total is may change on the way. Called by one thread at a time. A value
	 * other than 0, a negative errno, ends the work. May be NULL.
	 */
	btrkit_progress_fn progress;
	void *progress_ctx;
	/**
	 * A finding, in the order of codes and then of places: the same for the same filesystem, however many threads.
	 * Called when everything has been read. A value other than 0, a negative errno, ends the work. May be NULL.
	 */
	int (*finding)(void *ctx, const struct btrkit_finding *f);
	/** @p n more findings of a code than were told. May be NULL. */
	int (*more)(void *ctx, const struct btrkit_check_code *code, uint64_t n);
	void *ctx;
	uint64_t reserved[4];	/**< 0 */
};

#define BTRKIT_CHECK_OPTIONS_INIT BTRKIT_ZEROS

/** What there was. Since: 0.1 */
struct btrkit_check_result {
	uint64_t findings[8];		    /**< by severity, those that were only counted included */
	uint64_t blocks;			    /**< tree blocks, each once */
	uint64_t extents;			    /**< data extents */
	uint64_t data;				    /**< bytes of data whose checksums were judged, each copy once */
	uint64_t table_bytes;			    /**< that the tables took at the most */
	uint64_t reserved[8];	/**< 0 */
};

/**
 * Checks a filesystem. Open it with BTRKIT_OPEN_PARTIAL, so that damage of its chunk tree becomes a finding too. It may
 * be read by others meanwhile, and must not be changed: what is changed while it is read is told as damage.
 *
 * @param ret	what there was; may be NULL
 * @return 0: everything was looked at, whatever was found; -EINVAL: unknown flags; -EBUSY: a transaction is open;
 *	   -ENOMEM; -ENOSPC or another errno of the spill file; or what a function of @p opts returned
 * Since: 0.1
 */
int btrkit_check(struct btrkit_fs *fs, const struct btrkit_check_options *opts, struct btrkit_check_result *ret,
		 struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Checks a filesystem as btrkit_check() does and prints what is found: a line for each finding, one for findings that
 * are only counted, and a last one with what there was. Findings and counts in @p opts go to nobody else.
 *
 * JSON Lines: a header; objects with "kind" "finding", "more" and at the end "summary".
 *
 * @param opts	may be NULL
 * @param ret	what there was; may be NULL
 * @return as btrkit_check(), or what @p write returned. Whatever was found, it is 0.
 * Since: 0.1
 */
int btrkit_check_print(struct btrkit_fs *fs, const struct btrkit_check_options *opts, enum btrkit_format format,
		       btrkit_write_fn write, void *ctx, struct btrkit_check_result *ret,
		       struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** Prints all codes: a line each. @return 0, -EINVAL, -ENOMEM or what @p write returned. Since: 0.1 */
int btrkit_check_codes_print(enum btrkit_format format, btrkit_write_fn write, void *ctx,
			     struct btrkit_error *err) BTRKIT_MUST_CHECK;

BTRKIT_END_DECLS

#endif
