/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_H
#define BTRKIT_CHECK_H

/**
 * @file
 * Checking a filesystem: all structures are compared with each other. Nothing is written.
 *
 * Problems are reported as findings. Each has a code that does not change between releases; btrkit_check_codes() lists
 * all codes.
 */

#include <btrkit/device.h>
#include <btrkit/error.h>

BTRKIT_BEGIN_DECLS

/** What a finding means for mounting the filesystem. Since: 0.1 */
enum btrkit_check_severity {
	/** Linux refuses to mount the filesystem or to read the object, or turns read-only when it meets it. */
	BTRKIT_CHECK_REFUSED,
	/** Linux continues with something wrong: wrong counters, lost space, or wrong file contents or attributes. */
	BTRKIT_CHECK_MISBEHAVES,
	/** A harmless remnant. */
	BTRKIT_CHECK_LEFTOVER
};

#define BTRKIT_CHECK_SEVERITIES 3

/** A kind of finding. Since: 0.1 */
struct btrkit_check_code {
	const char *name; /**< such as "BTR-EXTENT-REFCOUNT" */
	enum btrkit_check_severity severity;
	const char *meaning; /**< a sentence without its full stop */
	uint64_t reserved[2];	/**< 0 */
};

/**
 * Returns the name of a severity in text and JSON: "refused", "misbehaves" or "leftover".
 *
 * @param severity	the severity
 * @return a constant string; NULL: no such severity
 * Since: 0.1
 */
const char *btrkit_check_severity_name(enum btrkit_check_severity severity);

/**
 * Returns all codes, in the order in which findings are reported.
 *
 * @param n	receives the number of codes
 * @return a constant array of @p n elements
 * Since: 0.1
 */
const struct btrkit_check_code *btrkit_check_codes(size_t *n);

/** A finding. Its strings are valid only during the call. Since: 0.1 */
struct btrkit_finding {
	const struct btrkit_check_code *code;
	struct btrkit_error what; /**< message, and location as far as it is known */
	/** The value found and the expected value, if they are numbers. */
	bool has_values;
	uint64_t found, expected;
	const char *path; /**< path of the file within its subvolume; NULL: none */
	/** How often the same was found in the same place: more than once if several trees share it. */
	uint64_t times;
};

/** Maximum number of addresses, and of trees, that a struct btrkit_check_fold lists. Since: 0.2 */
#define BTRKIT_CHECK_FOLD_LISTED 4

/**
 * Findings of one code about bad copies of tree blocks or data, with one cause, on one device: at least two if the
 * device is missing or stale, more than eight with another cause. Valid only during the call. Since: 0.2
 */
struct btrkit_check_fold {
	const struct btrkit_check_code *code;
	enum btrkit_cause cause;
	uint64_t devid;		     /**< number of the device; 0: none is known */
	uint64_t findings;	     /**< their number */
	uint64_t bytes;		     /**< of the blocks or sectors that they are about, a copy each */
	uint64_t last;		     /**< the highest logical address; the lowest is addresses[0] */
	unsigned num_addresses;	     /**< number of the following */
	unsigned num_trees;	     /**< number of the following; BTRKIT_CHECK_FOLD_LISTED + 1: there are more */
	uint64_t addresses[BTRKIT_CHECK_FOLD_LISTED]; /**< the lowest logical addresses */
	uint64_t trees[BTRKIT_CHECK_FOLD_LISTED];     /**< the lowest objectids of the trees that have the blocks */
	struct btrkit_error what;    /**< the first finding */
	uint64_t reserved[4];	     /**< 0 */
};

/** Flags of struct btrkit_check_options. Since: 0.1 */
enum btrkit_check_flags {
	/**
	 * Read all data that has checksums, every copy of it, decompress what is compressed, and verify parity. A
	 * filesystem with a raid-stripe-tree is refused with -EOPNOTSUPP.
	 */
	BTRKIT_CHECK_DATA = 1 << 0,
	/** Findings that are passed to @c fold are not passed to @c finding, too. Needs @c fold. Since: 0.2 */
	BTRKIT_CHECK_FOLDED = 1 << 1
};

