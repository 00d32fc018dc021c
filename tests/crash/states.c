// SPDX-License-Identifier: LGPL-2.1-or-later
#include "states.h"

#include <stdlib.h>

#include "lib/format/super.h"

static uint64_t seed_state = 1;

void states_seed(uint64_t seed)
{
	seed_state = seed;
}

static uint64_t draw(void)
{
	seed_state ^= seed_state >> 12;
	seed_state ^= seed_state << 25;
	seed_state ^= seed_state >> 27;
	return seed_state * 0x2545f4914f6cdd1dull;
}

static struct sparse *state_over(const struct states *s, struct sparse *below)
{
	return sparse_create(sparse_io(s->before)->size, below);
}

static void look_at_prefixes(const struct states *s)
{
	struct sparse *state = state_over(s, s->before);

	s->look(s->ctx, state, "prefix", 0);
	for (size_t i = 0; i < s->log->n; i++) {
		log_apply(&s->log->events[i], 1, state);
		s->look(s->ctx, state, "prefix", i + 1);
	}
	sparse_free(state);
}

/* Some of the events, in some order; with sectors, some of each. */
static void look_at_subset(const struct states *s, struct sparse *before, size_t first, size_t end, size_t sector)
{
	const struct event *e = s->log->events + first;
	const size_t n = end - first;
	struct sparse *state = state_over(s, before);
	size_t *order = calloc(n + 1, sizeof(*order));
	uint64_t keep = draw() % 4;

	for (size_t i = 0; i < n; i++) {
		size_t j = draw() % (i + 1);

		order[i] = order[j];
		order[j] = i;
	}
	for (size_t i = 0; i < n; i++) {
		const struct event *each = &e[order[i]];

		/* From one in four to all of them: a state that lacks little is as telling as one that has little. */
		if (draw() % 4 <= keep)
			event_apply(each, state, sector ? sector : each->len, sector ? draw() | draw() : UINT64_MAX);
	}
	s->look(s->ctx, state, sector ? "torn subset" : "subset", end);
	free(order);
	sparse_free(state);
}

/* A superblock that is written: each subset of its 512-byte sectors, over all that came before it. */
static void look_at_torn(const struct states *s, struct sparse *before, size_t at)
{
	const struct event *e = &s->log->events[at];

	if (e->kind != EVENT_WRITE || e->len != SUPER_SIZE)
		return;
	for (uint64_t mask = 1; mask < 255; mask += s->torn_step) {
		struct sparse *state = state_over(s, before);

		event_apply(e, state, 512, mask);
		s->look(s->ctx, state, "torn superblock", at);
		sparse_free(state);
	}
}

static void look_at_stretches(const struct states *s)
{
	static const size_t sectors[] = { 0, 512, 4096 };
	struct sparse *before = state_over(s, s->before);
	size_t first = 0, end;

	for (; first < s->log->n; first = end + 1) {
		for (end = first; end < s->log->n && s->log->events[end].kind != EVENT_FLUSH;)
			end++;
		for (unsigned i = 0; i < 3; i++)
			for (unsigned seed = 0; seed < s->seeds; seed++)
				look_at_subset(s, before, first, end, sectors[i]);
		for (size_t i = first; i < end; i++) {
			look_at_torn(s, before, i);
			log_apply(&s->log->events[i], 1, before);
		}
	}
	sparse_free(before);
}

void states_enumerate(const struct states *s)
{
	look_at_prefixes(s);
	look_at_stretches(s);
}
