// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Leaves of a transaction that are unlikely to change are removed from memory before the commit. (Items inserted in key
 * order fill one leaf after another.) The struct of the block remains in the table of private blocks, without data, so
 * everything that depends on addresses, owners and eras works as before.
 */
#include <errno.h>
#include <stdlib.h>

#include "lib/base/err.h"
#include "lib/tree/edit_path.h"

/* A leaf is full if less than 1/FREE_PART of it is free: other items between its own would hardly fit. */
#define FREE_PART 8u

void overlay_add_young(struct overlay *o, struct node *n)
{
	DL_APPEND(o->young, n);
	n->young = true;
	o->num_young++;
}

void overlay_grown_up(struct overlay *o, struct node *n)
{
	if (!n->young)
		return;
	DL_DELETE(o->young, n);
	n->young = false;
	o->num_young--;
}

size_t overlay_take_full(struct overlay *o, size_t keep, struct sort_entry *ret, size_t n)
{
	size_t count = 0;

	while (count < n && o->num_young > keep) {
		struct node *first = o->young;

		overlay_grown_up(o, first);
		if (leaf_free(first) < first->size / FREE_PART)
			ret[count++] = (struct sort_entry){ 0, first->bytenr, first };
	}
	return count;
}

static struct node *without_bytes(const struct node *n)
{
	struct node *stub = malloc(sizeof(*stub));

	if (!stub)
		return NULL;
	*stub = *n;
	stub->place = NODE_AWAY;
	stub->data = NULL;
	return stub;
}

/* If there is no memory for the stub, the leaf stays. */
static void put_away(struct overlay *o, struct node *n)
{
	struct node *stub = without_bytes(n);

	if (!stub)
		return;
	HASH_ADD(hh, o->nodes, bytenr, sizeof(stub->bytenr), stub);
	if (!stub->hh.tbl) {
		free(stub);
		return;
	}
	HASH_DEL(o->nodes, n);
	node_free(&o->fs->slabs, n);
	o->num_away++;
}

void overlay_put_away(struct overlay *o, const struct sort_entry *leaves, size_t n)
{
	for (struct edit_tree *t = o->trees; t; t = t->next)
		cursor_release(&t->c);
	for (size_t i = 0; i < n; i++)
		put_away(o, leaves[i].what);
}

int overlay_bring_back(struct overlay *o, struct node *n, struct btrkit_error *err)
{
	const struct node_ref ref = { n->bytenr, n->generation, n->owner, n->level, NULL };
	uint8_t *data;
	int ret = 0;

	if (__atomic_load_n(&n->data, __ATOMIC_ACQUIRE))
		return 0;
	pthread_mutex_lock(&o->back);
	if (!n->data) {
		data = malloc(n->size);
		ret = data ? node_read_uncached(o->fs, &ref, data, err) : err_nomem(err);
		if (ret) {
			free(data);
		} else {
			o->num_away--;
			__atomic_store_n(&n->data, data, __ATOMIC_RELEASE);
		}
	}
	pthread_mutex_unlock(&o->back);
	/* What earlier operations have changed is lost, and must not be committed. */
	return ret == -ENOMEM ? ret : failure_note_any(o->failure, ret, err);
}

size_t overlay_in_memory(const struct overlay *o)
{
	return o->num_nodes - o->num_away;
}
