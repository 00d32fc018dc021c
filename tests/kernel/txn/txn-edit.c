// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Random edits in transactions: xattrs are added and removed; extents are cloned to the end of a file in the same
 * subvolume, written there, or removed from files, in subvolumes that share blocks and data with others; chunks are
 * created and removed. After every commit all structures are checked against each other. Prints each committed change
 * on a line, for comparison with what Linux reads afterwards:
 *
 *     X ROOT INODE NAME VALUE                       an xattr was set
 *     x ROOT INODE NAME                             an xattr was removed
 *     C ROOT INODE OFFSET LENGTH INODE OFFSET       the first range was cloned from the second
 *     W ROOT INODE OFFSET LENGTH BYTE               written
 *     P ROOT INODE OFFSET LENGTH                    replaced by a hole
 *     S COMMITS COPIES REFERENCES NETTED MADE REMOVED       statistics, and chunks created and removed
 *
 * Usage: txn-edit SEED TRANSACTIONS EDITS DEVICE...
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/commit/data.h"
#include "lib/commit/settle.h"
#include "lib/commit/txn.h"
#include "lib/format/feature_bits.h"
#include "lib/format/items/files/dir.h"
#include "lib/format/items/files/file_extent.h"
#include "lib/format/items/files/inode.h"
#include "lib/format/items/root.h"
#include "lib/reserve/reserve.h"
#include "lib/space/chunk.h"
#include "tests/audit/audit.h"
#include "tests/random.h"

#define DEVICES_MAX 8
#define TREES_MAX 64
#define INODES_MAX 4096
#define EXTENTS_MAX 4096
#define SIZE_MAX_OF_FILE (32u << 20)
#define NODATASUM 1u

struct file_place {
	struct btrkit_key key;
	struct file_extent extent;
};

struct edit {
	struct btrkit_fs *fs;
	struct btrkit_txn *txn;
	struct edit_tree *t;
	struct inode_item inodes[INODES_MAX];
	uint64_t numbers[INODES_MAX];
	size_t num_inodes;
	char *said; /* lines of the current transaction */
	size_t said_len;
	FILE *say;
};

static uint64_t random_state;
static unsigned chunks_made, chunks_removed;
static struct btrkit_error error = BTRKIT_ERROR_INIT;

static uint32_t rnd(uint32_t n)
{
	random_step(&random_state);
	return (uint32_t)((random_state >> 33) % n);
}

static void check(int ret, const char *what)
{
	char line[512];

	if (ret) {
		fprintf(stderr, "txn-edit: %s: %d: %s\n", what, ret, btrkit_error_format(&error, line, sizeof(line)));
		exit(1);
	}
}

/* Lists the file trees that are not deleted. */
static size_t list_trees(struct btrkit_fs *fs, uint64_t *ids)
{
	struct cursor c;
	size_t n = 0;
	int ret;

	cursor_init(&c, fs, &fs->root_tree);
	for (ret = cursor_seek(&c, &KEY(0, 0, 0), &error); !ret; ret = cursor_next(&c, &error)) {
		struct root_item root;

		if (c.item.key.type != KEY_ROOT_ITEM || !oid_is_file_tree(c.item.key.objectid))
			continue;
		check(root_item_decode(&fs->items, &c.item, &root, &error), "root item");
		if (root.refs && n < TREES_MAX)
			ids[n++] = c.item.key.objectid;
	}
	check(ret < 0 ? ret : 0, "root tree");
	cursor_release(&c);
	return n;
}

static void list_inodes(struct edit *e)
{
	struct cursor *c = &e->t->c;
	int ret;

	e->num_inodes = 0;
	for (ret = cursor_seek(c, &KEY(0, 0, 0), &error); !ret; ret = cursor_next(c, &error)) {
		if (c->item.key.type != KEY_INODE_ITEM || e->num_inodes == INODES_MAX)
			continue;
		check(inode_item_decode(&e->fs->items, &c->item, &e->inodes[e->num_inodes], &error), "inode");
		e->numbers[e->num_inodes++] = c->item.key.objectid;
	}
	check(ret < 0 ? ret : 0, "file tree");
}

