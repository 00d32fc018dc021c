// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * API robustness test: random sequences of calls across the whole public interface, with valid and invalid arguments,
 * aborting callbacks, allocation failures and device errors, all derived from a seed. After each call: the return value
 * is 0, 1 where that is allowed, or a negative errno; success left the error struct untouched, failure filled in a
 * one-line message. After each commit the filesystem is checked; after an abort or a failure it must still be in the
 * last committed state. Leaks are caught by the AddressSanitizer run.
 *
 *	crash-calls [--deep] [--threads] [--seed N]
 *
 * --threads: four threads change the filesystem within one transaction while the device fails at random.
 * --seed: run only that sequence, with a line for each call.
 */
#include "tests/crash/calls.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/crash/sparse.h"
#include "tests/unit/memory.h"

#define SIZE (160u << 20)
#define SEQUENCES 160u
#define SEQUENCES_DEEP 6000u
#define ROUNDS_OF_THREADS 400u
#define CALLS 100u
#define THREADS 4u
#define NEVER UINT64_MAX

/* A device that fails from call number fail_at on. */
struct device {
	struct btrkit_io io;
	struct sparse *at;
	pthread_mutex_t lock;
	uint64_t calls, fail_at;
	int error;
};

static struct {
	unsigned seed, number;
	bool verbose;
	bool mirrors_lag;
	atomic_uint_fast64_t done, refused;
} now;

static _Thread_local const char *called;

static void die(const char *fmt, ...) BTRKIT_PRINTF(1, 2) __attribute__((noreturn));

static void die(const char *fmt, ...)
{
	va_list args;

	memory_end();
	fprintf(stderr, "seed %u, call %u (%s): ", now.seed, now.number, called ? called : "none");
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

static int fails(struct device *d)
{
	return d->calls++ >= d->fail_at ? d->error : 0;
}

static int device_read(struct btrkit_io *io, uint64_t offset, void *buf, size_t len)
{
	struct device *d = (struct device *)io;
	const bool counted = memory_pause();
	int ret;

	pthread_mutex_lock(&d->lock);
	ret = fails(d);
	if (!ret)
		sparse_read(d->at, offset, buf, len);
	pthread_mutex_unlock(&d->lock);
	memory_resume(counted);
	return ret;
}

static int device_write(struct btrkit_io *io, uint64_t offset, const void *buf, size_t len)
{
	struct device *d = (struct device *)io;
	const bool counted = memory_pause();
	int ret;

	pthread_mutex_lock(&d->lock);
	ret = fails(d);
	if (!ret)
		sparse_write(d->at, offset, buf, len);
	pthread_mutex_unlock(&d->lock);
	memory_resume(counted);
	return ret;
}

static int device_flush(struct btrkit_io *io)
{
	struct device *d = (struct device *)io;
	int ret;

	pthread_mutex_lock(&d->lock);
	ret = fails(d);
	pthread_mutex_unlock(&d->lock);
	return ret;
}

static void device_close(struct btrkit_io *io)
{
	(void)io;
}

static const struct btrkit_io_ops device_ops = {
	.read = device_read, .write = device_write, .flush = device_flush, .close = device_close
};

static void must(int ret, const struct btrkit_error *err)
{
	if (ret)
		die("%d: %s", ret, err->message);
}

static void fill(struct btrkit_txn *txn, uint64_t root)
{
	static const struct {
		uint64_t dir; /* number of its directory's entry here, from 1; 0: top */
		char name[2];
		uint32_t mode;
		size_t bytes;
	} files[] = {
		{ 0, "a", S_IFREG | 0644, 100 }, { 0, "b", S_IFREG | 0644, 70000 }, { 0, "c", S_IFDIR | 0755, 0 },
		{ 3, "a", S_IFREG | 0644, 9000 }, { 3, "b", S_IFDIR | 02755, 0 },  { 5, "a", S_IFLNK | 0777, 0 },
		{ 5, "b", S_IFREG | 0600, 200000 },
	};
	static const uint8_t bytes[CALLS_BYTES] = { 'f' };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	uint64_t inode;

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		struct btrkit_new_inode what = BTRKIT_NEW_INODE_INIT;

		what.mode = files[i].mode;
		what.target = S_ISLNK(what.mode) ? "b" : NULL;
		must(btrkit_txn_create(txn, root, BTRKIT_TOP_INODE + files[i].dir, files[i].name, 1, &what, &inode,
				       &err),
		     &err);
		if (files[i].bytes)
			must(btrkit_txn_write(txn, root, inode, 0, bytes, files[i].bytes, NULL, &err), &err);
	}
}