/** Options of btrkit_check(). Initialise with BTRKIT_CHECK_OPTIONS_INIT. Since: 0.1 */
struct btrkit_check_options {
	unsigned flags;	  /**< enum btrkit_check_flags; unknown ones are refused */
	unsigned threads; /**< maximum number; 0: one per CPU */
	/**
	 * Maximum memory for tables of extents and references, in bytes; 0: unlimited. Beyond it, they are moved to a
	 * file in the directory @c spill; without one the check fails with -ENOMEM.
	 */
	uint64_t memory;
	const char *spill; /**< a directory for an unnamed temporary file; NULL: none */
	unsigned repeats;  /**< findings to report per code, up to 65536; others are counted; 0: 32 */
	/**
	 * Reports progress, from one thread at a time; the total may change. A value other than 0, a negative errno,
	 * stops the work. May be NULL.
	 */
	btrkit_progress_fn progress;
	void *progress_ctx;
	/**
	 * Receives the findings, ordered by code and location: the same for the same filesystem, with any number of
	 * threads. Called when everything has been read. A value other than 0, a negative errno, stops the work. May be
	 * NULL.
	 */
	int (*finding)(void *ctx, const struct btrkit_finding *f);
	/** Receives the number @p n of findings of a code beyond those reported. May be NULL. */
	int (*more)(void *ctx, const struct btrkit_check_code *code, uint64_t n);
	/**
	 * Receives what findings have in common, so that a missing or stale device is one finding and not one for each
	 * block: before the other findings of that code. If there are too many causes and devices, nothing is folded.
	 * May be NULL. Since: 0.2
	 */
	int (*fold)(void *ctx, const struct btrkit_check_fold *f);
	void *ctx;
	uint64_t reserved[4];	/**< 0 */
};

#define BTRKIT_CHECK_OPTIONS_INIT BTRKIT_ZEROS

/** Statistics of a check. Since: 0.1 */
struct btrkit_check_result {
	uint64_t findings[8];		    /**< [i]: by severity, including those only counted */
	uint64_t blocks;			    /**< tree blocks; shared ones count once */
	uint64_t extents;			    /**< data extents */
	uint64_t data;				    /**< bytes of data whose checksums were verified, per copy */
	uint64_t table_bytes;			    /**< maximum memory of the tables */
	/**
	 * If tree blocks were lost, what the extent tree has and nothing else led to: the extent of the loss, such as
	 * all blocks below the root of a lost tree. Otherwise 0. Since: 0.2
	 */
	uint64_t unreached_blocks;
	uint64_t unreached_extents;		    /**< the same for data extents that lack references. Since: 0.2 */
	uint64_t unreached_data;		    /**< bytes of these. Since: 0.2 */
	uint64_t reserved[5];	/**< 0 */
};

/**
 * Checks a filesystem. Open it with BTRKIT_OPEN_PARTIAL, so that damage of the chunk tree becomes a finding too. Other
 * threads may read the filesystem meanwhile, but must not change it: changes would be reported as damage.
 *
 * @param ret	receives statistics; may be NULL
 * @return 0: the check is complete, whatever was found; -EINVAL: unknown flags, or BTRKIT_CHECK_FOLDED without
 *	   @c fold; -EOPNOTSUPP: see BTRKIT_CHECK_DATA;
 *	   -EBUSY: a transaction is open; -ENOMEM; -ENOSPC or another errno of the spill file; or what a callback in @p
 *	   opts returned
 * Since: 0.1
 */
int btrkit_check(struct btrkit_fs *fs, const struct btrkit_check_options *opts, struct btrkit_check_result *ret,
		 struct btrkit_error *err) BTRKIT_MUST_CHECK;

BTRKIT_END_DECLS

#endif