/* Lists the extents of an inode, including inline ones. */
static size_t list_extents(struct edit *e, uint64_t inode, struct file_place *places)
{
	struct cursor *c = &e->t->c;
	size_t n = 0;
	int ret;

	for (ret = cursor_seek(c, &KEY(inode, KEY_EXTENT_DATA, 0), &error);
	     !ret && c->item.key.objectid == inode && c->item.key.type == KEY_EXTENT_DATA && n < EXTENTS_MAX;
	     ret = cursor_next(c, &error)) {
		places[n].key = c->item.key;
		check(file_extent_decode(&e->fs->items, &c->item, &places[n].extent, &error), "extent");
		n++;
	}
	check(ret < 0 ? ret : 0, "extents");
	return n;
}

static void put_inode(struct edit *e, size_t i)
{
	const struct btrkit_key key = KEY(e->numbers[i], KEY_INODE_ITEM, 0);
	struct disk_inode_item *d;
	uint8_t *data;
	uint32_t size;

	check(edit_bytes(e->t, &key, &data, &size, &error), "inode");
	d = (struct disk_inode_item *)data;
	d->size = le64_put(e->inodes[i].size);
	d->nbytes = le64_put(e->inodes[i].nbytes);
	d->transid = le64_put(e->txn->generation);
}

static void change_ref(struct edit *e, const struct file_place *p, int add)
{
	const struct extent_change change = {
		.bytenr = p->extent.disk_bytenr,
		.num_bytes = p->extent.disk_num_bytes,
		.data = true,
		.ref = { .type = KEY_EXTENT_DATA_REF,
			 .root = e->t->c.root.id,
			 .objectid = p->key.objectid,
			 .offset = p->key.offset - p->extent.offset },
		.add = add,
	};

	check(txn_change_data_ref(e->txn, &change, &error), "reference");
}

static void toggle_xattr(struct edit *e, size_t i)
{
	struct {
		struct disk_dir_item d;
		char text[64];
	} __attribute__((packed)) item = { .d = { .type = FT_XATTR } };
	struct btrkit_key key = KEY(e->numbers[i], KEY_XATTR_ITEM, 0);
	char name[32], value[32];
	int ret;

	if (!S_ISREG(e->inodes[i].mode) && !S_ISDIR(e->inodes[i].mode))
		return;
	snprintf(name, sizeof(name), "user.btrkit%u", rnd(12));
	snprintf(value, sizeof(value), "%u-%" PRIu64, rnd(1000000), e->txn->generation);
	key.offset = dir_name_hash(name, strlen(name));
	ret = cursor_find(&e->t->c, &key, &error);
	check(ret < 0 ? ret : 0, "xattr");
	if (!ret) {
		check(edit_delete(e->t, &key, &error), "xattr");
		fprintf(e->say, "x %" PRIu64 " %" PRIu64 " %s\n", e->t->c.root.id, e->numbers[i], name);
	} else {
		item.d.transid = le64_put(e->txn->generation);
		item.d.name_len = le16_put((uint16_t)strlen(name));
		item.d.data_len = le16_put((uint16_t)strlen(value));
		snprintf(item.text, sizeof(item.text), "%s%s", name, value);
		check(edit_insert(e->t, &key, &item, (uint32_t)(sizeof(item.d) + strlen(item.text)), &error), "xattr");
		fprintf(e->say, "X %" PRIu64 " %" PRIu64 " %s %s\n", e->t->c.root.id, e->numbers[i], name, value);
	}
	put_inode(e, i);
}

/*
 * Where to append to a file; UINT64_MAX: impossible. The rest of the last sector may contain anything, and must not
 * become visible.
 */
static uint64_t end_of_file(const struct edit *e, size_t i, const struct file_place *places, size_t n)
{
	uint64_t end = e->inodes[i].size;

	for (size_t j = 0; j < n; j++) {
		if (places[j].extent.type == FILE_EXTENT_INLINE)
			return UINT64_MAX;
		if (places[j].key.offset + places[j].extent.num_bytes > end)
			end = places[j].key.offset + places[j].extent.num_bytes;
	}
	/*
	 * Without NO_HOLES every hole has an item, but the gap between the end of a file and preallocation after it has
	 * none.
	 */
	if (!(e->fs->super.incompat & INCOMPAT_NO_HOLES) && end != e->inodes[i].size)
		return UINT64_MAX;
	if (!S_ISREG(e->inodes[i].mode) || e->inodes[i].size % e->fs->geometry.sectorsize || end > SIZE_MAX_OF_FILE)
		return UINT64_MAX;
	return end;
}

