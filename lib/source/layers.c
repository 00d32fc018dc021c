// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/source/layers.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/err.h"
#include "lib/base/hash.h"

/* A whiteout: the name does not exist, or was made by the same layer or one above. */
struct source_whiteout {
	uint32_t layer; /* hides the name of layers below this one */
	UT_hash_handle hh;
	struct whiteout_key {
		uint32_t parent;
		char name[];
	} key;
};

bool source_layered(const struct source *s)
{
	return s->state->opts->num_layers;
}

const char *source_layer_path(const struct source *s, uint32_t layer)
{
	return layer ? s->state->opts->layers[layer - 1] : s->state->opts->path;
}

/* Builds the key of a name. @return its size */
static size_t key_of(uint32_t parent, const char *name, size_t len, struct whiteout_key *ret)
{
	ret->parent = parent;
	memcpy(ret->name, name, len);
	return sizeof(*ret) + len;
}

static struct source_whiteout *find(const struct source *s, uint32_t parent, const char *name, size_t len)
{
	union {
		struct whiteout_key key;
		char room[sizeof(struct whiteout_key) + SOURCE_NAME_MAX];
	} wanted;
	struct source_whiteout *found = NULL;

	if (!s->state->whiteouts || len > SOURCE_NAME_MAX)
		return NULL;
	HASH_FIND(hh, s->state->whiteouts, &wanted, key_of(parent, name, len, &wanted.key), found);
	return found;
}

/* Lets a directory hide what layers below @layer have in theirs, which is another directory, with its attributes. */
static void close_to(struct source *s, uint32_t dir, uint32_t layer)
{
	struct source_inode *i = &s->inodes[dir];

	i->bits &= ~BIT_OPAQUE;
	/* Until source_finish(), which counts the entries, this is the layer that closed the directory. */
	if (i->count < layer)
		i->count = layer;
}

enum layer_view source_layer_look(struct source *s, uint32_t parent, const char *name, size_t len, bool is_dir,
				  uint32_t *inode)
{
	const uint32_t layer = s->state->layer, found = source_find(s, parent, name, len);
	const struct source_whiteout *w;
	struct source_inode *i;

	if (s->inodes[parent].count > layer)
		return LAYER_HIDDEN;
	if (found == SOURCE_NONE) {
		w = find(s, parent, name, len);
		return w && w->layer > layer ? LAYER_HIDDEN : LAYER_NEW;
	}
	i = &s->inodes[found];
	if (!S_ISDIR(i->mode))
		return i->layer > layer ? LAYER_HIDDEN : LAYER_NEW;
	if (i->count > layer && is_dir && i->bits & BIT_OPAQUE && i->bits & BIT_IMPLICIT) {
		w = find(s, parent, name, len);
		if (w && w->layer > layer)
			return LAYER_HIDDEN;
		*inode = found;
		return LAYER_ATTRIBUTES;
	}
	if (i->count > layer) {
		/* What is not a directory separates this one from those of the layers below. */
		if (!is_dir)
			i->bits &= ~BIT_OPAQUE;
		return LAYER_HIDDEN;
	}
	if (i->layer == layer && !is_dir)
		return LAYER_NEW;
	if (!is_dir) {
		close_to(s, found, layer + 1);
		return LAYER_HIDDEN;
	}
	*inode = found;
	return i->layer == layer ? LAYER_NEW : LAYER_MERGED;
}

void source_layer_added(struct source *s, uint32_t inode)
{
	struct source_inode *i = &s->inodes[inode];
	const struct source_entry *e;
	const struct source_whiteout *w;

	i->layer = (uint16_t)s->state->layer;
	if (!s->state->whiteouts || !S_ISDIR(i->mode) || i->name == SOURCE_NONE)
		return;
	e = &s->entries[i->name];
	w = find(s, e->parent, e->name, e->len);
	if (w)
		close_to(s, inode, w->layer);
}

int source_layer_remove(struct source *s, uint32_t parent, const char *name, size_t len, struct btrkit_error *err)
{
	const uint32_t found = source_find(s, parent, name, len);
	struct source_whiteout *w = find(s, parent, name, len);
	bool hides = found == SOURCE_NONE;

	if (!hides && S_ISDIR(s->inodes[found].mode)) {
		/* A layer above hides the entries already, but this layer's own member may give the attributes. */
		hides = s->inodes[found].count > s->state->layer && s->inodes[found].bits & BIT_OPAQUE;
		if (!hides)
			close_to(s, found, s->state->layer);
	}
	/* A whiteout of a layer above hides more. */
	if (!hides || w || len > SOURCE_NAME_MAX)
		return 0;
	w = malloc(sizeof(*w) + len);
	if (!w)
		return err_nomem(err);
	w->layer = s->state->layer;
	HASH_ADD(hh, s->state->whiteouts, key, key_of(parent, name, len, &w->key), w);
	if (!w->hh.tbl) {
		free(w);
		return err_nomem(err);
	}
	return 0;
}

void source_layer_close(struct source *s, uint32_t dir)
{
	struct source_inode *i = &s->inodes[dir];

	if (i->count >= s->state->layer)
		return;
	i->count = s->state->layer;
	i->bits |= BIT_OPAQUE;
}

void source_layers_free(struct source_state *st)
{
	struct source_whiteout *w, *next;

	HASH_ITER(hh, st->whiteouts, w, next) {
		HASH_DEL(st->whiteouts, w);
		free(w);
	}
}

const char *source_overlay_word(const char *name)
{
	static const char *const prefixes[] = { "trusted.overlay.", "user.overlay." };

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
			return name + strlen(prefixes[i]);
	return NULL;
}
