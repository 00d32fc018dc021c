// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/io/spec.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config.h"

#ifdef HAVE_BLKID
#include <blkid.h>
#endif

#include "lib/base/err.h"

/* Parses a number of bytes with an optional suffix for a power of 1024. */
static bool parse_bytes(const char *text, size_t len, uint64_t *ret)
{
	static const char suffixes[] = "kmgtpe";
	const char *suffix;
	unsigned shift = 0;
	uint64_t v = 0;
	size_t i = 0;

	for (; i < len && isdigit((unsigned char)text[i]); i++)
		if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, (uint64_t)(text[i] - '0'), &v))
			return false;
	if (!i)
		return false;
	if (i + 1 == len) {
		suffix = strchr(suffixes, tolower((unsigned char)text[i]));
		if (!suffix)
			return false;
		shift = 10 * (unsigned)(suffix - suffixes + 1);
	} else if (i != len) {
		return false;
	}
	if (v > UINT64_MAX >> shift)
		return false;
	*ret = v << shift;
	return true;
}

enum { SEEN_OFFSET = 1, SEEN_SIZE = 2, SEEN_PARTITION = 4 };

static int parse_word(const char *word, size_t len, struct io_spec *spec, unsigned *seen, struct btrkit_error *err)
{
	unsigned what = 0;
	uint64_t n;

	if (len > 7 && !memcmp(word, "offset=", 7)) {
		if (!parse_bytes(word + 7, len - 7, &spec->offset))
			return err_set(err, BTRKIT_INVALID, "invalid offset after '?'");
		what = SEEN_OFFSET;
	} else if (len > 5 && !memcmp(word, "size=", 5)) {
		if (!parse_bytes(word + 5, len - 5, &spec->size) || !spec->size)
			return err_set(err, BTRKIT_INVALID, "invalid size after '?'");
		what = SEEN_SIZE;
	} else if (len > 10 && !memcmp(word, "partition=", 10)) {
		if (!parse_bytes(word + 10, len - 10, &n) || !n || n > INT32_MAX)
			return err_set(err, BTRKIT_INVALID, "invalid partition number after '?'");
		spec->partition = (unsigned)n;
		what = SEEN_PARTITION;
	} else {
		return err_set(err, BTRKIT_INVALID,
			       "unknown option after '?': expected offset=N, size=N or partition=N");
	}
	if (*seen & what)
		return err_set(err, BTRKIT_INVALID, "option given twice after '?'");
	*seen |= what;
	return 0;
}

int io_spec_parse(const char *text, struct io_spec *ret, struct btrkit_error *err)
{
	struct io_spec spec = { 0 };
	const char *mark = strrchr(text, '?'), *word, *end;
	size_t path_len = strlen(text);
	unsigned seen = 0;
	int r;

	if (mark && access(text, F_OK)) {
		path_len = (size_t)(mark - text);
		for (word = mark + 1;; word = end + 1) {
			end = strchrnul(word, '&');
			r = parse_word(word, (size_t)(end - word), &spec, &seen, err);
			if (r)
				return r;
			if (!*end)
				break;
		}
		if (seen & SEEN_PARTITION && seen != SEEN_PARTITION)
			return err_set(err, BTRKIT_INVALID, "partition= cannot be combined with offset= or size=");
	}
	spec.path = strndup(text, path_len);
	if (!spec.path)
		return err_nomem(err);
	*ret = spec;
	return 0;
}

#ifdef HAVE_BLKID
/* A size of 0 would mean everything up to the end of the disk, and an extended partition contains others. */
static int take_partition(struct io_spec *spec, blkid_partition part, struct btrkit_error *err)
{
	const int64_t start = blkid_partition_get_start(part), size = blkid_partition_get_size(part);

	if (start < 0 || size <= 0 || start > INT64_MAX / 512 || size > INT64_MAX / 512)
		return err_set(err, BTRKIT_INVALID, "partition %u is empty", spec->partition);
	if (blkid_partition_is_extended(part))
		return err_set(err, BTRKIT_INVALID, "partition %u is an extended partition",
			       spec->partition);
	spec->offset = (uint64_t)start * 512;
	spec->size = (uint64_t)size * 512;
	return 0;
}

/* Returns the partitions if the device has sectors of this size (0: as Linux says, or 512 for a file), or NULL. */
static blkid_partlist probe_partitions(blkid_probe probe, int fd, unsigned sector)
{
	if (blkid_probe_set_device(probe, fd, 0, 0) || (sector && blkid_probe_set_sectorsize(probe, sector)) ||
	    blkid_probe_enable_partitions(probe, 1))
		return NULL;
	return blkid_probe_get_partitions(probe);
}

static bool is_gpt(blkid_partlist list)
{
	const blkid_parttable table = list ? blkid_partlist_get_table(list) : NULL;
	const char *type = table ? blkid_parttable_get_type(table) : NULL;

	return type && !strcmp(type, "gpt");
}

/*
 * Finds the partitions of a disk. A file does not say how large the sectors of the disk were. Only a GPT depends on it:
 * its header is in sector 1, and its numbers are in sectors. With the wrong size, only its protective MBR is found.
 */
static blkid_partlist find_partitions(blkid_probe probe, int fd)
{
	blkid_partlist list = probe_partitions(probe, fd, 0);
	struct stat st;

	if (is_gpt(list) || fstat(fd, &st) || !S_ISREG(st.st_mode))
		return list;
	list = probe_partitions(probe, fd, 4096);
	return is_gpt(list) ? list : probe_partitions(probe, fd, 0);
}

static int locate_partition(struct io_spec *spec, int fd, struct btrkit_error *err)
{
	blkid_probe probe = blkid_new_probe();
	blkid_partlist list;
	blkid_partition part;
	int r = 0;

	if (!probe)
		return err_nomem(err);
	list = find_partitions(probe, fd);
	if (!list) {
		r = err_set(err, BTRKIT_NOT_FOUND, "no partition table found");
	} else {
		part = blkid_partlist_get_partition_by_partno(list, (int)spec->partition);
		r = part ? take_partition(spec, part, err) :
			   err_set(err, BTRKIT_NOT_FOUND, "no partition %u", spec->partition);
	}
	blkid_free_probe(probe);
	return r;
}
#else
static int locate_partition(struct io_spec *spec, int fd, struct btrkit_error *err)
{
	(void)spec;
	(void)fd;
	return err_set(err, BTRKIT_UNSUPPORTED, "partition= needs a build with libblkid");
}
#endif

int io_spec_locate(struct io_spec *spec, int fd, uint64_t device_size, struct btrkit_error *err)
{
	int r = spec->partition ? locate_partition(spec, fd, err) : 0;

	if (!r && (spec->offset > device_size || spec->size > device_size - spec->offset))
		r = err_set(err, BTRKIT_INVALID,
			    "part of %" PRIu64 " bytes at %" PRIu64 " extends past the end of the device (size %" PRIu64
			    ")",
			    spec->size, spec->offset, device_size);
	if (r)
		return r;
	if (!spec->size)
		spec->size = device_size - spec->offset;
	return 0;
}
