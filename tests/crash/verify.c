// SPDX-License-Identifier: LGPL-2.1-or-later
#include "verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <btrkit/dump.h>
#include <btrkit/error.h>
#include <btrkit/filesystem.h>

#include "lib/format/super.h"

#define WHY 300

struct text {
	char *bytes;
	size_t len, room;
};

static int take_text(void *ctx, const void *data, size_t len)
{
	struct text *t = ctx;

	if (t->len + len >= t->room) {
		t->room = 2 * (t->len + len) + 65536;
		t->bytes = realloc(t->bytes, t->room);
		if (!t->bytes)
			exit(99);
	}
	memcpy(t->bytes + t->len, data, len);
	t->len += len;
	t->bytes[t->len] = '\0';
	return 0;
}

static bool has_super(struct sparse *state, unsigned mirror)
{
	struct disk_super disk;
	struct super checked;

	if (sparse_io(state)->size < super_offset(mirror) + SUPER_SIZE)
		return false;
	sparse_read(state, super_offset(mirror), &disk, sizeof(disk));
	return !super_decode(&disk, super_offset(mirror), &checked, NULL);
}

/* Dumps all trees, using the given superblock copy. Returns NULL and sets @why if anything in them is damaged. */
static char *dump(struct sparse *state, unsigned mirror, char *why)
{
	const struct btrkit_open_options opts = { .flags = BTRKIT_OPEN_SUPER_MIRROR, .super_mirror = mirror };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_io *io = sparse_io(state);
	struct text text = { 0 };
	struct btrkit_fs *fs;
	int ret;

	ret = btrkit_fs_open(&io, 1, &opts, &fs, &err);
	if (!ret) {
		ret = btrkit_dump_tree(fs, NULL, take_text, &text, &err);
		btrkit_fs_close(fs);
	}
	if (ret)
		btrkit_error_format(&err, why, WHY);
	else if (strstr(text.bytes, "(item is damaged"))
		ret = snprintf(why, WHY, "an item is damaged");
	if (!ret)
		return text.bytes;
	free(text.bytes);
	return NULL;
}

struct check check_create(struct sparse *before, struct sparse *after)
{
	struct check j = { .before = before, .after = after };
	char why[WHY];

	if (has_super(before, 0))
		j.old_text = dump(before, 0, why);
	j.new_text = dump(after, 0, why);
	if (!j.new_text || (has_super(before, 0) && !j.old_text)) {
		fprintf(stderr, "no filesystem to check by: %s\n", why);
		exit(1);
	}
	return j;
}

void check_release(struct check *j)
{
	free(j->old_text);
	free(j->new_text);
}

static int check_copy(const struct check *j, struct sparse *state, unsigned mirror, char *why)
{
	int holds = -1;
	bool is_new, is_old;
	char *text;

	if (!has_super(state, mirror))
		return HOLDS_NOTHING;
	text = dump(state, mirror, why);
	if (!text)
		return -1;
	is_new = !strcmp(text, j->new_text);
	is_old = j->old_text && !strcmp(text, j->old_text);
	/* The dump reads one copy of each block and no file data, so compare the devices too. */
	if (!is_new && !is_old)
		snprintf(why, WHY, "neither the old filesystem nor the new one");
	else if (is_new && sparse_differs(state, j->after))
		snprintf(why, WHY, "the new superblock is valid, but not everything is written");
	else if (is_old && sparse_differs(state, j->before))
		snprintf(why, WHY, "the old superblock is valid, but its filesystem was written to");
	else
		holds = is_new ? HOLDS_NEW : HOLDS_OLD;
	free(text);
	return holds;
}

int check_state(const struct check *j, struct sparse *state, char *why)
{
	int holds = HOLDS_NOTHING;

	for (unsigned mirror = 0; mirror < SUPER_MIRRORS; mirror++) {
		int copy = check_copy(j, state, mirror, why);

		if (copy < 0) {
			size_t len = strlen(why);

			snprintf(why + len, WHY - len, " (by superblock %u)", mirror);
			return -1;
		}
		if (copy != HOLDS_NOTHING && holds != HOLDS_NOTHING && copy != holds) {
			snprintf(why, WHY, "superblocks of both filesystems");
			return -1;
		}
		if (holds == HOLDS_NOTHING)
			holds = copy;
	}
	return holds;
}
