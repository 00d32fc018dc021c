// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Filesystems that are filled when they are made, on devices in memory: all structures are consistent, every file reads
 * back, small files are inline and large ones have extents of full size.
 */
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <btrkit/btrkit.h>

#include "lib/format/items/files/dir.h"
#include "lib/mkfs/filled/units.h"
#include "lib/source/build.h"
#include "tests/audit/audit.h"
#include "tests/crash/sparse.h"

#define KIB (1ull << 10)
#define MIB (1ull << 20)
#define DEVICES_MAX 6

static char top[] = "/tmp/btrkit-fill.XXXXXX";

static void need(int ret, const struct btrkit_error *err)
{
	char line[512];

	if (ret)
		fail_msg("%s", btrkit_error_format(err, line, sizeof(line)));
}

/* Changes to a new working directory that has only a directory "tree". */
static int enter(void **state)
{
	(void)state;
	memcpy(top + sizeof(top) - 7, "XXXXXX", 6);
	return !mkdtemp(top) || chdir(top) || mkdir("tree", 0755) ? -1 : 0;
}

static int leave(void **state)
{
	char command[100];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", top);
	return chdir("/") || system(command) ? -1 : 0;
}

/* Byte @at of a file of that kind. */
static uint8_t byte_of(unsigned kind, uint64_t at)
{
	const uint64_t word = (at / 8 + 1) * 0x9e3779b97f4a7c15ull;

	switch (kind) {
	case 0: /* random */
		return (uint8_t)(((word ^ word >> 29) * 0xbf58476d1ce4e5b9ull ^ word >> 13) >> at % 8 * 8);
	case 1: /* compressible */
		return "in the beginning "[at / 3 % 17];
	case 2: /* zeros except at its end */
		return at % (5 * MIB) >= 4 * MIB || at % 20000 == 19999;
	default: /* its first MiB random, the rest not */
		return at < MIB ? byte_of(0, at) : 'x';
	}
}

#define KINDS 4u

/* "tree/KIND-SIZE" */
static void put(unsigned kind, uint64_t size)
{
	uint8_t *bytes = malloc(size + 1);
	char name[64];
	int fd;

	assert_non_null(bytes);
	for (uint64_t at = 0; at < size; at++)
		bytes[at] = byte_of(kind, at);
	snprintf(name, sizeof(name), "tree/%u-%llu", kind, (unsigned long long)size);
	fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, size), size);
	close(fd);
	free(bytes);
}

struct made {
	struct sparse *sparse[DEVICES_MAX];
	struct btrkit_io *ios[DEVICES_MAX];
	unsigned n;
	struct btrkit_fs *fs;
	struct btrkit_mkfs_result result;
};

static struct btrkit_mkfs_options options_of(const struct btrkit_mkfs_source *source)
{
	static const uint8_t fsid[16] = { 1, 2, 3 };
	struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;

	o.flags = BTRKIT_MKFS_FIT;
	o.fsid = fsid;
	o.source = source;
	o.threads = 2;
	return o;
}

static void create_devices(struct made *m, unsigned n, uint64_t size)
{
	memset(m, 0, sizeof(*m));
	m->n = n;
	for (unsigned d = 0; d < n; d++) {
		m->sparse[d] = sparse_create(size ? size : 4096, NULL);
		if (!size)
			sparse_like_file(m->sparse[d]);
		m->ios[d] = sparse_io(m->sparse[d]);
	}
}

static int count_bytes(void *ctx, const void *data, size_t len)
{
	(void)data;
	*(size_t *)ctx += len;
	return 0;
}

/* Opens the filesystem; the audit compares all its structures, the dump validates each item. */
static void check_made(struct made *m)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	size_t printed = 0;

	need(btrkit_fs_open(m->ios, m->n, NULL, &m->fs, &err), &err);
	need(audit_own(m->fs, 0, &err), &err);
	need(btrkit_dump_tree(m->fs, NULL, count_bytes, &printed, &err), &err);
}

static unsigned num_made;

/* @size: of each device; 0 for files that get the size that is needed */
static void make(struct made *m, const struct btrkit_mkfs_options *o, unsigned n, uint64_t size)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;

	create_devices(m, n, size);
	need(btrkit_mkfs(m->ios, n, o, &m->result, &err), &err);
	check_made(m);
	num_made++;
}

static void release(struct made *m)
{
	btrkit_fs_close(m->fs);
	for (unsigned d = 0; d < m->n; d++)
		sparse_free(m->sparse[d]);
}

