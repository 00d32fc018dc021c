/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MKFS_UNIT_H
#define BTRKIT_MKFS_UNIT_H

/* Units of work, shared by units.c, which assembles them, and unit.c, which processes them. */

#include <pthread.h>

#include "lib/base/compression/encode.h"
#include "lib/base/pipeline.h"
#include "lib/mkfs/filled/digest.h"
#include "lib/mkfs/filled/units.h"

#define UNIT_BYTES DIGEST_UNIT
#define PARTS_MAX 256u
#define UNITS_PER_THREAD 4u
/* Minimum size of files that are searched for holes before they are read. */
#define SPARSE_MIN (16u << 20)

/* Whether a file is worth compressing, as determined by its first piece. */
enum verdict { UNKNOWN, WORTHWHILE, NOT_WORTHWHILE };

struct big_file {
	struct big_file *next; /* list of all, to be freed */
	enum verdict verdict;
};

/* A part of one file. */
struct part {
	uint32_t inode; /* must not be looked up while the source grows */
	uint16_t flags;	/* SOURCE_* flags */
	uint64_t size;	/* of the file */
	uint32_t len;
	uint64_t offset;
	size_t at;	       /* offset in the bytes of the unit, sector-aligned */
	bool first, last;      /* of the file */
	bool filled;	       /* the bytes are already present */
	struct big_file *file; /* NULL: the part is the whole file */
	bool incompressible;   /* determined by its first piece */
	uint64_t digest;       /* if digests of files are required */
};

struct unit {
	struct part parts[PARTS_MAX];
	unsigned num_parts;
	size_t used;
	uint8_t *bytes;	 /* as read; parts are sector-aligned */
	uint8_t *packed; /* compressed data; NULL without compression */
	size_t packed_used;
	struct mkfs_piece *pieces;
	unsigned num_pieces, pieces_max;
	uint8_t *sums;
	size_t sums_used;
	uint64_t from, to;
	struct encoder *encoder; /* during processing; NULL without compression */
};

struct units {
	struct units_config config;
	struct unit *units;
	void **slots;
	unsigned num_units;
	struct pipeline *pipeline;
	struct unit *open; /* being assembled */
	struct big_file *files;
	/* One per thread. The one used last is taken first, because its tables are still in the processor's cache. */
	struct encoder *encoders[PIPELINE_THREADS_MAX];
	unsigned num_encoders; /* unused ones */
	pthread_mutex_t lock; /* protects verdicts and encoders */
	pthread_cond_t decided;
	bool failed;
	uint64_t given_out, files_given_out;
	/* The file that is being received by the sink. */
	uint32_t stream_inode;
	struct big_file *stream_file;
	bool stream_first;
};

size_t unit_whole_sectors(const struct units *u, size_t n);
/* Reports a failure with the path of the file. */
int unit_blame(const struct units *u, uint32_t inode, int error, const char *what, struct btrkit_error *err);

/* Turns the parts of a unit into pieces. This is the work function of the pipeline. */
int unit_work(void *ctx, void *slot, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
