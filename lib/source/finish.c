// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Completes a source when all names are known: sorts them, and numbers inodes in that order. There is no recursion, so
 * directories may be nested as deeply as memory allows.
 */
#include "lib/source/state.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/err.h"

#define FEW 24u /* insertion sort up to this number */

/* A name being sorted. head has the first bytes after the common prefix as a number. */
struct sort_name {
	uint64_t head;
	uint32_t entry;
};

struct sorter {
	struct source *s;
	struct sort_name *names, *spare;
	uint64_t *hashes, *hashes_spare;
	struct source_entry *copy;
	size_t common; /* length of the common prefix in the directory */
};

static int compare_names(const struct source_entry *a, const struct source_entry *b)
{
	const uint8_t len = a->len < b->len ? a->len : b->len;
	const int c = memcmp(a->name, b->name, len);

	return c ? c : (int)a->len - (int)b->len;
}

static bool comes_before(const struct sorter *t, const struct sort_name *a, const struct sort_name *b)
{
	if (a->head != b->head)
		return a->head < b->head;
	return compare_names(&t->s->entries[a->entry], &t->s->entries[b->entry]) < 0;
}

/* Sorts by merging, with insertion sort for short runs. The result is in t->names. */
static void sort_names(struct sorter *t, uint32_t n)
{
	struct sort_name *from = t->names, *to = t->spare;

	for (uint32_t start = 0; start < n; start += FEW) {
		const uint32_t end = n - start < FEW ? n : start + FEW;

		for (uint32_t i = start + 1; i < end; i++) {
			const struct sort_name one = from[i];
			uint32_t at = i;

			for (; at > start && comes_before(t, &one, &from[at - 1]); at--)
				from[at] = from[at - 1];
			from[at] = one;
		}
	}
	for (uint64_t run = FEW; run < n; run *= 2) {
		struct sort_name *merged = to;

		for (uint64_t start = 0; start < n; start += 2 * run) {
			const uint64_t middle = n - start < run ? n : start + run;
			const uint64_t end = n - middle < run ? n : middle + run;
			uint64_t a = start, b = middle, at = start;

			while (a < middle || b < end)
				if (b == end || (a < middle && !comes_before(t, &from[b], &from[a])))
					to[at++] = from[a++];
				else
					to[at++] = from[b++];
		}
		to = from;
		from = merged;
	}
	t->names = from;
	t->spare = to;
}

/* Stable sort by the hash in the upper half. The result is in t->hashes. */
static void sort_hashes(struct sorter *t, uint32_t n)
{
	if (n <= FEW) {
		for (uint32_t i = 1; i < n; i++) {
			const uint64_t one = t->hashes[i];
			uint32_t at = i;

			for (; at && one < t->hashes[at - 1]; at--)
				t->hashes[at] = t->hashes[at - 1];
			t->hashes[at] = one;
		}
		return;
	}
	for (unsigned shift = 32; shift < 64; shift += 8) {
		uint32_t starts[256] = { 0 }, sum = 0;
		uint64_t *from = t->hashes;

		for (uint32_t i = 0; i < n; i++)
			starts[from[i] >> shift & 255]++;
		for (unsigned b = 0; b < 256; b++) {
			const uint32_t count = starts[b];

			starts[b] = sum;
			sum += count;
		}
		for (uint32_t i = 0; i < n; i++)
			t->hashes_spare[starts[from[i] >> shift & 255]++] = from[i];
		t->hashes = t->hashes_spare;
		t->hashes_spare = from;
	}
}

static uint64_t head_of(const struct source_entry *e, size_t common)
{
	uint64_t head = 0;

	for (size_t i = 0; i < 8; i++)
		head = head << 8 | (common + i < e->len ? (uint8_t)e->name[common + i] : 0);
	return head;
}