/* Makes the initial filesystem: some files, a subvolume and a snapshot. */
static struct sparse *make_base(void)
{
	struct btrkit_open_options opts = { .flags = BTRKIT_OPEN_WRITE };
	struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct sparse *s = sparse_create(SIZE, NULL);
	struct btrkit_io *io = sparse_io(s);
	struct btrkit_txn *txn;
	struct btrkit_fs *fs;
	uint64_t id;

	o.nodesize = 4096;
	must(btrkit_mkfs(&io, 1, &o, NULL, &err), &err);
	must(btrkit_fs_open(&io, 1, &opts, &fs, &err), &err);
	must(btrkit_txn_start(fs, &txn, &err), &err);
	must(btrkit_txn_subvolume_create(txn, BTRKIT_TOP_LEVEL, BTRKIT_TOP_INODE, "h", 1, NULL, &id, &err), &err);
	fill(txn, BTRKIT_TOP_LEVEL);
	fill(txn, id);
	must(btrkit_txn_subvolume_snapshot(txn, id, BTRKIT_TOP_LEVEL, BTRKIT_TOP_INODE, "300", 3, NULL, &id, &err),
	     &err);
	must(btrkit_txn_commit(txn, NULL, &err), &err);
	btrkit_fs_close(fs);
	return s;
}

static int add_to_hash(void *ctx, const void *data, size_t len)
{
	const uint8_t *bytes = data;
	uint64_t *hash = ctx;

	for (size_t i = 0; i < len; i++)
		*hash = (*hash ^ bytes[i]) * 1099511628211u;
	return 0;
}

/* Superblock mirrors may stay old until the next transaction if a device error kept a commit from writing them. */
static int tell_finding(void *ctx, const struct btrkit_finding *f)
{
	char line[BTRKIT_ERROR_LINE];

	if (now.mirrors_lag && !strcmp(f->code->name, "BTR-SUPER-OLD"))
		return 0;
	++*(unsigned *)ctx;
	fprintf(stderr, "%s: %s\n", f->code->name, btrkit_error_format(&f->what, line, sizeof(line)));
	return 0;
}

/* Checks the filesystem as a new reader finds it, and hashes all its trees. */
static uint64_t state_of(struct device *d)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_io *io = sparse_io(d->at);
	uint64_t hash = 14695981039346656037u;
	unsigned findings = 0;
	const struct btrkit_check_options opts = { .threads = 1, .finding = tell_finding, .ctx = &findings };
	struct btrkit_fs *fs = NULL;

	if (btrkit_fs_open(&io, 1, NULL, &fs, &err) || btrkit_dump_tree(fs, NULL, add_to_hash, &hash, &err) ||
	    btrkit_check(fs, &opts, NULL, &err))
		die("the filesystem cannot be read any more: %s", err.message);
	if (findings)
		die("%u findings", findings);
	btrkit_fs_close(fs);
	return hash;
}

static bool is_empty(const struct btrkit_error *err)
{
	return !err->code && !err->err && !err->places && !err->message[0] && !err->field[0] && !err->copies[0];
}

static void check_call(const struct caller *c, int ret, unsigned needs)
{
	char line[BTRKIT_ERROR_LINE];

	now.done += ret >= 0;
	now.refused += ret < 0;
	if (now.verbose)
		printf("%u %s: %d %s\n", now.number, called, ret, c->err.message);
	if (ret == 0 || (ret == 1 && needs & CALLS_ONE)) {
		if (!is_empty(&c->err))
			die("returned %d, but left an error: %s", ret, c->err.message);
		return;
	}
	if (ret > 0 || ret < -4095)
		die("returned %d", ret);
	/* After an abort by a callback the error may be left empty. */
	if (needs & CALLS_WITHOUT_ERROR || (c->ended && is_empty(&c->err)))
		return;
	if (!c->err.code || c->err.err != ret || !c->err.message[0])
		die("returned %d, but its error has code %d and errno %d: %s", ret, c->err.code, c->err.err,
		    c->err.message);
	if (strchr(btrkit_error_format(&c->err, line, sizeof(line)), '\n'))
		die("the error is more than one line: %s", line);
}

/* Arm at most one kind of trouble (allocation failure, device error, aborting callback); usually none. */
static void begin_trouble(struct caller *c, struct device *d)
{
	static const int errors[] = { -EIO, -EIO, -ENOSPC, -ENXIO, -ENOENT, -EEXIST, -EAGAIN, -EACCES, -EINVAL };

	c->err = (struct btrkit_error)BTRKIT_ERROR_INIT;
	c->ended = false;
	c->countdown = calls_one_in(c, 8) ? 1 + calls_pick(c, 20) : 0;
	if (calls_one_in(c, 14)) {
		d->error = errors[calls_pick(c, sizeof(errors) / sizeof(errors[0]))];
		d->fail_at = d->calls + calls_pick(c, 12);
	}
	if (calls_one_in(c, 14))
		memory_count(calls_pick(c, calls_pick(c, 2) ? 10 : 200), calls_one_in(c, 2));
}

