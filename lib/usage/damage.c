// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reports what is unreadable or contradictory, each location once. */
#include "lib/usage/damage.h"

#include <inttypes.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/base/text.h"
#include "lib/usage/owners/sets.h"
#include "lib/usage/state.h"

static struct usage_location location_of(const struct btrkit_error *what)
{
	return (struct usage_location){ what->logical, what->places & BTRKIT_AT_SLOT ? what->slot : UINT64_MAX };
}

/* Returns the index of the first recorded location that is not before @location. */
static size_t find_reported(const struct array *l, const struct usage_location *location)
{
	const struct usage_location *at = l->at;
	size_t low = 0, high = l->n;

	while (low < high) {
		const size_t mid = low + (high - low) / 2;

		if (at[mid].logical < location->logical ||
		    (at[mid].logical == location->logical && at[mid].slot < location->slot))
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

bool usage_was_reported(const struct btrkit_usage *u, const struct btrkit_error *what)
{
	const struct usage_location location = location_of(what), *at = u->reported.at;
	const size_t i = find_reported(&u->reported, &location);

	return what->places & BTRKIT_AT_LOGICAL && i < u->reported.n && at[i].logical == location.logical &&
	       at[i].slot == location.slot;
}

/* Records a location, unless memory is short or there are too many. */
static void note_reported(struct array *l, const struct btrkit_error *what)
{
	const struct usage_location location = location_of(what);
	const size_t i = find_reported(l, &location);
	struct usage_location *at;

	if (!(what->places & BTRKIT_AT_LOGICAL) || l->n == USAGE_REPORTED_MAX || !array_add(l, sizeof(*at), NULL))
		return;
	at = l->at;
	memmove(at + i + 1, at + i, (l->n - 1 - i) * sizeof(*at));
	at[i] = location;
}

int usage_damage(struct usage_work *w, int ret, const struct btrkit_error *what, struct btrkit_error *err)
{
	int r = 0;

	if (ret == -ENOMEM || !w->opts.damage)
		return err_pass(err, what, ret);
	pthread_mutex_lock(&w->lock);
	if (!usage_was_reported(w->u, what)) {
		note_reported(&w->u->reported, what);
		w->u->total.damaged++;
		r = w->opts.damage(w->opts.damage_ctx, what);
	}
	pthread_mutex_unlock(&w->lock);
	return r;
}

#define OWNERS_NAMED 3u

/* Finds the first owners of a set by outer number. @return the number of owners */
static size_t first_owners(const struct usage_work *w, uint32_t set, uint32_t first[OWNERS_NAMED])
{
	const struct set s = sets_get(&w->u->sets, set);
	size_t n = 0;

	for (uint32_t run = 0; run < s.num_runs; run++) {
		for (uint32_t i = s.runs[run].first; i <= s.runs[run].last; i++) {
			uint32_t owner = w->u->outside[i];

			for (size_t k = 0; k < OWNERS_NAMED && k < n + 1; k++) {
				const uint32_t moved = first[k];

				if (k < n && moved < owner)
					continue;
				first[k] = owner;
				if (k == n)
					break;
				owner = moved;
			}
			n++;
		}
	}
	return n;
}

static uint64_t tree_of(const struct btrkit_usage_owner *o)
{
	switch (o->kind) {
	case BTRKIT_USAGE_RELOCATION:
		return OID_TREE_RELOC;
	case BTRKIT_USAGE_DATA_RELOCATION:
		return OID_DATA_RELOC_TREE;
	default:
		return o->id;
	}
}

int usage_damage_of(struct usage_work *w, uint32_t set, int ret, struct btrkit_error *what, struct btrkit_error *err)
{
	uint32_t first[OWNERS_NAMED] = { 0 };
	size_t n;

	if (ret == -ENOMEM || !set || set == w->filesystem)
		return usage_damage(w, ret, what, err);
	n = first_owners(w, set, first);
	if (n == 1) {
		err_at_tree(what, tree_of(&w->u->owners[first[0]]));
		return usage_damage(w, ret, what, err);
	}
	for (size_t i = 0; i < n && i < OWNERS_NAMED; i++)
		text_add(what->message, sizeof(what->message), "%s%" PRIu64, i ? ", " : "; of trees ",
			 tree_of(&w->u->owners[first[i]]));
	if (n > OWNERS_NAMED)
		text_add(what->message, sizeof(what->message), " and %zu more", n - OWNERS_NAMED);
	return usage_damage(w, ret, what, err);
}
