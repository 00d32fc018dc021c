// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Reservations: no operation and no commit takes more tree blocks than were promised for it, on filesystems whose
 * subvolumes share leaves. On full filesystems no commit fails, operations that fail with -ENOSPC change nothing, and
 * everything can be deleted.
 */
#include "tests/unit/unit.h"

#include <inttypes.h>
#include <sys/stat.h>

#include "lib/delayed/delayed.h"
#include "lib/reserve/bound.h"
#include "lib/reserve/ticket.h"
#include "tests/unit/txn_rig.h"
#include "tests/random.h"

#define TOP 256u
#define SUBVOLUMES_MAX 8u
#define BYTES_MAX 70000u

struct contents {
	uint64_t inode; /* 0: does not exist */
	uint32_t size, seed;
};

struct subvolume_model {
	uint64_t id; /* 0: does not exist */
	char name[16];
	struct contents *files;
};

struct plan {
	struct btrkit_fs *fs;
	struct btrkit_txn *txn;
	uint64_t seed;
	unsigned files, serial;
	struct subvolume_model all[SUBVOLUMES_MAX]; /* [0] is the top level */
	uint8_t bytes[BYTES_MAX], back[BYTES_MAX + 1];
	uint64_t refused, ops, commits, retried;
};

static unsigned pick(struct plan *p, unsigned below)
{
	random_step(&p->seed);
	return (unsigned)((p->seed >> 33) % below);
}

static struct subvolume_model *some(struct plan *p)
{
	struct subvolume_model *m;

	do
		m = &p->all[pick(p, SUBVOLUMES_MAX)];
	while (!m->id);
	return m;
}

static size_t file_name(unsigned i, char name[32])
{
	return (size_t)snprintf(name, 32, "a-file-with-number-%u", i);
}

/* @return whether it was done; the only other result allowed is -ENOSPC */
static bool done(struct plan *p, int ret, const struct btrkit_error *err)
{
	p->ops++;
	if (ret != -ENOSPC)
		rig_check(ret, err);
	/* A successful call must leave no error, whatever attempts failed inside it. */
	if (!ret && err->code != BTRKIT_OK)
		fail_msg("success, but an error is set: %s", err->message);
	p->refused += !!ret;
	return !ret;
}

static const uint8_t *make_bytes(struct plan *p, const struct contents *f)
{
	uint32_t x = f->seed;

	for (uint32_t i = 0; i < f->size; i++) {
		if (i % 64 == 0)
			x = x * 1664525u + 1013904223u;
		p->bytes[i] = (uint8_t)(x >> 24);
	}
	return p->bytes;
}

static void create(struct plan *p, struct subvolume_model *m, unsigned i)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	uint64_t inode;
	char name[32];
	const size_t len = file_name(i, name);

	if (done(p, btrkit_txn_create(p->txn, m->id, TOP, name, len, NULL, &inode, &err), &err))
		m->files[i] = (struct contents){ .inode = inode };
}

static void put(struct plan *p, struct subvolume_model *m, unsigned i, uint32_t size)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct contents *f = &m->files[i], to = { .inode = f->inode, .size = size, .seed = pick(p, 1u << 30) };

	if (f->size > size) {
		if (!done(p, btrkit_txn_truncate(p->txn, m->id, f->inode, 0, &err), &err))
			return;
		f->size = 0;
	}
	if (done(p, btrkit_txn_write(p->txn, m->id, f->inode, 0, make_bytes(p, &to), size, NULL, &err), &err))
		*f = to;
}

static void attribute(struct plan *p, struct subvolume_model *m, unsigned i, uint32_t size)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	char name[32];
	int ret;

	snprintf(name, sizeof(name), "user.%u", pick(p, 3));
	memset(p->bytes, 'v', size);
	ret = btrkit_txn_xattr_set(p->txn, m->id, m->files[i].inode, name, p->bytes, size, 0, &err);
	done(p, ret, &err);
}

