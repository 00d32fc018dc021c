// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Failures during commits: every device call fails in turn, with EIO once, persistently, or after half of a write; and
 * every allocation fails in turn. The call must report the error with device and address, and the state that the
 * filesystem is in, which must be true. The handle must refuse further transactions; nothing may be written after a
 * failure, and no memory may leak.
 *
 *	crash-txn-faults [--deep] [--kind NAME] IMAGE...
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/commit/txn.h"
#include "txn_base.h"
#include "txn_check.h"

enum fault {
	WRITE_ONCE,
	WRITE_ON,
	WRITE_HALF,
	WRITE_FULL,
	READ_ONCE,
	READ_ON,
	MEMORY_ONCE,
	MEMORY_ON,
	NUM_FAULTS
};

static const char *const fault_names[] = { "a write or flush fails",
					   "every write and flush fails from here on",
					   "half a write",
					   "there is no space for a write or flush, once",
					   "a read fails",
					   "every read fails from here on",
					   "no memory once",
					   "no memory from here on" };

/* A device that fails at call number @at of the kind's work. */
struct failing {
	struct btrkit_io io;
	struct sparse *below;
	enum fault fault;
	uint64_t at;
	uint64_t reads, writes;
	uint64_t after; /* writes and flushes after the failure */
	bool on;	/* false while the filesystem is being opened */
	bool failed, flush;
};

/* What the library reported about its commits. */
static struct {
	unsigned good, uuids;
	bool failed;
	bool inner; /* the failed commit was one in the middle of a transaction */
	enum btrkit_commit_state state;
} commits;

struct trial {
	const struct kind *kind;
	struct sparse *before;
	struct txn_check check;
	unsigned commits; /* without failures */
	uint64_t tried, refused, went_on;
	uint64_t states[3];
	uint64_t bad;
};

/* Collects the committed states in the run without failures. */
static struct trial *keep;
static struct sparse *kept_device;
static uint64_t tried; /* over all kinds */

static struct {
	uint64_t calls, fail_at;
	bool once, armed;
	int64_t live;
} memory;

static bool no_memory(void)
{
	const uint64_t call = memory.calls;

	if (!memory.armed)
		return false;
	memory.calls++;
	return memory.once ? call == memory.fail_at : call >= memory.fail_at;
}

static void *counted(void *p)
{
	memory.live += p != NULL;
	return p;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__real_reallocarray(void *p, size_t n, size_t size);
void *__real_aligned_alloc(size_t align, size_t size);
char *__real_strdup(const char *s);
char *__real_strndup(const char *s, size_t n);
void __real_free(void *p);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__wrap_reallocarray(void *p, size_t n, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);
char *__wrap_strdup(const char *s);
char *__wrap_strndup(const char *s, size_t n);
void __wrap_free(void *p);

void *__wrap_malloc(size_t size)
{
	return no_memory() ? NULL : counted(__real_malloc(size));
}

void *__wrap_calloc(size_t n, size_t size)
{
	return no_memory() ? NULL : counted(__real_calloc(n, size));
}

void *__wrap_realloc(void *p, size_t size)
{
	return no_memory() ? NULL : p ? __real_realloc(p, size) : counted(__real_realloc(p, size));
}

void *__wrap_reallocarray(void *p, size_t n, size_t size)
{
	return no_memory() ? NULL : p ? __real_reallocarray(p, n, size) : counted(__real_reallocarray(p, n, size));
}

void *__wrap_aligned_alloc(size_t align, size_t size)
{
	return no_memory() ? NULL : counted(__real_aligned_alloc(align, size));
}

char *__wrap_strdup(const char *s)
{
	return no_memory() ? NULL : counted(__real_strdup(s));
}

char *__wrap_strndup(const char *s, size_t n)
{
	return no_memory() ? NULL : counted(__real_strndup(s, n));
}

void __wrap_free(void *p)
{
	memory.live -= p != NULL;
	__real_free(p);
}

int __real_btrkit_txn_commit(struct btrkit_txn *txn, enum btrkit_commit_state *state, struct btrkit_error *err);
int __wrap_btrkit_txn_commit(struct btrkit_txn *txn, enum btrkit_commit_state *state, struct btrkit_error *err);

int __wrap_btrkit_txn_commit(struct btrkit_txn *txn, enum btrkit_commit_state *state, struct btrkit_error *err)
{
	struct btrkit_fs *fs = txn->fs;
	const uint64_t before = fs->super.generation;
	enum btrkit_commit_state reached = BTRKIT_COMMIT_UNKNOWN;
	char why[WHY_SIZE];
	int ret = __real_btrkit_txn_commit(txn, &reached, err);

	if (state)
		*state = reached;
	commits.failed = ret != 0;
	commits.state = reached;
	/* A commit that changed nothing does not count. */
	if (ret || fs->super.generation == before)
		return ret;
	commits.good++;
	if (keep && !txn_check_add(&keep->check, disks_one(sparse_clone(kept_device)), why))
		exit(1);
	return 0;
}

/* A commit by reclaim in the middle of a transaction. Its state is reported only in the message. */
static int note_inner(struct btrkit_txn *txn, uint64_t generation, int ret)
{
	char why[WHY_SIZE];

	if (txn->generation == generation) {
		commits.failed = ret != 0;
		commits.inner = ret != 0;
		return ret;
	}
	commits.good++;
	if (keep && !txn_check_add(&keep->check, disks_one(sparse_clone(kept_device)), why))
		exit(1);
	return ret;
}

int __real_txn_commit_and_go_on(struct btrkit_txn *txn, struct btrkit_error *err);
int __wrap_txn_commit_and_go_on(struct btrkit_txn *txn, struct btrkit_error *err);

int __wrap_txn_commit_and_go_on(struct btrkit_txn *txn, struct btrkit_error *err)
{
	const uint64_t generation = txn->generation;

	return note_inner(txn, generation, __real_txn_commit_and_go_on(txn, err));
}

int __real_txn_commit_exclusive(struct btrkit_txn *txn, struct btrkit_error *err);
int __wrap_txn_commit_exclusive(struct btrkit_txn *txn, struct btrkit_error *err);

int __wrap_txn_commit_exclusive(struct btrkit_txn *txn, struct btrkit_error *err)
{
	const uint64_t generation = txn->generation;

	return note_inner(txn, generation, __real_txn_commit_exclusive(txn, err));
}

/* Times and UUIDs are equal in every run, because the results are compared. */
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret);
int __wrap_base_uuid_random(uint8_t ret[16], struct btrkit_error *err);

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret)
{
	(void)clock;
	*ret = (struct timespec){ 1700000000, 5 };
	return 0;
}