static void end_trouble(struct device *d)
{
	memory_end();
	d->fail_at = NEVER;
}

static bool may_call(const struct caller *c, const struct call *call)
{
	return !((call->needs & CALLS_TXN && !c->txn) || (call->needs & CALLS_NO_TXN && c->txn) ||
		 (call->needs & CALLS_FILE && !c->file) || (call->needs & CALLS_USAGE && !c->usage));
}

/* Picks a call whose prerequisites are met. */
static const struct call *choose(struct caller *c)
{
	for (;;) {
		const unsigned table = calls_pick(c, c->txn ? 8 : 3);
		const struct call *call = table == 0 ? &calls_asking[calls_pick(c, (unsigned)num_calls_asking)] :
					  table < 3  ? &calls_reading[calls_pick(c, (unsigned)num_calls_reading)] :
						       &calls_changing[calls_pick(c, (unsigned)num_calls_changing)];

		if (may_call(c, call) && (!(call->needs & CALLS_SELDOM) || calls_one_in(c, 4)))
			return call;
	}
}

static void close_all(struct caller *c)
{
	c->file = btrkit_file_close(c->file);
	c->paths = btrkit_usage_paths_free(c->paths);
	c->usage = btrkit_usage_free(c->usage);
	c->fs = btrkit_fs_close(c->fs);
	c->txn = NULL;
}

static void open_again(struct caller *c, struct device *d)
{
	struct btrkit_open_options opts = { .flags = calls_flags(c, 63) };
	struct btrkit_fs *fs = NULL;
	int ret;

	opts.flags = calls_one_in(c, 4) ? opts.flags : calls_pick(c, 4) ? BTRKIT_OPEN_WRITE : 0;
	opts.cache_bytes = calls_pick(c, 2) << 16;
	opts.backup = calls_pick(c, 5);
	opts.super_mirror = calls_pick(c, 4);
	called = "fs_open";
	begin_trouble(c, d);
	ret = btrkit_fs_open(&c->io, 1, &opts, &fs, &c->err);
	end_trouble(d);
	check_call(c, ret, 0);
	c->writable = opts.flags & BTRKIT_OPEN_WRITE;
	if (ret) {
		opts = (struct btrkit_open_options){ .flags = BTRKIT_OPEN_WRITE };
		c->writable = true;
		must(btrkit_fs_open(&c->io, 1, &opts, &fs, &c->err), &c->err);
	}
	c->fs = fs;
}

/* A new reader must find the last committed state or the new one, consistent with what the commit returned. */
static void expect_state(const struct caller *c, struct device *d, uint64_t *known, enum btrkit_commit_state state)
{
	const uint64_t found = state_of(d);

	if (state == BTRKIT_COMMIT_OLD && !c->may_commit && found != *known)
		die("the filesystem changed although nothing was committed");
	*known = found;
}

static void start(struct caller *c, struct device *d)
{
	int ret;

	called = "txn_start";
	begin_trouble(c, d);
	ret = btrkit_txn_start(c->fs, &c->txn, &c->err);
	end_trouble(d);
	check_call(c, ret, 0);
	if (ret) {
		c->txn = NULL;
		return;
	}
	c->may_commit = calls_one_in(c, 4);
	btrkit_txn_set_may_commit(c->txn, c->may_commit);
}

static void end(struct caller *c, struct device *d, uint64_t *known)
{
	enum btrkit_commit_state state = BTRKIT_COMMIT_OLD;
	int ret;

	called = "txn_abort";
	if (calls_one_in(c, 4)) {
		c->txn = btrkit_txn_abort(c->txn);
		expect_state(c, d, known, BTRKIT_COMMIT_OLD);
		return;
	}
	called = "txn_commit";
	begin_trouble(c, d);
	ret = btrkit_txn_commit(c->txn, &state, &c->err);
	end_trouble(d);
	c->txn = NULL;
	check_call(c, ret, 0);
	if (!ret && state != BTRKIT_COMMIT_NEW)
		die("the commit succeeded, but not with the new state");
	now.mirrors_lag = ret && (now.mirrors_lag || state != BTRKIT_COMMIT_OLD || c->may_commit);
	expect_state(c, d, known, state);
}

