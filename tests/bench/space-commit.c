// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Dirty hundreds of block groups: in transactions, extents in the first half of every GiB of all files are freed, then
 * allocated again. Prints how long the accounting of free space took, and how much of that was in the commits.
 *
 *	space-commit DEVICE EXTENTS [early]
 *
 * EXTENTS: number per transaction; 0: all in one. early: run delayed references before each commit, as Linux does
 * before the part of a commit that blocks other writers.
 */
#include <btrkit/btrkit.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/commit/settle.h"
#include "lib/commit/txn.h"
#include "lib/format/feature_bits.h"
#include "lib/format/items/files/file_extent.h"
#include "lib/format/items/files/inode.h"
#include "lib/reserve/reserve.h"

#define SMALLEST (64ull << 20)

struct place {
	struct btrkit_key key;
	uint64_t bytenr, length;
};

struct work {
	struct btrkit_fs *fs;
	struct btrkit_txn *txn;
	struct edit_tree *t;
	struct place *places;
	size_t n, room, per_txn;
	bool early;
	uint64_t groups, dirtied; /* in the last transaction; sum over all transactions */
	uint64_t accounting_early;
};

static struct btrkit_error err;

static void must(int ret, const char *what)
{
	char line[512];

	if (!ret)
		return;
	fprintf(stderr, "space-commit: %s: %d, %s\n", what, ret, btrkit_error_format(&err, line, sizeof(line)));
	exit(1);
}

static void add_place(struct work *w, const struct btrkit_key *key, const struct file_extent *fe)
{
	if (w->n == w->room) {
		w->room = w->room ? 2 * w->room : 1024;
		w->places = realloc(w->places, w->room * sizeof(*w->places));
		if (!w->places)
			must(-ENOMEM, "memory");
	}
	w->places[w->n++] = (struct place){ *key, fe->disk_bytenr, fe->disk_num_bytes };
}

static void find_places(struct work *w)
{
	struct tree_root root;
	struct file_extent fe;
	struct cursor c;
	int ret;

	must(fs_find_root(w->fs, OID_FS_TREE, &root, NULL, &err), "tree of files");
	cursor_init(&c, w->fs, &root);
	for (ret = cursor_seek(&c, &KEY(0, 0, 0), &err); !ret; ret = cursor_next(&c, &err)) {
		if (c.item.key.type != KEY_EXTENT_DATA)
			continue;
		must(file_extent_decode(&w->fs->items, &c.item, &fe, &err), "extent");
		if (fe.type == FILE_EXTENT_PREALLOC && fe.num_bytes == fe.disk_num_bytes && fe.num_bytes >= SMALLEST &&
		    c.item.key.offset % (1u << 30) < 1u << 29)
			add_place(w, &c.item.key, &fe);
	}
	cursor_release(&c);
	must(ret < 0 ? ret : 0, "tree of files");
}

static void change_ref(struct work *w, const struct place *p, int add)
{
	const struct extent_change change = {
		.bytenr = p->bytenr,
		.num_bytes = p->length,
		.data = true,
		.ref = { .type = KEY_EXTENT_DATA_REF,
			 .root = OID_FS_TREE,
			 .objectid = p->key.objectid,
			 .offset = p->key.offset },
		.add = add,
	};
	const struct space_group *g = space_group_of(w->txn->space, p->bytenr);

	if (g && g->item.start != w->groups) {
		w->groups = g->item.start;
		w->dirtied++;
	}
	must(txn_change_data_ref(w->txn, &change, &err), "reference");
}

static void change_nbytes(struct work *w, uint64_t inode, int64_t by)
{
	struct disk_inode_item *d;
	uint8_t *data;
	uint32_t size;

	must(edit_bytes(w->t, &KEY(inode, KEY_INODE_ITEM, 0), &data, &size, &err), "inode");
	d = (struct disk_inode_item *)data;
	d->nbytes = le64_put(le64_get(d->nbytes) + (uint64_t)by);
}

static void free_place(struct work *w, struct place *p)
{
	must(edit_delete(w->t, &p->key, &err), "edit_delete");
	change_ref(w, p, -1);
}

