// SPDX-License-Identifier: LGPL-2.1-or-later
/* Items that describe the contents of files: extents and checksums. */
#include "lib/mkfs/streams.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/format/items/extent.h"
#include "lib/mkfs/filled/fill.h"

/* Linux limits the checksums of an item to one page. */
#define CSUM_BYTES_MAX 4096u

static struct extent_ref ref_of(const struct source_inode *n, const struct mkfs_extent *x)
{
	return (struct extent_ref){ .type = KEY_EXTENT_DATA_REF,
				    .root = mkfs_fill_root(n),
				    .objectid = mkfs_fill_objectid(n),
				    .offset = x->file_offset,
				    .count = 1 };
}

/* References are sorted by descending hash. */
static int by_sequence(const void *a, const void *b)
{
	const uint64_t x = extent_ref_sequence(a), y = extent_ref_sequence(b);

	return x > y ? -1 : x < y;
}

static int add_extent(const struct mkfs_plan *p, const struct mkfs_extent *x, struct bulk *b,
		      struct btrkit_error *err)
{
	const struct source *s = p->fill->source;
	const size_t ref_size = extent_inline_ref_size(KEY_EXTENT_DATA_REF);
	const size_t room = mkfs_item_room(&p->opts);
	struct disk_extent_item head = { .generation = le64_put(p->generation), .flags = le64_put(EXTENT_FLAG_DATA) };
	struct extent_ref *refs;
	size_t n = 0, size;
	uint8_t *item;
	int ret;

	for (uint32_t i = x->inode; i != SOURCE_NONE; i = s->inodes[i].next_sharing)
		n++;
	size = sizeof(head) + n * ref_size;
	if (size > room)
		return err_set(err, BTRKIT_INVALID, "too many hard links across subvolumes for one extent");
	if (bulk_only_counts(b))
		return bulk_add(b, &KEY(x->at, KEY_EXTENT_ITEM, x->disk_bytes), "", (uint32_t)size, err);
	refs = calloc(n, sizeof(*refs));
	item = malloc(size);
	if (!refs || !item) {
		free(refs);
		free(item);
		return err_nomem(err);
	}
	n = 0;
	for (uint32_t i = x->inode; i != SOURCE_NONE; i = s->inodes[i].next_sharing)
		refs[n++] = ref_of(&s->inodes[i], x);
	qsort(refs, n, sizeof(*refs), by_sequence);
	head.refs = le64_put(n);
	memcpy(item, &head, sizeof(head));
	for (size_t i = 0; i < n; i++)
		extent_inline_ref_put(&refs[i], item + sizeof(head) + i * ref_size);
	ret = bulk_add(b, &KEY(x->at, KEY_EXTENT_ITEM, x->disk_bytes), item, (uint32_t)size, err);
	free(refs);
	free(item);
	return ret;
}

int mkfs_add_data_extent(const struct mkfs_plan *p, const struct mkfs_group *g, size_t *next, struct bulk *b,
			 struct btrkit_error *err)
{
	const struct mkfs_contents *c = p->fill ? p->fill->contents : NULL;
	const struct mkfs_extent *x;
	int ret;

	while (c && *next < c->num_extents && c->extents[*next].in_item)
		++*next;
	if (!c || *next == c->num_extents)
		return 1;
	x = &c->extents[*next];
	if (x->at >= g->logical + g->length)
		return 1;
	ret = add_extent(p, x, b, err);
	++*next;
	return ret;
}

/*
 * Returns the number of checksums per item: so that items fill a leaf well, and no more than Linux puts into an item.
 */
static uint32_t sums_max(const struct mkfs_plan *p)
{
	const uint32_t leaf = mkfs_item_room(&p->opts) - (uint32_t)sizeof(struct disk_item);
	const uint32_t size = p->rules.csum->size, fit = leaf / size - 1;

	return fit < CSUM_BYTES_MAX / size ? fit : CSUM_BYTES_MAX / size;
}

int mkfs_stream_csums(const struct mkfs_plan *p, const struct mkfs_tree *t, struct bulk *b, struct btrkit_error *err)
{
	const struct mkfs_contents *c = p->fill->contents;
	const uint32_t size = p->rules.csum->size, max = sums_max(p);
	uint8_t *item = calloc(max, size);
	int ret = 0;

	(void)t;
	if (!item)
		return err_nomem(err);
	for (size_t i = 0; !ret && i < c->num_runs; i++) {
		const struct mkfs_csum_run *r = &c->runs[i];

		for (uint64_t at = 0; !ret && at < r->count; at += max) {
			const uint32_t n = r->count - at < max ? (uint32_t)(r->count - at) : max;

			if (!bulk_only_counts(b))
				ret = spool_read(c->sums, (r->first + at) * size, item, (size_t)n * size, err);
			if (!ret)
				ret = bulk_add(b,
					       &KEY(OID_EXTENT_CSUM, KEY_EXTENT_CSUM,
						    r->logical + at * p->opts.sectorsize),
					       item, n * size, err);
		}
	}
	free(item);
	return ret;
}
