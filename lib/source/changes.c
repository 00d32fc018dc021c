// SPDX-License-Identifier: LGPL-2.1-or-later
/* Notes files that changed while they were read, if the options accept that. */
#include "lib/source/files.h"

#include <stdlib.h>

#include "lib/base/err.h"

struct source_changes {
	pthread_mutex_t lock;
	uint64_t count;
	char paths[SOURCE_CHANGES_SHOWN][PATH_SHOWN];
	uint8_t *noted; /* a bit for each inode after source_finish(): parts of a large file are read one by one */
};

bool source_accepts_changes(const struct source *s)
{
	return s->state->changes;
}

int source_changes_create(struct source *s, struct btrkit_error *err)
{
	if (!(s->state->opts->flags & BTRKIT_SOURCE_ACCEPT_CHANGES))
		return 0;
	s->state->changes = calloc(1, sizeof(*s->state->changes));
	if (!s->state->changes)
		return err_nomem(err);
	pthread_mutex_init(&s->state->changes->lock, NULL);
	return 0;
}

void source_changes_destroy(struct source_state *st)
{
	if (!st->changes)
		return;
	pthread_mutex_destroy(&st->changes->lock);
	free(st->changes->noted);
	free(st->changes);
}

/* @return 0; 1: noted before; -ENOMEM */
static int note_once(const struct source *s, uint32_t inode)
{
	struct source_changes *c = s->state->changes;
	const uint8_t bit = (uint8_t)(1u << inode % 8);

	if (!s->state->finished)
		return 0;
	if (!c->noted)
		c->noted = calloc(s->num_inodes / 8 + 1, 1);
	if (!c->noted)
		return -ENOMEM;
	if (c->noted[inode / 8] & bit)
		return 1;
	c->noted[inode / 8] |= bit;
	return 0;
}

int source_take_changed(const struct source *s, uint32_t inode, struct btrkit_error *err)
{
	struct source_changes *c = s->state->changes;
	int ret;

	if (!c)
		return source_changed(s, inode, err);
	pthread_mutex_lock(&c->lock);
	ret = note_once(s, inode);
	if (!ret) {
		if (c->count < SOURCE_CHANGES_SHOWN)
			source_path(s, inode, c->paths[c->count], sizeof(c->paths[0]));
		c->count++;
	}
	pthread_mutex_unlock(&c->lock);
	return ret < 0 ? err_nomem(err) : 0;
}

uint64_t source_num_changes(const struct source *s)
{
	return s->state->changes ? s->state->changes->count : 0;
}

const char *source_change(const struct source *s, unsigned i)
{
	return s->state->changes->paths[i];
}
