// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Adds owners to blocks and extents, by many threads in parallel. Blocks and extents that are not in the tables, or
 * contradict them, are put into lists and merged when no thread is running.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "lib/base/err.h"
#include "lib/sweep/lost.h"
#include "lib/usage/chunks.h"
#include "lib/usage/damage.h"
#include "lib/usage/owners/pending.h"
#include "lib/usage/owners/reach.h"
#include "lib/usage/owners/sets.h"
#include "lib/usage/state.h"
#include "lib/usage/table.h"

static int add_locked(struct usage_work *w, struct array *l, const struct usage_stray *s, struct btrkit_error *err)
{
	int ret;

	pthread_mutex_lock(&w->lock);
	ret = usage_strays_add(w, l, s, err);
	pthread_mutex_unlock(&w->lock);
	return ret;
}

/* @i: its number in the table; SIZE_MAX: not in the table */
static int reach(struct usage_work *w, struct array *pending, const struct usage_pointer *p, size_t i, uint32_t set,
		 struct btrkit_error *err)
{
	struct usage_table *t = &w->u->blocks;

	if (i != SIZE_MAX) {
		struct usage_block *b = usage_blocks_at(t, i);

		if (usage_block_level(b) == p->level && b->generation == (uint32_t)p->generation) {
			/* Combining different digests gives one that does not match the block. */
			if (usage_block_digest(b) != p->digest)
				atomic_fetch_or_explicit(&b->tagged, usage_block_tagged(0, 0, p->digest),
							 memory_order_relaxed);
			return usage_add_later(pending, i, &b->set, set, err);
		}
	}
	return add_locked(w, &w->strays[p->level],
			  &(struct usage_stray){
				  .bytenr = p->bytenr, .generation = p->generation, .set = set, .digest = p->digest },
			  err);
}

int usage_reach_blocks(struct usage_work *w, struct array *pending, const struct usage_pointer *p, size_t n,
		       uint32_t set, struct btrkit_error *err)
{
	uint64_t addresses[USAGE_FIND_MANY] = { 0 };
	size_t at[USAGE_FIND_MANY];
	int ret = 0;

	for (size_t i = 0; i < n; i++)
		addresses[i] = p[i].bytenr;
	usage_table_find_many(&w->u->blocks, sizeof(struct usage_block), addresses, n, at);
	for (size_t i = 0; !ret && i < n; i++)
		ret = reach(w, pending, &p[i], at[i], set, err);
	return ret;
}

static int compare_strays(const void *a, const void *b)
{
	const struct usage_stray *x = a, *y = b;

	if (x->bytenr != y->bytenr)
		return x->bytenr < y->bytenr ? -1 : 1;
	if (x->generation != y->generation)
		return x->generation > y->generation ? -1 : 1;
	return x->sectors > y->sectors ? -1 : x->sectors < y->sectors;
}

/* Strays of log trees have no owners. */
static int add_stray_set(struct usage_work *w, uint32_t *to, uint32_t set, struct btrkit_error *err)
{
	const uint32_t sets[] = { *to, set };

	return *to == set ? 0 : sets_union(&w->u->sets, sets, 2, to, err);
}

int usage_strays_tidy(struct usage_work *w, struct array *l, struct btrkit_error *err)
{
	struct usage_stray *s = l->at;
	size_t n = 0;
	int ret = 0;

	if (l->n)
		qsort(s, l->n, sizeof(*s), compare_strays);
	for (size_t i = 0; !ret && i < l->n; i++) {
		if (!n || compare_strays(&s[n - 1], &s[i])) {
			s[n++] = s[i];
			continue;
		}
		ret = add_stray_set(w, &s[n - 1].set, s[i].set, err);
		s[n - 1].info = usage_info_join(s[n - 1].info, s[i].info);
		s[n - 1].digest |= s[i].digest;
	}
	l->n = n;
	return ret;
}

