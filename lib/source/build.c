// SPDX-License-Identifier: LGPL-2.1-or-later
/* Adds inodes and names to a source. */
#include "lib/source/files.h"
#include "lib/source/layers.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/format/items/files/dir.h"

#define NSEC_MAX 999999999u

uint32_t source_identity(dev_t device, ino_t inode)
{
	uint64_t v = ((uint64_t)inode ^ (uint64_t)device << 40 ^ (uint64_t)device >> 24) * UINT64_C(0x9e3779b97f4a7c15);

	return (uint32_t)(v >> 32);
}

/* Ensures space for one more element, growing by half. @return the new maximum; 0: out of memory */
static uint32_t grow(void **array, size_t size, uint32_t n, uint32_t max)
{
	const uint32_t wanted = max > UINT32_MAX / 3 * 2 ? SOURCE_NONE - 1 : max + max / 2 + 64;
	void *grown;

	if (n < max)
		return max;
	if (n >= SOURCE_NONE - 1)
		return 0;
	grown = reallocarray(*array, wanted, size);
	if (!grown)
		return 0;
	*array = grown;
	return wanted;
}

static int new_inode(struct source *s, uint32_t *ret, struct btrkit_error *err)
{
	void *array = s->inodes;
	const uint32_t max = grow(&array, sizeof(*s->inodes), s->num_inodes, s->state->max_inodes);

	if (!max)
		return err_nomem(err);
	s->inodes = array;
	s->state->max_inodes = max;
	*ret = s->num_inodes++;
	s->inodes[*ret] = (struct source_inode){ .name = SOURCE_NONE, .contents = *ret, .next_sharing = SOURCE_NONE };
	return 0;
}

/* The index of names: a hash table with open addressing, at most half full. */

static uint64_t index_hash(const struct source_state *st, uint32_t parent, const char *name, size_t len)
{
	uint64_t h = st->index_seed ^ parent * UINT64_C(0x9e3779b97f4a7c15) ^ len;

	for (; len; len -= len < 8 ? len : 8, name += 8) {
		uint64_t word = 0;

		memcpy(&word, name, len < 8 ? len : 8);
		h = (h ^ word) * UINT64_C(0xff51afd7ed558ccd);
		h ^= h >> 29;
		/* The seed makes it unpredictable how a difference spreads, so that no one can construct collisions. */
		h *= st->index_seed | 1;
		h ^= h >> 32;
	}
	h *= UINT64_C(0xc4ceb9fe1a85ec53);
	return h ^ h >> 29;
}

static void index_put(struct source *s, uint32_t entry)
{
	const struct source_entry *e = &s->entries[entry];
	const size_t mask = s->state->index_size - 1;
	size_t at = index_hash(s->state, e->parent, e->name, e->len) & mask;

	while (s->state->index[at] != SOURCE_NONE)
		at = (at + 1) & mask;
	s->state->index[at] = entry;
}

static int index_resize(struct source *s, size_t size, struct btrkit_error *err)
{
	struct source_state *st = s->state;
	uint32_t *index = malloc(size * sizeof(*index));

	if (!index)
		return err_nomem(err);
	memset(index, 0xff, size * sizeof(*index));
	free(st->index);
	st->index = index;
	st->index_size = size;
	for (uint32_t i = 0; i < s->num_entries; i++)
		index_put(s, i);
	return 0;
}

/* Grows the index if it is full. */
static int index_reserve(struct source *s, struct btrkit_error *err)
{
	const size_t size = s->state->index_size;

	return size && s->num_entries >= size / 2 ? index_resize(s, size * 2, err) : 0;
}

uint32_t source_find(const struct source *s, uint32_t parent, const char *name, size_t len)
{
	const struct source_state *st = s->state;
	const size_t mask = st->index_size - 1;

	if (!st->index_size)
		return SOURCE_NONE;
	for (size_t at = index_hash(st, parent, name, len) & mask;; at = (at + 1) & mask) {
		const struct source_entry *e;

		if (st->index[at] == SOURCE_NONE)
			return SOURCE_NONE;
		e = &s->entries[st->index[at]];
		if (e->parent == parent && e->len == len && !memcmp(e->name, name, len))
			return e->inode;
	}
}

/* Allocates everything for an entry, so that put_entry() cannot fail. */
static int reserve_entry(struct source *s, const char *name, size_t len, struct source_entry *ret,
			 struct btrkit_error *err)
{
	void *array = s->entries;
	const uint32_t max = grow(&array, sizeof(*s->entries), s->num_entries, s->state->max_entries);
	int failed;

