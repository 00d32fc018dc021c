// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Prints a source as text: source-list [OPTION]... directory|archive|manifest PATH [LAYER]...
 *   -s PATH subvolume   -r PATH read-only one   -S PATH default one   -c PATH nodatacow   -d PATH nodatasum
 *   -x PATTERN exclude   -w PATTERN with xattr   -o PATTERN without xattr   -H no host xattrs   -W whiteouts
 *   -u ID -g ID root's owner   -b PATH base directory   -m N limit of a symlink   -q only count and measures the time
 *   -n omit access and change times and directory sizes, which archives do not have
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/crc32c.h"
#include "lib/source/source.h"

#define MOST 1000

static uint32_t crcs[5000000];

struct contents {
	const struct source *s;
	uint32_t inode;
	uint64_t at;
	bool open;
};

static void zeros(uint32_t *crc, uint64_t n)
{
	static const char block[65536];

	for (; n; n -= n < sizeof(block) ? n : sizeof(block))
		*crc = crc32c(*crc, block, n < sizeof(block) ? n : sizeof(block));
}

static int begin(void *ctx, uint32_t inode, struct btrkit_error *err)
{
	struct contents *c = ctx;

	(void)err;
	if (c->open)
		abort();
	*c = (struct contents){ c->s, inode, 0, true };
	crcs[inode] = ~0u;
	return 0;
}

static int write_some(void *ctx, uint64_t offset, const void *buf, size_t len, struct btrkit_error *err)
{
	struct contents *c = ctx;

	(void)err;
	if (!c->open || offset < c->at || offset + len > c->s->inodes[c->inode].size)
		abort();
	zeros(&crcs[c->inode], offset - c->at);
	crcs[c->inode] = crc32c(crcs[c->inode], buf, len);
	c->at = offset + len;
	return 0;
}

static int end(void *ctx, struct btrkit_error *err)
{
	struct contents *c = ctx;

	(void)err;
	zeros(&crcs[c->inode], c->s->inodes[c->inode].size - c->at);
	c->open = false;
	return 0;
}

static int read_file(struct source *s, uint32_t inode, struct btrkit_error *err)
{
	static char buf[1 << 20];
	struct contents c = { .s = s };
	ssize_t n;
	int fd = source_file_open(s, inode, err), ret;

	if (fd < 0)
		return fd;
	(void)begin(&c, inode, err);
	while ((n = read(fd, buf, sizeof(buf))) > 0)
		(void)write_some(&c, c.at, buf, (size_t)n, err);
	(void)end(&c, err);
	ret = source_file_unchanged(s, inode, fd, err);
	close(fd);
	return ret;
}

static void print_bytes(const char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (bytes[i] > ' ' && bytes[i] < 0x7f && bytes[i] != '\\' && bytes[i] != '=')
			putchar(bytes[i]);
		else
			printf("\\x%02x", (uint8_t)bytes[i]);
}

static void print_path(const struct source *s, uint32_t entry)
{
	uint32_t chain[4096], n = 0;

	for (; entry != SOURCE_NONE && n < 4096; entry = s->inodes[s->entries[entry].parent].name)
		chain[n++] = entry;
	while (n) {
		putchar('/');
		print_bytes(s->entries[chain[n - 1]].name, s->entries[chain[n - 1]].len);
		n--;
	}
}

static void print_time(const char *word, struct source_time t)
{
	printf(" %s=%" PRId64 ".%09" PRIu32, word, t.sec, t.nsec);
}

static void print_inode(const struct source *s, uint32_t inode, bool less)
{
	const struct source_inode *i = &s->inodes[inode];

	printf(" %" PRIu32 ":%" PRIu32 " mode=%o nlink=%" PRIu32 " owner=%" PRIu32 ":%" PRIu32 " size=%" PRIu64
	       " rdev=%" PRIu32 " flags=%u",
	       i->subvolume, i->number, i->mode, i->nlink, i->uid, i->gid, i->size, i->rdev, i->flags);
	print_time("mtime", i->mtime);
	if (!less) {
		print_time("atime", i->atime);
		print_time("ctime", i->ctime);
	}
	if (S_ISREG(i->mode))
		printf(" crc=%08" PRIx32, i->size ? ~crcs[i->contents] : 0);
	if (s->inodes[i->contents].next_sharing != SOURCE_NONE)
		printf(" contents=%" PRIu32 ":%" PRIu32, s->inodes[i->contents].subvolume,
		       s->inodes[i->contents].number);
	if (S_ISLNK(i->mode)) {
		printf(" -> ");
		print_bytes(i->text, strlen(i->text));
	}
	for (uint32_t x = 0; i->xattrs && x < i->xattrs->n; x++) {
		putchar(' ');
		print_bytes(i->xattrs->at[x].name, i->xattrs->at[x].name_len);
		putchar('=');
		print_bytes(i->xattrs->at[x].value, i->xattrs->at[x].value_len);
	}
	putchar('\n');
}