int usage_strays_add(struct usage_work *w, struct array *l, const struct usage_stray *s, struct btrkit_error *err)
{
	struct usage_stray *to;
	int ret;

	/* The same places occur repeatedly, so remove duplicates before growing. */
	if (l->n && l->n == l->room) {
		ret = usage_strays_tidy(w, l, err);
		if (ret)
			return ret;
		if (l->n > l->room / 2) {
			to = reallocarray(l->at, 2 * l->room, sizeof(*to));
			if (!to)
				return err_nomem(err);
			l->at = to;
			l->room *= 2;
		}
	}
	to = array_add(l, sizeof(*to), err);
	if (!to)
		return -ENOMEM;
	*to = *s;
	return 0;
}

int usage_stray_extent(struct usage_work *w, const struct usage_stray *s, struct btrkit_error *err)
{
	return add_locked(w, &w->data_strays, s, err);
}

/*
 * Reports that an extent is not in the extent tree, unless that part of the extent tree was unreadable, which was
 * reported.
 */
static int report_missing(struct usage_work *w, const struct usage_stray *s, const char *what_it_is,
			  struct btrkit_error *err)
{
	struct btrkit_error what = BTRKIT_ERROR_INIT;

	if (sweep_lost_has(&w->lost, s->bytenr))
		return 0;
	err_corrupt(&what, NULL, "%s is missing in the extent tree", what_it_is);
	err_at_logical(&what, s->bytenr);
	return usage_damage_of(w, s->set, -EUCLEAN, &what, err);
}

static int report_place(struct usage_work *w, const struct usage_stray *s, const char *why, struct btrkit_error *err)
{
	struct btrkit_error what = BTRKIT_ERROR_INIT;

	err_corrupt(&what, NULL, "%s", why);
	err_at_logical(&what, s->bytenr);
	return usage_damage_of(w, s->set, -EUCLEAN, &what, err);
}

/* Handles a block whose level or generation in the table differs from that in a pointer. */
static int settle_contradiction(struct usage_work *w, struct usage_block *b, unsigned level,
				const struct usage_stray *s, struct btrkit_error *err)
{
	const uint32_t set = atomic_load_explicit(&b->set, memory_order_relaxed);
	const bool free = !set || set == w->filesystem;
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	int ret;

	err_corrupt(&what, "generation",
		    "tree block of level %u and generation %" PRIu32
		    " is referred to with level %u and generation %" PRIu64,
		    usage_block_level(b), b->generation, level, s->generation);
	err_at_logical(&what, s->bytenr);
	ret = usage_damage_of(w, s->set, -EUCLEAN, &what, err);
	if (ret || !free)
		return ret;
	/* There was no other pointer to it, so trust the tree rather than the extent tree. */
	atomic_store_explicit(&b->tagged, usage_block_tagged(s->bytenr, level, s->digest), memory_order_relaxed);
	b->generation = (uint32_t)s->generation;
	return usage_add_now(w, &b->set, s->set, err);
}

/* Returns whether a range overlaps an extent in the table. */
static bool overlaps_extent(const struct usage_work *w, uint64_t start, uint64_t length)
{
	const struct usage_table *t = &w->u->extents;
	const size_t i = usage_table_lower_bound(t, sizeof(struct usage_extent), start);
	const struct usage_extent *e;

	if (i < t->n && usage_extents_at(t, i)->start - start < length)
		return true;
	if (!i)
		return false;
	e = usage_extents_at(t, i - 1);
	return start - e->start < (uint64_t)e->sectors * w->u->sectorsize;
}

static bool overlaps_block(const struct usage_work *w, uint64_t start, uint64_t length)
{
	const struct usage_table *t = &w->u->blocks;
	const size_t i = usage_table_lower_bound(t, sizeof(struct usage_block), start);

	if (i < t->n && usage_table_address(t, sizeof(struct usage_block), i) - start < length)
		return true;
	return i && start - usage_table_address(t, sizeof(struct usage_block), i - 1) < w->u->nodesize;
}

