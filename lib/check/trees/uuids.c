// SPDX-License-Identifier: LGPL-2.1-or-later
/* Checks the UUID tree, which maps UUIDs of subvolumes to their ids. Sends and receive use it. */
#include <inttypes.h>
#include <string.h>

#include "lib/check/findings.h"
#include "lib/check/state.h"
#include "lib/check/trees/items.h"
#include "lib/check/trees/roots.h"
#include "lib/check/trees/uuids.h"

static struct btrkit_key key_of(const uint8_t uuid[UUID_SIZE], uint8_t type)
{
	le64 halves[2];

	memcpy(halves, uuid, sizeof(halves));
	return KEY(le64_get(halves[0]), type, le64_get(halves[1]));
}

static bool lists(const struct item *item, uint64_t id)
{
	for (uint32_t i = 0; i < item->size / sizeof(le64); i++)
		if (le64_get(((const le64 *)item->data)[i]) == id)
			return true;
	return false;
}

/*
 * An item lists as many of the subvolumes received from the same source as fit, in Linux too; lookups use the first.
 */
static bool leads_to_same(struct check *c, const struct item *item, const uint8_t uuid[UUID_SIZE])
{
	for (uint32_t i = 0; i < item->size / sizeof(le64); i++) {
		const struct check_root *root = check_find_root(c, le64_get(((const le64 *)item->data)[i]));

		if (root && !memcmp(root->item.received_uuid, uuid, UUID_SIZE))
			return true;
	}
	return false;
}

static void verify_root(struct check *c, struct cursor *cur, const struct check_root *root,
			const uint8_t uuid[UUID_SIZE], uint8_t type)
{
	static const uint8_t none[UUID_SIZE];
	const struct btrkit_key key = key_of(uuid, type);
	int ret;

	if (!memcmp(uuid, none, sizeof(none)))
		return;
	ret = check_find(c, cur, &key);
	if (!ret && !lists(&cur->item, root->root.id))
		ret = type != KEY_UUID_RECEIVED_SUBVOL || !leads_to_same(c, &cur->item, uuid);
	if (ret > 0)
		check_report_at(c, CHECK_UUID_MISSING, &(struct check_location){ .tree = OID_UUID_TREE, .key = &key },
				"UUID tree has no entry for subvolume %" PRIu64, root->root.id);
}

/* Checks the target of an entry. */
static void check_entry(void *ctx, const struct item *item)
{
	struct check *c = ctx;
	const bool received = item->key.type == KEY_UUID_RECEIVED_SUBVOL;

	if (!received && item->key.type != KEY_UUID_SUBVOL)
		return;
	for (uint32_t i = 0; i < item->size / sizeof(le64); i++) {
		const uint64_t id = le64_get(((const le64 *)item->data)[i]);
		const struct check_root *root = check_find_root(c, id);
		struct btrkit_key key = { 0 };

		if (root)
			key = key_of(received ? root->item.received_uuid : root->item.uuid, item->key.type);
		if (!root || key_cmp(&key, &item->key))
			check_report_at(c, CHECK_UUID_STALE,
					&(struct check_location){ .tree = OID_UUID_TREE, .key = &item->key },
					"UUID tree entry does not match subvolume %" PRIu64, id);
	}
}

static void verify_roots(struct check *c, struct cursor *cur)
{
	const struct check_root *roots = c->roots.at;

	for (size_t i = CHECK_ROOTS_FIRST; i < c->roots.n && !check_failed(c); i++) {
		if (!oid_is_file_tree(roots[i].root.id) || !roots[i].item.refs)
			continue;
		verify_root(c, cur, &roots[i], roots[i].item.uuid, KEY_UUID_SUBVOL);
		verify_root(c, cur, &roots[i], roots[i].item.received_uuid, KEY_UUID_RECEIVED_SUBVOL);
	}
}

int check_uuids(struct check *c)
{
	const struct check_root *root = check_find_root(c, OID_UUID_TREE);
	bool lost = false; /* some of the tree could not be read */
	struct cursor cur;

	/* If the generations differ, the filesystem was written by other software; Linux rescans the tree at mount. */
	if (!root || c->fs->super.uuid_tree_generation != c->fs->super.generation || c->blocks_lost)
		return 0;
	if (check_each_item(c, &root->root, &lost, check_entry, c))
		return c->failed;
	cursor_init(&cur, c->fs, &root->root);
	verify_roots(c, &cur);
	cursor_release(&cur);
	return c->failed;
}
