// SPDX-License-Identifier: LGPL-2.1-or-later
/* Written data is verified: anything that changes between writing and reading back is found and named. */
#include "tests/unit/unit.h"

#include <unistd.h>

#include <btrkit/btrkit.h>

#include "lib/base/crc32c.h"
#include "lib/base/le.h"

#define MIB (1u << 20)
#define DEVICE_BYTES (48 * MIB) /* actually present */
#define SMALL_BYTES (24 * MIB)	 /* the same for tests that write little */
#define DEVICES_MAX 4u
#define NODESIZE 16384u
#define SUPER_AT 65536u
#define MAGIC_AT (SUPER_AT + 64)

/* A device on top of one in memory that returns changed bytes when it is read. */
struct tamper {
	struct btrkit_io io;
	struct btrkit_io *below;
	const char *from, *to; /* NULL: change nothing */
	size_t len;
	bool tree; /* only in tree blocks, whose checksums are corrected */
	uint64_t flip;	   /* the address of a bit to flip; 0: none */
	const char *touch; /* a file that is modified when the superblock is written */
	unsigned hits;
};

/* Recompute the checksum in the first bytes; crc32c() does not invert at the start and the end. */
static void make_good(uint8_t *block)
{
	const le32 sum = le32_put(~crc32c(~0u, block + 32, NODESIZE - 32));

	memcpy(block, &sum, sizeof(sum));
}

static int tamper_read(struct btrkit_io *io, uint64_t offset, void *buf, size_t len)
{
	struct tamper *t = (struct tamper *)io;
	uint8_t *at = buf;
	int hits = 0;
	int ret = btrkit_io_read(t->below, offset, buf, len, NULL);

	if (!ret && t->flip && t->flip >= offset && t->flip - offset < len) {
		at[t->flip - offset] ^= 1;
		hits++;
	}
	while (!ret && t->from && (!t->tree || len == NODESIZE) &&
	       (at = memmem(at, len - (size_t)(at - (uint8_t *)buf), t->from, t->len))) {
		memcpy(at, t->to, t->len);
		hits++;
	}
	if (t->tree && hits)
		make_good(buf);
	__atomic_add_fetch(&t->hits, hits, __ATOMIC_RELAXED); /* threads read at the same time */
	return ret;
}

static int tamper_write(struct btrkit_io *io, uint64_t offset, const void *buf, size_t len)
{
	const struct tamper *t = (const struct tamper *)io;

	if (t->touch && offset == SUPER_AT && le64_get(*(const le64 *)((const char *)buf + 64)))
		assert_int_equal(truncate(t->touch, 7000), 0);
	return btrkit_io_write(t->below, offset, buf, len, NULL);
}

static int tamper_flush(struct btrkit_io *io)
{
	(void)io;
	return 0;
}

static int tamper_resize(struct btrkit_io *io, uint64_t size)
{
	(void)io;
	return size > 2048ull * MIB ? -ENOSPC : 0;
}

static const struct btrkit_io_ops tamper_ops = {
	.read = tamper_read,
	.write = tamper_write,
	.flush = tamper_flush,
	.resize = tamper_resize,
};

/* What the library reported. */
struct told {
	unsigned lines;
	char first[600], last[600];
};

static void take_line(void *ctx, const char *what)
{
	struct told *t = ctx;

	snprintf(t->last, sizeof(t->last), "%s", what);
	if (!t->lines++)
		memcpy(t->first, t->last, sizeof(t->first));
}

#define LINKS 100u
#define LINK_NAME 240u

static char folder[] = "/tmp/btrkit-verify-XXXXXX", manifest[64], archive[64], links[64], big[64];

static void link_name(char *to, unsigned number)
{
	snprintf(to, LINK_NAME + 1, "%0240u", number);
}

/* A file with many names, next to a directory. */
static void put_links(void)
{
	char name[LINK_NAME + 1];
	FILE *f = fopen(links, "w");

	assert_non_null(f);
	fputs("/ 0 40755 1 0 0 0 1000000000.0 - - -\n/sub 0 40755 1 0 0 0 1000000000.0 - - -\n"
	      "/many 0 40755 1 0 0 0 1000000000.0 - - -\n/big 8000 100644 1 0 0 0 1000000000.0 big - -\n",
	      f);
	for (unsigned i = 0; i < LINKS; i++) {
		link_name(name, i);
		if (i)
			fprintf(f, "/many/%s 0 @100644 1 0 0 0 0.0 /many/%0240u - -\n", name, 0u);
		else
			fprintf(f, "/many/%s 10 100644 %u 0 0 0 1000000000.0 - MARKERDATA -\n", name, LINKS);
	}
	assert_int_equal(fclose(f), 0);
}

