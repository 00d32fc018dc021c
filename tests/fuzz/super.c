// SPDX-License-Identifier: LGPL-2.1-or-later
/* A superblock: validated, its chunks walked, and rendered whatever the result was. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>

#include <btrkit/dump.h>

#include "lib/format/feature.h"
#include "lib/format/super.h"

static void check_super(const struct disk_super *disk)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct super super;
	struct item item;
	uint32_t pos = 0;
	int ret;

	ret = super_decode(disk, super_offset(0), &super, &err);
	if (!ret)
		ret = features_check_read(&super, &err);
	while (!ret)
		ret = super_next_chunk(&super, &pos, &item, &err);
	if (ret < 0 && !err.message[0])
		abort();
}

static void dump(const struct disk_super *disk, unsigned flags, enum btrkit_format format)
{
	uint64_t room = 1 << 20;
	struct btrkit_io *io;
	int ret;

	if (btrkit_io_memory(super_offset(0) + sizeof(*disk), &io, NULL))
		return;
	ret = btrkit_io_write(io, super_offset(0), disk, sizeof(*disk), NULL);
	if (!ret)
		ret = btrkit_dump_super(io, super_offset(0), flags, format, fuzz_write, &room, NULL);
	/* The text of a superblock must not be this long. */
	if (ret == -27)
		abort();
	btrkit_io_close(io);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct disk_super disk;

	memset(&disk, 0, sizeof(disk));
	memcpy(&disk, data, size < sizeof(disk) ? size : sizeof(disk));
	dump(&disk, BTRKIT_DUMP_SUPER_FULL | BTRKIT_DUMP_SUPER_FORCE, BTRKIT_FORMAT_TEXT);
	dump(&disk, BTRKIT_DUMP_SUPER_FULL | BTRKIT_DUMP_SUPER_FORCE, BTRKIT_FORMAT_JSON);
	fuzz_seal((uint8_t *)&disk, sizeof(disk));
	check_super(&disk);
	dump(&disk, BTRKIT_DUMP_SUPER_FULL, BTRKIT_FORMAT_TEXT);
	dump(&disk, BTRKIT_DUMP_SUPER_FULL | BTRKIT_DUMP_SUPER_HIDE_NAMES, BTRKIT_FORMAT_JSON);
	return 0;
}