static size_t common_length(const struct source_entry *entries, uint32_t n)
{
	size_t common = entries[0].len;

	for (uint32_t i = 1; i < n && common; i++) {
		size_t len = 0;

		while (len < common && len < entries[i].len && entries[i].name[len] == entries[0].name[len])
			len++;
		common = len;
	}
	return common;
}

/* Sorts the entries of one directory. @return the second of two equal names, or SOURCE_NONE */
static uint32_t order_directory(struct sorter *t, uint32_t first, uint32_t n)
{
	struct source *s = t->s;
	struct source_entry *e = s->entries + first;
	bool sorted = true;

	for (uint32_t i = 1; i < n && sorted; i++)
		sorted = compare_names(&e[i - 1], &e[i]) < 0;
	if (!sorted) {
		t->common = common_length(e, n);
		for (uint32_t i = 0; i < n; i++)
			t->names[i] = (struct sort_name){ head_of(&e[i], t->common), first + i };
		sort_names(t, n);
		for (uint32_t i = 0; i < n; i++)
			t->copy[i] = s->entries[t->names[i].entry];
		memcpy(e, t->copy, n * sizeof(*e));
		for (uint32_t i = 1; i < n; i++)
			if (!compare_names(&e[i - 1], &e[i]))
				return first + i;
	}
	for (uint32_t i = 0; i < n; i++) {
		e[i].index = i + 2;
		t->hashes[i] = (uint64_t)e[i].hash << 32 | i;
	}
	sort_hashes(t, n);
	for (uint32_t i = 0; i < n; i++)
		e[i].by_hash = first + (uint32_t)t->hashes[i];
	return SOURCE_NONE;
}

/* Counts the entries of each directory. @return whether they are already contiguous; *most: the largest count */
static bool count_entries(struct source *s, uint32_t *most)
{
	bool gathered = true;

	*most = 0;
	for (uint32_t i = 0; i < s->num_inodes; i++)
		s->inodes[i].count = 0;
	for (uint32_t i = 0; i < s->num_entries; i++) {
		struct source_inode *dir = &s->inodes[s->entries[i].parent];

		if (!dir->count)
			dir->first = i;
		gathered &= i - dir->first == dir->count;
		if (++dir->count > *most)
			*most = dir->count;
	}
	return gathered;
}

static void gather(struct source *s, struct source_entry *copy)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < s->num_inodes; i++) {
		struct source_inode *dir = &s->inodes[i];

		if (!S_ISDIR(dir->mode))
			continue;
		dir->first = sum;
		sum += dir->count;
		dir->count = 0;
	}
	for (uint32_t i = 0; i < s->num_entries; i++) {
		struct source_inode *dir = &s->inodes[s->entries[i].parent];

		copy[dir->first + dir->count++] = s->entries[i];
	}
	memcpy(s->entries, copy, s->num_entries * sizeof(*copy));
}

static void name_directories(struct source *s)
{
	for (uint32_t i = 0; i < s->num_inodes; i++)
		s->inodes[i].name = SOURCE_NONE;
	for (uint32_t i = 0; i < s->num_entries; i++)
		if (S_ISDIR(s->inodes[s->entries[i].inode].mode))
			s->inodes[s->entries[i].inode].name = i;
}

static int order_directories(struct source *s, struct sorter *t, struct btrkit_error *err)
{
	for (uint32_t i = 0; i < s->num_inodes; i++) {
		const struct source_inode *dir = &s->inodes[i];
		uint32_t twice;

		if (!S_ISDIR(dir->mode) || !dir->count)
			continue;
		twice = order_directory(t, dir->first, dir->count);
		if (twice != SOURCE_NONE) {
			name_directories(s);
			return source_fail_name(s, i, s->entries[twice].name, s->entries[twice].len, err, EEXIST,
						"duplicate entry");
		}
	}
	return 0;
}

