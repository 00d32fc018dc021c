/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TREE_NODE_H
#define BTRKIT_TREE_NODE_H

/* Tree blocks in memory: verified once when they are read, then immutable and shared. */

#include <btrkit/error.h>

#include "lib/base/csum.h"
#include "lib/base/hash.h"
#include "lib/format/item.h"

/* Where the memory of a block comes from: see slab.h. */
enum node_place {
	NODE_READ, /* heap, read from a device */
	NODE_OF_HEAP,
	NODE_OF_SLAB,
	NODE_AWAY /* heap, with separate data, which may be absent: see overlay_put_away() */
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
	bool private; /* belongs to a transaction: see overlay.h */
	uint32_t era; /* in the transaction, when it was created: see struct edit_tree */
	/* Used by the cache, under the lock of the shard: see cache.c. */
	unsigned pins;
	bool passed; /* idle, and passed by a scan: see node_pass() */
	bool again;  /* requested again since it was read */
	bool young; /* see overlay_take_full() */
	UT_hash_handle hh;
	struct node *prev, *next;
	uint8_t *data; /* follows this struct, except for NODE_AWAY */
};

/*
 * What the pointer to a block says about it. Unknown values are NODE_ANY (level: LEVELS_MAX; owner: 0). @first_key may
 * be NULL.
 */
#define NODE_ANY UINT64_MAX

struct node_ref {
	uint64_t bytenr;
	uint64_t generation;
	uint64_t owner; /* objectid of the tree, checked as in Linux: file trees may share blocks with each other */
	uint8_t level;
	const struct btrkit_key *first_key;
};

/* In cache.c: */
/*
 * Pins a block, from the cache or read and verified from the first good copy. Undo with node_put().
 * @return 0, -EUCLEAN, -EIO, -ENXIO, -ENOMEM
 */
int node_get(struct btrkit_fs *fs, const struct node_ref *ref, struct node **ret,
	     struct btrkit_error *err) BTRKIT_MUST_CHECK;
void node_put(struct btrkit_fs *fs, struct node *node);
/*
 * Like node_put(), for a block that a scan has passed and is unlikely to need again. Of blocks requested only once,
 * only the latest stay in the cache, so that a scan neither displaces other blocks nor needs much memory.
 */
void node_pass(struct btrkit_fs *fs, struct node *node);

static inline const struct disk_header *node_header(const struct node *n)
{
	return (const struct disk_header *)n->data;
}

/* Fills in what the verified contents of a block say about it. */
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

/* Key in slot @i of a leaf or node. */
static inline struct btrkit_key node_key(const struct node *n, uint32_t i)
{
	return key_get(n->level ? &node_ptrs(n)[i].key : &leaf_items(n)[i].key);
}

/* Item @i of a leaf. Its bounds were verified with the leaf. */
static inline struct item leaf_item(const struct node *n, uint32_t i)
{
	const struct disk_item *d = &leaf_items(n)[i];

	return (struct item){ key_get(&d->key), n->data + sizeof(struct disk_header) + le32_get(d->offset),
			      le32_get(d->size) };
}

/* What the pointer in slot @i of @n says about its child. @key: buffer for the key, to which the result points */
static inline struct node_ref node_child(const struct node *n, uint32_t i, uint64_t owner, struct btrkit_key *key)
{
	const struct disk_key_ptr *p = &node_ptrs(n)[i];

	*key = key_get(&p->key);
	return (struct node_ref){ le64_get(p->blockptr), le64_get(p->generation), owner, (uint8_t)(n->level - 1), key };
}

/* Whether the block is in the cache. A hint only: this may change at any time. */
bool node_cached(const struct btrkit_fs *fs, uint64_t bytenr);

/* In prefetch.c: */
/*
 * Prefetches those children of a node, from slot @from to before @to, that are not in the cache, in address order, with
 * one request for adjacent ones. For callers that will read them all.
 */
void node_prefetch_children(const struct btrkit_fs *fs, const struct node *n, uint32_t from, uint32_t to);

/* In uncached.c: */
/*
 * Reads blocks that are contiguous on a device, from the first on, into @buf from the first copy, bypassing the cache
 * and without verifying them. @return how many; 0: try node_read_uncached()
 */
size_t node_read_neighbours(const struct btrkit_fs *fs, const struct node_ref *refs, size_t n, uint8_t *buf);
/*
 * Read and verify a block from the first good copy, bypassing the cache.
 * @return 0, -EUCLEAN, -EIO, -ENXIO, -ENOMEM
 */
int node_read_uncached(const struct btrkit_fs *fs, const struct node_ref *ref, uint8_t *buf,
		       struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* What is needed to verify blocks of a filesystem. */
struct node_rules {
	const struct csum_kind *csum;
	uint8_t fsid[16]; /* the metadata UUID */
	/* Those of its seed filesystems: blocks that have not changed since are still theirs. */
	const uint8_t (*seeds)[16];
	size_t num_seeds;
	uint32_t nodesize, sectorsize;
	/* Blocks with this checksum and fsid are accepted, too: those that a conversion has not copied yet. Or NULL. */
	const struct node_rules *also;
};

/* In node.c: */
/* Verifies a block that was read for @ref, except for the contents of its items. @return 0 or -EUCLEAN */
int node_verify(const struct node_rules *rules, const struct node_ref *ref, const void *data,
		struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Checks a block in memory against another pointer to it. @return 0 or -EUCLEAN */
int node_verify_ref(const struct node_ref *ref, const void *data, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* The first slot whose key is not less than @key; nritems if there is none. @exact: it is equal; may be NULL */
uint32_t node_lower_bound(const struct node *n, const struct btrkit_key *key, bool *exact);

#endif