int __wrap_base_uuid_random(uint8_t ret[16], struct btrkit_error *err)
{
	(void)err;
	memset(ret, 0x5a, 16);
	ret[15] = (uint8_t)++commits.uuids;
	return 0;
}

static bool fails_now(struct failing *f, uint64_t *calls, enum fault once, enum fault on)
{
	const uint64_t call = (*calls)++;

	if (!f->on || call < f->at || (f->fault != once && f->fault != on) || (f->fault == once && call != f->at))
		return false;
	f->failed = true;
	return true;
}

static int failing_read(struct btrkit_io *io, uint64_t offset, void *buf, size_t len)
{
	struct failing *f = (struct failing *)io;

	if (fails_now(f, &f->reads, READ_ONCE, READ_ON))
		return -EIO;
	sparse_read(f->below, offset, buf, len);
	return 0;
}

static bool write_fails(struct failing *f)
{
	return fails_now(f, &f->writes, f->fault == WRITE_FULL ? WRITE_FULL : WRITE_ONCE, WRITE_ON);
}

/*
 * Half of the only superblock is no superblock. On small devices, as with Linux, it is assumed to be written
 * atomically.
 */
static bool is_only_super(const struct failing *f, uint64_t offset)
{
	return offset == super_offset(0) && f->io.size < super_offset(1) + SUPER_SIZE;
}

static int failing_write(struct btrkit_io *io, uint64_t offset, const void *buf, size_t len)
{
	struct failing *f = (struct failing *)io;
	const bool armed = memory.armed;
	const int64_t live = memory.live;

	f->after += f->failed && f->fault <= WRITE_FULL;
	if (f->fault == WRITE_HALF ? fails_now(f, &f->writes, WRITE_HALF, WRITE_HALF) : write_fails(f)) {
		f->flush = false;
		if (f->fault == WRITE_HALF && !is_only_super(f, offset))
			sparse_write(f->below, offset, buf, len / 2);
		memory.live = live;
		return f->fault == WRITE_FULL ? -ENOSPC : -EIO;
	}
	/* Allocations of the test device itself do not fail. */
	memory.armed = false;
	sparse_write(f->below, offset, buf, len);
	memory.armed = armed;
	memory.live = live;
	return 0;
}

static int failing_flush(struct btrkit_io *io)
{
	struct failing *f = (struct failing *)io;

	f->after += f->failed && f->fault <= WRITE_FULL;
	if (write_fails(f)) {
		f->flush = true;
		return f->fault == WRITE_FULL ? -ENOSPC : -EIO;
	}
	return 0;
}

static void failing_close(struct btrkit_io *io)
{
	(void)io;
}

static const struct btrkit_io_ops failing_ops = {
	.read = failing_read, .write = failing_write, .flush = failing_flush, .close = failing_close
};

