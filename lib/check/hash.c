// SPDX-License-Identifier: LGPL-2.1-or-later
/* Keyed hashes of what must occur in two places. */
#include <string.h>

#include "lib/check/hash.h"
#include "lib/check/state.h"

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