/* Appends an extent to an inode. */
static void append_extent(struct edit *e, size_t i, struct file_place *p)
{
	struct disk_file_extent d = {
		.generation = le64_put(e->txn->generation),
		.ram_bytes = le64_put(p->extent.ram_bytes),
		.compression = p->extent.compression,
		.type = p->extent.type,
		.disk_bytenr = le64_put(p->extent.disk_bytenr),
		.disk_num_bytes = le64_put(p->extent.disk_num_bytes),
		.offset = le64_put(p->extent.offset),
		.num_bytes = le64_put(p->extent.num_bytes),
	};

	check(edit_insert(e->t, &p->key, &d, sizeof(d), &error), "extent");
	change_ref(e, p, 1);
	e->inodes[i].size = p->key.offset + p->extent.num_bytes;
	e->inodes[i].nbytes += p->extent.num_bytes;
	put_inode(e, i);
}

static struct file_place *pick(struct file_place *places, size_t n)
{
	struct file_place *p = n ? &places[rnd((uint32_t)n)] : NULL;

	return p && p->extent.type != FILE_EXTENT_INLINE && p->extent.disk_bytenr ? p : NULL;
}

static void clone_extent(struct edit *e, size_t from, size_t to)
{
	static struct file_place places[EXTENTS_MAX];
	struct file_place *source = pick(places, list_extents(e, e->numbers[from], places)), p;
	uint64_t end;

	if (!source || (e->inodes[from].flags ^ e->inodes[to].flags) & NODATASUM)
		return;
	p = *source;
	if (p.key.offset + p.extent.num_bytes > e->inodes[from].size)
		return;
	end = end_of_file(e, to, places, list_extents(e, e->numbers[to], places));
	if (end == UINT64_MAX)
		return;
	fprintf(e->say, "C %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", e->t->c.root.id,
		e->numbers[to], end, p.extent.num_bytes, e->numbers[from], p.key.offset);
	p.key = KEY(e->numbers[to], KEY_EXTENT_DATA, end);
	append_extent(e, to, &p);
}

static void put_data(struct edit *e, const struct range *r, uint8_t byte)
{
	const uint32_t sector = e->fs->geometry.sectorsize, csum = e->fs->geometry.csum->size;
	const uint32_t n = (uint32_t)(r->length / sector);
	uint8_t *data = malloc(r->length), *sums = malloc((size_t)n * csum);
	struct edit_tree *t = NULL;

	if (!data || !sums)
		exit(1);
	memset(data, byte, r->length);
	check(txn_write_data(e->txn, r->start, data, r->length, &error), "data");
	for (uint32_t i = 0; i < n; i++)
		e->fs->geometry.csum->compute(data + (size_t)i * sector, sector, sums + (size_t)i * csum);
	check(txn_tree(e->txn, OID_CSUM_TREE, &t, &error), "checksum tree");
	check(edit_insert(t, &KEY(OID_EXTENT_CSUM, KEY_EXTENT_CSUM, r->start), sums, n * csum, &error), "checksums");
	free(data);
	free(sums);
}

static void write_extent(struct edit *e, size_t i)
{
	static struct file_place places[EXTENTS_MAX];
	const uint64_t sector = e->fs->geometry.sectorsize;
	const uint64_t end = end_of_file(e, i, places, list_extents(e, e->numbers[i], places));
	const uint8_t byte = (uint8_t)(1 + rnd(255));
	struct file_place p = { .extent = { .type = FILE_EXTENT_REG } };
	struct range r;
	int ret;

	if (end == UINT64_MAX || e->inodes[i].flags & NODATASUM)
		return;
	ret = txn_alloc_data(e->txn, sector, sector * (1 + rnd(32)), &r, &error);
	if (ret == -ENOSPC)
		return;
	check(ret, "room for data");
	/* Some are never used. */
	if (!rnd(8))
		return;
	p.key = KEY(e->numbers[i], KEY_EXTENT_DATA, end);
	p.extent.disk_bytenr = r.start;
	p.extent.disk_num_bytes = p.extent.ram_bytes = p.extent.num_bytes = r.length;
	append_extent(e, i, &p);
	put_data(e, &r, byte);
	fprintf(e->say, "W %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %u\n", e->t->c.root.id, e->numbers[i], end,
		r.length, byte);
}