static void bad(struct trial *t, const struct failing *f, const char *what, const struct btrkit_error *err)
{
	char line[512];

	if (t->bad++ < 10)
		printf("%s: %s, call %" PRIu64 ": %s: %s\n", t->kind->name, fault_names[f->fault], f->at, what,
		       btrkit_error_format(err, line, sizeof(line)));
}

/* Does the kind's work on a failing device. @refuses: set to whether the handle refuses another transaction */
static int work(const struct kind *kind, struct failing *f, bool *refuses, struct btrkit_error *err)
{
	const struct btrkit_open_options opts = { .flags = BTRKIT_OPEN_WRITE };
	struct btrkit_io *io = &f->io;
	struct btrkit_txn *txn;
	struct btrkit_fs *fs;
	int ret = btrkit_fs_open(&io, 1, &opts, &fs, err);

	*refuses = true;
	if (ret)
		return ret;
	f->reads = f->writes = 0;
	f->on = true;
	memory.calls = 0;
	memory.armed = f->fault == MEMORY_ONCE || f->fault == MEMORY_ON;
	ret = kind->work(fs, err);
	memory.armed = false;
	if (ret) {
		f->on = false;
		*refuses = btrkit_txn_start(fs, &txn, NULL) == -EROFS;
		if (!*refuses)
			btrkit_txn_abort(txn);
	}
	btrkit_fs_close(fs);
	return ret;
}

/* Checks what was reported about the failure. */
static void check_error(struct trial *t, const struct failing *f, int ret, const struct btrkit_error *err)
{
	static const char *const words[] = { "the filesystem is unchanged", "was changed", "it is unknown" };
	const bool memory_fault = f->fault >= MEMORY_ONCE;
	const int wanted = memory_fault ? -ENOMEM : f->fault == WRITE_FULL ? -ENOSPC : -EIO;
	const int code = memory_fault ? BTRKIT_NO_MEMORY : f->fault == WRITE_FULL ? BTRKIT_NO_SPACE : BTRKIT_IO;
	char line[512];

	if (ret != wanted || err->err != ret || (int)err->code != code)
		bad(t, f, "a different error", err);
	btrkit_error_format(err, line, sizeof(line));
	if (strchr(line, '\n') || strlen(line) < 10)
		bad(t, f, "the message is more than one line", err);
	if (!memory_fault && !(err->places & BTRKIT_AT_DEVID))
		bad(t, f, "the message lacks the device", err);
	if (!memory_fault && !f->flush && !(err->places & BTRKIT_AT_PHYSICAL))
		bad(t, f, "the message lacks the address", err);
	for (unsigned i = 0; commits.inner && i < 3; i++)
		if (strstr(err->message, words[i]))
			commits.state = i;
	if (commits.failed && !strstr(err->message, words[commits.state]))
		bad(t, f, "the message lacks the state", err);
}

/* Check that the contents of the device match what was reported. */
static void verify_device(struct trial *t, const struct failing *f, struct sparse *device, int ret,
			  const struct btrkit_error *err)
{
	const struct disks disks = disks_one(device);
	struct btrkit_error why = BTRKIT_ERROR_INIT;
	char text[WHY_SIZE] = "another generation";
	uint64_t generation;
	bool torn = false;
	int holds;

	holds = txn_check_state(&t->check, &disks, commits.good, &torn, text);
	/* After a failed allocation or ENOSPC the work may have been done in another, valid way. */
	if (holds < 0 && (f->fault >= MEMORY_ONCE || f->fault == WRITE_FULL) &&
	    txn_check_whole(&t->check, &disks, f->fault == WRITE_FULL ? AUDIT_SUPERS : 0, &generation, text))
		holds = (int)(generation - t->check.states[0].generation);
	if (holds < 0) {
		snprintf(why.message, sizeof(why.message), "%.190s", text);
		bad(t, f, "the filesystem is not consistent", &why);
		return;
	}
	if (!ret && (unsigned)holds != t->commits)
		bad(t, f, "not what was committed", &why);
	if (!ret || !commits.failed) {
		if ((unsigned)holds != commits.good)
			bad(t, f, "not the last committed state", ret ? err : &why);
		return;
	}
	t->states[commits.state]++;
	if ((commits.state == BTRKIT_COMMIT_OLD && (unsigned)holds != commits.good) ||
	    (commits.state == BTRKIT_COMMIT_NEW && (unsigned)holds != commits.good + 1))
		bad(t, f, "not the reported state", err);
}

