// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Filling without memory: each allocation fails, alone or with all after it. The call must report it, leak nothing
 * (seen under AddressSanitizer) and leave no filesystem.
 */
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <btrkit/btrkit.h>

#include "tests/crash/sparse.h"
#include "tests/unit/memory.h"

#define MIB (1ull << 20)

static char top[] = "/tmp/btrkit-fill-oom.XXXXXX";

static void put(const char *name, size_t size, char what)
{
	char *bytes = malloc(size);
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(bytes && fd >= 0);
	for (size_t i = 0; i < size; i++)
		bytes[i] = what ? what : (char)((i + 1) * 2654435761u >> 24);
	assert_int_equal(write(fd, bytes, size), size);
	close(fd);
	free(bytes);
}

/* Creates a small tree with something of every kind, and an archive of it if there is a tar command. */
static int enter(void **state)
{
	(void)state;
	if (!mkdtemp(top) || chdir(top) || mkdir("tree", 0755) || mkdir("tree/dir", 0755) || mkdir("tree/sub", 0755))
		return -1;
	put("tree/packed", 2 * MIB + 5, 'x');
	put("tree/random", MIB + 70000, 0);
	put("tree/dir/small", 100, 'y');
	put("tree/sub/file", 5000, 'z');
	put("tree/zeros", 20000, '\0' + 1);
	if (truncate("tree/zeros", 3 * MIB) || link("tree/packed", "tree/dir/link") ||
	    link("tree/dir/small", "tree/sub/cut") || symlink("packed", "tree/symlink"))
		return -1;
	return system("tar -C tree -cf archive .") ? -1 : 0;
}

static int leave(void **state)
{
	char command[100];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", top);
	return chdir("/") || system(command) ? -1 : 0;
}

/* A write that needs no memory. */
static int swallow(struct btrkit_io *io, uint64_t offset, const void *data, size_t len)
{
	struct btrkit_io *below = *(struct btrkit_io **)(io + 1);
	const bool counted = memory_pause();
	int ret;

	ret = below->ops->write(below, offset, data, len);
	memory_resume(counted);
	return ret;
}

static int pass_read(struct btrkit_io *io, uint64_t offset, void *buf, size_t len)
{
	struct btrkit_io *below = *(struct btrkit_io **)(io + 1);

	return below->ops->read(below, offset, buf, len);
}

static int pass_flush(struct btrkit_io *io)
{
	(void)io;
	return 0;
}

static const struct btrkit_io_ops quiet_ops = { .read = pass_read, .write = swallow, .flush = pass_flush };

struct quiet {
	struct btrkit_io io;
	struct btrkit_io *below;
};

/* Makes a filesystem while allocation number @at fails, and with @on all after it. @num: the number of allocations */
static int make(struct sparse *s, const struct btrkit_mkfs_options *o, uint64_t at, bool on, uint64_t *num,
		struct btrkit_error *err)
{
	struct quiet quiet = { .io = { .ops = &quiet_ops, .size = sparse_io(s)->size }, .below = sparse_io(s) };
	struct btrkit_io *io = &quiet.io;
	int ret;

	snprintf(quiet.io.name, sizeof(quiet.io.name), "quiet");
	memory_count(at, on);
	ret = btrkit_mkfs(&io, 1, o, NULL, err);
	*num = memory_end();
	return ret;
}

static void try_source(enum btrkit_source_kind kind, enum btrkit_compression compression, unsigned flags)
{
	const struct btrkit_mkfs_subvolume sub = { .path = "sub" };
	const struct btrkit_mkfs_source source = { .kind = kind,
						   .path = kind == BTRKIT_SOURCE_ARCHIVE ? "archive" : "tree",
						   .subvolumes = &sub,
						   .num_subvolumes = 1 };
	struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct sparse *s = sparse_create(100 * MIB, NULL);
	uint64_t total, failed = 0, num;
	struct btrkit_fs *fs;

	o.flags = flags;
	o.source = &source;
	o.threads = 1;
	o.compression = compression;
	o.data = BTRKIT_PROFILE_DUP;
	if (make(s, &o, MEMORY_SUFFICES, false, &total, &err))
		fail_msg("%s", err.message);
	sparse_free(s);
	for (uint64_t at = 0; at < 2 * total; at++) {
		int ret;

		s = sparse_create(100 * MIB, NULL);
		ret = make(s, &o, at / 2, at % 2 == 0, &num, &err);
		if (ret && (ret != -ENOMEM || err.code != BTRKIT_NO_MEMORY))
			fail_msg("allocation %llu: %d: %s", (unsigned long long)at / 2, ret, err.message);
		failed += ret != 0;
		if (btrkit_fs_open((struct btrkit_io *[]){ sparse_io(s) }, 1, NULL, &fs, NULL)) {
			assert_true(ret || flags & BTRKIT_MKFS_DRY);
		} else {
			/* A library could do without the memory; then the result is the same. */
			assert_int_equal(ret, 0);
			btrkit_fs_close(fs);
		}
		sparse_free(s);
	}
	printf("%llu of %llu failed\n", (unsigned long long)failed, 2ull * total);
	assert_true(failed > total);
}

static void without_memory(void **state)
{
	(void)state;
	UNIT_NEEDS(UNIT_CODECS && UNIT_SUMS && UNIT_UUID);
	try_source(BTRKIT_SOURCE_DIRECTORY, BTRKIT_COMPRESSION_NONE, BTRKIT_MKFS_FIT);
	try_source(BTRKIT_SOURCE_DIRECTORY, BTRKIT_COMPRESSION_ZSTD, BTRKIT_MKFS_FIT | BTRKIT_MKFS_DETERMINISTIC);
	try_source(BTRKIT_SOURCE_DIRECTORY, BTRKIT_COMPRESSION_ZLIB, BTRKIT_MKFS_QUOTA);
	try_source(BTRKIT_SOURCE_DIRECTORY, BTRKIT_COMPRESSION_LZO, BTRKIT_MKFS_DRY);
	try_source(BTRKIT_SOURCE_ARCHIVE, BTRKIT_COMPRESSION_ZSTD, BTRKIT_MKFS_FIT);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test_setup_teardown(without_memory, enter, leave) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
