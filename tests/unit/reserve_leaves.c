// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Reservations and their use: delayed items never need more leaf copies than were counted, and that is far less than
 * one per item. The newest inodes stay delayed with their reservation. When everything is in the trees, nothing of the
 * reservations is left.
 */
#include "tests/unit/unit.h"

#include <inttypes.h>
#include <sys/stat.h>

#include "lib/delayed/impl.h"
#include "lib/reserve/continue.h"
#include "lib/reserve/ticket.h"
#include "tests/unit/txn_rig.h"
#include "tests/random.h"

#define TOP 256u
#define FILES 3000u
#define BYTES 1000u
#define MANY 40u

static const struct rig_kind kinds[] = {
	{ "4k nodes", BTRKIT_PROFILE_SINGLE, BTRKIT_PROFILE_SINGLE, false, 4096, 0, 1, { 200 } },
	{ "16k nodes", BTRKIT_PROFILE_SINGLE, BTRKIT_PROFILE_SINGLE, false, 16384, 0, 1, { 200 } },
	{ "64k nodes", BTRKIT_PROFILE_SINGLE, BTRKIT_PROFILE_SINGLE, false, 65536, 0, 1, { 200 } },
};

struct scene {
	struct rig r;
	struct btrkit_fs *fs;
	struct btrkit_txn *txn;
	uint64_t seed;
	bool gone[FILES];
};

static unsigned pick(struct scene *s, unsigned below)
{
	random_step(&s->seed);
	return (unsigned)((s->seed >> 33) % below);
}

static size_t file_name(char name[16], unsigned i)
{
	return (size_t)snprintf(name, 16, "f%u", i);
}

static uint64_t make_file(struct scene *s, unsigned i)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	uint64_t inode;
	char name[16];

	rig_check(btrkit_txn_create(s->txn, BTRKIT_TOP_LEVEL, TOP, name, file_name(name, i), NULL, &inode, &err), &err);
	return inode;
}

static void fill_file(struct scene *s, uint64_t inode)
{
	static const uint8_t bytes[BYTES] = { 3 };
	struct btrkit_error err = BTRKIT_ERROR_INIT;

	rig_check(btrkit_txn_write(s->txn, BTRKIT_TOP_LEVEL, inode, 0, bytes, BYTES, NULL, &err), &err);
}

static void begin(struct scene *s)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;

	rig_check(btrkit_txn_start(s->fs, &s->txn, &err), &err);
}

static void commit(struct scene *s)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;

	rig_check(btrkit_txn_commit(s->txn, NULL, &err), &err);
	rig_verify(&s->r);
}

static struct scene *make_scene(const struct rig_kind *kind)
{
	struct scene *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	rig_make(&s->r, kind);
	s->fs = rig_open(&s->r, BTRKIT_OPEN_WRITE, 0);
	begin(s);
	return s;
}

static void free_scene(struct scene *s)
{
	btrkit_fs_close(s->fs);
	rig_destroy(&s->r);
	free(s);
}

static void remove_some(struct scene *s, unsigned n)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	char name[16];

	while (n) {
		const unsigned i = pick(s, FILES);

		if (s->gone[i])
			continue;
		rig_check(btrkit_txn_unlink(s->txn, BTRKIT_TOP_LEVEL, TOP, name, file_name(name, i), BTRKIT_UNLINK_FILE,
					    &err),
			  &err);
		s->gone[i] = true;
		n--;
	}
}

static struct delayed_amount counted(const struct scene *s)
{
	const struct delayed_tree *t = s->txn->delayed->list;
	struct delayed_amount sum = { 0 };

	for (unsigned i = 0; t && i < DELAYED_SHARDS; i++) {
		sum.items += t->shards[i].places;
		sum.leaves += t->shards[i].leaves;
	}
	return sum;
}

/* The number of copied leaves. */
static int64_t copied(const struct scene *s)
{
	const struct edit_tree *t = s->txn->overlay ? overlay_open_tree(s->txn->overlay, BTRKIT_TOP_LEVEL) : NULL;

	return t ? (int64_t)(s->txn->overlay->copied - t->private_inner) : 0;
}

/* No information may be left about leaves that were copied, or will have to be copied again. */
static void check_forgotten(const struct scene *s)
{
	const struct delayed_tree *t = s->txn->delayed->list;

	for (unsigned i = 0; i < DELAYED_LEAVES; i++)
		assert_int_equal(atomic_load(&t->leaves[i]), 0);
	for (unsigned i = 0; i < DELAYED_SHARDS; i++)
		for (unsigned k = 0; k < DELAYED_SEEN; k++)
			assert_int_equal(t->shards[i].seen[k].bytenr, 0);
}

