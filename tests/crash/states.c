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

static void look_at_prefixes(const struct states *s)
{
	struct disks state = disks_over(s->before);

	s->look(s->ctx, &state, "prefix", 0);
	for (size_t i = 0; i < s->log->n; i++) {
		log_apply(&s->log->events[i], 1, &state);
		s->look(s->ctx, &state, "prefix", i + 1);
	}
	disks_free(&state);
}

/* Unflushed events, by number, over the durable state. */
struct pending {
	struct disks durable;
	size_t *events;
	size_t n;
};

/* Applies a random subset of the unflushed events in random order; with @sector, also random sectors of each. */
static void look_at_subset(const struct states *s, const struct pending *p, size_t end, size_t sector)
{
	struct disks state = disks_over(&p->durable);
	size_t *order = calloc(p->n + 1, sizeof(*order));
	uint64_t keep[DISKS_MAX];

	if (!order)
		exit(99);
	/* Draw the share for each device separately: one may have everything, another little. */
	for (unsigned d = 0; d < state.n; d++)
		keep[d] = draw() % 4;
	for (size_t i = 0; i < p->n; i++) {
		size_t j = draw() % (i + 1);

		order[i] = order[j];
		order[j] = i;
	}
	for (size_t i = 0; i < p->n; i++) {
		const struct event *e = &s->log->events[p->events[order[i]]];

		/*
		 * Keep from a quarter of the events to all of them: nearly complete states reveal as much as nearly
		 * empty ones.
		 */
		if (draw() % 4 <= keep[e->device])
			event_apply(e, state.at[e->device], sector ? sector : e->len,
				    sector ? draw() | draw() : UINT64_MAX);
	}
	s->look(s->ctx, &state, sector ? "torn subset" : "subset", end);
	free(order);
	disks_free(&state);
}

/* If there are few events, all their subsets. */
static void look_at_all_subsets(const struct states *s, const struct pending *p, size_t end)
{
	for (unsigned mask = 1; p->n <= DISKS_MAX && mask + 1 < 1u << p->n; mask++) {
		struct disks state = disks_over(&p->durable);

		for (size_t i = 0; i < p->n; i++)
			if (mask >> i & 1)
				log_apply(&s->log->events[p->events[i]], 1, &state);
		s->look(s->ctx, &state, "subset of few", end);
		disks_free(&state);
	}
}

/* Torn superblock writes: each subset of the 512-byte sectors, over everything that came before. */
static void look_at_torn(const struct states *s, const struct disks *before, size_t at)
{
	const struct event *e = &s->log->events[at];

	if (e->kind != EVENT_WRITE || e->len != SUPER_SIZE)
		return;
	for (uint64_t mask = 1; mask < 255; mask += s->torn_step) {
		struct disks state = disks_over(before);

		event_apply(e, state.at[e->device], 512, mask);
		s->look(s->ctx, &state, "torn superblock", at);
		disks_free(&state);
	}
}

/* Everything written to the device becomes durable. */
static void flush(const struct states *s, struct pending *p, unsigned device)
{
	size_t left = 0;

	for (size_t i = 0; i < p->n; i++) {
		const struct event *e = &s->log->events[p->events[i]];

		if (e->device == device)
			log_apply(e, 1, &p->durable);
		else
			p->events[left++] = p->events[i];
	}
	p->n = left;
}

static void look_at_stretches(const struct states *s)
{
	static const size_t sectors[] = { 0, 512, 4096 };
	struct disks all = disks_over(s->before);
	struct pending p = { disks_over(s->before), calloc(s->log->n + 1, sizeof(*p.events)), 0 };
	bool grown = false;

	if (!p.events)
		exit(99);
	for (size_t at = 0; at <= s->log->n; at++) {
		const struct event *e = at < s->log->n ? &s->log->events[at] : NULL;

		if (e && e->kind != EVENT_FLUSH) {
			look_at_torn(s, &all, at);
			log_apply(e, 1, &all);
			p.events[p.n++] = at;
			grown |= e->kind != EVENT_MARK;
			continue;
		}
		/* Without new events, the subsets have been covered before. */
		for (unsigned i = 0; i < 3 && grown; i++)
			for (unsigned seed = 0; seed < s->seeds; seed++)
				look_at_subset(s, &p, at, sectors[i]);
		if (grown)
			look_at_all_subsets(s, &p, at);
		grown = false;
		if (e)
			flush(s, &p, e->device);
	}
	disks_free(&p.durable);
	disks_free(&all);
	free(p.events);
}

void states_enumerate(const struct states *s)
{
	look_at_prefixes(s);
	look_at_stretches(s);
}
