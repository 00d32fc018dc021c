// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/usage/owners/sets.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"

/* Memory that a set needs besides its runs: in the array, in the hash table, and in the sums at the end. */
#define SET_BYTES 88u
#define PIECE_RUNS 8192u
#define REMEMBER_MAX 4096u /* sets of a union */

struct set_piece {
	struct set_piece *next;
	struct set_run runs[];
};

int sets_init(struct sets *s, uint32_t owners, const uint32_t *counting, uint64_t budget, struct btrkit_error *err)
{
	*s = (struct sets){ .budget = budget, .counting = counting, .n = 1, .room = 256, .table_size = 1024 };
	pthread_mutex_init(&s->lock, NULL);
	s->at = calloc(s->room, sizeof(*s->at));
	s->table = calloc(s->table_size, sizeof(*s->table));
	s->bits = calloc(owners / 64 + 1, sizeof(*s->bits));
	/* The maximum number of runs is a set of every other owner. */
	s->scratch = calloc(owners / 2 + 1, sizeof(*s->scratch));
	return s->at && s->table && s->bits && s->scratch ? 0 : err_nomem(err);
}

static void release_all(struct sets *s)
{
	struct set_piece *next;

	for (struct set_piece *p = s->pieces; p; p = next) {
		next = p->next;
		free(p);
	}
	free(s->at);
	free(s->table);
}

void sets_release(struct sets *s)
{
	if (!s->budget)
		return;
	release_all(s);
	free(s->bits);
	free(s->scratch);
	free(s->last);
	pthread_mutex_destroy(&s->lock);
	*s = (struct sets){ 0 };
}

static uint32_t hash_of(const struct set_run *runs, uint32_t n)
{
	uint64_t h = 0x9e3779b97f4a7c15u;

	for (uint32_t i = 0; i < n; i++) {
		h = (h ^ runs[i].first) * 0xff51afd7ed558ccdu;
		h = (h ^ h >> 32 ^ runs[i].last) * 0xc4ceb9fe1a85ec53u;
		h ^= h >> 29;
	}
	return (uint32_t)h;
}

/* Allocates memory for @n runs, which never moves. */
static struct set_run *allocate_runs(struct sets *s, uint32_t n)
{
	const size_t size = n > PIECE_RUNS ? n : PIECE_RUNS;
	struct set_piece *piece;

	if (!s->pieces || s->piece_used + n > PIECE_RUNS) {
		piece = malloc(sizeof(*piece) + size * sizeof(piece->runs[0]));
		if (!piece)
			return NULL;
		piece->next = s->pieces;
		s->pieces = piece;
		s->piece_used = 0;
	}
	s->piece_used += n;
	return s->pieces->runs + s->piece_used - n;
}

/* Ensures space for one more set in the array and in the hash table. */
static int make_room(struct sets *s)
{
	struct set *at;
	uint32_t *table;

	if (s->n == s->room) {
		at = reallocarray(s->at, 2 * (size_t)s->room, sizeof(*at));
		if (!at)
			return -ENOMEM;
		s->at = at;
		s->room *= 2;
	}
	if (2 * s->n < s->table_size)
		return 0;
	table = calloc(2 * (size_t)s->table_size, sizeof(*table));
	if (!table)
		return -ENOMEM;
	free(s->table);
	s->table = table;
	s->table_size *= 2;
	for (uint32_t i = 1; i < s->n; i++) {
		uint32_t at_slot = s->at[i].hash & (s->table_size - 1);

		while (table[at_slot])
			at_slot = (at_slot + 1) & (s->table_size - 1);
		table[at_slot] = i;
	}
	return 0;
}

static uint32_t weigh(const struct sets *s, const struct set_run *runs, uint32_t n)
{
	uint32_t weight = 0;

	for (uint32_t i = 0; i < n; i++)
		weight += s->counting[runs[i].last + 1] - s->counting[runs[i].first];
	return weight;
}

/* Returns the number of the set with these runs, which is added if it is new. The caller holds the lock. */
static int intern(struct sets *s, const struct set_run *runs, uint32_t n, uint32_t *ret, struct btrkit_error *err)
{
	const uint32_t hash = hash_of(runs, n);
	const uint64_t bytes = SET_BYTES + n * sizeof(*runs);
	uint32_t slot = hash & (s->table_size - 1);
	struct set_run *copy;

	for (; s->table[slot]; slot = (slot + 1) & (s->table_size - 1)) {
		const struct set *e = &s->at[s->table[slot]];

		if (e->hash == hash && e->num_runs == n && !memcmp(e->runs, runs, n * sizeof(*runs))) {
			*ret = s->table[slot];
			return 0;
		}
	}
	if (s->bytes + bytes > s->budget || s->n == SETS_MAX)
		return err_set(err, BTRKIT_NO_MEMORY, "sets of owners exceed the limit of %" PRIu64 " bytes",
			       s->budget);
	copy = allocate_runs(s, n);
	if (!copy || make_room(s))
		return err_nomem(err);
	memcpy(copy, runs, n * sizeof(*runs));
	/* The table may have been reallocated. */
	slot = hash & (s->table_size - 1);
	while (s->table[slot])
		slot = (slot + 1) & (s->table_size - 1);
	s->at[s->n] = (struct set){ copy, n, hash, weigh(s, runs, n) };
	s->table[slot] = s->n;
	s->bytes += bytes;
	*ret = s->n++;
	return 0;
}

int sets_single(struct sets *s, uint32_t owner, uint32_t *ret, struct btrkit_error *err)
{
	const struct set_run run = { owner, owner };
	int r;

	pthread_mutex_lock(&s->lock);
	r = intern(s, &run, 1, ret, err);
	pthread_mutex_unlock(&s->lock);
	return r;
}