static void one_call(struct caller *c, struct device *d, uint64_t *known)
{
	const struct call *call = choose(c);
	const bool own_txn = !strncmp(call->name, "space_c", 7) && !c->txn;
	int ret;

	called = call->name;
	begin_trouble(c, d);
	ret = call->call(c);
	end_trouble(d);
	check_call(c, ret, call->needs);
	/* These calls run transactions of their own. */
	if (own_txn) {
		now.mirrors_lag |= ret != 0;
		*known = state_of(d);
	}
}

static void run(struct sparse *base, unsigned seed)
{
	struct device d = { .io = { .ops = &device_ops, .size = SIZE, .name = "device" },
			    .at = sparse_create(SIZE, base),
			    .lock = PTHREAD_MUTEX_INITIALIZER,
			    .fail_at = NEVER };
	struct caller c = { .seed = seed * 7919u, .io = &d.io };
	uint64_t known;

	now.seed = seed;
	now.mirrors_lag = false;
	now.number = 0;
	called = NULL;
	known = state_of(&d);
	open_again(&c, &d);
	for (now.number = 1; now.number <= CALLS; now.number++) {
		if (c.txn ? calls_one_in(&c, 60) : calls_one_in(&c, 20)) {
			called = "fs_close";
			close_all(&c);
			expect_state(&c, &d, &known, BTRKIT_COMMIT_OLD);
			open_again(&c, &d);
		} else if (!c.txn && c.writable && calls_one_in(&c, 3)) {
			start(&c, &d);
		} else if (c.txn && calls_one_in(&c, 20)) {
			end(&c, &d, &known);
		} else {
			one_call(&c, &d, &known);
		}
	}
	if (c.txn)
		end(&c, &d, &known);
	close_all(&c);
	sparse_free(d.at);
}

static void *work(void *arg)
{
	struct caller *c = arg;

	for (unsigned i = 0; i < CALLS; i++) {
		const struct call *call = &calls_changing[calls_pick(c, (unsigned)num_calls_changing)];
		int ret;

		c->err = (struct btrkit_error)BTRKIT_ERROR_INIT;
		called = call->name;
		ret = call->call(c);
		check_call(c, ret, call->needs);
	}
	return NULL;
}

static void run_threads(struct sparse *base, unsigned seed)
{
	struct device d = { .io = { .ops = &device_ops, .size = SIZE, .name = "device" },
			    .at = sparse_create(SIZE, base),
			    .lock = PTHREAD_MUTEX_INITIALIZER,
			    .fail_at = NEVER,
			    .error = -EIO };
	const struct btrkit_open_options opts = { .flags = BTRKIT_OPEN_WRITE };
	struct caller c = { .seed = seed * 7919u, .io = &d.io }, callers[THREADS];
	uint64_t known;
	pthread_t ids[THREADS];

	now.seed = seed;
	now.mirrors_lag = false;
	known = state_of(&d);
	must(btrkit_fs_open(&c.io, 1, &opts, &c.fs, &c.err), &c.err);
	must(btrkit_txn_start(c.fs, &c.txn, &c.err), &c.err);
	c.may_commit = calls_one_in(&c, 2);
	btrkit_txn_set_may_commit(c.txn, c.may_commit);
	if (calls_one_in(&c, 2))
		d.fail_at = d.calls + calls_pick(&c, 200);
	for (unsigned i = 0; i < THREADS; i++) {
		callers[i] = (struct caller){ .seed = c.seed + i, .io = c.io, .fs = c.fs, .txn = c.txn };
		if (pthread_create(&ids[i], NULL, work, &callers[i]))
			die("cannot start a thread");
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(ids[i], NULL);
	end(&c, &d, &known);
	close_all(&c);
	sparse_free(d.at);
}

int main(int argc, char **argv)
{
	bool deep = false, threads = false;
	unsigned first = 1, last = 0;
	struct sparse *base;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--deep"))
			deep = true;
		else if (!strcmp(argv[i], "--threads"))
			threads = true;
		else if (!strcmp(argv[i], "--seed") && i + 1 < argc)
			first = last = (unsigned)atoi(argv[++i]);
		else
			return 2;
	}
	now.verbose = last && !threads;
	if (!last)
		last = threads ? ROUNDS_OF_THREADS : deep ? SEQUENCES_DEEP : SEQUENCES;
	base = make_base();
	for (unsigned seed = first; seed <= last; seed++)
		(threads ? run_threads : run)(base, seed);
	sparse_free(base);
	printf("%u sequences, %" PRIu64 " calls done, %" PRIu64 " refused\n", last - first + 1,
	       (uint64_t)now.done, (uint64_t)now.refused);
	return 0;
}
