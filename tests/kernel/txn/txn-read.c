// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Changes a filesystem at random in one transaction, which is committed and continued now and then. Before the last
 * commit, everything is read through the transaction: a line for each name is printed, with the path, mode, links,
 * owner, group, size and time of the inode, and its attributes in hex; contents are written to files in DIR that are
 * named by the inode number.
 *
 *	txn-read IMAGE DIR SEED
 */
#include <btrkit/btrkit.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/random.h"

#define TOP_LEVEL BTRKIT_TOP_LEVEL
#define TOP BTRKIT_TOP_INODE
#define FILES 60u
#define STEPS 900u
#define BYTES (2u << 20)

struct work {
	struct btrkit_txn *txn;
	const char *folder;
	uint64_t random, dirs[4], files[FILES];
	unsigned names;
	char path[4096];
	size_t len;
};

static struct btrkit_error err;
static uint8_t bytes[BYTES], seen[BYTES];

static void must(int ret, const char *what)
{
	char line[BTRKIT_ERROR_LINE];

	if (!ret)
		return;
	fprintf(stderr, "txn-read: %s: %s\n", what, btrkit_error_format(&err, line, sizeof(line)));
	exit(1);
}

static unsigned draw(struct work *w, unsigned below)
{
	random_step(&w->random);
	return (unsigned)((w->random >> 33) % below);
}

static uint64_t create(struct work *w, uint64_t dir, const char *name, uint32_t mode)
{
	const struct btrkit_new_inode what = { .mode = mode, .target = S_ISLNK(mode) ? "a/target" : NULL };
	uint64_t inode;

	must(btrkit_txn_create(w->txn, TOP_LEVEL, dir, name, strlen(name), &what, &inode, &err), "create");
	return inode;
}

static void change_file(struct work *w, uint64_t inode)
{
	const uint64_t at = draw(w, BYTES / 2), len = 1 + draw(w, draw(w, 2) ? 300000 : 3000);
	const struct btrkit_attr attr = { .mask = BTRKIT_ATTR_MODE | BTRKIT_ATTR_UID | BTRKIT_ATTR_MTIME,
					  .mode = draw(w, 01000),
					  .uid = draw(w, 2000),
					  .mtime = { draw(w, 2000000000), 0 } };
	struct btrkit_write_options how = BTRKIT_WRITE_OPTIONS_INIT;
	char name[32];

	switch (draw(w, 7)) {
	case 0:
		how.compression = BTRKIT_COMPRESSION_ZLIB;
		/* fall through */
	case 1:
		must(btrkit_txn_write(w->txn, TOP_LEVEL, inode, at, bytes + at, len, &how, &err), "write");
		break;
	case 2:
		must(btrkit_txn_truncate(w->txn, TOP_LEVEL, inode, at, &err), "truncate");
		break;
	case 3:
		must(btrkit_txn_punch(w->txn, TOP_LEVEL, inode, at, len, &err), "punch");
		break;
	case 4:
		must(btrkit_txn_prealloc(w->txn, TOP_LEVEL, inode, at, len, 0, &err), "prealloc");
		break;
	case 5:
		must(btrkit_txn_set_attr(w->txn, TOP_LEVEL, inode, &attr, &err), "attributes");
		break;
	default:
		snprintf(name, sizeof(name), "user.%u", draw(w, 9));
		must(btrkit_txn_xattr_set(w->txn, TOP_LEVEL, inode, name, bytes + at, len % 500, 0, &err), "xattr");
	}
}