static void put_file(const char *path, const char *head, size_t size)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	for (size_t i = 0; i < size; i++)
		fputc('a' + (int)(i / 4096 % 26), f);
	assert_int_equal(fseek(f, size > 2 * MIB ? 9 * (long)MIB : 0, SEEK_SET), 0);
	fputs(head, f);
	assert_int_equal(fclose(f), 0);
}

static void put_member(FILE *f, const char *name, size_t size)
{
	char head[512] = "";
	unsigned sum = 0;

	strcpy(head, name);
	snprintf(head + 100, 8, "0000644");
	snprintf(head + 108, 8, "0000000");
	snprintf(head + 116, 8, "0000000");
	snprintf(head + 124, 12, "%011zo", size);
	snprintf(head + 136, 12, "%011o", 1000000000u);
	memset(head + 148, ' ', 8);
	head[156] = '0';
	memcpy(head + 257, "ustar\00000", 8);
	for (size_t i = 0; i < sizeof(head); i++)
		sum += (unsigned char)head[i];
	snprintf(head + 148, 8, "%06o", sum);
	fwrite(head, 1, sizeof(head), f);
	for (size_t i = 0; i < (size + 511) / 512 * 512; i++)
		fputc(i < size ? 'a' + (int)(i / 4096 % 26) : 0, f);
	assert_int_equal(fseek(f, -(long)((size + 511) / 512 * 512) / 2, SEEK_CUR), 0);
	fprintf(f, "%s-DATA", name);
	assert_int_equal(fseek(f, 0, SEEK_END), 0);
}

static int make_files(void **state)
{
	static const char lines[] =
		"/ 0 40755 1 0 0 0 1000000000.0 - - -\n"
		"/dir 0 40755 1 0 0 0 1000000000.0 - - -\n"
		"/dir/somename 10 100644 2 1515870810 5 0 1234567890.123456789 - MARKERDATA - user.mark=MARKVALUE\n"
		"/dir/again 0 @100644 2 0 0 0 0.0 /dir/somename - -\n"
		"/symlink 6 120777 1 0 0 0 1000000000.0 TARGET - -\n"
		"/device 0 20600 1 0 0 66304 1000000000.0 - - -\n"
		"/big 8000 100644 1 0 0 0 1000000000.0 big - -\n"
		"/dir/plain 8000 100644 1 0 0 0 1000000000.0 big - -\n"
		"/large 12582912 100644 1 0 0 0 1000000000.0 large - -\n";
	char large[64];
	FILE *f;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(manifest, sizeof(manifest), "%s/manifest", folder);
	snprintf(archive, sizeof(archive), "%s/archive", folder);
	snprintf(links, sizeof(links), "%s/links", folder);
	put_links();
	snprintf(big, sizeof(big), "%s/big", folder);
	snprintf(large, sizeof(large), "%s/large", folder);
	f = fopen(manifest, "w");
	assert_non_null(f);
	fputs(lines, f);
	for (unsigned i = 0; i < 30; i++)
		fprintf(f, "/many%u 9 100644 1 0 0 0 1000000000.0 - FILE%02uxyz -\n", i, i);
	assert_int_equal(fclose(f), 0);
	put_file(large, "LARGEMARKER", 12 * MIB);
	f = fopen(archive, "w");
	assert_non_null(f);
	put_member(f, "small", 3000);
	put_member(f, "middle", 30000);
	put_member(f, "large", 20 * MIB);
	for (unsigned i = 0; i < 1024; i++)
		fputc(0, f);
	return fclose(f);
}

static int remove_files(void **state)
{
	static const char *const names[] = { "manifest", "archive", "links", "big", "large" };
	char path[96];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		unlink(path);
	}
	return rmdir(folder);
}