/* @return whether a call was there to fail */
static bool try_one(struct trial *t, enum fault fault, uint64_t at)
{
	struct sparse *device = sparse_create(sparse_io(t->before)->size, t->before);
	struct failing f = { .below = device, .fault = fault, .at = at };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	bool refuses, met;
	int64_t live;
	int ret;

	f.io.ops = &failing_ops;
	f.io.size = sparse_io(t->before)->size;
	snprintf(f.io.name, sizeof(f.io.name), "failing");
	memset(&commits, 0, sizeof(commits));
	memory.fail_at = at;
	memory.once = fault == MEMORY_ONCE;
	live = memory.live;
	ret = work(t->kind, &f, &refuses, &err);
	met = fault >= MEMORY_ONCE ? memory.calls > at : f.failed;
	if (memory.live != live)
		bad(t, &f, "memory leak", &err);
	if (ret)
		check_error(t, &f, ret, &err);
	if (ret && commits.failed && !refuses)
		bad(t, &f, "the transaction can still be used", &err);
	/* Random plans continue with other operations after ENOSPC for data. */
	if (f.after && (fault != WRITE_FULL || commits.failed))
		bad(t, &f, "the device is written to after a failure", &err);
	verify_device(t, &f, device, ret, &err);
	sparse_free(device);
	t->tried++;
	t->refused += ret != 0;
	t->went_on += met && !ret;
	return met;
}

/* Records the committed states of a run without failures. */
static bool find_committed(struct trial *t)
{
	struct sparse *device = sparse_create(sparse_io(t->before)->size, t->before);
	struct failing f = { .below = device, .fault = NUM_FAULTS, .at = UINT64_MAX };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	char why[WHY_SIZE];
	bool refuses, good;

	f.io.ops = &failing_ops;
	f.io.size = sparse_io(t->before)->size;
	memset(&commits, 0, sizeof(commits));
	keep = t;
	kept_device = device;
	good = txn_check_add(&t->check, disks_one(sparse_clone(device)), why) && !work(t->kind, &f, &refuses, &err);
	keep = NULL;
	t->commits = commits.good;
	sparse_free(device);
	return good && t->check.n == t->commits + 1;
}

/* Steps between the calls that fail in turn; 0: none. */
static uint64_t step_of(const struct kind *kind, enum fault fault, bool deep)
{
	static const uint64_t steps[] = { 1, 1, 1, 5, 1, 5, 1, 17 };
	static const uint64_t of_files[2][NUM_FAULTS] = { { 2, 9, 5, 3, 7, 31, 0, 0 }, { 1, 3, 3, 1, 5, 31, 0, 0 } };

	return kind->after ? of_files[deep][fault] : deep ? 1 : steps[fault];
}

static bool run_kind(const struct kind *kind, char **images, bool deep)
{
	struct trial t = { .kind = kind, .before = base_of(kind, images).at[0], .check.files = kind->after };

	if (!find_committed(&t)) {
		printf("%s: does not work\n", kind->name);
		return false;
	}
	for (unsigned fault = 0; fault < NUM_FAULTS; fault++)
		for (uint64_t at = 0, step = step_of(kind, fault, deep); step && try_one(&t, fault, at); at += step)
			;
	printf("%s: %" PRIu64 " failures, %" PRIu64 " of them reported, %" PRIu64
	       " overcome; commits that failed left the old "
	       "state %" PRIu64 " times, the new one %" PRIu64 " times, %" PRIu64 " times it was not known; %" PRIu64
	       " bad\n",
	       kind->name, t.tried, t.refused, t.went_on, t.states[BTRKIT_COMMIT_OLD], t.states[BTRKIT_COMMIT_NEW],
	       t.states[BTRKIT_COMMIT_UNKNOWN], t.bad);
	tried += t.tried;
	txn_check_release(&t.check);
	sparse_free(t.before);
	/* Over all faults, each possible state must have been seen. */
	return !t.bad && t.refused && t.states[BTRKIT_COMMIT_OLD] && t.states[BTRKIT_COMMIT_NEW] &&
	       t.states[BTRKIT_COMMIT_UNKNOWN];
}

int main(int argc, char **argv)
{
	const char *only = NULL;
	bool deep = false, good = true;
	unsigned ran = 0;

	(void)argc;
	for (argv++; *argv && !strncmp(*argv, "--", 2); argv++) {
		if (!strcmp(*argv, "--deep"))
			deep = true;
		else if (!strcmp(*argv, "--kind") && argv[1])
			only = *++argv;
	}
	for (unsigned i = 0; i < num_kinds; i++) {
		/* Only kinds with a single device. */
		if (!kinds[i].image && kinds[i].made->devices > 1)
			continue;
		if (kinds[i].threads)
			continue;
		if (only ? strcmp(only, kinds[i].name) : !deep && !kinds[i].faults)
			continue;
		good &= run_kind(&kinds[i], argv, deep);
		fflush(stdout);
		ran++;
	}
	printf("compared %" PRIu64 " failures in %u kinds of transactions with the error returned\n", tried, ran);
	return !good || !ran;
}