static void print(const struct source *s, bool less)
{
	uint32_t entry = 0;

	for (uint32_t n = 0; n < s->num_inodes; n++) {
		const uint32_t inode = s->in_order[n];
		const struct source_inode *i = &s->inodes[inode];

		if (n && (i->name == SOURCE_NONE || s->entries[i->name].inode != inode))
			abort();
		printf("inode ");
		if (i->name == SOURCE_NONE)
			putchar('/');
		print_path(s, i->name);
		print_inode(s, inode, less);
		for (uint32_t k = 0; S_ISDIR(i->mode) && k < i->count; k++) {
			const struct source_entry *e = &s->entries[i->first + k];
			const struct source_entry *h = &s->entries[e->by_hash];

			entry++;
			if (e->parent != inode || e->index != k + 2 ||
			    source_lookup(s, inode, e->name, e->len) != i->first + k ||
			    (k && s->entries[e[-1].by_hash].hash > h->hash))
				abort();
			printf("entry ");
			print_path(s, i->first + k);
			printf(" %" PRIu32 " %08" PRIx32 " %" PRIu32 ":%" PRIu32 " by_hash=%" PRIu32 "\n", e->index,
			       e->hash, s->inodes[e->inode].subvolume, s->inodes[e->inode].number,
			       e->by_hash - i->first);
		}
	}
	if (entry != s->num_entries)
		abort();
	for (uint32_t n = 0; n < s->num_subvolumes; n++) {
		const struct source_subvolume *v = &s->subvolumes[n];

		printf("subvolume %s in %" PRId32 " inodes=%" PRIu32 "%s%s", v->path, (int32_t)v->parent, v->num_inodes,
		       v->readonly ? " ro" : "", v->is_default ? " default" : "");
		print_path(s, v->entry);
		putchar('\n');
	}
	printf("cut %" PRIu64 "\n", s->cut_links);
}

static struct btrkit_mkfs_subvolume subvolumes[MOST];
static struct btrkit_mkfs_inode_flags flags[MOST];
static const char *exclude[MOST], *with[MOST], *without[MOST];

struct settings {
	struct btrkit_mkfs_source source;
	struct source_limits limits;
	bool quiet, less;
};

static bool take_option(struct settings *t, int opt, char *value)
{
	struct btrkit_mkfs_source *o = &t->source;

	switch (opt) {
	case 's':
	case 'r':
	case 'S':
		subvolumes[o->num_subvolumes++] = (struct btrkit_mkfs_subvolume){ value, opt == 'r', opt == 'S' };
		return true;
	case 'c':
	case 'd':
		flags[o->num_inode_flags++] = (struct btrkit_mkfs_inode_flags){ value, opt == 'c', opt == 'd' };
		return true;
	case 'x':
		exclude[o->num_exclude++] = value;
		return true;
	case 'w':
		with[o->num_with_xattrs++] = value;
		return true;
	case 'o':
		without[o->num_without_xattrs++] = value;
		return true;
	case 'H':
		o->flags |= BTRKIT_SOURCE_NO_HOST_XATTRS;
		return true;
	case 'W':
		o->flags |= BTRKIT_SOURCE_WHITEOUTS;
		return true;
	case 'u':
		o->flags |= BTRKIT_SOURCE_ROOT_OWNER;
		o->root_uid = (uint32_t)strtoul(value, NULL, 10);
		return true;
	case 'g':
		o->root_gid = (uint32_t)strtoul(value, NULL, 10);
		return true;
	case 'b':
		o->basedir = value;
		return true;
	case 'm':
		t->limits.symlink = (uint32_t)strtoul(value, NULL, 10);
		return true;
	case 'q':
		return t->quiet = true;
	case 'n':
		return t->less = true;
	default:
		return false;
	}
}

static void print_cost(const struct source *s, const struct timespec *start)
{
	struct timespec stop;
	struct rusage usage;

	clock_gettime(CLOCK_MONOTONIC, &stop);
	getrusage(RUSAGE_SELF, &usage);
	printf("%" PRIu32 " inodes, %" PRIu32 " entries, %.3f s, %.3f s of processors, %ld KiB\n", s->num_inodes,
	       s->num_entries, (double)(stop.tv_sec - start->tv_sec) + (double)(stop.tv_nsec - start->tv_nsec) * 1e-9,
	       (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
		       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6,
	       usage.ru_maxrss);
}

static int read_all(struct source *s, bool files, struct btrkit_error *err)
{
	struct contents c = { .s = s };
	const struct source_sink sink = { begin, write_some, end, &c };
	int ret = source_read(s, &sink, err);

	for (uint32_t i = 0; !ret && files && !source_streams(s) && i < s->num_inodes; i++)
		if (S_ISREG(s->inodes[i].mode) && s->inodes[i].contents == i)
			ret = read_file(s, i, err);
	return ret;
}

int main(int argc, char **argv)
{
	struct settings t = { { .subvolumes = subvolumes,
				.inode_flags = flags,
				.exclude = exclude,
				.with_xattrs = with,
				.without_xattrs = without },
			      { .symlink = 3949, .xattr = 16000 } };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct source *s = NULL;
	struct timespec start;
	char line[512];
	int opt, ret;

	while ((opt = getopt(argc, argv, "s:r:S:c:d:x:w:o:HWu:g:b:m:qn")) != -1)
		if (!take_option(&t, opt, optarg))
			return 2;
	if (optind + 2 > argc)
		return 2;
	t.source.kind = argv[optind][0] == 'd' ? BTRKIT_SOURCE_DIRECTORY :
			argv[optind][0] == 'a' ? BTRKIT_SOURCE_ARCHIVE :
						 BTRKIT_SOURCE_MANIFEST;
	t.source.path = argv[optind + 1];
	t.source.layers = (const char *const *)&argv[optind + 2];
	t.source.num_layers = (size_t)(argc - optind - 2);
	clock_gettime(CLOCK_MONOTONIC, &start);
	ret = source_create(&t.source, &t.limits, &s, &err);
	if (!ret)
		ret = read_all(s, !t.quiet, &err);
	if (ret)
		fprintf(stderr, "%s: %s\n", t.source.path, btrkit_error_format(&err, line, sizeof(line)));
	else if (t.quiet)
		print_cost(s, &start);
	else
		print(s, t.less);
	source_destroy(s);
	return ret ? (ret == err.err ? 1 : 3) : 0;
}
