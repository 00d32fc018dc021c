/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TREE_NODE_H
#define BTRKIT_TREE_NODE_H

/* Tree blocks in memory: verified once when they are read, immutable and shared from then on. */

#include <btrkit/error.h>

#include "lib/base/csum.h"
#include "lib/base/hash.h"
#include "lib/format/item.h"

/* Where a block's memory is from: see slab.h. */
enum node_place {
	NODE_READ, /* the heap; it was read from a device */
	NODE_OF_HEAP,
	NODE_OF_SLAB,
	NODE_AWAY /* the heap, and its bytes apart, as far as they are there: see overlay_put_away() */
};

struct node {
	uint64_t bytenr;
	uint64_t generation;
	uint64_t owner;
	uint64_t flags;
	uint32_t nritems;
	uint32_t size; /* nodesize */
	uint8_t level;
	uint8_t place; /* enum node_place */
	bool private; /* of a transaction: see overlay.h */
	uint32_t era; /* of that, in which it was made: see struct edit_tree */
	/* The cache's, under the lock of its shard: see cache.c. */
	unsigned pins;
	bool passed; /* idle, and of those that were passed over: see node_pass() */
	bool again;  /* wanted again since it was read */
	bool young; /* a transaction's: see overlay_take_full() */
	UT_hash_handle hh;
	struct node *prev, *next;
	uint8_t *data; /* behind it, but for NODE_AWAY */
};

/*
 * What the pointer to a block says about it. A value the pointer does not know is NODE_ANY (for the level:
 * LEVELS_MAX; for the owner: 0). @first_key may be NULL.
 */
#define NODE_ANY UINT64_MAX

struct node_ref {
	uint64_t bytenr;
	uint64_t generation;
	uint64_t owner; /* objectid of the tree's root, judged as Linux does: any file tree for any other */
	uint8_t level;
	const struct btrkit_key *first_key;
};

/*
 * Pins the block, from the cache or read and verified from the first good copy. Undo with node_put().
 * @return 0, -EUCLEAN, -EIO, -ENODATA, -ENOMEM
 */
int node_get(struct btrkit_fs *fs, const struct node_ref *ref, struct node **ret,
	     struct btrkit_error *err) BTRKIT_MUST_CHECK;
void node_put(struct btrkit_fs *fs, struct node *node);
/*
 * The same of a block that a scan has gone through and will hardly come back to. Of those that nobody has wanted twice
 * only the latest stay, so that what is read once, end to end, neither drives others out nor wants new memory.
 */
void node_pass(struct btrkit_fs *fs, struct node *node);

static inline const struct disk_header *node_header(const struct node *n)
{
	return (const struct disk_header *)n->data;
}

/* What the verified bytes of a block say of it. */
static inline void node_describe(struct node *n, uint32_t size)
{
	const struct disk_header *h = node_header(n);

	n->bytenr = le64_get(h->bytenr);
	n->generation = le64_get(h->generation);
	n->owner = le64_get(h->owner);
	n->flags = le64_get(h->flags);
	n->nritems = le32_get(h->nritems);
	n->level = h->level;
	n->size = size;
}

static inline const struct disk_item *leaf_items(const struct node *n)
{
	return (const struct disk_item *)(n->data + sizeof(struct disk_header));
}

static inline const struct disk_key_ptr *node_ptrs(const struct node *n)
{
	return (const struct disk_key_ptr *)(n->data + sizeof(struct disk_header));
}

/* Key of slot @i, of a leaf or a node. */
static inline struct btrkit_key node_key(const struct node *n, uint32_t i)
{
	return key_get(n->level ? &node_ptrs(n)[i].key : &leaf_items(n)[i].key);
}

/* Item @i of a leaf: its bounds were verified with the leaf. */
static inline struct item leaf_item(const struct node *n, uint32_t i)
{
	const struct disk_item *d = &leaf_items(n)[i];

	return (struct item){ key_get(&d->key), n->data + sizeof(struct disk_header) + le32_get(d->offset),
			      le32_get(d->size) };
}

/* What the pointer in slot @i of @n says about its child; @key gets the key and is what the result points to. */
static inline struct node_ref node_child(const struct node *n, uint32_t i, uint64_t owner, struct btrkit_key *key)
{
	const struct disk_key_ptr *p = &node_ptrs(n)[i];

	*key = key_get(&p->key);
	return (struct node_ref){ le64_get(p->blockptr), le64_get(p->generation), owner, (uint8_t)(n->level - 1), key };
}

/* Whether the cache has the block. Advice: that may change at once. */
bool node_cached(const struct btrkit_fs *fs, uint64_t bytenr);

/*
 * Requests the children of a node from slot @from to before @to that the cache lacks, in address order, neighbours in
 * one request: for those who will read them all.
 */
void node_prefetch_children(const struct btrkit_fs *fs, const struct node *n, uint32_t from, uint32_t to);

/*
 * As many from the first on as lie one behind the other on a device, read into @buf past the cache from the first copy,
 * and judged by nobody. @return how many; 0: try node_read_alone()
 */
size_t node_read_neighbours(const struct btrkit_fs *fs, const struct node_ref *refs, size_t n, uint8_t *buf);
/*
 * The bytes of a block past the cache, verified, from the first good copy.
 * @return 0, -EUCLEAN, -EIO, -ENODATA, -ENOMEM
 */
int node_read_alone(const struct btrkit_fs *fs, const struct node_ref *ref, uint8_t *buf,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* What all blocks of a filesystem are judged by. */
struct node_judge {
	const struct csum_kind *csum;
	uint8_t fsid[16]; /* the metadata UUID */
	/* Those of the seeds that it grew out of: blocks that were not changed since are still theirs. */
	const uint8_t (*seeds)[16];
	size_t num_seeds;
	uint32_t nodesize, sectorsize;
};

/* Judges a block that was read for @ref: all that can be said without looking into items. @return 0 or -EUCLEAN */
int node_verify(const struct node_judge *judge, const struct node_ref *ref, const void *data,
		struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Judges a block in memory against another pointer to it. @return 0 or -EUCLEAN */
int node_verify_ref(const struct node_ref *ref, const void *data, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* The first slot whose key is not below @key; nritems if there is none. *exact (may be NULL): it is equal. */
uint32_t node_lower_bound(const struct node *n, const struct btrkit_key *key, bool *exact);

#endif