static struct btrkit_inode inode_at(const struct made *m, const char *path)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_inode inode;

	need(btrkit_inode_find(m->fs, 5, path, &inode, &err), &err);
	return inode;
}

static void read_back(const struct made *m, const char *path, unsigned kind, uint64_t size)
{
	const struct btrkit_inode inode = inode_at(m, path);
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	uint8_t *bytes = malloc(size + 1);
	struct btrkit_file *f;
	size_t got;

	assert_non_null(bytes);
	assert_int_equal(inode.size, size);
	need(btrkit_file_open(m->fs, inode.root, inode.inode, &f, &err), &err);
	need(btrkit_file_read(f, 0, bytes, size + 1, &got, &err), &err);
	assert_int_equal(got, size);
	for (uint64_t at = 0; at < size; at++)
		if (bytes[at] != byte_of(kind, at))
			fail_msg("%s: byte %llu is %u, not %u", path, (unsigned long long)at, bytes[at],
				 byte_of(kind, at));
	btrkit_file_close(f);
	free(bytes);
}

static const uint64_t sizes[] = { 0, 1, 2047, 2048, 4095, 4096, 4097, 128 * KIB - 1, 128 * KIB, 128 * KIB + 1,
				  MIB - 1, MIB, MIB + 1, 3 * MIB + 4095 };

static void put_all(void)
{
	for (unsigned kind = 0; kind < KINDS; kind++)
		for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
			put(kind, sizes[i]);
	/* Holes are looked for only in large files. */
	put(2, 17 * MIB + 5);
}

static void read_all_back(const struct made *m)
{
	char name[64];

	for (unsigned kind = 0; kind < KINDS; kind++)
		for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
			snprintf(name, sizeof(name), "%u-%llu", kind, (unsigned long long)sizes[i]);
			read_back(m, name, kind, sizes[i]);
		}
	read_back(m, "2-17825797", 2, 17 * MIB + 5);
}

/*
 * Each node size, sector size, compression and checksum type; old features; into a file, and on a device of exactly
 * that size.
 */
static void everything_reads_back(void **state)
{
	static const struct btrkit_mkfs_source source = { .kind = BTRKIT_SOURCE_DIRECTORY, .path = "tree" };
	struct made m;

	(void)state;
	UNIT_NEEDS(UNIT_CODECS && UNIT_SUMS && UNIT_UUID);
	put_all();
	for (unsigned i = 0; i < 20; i++) {
		struct btrkit_mkfs_options o = options_of(&source);

		o.nodesize = 4096u << i % 5;
		o.sectorsize = i >= 15 ? o.nodesize : 4096;
		o.compression = i % 4;
		o.csum = i / 2 % 4;
		o.data = i % 3 == 2 ? BTRKIT_PROFILE_DUP : BTRKIT_PROFILE_SINGLE;
		o.flags |= i % 7 == 3 ? BTRKIT_MKFS_QUOTA : 0;
		o.flags |= i % 2 ? BTRKIT_MKFS_DETERMINISTIC : 0;
		if (i % 6 == 4)
			o.incompat &= ~0x200ull; /* no-holes */
		if (i % 6 == 5)
			o.compat_ro = 0;
		if (i == 7) {
			o.mixed = true;
			o.nodesize = o.sectorsize;
			o.data = o.metadata = BTRKIT_PROFILE_SINGLE;
		}
		make(&m, &o, 1, 0);
		read_all_back(&m);
		assert_int_equal(m.result.total_bytes, m.ios[0]->size);
		/* The contents also fit on a device of exactly that size, but not on a smaller one. */
		if (i % 4 == 1) {
			const uint64_t size = m.ios[0]->size;
			struct btrkit_error err = BTRKIT_ERROR_INIT;

			release(&m);
			o.flags &= ~(unsigned)BTRKIT_MKFS_FIT;
			make(&m, &o, 1, size);
			read_all_back(&m);
			release(&m);
			create_devices(&m, 1, size - o.sectorsize);
			assert_int_equal(btrkit_mkfs(m.ios, 1, &o, NULL, &err), -ENOSPC);
			assert_non_null(strstr(err.message, "too small"));
			/* After the failure there is no filesystem. */
			assert_true(btrkit_fs_open(m.ios, 1, NULL, &m.fs, NULL) < 0);
			m.fs = NULL;
		}
		release(&m);
	}
}