static void fill_place(struct work *w, struct place *p)
{
	struct disk_file_extent d = { .type = FILE_EXTENT_PREALLOC };
	struct range r;

	must(txn_alloc_data(w->txn, p->length, p->length, &r, &err), "txn_alloc_data");
	p->bytenr = r.start;
	d.generation = le64_put(w->txn->generation);
	d.disk_bytenr = le64_put(r.start);
	d.ram_bytes = d.disk_num_bytes = d.num_bytes = le64_put(r.length);
	must(edit_insert(w->t, &p->key, &d, sizeof(d), &err), "edit_insert");
	change_ref(w, p, 1);
}

static void transact(struct work *w, struct place *places, size_t n, bool freeing)
{
	struct btrkit_write_stats before, after;
	int64_t nbytes = 0;

	btrkit_fs_get_write_stats(w->fs, &before);
	must(btrkit_txn_start(w->fs, &w->txn, &err), "btrkit_txn_start");
	must(txn_tree(w->txn, OID_FS_TREE, &w->t, &err), "txn_tree");
	w->groups = 0;
	for (size_t i = 0; i < n; i++) {
		if (i % 256 == 0)
			must(txn_reserve(w->txn, 512, &err), "txn_reserve");
		(freeing ? free_place : fill_place)(w, &places[i]);
		nbytes += freeing ? -(int64_t)places[i].length : (int64_t)places[i].length;
		if (i + 1 == n || places[i + 1].key.objectid != places[i].key.objectid) {
			change_nbytes(w, places[i].key.objectid, nbytes);
			nbytes = 0;
		}
	}
	if (w->early)
		must(txn_run_refs(w->txn, &err), "txn_run_refs");
	btrkit_fs_get_write_stats(w->fs, &after);
	w->accounting_early += after.free_space_ns - before.free_space_ns;
	must(btrkit_txn_commit(w->txn, NULL, &err), "btrkit_txn_commit");
}

static void run(struct work *w, bool freeing)
{
	struct btrkit_write_stats before, after;
	const size_t step = w->per_txn ? w->per_txn : w->n;
	uint64_t all, commits;

	w->dirtied = w->accounting_early = 0;
	btrkit_fs_get_write_stats(w->fs, &before);
	for (size_t i = 0; i < w->n; i += step)
		transact(w, w->places + i, w->n - i < step ? w->n - i : step, freeing);
	btrkit_fs_get_write_stats(w->fs, &after);
	commits = after.commits - before.commits;
	all = after.free_space_ns - before.free_space_ns;
	printf("%s: %" PRIu64 " transactions of %zu extents, %.0f groups dirtied in each; per transaction: accounting "
	       "%.3f ms, in the commit %.3f ms, commit %.1f ms; per group %.0f ns\n",
	       freeing ? "freed" : "allocated", commits, step, (double)w->dirtied / (double)commits,
	       (double)all / 1e6 / (double)commits, (double)(all - w->accounting_early) / 1e6 / (double)commits,
	       (double)(after.commit_ns - before.commit_ns) / 1e6 / (double)commits, (double)all / (double)w->dirtied);
}

int main(int argc, char **argv)
{
	struct btrkit_open_options opts = BTRKIT_OPEN_OPTIONS_INIT;
	struct work w = { 0 };
	struct btrkit_io *io;

	if (argc < 3 || argc > 4 || (argc == 4 && strcmp(argv[3], "early"))) {
		fprintf(stderr, "usage: space-commit DEVICE EXTENTS [early]\n");
		return 2;
	}
	w.per_txn = strtoull(argv[2], NULL, 10);
	w.early = argc == 4;
	opts.flags = BTRKIT_OPEN_WRITE;
	must(btrkit_io_open(argv[1], BTRKIT_IO_WRITE | BTRKIT_IO_EXCLUSIVE, &io, &err), "open");
	must(btrkit_fs_open(&io, 1, &opts, &w.fs, &err), "open");
	if (!(w.fs->super.incompat & INCOMPAT_NO_HOLES)) {
		fprintf(stderr, "space-commit: needs a filesystem with no-holes\n");
		return 1;
	}
	find_places(&w);
	if (!w.n) {
		fprintf(stderr, "space-commit: no extent to free\n");
		return 1;
	}
	run(&w, true);
	run(&w, false);
	btrkit_fs_close(w.fs);
	free(w.places);
	return 0;
}