static struct btrkit_mkfs_options options(struct btrkit_mkfs_source *s, bool from_archive)
{
	static const struct btrkit_mkfs_inode_flags flags[] = { { "dir", .nodatasum = true },
								{ "large", .nodatasum = true } };
	static const struct btrkit_mkfs_inode_flags of_archive[] = { { "middle", .nodatasum = true },
								     { "large", .nodatasum = true } };
	struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;

	*s = (struct btrkit_mkfs_source){ .kind = from_archive ? BTRKIT_SOURCE_ARCHIVE : BTRKIT_SOURCE_MANIFEST,
					  .path = from_archive ? archive : manifest,
					  .basedir = from_archive ? NULL : folder,
					  .inode_flags = from_archive ? of_archive : flags,
					  .num_inode_flags = 2 };
	o.source = s;
	o.flags = BTRKIT_MKFS_FIT | BTRKIT_MKFS_VERIFY;
	o.metadata = BTRKIT_PROFILE_SINGLE;
	o.threads = 3;
	put_file(big, "BIGMARKER", 8000);
	return o;
}

static int run_on(struct tamper *t, unsigned n, uint64_t bytes, const struct btrkit_mkfs_options *given,
		  struct btrkit_mkfs_result *r, struct told *told, struct btrkit_error *err)
{
	struct btrkit_mkfs_options o = *given;
	struct btrkit_io *ios[DEVICES_MAX];

	*told = (struct told){ 0 };
	o.warning = take_line;
	o.progress_ctx = told;
	for (unsigned i = 0; i < n; i++) {
		t[i].io.ops = &tamper_ops;
		t[i].io.size = o.flags & BTRKIT_MKFS_FIT ? 0 : bytes;
		assert_int_equal(btrkit_io_memory(bytes, &t[i].below, err), 0);
		ios[i] = &t[i].io;
	}
	return btrkit_mkfs(ios, n, &o, r, err);
}

static int run(struct tamper *t, const struct btrkit_mkfs_options *o, struct btrkit_mkfs_result *r, struct told *told,
	       struct btrkit_error *err)
{
	return run_on(t, 1, DEVICE_BYTES, o, r, told, err);
}

static void equal_is_equal(void **state)
{
	(void)state;
	UNIT_NEEDS(UNIT_CODECS && UNIT_SUMS && UNIT_UUID);
	for (unsigned i = 0; i < 8; i++) {
		struct btrkit_mkfs_source s;
		struct btrkit_mkfs_options o = options(&s, i & 1);
		struct btrkit_error err = BTRKIT_ERROR_INIT;
		struct btrkit_mkfs_result r;
		struct tamper t = { 0 };
		struct told told;
		char line[512];

		o.compression = i & 2 ? BTRKIT_COMPRESSION_ZSTD : BTRKIT_COMPRESSION_NONE;
		o.flags |= i & 4 ? BTRKIT_MKFS_DETERMINISTIC : 0;
		if (run(&t, &o, &r, &told, &err))
			fail_msg("%s; %s", btrkit_error_format(&err, line, sizeof(line)), told.first);
		assert_int_equal(told.lines, 0);
		assert_int_equal(r.verified, i & 1 ? 4 : 38);
		assert_int_equal(r.verified, r.inodes);
		assert_int_equal(r.verified_bytes, i & 1 ? 3000 + 30000 + 20 * MIB : 10 + 2 * 8000 + 12 * MIB + 30 * 9);
		btrkit_io_close(t.below);
	}
}