static void every_profile_reads_back(void **state)
{
	static const struct btrkit_mkfs_source source = { .kind = BTRKIT_SOURCE_DIRECTORY, .path = "tree" };
	unsigned made = 0;
	struct made m;

	(void)state;
	put_all();
	for (unsigned i = 0; i < 7 * 7; i += 3) {
		struct btrkit_mkfs_options o = options_of(&source);
		const unsigned n = 4 + i % 3;

		o.data = BTRKIT_PROFILE_SINGLE + i % 7;
		o.metadata = BTRKIT_PROFILE_SINGLE + i / 7;
		make(&m, &o, n, i % 2 ? 300 * MIB : 0);
		read_all_back(&m);
		release(&m);
		made++;
	}
	assert_int_equal(made, 17);
}

/* A single file: inline up to the limit of the node or the sector; otherwise in a sector. */
static void small_files_lie_in_items(void **state)
{
	static const struct btrkit_mkfs_source source = { .kind = BTRKIT_SOURCE_DIRECTORY, .path = "tree" };
	static const struct {
		uint32_t nodesize, sectorsize, max;
	} limits[] = { { 4096, 4096, 3949 }, { 8192, 4096, 4095 }, { 16384, 4096, 4095 }, { 65536, 4096, 4095 },
		       { 8192, 8192, 8045 }, { 65536, 65536, 65389 } };
	char name[64];
	struct made m;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		for (uint32_t size = limits[i].max - 1; size <= limits[i].max + 1; size++) {
			struct btrkit_mkfs_options o = options_of(&source);

			put(0, size);
			o.nodesize = limits[i].nodesize;
			o.sectorsize = limits[i].sectorsize;
			make(&m, &o, 1, 0);
			snprintf(name, sizeof(name), "0-%u", size);
			read_back(&m, name, 0, size);
			if (size <= limits[i].max)
				assert_int_equal(m.result.data_bytes, 0);
			else
				assert_int_equal(m.result.data_bytes,
						 (size + o.sectorsize - 1) / o.sectorsize * o.sectorsize);
			release(&m);
			snprintf(name, sizeof(name), "tree/0-%u", size);
			assert_int_equal(unlink(name), 0);
		}
	}
}

static int sum_extents(void *ctx, const struct btrkit_file_extent *e)
{
	uint64_t *n = ctx;

	(void)e;
	++*n;
	return 0;
}

/*
 * A file whose beginning does not compress is stored uncompressed, with the flag for that, and its extents are merged.
 */
static void verdicts_follow_the_beginning(void **state)
{
	static const struct btrkit_mkfs_source source = { .kind = BTRKIT_SOURCE_DIRECTORY, .path = "tree" };
	struct btrkit_mkfs_options o = options_of(&source);
	struct made m;

	(void)state;
	UNIT_NEEDS(UNIT_CODECS);
	for (unsigned kind = 0; kind < KINDS; kind++)
		put(kind, 3 * MIB + 4095);
	for (o.compression = BTRKIT_COMPRESSION_ZLIB; o.compression <= BTRKIT_COMPRESSION_ZSTD; o.compression++) {
		make(&m, &o, 1, 0);
		for (unsigned kind = 0; kind < KINDS; kind++) {
			const bool random = kind == 0 || kind == 3;
			struct btrkit_inode inode;
			char name[64];
			uint64_t n = 0;

			snprintf(name, sizeof(name), "%u-%llu", kind, 3 * MIB + 4095);
			read_back(&m, name, kind, 3 * MIB + 4095);
			inode = inode_at(&m, name);
			assert_int_equal(!!(inode.flags & 8), random);
			need(btrkit_inode_extents(m.fs, inode.root, inode.inode, sum_extents, &n, NULL), NULL);
			if (random)
				assert_int_equal(n, 1);
			if (kind == 1)
				assert_int_equal(n, 25);
		}
		assert_true(m.result.compressed_from >= 3 * MIB);
		assert_true(m.result.compressed_to < m.result.compressed_from / 2);
		release(&m);
	}
}

