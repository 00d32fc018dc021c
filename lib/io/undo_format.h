/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_IO_UNDO_FORMAT_H
#define BTRKIT_IO_UNDO_FORMAT_H

/*
 * An undo file consists of a header and records, each at a multiple of UNDO_ALIGN. It is only appended to.
 *
 * Devices are divided into blocks. Before the first write to a block, an OLD record saves its contents. Before every
 * write, a NEW record has the checksum that each sector will have. Both are on disk before the write starts. Thus,
 * whenever a run ends, each sector of a saved block either has its old contents or one of the checksums in the file:
 * otherwise another program has written to it. This is checked by sector, since a power failure may leave a block
 * partly written.
 *
 * The file ends at the first incomplete record; what that describes was not written yet. But no record may follow that
 * was written after the incomplete one had been flushed, which each record states: then the file is damaged. To detect
 * this for the last records too, a run that ends in an orderly way adds an END record.
 */

#include "lib/format/disk.h"

#define UNDO_VERSION 1
#define UNDO_ALIGN 64
#define UNDO_BLOCK 4096u
#define UNDO_SECTOR 512u
/* No record crosses a multiple of this, so that a device can be processed piece by piece. */
#define UNDO_WINDOW (1u << 20)
#define UNDO_DEVICES_MAX 1024

struct disk_undo_header {
	le32 csum;	/* crc32c of what follows */
	le32 version;
	uint8_t magic[8];
	uint8_t id[16];	/* random, so that records of other files are not mistaken for those of this one */
	uint8_t reserved[32];
};
DISK_ASSERT_SIZE(disk_undo_header, UNDO_ALIGN);

#define UNDO_MAGIC "btrkUNDO"

enum undo_type { UNDO_DEVICE = 1, UNDO_OLD = 2, UNDO_NEW = 3, UNDO_END = 4 };

struct disk_undo_record {
	le32 csum;	/* crc32c of what follows, including the payload */
	le32 payload;	/* bytes after the record; zeros follow up to the next record */
	uint8_t id[16];	/* of the header */
	le64 synced;	/* how much of the file was on disk when this was written */
	le64 offset, len;	/* on the device */
	le16 device;	/* devices are numbered by their records, from 0 */
	uint8_t type;
	uint8_t flags;
	uint8_t reserved[12];
};
DISK_ASSERT_SIZE(disk_undo_record, UNDO_ALIGN);

/* An OLD record without a payload: the range contained only zeros. */
#define UNDO_ZEROS 0x1

/* The payload of a DEVICE record. What it says about the filesystem is only informative. */
struct disk_undo_device {
	le64 size;
	le64 devid, generation;	/* zero if there was no superblock */
	uint8_t fsid[16];
	uint8_t dev_uuid[16];
	char name[256];
};
DISK_ASSERT_SIZE(disk_undo_device, 312);

/* The number of sectors in @len bytes; the last one of a device may be shorter. */
static inline uint32_t undo_sectors(uint64_t len)
{
	return (uint32_t)((len + UNDO_SECTOR - 1) / UNDO_SECTOR);
}

static inline uint64_t undo_align(uint64_t at)
{
	return (at + UNDO_ALIGN - 1) / UNDO_ALIGN * UNDO_ALIGN;
}

#endif
