// SPDX-License-Identifier: LGPL-2.1-or-later
/* Options for names: exclusions, subvolumes, inode flags. */
#include "lib/source/layers.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/err.h"

#define FLAGS_KNOWN (BTRKIT_SOURCE_ROOT_OWNER | BTRKIT_SOURCE_NO_HOST_XATTRS | BTRKIT_SOURCE_WHITEOUTS | \
		     BTRKIT_SOURCE_ACCEPT_CHANGES)

/* Returns the next name of a path. @return its length; 0: end of the path; -EINVAL: ".." or too long */
static int next_name(const char **at, const char **name, const char *path, struct btrkit_error *err)
{
	size_t len;

	*name = source_next_name(at, &len);
	if (len == 2 && !memcmp(*name, "..", 2))
		return err_set(err, BTRKIT_INVALID, "%s: path must not contain ..", path);
	if (len > SOURCE_NAME_MAX)
		return err_set(err, BTRKIT_INVALID, "%s: name is longer than %u bytes", path, SOURCE_NAME_MAX);
	return (int)len;
}

static uint32_t child_of(const struct source_state *st, uint32_t node, const char *name, size_t len)
{
	uint32_t i = st->nodes[node].child;

	while (i != SOURCE_NONE && (st->nodes[i].len != len || memcmp(st->nodes[i].name, name, len)))
		i = st->nodes[i].sibling;
	return i;
}

