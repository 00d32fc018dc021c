// SPDX-License-Identifier: LGPL-2.1-or-later
/* Verification of a tree block, before its items are used. */
#include "lib/tree/node.h"

#include <inttypes.h>
#include <string.h>

#include "lib/base/err.h"

/* As in Linux: blocks of file trees may belong to any file tree (snapshots share them), others only to their own. */
static bool owner_allowed(uint64_t root, uint64_t owner)
{
	if (!root || root == OID_TREE_LOG || root == OID_TREE_RELOC)
		return true;
	if (oid_is_file_tree(root))
		return oid_is_file_tree(owner);
	return root == owner;
}

static int verify_header(const struct node_ref *ref, const void *data, struct btrkit_error *err)
{
	const struct disk_header *h = data;
	uint64_t generation = le64_get(h->generation), owner = le64_get(h->owner);

	if (ref->level < LEVELS_MAX && h->level != ref->level)
		return err_because(err, BTRKIT_CAUSE_LEVEL,
				   err_corrupt(err, "level", "tree block has level %u, its parent says %u", h->level,
					       ref->level));
	if (ref->generation != NODE_ANY && generation != ref->generation)
		return err_because(err, BTRKIT_CAUSE_GENERATION,
				   err_corrupt(err, "generation",
					       "tree block has generation %" PRIu64 ", its parent says %" PRIu64,
					       generation, ref->generation));
	if (!owner_allowed(ref->owner, owner))
		return err_because(err, BTRKIT_CAUSE_OWNER,
				   err_corrupt(err, "owner",
					       "tree block belongs to tree %" PRIu64
					       ", it was reached from tree %" PRIu64,
					       owner, ref->owner));
	return 0;
}

static int verify_first_key(const struct node_ref *ref, const void *data, struct btrkit_error *err)
{
	const struct disk_header *h = data;
	struct btrkit_key key;

	if (!ref->first_key)
		return 0;
	if (!le32_get(h->nritems))
		return err_corrupt(err, "nritems", "tree block is empty, but not the root of a tree");
	/* Items and pointers both begin with a key. */
	key = key_get((const struct disk_key *)(h + 1));
	if (!key_cmp(&key, ref->first_key))
		return 0;
	err_corrupt(err, "key",
		    "first key of tree block is (%" PRIu64 " %u %" PRIu64 "), its parent says (%" PRIu64
		    " %u %" PRIu64 ")",
		    key.objectid, key.type, key.offset, ref->first_key->objectid, ref->first_key->type,
		    ref->first_key->offset);
	return err_because(err, BTRKIT_CAUSE_FIRST_KEY, -EUCLEAN);
}

int node_verify_ref(const struct node_ref *ref, const void *data, struct btrkit_error *err)
{
	int ret = verify_header(ref, data, err);

	return ret ? ret : verify_first_key(ref, data, err);
}

static int verify_leaf(const struct node_rules *rules, const uint8_t *data, uint32_t nritems, struct btrkit_error *err)
{
	const struct disk_item *items = (const struct disk_item *)(data + sizeof(struct disk_header));
	uint32_t room = leaf_room(rules->nodesize), end = room;
	struct btrkit_key last = { 0 };

	if (nritems > room / sizeof(struct disk_item))
		return err_corrupt(err, "nritems", "leaf has %" PRIu32 " items, more than it can hold", nritems);
	for (uint32_t i = 0; i < nritems; i++) {
		struct btrkit_key key = key_get(&items[i].key);
		uint32_t offset = le32_get(items[i].offset), size = le32_get(items[i].size);
		int ret = 0;

		/* Linux takes a key of zeros for one out of order, too. */
		if (key_cmp(&last, &key) >= 0)
			ret = err_corrupt(err, "key", "keys are out of order");
		/* Items are contiguous from the end of the leaf, as Linux requires. */
		else if (size > end || offset != end - size)
			ret = err_corrupt(err, "offset",
					  "item at %" PRIu32 " with %" PRIu32 " bytes should end at %" PRIu32, offset,
					  size, end);
		else if (offset < (i + 1) * sizeof(struct disk_item))
			ret = err_corrupt(err, "offset", "item at %" PRIu32 " overlaps the item headers", offset);
		if (ret) {
			err_at_item(err, i, &key);
			return ret;
		}
		last = key;
		end = offset;
	}
	return 0;
}

