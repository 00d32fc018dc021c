// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <unistd.h>

#include "config.h"

#include "lib/base/crc32c.h"
#include "lib/base/err.h"
#include "lib/base/le.h"
#include "lib/io/spec.h"

#define SECTOR 512u
#define DISK_SECTORS 8192u

static void good_specs(void **state)
{
	static const struct {
		const char *text, *path;
		uint64_t offset, size;
		unsigned partition;
	} rows[] = {
		{ "disk", "disk", 0, 0, 0 },
		{ "/a/b.img?offset=512", "/a/b.img", 512, 0, 0 },
		{ "a?offset=1m&size=2G", "a", 1 << 20, 2ull << 30, 0 },
		{ "a?size=1k&offset=3", "a", 3, 1024, 0 },
		{ "a?partition=2", "a", 0, 0, 2 },
		{ "a?b?offset=1", "a?b", 1, 0, 0 },
		{ "a?offset=15e", "a", 15ull << 60, 0, 0 },
		{ "a?offset=18446744073709551615", "a", UINT64_MAX, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct io_spec spec;

		assert_int_equal(io_spec_parse(rows[i].text, &spec, NULL), 0);
		assert_string_equal(spec.path, rows[i].path);
		assert_true(spec.offset == rows[i].offset);
		assert_true(spec.size == rows[i].size);
		assert_int_equal(spec.partition, rows[i].partition);
		free(spec.path);
	}
}

static void bad_specs(void **state)
{
	static const char *const rows[] = {
		"a?",		     "a?offset",	   "a?offset=",		 "a?offset=x",
		"a?offset=1x",	     "a?offset=1kk",	   "a?offset=-1",	 "a?offset=0x10",
		"a?offset=1&",	     "a?offset=1&&size=1", "a?size=0",		 "a?size=18446744073709551616",
		"a?offset=16e",	     "a?partition=0",	   "a?partition=x",	 "a?partition=4294967296",
		"a?partition=1&offset=1", "a?size=5&partition=1", "a?sector=1",	 "a?offset=1 ",
		"a?partition=1&offset=0", "a?offset=1&offset=1", "a?size=1&size=2", "a?partition=1&partition=1",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct btrkit_error err = BTRKIT_ERROR_INIT;
		struct io_spec spec = { 0 };

		if (io_spec_parse(rows[i], &spec, &err) != -EINVAL)
			fail_msg("taken: %s", rows[i]);
		assert_int_equal(err.code, BTRKIT_INVALID);
		assert_null(spec.path);
	}
}

static void a_path_that_exists_is_taken_as_it_stands(void **state)
{
	char path[] = "/tmp/btrkit-unit-spec?XXXXXX";
	int fd = mkstemp(path);
	struct io_spec spec;

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(io_spec_parse(path, &spec, NULL), 0);
	assert_string_equal(spec.path, path);
	free(spec.path);
	unlink(path);
}

static void a_part_must_lie_in_the_device(void **state)
{
	static const struct {
		uint64_t offset, size, device;
		int ret;
		uint64_t found;
	} rows[] = {
		{ 0, 0, 1000, 0, 1000 },
		{ 400, 0, 1000, 0, 600 },
		{ 400, 600, 1000, 0, 600 },
		{ 400, 601, 1000, -EINVAL, 0 },
		{ 1000, 0, 1000, 0, 0 },
		{ 1001, 0, 1000, -EINVAL, 0 },
		{ UINT64_MAX, UINT64_MAX, 1000, -EINVAL, 0 },
		{ 1, UINT64_MAX, 1000, -EINVAL, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct io_spec spec = { .offset = rows[i].offset, .size = rows[i].size };

		assert_int_equal(io_spec_locate(&spec, -1, rows[i].device, NULL), rows[i].ret);
		if (!rows[i].ret)
			assert_true(spec.size == rows[i].found);
	}
}

static int disk_file(void)
{
	char path[] = "/tmp/btrkit-unit-disk.XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	unlink(path);
	assert_int_equal(ftruncate(fd, DISK_SECTORS * SECTOR), 0);
	return fd;
}

static void put_sector(int fd, uint64_t lba, const void *data, size_t len)
{
	assert_int_equal(pwrite(fd, data, len, (off_t)(lba * SECTOR)), len);
}

struct mbr_entry {
	uint8_t boot, first_chs[3], type, last_chs[3];
	le32 start, sectors;
};

struct mbr {
	uint8_t code[446];
	struct mbr_entry entries[4];
	uint8_t signature[2];
};

_Static_assert(sizeof(struct mbr) == SECTOR, "an MBR is a sector");

static void write_mbr(int fd)
{
	struct mbr mbr = { .signature = { 0x55, 0xaa } };

	mbr.entries[0] = (struct mbr_entry){ .type = 0x83, .start = le32_put(64), .sectors = le32_put(1000) };
	mbr.entries[2] = (struct mbr_entry){ .type = 0x83, .start = le32_put(2048), .sectors = le32_put(4096) };
	mbr.entries[3] = (struct mbr_entry){ .type = 0x05, .start = le32_put(7000), .sectors = le32_put(1000) };
	put_sector(fd, 0, &mbr, sizeof(mbr));
}

struct gpt_header {
	uint8_t signature[8];
	le32 revision, header_size, header_crc, reserved;
	le64 own_lba, other_lba, first_usable, last_usable;
	uint8_t guid[16];
	le64 entries_lba;
	le32 entries, entry_size, entries_crc;
};

struct gpt_entry {
	uint8_t type[16], guid[16];
	le64 first, last, flags;
	uint8_t name[72];
};

_Static_assert(sizeof(struct gpt_header) == 92, "a GPT header has 92 bytes");
_Static_assert(sizeof(struct gpt_entry) == 128, "a GPT entry has 128 bytes");

/* The CRC-32 that GPT uses (polynomial 0xedb88320); the library itself does not need it. */
static uint32_t gpt_crc(const void *data, size_t len)
{
	const uint8_t *at = data;
	uint32_t crc = ~0u;

	while (len--) {
		crc ^= *at++;
		for (unsigned i = 0; i < 8; i++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
	}
	return ~crc;
}

static void write_gpt(int fd)
{
	struct mbr protective = { .signature = { 0x55, 0xaa } };
	static struct gpt_entry entries[128];
	struct gpt_header header = {
		.signature = "EFI PART",
		.revision = le32_put(0x10000),
		.header_size = le32_put(sizeof(header)),
		.own_lba = le64_put(1),
		.other_lba = le64_put(DISK_SECTORS - 1),
		.first_usable = le64_put(34),
		.last_usable = le64_put(DISK_SECTORS - 34),
		.guid = { 1 },
		.entries_lba = le64_put(2),
		.entries = le32_put(ARRAY_SIZE(entries)),
		.entry_size = le32_put(sizeof(entries[0])),
	};

	protective.entries[0] =
		(struct mbr_entry){ .type = 0xee, .start = le32_put(1), .sectors = le32_put(DISK_SECTORS - 1) };
	entries[1] = (struct gpt_entry){ .type = { 2 }, .guid = { 3 }, .first = le64_put(100), .last = le64_put(299) };
	/* One partition that ends one sector before its start, and one that ends far before it. */
	entries[2] = (struct gpt_entry){ .type = { 2 }, .guid = { 4 }, .first = le64_put(100), .last = le64_put(99) };
	entries[3] = (struct gpt_entry){ .type = { 2 }, .guid = { 5 }, .first = le64_put(100), .last = le64_put(50) };
	header.entries_crc = le32_put(gpt_crc(entries, sizeof(entries)));
	header.header_crc = le32_put(gpt_crc(&header, sizeof(header)));
	put_sector(fd, 0, &protective, sizeof(protective));
	put_sector(fd, 1, &header, sizeof(header));
	put_sector(fd, 2, entries, sizeof(entries));
}

#ifdef HAVE_BLKID
static void locate(int fd, unsigned number, int ret, uint64_t offset, uint64_t size)
{
	struct io_spec spec = { .partition = number };

	assert_int_equal(io_spec_locate(&spec, fd, DISK_SECTORS * SECTOR, NULL), ret);
	if (!ret) {
		assert_true(spec.offset == offset);
		assert_true(spec.size == size);
	}
}
#else
static void locate(int fd, unsigned number, int ret, uint64_t offset, uint64_t size)
{
	struct io_spec spec = { .partition = number };

	(void)ret;
	(void)offset;
	(void)size;
	assert_int_equal(io_spec_locate(&spec, fd, DISK_SECTORS * SECTOR, NULL), -EOPNOTSUPP);
}
#endif

static void partitions_of_an_mbr(void **state)
{
	int fd = disk_file();

	(void)state;
	write_mbr(fd);
	locate(fd, 1, 0, 64 * SECTOR, 1000 * SECTOR);
	locate(fd, 3, 0, 2048 * SECTOR, 4096 * SECTOR);
	locate(fd, 2, -ENOENT, 0, 0);
	locate(fd, 4, -EINVAL, 0, 0);
	locate(fd, 9, -ENOENT, 0, 0);
	close(fd);
}

static void partitions_of_a_gpt(void **state)
{
	int fd = disk_file();

	(void)state;
	write_gpt(fd);
	locate(fd, 2, 0, 100 * SECTOR, 200 * SECTOR);
	/* These must fail, instead of giving everything from their start to the end of the disk. */
	locate(fd, 3, -EINVAL, 0, 0);
	locate(fd, 4, -EINVAL, 0, 0);
	locate(fd, 1, -ENOENT, 0, 0);
	close(fd);
}

static void a_disk_without_a_table(void **state)
{
	int fd = disk_file();

	(void)state;
	locate(fd, 1, -ENOENT, 0, 0);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_specs),
		cmocka_unit_test(bad_specs),
		cmocka_unit_test(a_path_that_exists_is_taken_as_it_stands),
		cmocka_unit_test(a_part_must_lie_in_the_device),
		cmocka_unit_test(partitions_of_an_mbr),
		cmocka_unit_test(partitions_of_a_gpt),
		cmocka_unit_test(a_disk_without_a_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