static void what_differs_is_named(void **state)
{
	static const struct {
		const char *from, *to;
		size_t len;
		bool tree, from_archive;
		unsigned differences;
		const char *line;
	} cases[] = {
		{ "MARKERDATA", "MARKERDATB", 10, true, false, 1, "dir/again: byte 9 differs" },
		{ "MARKVALUE", "MARKVALUF", 9, true, false, 1, "dir/again: attribute user.mark has a different value" },
		{ "user.mark", "user.marl", 9, true, false, 1, "dir/again: attributes cannot be read: " },
		{ "somename", "somenamf", 8, true, false, 4, "dir/somename: is missing" },
		/* The length of a name directly precedes the name only in the back references of the inode. */
		{ "\x08\0somename", "\x08\0somenamf", 10, true, false, 2,
		  "dir/again: wrong back reference with index 4 in directory 259 and name somenamf" },
		{ "\4\0\0\0\0\0\0\0\x08\0somename", "\5\0\0\0\0\0\0\0\x08\0somename", 18, true, false, 2,
		  "dir/again: wrong back reference with index 5 in directory 259 and name somename" },
		{ "\x02\0..", "\x02\0.,", 4, true, false, 2,
		  ".: wrong back reference with index 0 in directory 256 and name .," },
		{ "\x5a\x5a\x5a\x5a", "\x5b\x5a\x5a\x5a", 4, true, false, 1,
		  "dir/again: uid 1515870811 instead of 1515870810" },
		{ "\x15\xcd\x5b\x07", "\x15\xcd\x5b\x08", 4, true, false, 4,
		  "dir/again: atime 1234567890.140234005 instead of 1234567890.123456789" },
		{ "\xd2\x02\x96\x49", "\xd3\x02\x96\x49", 4, true, false, 4,
		  "dir/again: atime 1234567891.123456789 instead of 1234567890.123456789" },
		{ "TARGET", "TARGEX", 6, true, false, 1, "symlink: symbolic link has a different target" },
		{ "xyz", "xyx", 3, true, false, 30, "many0: byte 8 differs" },
		{ "BIGMARKER", "BIGMARKEX", 9, false, false, 3, "big: contents cannot be read: data checksum" },
		{ "LARGEMARKER", "LARGEMARKES", 11, false, false, 1, "large: byte 9437194 differs" },
		{ "middle-DATA", "Middle-DATA", 11, false, true, 1, "middle: contents differ" },
		{ "large-DATA", "Large-DATA", 10, false, true, 1, "large: contents differ" },
	};

	(void)state;
	UNIT_NEEDS(UNIT_CODECS && UNIT_SUMS && UNIT_UUID);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct btrkit_mkfs_source s;
		struct btrkit_mkfs_options o = options(&s, cases[i].from_archive);
		struct btrkit_error err = BTRKIT_ERROR_INIT;
		struct tamper t = { .from = cases[i].from, .to = cases[i].to, .len = cases[i].len,
				    .tree = cases[i].tree };
		struct btrkit_mkfs_result r = { .verified = 7 };
		struct told told;
		char wanted[100];
		int ret = run(&t, &o, &r, &told, &err);

		if (strncmp(told.first, cases[i].line, strlen(cases[i].line)) != 0)
			fail_msg("'%s' instead of '%s' (%d, %s)", told.first, cases[i].line, ret, err.message);
		assert_int_equal(ret, -EUCLEAN);
		assert_true(t.hits > 0);
		snprintf(wanted, sizeof(wanted), "the new filesystem differs from the source in %u place%s",
			 cases[i].differences, cases[i].differences > 1 ? "s" : "");
		assert_string_equal(err.message, wanted);
		assert_int_equal(told.lines, cases[i].differences > 20 ? 21 : cases[i].differences);
		if (cases[i].differences > 20)
			assert_string_equal(told.last, "and 10 more");
		/* Nothing may mistake it for a filesystem. */
		assert_int_equal(t.io.size, 0);
		assert_int_equal(r.verified, 7);
		btrkit_io_close(t.below);
	}
}

static const struct btrkit_mkfs_subvolume subvolume[] = { { .path = "sub" } };

/* Replaces @from by @to: expect so many lines with differences, the last of which ends with @end. */
static void check_names(const char *from, const char *to, size_t len, unsigned differences, const char *end)
{
	struct btrkit_mkfs_source s;
	struct btrkit_mkfs_options o = options(&s, false);
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct tamper t = { .from = from, .to = to, .len = len, .tree = true };
	struct told told;
	size_t shown;
	int ret;

	s.path = links;
	s.num_inode_flags = 0;
	s.subvolumes = subvolume;
	s.num_subvolumes = 1;
	ret = run(&t, &o, NULL, &told, &err);
	shown = strlen(told.last) > strlen(end) ? strlen(told.last) - strlen(end) : 0;
	if (strcmp(told.last + shown, end) != 0 || told.lines != differences || ret != (from ? -EUCLEAN : 0))
		fail_msg("%u lines, '%s' instead of %u, '%s' (%s)", told.lines, told.last, differences, end,
			 err.message);
	assert_int_equal(!!t.hits, !!from);
	btrkit_io_close(t.below);
}