static int order_entries(struct source *s, struct btrkit_error *err)
{
	struct sorter t = { .s = s };
	struct sort_name *names;
	uint64_t *hashes;
	uint32_t most;
	const bool gathered = count_entries(s, &most);
	int ret;

	t.copy = reallocarray(NULL, gathered ? most : s->num_entries, sizeof(*t.copy));
	names = reallocarray(NULL, most, 2 * sizeof(*names));
	hashes = reallocarray(NULL, most, 2 * sizeof(*hashes));
	if (t.copy && names && hashes) {
		t.names = names;
		t.spare = names + most;
		t.hashes = hashes;
		t.hashes_spare = hashes + most;
		if (!gathered)
			gather(s, t.copy);
		ret = order_directories(s, &t, err);
	} else {
		ret = err_nomem(err);
	}
	free(t.copy);
	free(names);
	free(hashes);
	return ret;
}

/* Returns the next name in depth-first order. @return SOURCE_NONE: that was the last */
static uint32_t next_in_depth(const struct source *s, uint32_t entry)
{
	const struct source_inode *i = &s->inodes[s->entries[entry].inode];
	uint32_t dir;

	if (S_ISDIR(i->mode) && i->count)
		return i->first;
	dir = s->entries[entry].parent;
	while (entry + 1 == s->inodes[dir].first + s->inodes[dir].count) {
		if (!dir)
			return SOURCE_NONE;
		entry = s->inodes[dir].name;
		dir = s->entries[entry].parent;
	}
	return entry + 1;
}

/* Numbers the inodes. A file is numbered at its first name in depth-first order. */
static void number(struct source *s)
{
	uint32_t entry = s->inodes[0].count ? s->inodes[0].first : SOURCE_NONE;

	name_directories(s);
	s->inodes[0].number = 0;
	s->subvolumes[0].num_inodes = 1;
	for (; entry != SOURCE_NONE; entry = next_in_depth(s, entry)) {
		struct source_inode *i = &s->inodes[s->entries[entry].inode];
		struct source_subvolume *subvolume = &s->subvolumes[i->subvolume];

		if (S_ISDIR(i->mode) && subvolume->root == s->entries[entry].inode)
			subvolume->entry = entry;
		else if (!S_ISDIR(i->mode) && i->name != SOURCE_NONE)
			continue;
		i->name = entry;
		i->number = subvolume->num_inodes++;
	}
}

/* Fills in in_order. */
static int list_in_order(struct source *s, struct btrkit_error *err)
{
	uint32_t *starts = reallocarray(NULL, s->num_subvolumes, sizeof(*starts)), sum = 0;

	s->in_order = reallocarray(NULL, s->num_inodes, sizeof(*s->in_order));
	if (!s->in_order || !starts) {
		free(starts);
		return err_nomem(err);
	}
	for (uint32_t i = 0; i < s->num_subvolumes; i++) {
		starts[i] = sum;
		sum += s->subvolumes[i].num_inodes;
	}
	for (uint32_t i = 0; i < s->num_inodes; i++)
		s->in_order[starts[s->inodes[i].subvolume] + s->inodes[i].number] = i;
	free(starts);
	return 0;
}

/*
 * Moves the inodes into the order of in_order, so that a walk accesses memory sequentially. Inodes of an archive stay,
 * because their indices were passed to the sink.
 */
static int move_inodes(struct source *s, struct btrkit_error *err)
{
	uint32_t *to;

	if (source_streams(s))
		return 0;
	to = reallocarray(NULL, s->num_inodes, sizeof(*to));
	if (!to)
		return err_nomem(err);
	for (uint32_t i = 0; i < s->num_inodes; i++)
		to[s->in_order[i]] = i;
	for (uint32_t i = 0; i < s->num_entries; i++) {
		s->entries[i].parent = to[s->entries[i].parent];
		s->entries[i].inode = to[s->entries[i].inode];
	}
	for (uint32_t i = 0; i < s->num_subvolumes; i++)
		s->subvolumes[i].root = to[s->subvolumes[i].root];
	for (uint32_t i = 0; i < s->num_inodes; i++) {
		s->inodes[i].contents = to[s->inodes[i].contents];
		if (s->inodes[i].next_sharing != SOURCE_NONE)
			s->inodes[i].next_sharing = to[s->inodes[i].next_sharing];
	}
	free(to);
	/* Permute in place, cycle by cycle. */
	for (uint32_t start = 0; start < s->num_inodes; start++) {
		const struct source_inode kept = s->inodes[start];
		uint32_t at = start;

		while (s->in_order[at] != start) {
			const uint32_t from = s->in_order[at];

			s->inodes[at] = s->inodes[from];
			s->in_order[at] = at;
			at = from;
		}
		s->inodes[at] = kept;
		s->in_order[at] = at;
	}
	return 0;
}