/* Replaces the contents of a file with those of another one by cloning. */
static void share(struct plan *p, struct subvolume_model *m, unsigned i)
{
	struct subvolume_model *from = some(p);
	const struct contents *source = &from->files[pick(p, p->files)];
	struct contents *f = &m->files[i];
	struct btrkit_clone what = { .from_root = from->id, .from_inode = source->inode, .to_root = m->id,
				     .to_inode = f->inode };
	struct btrkit_error err = BTRKIT_ERROR_INIT;

	if (!source->inode || !source->size || source == f)
		return;
	if (f->size > source->size) {
		if (!done(p, btrkit_txn_truncate(p->txn, m->id, f->inode, 0, &err), &err))
			return;
		f->size = 0;
	}
	if (!done(p, btrkit_txn_clone(p->txn, &what, &err), &err))
		return;
	f->size = source->size;
	f->seed = source->seed;
}

static bool take_away(struct plan *p, struct subvolume_model *m, unsigned i)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	char name[32];
	const size_t len = file_name(i, name);

	if (!done(p, btrkit_txn_unlink(p->txn, m->id, TOP, name, len, BTRKIT_UNLINK_FILE, &err), &err))
		return false;
	m->files[i].inode = 0;
	return true;
}

static void snapshot(struct plan *p)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct subvolume_model *to = NULL, *from = some(p), made = { 0 };
	size_t len;
	int ret;

	for (unsigned i = 0; !to && i < SUBVOLUMES_MAX; i++)
		to = p->all[i].id ? NULL : &p->all[i];
	if (!to)
		return;
	len = (size_t)snprintf(made.name, sizeof(made.name), "s%u", ++p->serial);
	ret = btrkit_txn_subvolume_snapshot(p->txn, from->id, BTRKIT_TOP_LEVEL, TOP, made.name, len, NULL, &made.id,
					    &err);
	if (!done(p, ret, &err))
		return;
	made.files = calloc(p->files, sizeof(*made.files));
	assert_non_null(made.files);
	memcpy(made.files, from->files, p->files * sizeof(*made.files));
	*to = made;
}

static bool drop(struct plan *p, struct subvolume_model *m)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;

	/* If space runs out in the middle, the name is gone already, and the rest is cleaned up later. */
	const int ret = btrkit_txn_subvolume_delete(p->txn, m->id, &err);
	const bool gone = done(p, ret, &err) ||
			  btrkit_txn_create(p->txn, m->id, TOP, "x", 1, NULL, NULL, &err) == -ENOENT;

	if (gone) {
		free(m->files);
		*m = (struct subvolume_model){ 0 };
	}
	return gone;
}

static void change_file(struct plan *p, uint32_t inline_max)
{
	struct subvolume_model *m = some(p);
	const unsigned i = pick(p, p->files);

	if (!m->files[i].inode) {
		create(p, m, i);
		return;
	}
	switch (pick(p, 8)) {
	case 0:
		take_away(p, m, i);
		break;
	case 1:
	case 2:
		attribute(p, m, i, 1 + pick(p, 3000));
		break;
	case 3:
		share(p, m, i);
		break;
	case 4:
	case 5:
		put(p, m, i, 1 + pick(p, BYTES_MAX));
		break;
	default:
		put(p, m, i, 1 + pick(p, inline_max));
		break;
	}
}

static void check_file(struct plan *p, const struct subvolume_model *m, const struct contents *f)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_file *file;
	size_t got;

	rig_check(btrkit_file_open(p->fs, m->id, f->inode, &file, &err), &err);
	rig_check(btrkit_file_read(file, 0, p->back, sizeof(p->back), &got, &err), &err);
	btrkit_file_close(file);
	assert_int_equal(got, f->size);
	assert_memory_equal(p->back, make_bytes(p, f), f->size);
}