static void remove_and_run(struct scene *s, unsigned n)
{
	const struct delayed_amount before = counted(s);
	const int64_t copied_before = copied(s);
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct delayed_amount now;

	remove_some(s, n);
	now = counted(s);
	rig_check(btrkit_txn_flush(s->txn, &err), &err);
	check_forgotten(s);
	print_message("%u files: %" PRId64 " items in %" PRId64 " leaves, %" PRId64 " were copied\n", n,
		      now.items - before.items, now.leaves - before.leaves, copied(s) - copied_before);
	assert_true(copied(s) - copied_before <= now.leaves - before.leaves);
	if (n >= MANY)
		assert_true(3 * (now.leaves - before.leaves) <= 2 * (now.items - before.items));
}

static void test_leaves(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct btrkit_error err = BTRKIT_ERROR_INIT;
		struct scene *s = make_scene(&kinds[i]);

		print_message("%s\n", kinds[i].name);
		for (unsigned k = 0; k < FILES; k++)
			fill_file(s, make_file(s, k));
		commit(s);
		for (unsigned round = 0; round < 4; round++) {
			begin(s);
			remove_and_run(s, 1 + round);
			remove_and_run(s, MANY);
			/* After a commit, leaves that were copied have to be copied again. */
			if (round % 2) {
				rig_check(txn_commit_and_go_on(s->txn, &err), &err);
				rig_verify(&s->r);
			}
			remove_and_run(s, 300);
			commit(s);
		}
		free_scene(s);
	}
}

/* What is granted, without the credit of idle threads. */
static struct delayed_amount held(struct scene *s)
{
	tickets_recall(s->txn->tickets);
	return s->txn->tickets->held;
}

static void test_newest(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct btrkit_error err = BTRKIT_ERROR_INIT;
		struct scene *s = make_scene(&kinds[i]);
		struct delayed_amount h;
		uint64_t last = 0;

		for (unsigned k = 0; k < 500; k++)
			last = make_file(s, k);
		rig_check(delayed_run_older(s->txn->delayed, &err), &err);
		assert_true(delayed_waits(s->txn->delayed));
		h = held(s);
		assert_in_range(h.items, 1, 100);
		assert_int_equal(h.leaves, h.items);
		assert_true(h.bytes >= h.items * (int64_t)(sizeof(struct disk_inode_item) + 50));
		fill_file(s, last);
		rig_check(btrkit_txn_flush(s->txn, &err), &err);
		assert_false(delayed_waits(s->txn->delayed));
		h = held(s);
		assert_int_equal(h.items, 0);
		assert_int_equal(h.bytes, 0);
		assert_int_equal(h.leaves, 0);
		commit(s);
		free_scene(s);
	}
}

/* What the delayed items of a tree take. */
static int64_t bytes_delayed(const struct delayed_tree *t)
{
	int64_t sum = 0;

	for (unsigned i = 0; i < DELAYED_SHARDS; i++) {
		const struct delayed_table *now = &t->shards[i].now;

		for (size_t k = 0; k < now->size; k++) {
			const struct delayed_inode *in = now->slots[k].in;

			for (uint32_t n = 0; in && n < in->n; n++)
				sum += in->items[n]->size + (int64_t)sizeof(struct disk_item);
		}
	}
	return sum;
}

/* A directory stays delayed, first because it is new and then because it grows: so does what was granted for it. */
static void test_directory(void **state)
{
	const struct btrkit_new_inode what = { .mode = S_IFDIR | 0755 };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct scene *s = make_scene(&kinds[0]);
	struct delayed *d = s->txn->delayed;
	uint64_t dir;
	char name[32];

	(void)state;
	rig_check(btrkit_txn_create(s->txn, BTRKIT_TOP_LEVEL, TOP, "dir", 3, &what, &dir, &err), &err);
	rig_check(delayed_run_older(d, &err), &err);
	assert_int_equal(held(s).bytes, bytes_delayed(d->list));
	for (unsigned i = 0; i < 100; i++)
		rig_check(btrkit_txn_create(s->txn, BTRKIT_TOP_LEVEL, dir, name,
					    (size_t)snprintf(name, sizeof(name), "entry-%u", i), NULL, NULL, &err),
			  &err);
	d->waiting_max = 0;
	delayed_run_much(d);
	assert_true(bytes_delayed(d->list) > 100 * (int64_t)sizeof(struct disk_item));
	assert_true(held(s).bytes >= bytes_delayed(d->list));
	commit(s);
	free_scene(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_leaves),
		cmocka_unit_test(test_newest),
		cmocka_unit_test(test_directory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