static void step(struct work *w)
{
	const unsigned i = draw(w, FILES);
	const uint64_t dir = w->dirs[i % 4];
	char name[32], other[32];
	const struct btrkit_place from = { TOP_LEVEL, dir, name, (size_t)snprintf(name, sizeof(name), "file-%u", i) };
	const struct btrkit_place to = { TOP_LEVEL, w->dirs[draw(w, 4)], other,
					 (size_t)snprintf(other, sizeof(other), "name-%u", w->names++) };

	if (!w->files[i])
		w->files[i] = create(w, dir, name, i % 7 ? S_IFREG | 0644 : S_IFLNK | 0777);
	else if (draw(w, 8))
		i % 7 ? change_file(w, w->files[i]) : (void)0;
	else if (draw(w, 2))
		must(btrkit_txn_link(w->txn, TOP_LEVEL, w->files[i], &to, &err), "link");
	else if (draw(w, 2)) {
		must(btrkit_txn_rename(w->txn, &from, &to, 0, &err), "rename");
		w->files[i] = 0;
	} else {
		must(btrkit_txn_unlink(w->txn, TOP_LEVEL, dir, name, from.len, BTRKIT_UNLINK_FILE, &err), "unlink");
		w->files[i] = 0;
	}
}

static int print_xattr(void *ctx, const struct btrkit_xattr *x)
{
	(void)ctx;
	printf(" %.*s=", (int)x->name_len, x->name);
	for (size_t i = 0; i < x->value_len; i++)
		printf("%02x", ((const uint8_t *)x->value)[i]);
	return 0;
}

static void write_contents(struct work *w, const struct btrkit_inode *i)
{
	char path[4200];
	size_t got;
	FILE *f;

	memset(seen, 0xaa, sizeof(seen));
	must(btrkit_txn_read(w->txn, i->root, i->inode, 0, seen, sizeof(seen), &got, &err), "read");
	snprintf(path, sizeof(path), "%s/%" PRIu64, w->folder, i->inode);
	f = fopen(path, "wb");
	if (!f || fwrite(seen, 1, got, f) != got || fclose(f)) {
		perror(path);
		exit(1);
	}
}

static int print_entry(void *ctx, const struct btrkit_dir_entry *e)
{
	struct work *w = ctx;
	const size_t before = w->len;
	struct btrkit_inode i;

	w->len += (size_t)snprintf(w->path + w->len, sizeof(w->path) - w->len, "/%.*s", (int)e->name_len, e->name);
	must(btrkit_txn_inode_get(w->txn, e->root, e->inode, &i, &err), "inode");
	printf("%s %" PRIu64 " %o %u %u %u %" PRIu64 " %" PRId64, w->path, i.inode, i.mode, i.nlink, i.uid, i.gid,
	       i.size, i.mtime.sec);
	must(btrkit_txn_xattrs(w->txn, e->root, e->inode, print_xattr, NULL, &err), "attributes");
	printf("\n");
	if (S_ISREG(i.mode) || S_ISLNK(i.mode))
		write_contents(w, &i);
	else
		must(btrkit_txn_entries_after(w->txn, e->root, e->inode, 0, print_entry, w, &err), "entries");
	w->len = before;
	w->path[before] = '\0';
	return 0;
}

int main(int argc, char **argv)
{
	const struct btrkit_open_options opts = { .flags = BTRKIT_OPEN_WRITE };
	struct btrkit_fs *fs;
	char name[8] = "dir-0";
	struct work w = { 0 };

	if (argc != 4) {
		fprintf(stderr, "usage: txn-read IMAGE DIR SEED\n");
		return 2;
	}
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * i >> 9 ^ i);
	w.folder = argv[2];
	w.random = strtoull(argv[3], NULL, 10);
	must(btrkit_fs_open_path(argv[1], 0, &opts, &fs, &err), argv[1]);
	must(btrkit_txn_start(fs, &w.txn, &err), "start");
	for (unsigned i = 0; i < 4; i++, name[4]++)
		w.dirs[i] = create(&w, i ? w.dirs[i - 1] : TOP, name, S_IFDIR | 0755);
	for (unsigned i = 0; i < STEPS; i++) {
		if (i % (STEPS / 3) == STEPS / 4)
			must(btrkit_txn_commit_and_continue(w.txn, NULL, &err), "commit");
		step(&w);
	}
	must(btrkit_txn_entries_after(w.txn, TOP_LEVEL, TOP, 0, print_entry, &w, &err), "entries");
	must(btrkit_txn_commit(w.txn, NULL, &err), "commit");
	btrkit_fs_close(fs);
	return 0;
}