static int add_node(struct source_state *st, uint32_t parent, const char *name, size_t len, uint32_t *ret)
{
	struct source_node *grown;

	/* The array grows at powers of two. */
	if (!(st->num_nodes & (st->num_nodes - 1))) {
		grown = reallocarray(st->nodes, st->num_nodes ? st->num_nodes * 2u : 1, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		st->nodes = grown;
	}
	*ret = st->num_nodes++;
	st->nodes[*ret] = (struct source_node){
		.name = name,
		.len = len,
		.parent = parent,
		.child = SOURCE_NONE,
		.sibling = *ret ? st->nodes[parent].child : SOURCE_NONE,
		.inode = SOURCE_NONE,
		.subvolume = SOURCE_NONE,
	};
	if (*ret)
		st->nodes[parent].child = *ret;
	return 0;
}

/* Finds or adds the node of a path. */
static int node_of_path(struct source_state *st, const char *path, uint32_t *ret, struct btrkit_error *err)
{
	const char *at = path, *name;
	uint32_t node = 0;
	int len;

	while ((len = next_name(&at, &name, path, err)) > 0) {
		uint32_t child = child_of(st, node, name, (size_t)len);

		if (child == SOURCE_NONE && add_node(st, node, name, (size_t)len, &child))
			return err_nomem(err);
		node = child;
	}
	*ret = node;
	return len;
}

static int read_flags(struct source *s, struct btrkit_error *err)
{
	const struct btrkit_mkfs_source *o = s->state->opts;

	for (size_t i = 0; i < o->num_inode_flags; i++) {
		const struct btrkit_mkfs_inode_flags *f = &o->inode_flags[i];
		uint32_t node;
		int ret = node_of_path(s->state, f->path, &node, err);

		if (ret < 0)
			return ret;
		if (s->state->nodes[node].flags)
			return err_set(err, BTRKIT_INVALID, "%s: flags are specified twice", f->path);
		s->state->nodes[node].flags = f;
	}
	return 0;
}

struct wanted {
	const struct btrkit_mkfs_subvolume *option;
	uint32_t node;
};

/* Compares paths name by name, so that a directory comes before its contents, as in the numbering of inodes. */
static int compare_paths(const void *a, const void *b)
{
	const struct wanted *x = a, *y = b;
	const char *p = x->option->path, *q = y->option->path, *name_p, *name_q;

	for (;;) {
		int n = next_name(&p, &name_p, p, NULL), m = next_name(&q, &name_q, q, NULL);
		int c = n > 0 && m > 0 ? memcmp(name_p, name_q, (size_t)(n < m ? n : m)) : 0;

		if (c || n != m)
			return c ? c : n < m ? -1 : 1;
		if (n <= 0)
			return 0;
	}
}

static int make_subvolumes(struct source *s, const struct wanted *wanted, size_t n, struct btrkit_error *err)
{
	bool has_default = false;

	for (size_t i = 0; i < n; i++) {
		struct source_node *node = &s->state->nodes[wanted[i].node];
		const struct btrkit_mkfs_subvolume *o = wanted[i].option;

		if (!wanted[i].node)
			return err_set(err, BTRKIT_INVALID, "%s: the top directory is always a subvolume", o->path);
		if (node->subvolume != SOURCE_NONE)
			return err_set(err, BTRKIT_INVALID, "%s: subvolume is specified twice", o->path);
		if (o->is_default && has_default)
			return err_set(err, BTRKIT_INVALID, "%s: more than one default subvolume", o->path);
		has_default |= o->is_default;
		node->subvolume = s->num_subvolumes;
		s->subvolumes[s->num_subvolumes++] = (struct source_subvolume){
			.path = o->path,
			.root = SOURCE_NONE,
			.parent = SOURCE_NONE,
			.entry = SOURCE_NONE,
			.readonly = o->readonly,
			.is_default = o->is_default,
		};
	}
	return 0;
}

static int read_subvolumes(struct source *s, struct btrkit_error *err)
{
	const struct btrkit_mkfs_source *o = s->state->opts;
	struct wanted *wanted;
	int ret = 0;

	if (o->num_subvolumes >= SOURCE_NONE - 1)
		return err_set(err, BTRKIT_INVALID, "too many subvolumes: %zu", o->num_subvolumes);
	s->subvolumes = calloc(o->num_subvolumes + 1, sizeof(*s->subvolumes));
	wanted = calloc(o->num_subvolumes + 1, sizeof(*wanted));
	if (!s->subvolumes || !wanted)
		ret = err_nomem(err);
	for (size_t i = 0; i < o->num_subvolumes && !ret; i++) {
		wanted[i].option = &o->subvolumes[i];
		ret = node_of_path(s->state, o->subvolumes[i].path, &wanted[i].node, err);
	}
	if (!ret) {
		s->subvolumes[s->num_subvolumes++] =
			(struct source_subvolume){ .path = "", .parent = SOURCE_NONE, .entry = SOURCE_NONE };
		qsort(wanted, o->num_subvolumes, sizeof(*wanted), compare_paths);
		ret = make_subvolumes(s, wanted, o->num_subvolumes, err);
	}
	free(wanted);
	return ret;
}

static int check_layers(const struct btrkit_mkfs_source *o, struct btrkit_error *err)
{
	size_t standard = !strcmp(o->path, "-");

	if (!o->num_layers)
		return 0;
	if (o->kind == BTRKIT_SOURCE_MANIFEST)
		return err_set(err, BTRKIT_INVALID, "a manifest cannot be a layer");
	if (o->flags & BTRKIT_SOURCE_WHITEOUTS)
		return err_set(err, BTRKIT_INVALID, "whiteouts of layers are applied, and cannot be copied");
	if (o->num_layers >= SOURCE_LAYERS_MAX)
		return err_set(err, BTRKIT_INVALID, "%zu layers, maximum is %u", o->num_layers + 1, SOURCE_LAYERS_MAX);
	for (size_t i = 0; i < o->num_layers; i++) {
		if (!o->layers[i])
			return err_set(err, BTRKIT_INVALID, "layer without a path");
		standard += !strcmp(o->layers[i], "-");
	}
	if (o->kind == BTRKIT_SOURCE_ARCHIVE && standard > 1)
		return err_set(err, BTRKIT_INVALID, "only one layer can be the standard input");
	return 0;
}

int source_options_read(struct source *s, struct btrkit_error *err)
{
	const struct btrkit_mkfs_source *o = s->state->opts;
	uint32_t top;
	int ret;

	if (o->kind < BTRKIT_SOURCE_DIRECTORY || o->kind > BTRKIT_SOURCE_MANIFEST)
		return err_set(err, BTRKIT_INVALID, "source of unknown kind %d", (int)o->kind);
	if (o->flags & ~(unsigned)FLAGS_KNOWN)
		return err_set(err, BTRKIT_INVALID, "source with unknown flags 0x%x",
			       o->flags & ~(unsigned)FLAGS_KNOWN);
	if (o->flags & BTRKIT_SOURCE_ROOT_OWNER && (o->root_uid == UINT32_MAX || o->root_gid == UINT32_MAX))
		return err_set(err, BTRKIT_INVALID, "invalid uid or gid %" PRIu32, UINT32_MAX);
	if (!o->path)
		return err_set(err, BTRKIT_INVALID, "source without a path");
	if (o->flags & BTRKIT_SOURCE_ACCEPT_CHANGES && o->kind != BTRKIT_SOURCE_DIRECTORY)
		return err_set(err, BTRKIT_INVALID, "changes can only be accepted of the files in a directory");
	ret = check_layers(o, err);
	if (ret)
		return ret;
	for (size_t i = 0; i < o->num_subvolumes; i++)
		if (!o->subvolumes[i].path)
			return err_set(err, BTRKIT_INVALID, "subvolume without a path");
	for (size_t i = 0; i < o->num_inode_flags; i++)
		if (!o->inode_flags[i].path)
			return err_set(err, BTRKIT_INVALID, "inode flags without a path");
	if (add_node(s->state, 0, "", 0, &top))
		return err_nomem(err);
	ret = read_subvolumes(s, err);
	if (!ret)
		ret = read_flags(s, err);
	for (size_t i = 0; i < o->num_exclude; i++)
		s->state->whole_paths |= strchr(o->exclude[i], '/') != NULL;
	return ret;
}

bool source_streams(const struct source *s)
{
	return s->state->opts->kind == BTRKIT_SOURCE_ARCHIVE;
}

uint32_t source_node_of(struct source *s, uint32_t parent, const char *name, size_t len)
{
	struct source_state *st = s->state;

	if (!(s->inodes[parent].bits & BIT_NAMED))
		return SOURCE_NONE;
	/* Names mostly arrive directory by directory, so try the last node first. */
	if (st->nodes[st->last_node].inode != parent) {
		st->last_node = 0;
		while (st->last_node < st->num_nodes && st->nodes[st->last_node].inode != parent)
			st->last_node++;
		if (st->last_node == st->num_nodes) {
			st->last_node = 0;
			return SOURCE_NONE;
		}
	}
	return child_of(st, st->last_node, name, len);
}

/* Puts the path of an entry into state->path. */
static int join_path(struct source *s, uint32_t parent, const char *name, size_t len, struct btrkit_error *err)
{
	struct source_state *st = s->state;

	if (st->path_of != parent) {
		ssize_t n = source_full_path(s, parent, &st->path, &st->path_max);

		st->path_of = SOURCE_NONE;
		if (n < 0)
			return err_nomem(err);
		st->path_len = (size_t)n;
		st->path_of = parent;
	}
	if (st->path_len + len + 2 > st->path_max) {
		char *grown = realloc(st->path, 2 * (st->path_len + len) + 256);

		if (!grown)
			return err_nomem(err);
		st->path = grown;
		st->path_max = 2 * (st->path_len + len) + 256;
	}
	if (st->path_len)
		st->path[st->path_len] = '/';
	memcpy(st->path + st->path_len + (st->path_len ? 1 : 0), name, len);
	st->path[st->path_len + (st->path_len ? 1 : 0) + len] = '\0';
	return 0;
}

int source_excludes(struct source *s, uint32_t parent, const char *name, size_t len, struct btrkit_error *err)
{
	const struct btrkit_mkfs_source *o = s->state->opts;
	char last[SOURCE_NAME_MAX + 1];
	int ret;

	/* Names that are too long are refused later. */
	if (!o->num_exclude || len > SOURCE_NAME_MAX)
		return 0;
	memcpy(last, name, len);
	last[len] = '\0';
	if (s->state->whole_paths) {
		ret = join_path(s, parent, name, len, err);
		if (ret < 0)
			return ret;
	}
	for (size_t i = 0; i < o->num_exclude; i++) {
		const bool whole = strchr(o->exclude[i], '/');

		if (!fnmatch(o->exclude[i], whole ? s->state->path : last, FNM_PATHNAME))
			return 1;
	}
	return 0;
}

static bool matches_one(const char *const *patterns, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (!fnmatch(patterns[i], name, 0))
			return true;
	return false;
}

bool source_takes_xattr(const struct source *s, const char *name)
{
	const struct btrkit_mkfs_source *o = s->state->opts;

	if (matches_one(o->with_xattrs, o->num_with_xattrs, name))
		return true;
	if (matches_one(o->without_xattrs, o->num_without_xattrs, name))
		return false;
	return !(o->flags & BTRKIT_SOURCE_NO_HOST_XATTRS) ||
	       (strncmp(name, "system.", 7) && strncmp(name, "trusted.overlay.", 16) &&
		strcmp(name, "security.selinux"));
}

static int path_not_there(const char *path, const char *what, struct btrkit_error *err)
{
	return err_set(err, BTRKIT_NOT_FOUND, "%s: no such %s in the source", path, what);
}

int source_nodes_met(const struct source *s, struct btrkit_error *err)
{
	for (uint32_t i = 1; i < s->state->num_nodes; i++) {
		const struct source_node *n = &s->state->nodes[i];

		if (n->inode != SOURCE_NONE)
			continue;
		if (n->subvolume != SOURCE_NONE)
			return path_not_there(s->subvolumes[n->subvolume].path, "directory", err);
		if (n->flags)
			return path_not_there(n->flags->path, "file", err);
	}
	return 0;
}

uint8_t source_flags_inherited(const struct source *s, uint32_t parent, uint32_t subvolume, uint32_t mode)
{
	const struct source_inode *dir = &s->inodes[parent];
	uint8_t flags = 0;

	if (dir->subvolume != subvolume)
		return 0;
	if (dir->flags & SOURCE_NODATACOW)
		flags = SOURCE_NODATACOW | (S_ISREG(mode) ? SOURCE_NODATASUM : 0);
	if ((dir->flags & SOURCE_NODATASUM) && (S_ISREG(mode) || S_ISDIR(mode)))
		flags |= SOURCE_NODATASUM;
	return flags;
}

uint8_t source_flags_own(uint8_t bits, uint32_t mode)
{
	uint8_t flags = 0;

	if (bits & BIT_OWN_NODATACOW)
		flags = SOURCE_NODATACOW | (S_ISREG(mode) ? SOURCE_NODATASUM : 0);
	if (bits & BIT_OWN_NODATASUM)
		flags |= SOURCE_NODATASUM;
	return flags;
}
