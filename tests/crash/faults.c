// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Device errors during mkfs: every write and flush fails in turn, with EIO or ENOSPC, once or persistently. Each time
 * the call must report the error, and must leave a state that a power failure could leave too. If the device works
 * again after the error, that state must not be a complete new filesystem.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <btrkit/error.h>
#include <btrkit/mkfs.h>

#include "filling.h"
#include "verify.h"

#define SIZE (128ull << 20)

struct failing {
	uint64_t calls, fail_at;
	int error;
};

/* Only one call fails. Later calls succeed, which must not make the whole operation succeed. */
static int maybe_fail(void *ctx)
{
	struct failing *f = ctx;

	return f->calls++ == f->fail_at ? f->error : 0;
}

static int on_write(void *ctx, uint64_t offset, const void *data, size_t len)
{
	(void)offset;
	(void)data;
	(void)len;
	return maybe_fail(ctx);
}

static const uint8_t old_fsid[16] = "an old one 4567", new_fsid[16] = "a new one  4567";

/* Source directory that the new filesystem is filled from, or NULL. */
static const struct btrkit_mkfs_source *filling;

static int make(struct btrkit_io *io, const uint8_t *fsid, struct btrkit_error *err)
{
	struct btrkit_mkfs_options opts = BTRKIT_MKFS_OPTIONS_INIT;

	opts.flags = BTRKIT_MKFS_REPRODUCIBLE;
	opts.fsid = fsid;
	if (fsid == new_fsid && filling) {
		opts.source = filling;
		opts.data = BTRKIT_PROFILE_DUP;
		opts.compression = BTRKIT_COMPRESSION_ZSTD;
	}
	return btrkit_mkfs(&io, 1, &opts, NULL, err);
}

static struct btrkit_io *failing_device(struct sparse *below, struct failing *f, bool once)
{
	const struct btrkit_io_faults faults = { UINT64_MAX, f->fail_at, UINT64_MAX, f->error };
	const struct btrkit_io_record_ops ops = { on_write, maybe_fail, NULL };
	struct btrkit_io *io;

	if (once ? btrkit_io_record(sparse_io(below), &ops, f, &io, NULL) :
		   btrkit_io_fault(sparse_io(below), &faults, &io, NULL))
		exit(99);
	return io;
}

static bool is_one_line(const struct btrkit_error *err)
{
	char line[512];

	btrkit_error_format(err, line, sizeof(line));
	return strlen(line) > 10 && !strchr(line, '\n');
}

/*
 * Runs one fault.
 * @return whether mkfs failed as it must and left a permitted state; *ret: the return value of mkfs
 */
static bool try_one(const struct check *j, struct failing f, bool once, int *ret, uint64_t *holds)
{
	struct sparse *state = sparse_create(SIZE, j->before);
	struct btrkit_io *io = failing_device(state, &f, once);
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	enum btrkit_code code = f.error == -EIO ? BTRKIT_IO : BTRKIT_NO_SPACE;
	char why[300] = "";
	int found;

	*ret = make(io, new_fsid, &err);
	btrkit_io_close(io);
	found = check_state(j, state, why);
	sparse_free(state);
	if (found < 0)
		printf("call %" PRIu64 " fails: %s\n", f.fail_at, why);
	else
		holds[found]++;
	if (!*ret)
		return found == HOLDS_NEW;
	if (*ret != f.error || err.err != f.error || err.code != code || !is_one_line(&err)) {
		printf("call %" PRIu64 " fails with %d, returned %d, code %d: %s\n", f.fail_at, f.error, *ret, err.code,
		       err.message);
		return false;
	}
	if (once && found == HOLDS_NEW)
		printf("call %" PRIu64 " fails, and there is a filesystem\n", f.fail_at);
	return found >= 0 && !(once && found == HOLDS_NEW);
}

static bool try_all(const struct check *j, uint64_t calls, uint64_t *tried, uint64_t *holds)
{
	static const int errors[] = { -EIO, -ENOSPC };
	bool good = true;
	int ret;

	for (unsigned way = 0; way < 4; way++) {
		for (uint64_t k = 0; k <= calls; k++) {
			struct failing f = { .fail_at = k, .error = errors[way / 2] };

			good &= try_one(j, f, way % 2, &ret, holds);
			/* mkfs must succeed if and only if no call is left to fail. */
			if (!ret != (k == calls)) {
				printf("failure of call %" PRIu64 " of %" PRIu64 ": returned %d\n", k, calls, ret);
				good = false;
			}
			++*tried;
		}
	}
	return good;
}

static bool run(void)
{
	struct sparse *before = sparse_create(SIZE, NULL), *after = sparse_create(SIZE, before);
	struct failing count = { .fail_at = UINT64_MAX };
	struct btrkit_io *io = failing_device(after, &count, true);
	uint64_t tried = 0, holds[3] = { 0 };
	struct check j;
	bool good;

	if (make(sparse_io(before), old_fsid, NULL) || make(io, new_fsid, NULL))
		return false;
	btrkit_io_close(io);
	j = check_create(before, after);
	good = try_all(&j, count.calls, &tried, holds);
	check_release(&j);
	sparse_free(after);
	sparse_free(before);
	printf("%scompared %" PRIu64 " failures of %" PRIu64 " calls: %" PRIu64 " leave no filesystem, %" PRIu64
	       " the old one, %" PRIu64 " the new one\n", filling ? "filled: " : "", tried, count.calls,
	       holds[HOLDS_NOTHING], holds[HOLDS_OLD], holds[HOLDS_NEW]);
	/* Over all faults, each possible outcome must have been seen. */
	return good && holds[HOLDS_NOTHING] && holds[HOLDS_OLD] && holds[HOLDS_NEW];
}

int main(void)
{
	bool good = run();

	filling = filling_create();
	good &= run();
	filling_remove();
	return !good;
}