static void punch_extent(struct edit *e, size_t i)
{
	static struct file_place places[EXTENTS_MAX];
	struct file_place *p = pick(places, list_extents(e, e->numbers[i], places));
	struct disk_file_extent hole = { .generation = le64_put(e->txn->generation), .type = FILE_EXTENT_REG };

	if (!p)
		return;
	if (e->fs->super.incompat & INCOMPAT_NO_HOLES) {
		check(edit_delete(e->t, &p->key, &error), "extent");
	} else {
		hole.ram_bytes = hole.num_bytes = le64_put(p->extent.num_bytes);
		check(edit_replace(e->t, &p->key, &hole, sizeof(hole), &error), "extent");
	}
	change_ref(e, p, -1);
	e->inodes[i].nbytes -= p->extent.num_bytes;
	put_inode(e, i);
	fprintf(e->say, "P %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", e->t->c.root.id, e->numbers[i],
		p->key.offset, p->extent.num_bytes);
}

static void one_edit(struct edit *e)
{
	const size_t i = rnd((uint32_t)e->num_inodes), j = rnd((uint32_t)e->num_inodes);

	switch (rnd(8)) {
	case 0:
	case 1:
	case 2:
		toggle_xattr(e, i);
		break;
	case 3:
	case 4:
		clone_extent(e, i, j);
		break;
	case 5:
	case 6:
		punch_extent(e, i);
		break;
	default:
		write_extent(e, i);
	}
}

/* Reserves more space than there is, so that a chunk is created; removes an empty one. */
static void change_chunks(struct edit *e)
{
	struct space *s = e->txn->space;
	uint64_t pieces;
	int ret = 0;

	if (rnd(2)) {
		check(space_count(s, BG_METADATA, e->fs->geometry.nodesize, UINT64_MAX, &pieces, &error), "count");
		ret = txn_reserve(e->txn, pieces, &error);
		check(ret == -ENOSPC ? 0 : ret, "reserve");
		chunks_made += !ret;
		return;
	}
	for (size_t i = space_num_groups(s); i--;) {
		ret = chunk_remove(s, space_group_at(s, i), &e->txn->super, &error);
		check(ret == -EBUSY ? 0 : ret, "chunk");
		if (!ret)
			break;
	}
	chunks_removed += !ret;
}

static void one_transaction(struct edit *e, unsigned edits)
{
	uint64_t ids[TREES_MAX];
	size_t n = list_trees(e->fs, ids);

	e->say = open_memstream(&e->said, &e->said_len);
	check(btrkit_txn_start(e->fs, &e->txn, &error), "start");
	for (unsigned tree = 0; tree < 1 + rnd(3); tree++) {
		check(txn_tree(e->txn, ids[rnd((uint32_t)n)], &e->t, &error), "tree");
		list_inodes(e);
		for (unsigned i = 0; i < edits && e->num_inodes; i++)
			one_edit(e);
		if (!rnd(3))
			check(txn_run_refs(e->txn, &error), "references");
		if (!rnd(4))
			change_chunks(e);
	}
	fclose(e->say);
	if (rnd(5)) {
		check(btrkit_txn_commit(e->txn, NULL, &error), "commit");
		fputs(e->said, stdout);
	} else {
		btrkit_txn_abort(e->txn);
	}
	free(e->said);
	check(audit(e->fs, AUDIT_LEFTOVERS, NULL, &error), "audit");
}

int main(int argc, char **argv)
{
	struct btrkit_open_options opts = BTRKIT_OPEN_OPTIONS_INIT;
	struct btrkit_write_stats stats;
	struct edit *e = calloc(1, sizeof(*e));
	struct btrkit_io *devices[DEVICES_MAX];
	size_t n = 0;

	if (argc < 5 || argc > 4 + DEVICES_MAX || !e)
		return 2;
	opts.flags = BTRKIT_OPEN_WRITE;
	random_state = strtoull(argv[1], NULL, 10);
	for (; argv[4 + n]; n++)
		check(btrkit_io_open(argv[4 + n], BTRKIT_IO_WRITE | BTRKIT_IO_EXCLUSIVE, &devices[n], &error),
		      "device");
	check(btrkit_fs_open(devices, n, &opts, &e->fs, &error), "open");
	for (int i = 0; i < atoi(argv[2]); i++)
		one_transaction(e, (unsigned)atoi(argv[3]));
	btrkit_fs_get_write_stats(e->fs, &stats);
	printf("S %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %u %u\n", stats.commits, stats.nodes_copied,
	       stats.refs_queued, stats.refs_netted, chunks_made, chunks_removed);
	btrkit_fs_close(e->fs);
	free(e);
	return 0;
}