/* So many long names that they do not fit into one item. */
static void names_are_known_to_inodes(void **state)
{
	char name[LINK_NAME + 1], head[2 + LINK_NAME], other[2 + LINK_NAME];
	uint8_t key[9] = { 13 }, wrong[9];
	le64 hash;

	(void)state;
	check_names(NULL, NULL, 0, 0, "");
	link_name(name, LINKS - 1);
	head[0] = (char)LINK_NAME;
	head[1] = 0;
	memcpy(head + 2, name, LINK_NAME);
	memcpy(other, head, sizeof(head));
	other[2] = '.';
	check_names(head, other, sizeof(head), 2, "99: inode has no back reference to this name");
	hash = le64_put(crc32c(258, name, LINK_NAME));
	memcpy(key + 1, &hash, sizeof(hash));
	memcpy(wrong, key, sizeof(key));
	wrong[1] ^= 1;
	check_names((char *)key, (char *)wrong, sizeof(key), 1,
		    "99: extended reference has the wrong hash");
	check_names("\x90\5\0\0\0\0\0\0", "\x90\6\0\0\0\0\0\0", 9, 1, "sub: subvolume 256 has no back reference");
}

/* The location of certain bytes on the devices: one for each copy. */
struct places {
	unsigned n;
	struct {
		unsigned device;
		uint64_t at;
	} copies[4];
};

static struct places find_places(const struct tamper *t, unsigned devices, const char *what, size_t len)
{
	uint8_t *bytes = malloc(SMALL_BYTES);
	struct places p = { 0 };

	assert_non_null(bytes);
	for (unsigned i = 0; i < devices; i++) {
		const uint8_t *place = bytes;

		assert_int_equal(btrkit_io_read(t[i].below, 0, bytes, SMALL_BYTES, NULL), 0);
		while ((place = memmem(place, SMALL_BYTES - (size_t)(place - bytes), what, len))) {
			assert_true(p.n < ARRAY_SIZE(p.copies));
			p.copies[p.n].device = i;
			p.copies[p.n++].at = (uint64_t)(place++ - bytes);
		}
	}
	free(bytes);
	return p;
}

static int run_with(enum btrkit_profile profile, struct tamper *t, unsigned devices, struct told *told,
		    struct btrkit_error *err)
{
	struct btrkit_mkfs_source s;
	struct btrkit_mkfs_options o = options(&s, false);

	s.path = links;
	s.num_inode_flags = 0;
	o.nodesize = 4096;
	o.data = o.metadata = profile;
	o.flags |= BTRKIT_MKFS_DETERMINISTIC;
	return run_on(t, devices, SMALL_BYTES, &o, NULL, told, err);
}

static void close_all(struct tamper *t, unsigned devices)
{
	for (unsigned i = 0; i < devices; i++)
		btrkit_io_close(t[i].below);
}

/* Flip a bit in each copy in turn. */
static void check_copies(enum btrkit_profile profile, unsigned devices, const struct places *p)
{
	for (unsigned k = 0; k < p->n; k++) {
		struct btrkit_error err = BTRKIT_ERROR_INIT;
		struct tamper t[DEVICES_MAX] = { 0 };
		struct told told;
		char wanted[32];

		t[p->copies[k].device].flip = p->copies[k].at;
		assert_int_equal(run_with(profile, t, devices, &told, &err), -EUCLEAN);
		close_all(t, devices);
		snprintf(wanted, sizeof(wanted), "copy %u: ", k + 1);
		/* More depends on the first copy. */
		if (k && (told.lines != 1 || strncmp(told.first, wanted, strlen(wanted)) != 0))
			fail_msg("%u lines, '%s' instead of one that begins with '%s'", told.lines, told.first, wanted);
	}
}

