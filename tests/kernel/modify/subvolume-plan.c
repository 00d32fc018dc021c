// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Runs operations on a filesystem by public functions, as standard input says: subvol PATH, snap PATH PATH, snapro PATH
 * PATH, del PATH, ro PATH, rw PATH, default PATH, puts PATH SIZE SEED, rm PATH, commit. All in one transaction, except
 * for operations that commit.
 */
#include <btrkit/btrkit.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOP 256

struct spot {
	uint64_t root, dir;
	const char *name;
};

static struct btrkit_txn *txn;

static void must(int ret, const char *line, const struct btrkit_error *err)
{
	char text[512];

	if (!ret)
		return;
	fprintf(stderr, "%s: %d: %s\n", line, ret, btrkit_error_format(err, text, sizeof(text)));
	exit(1);
}

/* Splits the path into the directory and the last component. */
static struct spot spot_of(char *path)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct spot s = { BTRKIT_TOP_LEVEL, TOP, path };
	char *slash;

	while ((slash = strchr(s.name, '/'))) {
		struct btrkit_found found;

		*slash = '\0';
		must(btrkit_txn_lookup(txn, s.root, s.dir, s.name, strlen(s.name), &found, &err), s.name, &err);
		s = (struct spot){ found.root, found.inode, slash + 1 };
	}
	return s;
}

static uint64_t subvolume_at(char *path)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_found found;
	struct spot s;

	if (!strcmp(path, "."))
		return BTRKIT_TOP_LEVEL;
	s = spot_of(path);
	must(btrkit_txn_lookup(txn, s.root, s.dir, s.name, strlen(s.name), &found, &err), s.name, &err);
	return found.root;
}

static void put(struct spot s, uint32_t size, uint32_t seed)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_found found;
	uint8_t *bytes = malloc(size + 1);

	if (!bytes)
		exit(1);
	for (uint32_t i = 0; i < size; i++)
		bytes[i] = (uint8_t)(seed >> 8 * (i % 4));
	if (btrkit_txn_lookup(txn, s.root, s.dir, s.name, strlen(s.name), &found, &err))
		must(btrkit_txn_create(txn, s.root, s.dir, s.name, strlen(s.name), NULL, &found.inode, &err), "put",
		     &err);
	must(btrkit_txn_truncate(txn, s.root, found.inode, 0, &err), "truncate", &err);
	must(btrkit_txn_write(txn, s.root, found.inode, 0, bytes, size, NULL, &err), "write", &err);
	free(bytes);
}

static void do_line(struct btrkit_fs *fs, const char *op, char *one, char *two, const char *three)
{
	struct btrkit_new_snapshot how = BTRKIT_NEW_SNAPSHOT_INIT;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct spot s;
	int ret = 0;

	if (!strcmp(op, "commit")) {
		must(btrkit_txn_commit(txn, NULL, &err), op, &err);
		ret = btrkit_txn_start(fs, &txn, &err);
	} else if (!strcmp(op, "subvol")) {
		s = spot_of(one);
		ret = btrkit_txn_subvolume_create(txn, s.root, s.dir, s.name, strlen(s.name), NULL, NULL, &err);
	} else if (!strncmp(op, "snap", 4)) {
		how.flags = strcmp(op, "snapro") ? 0 : BTRKIT_NEW_SNAPSHOT_READ_ONLY;
		s = spot_of(two);
		ret = btrkit_txn_subvolume_snapshot(txn, subvolume_at(one), s.root, s.dir, s.name, strlen(s.name), &how,
						    NULL, &err);
	} else if (!strcmp(op, "del")) {
		ret = btrkit_txn_subvolume_delete(txn, subvolume_at(one), &err);
	} else if (!strcmp(op, "ro") || !strcmp(op, "rw")) {
		ret = btrkit_txn_subvolume_set_read_only(txn, subvolume_at(one), op[1] == 'o', false, &err);
	} else if (!strcmp(op, "default")) {
		ret = btrkit_txn_subvolume_set_default(txn, subvolume_at(one), &err);
	} else if (!strcmp(op, "put")) {
		put(spot_of(one), (uint32_t)atol(two), (uint32_t)strtoul(three, NULL, 10));
	} else if (!strcmp(op, "rm")) {
		s = spot_of(one);
		ret = btrkit_txn_unlink(txn, s.root, s.dir, s.name, strlen(s.name), BTRKIT_UNLINK_FILE, &err);
	} else {
		fprintf(stderr, "what is %s?\n", op);
		exit(1);
	}
	must(ret, op, &err);
}

int main(int argc, char **argv)
{
	struct btrkit_open_options opts = BTRKIT_OPEN_OPTIONS_INIT;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_io *io;
	struct btrkit_fs *fs;
	char line[4096];

	if (argc != 2)
		return 2;
	opts.flags = BTRKIT_OPEN_WRITE;
	must(btrkit_io_open(argv[1], BTRKIT_IO_WRITE | BTRKIT_IO_EXCLUSIVE, &io, &err), argv[1], &err);
	must(btrkit_fs_open(&io, 1, &opts, &fs, &err), argv[1], &err);
	must(btrkit_txn_start(fs, &txn, &err), "start", &err);
	while (fgets(line, sizeof(line), stdin)) {
		char none[] = "", *words[4] = { none, none, none, none };
		unsigned n = 0;

		for (char *w = strtok(line, " \n"); w && n < 4; w = strtok(NULL, " \n"))
			words[n++] = w;
		if (n)
			do_line(fs, words[0], words[1], words[2], words[3]);
	}
	must(btrkit_txn_commit(txn, NULL, &err), "commit", &err);
	btrkit_fs_close(fs);
	return 0;
}
