// SPDX-License-Identifier: LGPL-2.1-or-later
/* Runs a complete check. */
#include <btrkit/check.h>

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "lib/base/each.h"
#include "lib/check/state.h"

#define REPEATS_DEFAULT 32u
#define REPEATS_MAX 65536u

struct node check_node(const struct check *c, const uint8_t *block)
{
	struct node n = { .data = (uint8_t *)(uintptr_t)block };

	node_describe(&n, c->items.nodesize);
	return n;
}

const struct check_root *check_find_root(const struct check *c, uint64_t id)
{
	const struct check_root *roots = c->roots.at;
	size_t low = CHECK_ROOTS_FIRST, high = c->roots.n;

	/* Find the first one past it. */
	while (low < high) {
		const size_t mid = low + (high - low) / 2;

		if (roots[mid].root.id <= id)
			low = mid + 1;
		else
			high = mid;
	}
	if (low > CHECK_ROOTS_FIRST && roots[low - 1].root.id == id)
		return &roots[low - 1];
	for (size_t i = 0; i < CHECK_ROOTS_FIRST && i < c->roots.n; i++)
		if (roots[i].root.id == id)
			return &roots[i];
	return NULL;
}

const struct check_group *check_group_of(const struct check *c, uint64_t logical, size_t *hint)
{
	const struct check_group *groups = c->groups.at;
	size_t low = 0, high = c->groups.n;

	if (*hint < high && logical - groups[*hint].start < groups[*hint].length)
		return &groups[*hint];
	/* Find the first one that starts past the address. */
	while (low < high) {
		const size_t mid = low + (high - low) / 2;

		if (groups[mid].start <= logical)
			low = mid + 1;
		else
			high = mid;
	}
	if (!low || logical - groups[low - 1].start >= groups[low - 1].length)
		return NULL;
	*hint = low - 1;
	return &groups[low - 1];
}

/* The key differs in each run, so nobody can craft a filesystem whose contradictions cancel out. */
static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * 0x9e3779b97f4a7c15u;
	h = (h ^ h >> 32) * 0xd6e8feb86659fd93u;
	return h ^ h >> 29;
}

uint64_t check_hash(const struct check *c, unsigned kind, const uint64_t *numbers, size_t n, const void *bytes,
		    size_t len)
{
	uint64_t h = mix(c->key, kind), word;
	const uint8_t *at = bytes;

	for (size_t i = 0; i < n; i++)
		h = mix(h, numbers[i]);
	for (; len >= sizeof(word); at += sizeof(word), len -= sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		h = mix(h, word);
	}
	if (len) {
		word = 0;
		memcpy(&word, at, len);
		h = mix(h, word + len);
	}
	return mix(h, c->key);
}

uint64_t check_ref_hash(const struct check *c, const struct extent_ref *ref, uint64_t bytenr)
{
	const bool shared = ref->type == KEY_SHARED_BLOCK_REF || ref->type == KEY_SHARED_DATA_REF;
	const bool of_file = ref->type == KEY_EXTENT_DATA_REF;
	const uint64_t numbers[] = { bytenr, shared ? ref->parent : ref->root, of_file ? ref->objectid : 0,
				     of_file ? ref->offset : 0 };

	return check_hash(c, ref->type, numbers, sizeof(numbers) / sizeof(numbers[0]), NULL, 0);
}

static int run(struct check *c)
{
	static int (*const parts[])(struct check * c) = {
		check_supers,
		check_volume,
		check_roots,
		check_csums,
		check_extents,
		check_stripes,
		check_walk,
		check_leaves,
		check_refs,
		check_logs,
		check_csum_extents,
		check_space,
		check_subvolumes,
		check_balance,
		check_replace,
		check_data,
		check_qgroups,
		NULL,
	};

	for (size_t i = 0; parts[i] && !check_failed(c); i++)
		parts[i](c);
	return c->failed ? c->failed : check_hand_out(c);
}

static void release(struct check *c)
{
	for (size_t i = 0; i < CHECK_NUM_CODES; i++)
		free(c->findings[i].at);
	check_tables_release(&c->tables);
	free(c->roots.at);
	free(c->groups.at);
	free(c->csums.at);
	free(c->stripes.at);
	free(c->bare.at);
	free(c->log_data.at);
	check_log_sums_release(c);
	free(c->names.at);
	free(c->circles.at);
	pthread_mutex_destroy(&c->lock);
}

int btrkit_check(struct btrkit_fs *fs, const struct btrkit_check_options *opts, struct btrkit_check_result *ret,
		 struct btrkit_error *err)
{
	struct check *c;
	int r;

	if (opts && opts->flags & ~(unsigned)BTRKIT_CHECK_DATA)
		return err_set(err, BTRKIT_INVALID, "unknown flags 0x%x", opts->flags);
	r = fs_check_committed(fs, err);
	if (r)
		return r;
	c = calloc(1, sizeof(*c));
	if (!c)
		return err_nomem(err);
	c->fs = fs;
	c->items = fs->items;
	if (opts)
		c->opts = *opts;
	if (!c->opts.repeats)
		c->opts.repeats = REPEATS_DEFAULT;
	if (c->opts.repeats > REPEATS_MAX)
		c->opts.repeats = REPEATS_MAX;
	c->threads = c->opts.threads ? c->opts.threads : each_processor();
	if (getrandom(&c->key, sizeof(c->key), GRND_NONBLOCK) != sizeof(c->key))
		c->key = (uint64_t)(uintptr_t)c;
	pthread_mutex_init(&c->lock, NULL);
	check_tables_init(&c->tables, c->opts.memory, c->opts.spill);
	r = run(c);
	c->result.table_bytes = c->tables.most;
	if (!r && ret)
		*ret = c->result;
	/* If a callback of the caller ended the check, there is no error to report. */
	if (r && err && c->failure.code != BTRKIT_OK)
		*err = c->failure;
	release(c);
	free(c);
	return r;
}
