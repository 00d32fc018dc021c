// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Converts a filesystem without checksums of data, in one transaction, with internal functions of the library.
 *
 *	conversion IMAGE CSUM FSID [keep]
 *
 * CSUM is a number as on disk. FSID is a digit with which the 16 bytes are filled, or - to leave it. With keep, blocks
 * keep theirs.
 */
#include <btrkit/btrkit.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/csum.h"
#include "lib/commit/conversion.h"
#include "lib/reserve/reserve.h"

static void must(int ret, const struct btrkit_error *err)
{
	char line[BTRKIT_ERROR_LINE];

	if (!ret)
		return;
	fprintf(stderr, "conversion: %s\n", btrkit_error_format(err, line, sizeof(line)));
	exit(1);
}

int main(int argc, char **argv)
{
	const struct btrkit_open_options opts = { .flags = BTRKIT_OPEN_WRITE };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct conversion to = { NULL, NULL, argc == 5 };
	struct btrkit_txn *txn;
	struct btrkit_fs *fs;
	uint8_t fsid[16];

	if (argc != 4 && argc != 5) {
		fprintf(stderr, "usage: conversion IMAGE CSUM FSID [keep]\n");
		return 2;
	}
	to.csum = csum_kind_find((uint16_t)atoi(argv[2]));
	memset(fsid, argv[3][0], sizeof(fsid));
	if (argv[3][0] != '-')
		to.fsid = fsid;
	must(btrkit_fs_open_path(argv[1], 0, &opts, &fs, &err), &err);
	must(btrkit_txn_start(fs, &txn, &err), &err);
	must(txn_reserve(txn, 1000, &err), &err);
	must(conversion_begin(txn, &to, &err), &err);
	if (!to.keeps_blocks)
		must(conversion_copy_blocks(txn, &err), &err);
	must(btrkit_txn_commit(txn, NULL, &err), &err);
	btrkit_fs_close(fs);
	return 0;
}