/* Sets the bits of all members of a set. */
static void mark(uint64_t *bits, const struct set *set)
{
	for (uint32_t i = 0; i < set->num_runs; i++) {
		const uint32_t first = set->runs[i].first, last = set->runs[i].last;
		const uint64_t from = UINT64_MAX << first % 64, to = UINT64_MAX >> (63 - last % 64);

		if (first / 64 == last / 64) {
			bits[first / 64] |= from & to;
			continue;
		}
		bits[first / 64] |= from;
		for (uint32_t word = first / 64 + 1; word < last / 64; word++)
			bits[word] = UINT64_MAX;
		bits[last / 64] |= to;
	}
}

/* Converts the bits in words @low to @high to runs, and clears them. @return the set, without hash and weight */
static struct set take_marked(uint64_t *bits, uint32_t low, uint32_t high, struct set_run *to)
{
	uint32_t n = 0;

	for (uint32_t word = low; word <= high; word++) {
		uint64_t left = bits[word];

		bits[word] = 0;
		while (left) {
			const unsigned skip = __builtin_ctzll(left);
			/* Adding the lowest bit of a run clears the run and sets the bit after it, if there is one. */
			const uint64_t after = left + (UINT64_C(1) << skip);
			const uint32_t first = word * 64 + skip;
			const uint32_t last = word * 64 + (after ? (unsigned)__builtin_ctzll(after & ~left) : 64) - 1;

			if (n && to[n - 1].last + 1 == first)
				to[n - 1].last = last;
			else
				to[n++] = (struct set_run){ first, last };
			left &= after;
		}
	}
	return (struct set){ .runs = to, .num_runs = n };
}

/* Remembers what sets the last union was made of. Without memory for that, it is made again the next time. */
static void remember(struct sets *s, const uint32_t *sets, size_t n, uint32_t both)
{
	uint32_t *more;

	if (n > REMEMBER_MAX)
		return;
	if (n > s->last_room) {
		more = reallocarray(s->last, 2 * n, sizeof(*more));
		if (!more)
			return;
		s->last = more;
		s->last_room = 2 * n;
	}
	memcpy(s->last, sets, n * sizeof(*sets));
	s->last_n = n;
	s->last_union = both;
}

static int make_union(struct sets *s, const uint32_t *sets, size_t n, uint32_t *ret, struct btrkit_error *err)
{
	uint32_t low = UINT32_MAX, high = 0;
	struct set both;
	int r;

	/* What lies side by side is often reached from the same blocks. */
	if (n == s->last_n && !memcmp(s->last, sets, n * sizeof(*sets))) {
		*ret = s->last_union;
		return 0;
	}
	for (size_t i = 0; i < n; i++) {
		const struct set *set = &s->at[sets[i]];

		if (!set->num_runs)
			continue;
		mark(s->bits, set);
		low = set->runs[0].first / 64 < low ? set->runs[0].first / 64 : low;
		high = set->runs[set->num_runs - 1].last / 64 > high ? set->runs[set->num_runs - 1].last / 64 : high;
	}
	both = take_marked(s->bits, low, high, s->scratch);
	r = intern(s, both.runs, both.num_runs, ret, err);
	if (!r)
		remember(s, sets, n, *ret);
	return r;
}

int sets_union(struct sets *s, const uint32_t *sets, size_t n, uint32_t *ret, struct btrkit_error *err)
{
	int r;

	pthread_mutex_lock(&s->lock);
	r = make_union(s, sets, n, ret, err);
	pthread_mutex_unlock(&s->lock);
	return r;
}

struct set sets_get(struct sets *s, uint32_t number)
{
	struct set ret;

	pthread_mutex_lock(&s->lock);
	ret = s->at[number];
	pthread_mutex_unlock(&s->lock);
	return ret;
}

uint64_t sets_bytes(struct sets *s)
{
	uint64_t ret;

	pthread_mutex_lock(&s->lock);
	ret = s->bytes;
	pthread_mutex_unlock(&s->lock);
	return ret;
}

int sets_keep(struct sets *s, uint32_t *numbers, struct btrkit_error *err)
{
	struct sets kept = { .budget = s->budget, .counting = s->counting, .n = 1, .room = 256, .table_size = 1024 };
	int ret = 0;

	kept.at = calloc(kept.room, sizeof(*kept.at));
	kept.table = calloc(kept.table_size, sizeof(*kept.table));
	if (!kept.at || !kept.table)
		ret = err_nomem(err);
	/* There are no duplicates, and all fit before. */
	for (uint32_t i = 1; !ret && i < s->n; i++)
		if (numbers[i])
			ret = intern(&kept, s->at[i].runs, s->at[i].num_runs, &numbers[i], err);
	if (ret) {
		release_all(&kept);
		return ret;
	}
	release_all(s);
	s->at = kept.at;
	s->n = kept.n;
	s->room = kept.room;
	s->table = kept.table;
	s->table_size = kept.table_size;
	s->pieces = kept.pieces;
	s->piece_used = kept.piece_used;
	s->bytes = kept.bytes;
	s->last_n = 0;
	return 0;
}

int set_compare(const struct set *a, const struct set *b)
{
	const uint32_t n = a->num_runs < b->num_runs ? a->num_runs : b->num_runs;

	for (uint32_t i = 0; i < n; i++) {
		if (a->runs[i].first != b->runs[i].first)
			return a->runs[i].first < b->runs[i].first ? -1 : 1;
		if (a->runs[i].last != b->runs[i].last)
			return a->runs[i].last < b->runs[i].last ? -1 : 1;
	}
	return a->num_runs < b->num_runs ? -1 : a->num_runs > b->num_runs;
}
