// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * file-data IMAGE: change file data in transactions, as standard input says, and print what each operation returned.
 *
 *	write PATH OFFSET LENGTH SEED COMPRESSION | zeros ... | truncate PATH SIZE | punch PATH OFFSET LENGTH
 *	prealloc PATH OFFSET LENGTH FLAGS | clone PATH OFFSET LENGTH TO-PATH TO-OFFSET | flush | commit
 *	end PATH SIZE: set only the size in the inode, as a crash can leave it
 *
 * PATH is NAME or SUBVOLUME/NAME. The bytes written are those of pattern() in file-data-kernel.py.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <btrkit/btrkit.h>

#include "lib/modify/op.h"
#include "tests/random.h"

#define TOP 256

static struct btrkit_error err;

static void must(int ret, const char *what)
{
	char line[512];

	if (!ret)
		return;
	fprintf(stderr, "file-data: %s: %s\n", what, btrkit_error_format(&err, line, sizeof(line)));
	exit(1);
}

static struct btrkit_found find(struct btrkit_txn *txn, const char *path)
{
	struct btrkit_found at = { .root = BTRKIT_TOP_LEVEL, .inode = TOP };

	while (*path) {
		const size_t len = strcspn(path, "/");

		must(btrkit_txn_lookup(txn, at.root, at.inode, path, len, &at, &err), path);
		path += len + (path[len] == '/');
	}
	return at;
}

static int do_write(struct btrkit_txn *txn, const struct btrkit_found *f, const uint64_t *a)
{
	const struct btrkit_write_options opts = { .compression = (uint8_t)a[3] };
	uint8_t *bytes = malloc(a[1] + 1);
	uint64_t x = a[2];
	int ret;

	if (!bytes)
		return -12;
	/* With an even seed everything is random, otherwise the same 64 bytes repeat for a long time. */
	for (uint64_t i = 0; i < a[1]; i++) {
		if (!(i % 64)) {
			x = a[2] % 2 ? a[2] * 0x9e3779b97f4a7c15u + i / 65536 :
				       random_after(x);
		}
		bytes[i] = (uint8_t)(a[2] % 2 ? x >> 8 * (i % 8) : (x * (2 * (i % 64) + 1)) >> 56);
	}
	ret = btrkit_txn_write(txn, f->root, f->inode, a[0], bytes, a[1], &opts, &err);
	free(bytes);
	return ret;
}

static int clone_to(struct btrkit_txn *txn, const struct btrkit_found *f, const uint64_t *a, const char *path,
		    uint64_t offset)
{
	const struct btrkit_found to = find(txn, path);
	const struct btrkit_clone what = { f->root, f->inode, a[0], to.root, to.inode, offset, a[1] };

	return btrkit_txn_clone(txn, &what, &err);
}

static int lose_end(struct btrkit_txn *txn, const struct btrkit_found *f, uint64_t size)
{
	const struct ticket_need need = { .items = 1 };
	struct op_inode in;
	struct op op;
	int ret = op_begin(&op, txn, f->root, &need, &err);

	if (ret)
		return ret;
	delayed_lock(op.t, &f->inode, 1, &op.locks);
	ret = op_inode_get(&op, f->inode, &in, &err);
	if (!ret) {
		in.item.size = le64_put(size);
		ret = op_inode_put(&op, &in, &err);
	}
	return op_end(&op, ret, &err);
}

static int step(struct btrkit_txn *txn, const char *line)
{
	char op[16], path[64], other[64];
	struct btrkit_found f;
	uint64_t a[4] = { 0 };

	if (sscanf(line, "%15s %63s %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64, op, path, &a[0], &a[1], &a[2],
		   &a[3]) < 2)
		exit(2);
	f = find(txn, path);
	if (!strcmp(op, "write"))
		return do_write(txn, &f, a);
	if (!strcmp(op, "truncate"))
		return btrkit_txn_truncate(txn, f.root, f.inode, a[0], &err);
	if (!strcmp(op, "end"))
		return lose_end(txn, &f, a[0]);
	if (!strcmp(op, "punch"))
		return btrkit_txn_punch(txn, f.root, f.inode, a[0], a[1], &err);
	if (!strcmp(op, "prealloc"))
		return btrkit_txn_prealloc(txn, f.root, f.inode, a[0], a[1], (unsigned)a[2], &err);
	if (!strcmp(op, "clone") &&
	    sscanf(line, "%*s %*s %*s %*s %63s %" SCNu64, other, &a[2]) == 2)
		return clone_to(txn, &f, a, other, a[2]);
	exit(2);
}

int main(int argc, char **argv)
{
	struct btrkit_open_options opts = BTRKIT_OPEN_OPTIONS_INIT;
	struct btrkit_txn *txn;
	struct btrkit_fs *fs;
	struct btrkit_io *io;
	char line[256];

	if (argc != 2)
		return 2;
	opts.flags = BTRKIT_OPEN_WRITE;
	must(btrkit_io_open(argv[1], BTRKIT_IO_WRITE | BTRKIT_IO_EXCLUSIVE, &io, &err), argv[1]);
	must(btrkit_fs_open(&io, 1, &opts, &fs, &err), argv[1]);
	must(btrkit_txn_start(fs, &txn, &err), "transaction");
	while (fgets(line, sizeof(line), stdin)) {
		if (!strcmp(line, "flush\n")) {
			must(btrkit_txn_flush(txn, &err), "flush");
		} else if (!strcmp(line, "commit\n")) {
			must(btrkit_txn_commit(txn, NULL, &err), "commit");
			must(btrkit_txn_start(fs, &txn, &err), "transaction");
		} else {
			printf("%d\n", step(txn, line));
		}
	}
	must(btrkit_txn_commit(txn, NULL, &err), "commit");
	btrkit_fs_close(fs);
	return 0;
}
