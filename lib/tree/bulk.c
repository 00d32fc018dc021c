// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/tree/bulk.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"

struct open_block {
	uint8_t *block; /* NULL: the builder only counts */
	uint32_t nritems;
	uint32_t end; /* in leaves: end of the next item's data, relative to the end of the header */
	struct btrkit_key first;
	uint64_t sealed; /* number of finished blocks of this level */
};

struct bulk {
	const struct bulk_config *config;
	uint32_t room; /* in a block, after its header */
	struct open_block levels[LEVELS_MAX];
	struct btrkit_key last;
	bool any;
	uint64_t root_bytenr;
	unsigned root_level;
};

int bulk_create(const struct bulk_config *config, struct bulk **ret, struct btrkit_error *err)
{
	struct bulk *b = calloc(1, sizeof(*b));

	if (!b)
		return err_nomem(err);
	b->config = config;
	b->room = leaf_room(config->rules->nodesize);
	b->levels[0].end = b->room;
	*ret = b;
	return 0;
}

struct bulk *bulk_destroy(struct bulk *b)
{
	if (!b)
		return NULL;
	for (unsigned level = 0; level < LEVELS_MAX; level++)
		free(b->levels[level].block);
	free(b);
	return NULL;
}

bool bulk_only_counts(const struct bulk *b)
{
	return !b->config->write;
}

uint64_t bulk_blocks(const struct bulk *b, unsigned level)
{
	return b->levels[level].sealed;
}

/* Makes sure that there is a block for items of the level. */
static int open_level(struct bulk *b, unsigned level, struct btrkit_error *err)
{
	struct open_block *o = &b->levels[level];

	if (o->block || bulk_only_counts(b))
		return 0;
	o->block = calloc(1, b->config->rules->nodesize);
	return o->block ? 0 : err_nomem(err);
}

static void sign(const struct bulk *b, uint8_t *block, uint64_t bytenr, unsigned level)
{
	const struct bulk_config *c = b->config;
	struct disk_header *h = (struct disk_header *)block;

	memset(h->csum, 0, sizeof(h->csum));
	memcpy(h->fsid, c->rules->fsid, sizeof(h->fsid));
	h->bytenr = le64_put(bytenr);
	h->flags = le64_put(MIXED_BACKREF_REV | HEADER_FLAG_WRITTEN);
	memcpy(h->chunk_tree_uuid, c->chunk_tree_uuid, sizeof(h->chunk_tree_uuid));
	h->generation = le64_put(c->generation);
	h->owner = le64_put(c->owner);
	h->nritems = le32_put(b->levels[level].nritems);
	h->level = (uint8_t)level;
	c->rules->csum->compute(h->fsid, c->rules->nodesize - sizeof(h->csum), h->csum);
}

/* Sign the open block of a level, verify it as after reading, and pass it to write(). */
static int write_block(struct bulk *b, unsigned level, uint64_t bytenr, struct btrkit_error *err)
{
	const struct bulk_config *c = b->config;
	struct open_block *o = &b->levels[level];
	struct node_ref ref = { bytenr, c->generation, c->owner, (uint8_t)level, o->nritems ? &o->first : NULL };
	int ret;

	ret = open_level(b, level, err);
	if (ret)
		return ret;
	sign(b, o->block, bytenr, level);
	ret = node_verify(c->rules, &ref, o->block, err);
	if (!ret)
		ret = c->write(c->ctx, bytenr, o->block, err);
	memset(o->block, 0, c->rules->nodesize);
	return ret;
}

static int add_child(struct bulk *b, unsigned level, const struct btrkit_key *key, uint64_t bytenr,
		     struct btrkit_error *err);

/*
 * Finishes the open block of a level, and adds it to the level above. The recursion is limited by the number of levels.
 */