/* More names than the item of one directory can hold, in two directories. */
static void links_go_on_in_other_items(void **state)
{
	static const struct btrkit_mkfs_source source = { .kind = BTRKIT_SOURCE_DIRECTORY, .path = "tree" };
	struct btrkit_mkfs_options o = options_of(&source);
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	char name[300];
	struct made m;

	(void)state;
	assert_int_equal(mkdir("tree/dir", 0755), 0);
	put(1, 5000);
	for (unsigned i = 0; i < 2000; i++) {
		snprintf(name, sizeof(name), "tree/%s%s%u", i % 2 ? "dir/" : "", i % 3 ? "a long one " : "", i);
		assert_int_equal(link("tree/1-5000", name), 0);
	}
	for (o.nodesize = 4096; o.nodesize <= 65536; o.nodesize *= 4) {
		make(&m, &o, 1, 0);
		for (unsigned i = 0; i < 2000; i += 37) {
			snprintf(name, sizeof(name), "%s%s%u", i % 2 ? "dir/" : "", i % 3 ? "a long one " : "", i);
			read_back(&m, name, 1, 5000);
			assert_int_equal(inode_at(&m, name).nlink, 2001);
		}
		release(&m);
	}
	o.nodesize = 4096;
	o.incompat &= ~0x40ull; /* extref */
	create_devices(&m, 1, 0);
	assert_int_equal(btrkit_mkfs(m.ios, 1, &o, NULL, &err), -EINVAL);
	assert_non_null(strstr(err.message, "require the feature extref"));
	assert_int_equal(m.ios[0]->size, 0);
	release(&m);
}

struct hashed {
	uint32_t hash, number;
};

static int by_hash(const void *a, const void *b)
{
	const struct hashed *x = a, *y = b;

	return x->hash < y->hash ? -1 : x->hash > y->hash;
}

#define NAMES 400000u

static int name_of(char *to, size_t size, uint32_t number)
{
	const uint64_t word = (number + 1ull) * 0x9e3779b97f4a7c15ull;

	return snprintf(to, size, "user.%llx", (unsigned long long)(word ^ word >> 31));
}

/* Names with the same hash share an item, and so do attributes. */
static void hashes_collide(void **state)
{
	static const struct btrkit_mkfs_source source = { .kind = BTRKIT_SOURCE_MANIFEST, .path = "manifest" };
	struct hashed *all = calloc(NAMES, sizeof(*all));
	struct btrkit_mkfs_options o = options_of(&source);
	unsigned found = 0;
	char one[40], two[40];
	struct made m;
	FILE *f = fopen("manifest", "w");

	(void)state;
	assert_true(all && f);
	for (uint32_t i = 0; i < NAMES; i++) {
		const int len = name_of(one, sizeof(one), i);

		all[i] = (struct hashed){ (uint32_t)dir_name_hash(one, (size_t)len), i };
	}
	qsort(all, NAMES, sizeof(*all), by_hash);
	fprintf(f, "/ 0 40755 2 0 0 0 1.1 - - -\n");
	for (uint32_t i = 1; i < NAMES; i++) {
		if (all[i].hash != all[i - 1].hash)
			continue;
		name_of(one, sizeof(one), all[i - 1].number);
		name_of(two, sizeof(two), all[i].number);
		fprintf(f, "/%s 0 100644 1 0 0 0 1.1 - - - %s=1 %s=22\n", one, one, two);
		fprintf(f, "/%s 3 100644 1 0 0 0 1.1 - abc -\n", two);
		found++;
	}
	assert_int_equal(fclose(f), 0);
	printf("%u collisions\n", found);
	assert_true(found > 3);
	make(&m, &o, 1, 0);
	for (uint32_t i = 1; i < NAMES; i++) {
		if (all[i].hash != all[i - 1].hash)
			continue;
		name_of(one, sizeof(one), all[i - 1].number);
		name_of(two, sizeof(two), all[i].number);
		assert_int_equal(inode_at(&m, one).size, 0);
		assert_int_equal(inode_at(&m, two).size, 3);
	}
	release(&m);
	free(all);
}

static int end_it(void *ctx, const struct btrkit_mkfs_so_far *so_far)
{
	(void)so_far;
	return --*(int *)ctx ? 0 : -EINTR;
}

/* Cancelling leaves an empty file, and no filesystem on a device. */
static void what_fails_leaves_nothing(void **state)
{
	static const struct btrkit_mkfs_source source = { .kind = BTRKIT_SOURCE_DIRECTORY, .path = "tree" };
	struct btrkit_mkfs_options o = options_of(&source);
	unsigned ended = 0;
	struct made m;

	(void)state;
	put_all();
	o.filling = end_it;
	for (unsigned size = 0; size < 2; size++)
		for (int at = 1; at < 1000; at += 3) {
			int left = at, ret;

			o.progress_ctx = &left;
			create_devices(&m, 1, size * 200 * MIB);
			ret = btrkit_mkfs(m.ios, 1, &o, NULL, NULL);
			if (ret) {
				assert_int_equal(ret, -EINTR);
				assert_true(size || !m.ios[0]->size);
				if (size)
					assert_true(btrkit_fs_open(m.ios, 1, NULL, &m.fs, NULL) < 0);
				m.fs = NULL;
				ended++;
			}
			release(&m);
			if (!ret)
				break;
		}
	assert_true(ended > 10);
}

