// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Runs the operations on standard input in a transaction, using only the public headers; prints an errno for each, or
 * 0. Words are separated by blanks; names, values and data are in hex after an x.
 *
 *	make PATH MODE		a symbolic link leads to "target"
 *	set PATH MASK MODE UID GID ATIME MTIME	the bits of btrkit_txn_set_attr(), times in seconds
 *	flags PATH FLAGS MASK
 *	put PATH NAME VALUE FLAGS
 *	remove PATH NAME
 *	write PATH OFFSET DATA
 *	truncate PATH SIZE
 *	commit
 *
 * Everything that is put is read back at once.
 */
#include <btrkit/btrkit.h>

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define TOP 256u
#define WORDS 8
#define LINE_BYTES (1u << 18)

struct plan {
	struct btrkit_fs *fs;
	struct btrkit_txn *txn;
	struct btrkit_error err;
	char *words[WORDS];
	uint8_t bytes[LINE_BYTES], again[LINE_BYTES];
	size_t len;
};

static void die(const struct plan *p, const char *what)
{
	char line[512];

	fprintf(stderr, "attr-plan: %s: %s\n", what, btrkit_error_format(&p->err, line, sizeof(line)));
	exit(1);
}

static unsigned long long number(const char *word)
{
	return strtoull(word, NULL, 0);
}

/* Decodes in place, NUL-terminated. */
static size_t unhex(const char *word, uint8_t *to)
{
	size_t n = 0;

	for (const char *s = word + 1; s[0] && s[1]; s += 2) {
		const char digits[] = { s[0], s[1], '\0' };

		to[n++] = (uint8_t)strtoul(digits, NULL, 16);
	}
	to[n] = 0;
	return n;
}

/* Finds the directory of a path, and its last component. */
static int find_place(struct plan *p, char *path, struct btrkit_place *ret)
{
	struct btrkit_found found = { BTRKIT_TOP_LEVEL, TOP, DT_DIR };
	char *slash;
	int r = 0;

	while (!r && (slash = strchr(path, '/'))) {
		r = btrkit_txn_lookup(p->txn, BTRKIT_TOP_LEVEL, found.inode, path, (size_t)(slash - path), &found,
				      &p->err);
		path = slash + 1;
	}
	*ret = (struct btrkit_place){ BTRKIT_TOP_LEVEL, found.inode, path, strlen(path) };
	return r;
}

static int find(struct plan *p, char *path, uint64_t *ret)
{
	struct btrkit_place at;
	struct btrkit_found found = { 0 };
	int r;

	*ret = TOP;
	if (!strcmp(path, "."))
		return 0;
	r = find_place(p, path, &at);
	if (!r)
		r = btrkit_txn_lookup(p->txn, BTRKIT_TOP_LEVEL, at.dir, at.name, at.len, &found, &p->err);
	*ret = found.inode;
	return r;
}

static int make(struct plan *p, char **w)
{
	const struct btrkit_new_inode what = { .mode = (uint32_t)number(w[2]),
					       .target = S_ISLNK(number(w[2])) ? "target" : NULL };
	struct btrkit_place at;
	int ret = find_place(p, w[1], &at);

	return ret ? ret : btrkit_txn_create(p->txn, BTRKIT_TOP_LEVEL, at.dir, at.name, at.len, &what, NULL, &p->err);
}

static int set(struct plan *p, uint64_t inode, char **w)
{
	const struct btrkit_attr attr = { .mask = (unsigned)number(w[2]),
					  .mode = (uint32_t)number(w[3]),
					  .uid = (uint32_t)number(w[4]),
					  .gid = (uint32_t)number(w[5]),
					  .atime = { (int64_t)number(w[6]), 5 },
					  .mtime = { (int64_t)number(w[7]), 6 } };

	return btrkit_txn_set_attr(p->txn, BTRKIT_TOP_LEVEL, inode, &attr, &p->err);
}

static int put(struct plan *p, uint64_t inode, char **w)
{
	uint8_t name[1024];
	size_t got;
	int ret;

	unhex(w[2], name);
	p->len = unhex(w[3], p->bytes);
	ret = btrkit_txn_xattr_set(p->txn, BTRKIT_TOP_LEVEL, inode, (char *)name, p->bytes, p->len,
				   (unsigned)number(w[4]), &p->err);
	if (ret || strncmp((char *)name, "user.", 5) != 0)
		return ret;
	ret = btrkit_txn_xattr_get(p->txn, BTRKIT_TOP_LEVEL, inode, (char *)name, p->again, p->len, &got, &p->err);
	if (ret || got != p->len || memcmp(p->again, p->bytes, got) != 0)
		die(p, "a different value than was set");
	if (p->len && btrkit_txn_xattr_get(p->txn, BTRKIT_TOP_LEVEL, inode, (char *)name, p->again, p->len - 1, &got,
					   &p->err) != -ERANGE)
		die(p, "a value although the buffer is too small");
	return 0;
}

static int run(struct plan *p, char **w)
{
	uint8_t name[1024];
	uint64_t inode;
	int ret;

	if (!strcmp(w[0], "make"))
		return make(p, w);
	ret = find(p, w[1], &inode);
	if (ret)
		return ret;
	if (!strcmp(w[0], "set"))
		return set(p, inode, w);
	if (!strcmp(w[0], "flags"))
		return btrkit_txn_set_flags(p->txn, BTRKIT_TOP_LEVEL, inode, (uint32_t)number(w[2]),
					    (uint32_t)number(w[3]), &p->err);
	if (!strcmp(w[0], "put"))
		return put(p, inode, w);
	if (!strcmp(w[0], "remove")) {
		unhex(w[2], name);
		return btrkit_txn_xattr_remove(p->txn, BTRKIT_TOP_LEVEL, inode, (char *)name, &p->err);
	}
	if (!strcmp(w[0], "truncate"))
		return btrkit_txn_truncate(p->txn, BTRKIT_TOP_LEVEL, inode, number(w[2]), &p->err);
	p->len = unhex(w[3], p->bytes);
	return btrkit_txn_write(p->txn, BTRKIT_TOP_LEVEL, inode, number(w[2]), p->bytes, p->len, NULL, &p->err);
}

int main(int argc, char **argv)
{
	static char line[LINE_BYTES];
	static struct plan p;
	const struct btrkit_open_options opts = { .flags = BTRKIT_OPEN_WRITE };
	const char *path = argc == 2 ? argv[1] : "";
	struct btrkit_io *io;

	if (btrkit_io_open(path, BTRKIT_IO_WRITE, &io, &p.err) ||
	    btrkit_fs_open(&io, 1, &opts, &p.fs, &p.err) || btrkit_txn_start(p.fs, &p.txn, &p.err))
		die(&p, path);
	while (fgets(line, sizeof(line), stdin)) {
		unsigned n = 0;

		for (char *w = strtok(line, " \n"); w && n < WORDS; w = strtok(NULL, " \n"))
			p.words[n++] = w;
		if (n && !strcmp(p.words[0], "commit")) {
			if (btrkit_txn_commit(p.txn, NULL, &p.err) || btrkit_txn_start(p.fs, &p.txn, &p.err))
				die(&p, "commit");
		} else if (n > 1) {
			printf("%d\n", -run(&p, p.words));
		}
	}
	if (btrkit_txn_commit(p.txn, NULL, &p.err))
		die(&p, "commit");
	btrkit_fs_close(p.fs);
	return 0;
}
