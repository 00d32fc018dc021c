// SPDX-License-Identifier: LGPL-2.1-or-later
/* Checks the v1 cache. Linux rebuilds incomplete caches. */
#include <sys/stat.h>

#include "lib/check/findings.h"
#include "lib/check/space/space_cache_v1.h"
#include "lib/check/space/space_gaps.h"
#include "lib/check/state.h"
#include "lib/format/items/files/inode.h"
#include "lib/space/space_cache.h"

static int next_range(void *cache, struct range *ret, struct btrkit_error *err)
{
	(void)err;
	return space_cache_next(cache, ret);
}

/* Determines how far a file has data without holes. */
static int data_end(struct cursor *cur, uint64_t ino, uint64_t size, uint64_t *end, struct btrkit_error *err)
{
	struct file_extent extent;
	int ret = 0;

	for (*end = 0; *end < size; *end += extent.num_bytes) {
		ret = cursor_find(cur, &KEY(ino, KEY_EXTENT_DATA, *end), err);
		if (ret || file_extent_decode(&cur->fs->items, &cur->item, &extent, NULL) || !extent.num_bytes ||
		    *end + extent.num_bytes < *end || extent.type == FILE_EXTENT_INLINE || !extent.disk_bytenr)
			break;
	}
	return ret < 0 ? ret : 0;
}

/*
 * Linux reads all pages up to the file size, and crashes if one is missing. If the inode is not a regular file, a
 * writable mount hangs. @return whether that was reported
 */
static bool check_file(struct check *c, const struct space_cache_group *cache)
{
	const struct btrkit_key *key = &cache->header.location;
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	struct inode_item inode;
	struct cursor cur;
	uint64_t end = 0;
	bool reported = false;
	int ret;

	cursor_init(&cur, c->fs, &c->fs->root_tree);
	ret = cursor_find(&cur, key, &what);
	if (ret || inode_item_decode(&c->items, &cur.item, &inode, NULL)) {
		/* Linux does not use the cache. */
	} else if (!S_ISREG(inode.mode)) {
		reported = true;
		check_report_at(c, CHECK_SPACE_CACHE_SIZE, &(struct check_location){ OID_ROOT_TREE, 0, key, "mode" },
				"file of the free space cache is not a regular file");
	} else if (inode.generation && inode.size && inode.generation == cache->header.generation) {
		const uint64_t size = inode.size;
		uint64_t values[2];

		ret = data_end(&cur, key->objectid, size, &end, &what);
		values[0] = size;
		values[1] = end;
		reported = !ret && size > end;
		if (reported)
			check_report_at(c, CHECK_SPACE_CACHE_SIZE,
					&(struct check_location){ OID_ROOT_TREE, 0, key, "size", .values = values },
					"size of the free space cache exceeds the extents of its file");
	}
	cursor_release(&cur);
	if (ret == -ENOMEM)
		check_fail(c, ret, &what);
	return reported;
}

static void validate_group(struct space *s, const struct check_group *g)
{
	const struct block_group group = space_group(g);
	struct gaps gaps = { .s = s, .group = { g->start, g->length }, .pos = g->start };
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	struct space_cache_group cache;
	bool reported = false;
	int ret = space_cache_load(s->c->fs, &group, &cache, &what);

	if (ret) {
		if (ret == -ENOMEM)
			check_fail(s->c, ret, &what);
		return;
	}
	if (cache.state == SPACE_CACHE_IGNORED || cache.state == SPACE_CACHE_USABLE)
		reported = check_file(s->c, &cache);
	if (!reported && cache.state == SPACE_CACHE_IGNORED && !cache.unfinished)
		check_report_at(s->c, CHECK_SPACE_CACHE_FILE,
				&(struct check_location){ OID_ROOT_TREE, 0, &KEY(OID_FREE_SPACE, 0, g->start) },
				"free space cache is unusable: %s", cache.why);
	if (cache.state == SPACE_CACHE_USABLE)
		ret = block_group_supers(s->c->fs, &group, &gaps.supers, &what);
	if (!ret && cache.state == SPACE_CACHE_USABLE)
		ret = space_compare(&gaps, next_range, &cache, CHECK_SPACE_CACHE, OID_ROOT_TREE, &what);
	block_group_supers_release(&gaps.supers);
	space_cache_group_release(&cache);
	if (ret == -ENOMEM)
		check_fail(s->c, ret, &what);
}

void space_check_caches(struct check *c)
{
	const struct check_group *groups = c->groups.at;
	struct space s = { .c = c };

	for (size_t i = 0; i < c->groups.n && !check_failed(c); i++)
		if (groups[i].chunk && groups[i].item)
			validate_group(&s, &groups[i]);
}
