// SPDX-License-Identifier: LGPL-2.1-or-later
/* Tree blocks are read from every copy. */
#include <stdlib.h>
#include <string.h>

#include "lib/check/state.h"
#include "lib/volume/volume.h"

/* A copy is not what it should be, and another one is. */
static void tell_copy(struct check *c, const struct node_ref *ref, uint64_t tree, const struct copy *copy,
		      const struct btrkit_error *why)
{
	struct btrkit_error what = *why;

	err_at_device(&what, copy->devid, copy->physical);
	err_at_logical(&what, ref->bytenr);
	err_at_tree(&what, tree);
	check_tell(c, CHECK_BLOCK_COPY, &what);
}

/* @good: a copy that is as it should be: one that is equal need not be judged. @return 0, or why it is none */
static int judge_copy(const struct check *c, const struct node_ref *ref, const struct copy *copy, const uint8_t *good,
		      uint8_t *buf, struct btrkit_error *err)
{
	int ret = btrkit_io_read(copy->io, copy->physical, buf, c->items.nodesize, err);

	if (ret)
		return ret;
	if (good && !memcmp(good, buf, c->items.nodesize))
		return 0;
	return node_verify(&c->fs->judge, ref, buf, err);
}

/* Linux wants it of whatever it reads, since 6.8. */
static void judge_flags(struct check *c, const struct node_ref *ref, uint64_t tree, const uint8_t *block)
{
	if (le64_get(((const struct disk_header *)block)->flags) & HEADER_FLAG_WRITTEN)
		return;
	check_say(c, CHECK_BLOCK_FLAGS, &(struct check_place){ .tree = tree, .logical = ref->bytenr, .field = "flags" },
		  "tree block says that it was not written");
}

#define COPIES_MAX 4u /* RAID1C4 */

bool check_read_block(struct check *c, const struct node_ref *ref, uint64_t tree, uint8_t *buf)
{
	struct btrkit_error why[COPIES_MAX], err = BTRKIT_ERROR_INIT;
	struct copy copies[COPIES_MAX];
	bool bad[COPIES_MAX] = { false }, good = false;
	uint8_t *other = NULL;
	unsigned n;

	for (n = 0; n < COPIES_MAX; n++) {
		if (volume_map(c->fs->volume, ref->bytenr, c->items.nodesize, n, &copies[n], NULL))
			break;
		if (!copies[n].io || copies[n].length < c->items.nodesize)
			continue;
		if (good && !other)
			other = malloc(c->items.nodesize);
		if (good && !other)
			break;
		why[n] = (struct btrkit_error)BTRKIT_ERROR_INIT;
		bad[n] = judge_copy(c, ref, &copies[n], good ? buf : NULL, good ? other : buf, &why[n]);
		good |= !bad[n];
	}
	free(other);
	/* The copies are no way to it, or parity knows better. */
	if (!good) {
		const int ret = node_read_alone(c->fs, ref, buf, &err);

		if (ret) {
			err_at_logical(&err, ref->bytenr);
			check_tell_failure(c, tree, ret, &err);
			return false;
		}
	}
	for (unsigned i = 0; i < n; i++)
		if (bad[i])
			tell_copy(c, ref, tree, &copies[i], &why[i]);
	judge_flags(c, ref, tree, buf);
	return true;
}
