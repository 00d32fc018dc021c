// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reads the quota tree, and checks its counters if Linux relies on them. */
#include "lib/check/codes.h"
#include "lib/check/findings.h"
#include "lib/check/quota/qgroup_count.h"
#include "lib/check/quota/qgroups.h"
#include "lib/check/quota/quota.h"
#include "lib/check/quota/squota.h"
#include "lib/check/state.h"
#include "lib/check/trees/items.h"
#include "lib/check/trees/roots.h"
#include "lib/check/trees/table.h"
#include "lib/format/feature_bits.h"

#include <inttypes.h>
#include <stdlib.h>

static void report_qgroup(struct check_quota *q, enum check_code code, const struct btrkit_key *key, const char *field,
			  const char *message)
{
	check_report_at(q->c, code, &(struct check_location){ OID_QUOTA_TREE, 0, key, field }, "%s", message);
}

/* Linux reads counters and limits from items with any objectid, but only updates those with objectid 0. */
static bool is_elsewhere(struct check_quota *q, const struct item *item)
{
	if ((item->key.type != KEY_QGROUP_INFO && item->key.type != KEY_QGROUP_LIMIT) || !item->key.objectid)
		return false;
	report_qgroup(q, CHECK_QGROUP_CONFIG, &item->key, "key.objectid",
		      "qgroup item has a non-zero objectid, so Linux does not update it");
	return true;
}

/* Items are sorted by type, then by qgroup: all INFO items come before all LIMIT items. */
static void take(void *ctx, const struct item *item)
{
	struct check_quota *q = ctx;
	struct check_qgroup *g;
	struct check_relation *r;

	if (item_validate(&q->c->items, item, NULL) || is_elsewhere(q, item))
		return;
	switch (item->key.type) {
	case KEY_QGROUP_STATUS:
		q->has_status = !qgroup_status_decode(item, &q->status, NULL);
		if (item->key.objectid || item->key.offset)
			report_qgroup(q, CHECK_QGROUP_STATUS, &item->key, "key.offset",
				      "invalid key of the quota status item, expected objectid 0 and offset 0");
		break;
	case KEY_QGROUP_INFO:
		g = check_list_add(q->c, &q->groups, sizeof(*g));
		if (g) {
			*g = (struct check_qgroup){ .id = item->key.offset };
			g->has_info = !qgroup_info_decode(item, &g->said, NULL);
		}
		break;
	case KEY_QGROUP_LIMIT:
		g = check_qgroup_find(q, item->key.offset);
		if (g)
			g->has_limit = true;
		else
			report_qgroup(q, CHECK_QGROUP_CONFIG, &item->key, "key.offset",
				      "limit item of a qgroup that does not exist");
		break;
	case KEY_QGROUP_RELATION:
		r = check_list_add(q->c, &q->relations, sizeof(*r));
		if (r)
			*r = (struct check_relation){ item->key.objectid, item->key.offset };
		break;
	default:
		break;
	}
}

static bool has_relation(const struct check_quota *q, uint64_t a, uint64_t b)
{
	const struct check_relation *at = q->relations.at;
	size_t low = 0, high = q->relations.n;

	/* The list is in key order. */
	while (low < high) {
		const size_t mid = low + (high - low) / 2;

		if (at[mid].member < a || (at[mid].member == a && at[mid].parent < b))
			low = mid + 1;
		else
			high = mid;
	}
	return low < q->relations.n && at[low].member == a && at[low].parent == b;
}

static void check_relations(struct check_quota *q)
{
	const struct check_relation *at = q->relations.at;

	for (size_t i = 0; i < q->relations.n; i++) {
		const struct btrkit_key key = KEY(at[i].member, KEY_QGROUP_RELATION, at[i].parent);

		if (!has_relation(q, at[i].parent, at[i].member))
			report_qgroup(q, CHECK_QGROUP_RELATION, &key, NULL,
				      "qgroup relation is recorded in one direction only");
		if (!check_qgroup_find(q, at[i].member) || !check_qgroup_find(q, at[i].parent))
			report_qgroup(q, CHECK_QGROUP_RELATION, &key, NULL,
				      "relation with a qgroup that does not exist");
		else if (qgroup_level(at[i].member) == qgroup_level(at[i].parent))
			report_qgroup(q, CHECK_QGROUP_RELATION, &key, NULL,
				      "relation between qgroups of the same level");
	}
}