static int verify_inner(const struct node_rules *rules, const uint8_t *data, uint32_t nritems, struct btrkit_error *err)
{
	const struct disk_key_ptr *ptrs = (const struct disk_key_ptr *)(data + sizeof(struct disk_header));
	uint32_t room = leaf_room(rules->nodesize);
	struct btrkit_key last = { 0 };

	if (!nritems || nritems > room / sizeof(struct disk_key_ptr))
		return err_corrupt(err, "nritems", "node has %" PRIu32 " children", nritems);
	for (uint32_t i = 0; i < nritems; i++) {
		struct btrkit_key key = key_get(&ptrs[i].key);
		uint64_t child = le64_get(ptrs[i].blockptr);
		int ret = 0;

		if (i && key_cmp(&last, &key) >= 0)
			ret = err_corrupt(err, "key", "keys are out of order");
		else if (!child || child & (rules->sectorsize - 1))
			ret = err_corrupt(err, "blockptr", "invalid child address %" PRIu64, child);
		if (ret) {
			err_at_item(err, i, &key);
			return ret;
		}
		last = key;
	}
	return 0;
}

static bool fsid_allowed(const struct node_rules *rules, const uint8_t *fsid)
{
	if (!memcmp(fsid, rules->fsid, sizeof(rules->fsid)))
		return true;
	if (rules->also && !memcmp(fsid, rules->also->fsid, sizeof(rules->also->fsid)))
		return true;
	for (size_t i = 0; i < rules->num_seeds; i++)
		if (!memcmp(fsid, rules->seeds[i], sizeof(rules->seeds[i])))
			return true;
	return false;
}

static bool also_matches(const struct node_rules *rules, const struct disk_header *h)
{
	uint8_t sum[CSUM_SIZE_MAX];

	if (!rules)
		return false;
	rules->csum->compute(h->fsid, rules->nodesize - sizeof(h->csum), sum);
	return !memcmp(sum, h->csum, rules->csum->size);
}

int node_verify(const struct node_rules *rules, const struct node_ref *ref, const void *data, struct btrkit_error *err)
{
	const struct disk_header *h = data;
	uint8_t sum[CSUM_SIZE_MAX];
	uint32_t nritems;
	int ret;

	rules->csum->compute(h->fsid, rules->nodesize - sizeof(h->csum), sum);
	if (memcmp(sum, h->csum, rules->csum->size) && !also_matches(rules->also, h))
		return err_because(err, BTRKIT_CAUSE_CSUM, err_corrupt(err, "csum", "tree block checksum mismatch"));
	if (!fsid_allowed(rules, h->fsid))
		return err_because(err, BTRKIT_CAUSE_FSID,
				   err_corrupt(err, "fsid", "tree block belongs to another filesystem"));
	if (le64_get(h->bytenr) != ref->bytenr)
		return err_because(err, BTRKIT_CAUSE_BYTENR,
				   err_corrupt(err, "bytenr", "tree block says its address is %" PRIu64,
					       le64_get(h->bytenr)));
	if (h->level >= LEVELS_MAX)
		return err_because(err, BTRKIT_CAUSE_LEVEL,
				   err_corrupt(err, "level", "tree block has level %u", h->level));
	/* Check against the parent first: with a wrong level, the contents would be misinterpreted. */
	ret = verify_header(ref, data, err);
	if (ret)
		return ret;
	nritems = le32_get(h->nritems);
	if (!nritems && !le64_get(h->owner) && !(le64_get(h->flags) & HEADER_FLAG_RELOC))
		return err_corrupt(err, "owner", "empty tree block is of no tree");
	ret = h->level ? verify_inner(rules, data, nritems, err) : verify_leaf(rules, data, nritems, err);
	return ret ? ret : verify_first_key(ref, data, err);
}

uint32_t node_lower_bound(const struct node *n, const struct btrkit_key *key, bool *exact)
{
	size_t stride = n->level ? sizeof(struct disk_key_ptr) : sizeof(struct disk_item);
	const uint8_t *base = n->data + sizeof(struct disk_header);
	uint32_t low = 0, high = n->nritems;
	bool found = false;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;
		struct btrkit_key at = key_get((const struct disk_key *)(base + mid * stride));
		int cmp = key_cmp(&at, key);

		if (!cmp)
			found = true;
		if (cmp < 0)
			low = mid + 1;
		else
			high = mid;
	}
	if (exact)
		*exact = found;
	return low;
}
