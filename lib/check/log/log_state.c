// SPDX-License-Identifier: LGPL-2.1-or-later
/* What all files that check logs need: reports, and whether space is used. */
#include "lib/check/log/log_state.h"

#include "lib/check/codes.h"
#include "lib/check/findings.h"
#include "lib/check/trees/table.h"

void log_report(struct log *l, enum check_code code, uint64_t logical, const struct btrkit_key *key, const char *field,
		const char *message)
{
	check_report_at(l->c, code, &(struct check_location){ OID_TREE_LOG, logical, key, field }, "%s", message);
}

bool log_is_used(struct log *l, uint64_t start, uint64_t length)
{
	const struct check_tables *t = &l->c->tables;
	size_t i;

	if (check_find_extent(t, start, l->c->items.sectorsize, &l->hints.extent))
		return true;
	i = check_table_lower_bound(&t->extents, start, NULL);
	if (i < t->extents.n && check_extent_start(check_extent_at(t, i)) - start < length)
		return true;
	i = check_table_lower_bound(&t->blocks, start, &l->block_hint);
	if (i < t->blocks.n && check_block_bytenr(check_block_at(t, i)) - start < length)
		return true;
	return i && start - check_block_bytenr(check_block_at(t, i - 1)) < l->c->items.nodesize;
}