/* Compares some of the files, and checks that deleted ones do not exist. */
static void check_files(struct plan *p)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_found found;

	rig_check(btrkit_txn_flush(p->txn, &err), &err);
	for (unsigned n = 0; n < SUBVOLUMES_MAX; n++) {
		const struct subvolume_model *m = &p->all[n];

		for (unsigned i = pick(p, 8); m->id && i < p->files; i += 8) {
			char name[32];
			const size_t len = file_name(i, name);
			const int ret = btrkit_txn_lookup(p->txn, m->id, TOP, name, len, &found, &err);

			assert_int_equal(ret, m->files[i].inode ? 0 : -ENOENT);
			if (!ret && i % 4 == 0)
				check_file(p, m, &m->files[i]);
		}
	}
}

/* Stops protecting the blocks of the last audited state, since a newer one is committed now. */
static void release(struct rig *r)
{
	for (unsigned i = 0; i < r->n; i++) {
		free(r->held[i]);
		r->held[i] = NULL;
	}
}

static void begin(struct plan *p)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;

	rig_check(btrkit_txn_start(p->fs, &p->txn, &err), &err);
	assert_int_equal(err.code, BTRKIT_OK);
}

static void commit(struct plan *p)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;

	rig_check(btrkit_txn_commit(p->txn, NULL, &err), &err);
	assert_int_equal(err.code, BTRKIT_OK);
	p->txn = NULL;
	p->commits++;
}

static struct plan *make_plan(struct rig *r, const struct rig_kind *kind, uint64_t seed, unsigned files)
{
	struct plan *p = calloc(1, sizeof(*p));

	assert_non_null(p);
	p->seed = seed;
	p->files = files;
	p->all[0] = (struct subvolume_model){ .id = BTRKIT_TOP_LEVEL, .files = calloc(files, sizeof(struct contents)) };
	rig_make(r, kind);
	p->fs = rig_open(r, BTRKIT_OPEN_WRITE, 0);
	return p;
}

static void free_plan(struct plan *p, struct rig *r)
{
	btrkit_fs_close(p->fs);
	rig_destroy(r);
	for (unsigned i = 0; i < SUBVOLUMES_MAX; i++)
		free(p->all[i].files);
	free(p);
}

static const struct rig_kind shared_kinds[] = {
	{ "4k nodes", BTRKIT_PROFILE_SINGLE, BTRKIT_PROFILE_SINGLE, false, 4096, 0, 1, { 400 } },
	{ "16k nodes", BTRKIT_PROFILE_SINGLE, BTRKIT_PROFILE_DUP, false, 16384, 0, 1, { 400 } },
	{ "64k nodes", BTRKIT_PROFILE_SINGLE, BTRKIT_PROFILE_SINGLE, false, 65536, 0, 1, { 700 } },
	{ "mixed", BTRKIT_PROFILE_SINGLE, BTRKIT_PROFILE_SINGLE, true, 4096, 0, 1, { 300 } },
	{ "no free space tree", BTRKIT_PROFILE_SINGLE, BTRKIT_PROFILE_SINGLE, false, 4096, 0, 1, { 300 }, true },
};

struct tally {
	uint64_t checked;
	double most; /* highest share of a promise that was used */
};

static uint64_t taken(const struct btrkit_txn *txn)
{
	return txn->overlay->created + txn->overlay->copied;
}

static void check_promise(struct tally *t, const struct ticket_promise *promise, uint64_t now, const char *when)
{
	const uint64_t used = now - promise->taken;

	if (used > promise->blocks)
		fail_msg("%s: %" PRIu64 " blocks were reserved, %" PRIu64 " are used", when, promise->blocks, used);
	t->checked++;
	if (t->most < (double)used / (double)promise->blocks)
		t->most = (double)used / (double)promise->blocks;
}

/* Pending changes are known exactly, so their bound is tighter. */
static struct ticket_promise flush(struct plan *p)
{
	const struct delayed_amount none = { 0 };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct ticket_promise promise = { 0 };
	struct bound b;

	rig_check(btrkit_txn_flush(p->txn, &err), &err);
	sync_lock_trees(&p->txn->sync);
	rig_check(bound_begin(p->txn, &b, &err), &err);
	promise.blocks = bound_items(&b, &none);
	promise.taken = taken(p->txn);
	sync_unlock_trees(&p->txn->sync);
	return promise;
}