static int seal(struct bulk *b, unsigned level, struct btrkit_error *err)
{
	const struct bulk_config *c = b->config;
	struct open_block *o = &b->levels[level];
	struct btrkit_key first = o->first;
	uint64_t bytenr = 0;
	int ret = 0;

	if (c->first_key)
		ret = c->first_key(c->ctx, level, o->sealed, &first, err);
	if (!ret && c->write) {
		ret = c->place(c->ctx, level, o->sealed, &bytenr, err);
		if (!ret)
			ret = write_block(b, level, bytenr, err);
	}
	if (ret)
		return ret;
	o->sealed++;
	o->nritems = 0;
	o->end = b->room;
	b->root_bytenr = bytenr;
	b->root_level = level;
	return add_child(b, level + 1, &first, bytenr, err);
}

static int add_child(struct bulk *b, unsigned level, const struct btrkit_key *key, uint64_t bytenr,
		     struct btrkit_error *err)
{
	struct open_block *o = &b->levels[level];
	int ret = 0;

	if (level == LEVELS_MAX)
		return err_set(err, BTRKIT_INVALID, "the tree would have more than %u levels", LEVELS_MAX);
	if (o->nritems == b->room / sizeof(struct disk_key_ptr))
		ret = seal(b, level, err);
	if (!ret)
		ret = open_level(b, level, err);
	if (ret)
		return ret;
	if (!o->nritems)
		o->first = *key;
	if (o->block) {
		struct disk_key_ptr *p = (struct disk_key_ptr *)(o->block + sizeof(struct disk_header));

		p[o->nritems] = (struct disk_key_ptr){ key_put(key), le64_put(bytenr),
						       le64_put(b->config->generation) };
	}
	o->nritems++;
	return 0;
}

static int check_item(struct bulk *b, const struct btrkit_key *key, const void *data, uint32_t size,
		      struct btrkit_error *err)
{
	struct item item = { *key, data, size };
	struct item_ctx ctx = *b->config->items;

	if (size > b->room - sizeof(struct disk_item))
		return err_set(err, BTRKIT_INVALID, "item of %" PRIu32 " bytes is too large for a leaf", size);
	/* When a plan is counted, addresses, which are part of keys, are not known yet. */
	if (bulk_only_counts(b))
		return 0;
	if (b->any && key_cmp(&b->last, key) >= 0)
		return err_set(err, BTRKIT_INVALID, "items of a new tree are out of order");
	ctx.owner = b->config->owner;
	return item_validate(&ctx, &item, err);
}

int bulk_add(struct bulk *b, const struct btrkit_key *key, const void *data, uint32_t size, struct btrkit_error *err)
{
	struct open_block *o = &b->levels[0];
	int ret;

	ret = check_item(b, key, data, size, err);
	if (ret) {
		err_at_tree(err, b->config->owner);
		err_at_item(err, o->nritems, key);
		return ret;
	}
	if (o->end < (o->nritems + 1) * sizeof(struct disk_item) + size)
		ret = seal(b, 0, err);
	if (!ret)
		ret = open_level(b, 0, err);
	if (ret)
		return ret;
	if (!o->nritems)
		o->first = *key;
	o->end -= size;
	if (o->block) {
		struct disk_item *d = (struct disk_item *)(o->block + sizeof(struct disk_header));

		d[o->nritems] = (struct disk_item){ key_put(key), le32_put(o->end), le32_put(size) };
		memcpy(o->block + sizeof(struct disk_header) + o->end, data, size);
	}
	o->nritems++;
	b->last = *key;
	b->any = true;
	return 0;
}

int bulk_finish(struct bulk *b, struct tree_root *root, struct btrkit_error *err)
{
	unsigned level = 0;
	int ret;

	/* The first level with only one block has the root. What was added above it is ignored. */
	do {
		ret = seal(b, level, err);
		if (ret)
			return ret;
	} while (b->levels[level++].sealed > 1);
	*root = (struct tree_root){ .id = b->config->owner,
				    .bytenr = b->root_bytenr,
				    .generation = b->config->generation,
				    .level = (uint8_t)b->root_level };
	return 0;
}