	if (!max)
		return err_nomem(err);
	s->entries = array;
	s->state->max_entries = max;
	failed = index_reserve(s, err);
	if (failed)
		return failed;
	*ret = (struct source_entry){
		.name = pool_copy(&s->state->pool, name, len),
		.len = (uint8_t)len,
		.hash = (uint32_t)dir_name_hash(name, len),
	};
	return ret->name ? 0 : err_nomem(err);
}

static void put_entry(struct source *s, struct source_entry *e, uint32_t parent, uint32_t inode)
{
	const uint32_t at = s->num_entries++;

	e->parent = parent;
	e->inode = inode;
	s->entries[at] = *e;
	if (s->state->index_size)
		index_put(s, at);
	if (s->inodes[inode].name == SOURCE_NONE)
		s->inodes[inode].name = at;
	s->inodes[inode].nlink++;
}

static int check_name(const struct source *s, uint32_t parent, const char *name, size_t len, struct btrkit_error *err)
{
	if (!dir_name_possible(name, len))
		return source_fail_name(s, parent, name, len, err, EINVAL, "invalid file name");
	if (len > SOURCE_NAME_MAX)
		return source_fail_name(s, parent, name, len, err, EINVAL, "name is too long: %zu bytes, maximum is %u",
					len, SOURCE_NAME_MAX);
	if (!S_ISDIR(s->inodes[parent].mode))
		return source_fail(s, parent, err, EINVAL, "not a directory, but has entries");
	return 0;
}

/* @return what is invalid; NULL: nothing */
static const char *check_attr(const struct source_attr *a)
{
	switch (a->mode & S_IFMT) {
	case S_IFREG:
		if (a->size > INT64_MAX)
			return "file size is too large";
		break;
	case S_IFLNK:
		if (!a->text || !*a->text)
			return "symbolic link without a target";
		break;
	case S_IFDIR:
	case S_IFCHR:
	case S_IFBLK:
	case S_IFIFO:
	case S_IFSOCK:
		break;
	default:
		return "unknown file type";
	}
	if (a->uid == UINT32_MAX || a->gid == UINT32_MAX)
		return "invalid uid or gid";
	if (a->atime.nsec > NSEC_MAX || a->mtime.nsec > NSEC_MAX || a->ctime.nsec > NSEC_MAX)
		return "time with more than 999999999 ns";
	return NULL;
}

static int check_entry(const struct source *s, uint32_t parent, const char *name, size_t len,
		       const struct source_attr *a, struct btrkit_error *err)
{
	const char *wrong = check_attr(a);

	if (wrong)
		return source_fail_name(s, parent, name, len, err, EINVAL, "%s", wrong);
	if (S_ISLNK(a->mode) && strlen(a->text) > s->state->limits.symlink)
		return source_fail_name(s, parent, name, len, err, ENAMETOOLONG,
					"target of symbolic link is too long: %zu bytes, maximum is %" PRIu32,
					strlen(a->text), s->state->limits.symlink);
	return 0;
}

static int set_attr(struct source *s, struct source_inode *i, const struct source_attr *a)
{
	const bool link = S_ISLNK(a->mode), file = S_ISREG(a->mode);
	const char *text = NULL;

	if (a->text && (link || file)) {
		text = pool_copy(&s->state->pool, a->text, a->is_inline ? a->size : strlen(a->text));
		if (!text)
			return -ENOMEM;
	}
	i->text = text;
	i->size = link ? strlen(text) : file ? a->size : 0;
	i->atime = a->atime;
	i->mtime = a->mtime;
	i->ctime = a->ctime;
	/* Linux makes and shows no other mode of a symbolic link, whatever an archive says. */
	i->mode = link ? S_IFLNK | 0777 : a->mode;
	i->uid = a->uid;
	i->gid = a->gid;
	i->rdev = S_ISCHR(a->mode) || S_ISBLK(a->mode) ? a->rdev : 0;
	if (file)
		i->identity = a->identity;
	if (file && a->is_inline)
		i->bits |= BIT_INLINE;
	return 0;
}

static uint8_t own_bits(const struct btrkit_mkfs_inode_flags *f)
{
	return (f->nodatacow ? BIT_OWN_NODATACOW : 0) | (f->nodatasum ? BIT_OWN_NODATASUM : 0);
}

