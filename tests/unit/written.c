// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/unit/unit.h"
#include "tests/unit/written.h"

struct kept_io {
	struct btrkit_io io;
	struct written *w;
};

static int kept_read(struct btrkit_io *io, uint64_t offset, void *buf, size_t len)
{
	struct written *w = ((struct kept_io *)io)->w;

	return w->reads++ < w->fail_read_at ? w->bytes->ops->read(w->bytes, offset, buf, len) : -EIO;
}

static bool fails(struct written *w)
{
	const uint64_t call = w->calls++;

	return call >= w->fail_at && call - w->fail_at < w->failures;
}

static int error_of(const struct written *w)
{
	return w->no_space ? -ENOSPC : -EIO;
}

static int kept_write(struct btrkit_io *io, uint64_t offset, const void *buf, size_t len)
{
	struct written *w = ((struct kept_io *)io)->w;

	return fails(w) ? error_of(w) : w->bytes->ops->write(w->bytes, offset, buf, len);
}

static int kept_flush(struct btrkit_io *io)
{
	struct written *w = ((struct kept_io *)io)->w;

	w->flushes++;
	return fails(w) ? error_of(w) : 0;
}

static int kept_reserve(struct btrkit_io *io, uint64_t offset, uint64_t len)
{
	(void)offset;
	(void)len;
	return ((struct kept_io *)io)->w->full ? -ENOSPC : 0;
}

static void kept_close(struct btrkit_io *io)
{
	free(io);
}

static const struct btrkit_io_ops kept_ops = {
	.read = kept_read,
	.write = kept_write,
	.flush = kept_flush,
	.reserve = kept_reserve,
	.close = kept_close,
};

void written_check(int ret, const struct btrkit_error *err)
{
	char line[512];

	if (ret)
		fail_msg("%d: %s", ret, btrkit_error_format(err, line, sizeof(line)));
}

void written_make(struct written *w, const struct btrkit_mkfs_options *opts, uint64_t size)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;

	*w = (struct written){ .fail_at = UINT64_MAX, .failures = UINT64_MAX, .fail_read_at = UINT64_MAX };
	assert_int_equal(btrkit_io_memory(size, &w->bytes, NULL), 0);
	written_check(btrkit_mkfs(&w->bytes, 1, opts, NULL, &err), &err);
}

void written_destroy(struct written *w)
{
	w->bytes = btrkit_io_close(w->bytes);
}

struct btrkit_io *written_io(struct written *w)
{
	struct kept_io *k = calloc(1, sizeof(*k));

	assert_non_null(k);
	k->io.ops = &kept_ops;
	k->io.size = w->bytes->size;
	snprintf(k->io.name, sizeof(k->io.name), "memory");
	k->w = w;
	return &k->io;
}

struct btrkit_fs *written_open(struct written *w, unsigned flags)
{
	return written_open_cached(w, flags, 0);
}

struct btrkit_fs *written_open_cached(struct written *w, unsigned flags, size_t cache_bytes)
{
	struct btrkit_open_options opts = BTRKIT_OPEN_OPTIONS_INIT;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_io *io = written_io(w);
	struct btrkit_fs *fs = NULL;

	opts.flags = flags;
	opts.cache_bytes = cache_bytes;
	written_check(btrkit_fs_open(&io, 1, &opts, &fs, &err), &err);
	return fs;
}

void written_verify(struct written *w)
{
	written_check_but(w, AUDIT_ITEMS);
}

void written_check_but(struct written *w, unsigned known)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_fs *fs = written_open(w, 0);

	written_check(audit_own(fs, known, &err), &err);
	btrkit_fs_close(fs);
}

struct btrkit_txn *written_start(struct btrkit_fs *fs)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_txn *txn = NULL;

	written_check(btrkit_txn_start(fs, &txn, &err), &err);
	return txn;
}

void written_commit(struct btrkit_txn *txn)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	enum btrkit_commit_state state = BTRKIT_COMMIT_OLD;

	written_check(btrkit_txn_commit(txn, &state, &err), &err);
	assert_int_equal(state, BTRKIT_COMMIT_NEW);
}
