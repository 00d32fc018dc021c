// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * check of any filesystem, however it is opened, with tables in memory or in a file: it must end, and its counts must
 * match the findings that it reports. For the input see device.h.
 */
#include "lib/print/check.h"
#include "tests/fuzz/device.h"

#include <stdlib.h>

#include <btrkit/check.h>
#include <btrkit/filesystem.h>

#define OUTPUT_MAX (64u << 20)

/* Without choices in the input, open it as check does. */
static struct btrkit_fs *open_chosen(struct btrkit_io *io, struct fuzz_choices *c)
{
	struct btrkit_open_options opts = BTRKIT_OPEN_OPTIONS_INIT;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	const uint64_t how = fuzz_choose(c, 1);
	struct btrkit_fs *fs = NULL;
	int ret;

	if (!(how & 1))
		opts.flags |= BTRKIT_OPEN_PARTIAL;
	if (how & 2) {
		opts.flags |= BTRKIT_OPEN_BACKUP;
		opts.backup = how >> 6;
	} else if (how & 4) {
		opts.flags |= BTRKIT_OPEN_TREE_ROOT;
		opts.tree_root = fuzz_device_block(io, fuzz_choose(c, 1));
	}
	if (how & 8) {
		opts.flags |= BTRKIT_OPEN_CHUNK_ROOT;
		opts.chunk_root = fuzz_device_block(io, fuzz_choose(c, 1));
	}
	if (how & 16)
		opts.cache_bytes = 1;
	ret = btrkit_fs_open(&io, 1, &opts, &fs, &err);
	fuzz_ended(ret, &err);
	if (ret)
		btrkit_io_close(io);
	return ret ? NULL : fs;
}

struct told {
	const struct btrkit_check_code *last;
	uint64_t findings[BTRKIT_CHECK_SEVERITIES];
};

/* Codes must be reported in order. */
static void take(struct told *t, const struct btrkit_check_code *code, uint64_t n)
{
	if (t->last && code < t->last)
		abort();
	t->last = code;
	t->findings[code->severity] += n;
}

static int finding(void *ctx, const struct btrkit_finding *f)
{
	char line[BTRKIT_ERROR_LINE];

	if (!f->what.message[0] || !f->times || (f->path && !f->path[0]) ||
	    strchr(btrkit_error_format(&f->what, line, sizeof(line)), '\n'))
		abort();
	take(ctx, f->code, 1);
	return 0;
}

static int more(void *ctx, const struct btrkit_check_code *code, uint64_t n)
{
	if (!n)
		abort();
	take(ctx, code, n);
	return 0;
}

static void count(struct btrkit_fs *fs, struct btrkit_check_options *opts)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_check_result result;
	struct told told = { NULL, { 0 } };
	int ret;

	opts->finding = finding;
	opts->more = more;
	opts->ctx = &told;
	ret = btrkit_check(fs, opts, &result, &err);
	fuzz_ended(ret, &err);
	if (!ret && memcmp(told.findings, result.findings, sizeof(told.findings)))
		abort();
}

static void print(struct btrkit_fs *fs, const struct btrkit_check_options *opts, enum btrkit_format format)
{
	struct fuzz_json json = { .left = OUTPUT_MAX };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	int ret;

	ret = print_check(fs, opts, format, format == BTRKIT_FORMAT_JSON ? fuzz_write_json : fuzz_write, &json,
				 NULL, &err);
	fuzz_ended(ret, &err);
	fuzz_json_ended(&json, ret);
}

/* Without choices in the input: as JSON, with data, and with tables in memory. */
static void check(struct btrkit_fs *fs, struct fuzz_choices *c)
{
	struct btrkit_check_options opts = BTRKIT_CHECK_OPTIONS_INIT;
	const uint64_t how = fuzz_choose(c, 1);

	opts.threads = 1 + (how >> 7);
	if (!(how & 1))
		opts.flags |= BTRKIT_CHECK_DATA;
	if (how & 2)
		opts.memory = 1 + fuzz_choose(c, 2);
	if (how & 4)
		opts.spill = "/tmp";
	if (how & 8)
		opts.repeats = (unsigned)fuzz_choose(c, 1);
	if (how & 16)
		count(fs, &opts);
	else
		print(fs, &opts, how & 32 ? BTRKIT_FORMAT_TEXT : BTRKIT_FORMAT_JSON);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size + !size);
	struct fuzz_choices choices;
	struct btrkit_io *io;
	struct btrkit_fs *fs;

	if (!copy)
		return 0;
	memcpy(copy, data, size);
	io = fuzz_device_open(copy, size, false, &choices);
	fs = io ? open_chosen(io, &choices) : NULL;
	if (fs) {
		check(fs, &choices);
		btrkit_fs_close(fs);
	}
	free(copy);
	return 0;
}
