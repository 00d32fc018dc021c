// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Free and allocate extents of a preallocated file in transactions, for free-space-kernel.py:
 *
 *   free-space-edit IMAGE INODE STEP...     in tree 5
 *
 * Each step is a transaction: "second" frees every second extent, "free:N" frees N percent, chosen at random, "add:N"
 * adds N extents of one to eight sectors, "both:N" does both. Prints counts, one per line.
 */
#include <btrkit/filesystem.h>
#include <btrkit/io.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/commit/txn.h"
#include "lib/format/items/files/file_extent.h"
#include "lib/format/items/files/inode.h"
#include "tests/random.h"

struct file {
	struct btrkit_txn *txn;
	struct edit_tree *tree;
	uint64_t inode;
	struct piece {
		uint64_t at;
		struct range extent;
	} * pieces;
	size_t n, room;
	uint64_t freed, added, seed;
};

static struct btrkit_error err = BTRKIT_ERROR_INIT;

static void must(int ret, const char *what)
{
	char line[512];

	if (ret < 0) {
		fprintf(stderr, "free-space-edit: %s: %s\n", what, btrkit_error_format(&err, line, sizeof(line)));
		exit(1);
	}
}

static uint64_t roll(struct file *f, uint64_t below)
{
	random_step(&f->seed);
	return (f->seed >> 33) % below;
}

static void keep(struct file *f, uint64_t at, const struct range *extent)
{
	if (f->n == f->room) {
		f->room = 2 * f->room + 1024;
		f->pieces = reallocarray(f->pieces, f->room, sizeof(*f->pieces));
		if (!f->pieces)
			exit(1);
	}
	f->pieces[f->n++] = (struct piece){ at, *extent };
}

static void read_pieces(struct file *f)
{
	struct cursor *c = &f->tree->c;
	struct file_extent x;
	int ret;

	f->n = 0;
	for (ret = cursor_seek(c, &KEY(f->inode, KEY_EXTENT_DATA, 0), &err);
	     !ret && c->item.key.objectid == f->inode && c->item.key.type == KEY_EXTENT_DATA;
	     ret = cursor_next(c, &err)) {
		must(file_extent_decode(&c->fs->items, &c->item, &x, &err), "an extent");
		if (x.type == FILE_EXTENT_PREALLOC && !x.offset && x.num_bytes == x.disk_num_bytes)
			keep(f, c->item.key.offset, &(struct range){ x.disk_bytenr, x.disk_num_bytes });
	}
	must(ret, "reading");
}

static void change_ref(struct file *f, const struct piece *p, int32_t add)
{
	const struct extent_change change = {
		.bytenr = p->extent.start,
		.num_bytes = p->extent.length,
		.data = true,
		.ref = { .type = KEY_EXTENT_DATA_REF, .root = OID_FS_TREE, .objectid = f->inode, .offset = p->at },
		.add = add,
	};

	must(txn_change_data_ref(f->txn, &change, &err), "a reference");
}

static void change_bytes(struct file *f, uint64_t more)
{
	struct disk_inode_item *inode;
	uint8_t *data;
	uint32_t size;

	must(edit_bytes(f->tree, &KEY(f->inode, KEY_INODE_ITEM, 0), &data, &size, &err), "the inode");
	inode = (struct disk_inode_item *)data;
	inode->nbytes = le64_put(le64_get(inode->nbytes) + more);
}

static void free_piece(struct file *f, const struct piece *p)
{
	must(edit_delete(f->tree, &KEY(f->inode, KEY_EXTENT_DATA, p->at), &err), "deleting");
	change_ref(f, p, -1);
	change_bytes(f, -p->extent.length);
	f->freed++;
}

static void add_piece(struct file *f, uint64_t at)
{
	const uint64_t size = (1 + roll(f, 8)) * f->txn->fs->geometry.sectorsize;
	struct disk_file_extent d = { .generation = le64_put(f->txn->generation), .type = FILE_EXTENT_PREALLOC };
	struct piece p = { .at = at };

	must(txn_alloc_data(f->txn, f->txn->fs->geometry.sectorsize, size, &p.extent, &err), "allocating");
	d.disk_bytenr = le64_put(p.extent.start);
	d.ram_bytes = d.disk_num_bytes = d.num_bytes = le64_put(p.extent.length);
	must(edit_insert(f->tree, &KEY(f->inode, KEY_EXTENT_DATA, at), &d, sizeof(d), &err), "inserting");
	change_ref(f, &p, 1);
	change_bytes(f, p.extent.length);
	f->added++;
}

static void add_pieces(struct file *f, uint64_t n)
{
	uint64_t at = f->n ? f->pieces[f->n - 1].at + f->pieces[f->n - 1].extent.length : 0;

	for (uint64_t i = 0; i < n; i++, at += 8 * f->txn->fs->geometry.sectorsize)
		add_piece(f, at);
}

static void step(struct file *f, const char *what)
{
	const char *colon = strchr(what, ':');
	const uint64_t n = colon ? strtoull(colon + 1, NULL, 10) : 0;
	const bool second = !strcmp(what, "second"), frees = !strncmp(what, "free:", 5),
		   both = !strncmp(what, "both:", 5);

	must(txn_tree(f->txn, OID_FS_TREE, &f->tree, &err), "tree 5");
	read_pieces(f);
	for (size_t i = 0; i < f->n; i++)
		if ((second && i % 2) || ((frees || both) && roll(f, 100) < n))
			free_piece(f, &f->pieces[i]);
	if (both || !strncmp(what, "add:", 4))
		add_pieces(f, n);
}

int main(int argc, char **argv)
{
	const struct btrkit_open_options opts = { .flags = BTRKIT_OPEN_WRITE };
	struct btrkit_write_stats stats;
	struct file f = { .seed = 1 };
	struct btrkit_io *io;
	struct btrkit_fs *fs;

	if (argc < 4)
		return 2;
	must(btrkit_io_open(argv[1], BTRKIT_IO_WRITE | BTRKIT_IO_EXCLUSIVE, &io, &err), argv[1]);
	must(btrkit_fs_open(&io, 1, &opts, &fs, &err), argv[1]);
	f.inode = strtoull(argv[2], NULL, 10);
	for (int i = 3; i < argc; i++) {
		must(btrkit_txn_start(fs, &f.txn, &err), "starting");
		step(&f, argv[i]);
		must(btrkit_txn_commit(f.txn, NULL, &err), argv[i]);
	}
	btrkit_fs_get_write_stats(fs, &stats);
	printf("extents freed %" PRIu64 "\nextents allocated %" PRIu64 "\ncommits %" PRIu64
	       "\nchanges of free space %" PRIu64 "\nchanges of form %" PRIu64 "\nmicroseconds of free space %" PRIu64
	       "\nmicroseconds of commits %" PRIu64 "\n",
	       f.freed, f.added, stats.commits, stats.free_space_ranges, stats.free_space_conversions,
	       stats.free_space_ns / 1000, stats.commit_ns / 1000);
	free(f.pieces);
	btrkit_fs_close(fs);
	return 0;
}
