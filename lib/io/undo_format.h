/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_IO_UNDO_FORMAT_H
#define BTRKIT_IO_UNDO_FORMAT_H

/*
 * An undo file: a header, and records one behind the other, each at a multiple of UNDO_ALIGN. It is only appended to.
 *
 * A device is cut into blocks. Before anything is written to one for the first time an OLD record has what is in it;
 * before anything is written to it at all a NEW record has a checksum of each sector as it will be then. Both are on
 * disk before the write is begun. So, whenever a run ends, a sector of a block that the file has is as it was, or has
 * one of the checksums that the file has for it: anything else was written by somebody else. It is told sector by
 * sector since power may fail within a block.
 *
 * The first record that is not whole ends the file: what it is about was not written yet. But nothing may follow it
 * that was written after it had been flushed, which each record tells: then the file is damaged. So that this is seen
 * of the last ones too, a run that ends in order leaves an END record.
 */

#include "lib/format/disk.h"

#define UNDO_VERSION 1
#define UNDO_ALIGN 64
#define UNDO_BLOCK 4096u
#define UNDO_SECTOR 512u
/* No record is about bytes on both sides of a multiple of this: so a device can be gone through piece by piece. */
#define UNDO_WINDOW (1u << 20)
#define UNDO_DEVICES_MAX 1024

struct disk_undo_header {
	le32 csum;	/* crc32c of what follows */
	le32 version;
	uint8_t magic[8];
	uint8_t id[16];	/* random: no record of another file passes for one of this */
	uint8_t reserved[32];
};
DISK_ASSERT_SIZE(disk_undo_header, UNDO_ALIGN);

#define UNDO_MAGIC "btrkUNDO"

enum undo_type { UNDO_DEVICE = 1, UNDO_OLD = 2, UNDO_NEW = 3, UNDO_END = 4 };

struct disk_undo_record {
	le32 csum;	/* crc32c of what follows, the payload included */
	le32 payload;	/* bytes that follow the record; up to the next one there are zeros */
	uint8_t id[16];	/* of the header */
	le64 synced;	/* so much of the file was on disk when this was written */
	le64 offset, len;	/* on the device */
	le16 device;	/* devices are numbered by their records, from 0 */
	uint8_t type;
	uint8_t flags;
	uint8_t reserved[12];
};
DISK_ASSERT_SIZE(disk_undo_record, UNDO_ALIGN);

/* An OLD record without a payload: there is nothing but zeros. */
#define UNDO_ZEROS 0x1

/* The payload of a DEVICE record; what is known of the device's filesystem is for people only. */
struct disk_undo_device {
	le64 size;
	le64 devid, generation;	/* zero where there was no superblock */
	uint8_t fsid[16];
	uint8_t dev_uuid[16];
	char name[256];
};
DISK_ASSERT_SIZE(disk_undo_device, 312);

/* The sectors of @len bytes; the last of a device may be cut short by its end. */
static inline uint32_t undo_sectors(uint64_t len)
{
	return (uint32_t)((len + UNDO_SECTOR - 1) / UNDO_SECTOR);
}

static inline uint64_t undo_align(uint64_t at)
{
	return (at + UNDO_ALIGN - 1) / UNDO_ALIGN * UNDO_ALIGN;
}

#endif