#define STREAMED (5 * MIB + 100)

/* The sink for archives: ranges of one file, with holes between them; ranges past its end are refused. */
static void streams_have_holes(void **state)
{
	struct btrkit_mkfs_source opts = { .kind = BTRKIT_SOURCE_MANIFEST, .path = "test" };
	const struct source_attr attr = { .mode = S_IFREG | 0644, .size = STREAMED };
	struct btrkit_mkfs_options o = options_of(&opts);
	struct mkfs_device device = { 0 };
	struct mkfs_layout layout = { 0 };
	struct mkfs_compact compact = {
		.opts = &o, .devices = &device, .num_devices = 1, .layout = &layout, .grow = true, .dry = true
	};
	struct units_config config = { .compact = &compact,
				       .sectorsize = 4096,
				       .inline_max = 4000,
				       .threads = 3,
				       .csum = csum_kind_find(BTRKIT_CSUM_CRC32C) };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct source_sink sink;
	struct units *units;
	static uint8_t bytes[100000];
	uint32_t inode;

	(void)state;
	memset(bytes, 'x', sizeof(bytes));
	o.data = o.metadata = BTRKIT_PROFILE_SINGLE;
	o.nodesize = 16384;
	o.sectorsize = 4096;
	need(source_create(&opts, &(struct source_limits){ 100, 200 }, &config.source, &err), &err);
	need(source_add(config.source, 0, "file", 4, &attr, &inode, &err), &err);
	need(mkfs_contents_create(&config.contents, &err), &err);
	need(mkfs_compact_begin(&compact, &err), &err);
	need(units_create(&config, &units, &err), &err);
	sink = units_sink(units);
	need(sink.begin(sink.ctx, inode, &err), &err);
	assert_int_equal(sink.write(sink.ctx, STREAMED, bytes, 1, &err), -EINVAL);
	assert_int_equal(sink.write(sink.ctx, STREAMED - 5, bytes, 6, &err), -EINVAL);
	assert_int_equal(sink.write(sink.ctx, UINT64_MAX, bytes, 6, &err), -EINVAL);
	assert_non_null(strstr(err.message, "file: contents are longer than the file size"));
	need(sink.write(sink.ctx, 8192, bytes, 5000, &err), &err);
	need(sink.write(sink.ctx, MIB - 4096, bytes, 8192, &err), &err);
	need(sink.write(sink.ctx, 3 * MIB + 1, bytes, sizeof(bytes), &err), &err);
	need(sink.end(sink.ctx, &err), &err);
	need(source_finish(config.source, &err), &err);
	need(units_finish(units, &err), &err);
	units_destroy(units);
	assert_int_equal(config.contents->num_extents, 3);
	assert_int_equal(config.contents->extents[0].file_offset, 8192);
	assert_int_equal(config.contents->extents[0].ram_bytes, 8192);
	assert_int_equal(config.contents->extents[1].file_offset, MIB - 4096);
	assert_int_equal(config.contents->extents[1].ram_bytes, 8192);
	assert_int_equal(config.contents->extents[2].file_offset, 3 * MIB);
	assert_int_equal(config.contents->extents[2].ram_bytes, (sizeof(bytes) + 4096) / 4096 * 4096);
	assert_int_equal(config.source->inodes[inode].count, 3);
	mkfs_contents_destroy(config.contents);
	source_destroy(config.source);
	mkfs_compact_release(&compact);
	mkfs_layout_release(&layout);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(everything_reads_back, enter, leave),
		cmocka_unit_test_setup_teardown(every_profile_reads_back, enter, leave),
		cmocka_unit_test_setup_teardown(small_files_lie_in_items, enter, leave),
		cmocka_unit_test_setup_teardown(verdicts_follow_the_beginning, enter, leave),
		cmocka_unit_test_setup_teardown(links_go_on_in_other_items, enter, leave),
		cmocka_unit_test_setup_teardown(hashes_collide, enter, leave),
		cmocka_unit_test_setup_teardown(what_fails_leaves_nothing, enter, leave),
		cmocka_unit_test(streams_have_holes),
	};
	const int ret = cmocka_run_group_tests(tests, NULL, NULL);

	printf("%u filesystems\n", num_made);
	return ret;
}