/* Applies the options for a path to the inode that was added for it. */
static int apply_node(struct source *s, uint32_t node, uint32_t parent, uint32_t inode, struct btrkit_error *err)
{
	struct source_node *n = &s->state->nodes[node];
	struct source_inode *i = &s->inodes[inode];

	if (n->subvolume != SOURCE_NONE) {
		if (!S_ISDIR(i->mode))
			return source_fail(s, inode, err, EINVAL, "cannot be a subvolume: not a directory");
		s->subvolumes[n->subvolume].root = inode;
		s->subvolumes[n->subvolume].parent = s->inodes[parent].subvolume;
		i->subvolume = n->subvolume;
	}
	if (n->flags)
		i->bits |= own_bits(n->flags);
	i->bits |= BIT_NAMED;
	n->inode = inode;
	return 0;
}

int source_add(struct source *s, uint32_t parent, const char *name, size_t len, const struct source_attr *a,
	       uint32_t *inode, struct btrkit_error *err)
{
	uint32_t added, node;
	struct source_entry entry;
	struct source_inode *i;
	int ret = check_name(s, parent, name, len, err);

	if (!ret)
		ret = source_excludes(s, parent, name, len, err);
	if (!ret)
		ret = check_entry(s, parent, name, len, a, err);
	if (!ret)
		ret = reserve_entry(s, name, len, &entry, err);
	if (!ret)
		ret = new_inode(s, &added, err);
	if (ret)
		return ret;
	i = &s->inodes[added];
	i->subvolume = s->inodes[parent].subvolume;
	if (set_attr(s, i, a)) {
		s->num_inodes--;
		return err_nomem(err);
	}
	put_entry(s, &entry, parent, added);
	source_layer_added(s, added);
	node = source_node_of(s, parent, name, len);
	if (node != SOURCE_NONE) {
		ret = apply_node(s, node, parent, added, err);
		if (ret < 0)
			return ret;
	}
	i->flags = source_flags_inherited(s, parent, i->subvolume, i->mode) | source_flags_own(i->bits, i->mode);
	*inode = added;
	return 0;
}

/* Applies the flags that options give to another name of an inode. */
static int apply_link_node(struct source *s, uint32_t node, uint32_t inode, bool made, struct btrkit_error *err)
{
	struct source_node *n = &s->state->nodes[node];
	struct source_inode *i = &s->inodes[inode];
	uint16_t flags;

	if (n->subvolume != SOURCE_NONE)
		return source_fail(s, inode, err, EINVAL, "cannot be a subvolume: not a directory");
	n->inode = inode;
	if (!n->flags)
		return 0;
	i->bits |= own_bits(n->flags);
	flags = i->flags | source_flags_own(i->bits, i->mode);
	if (flags != i->flags && !made && source_streams(s))
		return source_fail(s, inode, err, EINVAL,
				   "flags are requested for %s, a later name of this file: request them for this one",
				   n->flags->path);
	i->flags = flags;
	return 0;
}

/* Finds the inode of a file in the subvolume of @parent, or adds one that shares its contents. */
static int in_subvolume(struct source *s, uint32_t parent, uint32_t *inode, bool *made, struct btrkit_error *err)
{
	const uint32_t subvolume = s->inodes[parent].subvolume;
	uint32_t added, at, last = SOURCE_NONE;
	struct source_inode *first, *i;
	int ret;

	for (at = s->inodes[*inode].contents; at != SOURCE_NONE; at = s->inodes[at].next_sharing) {
		last = at;
		if (s->inodes[at].subvolume == subvolume) {
			*inode = at;
			return 0;
		}
	}
	ret = source_xattrs_flush(s, err);
	if (!ret)
		ret = new_inode(s, &added, err);
	if (ret < 0)
		return ret;
	i = &s->inodes[added];
	first = &s->inodes[s->inodes[*inode].contents];
	*i = *first;
	i->name = i->next_sharing = SOURCE_NONE;
	i->nlink = 0;
	i->subvolume = subvolume;
	i->bits &= BIT_INLINE;
	i->flags = source_flags_inherited(s, parent, subvolume, i->mode) | (first->flags & SOURCE_CHATTR);
	i->contents = first->contents;
	s->inodes[last].next_sharing = added;
	*inode = added;
	*made = true;
	s->cut_links++;
	return 0;
}

int source_add_link(struct source *s, uint32_t parent, const char *name, size_t len, uint32_t inode,
		    struct btrkit_error *err)
{
	bool made = false;
	struct source_entry entry;
	uint32_t node;
	int ret = check_name(s, parent, name, len, err);