static void check_status(struct check_quota *q)
{
	const struct qgroup_status *s = &q->status;
	const struct btrkit_key key = KEY(0, KEY_QGROUP_STATUS, 0);

	if (s->version != QGROUP_STATUS_VERSION)
		report_qgroup(q, CHECK_QGROUP_CONFIG, &key, "version",
			      "unknown quota version, so Linux disables quotas");
	if (s->flags & ~(uint64_t)QGROUP_STATUS_FLAGS)
		report_qgroup(q, CHECK_QGROUP_CONFIG, &key, "flags", "unknown quota status flags");
	if (s->flags & QGROUP_STATUS_SIMPLE_MODE && !(q->c->fs->super.incompat & INCOMPAT_SIMPLE_QUOTA))
		report_qgroup(q, CHECK_QGROUP_CONFIG, &key, "flags",
			      "simple quotas are enabled, but simple-quota is not set");
	if (s->flags & QGROUP_STATUS_RESCAN && (!(s->flags & QGROUP_STATUS_ON) || s->flags & QGROUP_STATUS_SIMPLE_MODE))
		report_qgroup(q, CHECK_QGROUP_STATUS, &key, "flags",
			      "rescan flag is set while quotas are disabled or simple, so Linux waits for it forever");
	else if (s->flags & QGROUP_STATUS_ON &&
		 !(s->flags & (QGROUP_STATUS_SIMPLE_MODE | QGROUP_STATUS_INCONSISTENT)) &&
		 s->generation != q->c->fs->super.generation)
		report_qgroup(q, CHECK_QGROUP_STALE, &key, "generation",
			      "qgroup counters are from another generation, so Linux considers them inconsistent");
}

static void check_config(struct check_quota *q)
{
	const struct check_root *roots = q->c->roots.at;
	const struct check_qgroup *groups = q->groups.at;

	if (!q->has_status) {
		report_qgroup(q, CHECK_QGROUP_STATUS, NULL, NULL,
			      "quota tree has no status item, so Linux turns read-only");
		return;
	}
	check_status(q);
	check_relations(q);
	for (size_t i = 0; i < q->groups.n; i++)
		if (!groups[i].has_limit)
			report_qgroup(q, CHECK_QGROUP_CONFIG, &KEY(0, KEY_QGROUP_INFO, groups[i].id), NULL,
				      "qgroup has no limit item");
	for (size_t i = CHECK_ROOTS_FIRST; i < q->c->roots.n; i++)
		if (oid_is_file_tree(roots[i].root.id) && roots[i].item.refs && !check_qgroup_find(q, roots[i].root.id))
			report_qgroup(q, CHECK_QGROUP_MISSING, &KEY(0, KEY_QGROUP_INFO, roots[i].root.id), NULL,
				      "subvolume has no qgroup");
}

static void report_counter(struct check_quota *q, const struct check_qgroup *g, const char *field, uint64_t said,
			   uint64_t counted)
{
	struct btrkit_error what = BTRKIT_ERROR_INIT;

	if (said == counted)
		return;
	err_corrupt(&what, field, "qgroup %" PRIu64 "/%" PRIu64 " records %" PRIu64 " bytes, should be %" PRIu64,
		    qgroup_level(g->id), g->id & ((UINT64_C(1) << 48) - 1), said, counted);
	err_at_tree(&what, OID_QUOTA_TREE);
	err_at_key(&what, &KEY(0, KEY_QGROUP_INFO, g->id));
	check_report_values(q->c, CHECK_QGROUP_COUNT, &what, said, counted);
}

static void check_counts(struct check_quota *q)
{
	const struct check_qgroup *g = q->groups.at;
	const bool simple = q->status.flags & QGROUP_STATUS_SIMPLE_MODE;
	const int ret = simple ? check_squota_count(q) : check_qgroup_count(q);

	for (size_t i = 0; !ret && i < q->groups.n; i++) {
		if (!g[i].has_info || g[i].unsure)
			continue;
		report_counter(q, &g[i], "rfer", g[i].said.rfer, g[i].rfer);
		report_counter(q, &g[i], "excl", g[i].said.excl, g[i].excl);
		/* Simple quotas do not maintain these. */
		if (simple)
			continue;
		report_counter(q, &g[i], "rfer_cmpr", g[i].said.rfer_cmpr, g[i].rfer);
		report_counter(q, &g[i], "excl_cmpr", g[i].said.excl_cmpr, g[i].excl);
	}
}

/* Whether Linux relies on the counters instead of rescanning. */
static bool trusted(const struct check_quota *q)
{
	const uint64_t flags = q->status.flags;

	if (!(flags & QGROUP_STATUS_ON) || flags & (QGROUP_STATUS_RESCAN | QGROUP_STATUS_INCONSISTENT))
		return false;
	return flags & QGROUP_STATUS_SIMPLE_MODE || q->status.generation == q->c->fs->super.generation;
}

/* Must be the last pass: counting needs its own tables, so those of the check are released first. */
int check_qgroups(struct check *c)
{
	const struct check_root *root = check_find_root(c, OID_QUOTA_TREE);
	struct check_quota q = { .c = c };
	bool lost = false;

	if (!root || c->blocks_lost || c->extents_lost)
		return 0;
	if (!check_each_item(c, &root->root, &lost, take, &q) && !lost) {
		check_config(&q);
		if (q.has_status && trusted(&q)) {
			check_tables_release(&c->tables);
			check_counts(&q);
		}
	}
	free(q.groups.at);
	free(q.relations.at);
	return c->failed;
}
