/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_SOURCE_LAYERS_H
#define BTRKIT_SOURCE_LAYERS_H

/*
 * Several sources as layers of one filesystem. They are read from the top down, so that nothing has to be taken back:
 * a name that is there already hides the same name of all layers below, and so does a whiteout.
 *
 * Example: the layer above has "etc/passwd" and a whiteout for "tmp"; the layer below has "etc/passwd", "etc/group" and
 * "tmp/x". Of the latter only "etc/group" is taken, into the directory "etc" that is there already.
 */

#include "lib/source/state.h"

#define SOURCE_LAYERS_MAX 500u /* as in overlayfs */

/* Returns whether there are several layers. */
bool source_layered(const struct source *s);
/* Returns the path of a layer, as given in the options; 0 is the lowest. */
const char *source_layer_path(const struct source *s, uint32_t layer);

/* What the layers above the current one, and itself, make of a name in it. */
enum layer_view {
	LAYER_NEW,    /* nothing hides it */
	LAYER_MERGED, /* a directory that a layer above has, too: its entries are taken */
	/*
	 * A directory that no member of the layers above describes, and that one of them marks as opaque: its
	 * attributes are taken, but not its entries.
	 */
	LAYER_ATTRIBUTES,
	LAYER_HIDDEN
};
/*
 * Decides about a name in a directory that is not hidden. If a layer above has a directory there and this one has
 * something else, that directory hides what layers below have in theirs. @is_dir: what the current layer has there;
 * @inode: receives the directory for LAYER_MERGED and LAYER_ATTRIBUTES
 */
enum layer_view source_layer_look(struct source *s, uint32_t parent, const char *name, size_t len, bool is_dir,
				  uint32_t *inode);
/* Call for each name that was added to a layer. */
void source_layer_added(struct source *s, uint32_t inode);
/* Hides a name of the layers below: a whiteout. */
int source_layer_remove(struct source *s, uint32_t parent, const char *name, size_t len,
			struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Hides what the layers below have in a directory: an opaque one. Its own attributes are not hidden by that. */
void source_layer_close(struct source *s, uint32_t dir);
void source_layers_free(struct source_state *st);

/* Returns the part of an attribute's name behind "trusted.overlay." or "user.overlay."; NULL: another attribute. */
const char *source_overlay_word(const char *name);

#endif