/* Checks all blocks in the list. Those that may be added to the table are stored in @ready. */
static int check_blocks(struct usage_work *w, unsigned level, struct array *l, struct usage_block *ready,
			size_t *num_ready, struct btrkit_error *err)
{
	struct usage_table *t = &w->u->blocks;
	size_t hint = 0, chunk = 0;
	int ret = 0;

	for (size_t i = 0; !ret && i < l->n; i++) {
		const struct usage_stray *s = (const struct usage_stray *)l->at + i;
		const size_t at = usage_table_find(t, sizeof(struct usage_block), s->bytenr, &hint);
		struct usage_block *b = ready + *num_ready;

		if (at != SIZE_MAX) {
			ret = settle_contradiction(w, usage_blocks_at(t, at), level, s, err);
		} else if (!usage_in_chunk(w, s->bytenr, w->u->nodesize, &chunk)) {
			ret = report_place(w, s, "tree block is not in a chunk", err);
		} else if ((*num_ready && s->bytenr - (atomic_load(&b[-1].tagged) & USAGE_ADDRESS) < w->u->nodesize) ||
			   overlaps_block(w, s->bytenr, w->u->nodesize) ||
			   overlaps_extent(w, s->bytenr, w->u->nodesize)) {
			ret = report_place(w, s, "tree block overlaps something else in the extent tree", err);
		} else {
			ret = report_missing(w, s, "tree block", err);
			atomic_init(&b->tagged, usage_block_tagged(s->bytenr, level, s->digest));
			b->generation = (uint32_t)s->generation;
			atomic_init(&b->set, s->set);
			++*num_ready;
		}
	}
	return ret;
}

int usage_merge_blocks(struct usage_work *w, unsigned level, struct btrkit_error *err)
{
	struct array *l = &w->strays[level];
	struct usage_block *ready;
	size_t n = 0;
	int ret;

	if (!l->n)
		return 0;
	ret = usage_strays_tidy(w, l, err);
	if (ret)
		return ret;
	ready = calloc(l->n, sizeof(*ready));
	if (!ready)
		return err_nomem(err);
	ret = check_blocks(w, level, l, ready, &n, err);
	if (!ret && n)
		ret = usage_table_merge(&w->u->blocks, sizeof(*ready), ready, n, err);
	free(ready);
	free(l->at);
	*l = (struct array){ 0 };
	return ret;
}

static int verify_extents(struct usage_work *w, struct array *l, struct usage_extent *ready, size_t *num_ready,
			  struct btrkit_error *err)
{
	uint64_t end = 0;
	size_t chunk = 0;
	int ret = 0;

	for (size_t i = 0; !ret && i < l->n; i++) {
		const struct usage_stray *s = (const struct usage_stray *)l->at + i;
		const uint64_t length = (uint64_t)s->sectors * w->u->sectorsize;
		struct usage_extent *e = ready + *num_ready;

		if (!length || !usage_in_chunk(w, s->bytenr, length, &chunk)) {
			ret = report_place(w, s, "data extent is not in a chunk", err);
		} else if (s->bytenr < end || overlaps_extent(w, s->bytenr, length) ||
			   overlaps_block(w, s->bytenr, length)) {
			ret = report_place(w, s, "data extent overlaps something else in the extent tree", err);
		} else {
			ret = report_missing(w, s, "data extent", err);
			e->start = s->bytenr;
			e->sectors = s->sectors;
			atomic_init(&e->set, s->set);
			atomic_init(&e->info, s->info);
			end = s->bytenr + length;
			++*num_ready;
		}
	}
	return ret;
}

int usage_merge_extents(struct usage_work *w, struct btrkit_error *err)
{
	struct array *l = &w->data_strays;
	struct usage_extent *ready;
	size_t n = 0;
	int ret;

	if (!l->n)
		return 0;
	ret = usage_strays_tidy(w, l, err);
	if (ret)
		return ret;
	ready = calloc(l->n, sizeof(*ready));
	if (!ready)
		return err_nomem(err);
	ret = verify_extents(w, l, ready, &n, err);
	if (!ret && n)
		ret = usage_table_merge(&w->u->extents, sizeof(*ready), ready, n, err);
	free(ready);
	free(l->at);
	*l = (struct array){ 0 };
	return ret;
}
