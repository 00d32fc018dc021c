/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MKFS_UNIT_H
#define BTRKIT_MKFS_UNIT_H

/* A unit of work, for those who put them together (units.c) and who do it (unit.c). */

#include <pthread.h>

#include "lib/base/encode.h"
#include "lib/base/pipeline.h"
#include "lib/mkfs/digest.h"
#include "lib/mkfs/units.h"

#define UNIT_BYTES DIGEST_UNIT
#define PARTS_MAX 256u
#define UNITS_PER_THREAD 4u
/* Of larger files holes are looked for before they are read. */
#define SPARSE_MIN (16u << 20)

/* Whether a file is worth compressing, which its first piece shows. */
enum verdict { UNKNOWN, WORTHWHILE, NOT_WORTHWHILE };

struct big_file {
	struct big_file *next; /* of all, to be freed */
	enum verdict verdict;
};

/* Bytes of one file. */
struct part {
	uint32_t inode; /* not to be looked up while more of them are added to the source */
	uint8_t flags;	/* its SOURCE_* */
	uint64_t size;	/* of the file */
	uint32_t len;
	uint64_t offset;
	size_t at;	       /* in the unit's bytes: the beginning of a sector */
	bool first, last;      /* of the file */
	bool filled;	       /* it need not be read */
	struct big_file *file; /* NULL: all of the file is in this part */
	bool incompressible;   /* as its beginning shows */
	uint64_t digest;       /* where that of each file is wanted */
};

struct unit {
	struct part parts[PARTS_MAX];
	unsigned num_parts;
	size_t used;
	uint8_t *bytes;	 /* as read, each part from the beginning of a sector on */
	uint8_t *packed; /* compressed; NULL where nothing is */
	size_t packed_used;
	struct mkfs_piece *pieces;
	unsigned num_pieces, pieces_max;
	uint8_t *sums;
	size_t sums_used;
	uint64_t from, to;
	struct encoder *encoder; /* while it is worked on; NULL where nothing is compressed */
};

struct units {
	struct units_config config;
	struct unit *units;
	void **slots;
	unsigned num_units;
	struct pipeline *pipeline;
	struct unit *open; /* that is being put together */
	struct big_file *files;
	/* One a thread. The last one that was used is the next, since its tables are in the processor's cache. */
	struct encoder *encoders[PIPELINE_THREADS_MAX];
	unsigned num_encoders; /* that nobody uses */
	pthread_mutex_t lock; /* of verdicts and encoders */
	pthread_cond_t decided;
	bool failed;
	uint64_t given_out, files_given_out;
	/* The file that comes through the sink. */
	uint32_t stream_inode;
	struct big_file *stream_file;
	bool stream_first;
};

size_t unit_whole_sectors(const struct units *u, size_t n);
/* A failure with the name of the file in front. */
int unit_blame(const struct units *u, uint32_t inode, int error, const char *what, struct btrkit_error *err);

/* Makes pieces of what is in a unit: a pipeline's work. */
int unit_work(void *ctx, void *slot, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