static void copies_are_read(void **state)
{
	static const struct {
		enum btrkit_profile profile;
		unsigned devices, copies;
	} cases[] = { { BTRKIT_PROFILE_SINGLE, 1, 1 },
		      { BTRKIT_PROFILE_DUP, 1, 2 },
		      { BTRKIT_PROFILE_RAID1, 2, 2 },
		      { BTRKIT_PROFILE_RAID1C3, 3, 3 },
		      { BTRKIT_PROFILE_RAID10, 4, 2 } };
	/* In file data, in a file tree, and in the header of the device tree, which is not needed to find files. */
	static const struct {
		const char *bytes;
		size_t len;
	} marks[] = { { "BIGMARKER", 9 }, { "MARKERDATA", 10 }, { "\1\0\0\0\0\0\0\0\4\0\0\0\0\0\0", 16 } };

	(void)state;
	UNIT_NEEDS(UNIT_CODECS && UNIT_SUMS && UNIT_UUID);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct btrkit_error err = BTRKIT_ERROR_INIT;
		struct tamper t[DEVICES_MAX] = { 0 };
		struct places p[ARRAY_SIZE(marks)];
		struct told told;

		if (run_with(cases[i].profile, t, cases[i].devices, &told, &err))
			fail_msg("%s; %s", err.message, told.first);
		for (size_t k = 0; k < ARRAY_SIZE(marks); k++)
			p[k] = find_places(t, cases[i].devices, marks[k].bytes, marks[k].len);
		close_all(t, cases[i].devices);
		for (size_t k = 0; k < ARRAY_SIZE(marks); k++) {
			assert_int_equal(p[k].n, cases[i].copies);
			check_copies(cases[i].profile, cases[i].devices, &p[k]);
		}
	}
}

static void a_device_is_disowned(void **state)
{
	struct btrkit_mkfs_source s;
	struct btrkit_mkfs_options o = options(&s, false);
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct tamper t = { .from = "TARGET", .to = "TARGEX", .len = 6, .tree = true };
	struct told told;
	le64 magic;

	(void)state;
	o.flags = BTRKIT_MKFS_VERIFY;
	assert_int_equal(run(&t, &o, NULL, &told, &err), -EUCLEAN);
	assert_int_equal(btrkit_io_read(t.below, MAGIC_AT, &magic, sizeof(magic), &err), 0);
	assert_int_equal(le64_get(magic), 0);
	btrkit_io_close(t.below);
	/* Unless requested, nothing is verified. */
	o.flags = 0;
	t.hits = 0;
	assert_int_equal(run(&t, &o, NULL, &told, &err), 0);
	assert_int_equal(t.hits, 0);
	assert_int_equal(btrkit_io_read(t.below, MAGIC_AT, &magic, sizeof(magic), &err), 0);
	assert_int_not_equal(le64_get(magic), 0);
	btrkit_io_close(t.below);
}

static void a_source_that_changes_is_told(void **state)
{
	struct btrkit_mkfs_source s;
	struct btrkit_mkfs_options o = options(&s, false);
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct tamper t = { .touch = big };
	struct told told;

	(void)state;
	assert_int_equal(run(&t, &o, NULL, &told, &err), -ESTALE);
	assert_non_null(strstr(err.message, "big: changed while it was read"));
	assert_int_equal(t.io.size, 0);
	btrkit_io_close(t.below);
}

static int interrupt(void *ctx, uint64_t done, uint64_t total)
{
	const uint64_t contents = 10 + 2 * 8000 + 12 * MIB + 30 * 9;

	(void)ctx;
	(void)done;
	/* Only while tree blocks are verified, too. */
	return total > contents && !((total - contents) % NODESIZE) ? -EINTR : 0;
}

static void it_can_be_interrupted(void **state)
{
	struct btrkit_mkfs_source s;
	struct btrkit_mkfs_options o = options(&s, false);
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct tamper t = { 0 };
	struct told told;

	(void)state;
	o.verifying = interrupt;
	assert_int_equal(run(&t, &o, NULL, &told, &err), -EINTR);
	assert_int_equal(t.io.size, 0);
	btrkit_io_close(t.below);
	o.flags |= BTRKIT_MKFS_DRY;
	t = (struct tamper){ 0 };
	assert_int_equal(run(&t, &o, NULL, &told, &err), -EINVAL);
	btrkit_io_close(t.below);
	o.source = NULL;
	o.flags = BTRKIT_MKFS_VERIFY;
	assert_int_equal(run(&t, &o, NULL, &told, &err), -EINVAL);
	btrkit_io_close(t.below);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_is_equal),
		cmocka_unit_test(what_differs_is_named),
		cmocka_unit_test(names_are_known_to_inodes),
		cmocka_unit_test(copies_are_read),
		cmocka_unit_test(a_device_is_disowned),
		cmocka_unit_test(a_source_that_changes_is_told),
		cmocka_unit_test(it_can_be_interrupted),
	};

	return cmocka_run_group_tests(tests, make_files, remove_files);
}