/* After several operations, the promise of the last one covers everything that is still delayed. */
static void check_commit(struct plan *p, struct tally *t, bool flushed)
{
	const struct ticket_promise promise = flushed ? flush(p) : p->txn->tickets->promise;
	struct btrkit_write_stats before, after;

	btrkit_fs_get_write_stats(p->fs, &before);
	commit(p);
	btrkit_fs_get_write_stats(p->fs, &after);
	check_promise(t, &promise,
		      after.nodes_created + after.nodes_copied - before.nodes_created - before.nodes_copied, "commit");
}

static void bound_step(struct plan *p, struct tally *t)
{
	const unsigned what = pick(p, 40);

	if (what == 0)
		snapshot(p);
	else if (what == 1 && p->all[1].id)
		drop(p, &p->all[1]);
	else
		change_file(p, 1800);
	check_promise(t, &p->txn->tickets->promise, taken(p->txn), "operation");
}

static void run_bound(const struct rig_kind *kind, uint64_t seed, struct tally *t)
{
	struct rig r;
	struct plan *p = make_plan(&r, kind, seed, 400);

	for (unsigned round = 0; round < 40; round++) {
		const unsigned n = round ? 1 + pick(p, round % 7 ? 3 : 40) : 600;

		begin(p);
		/* Without credit, each operation reserves just what it needs. */
		p->txn->tickets->credit = (struct delayed_amount){ 0 };
		for (unsigned i = 0; i < n; i++)
			bound_step(p, t);
		check_commit(p, t, pick(p, 2));
		if (round % 20 == 1)
			rig_verify(&r);
		else
			release(&r);
	}
	assert_int_equal(p->refused, 0);
	rig_verify(&r);
	free_plan(p, &r);
}

static void test_bound(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(shared_kinds); i++) {
		struct tally t = { 0 };

		for (uint64_t seed = 1; seed < 3; seed++)
			run_bound(&shared_kinds[i], seed * 100 + i, &t);
		print_message("%s: %" PRIu64 " promises, at the most %.0f %% was taken\n", shared_kinds[i].name,
			      t.checked, 100 * t.most);
	}
}

#define SCATTERED 6000u

/* Extents of one sector each, whose order on the device differs from their order in the files. */
static void scatter(struct plan *p)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	unsigned *order = calloc(SCATTERED, sizeof(*order));

	assert_non_null(order);
	begin(p);
	for (unsigned i = 0; i < p->files; i++)
		create(p, &p->all[0], i);
	for (unsigned i = 0; i < SCATTERED; i++) {
		const unsigned k = pick(p, i + 1);

		order[i] = order[k];
		order[k] = i;
	}
	memset(p->bytes, 7, 4096);
	for (unsigned i = 0; i < SCATTERED; i++) {
		const uint64_t inode = p->all[0].files[order[i] % p->files].inode;

		rig_check(btrkit_txn_write(p->txn, BTRKIT_TOP_LEVEL, inode, order[i] / p->files * 8192ull, p->bytes,
					   4096, NULL, &err),
			  &err);
	}
	free(order);
	commit(p);
}

/*
 * One item is changed in every leaf that is shared with a snapshot: each copy changes references of extents all over
 * the extent tree. First some at a time, then all at once.
 */
static void run_scattered(const struct rig_kind *kind, struct tally *t)
{
	const struct btrkit_attr attr = { .mask = BTRKIT_ATTR_MODE, .mode = 0640 };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct rig r;
	struct plan *p = make_plan(&r, kind, 1, 200);

	scatter(p);
	for (unsigned round = 0; round < 6; round++) {
		const unsigned n = round < 4 ? 1 + round : p->files;

		begin(p);
		snapshot(p);
		commit(p);
		begin(p);
		p->txn->tickets->credit = (struct delayed_amount){ 0 };
		for (unsigned i = 0; i < n; i++)
			rig_check(btrkit_txn_set_attr(p->txn, BTRKIT_TOP_LEVEL, p->all[0].files[i].inode, &attr, &err),
				  &err);
		check_commit(p, t, round % 2);
	}
	rig_verify(&r);
	free_plan(p, &r);
}