	if (!ret)
		ret = source_excludes(s, parent, name, len, err);
	if (ret)
		return ret;
	if (S_ISDIR(s->inodes[inode].mode))
		return source_fail_name(s, parent, name, len, err, EINVAL, "hard link to a directory");
	ret = reserve_entry(s, name, len, &entry, err);
	if (!ret && s->inodes[parent].subvolume != s->inodes[inode].subvolume)
		ret = in_subvolume(s, parent, &inode, &made, err);
	if (ret < 0)
		return ret;
	put_entry(s, &entry, parent, inode);
	node = source_node_of(s, parent, name, len);
	return node == SOURCE_NONE ? 0 : apply_link_node(s, node, inode, made, err);
}

void source_add_flags(struct source *s, uint32_t inode, unsigned flags)
{
	struct source_inode *i = &s->inodes[inode];

	if (S_ISREG(i->mode) || S_ISDIR(i->mode))
		i->flags |= (uint16_t)(flags & SOURCE_CHATTR);
}

int source_set_attr(struct source *s, uint32_t inode, const struct source_attr *a, struct btrkit_error *err)
{
	const struct btrkit_mkfs_source *o = s->state->opts;
	struct source_inode *i = &s->inodes[inode];
	const char *wrong = check_attr(a);

	if (!wrong && !S_ISDIR(a->mode))
		wrong = inode ? "both a directory and something else" : "not a directory";
	if (wrong)
		return source_fail(s, inode, err, EINVAL, "%s", wrong);
	(void)set_attr(s, i, a);
	i->bits &= ~BIT_IMPLICIT;
	if (!inode && (o->flags & BTRKIT_SOURCE_ROOT_OWNER)) {
		i->uid = o->root_uid;
		i->gid = o->root_gid;
	}
	return 0;
}

static int make_roots(struct source *s, struct btrkit_error *err)
{
	const size_t n = s->state->opts->num_layers + 1;

	s->state->roots = reallocarray(NULL, n, sizeof(*s->state->roots));
	if (!s->state->roots)
		return err_nomem(err);
	for (size_t i = 0; i < n; i++)
		s->state->roots[i] = -1;
	s->state->layer = (uint32_t)n - 1;
	return 0;
}

int source_create(const struct btrkit_mkfs_source *opts, const struct source_limits *limits, struct source **ret,
		  struct btrkit_error *err)
{
	struct source *s = calloc(1, sizeof(*s));
	struct source_attr top = { .mode = S_IFDIR | 0755 };
	uint32_t inode;
	int failed;

	if (s)
		s->state = calloc(1, sizeof(*s->state));
	if (!s || !s->state) {
		free(s);
		return err_nomem(err);
	}
	s->state->opts = opts;
	s->state->limits = *limits;
	s->state->path_of = s->state->xattrs.inode = SOURCE_NONE;
	s->state->in_between = getenv("LD_PRELOAD");
	pthread_mutex_init(&s->state->stat_lock, NULL);
	failed = source_options_read(s, err);
	if (!failed)
		failed = make_roots(s, err);
	if (!failed)
		failed = source_changes_create(s, err);
	if (!failed)
		failed = new_inode(s, &inode, err);
	if (!failed && (opts->kind != BTRKIT_SOURCE_DIRECTORY || source_layered(s))) {
		s->state->index_seed = (uintptr_t)s->state * UINT64_C(0x9e3779b97f4a7c15);
		failed = index_resize(s, 1024, err);
	}
	if (!failed) {
		s->inodes[0].nlink = 1;
		source_layer_added(s, 0);
		failed = source_set_attr(s, 0, &top, err);
		s->inodes[0].bits |= BIT_IMPLICIT;
	}
	if (!failed)
		failed = apply_node(s, 0, 0, 0, err);
	if (failed) {
		source_destroy(s);
		return failed;
	}
	s->inodes[0].flags = source_flags_own(s->inodes[0].bits, S_IFDIR);
	*ret = s;
	return 0;
}

struct source *source_destroy(struct source *s)
{
	if (!s)
		return NULL;
	for (size_t i = 0; s->state->roots && i <= s->state->opts->num_layers; i++)
		if (s->state->roots[i] >= 0)
			close(s->state->roots[i]);
	free(s->state->roots);
	source_layers_free(s->state);
	source_changes_destroy(s->state);
	pthread_mutex_destroy(&s->state->stat_lock);
	source_xattrs_drop(s);
	pool_free(&s->state->pool);
	free(s->state->nodes);
	free(s->state->path);
	free(s->state->index);
	free(s->state);
	free(s->inodes);
	free(s->entries);
	free(s->subvolumes);
	free(s->in_order);
	free(s);
	return NULL;
}