static bool in_order_before(const struct source *s, uint32_t a, uint32_t b)
{
	const struct source_inode *x = &s->inodes[a], *y = &s->inodes[b];

	return x->subvolume != y->subvolume ? x->subvolume < y->subvolume : x->number < y->number;
}

/* Sorts the lists of inodes that share contents. The inode that received contents from an archive stays first. */
static void order_sharing(struct source *s)
{
	for (uint32_t at = 0; at < s->num_inodes; at++) {
		uint32_t head = at, next = s->inodes[at].next_sharing;

		if (next == SOURCE_NONE || s->inodes[at].contents != at)
			continue;
		s->inodes[at].next_sharing = SOURCE_NONE;
		while (next != SOURCE_NONE) {
			const uint32_t one = next;
			uint32_t *link = &s->inodes[head].next_sharing;

			next = s->inodes[one].next_sharing;
			if (!source_streams(s) && in_order_before(s, one, head)) {
				s->inodes[one].next_sharing = head;
				head = one;
				continue;
			}
			while (*link != SOURCE_NONE && in_order_before(s, *link, one))
				link = &s->inodes[*link].next_sharing;
			s->inodes[one].next_sharing = *link;
			*link = one;
		}
		for (uint32_t i = head; i != SOURCE_NONE; i = s->inodes[i].next_sharing) {
			s->inodes[i].xattrs = s->inodes[at].xattrs;
			s->inodes[i].contents = head;
		}
	}
}

/* A file with several names inherits flags from the directory of its first name. */
static void inherit_by_first_name(struct source *s)
{
	if (!s->state->opts->num_inode_flags || source_streams(s))
		return;
	for (uint32_t at = 0; at < s->num_inodes; at++) {
		struct source_inode *i = &s->inodes[at];

		if (!S_ISDIR(i->mode) && i->nlink > 1)
			i->flags = source_flags_inherited(s, s->entries[i->name].parent, i->subvolume, i->mode) |
				   source_flags_own(i->bits, i->mode);
	}
}

int source_finish(struct source *s, struct btrkit_error *err)
{
	int ret = source_xattrs_flush(s, err);

	if (!ret)
		ret = source_nodes_met(s, err);
	/* Without any entry, it may still say which layer closed the top directory. */
	s->inodes[0].count = 0;
	if (!ret && s->num_entries)
		ret = order_entries(s, err);
	if (ret < 0)
		return ret;
	free(s->state->index);
	s->state->index = NULL;
	s->state->index_size = 0;
	number(s);
	ret = list_in_order(s, err);
	if (ret < 0)
		return ret;
	order_sharing(s);
	inherit_by_first_name(s);
	ret = move_inodes(s, err);
	if (ret < 0)
		return ret;
	s->state->finished = true;
	return 0;
}

uint32_t source_lookup(const struct source *s, uint32_t dir, const char *name, size_t len)
{
	const struct source_inode *d = &s->inodes[dir];
	const struct source_entry wanted = { .name = name, .len = (uint8_t)len };
	uint32_t low = 0, high = S_ISDIR(d->mode) && len <= SOURCE_NAME_MAX ? d->count : 0;

	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;
		const int c = compare_names(&s->entries[d->first + middle], &wanted);

		if (!c)
			return d->first + middle;
		if (c < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return SOURCE_NONE;
}
