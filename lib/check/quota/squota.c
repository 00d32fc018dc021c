// SPDX-License-Identifier: LGPL-2.1-or-later
/* Simple quotas: an extent that was created after quotas were enabled counts for its creator until it is freed. */
#include <stdlib.h>

#include "lib/check/findings.h"
#include "lib/check/quota/quota.h"
#include "lib/check/quota/squota.h"
#include "lib/check/state.h"
#include "lib/check/trees/items.h"
#include "lib/check/trees/roots.h"
#include "lib/io/buffer.h"

struct squota {
	struct check_quota *q;
	uint8_t *buf;
};

static void add(struct squota *s, uint64_t root, uint64_t bytes)
{
	struct check_qgroup *g = check_qgroup_find(s->q, root);

	if (!g)
		return;
	g->rfer += bytes;
	g->excl += bytes;
}

/* The tree that a block was created for, no matter which trees refer to it now. @return 0: unknown */
static uint64_t owner_of(struct squota *s, const struct extent_item *ei)
{
	const struct node_ref ref = { ei->bytenr, NODE_ANY, 0, LEVELS_MAX, NULL };

	if (!check_reread(s->q->c, &ref, s->buf))
		return 0;
	return le64_get(((const struct disk_header *)s->buf)->owner);
}

static void take(void *ctx, const struct item *item)
{
	struct squota *s = ctx;
	struct extent_item ei;
	struct extent_ref ref;

	if ((item->key.type != KEY_EXTENT_ITEM && item->key.type != KEY_METADATA_ITEM) ||
	    extent_item_decode(&s->q->c->items, item, &ei, NULL) || ei.generation < s->q->status.enable_gen)
		return;
	if (extent_item_next_ref(&ei, &ref, NULL))
		ref.type = 0;
	if (ei.flags & EXTENT_FLAG_DATA) {
		if (ref.type == KEY_EXTENT_OWNER_REF)
			add(s, ref.root, ei.num_bytes);
	} else {
		add(s, owner_of(s, &ei), ei.num_bytes);
	}
}

/*
 * Qgroups are sorted by level, and relations by member, so the counters of a qgroup are final before they are added to
 * its parents. If a qgroup belongs to another one in two ways, new space is counted there once, but space that existed
 * when the relations were created is counted twice.
 */
static void add_members(struct check_quota *q)
{
	const struct check_relation *r = q->relations.at;

	for (size_t i = 0, end; i < q->relations.n; i = end) {
		const struct check_qgroup *m = check_qgroup_find(q, r[i].member);
		size_t parents = 0;

		for (end = i; end < q->relations.n && r[end].member == r[i].member; end++)
			parents += qgroup_level(r[end].parent) > qgroup_level(r[end].member);
		for (size_t k = i; m && k < end; k++) {
			struct check_qgroup *p = check_qgroup_find(q, r[k].parent);

			if (!p || qgroup_level(p->id) <= qgroup_level(m->id))
				continue;
			p->rfer += m->rfer;
			p->excl += m->excl;
			p->unsure |= m->unsure || m->forked;
			p->forked |= parents > 1;
		}
	}
}

int check_squota_count(struct check_quota *q)
{
	const struct check_root *root = check_find_root(q->c, OID_EXTENT_TREE);
	struct squota s = { .q = q, .buf = io_buffer(q->c->items.nodesize) };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	bool lost = false;
	int ret;

	if (!s.buf)
		return check_fail(q->c, err_nomem(&err), &err);
	ret = check_each_item(q->c, &root->root, &lost, take, &s);
	free(s.buf);
	add_members(q);
	return ret ? ret : lost;
}
