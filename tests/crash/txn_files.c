// SPDX-License-Identifier: LGPL-2.1-or-later
#include "txn_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/csum.h"
#include "lib/base/err.h"
#include "lib/commit/data.h"
#include "lib/commit/txn.h"
#include "lib/format/items/files/dir.h"
#include "lib/format/items/files/file_extent.h"
#include "lib/format/items/files/inode.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define FILES 3u
static const uint32_t extents[] = { 192 << 10, 64 << 10, 4 << 10 };

static uint8_t *bytes_of(unsigned file, uint32_t len)
{
	uint8_t *bytes = malloc(len);
	uint32_t x = 12345 + file * 77 + len;

	if (!bytes)
		exit(99);
	for (uint32_t i = 0; i < len; i++) {
		x = x * 1664525 + 1013904223;
		bytes[i] = (uint8_t)(x >> 24);
	}
	return bytes;
}

/* Inserts a name into the top-level directory. */
static int put_name(struct edit_tree *t, uint64_t inode, const char *name, uint64_t generation,
		    struct btrkit_error *err)
{
	struct {
		struct disk_dir_item d;
		char name[16];
	} __attribute__((packed)) entry = { .d.type = FT_REG };
	struct {
		struct disk_inode_ref d;
		char name[16];
	} __attribute__((packed)) ref = { .d.index = le64_put(inode - FILES_FIRST + 2) };
	const uint16_t len = (uint16_t)strlen(name);
	struct disk_inode_item *top;
	uint8_t *data;
	uint32_t size;
	int ret;

	entry.d.location = (struct disk_key){ le64_put(inode), KEY_INODE_ITEM, le64_put(0) };
	entry.d.transid = le64_put(generation);
	entry.d.name_len = ref.d.name_len = le16_put(len);
	memcpy(entry.name, name, len);
	memcpy(ref.name, name, len);
	ret = edit_insert(t, &KEY(256, KEY_DIR_ITEM, dir_name_hash(name, len)), &entry, (uint32_t)sizeof(entry.d) + len,
			  err);
	if (!ret)
		ret = edit_insert(t, &KEY(256, KEY_DIR_INDEX, inode - FILES_FIRST + 2), &entry,
				  (uint32_t)sizeof(entry.d) + len, err);
	if (!ret)
		ret = edit_insert(t, &KEY(inode, KEY_INODE_REF, 256), &ref, (uint32_t)sizeof(ref.d) + len, err);
	if (!ret)
		ret = edit_bytes(t, &KEY(256, KEY_INODE_ITEM, 0), &data, &size, err);
	if (ret)
		return ret;
	top = (struct disk_inode_item *)data;
	top->size = le64_put(le64_get(top->size) + 2u * len);
	return 0;
}

static int put_inode(struct edit_tree *t, uint64_t inode, uint64_t generation, struct btrkit_error *err)
{
	struct disk_inode_item d = { .generation = le64_put(generation), .transid = le64_put(generation) };
	uint64_t size = 0;

	for (size_t i = 0; i < ARRAY_SIZE(extents); i++)
		size += extents[i];
	d.size = d.nbytes = le64_put(size);
	d.nlink = le32_put(1);
	d.mode = le32_put(S_IFREG | 0644);
	return edit_insert(t, &KEY(inode, KEY_INODE_ITEM, 0), &d, sizeof(d), err);
}

static int put_sums(struct btrkit_txn *txn, const struct range *at, const uint8_t *bytes, struct btrkit_error *err)
{
	const struct btrkit_fs *fs = txn->fs;
	const uint32_t sectors = (uint32_t)(at->length / fs->geometry.sectorsize);
	const uint32_t size = sectors * fs->geometry.csum->size;
	uint8_t *sums = calloc(sectors, fs->geometry.csum->size);
	struct edit_tree *t;
	int ret;

	if (!sums)
		exit(99);
	for (uint32_t i = 0; i < sectors; i++)
		fs->geometry.csum->compute(bytes + i * fs->geometry.sectorsize, fs->geometry.sectorsize,
					sums + i * fs->geometry.csum->size);
	ret = txn_tree(txn, OID_CSUM_TREE, &t, err);
	if (!ret)
		ret = edit_insert(t, &KEY(OID_EXTENT_CSUM, KEY_EXTENT_CSUM, at->start), sums, size, err);
	free(sums);
	return ret;
}

static int put_extent(struct btrkit_txn *txn, uint64_t inode, uint64_t offset, uint32_t len, struct btrkit_error *err)
{
	uint8_t *bytes = bytes_of((unsigned)inode, len);
	struct extent_change change = { .data = true,
					.ref = { .type = KEY_EXTENT_DATA_REF,
						 .root = OID_FS_TREE,
						 .objectid = inode,
						 .offset = offset },
					.add = 1 };
	struct disk_file_extent d = { .generation = le64_put(txn->generation),
				      .ram_bytes = le64_put(len),
				      .num_bytes = le64_put(len),
				      .type = FILE_EXTENT_REG };
	struct edit_tree *t;
	struct range at;
	int ret = txn_alloc_data(txn, len, len, &at, err);

	if (!ret)
		ret = txn_write_data(txn, at.start, bytes, len, err);
	if (!ret)
		ret = put_sums(txn, &at, bytes, err);
	if (!ret)
		ret = txn_tree(txn, OID_FS_TREE, &t, err);
	if (!ret) {
		d.disk_bytenr = le64_put(at.start);
		d.disk_num_bytes = le64_put(at.length);
		ret = edit_insert(t, &KEY(inode, KEY_EXTENT_DATA, offset), &d, sizeof(d), err);
	}
	if (!ret) {
		change.bytenr = at.start;
		change.num_bytes = at.length;
		ret = txn_change_data_ref(txn, &change, err);
	}
	free(bytes);
	return ret;
}

static int put_file(struct btrkit_txn *txn, unsigned number, struct btrkit_error *err)
{
	const uint64_t inode = FILES_FIRST + number;
	struct edit_tree *t;
	uint64_t offset = 0;
	char name[16];
	int ret = txn_tree(txn, OID_FS_TREE, &t, err);

	snprintf(name, sizeof(name), "file-%u", number);
	if (!ret)
		ret = put_inode(t, inode, txn->generation, err);
	if (!ret)
		ret = put_name(t, inode, name, txn->generation, err);
	for (size_t i = 0; !ret && i < ARRAY_SIZE(extents); i++) {
		ret = put_extent(txn, inode, offset, extents[i], err);
		offset += extents[i];
	}
	return ret;
}

int files_make(struct btrkit_fs *fs, struct btrkit_error *err)
{
	struct btrkit_txn *txn;
	int ret = btrkit_txn_start(fs, &txn, err);

	if (ret)
		return ret;
	for (unsigned i = 0; !ret && i < FILES; i++)
		ret = put_file(txn, i, err);
	if (!ret)
		return btrkit_txn_commit(txn, NULL, err);
	btrkit_txn_abort(txn);
	return ret;
}
