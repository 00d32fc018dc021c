// SPDX-License-Identifier: LGPL-2.1-or-later
/* What was written is verified: what changes between writing and reading is found, and named. */
#include "tests/unit/unit.h"

#include <unistd.h>

#include <btrkit/btrkit.h>

#include "lib/base/crc32c.h"
#include "lib/base/le.h"

#define MIB (1u << 20)
#define DEVICE_BYTES (96 * MIB) /* that are really there */
#define NODESIZE 16384u
#define SUPER_AT 65536u
#define MAGIC_AT (SUPER_AT + 64)

/* A device over one in memory, where bytes are others when they are read. */
struct tamper {
	struct btrkit_io io;
	struct btrkit_io *below;
	const char *from, *to; /* NULL: nothing */
	size_t len;
	bool tree; /* in a tree block, whose checksum is made good */
	const char *touch; /* a file that changes when the superblock is written */
	unsigned hits;
};

/* Checksums lie in the first bytes; crc32c() neither begins nor ends with all bits turned. */
static void make_good(uint8_t *block)
{
	const le32 sum = le32_put(~crc32c(~0u, block + 32, NODESIZE - 32));

	memcpy(block, &sum, sizeof(sum));
}

static int tamper_read(struct btrkit_io *io, uint64_t offset, void *buf, size_t len)
{
	struct tamper *t = (struct tamper *)io;
	uint8_t *at = buf;
	int ret = btrkit_io_read(t->below, offset, buf, len, NULL);

	if (ret || !t->from || (t->tree && len != NODESIZE))
		return ret;
	while ((at = memmem(at, len - (size_t)(at - (uint8_t *)buf), t->from, t->len))) {
		memcpy(at, t->to, t->len);
		t->hits++;
	}
	if (t->tree && t->hits)
		make_good(buf);
	return 0;
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

/* What the library says. */
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

static char folder[] = "/tmp/btrkit-verify-XXXXXX", manifest[64], archive[64], big[64];

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
	static const char *const names[] = { "manifest", "archive", "big", "large" };
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
	o.metadata = BTRKIT_SINGLE;
	o.threads = 3;
	put_file(big, "BIGMARKER", 8000);
	return o;
}

static int run(struct tamper *t, const struct btrkit_mkfs_options *given, struct btrkit_mkfs_result *r,
	       struct told *told, struct btrkit_error *err)
{
	struct btrkit_mkfs_options o = *given;
	struct btrkit_io *io = &t->io;

	*told = (struct told){ 0 };
	o.warning = take_line;
	o.progress_ctx = told;
	t->io.ops = &tamper_ops;
	t->io.size = o.flags & BTRKIT_MKFS_FIT ? 0 : DEVICE_BYTES;
	assert_int_equal(btrkit_io_memory(DEVICE_BYTES, &t->below, err), 0);
	return btrkit_mkfs(&io, 1, &o, r, err);
}

static void equal_is_equal(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 8; i++) {
		struct btrkit_mkfs_source s;
		struct btrkit_mkfs_options o = options(&s, i & 1);
		struct btrkit_error err = BTRKIT_ERROR_INIT;
		struct btrkit_mkfs_result r;
		struct tamper t = { 0 };
		struct told told;
		char line[512];

		o.compression = i & 2 ? BTRKIT_ZSTD : BTRKIT_UNCOMPRESSED;
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
		{ "MARKVALUE", "MARKVALUF", 9, true, false, 1, "dir/again: attribute user.mark has another value" },
		{ "user.mark", "user.marl", 9, true, false, 1, "dir/again: attributes cannot be read: " },
		{ "somename", "somenamf", 8, true, false, 2, "dir/somename: is missing" },
		{ "\x5a\x5a\x5a\x5a", "\x5b\x5a\x5a\x5a", 4, true, false, 1,
		  "dir/again: uid 1515870811 instead of 1515870810" },
		{ "\x15\xcd\x5b\x07", "\x15\xcd\x5b\x08", 4, true, false, 4,
		  "dir/again: atime 1234567890.140234005 instead of 1234567890.123456789" },
		{ "\xd2\x02\x96\x49", "\xd3\x02\x96\x49", 4, true, false, 4,
		  "dir/again: atime 1234567891.123456789 instead of 1234567890.123456789" },
		{ "TARGET", "TARGEX", 6, true, false, 1, "symlink: leads elsewhere" },
		{ "xyz", "xyx", 3, true, false, 30, "many0: byte 8 differs" },
		{ "BIGMARKER", "BIGMARKEX", 9, false, false, 3, "big: contents cannot be read: data checksum" },
		{ "LARGEMARKER", "LARGEMARKES", 11, false, false, 1, "large: byte 9437194 differs" },
		{ "middle-DATA", "Middle-DATA", 11, false, true, 1, "middle: contents differ" },
		{ "large-DATA", "Large-DATA", 10, false, true, 1, "large: contents differ" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct btrkit_mkfs_source s;
		struct btrkit_mkfs_options o = options(&s, cases[i].from_archive);
		struct btrkit_error err = BTRKIT_ERROR_INIT;
		struct tamper t = { .from = cases[i].from,
				    .to = cases[i].to,
				    .len = cases[i].len,
				    .tree = cases[i].tree };
		struct btrkit_mkfs_result r = { .verified = 7 };
		struct told told;
		char wanted[100];
		int ret = run(&t, &o, &r, &told, &err);

		if (strncmp(told.first, cases[i].line, strlen(cases[i].line)) != 0)
			fail_msg("'%s' instead of '%s' (%d, %s)", told.first, cases[i].line, ret, err.message);
		assert_int_equal(ret, -EUCLEAN);
		assert_true(t.hits > 0);
		snprintf(wanted, sizeof(wanted), "what was written differs from the source in %u place%s",
			 cases[i].differences, cases[i].differences > 1 ? "s" : "");
		assert_string_equal(err.message, wanted);
		assert_int_equal(told.lines, cases[i].differences > 20 ? 21 : cases[i].differences);
		if (cases[i].differences > 20)
			assert_string_equal(told.last, "and 10 more");
		/* Nobody takes it for a filesystem. */
		assert_int_equal(t.io.size, 0);
		assert_int_equal(r.verified, 7);
		btrkit_io_close(t.below);
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
	/* Not asked for, nothing is looked at. */
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
	(void)ctx;
	(void)done;
	return total == 10 + 2 * 8000 + 12 * MIB + 30 * 9 ? -EINTR : 0;
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
		cmocka_unit_test(a_device_is_disowned),
		cmocka_unit_test(a_source_that_changes_is_told),
		cmocka_unit_test(it_can_be_interrupted),
	};

	return cmocka_run_group_tests(tests, make_files, remove_files);
}
