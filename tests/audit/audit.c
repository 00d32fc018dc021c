// SPDX-License-Identifier: LGPL-2.1-or-later
#include "audit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/tree/cursor.h"

struct asked {
	unsigned known;
	struct btrkit_error *err;
	bool found;
};

static bool is_known(unsigned known, const struct btrkit_check_code *code)
{
	static const struct {
		unsigned known;
		const char *code;
	} codes[] = {
		{ AUDIT_ITEMS, "BTR-ITEM-UNKNOWN" },   { AUDIT_MIRRORS, "BTR-SUPER-OLD" },
		{ AUDIT_SUPERS, "BTR-SUPER-PRIMARY" }, { AUDIT_SUPERS, "BTR-SUPER-STALE" },
		{ AUDIT_SUPERS, "BTR-SUPER-COPY" },    { AUDIT_SUPERS, "BTR-SUPER-NEW" },
		{ AUDIT_SUPERS, "BTR-SUPER-OLD" },     { AUDIT_MISSING, "BTR-DEVICE-MISSING" },
	};

	if (known & AUDIT_LEFTOVERS && code->severity == BTRKIT_CHECK_LEFTOVER)
		return true;
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (known & codes[i].known && !strcmp(code->name, codes[i].code))
			return true;
	return false;
}

static int take(void *ctx, const struct btrkit_finding *f)
{
	struct asked *asked = ctx;
	struct btrkit_error *err = asked->err;

	if (is_known(asked->known, f->code))
		return 0;
	asked->found = true;
	if (!err)
		return -EUCLEAN;
	*err = f->what;
	snprintf(err->message, sizeof(err->message), "%s (%s): %.160s%s%s", f->code->name,
		 btrkit_check_severity_name(f->code->severity), f->what.message, f->path ? " in " : "",
		 f->path ? f->path : "");
	return -EUCLEAN;
}

int audit(struct btrkit_fs *fs, unsigned known, struct btrkit_check_result *ret, struct btrkit_error *err)
{
	struct btrkit_check_options opts = BTRKIT_CHECK_OPTIONS_INIT;
	struct btrkit_error failure = BTRKIT_ERROR_INIT;
	struct asked asked = { known, err, false };
	int r;

	/* Devices of tests have no locks, so one thread only. */
	opts.threads = 1;
	opts.repeats = 1;
	opts.finding = take;
	opts.ctx = &asked;
	r = btrkit_check(fs, &opts, ret, &failure);
	if (r && !asked.found && err)
		*err = failure;
	return r;
}

/* The recursion is bounded, since levels decrease from parent to child. */
static int count_blocks(struct btrkit_fs *fs, const struct node_ref *ref, uint64_t *ret, struct btrkit_error *err)
{
	struct node *n;
	int r;

	++*ret;
	if (!ref->level)
		return 0;
	r = node_get(fs, ref, &n, err);
	if (r)
		return r;
	for (uint32_t i = 0; !r && i < n->nritems; i++) {
		struct btrkit_key key;
		const struct node_ref child = node_child(n, i, ref->owner, &key);

		r = count_blocks(fs, &child, ret, err);
	}
	node_put(fs, n);
	return r;
}

int audit_root_bytes(struct btrkit_fs *fs, uint64_t *ret, struct btrkit_error *err)
{
	struct cursor c;
	int r;

	*ret = 0;
	cursor_init(&c, fs, &fs->root_tree);
	for (r = cursor_seek(&c, &KEY(0, 0, 0), err); !r; r = cursor_next(&c, err)) {
		uint64_t blocks = 0;
		struct root_item item;
		struct tree_root root;

		if (c.item.key.type != KEY_ROOT_ITEM)
			continue;
		r = root_item_decode(&fs->items, &c.item, &item, err);
		if (r)
			break;
		if (!item.refs && item.drop_progress.objectid)
			continue;
		root = tree_root_of(&c.item.key, &item);
		r = count_blocks(fs, &(struct node_ref){ root.bytenr, root.generation, root.id, root.level, NULL },
				 &blocks, err);
		if (r)
			break;
		*ret += item.bytes_used != blocks * fs->geometry.nodesize;
	}
	cursor_release(&c);
	return r < 0 ? r : 0;
}

int audit_own(struct btrkit_fs *fs, unsigned known, struct btrkit_error *err)
{
	uint64_t inexact;
	int ret = audit(fs, known, NULL, err);

	if (!ret)
		ret = audit_backups(fs, err);
	if (!ret)
		ret = audit_root_bytes(fs, &inexact, err);
	if (!ret && inexact)
		ret = err_corrupt(err, "bytes_used", "%" PRIu64 " root items count their blocks wrong", inexact);
	return ret;
}
