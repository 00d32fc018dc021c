// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/unit/unit.h"

#include <stdatomic.h>
#include <unistd.h>

#include "lib/base/pipeline.h"

#define SLOTS 5u
#define PIECES 400u

struct piece {
	unsigned number;
	unsigned result;
};

struct seen {
	atomic_uint working, most;
	unsigned next; /* number of the next piece to finish */
	unsigned fail_work, fail_finish;
};

/* Pieces take different times, so that later ones often complete first. */
static int work(void *ctx, void *slot, struct btrkit_error *err)
{
	struct seen *s = ctx;
	struct piece *p = slot;
	const unsigned n = atomic_fetch_add(&s->working, 1) + 1;
	unsigned most = atomic_load(&s->most);

	while (n > most && !atomic_compare_exchange_weak(&s->most, &most, n))
		;
	usleep((p->number * 7919) % 5 * 100);
	p->result = p->number * p->number;
	atomic_fetch_sub(&s->working, 1);
	if (p->number != s->fail_work)
		return 0;
	snprintf(err->message, sizeof(err->message), "work %u", p->number);
	return -EIO;
}

static int finish(void *ctx, void *slot, struct btrkit_error *err)
{
	struct seen *s = ctx;
	const struct piece *p = slot;

	if (p->number == s->fail_finish) {
		snprintf(err->message, sizeof(err->message), "finish %u", p->number);
		return -ENOSPC;
	}
	if (p->number != s->next || p->result != p->number * p->number)
		return -EUCLEAN;
	s->next++;
	return 0;
}

/* @return what the last pipeline call returned */
static int run(struct seen *s, unsigned threads, struct btrkit_error *err)
{
	struct piece pieces[SLOTS];
	void *slots[SLOTS];
	struct pipeline *p;
	int ret = 0;

	for (unsigned i = 0; i < SLOTS; i++)
		slots[i] = &pieces[i];
	ret = pipeline_create(&(struct pipeline_ops){ work, finish, s }, threads, slots, SLOTS, &p, NULL);
	assert_int_equal(ret, 0);
	for (unsigned i = 0; !ret && i < PIECES; i++) {
		void *slot;

		ret = pipeline_next(p, &slot, err);
		if (ret)
			break;
		((struct piece *)slot)->number = i;
		pipeline_submit(p);
	}
	if (!ret)
		ret = pipeline_drain(p, err);
	pipeline_destroy(p);
	return ret;
}

static void results_come_in_order(void **state)
{
	(void)state;
	for (unsigned threads = 0; threads <= 8; threads = threads ? 2 * threads : 1) {
		struct seen s = { .fail_work = UINT_MAX, .fail_finish = UINT_MAX };

		assert_int_equal(run(&s, threads, NULL), 0);
		assert_int_equal(s.next, PIECES);
		assert_true(s.most <= threads + !threads && s.most <= SLOTS);
		assert_true(threads <= 1 || s.most > 1);
	}
}

/* No piece after a failed one is finished, and all threads end. */
static void failures_end_it(void **state)
{
	static const unsigned where[] = { 0, 1, 7, PIECES - 1 };

	(void)state;
	for (unsigned i = 0; i < 4 * ARRAY_SIZE(where); i++) {
		const unsigned at = where[i / 4], threads = i % 4 / 2 ? 3 : 0;
		struct seen s = { .fail_work = i % 2 ? at : UINT_MAX, .fail_finish = i % 2 ? UINT_MAX : at };
		struct btrkit_error err = BTRKIT_ERROR_INIT;
		char text[32];

		snprintf(text, sizeof(text), "%s %u", i % 2 ? "work" : "finish", at);
		assert_int_equal(run(&s, threads, &err), i % 2 ? -EIO : -ENOSPC);
		assert_string_equal(err.message, text);
		assert_true(s.next <= at);
	}
}

/* Pieces that were submitted and not finished are dropped. */
static void it_can_be_left(void **state)
{
	struct seen s = { .fail_work = UINT_MAX, .fail_finish = UINT_MAX };
	struct piece pieces[SLOTS];
	void *slots[SLOTS], *slot;
	struct pipeline *p;

	(void)state;
	for (unsigned i = 0; i < SLOTS; i++)
		slots[i] = &pieces[i];
	assert_int_equal(pipeline_create(&(struct pipeline_ops){ work, finish, &s }, 2, slots, SLOTS, &p, NULL), 0);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(pipeline_next(p, &slot, NULL), 0);
		((struct piece *)slot)->number = i;
		pipeline_submit(p);
	}
	pipeline_destroy(p);
	assert_null(pipeline_destroy(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(results_come_in_order),
		cmocka_unit_test(failures_end_it),
		cmocka_unit_test(it_can_be_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