static void test_scattered(void **state)
{
	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct tally t = { 0 };

		run_scattered(&shared_kinds[i], &t);
		print_message("%s, scattered: at the most %.0f %% of what was promised was taken\n",
			      shared_kinds[i].name, 100 * t.most);
	}
}

static const struct rig_kind full_kinds[] = {
	{ "4k nodes", BTRKIT_PROFILE_SINGLE, BTRKIT_PROFILE_SINGLE, false, 4096, 0, 1, { 50 } },
	{ "16k nodes, dup", BTRKIT_PROFILE_SINGLE, BTRKIT_PROFILE_DUP, false, 16384, 0, 1, { 150 } },
	{ "64k nodes", BTRKIT_PROFILE_SINGLE, BTRKIT_PROFILE_SINGLE, false, 65536, 0, 1, { 160 } },
	{ "mixed", BTRKIT_PROFILE_SINGLE, BTRKIT_PROFILE_SINGLE, true, 4096, 0, 1, { 32 } },
	{ "raid1", BTRKIT_PROFILE_RAID1, BTRKIT_PROFILE_RAID1, false, 4096, 1, 2, { 140, 130 } },
	{ "no free space tree", BTRKIT_PROFILE_SINGLE, BTRKIT_PROFILE_SINGLE, false, 4096, 0, 1, { 70 }, true },
};

/* If space does not suffice to delete something in this transaction, it must in the next. */
static void again(struct plan *p)
{
	commit(p);
	begin(p);
	p->retried++;
}

static void delete_all(struct plan *p)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	uint64_t count;
	int ret;

	for (unsigned n = SUBVOLUMES_MAX; n-- > 1;) {
		if (p->all[n].id && !drop(p, &p->all[n])) {
			again(p);
			assert_true(drop(p, &p->all[n]));
		}
	}
	for (unsigned i = 0; i < p->files; i++) {
		if (p->all[0].files[i].inode && !take_away(p, &p->all[0], i)) {
			again(p);
			assert_true(take_away(p, &p->all[0], i));
		}
	}
	for (unsigned tries = 0; (ret = btrkit_txn_subvolumes_clean(p->txn, &count, &err)) == -ENOSPC && tries < 50;)
		again(p);
	rig_check(ret, &err);
}

static void run_full(const struct rig_kind *kind, uint64_t seed)
{
	struct rig r;
	struct plan *p = make_plan(&r, kind, seed, 3000);
	const bool may_commit = pick(p, 2);
	unsigned rounds = 0;

	/* Until more is refused than done, freeing some space in between. */
	for (uint64_t refused = 0; rounds < 60 && p->refused < 250; rounds++) {
		begin(p);
		btrkit_txn_set_may_commit(p->txn, may_commit);
		/* The transaction may commit on its own, so the blocks of the last state may be overwritten. */
		if (may_commit)
			release(&r);
		for (unsigned i = 0; i < 3000 && p->refused - refused < 100; i++) {
			if (pick(p, 400) == 0)
				snapshot(p);
			else if (pick(p, 2000) == 0 && p->all[1].id)
				drop(p, &p->all[1]);
			else
				change_file(p, 2000);
		}
		refused = p->refused;
		if (rounds % 4 == 0)
			check_files(p);
		commit(p);
		if (rounds % 8 == 0)
			rig_verify(&r);
		else
			release(&r);
	}
	assert_true(p->refused > 100);
	rig_verify(&r);
	release(&r);
	begin(p);
	check_files(p);
	delete_all(p);
	commit(p);
	rig_verify(&r);
	print_message("%s: %" PRIu64 " operations, %" PRIu64 " refused, %" PRIu64 " commits, %" PRIu64
		      " for want of space when deleting\n", kind->name, p->ops, p->refused, p->commits, p->retried);
	free_plan(p, &r);
}

static void test_full(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(full_kinds); i++)
		run_full(&full_kinds[i], 10 + i * 101);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bound),
		cmocka_unit_test(test_scattered),
		cmocka_unit_test(test_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
