// SPDX-License-Identifier: LGPL-2.1-or-later
/* Lists subvolumes, with what `btrfs subvolume list` and `show` say about them. */
#include <btrkit/inspect.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/base/text.h"
#include "lib/base/uuid.h"
#include "lib/format/items/root.h"
#include "lib/fs/subvolume.h"
#include "lib/report/subvolumes.h"

/* A snapshot, and the UUID of its source. */
struct snapshot {
	uint8_t of[16];
	uint64_t id;
};

struct job {
	const struct btrkit_subvolumes_options *o;
	struct subvolume_listed *listed;
	size_t num_listed, listed_room;
	struct btrkit_fs *fs;
	btrkit_subvolume_fn fn;
	btrkit_lost_fn lost; /* NULL: the first damage ends the listing */
	void *ctx;
	struct cursor c;	/* in the root tree, in addition to the listing's cursor */
	struct snapshot *snapshots; /* sorted by their source */
	uint64_t *ids;		    /* of these */
	size_t count, room;
	uint64_t default_id; /* the default subvolume; 0: not asked for */
	struct btrkit_error what; /* why no path is found; cleared only if there was one, for speed */
	/* The path of the current subvolume. */
	struct btrkit_error *err;
	char *path;
	size_t path_len;
};

typedef int (*subvolume_fn)(struct job *j, uint64_t id, const struct root_item *item, struct btrkit_error *err);

/* Grows an array if it is full. */
static int grow(void **at, size_t count, size_t *room, size_t size, struct btrkit_error *err)
{
	const size_t more = *room ? 2 * *room : 64;
	void *new;

	if (count < *room)
		return 0;
	new = realloc(*at, more * size);
	if (!new)
		return err_nomem(err);
	*at = new;
	*room = more;
	return 0;
}

/* A pass over the root items. */
struct pass {
	struct job *j;
	struct cursor c;
	struct btrkit_key at; /* of the last item, or behind what cannot be read */
	bool tell;	      /* what is missing: of several passes only one does */
	struct btrkit_error *err;
};

/* Tells what is missing because of @what, which failed with @ret. @return 0: it goes on; <0 */
static int tell(const struct job *j, int ret, const struct btrkit_error *what, struct btrkit_error *err)
{
	return j->lost && ret != -ENOMEM ? j->lost(j->ctx, what) : err_pass(err, what, ret);
}

/* A cursor_lost_fn. A leaf without root items takes no subvolume from the listing. */
static int lose_block(void *ctx, int ret, const struct btrkit_error *what)
{
	const struct pass *p = ctx;
	struct btrkit_error told = *what;
	struct btrkit_key key, end;
	uint64_t first, last;

	if (!p->j->lost || ret == -ENOMEM)
		return err_pass(p->err, what, ret);
	if (cursor_lost_keys(&p->c, &key, &end) || key_cmp(&key, &p->at) < 0)
		key = p->at;
	first = key.type > KEY_ROOT_ITEM ? key.objectid + 1 : key.objectid;
	last = end.type > KEY_ROOT_ITEM ? end.objectid : end.objectid - 1;
	if (first < OID_FIRST_FREE)
		first = OID_FIRST_FREE;
	/* Keys that do not increase end the listing. */
	if (last > OID_LAST_FREE || key_cmp(&end, &p->at) <= 0)
		last = OID_LAST_FREE;
	if (!p->tell || first > last)
		return 0;
	if (last == OID_LAST_FREE)
		text_add(told.message, sizeof(told.message),
			 "; subvolumes from %" PRIu64 " on cannot be listed", first);
	else if (first == last)
		text_add(told.message, sizeof(told.message), "; subvolume %" PRIu64 " cannot be listed", first);
	else
		text_add(told.message, sizeof(told.message),
			 "; subvolumes %" PRIu64 " to %" PRIu64 " cannot be listed", first, last);
	return tell(p->j, ret, &told, p->err);
}

/* Decodes the current item. @return 0; 1: it is invalid, and the listing goes on; <0 */
static int decode(const struct pass *p, struct root_item *item)
{
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	int r = cursor_blame(&p->c, root_item_decode(&p->j->fs->items, &p->c.item, item, &what), &what);

	if (!r)
		return 0;
	if (p->j->lost && !p->tell)
		return 1;
	text_add(what.message, sizeof(what.message), "; subvolume %" PRIu64 " cannot be listed", p->at.objectid);
	r = tell(p->j, r, &what, p->err);
	return r ? r : 1;
}

/* Calls @fn for the root items that @o selects, except that of the top-level subvolume. */
static int each_subvolume(struct job *j, const struct btrkit_subvolumes_options *o, subvolume_fn fn, bool tell,
			  struct btrkit_error *err)
{
	struct pass p = { .j = j, .at = KEY(OID_FIRST_FREE, KEY_ROOT_ITEM, 0), .tell = tell, .err = err };
	bool first = true;
	int r;

	cursor_init(&p.c, j->fs, &j->fs->root_tree);
	while (!(r = cursor_next_around(&p.c, &p.at, first, lose_block, &p, err))) {
		struct root_item item;

		first = false;
		if (p.at.objectid > OID_LAST_FREE)
			break;
		if (p.at.type != KEY_ROOT_ITEM)
			continue;
		r = decode(&p, &item);
		if (!r && subvolumes_wanted(o, &p.at, &item))
			r = fn(j, p.at.objectid, &item, err);
		if (r < 0)
			break;
	}
	cursor_release(&p.c);
	return r < 0 ? r : 0;
}

static int collect(struct job *j, uint64_t id, const struct root_item *item, struct btrkit_error *err)
{
	int r;

	if (base_uuid_is_none(item->parent_uuid))
		return 0;
	r = grow((void **)&j->snapshots, j->count, &j->room, sizeof(*j->snapshots), err);
	if (r)
		return r;
	memcpy(j->snapshots[j->count].of, item->parent_uuid, 16);
	j->snapshots[j->count++].id = id;
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct snapshot *x = a, *y = b;
	const int order = memcmp(x->of, y->of, sizeof(x->of));

	return order ? order : x->id < y->id ? -1 : x->id > y->id;
}

/* Finds the snapshots of a subvolume: a range of the sorted ones. */
static void find_snapshots(const struct job *j, struct btrkit_subvolume_item *s)
{
	struct snapshot first = { .id = 0 };
	size_t low = 0, high = j->count;

	memcpy(first.of, s->uuid, sizeof(first.of));
	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (compare(&j->snapshots[middle], &first) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	s->snapshots = j->ids ? j->ids + low : NULL;
	for (; low < j->count && !memcmp(j->snapshots[low].of, s->uuid, sizeof(first.of)); low++)
		s->num_snapshots++;
}

static int keep_path(void *ctx, const char *path, size_t len)
{
	struct job *j = ctx;
	char *copy = malloc(len + 1);

	if (!copy)
		return err_nomem(j->err);
	memcpy(copy, path, len);
	free(j->path);
	j->path = copy;
	j->path_len = len;
	return 0;
}

/* Finds the path of a subvolume. j->path is NULL if it has none. */
static int find_path(struct job *j, uint64_t id, const struct root_item *item, struct btrkit_error *err)
{
	struct btrkit_error own = BTRKIT_ERROR_INIT;
	int r;

	free(j->path);
	j->path = NULL;
	if (!item->refs)
		return 0;
	j->err = &own;
	r = btrkit_subvolume_path(j->fs, id, keep_path, j, &own);
	return r == -ENOENT ? 0 : err_pass(err, &own, r);
}

static struct btrkit_time time_of(const struct disk_time *t)
{
	return (struct btrkit_time){ (int64_t)le64_get(t->sec), le32_get(t->nsec) };
}

static void describe(uint64_t id, uint64_t parent, const struct root_item *item, struct btrkit_subvolume_item *to)
{
	*to = (struct btrkit_subvolume_item){
		.id = id,
		.parent = parent,
		.generation = item->generation,
		.otransid = item->otransid,
		.ctransid = item->ctransid,
		.stransid = item->stransid,
		.rtransid = item->rtransid,
		.otime = time_of(&item->otime),
		.ctime = time_of(&item->ctime),
		.stime = time_of(&item->stime),
		.rtime = time_of(&item->rtime),
		.last_snapshot = item->last_snapshot,
		.bytenr = item->bytenr,
		.bytes_used = item->bytes_used,
		.flags = item->flags,
		.level = item->level,
		.read_only = item->flags & ROOT_SUBVOL_RDONLY,
		.deleted = !item->refs,
	};
	memcpy(to->uuid, item->uuid, sizeof(to->uuid));
	memcpy(to->parent_uuid, item->parent_uuid, sizeof(to->parent_uuid));
	memcpy(to->received_uuid, item->received_uuid, sizeof(to->received_uuid));
}

/* Hands a subvolume to the caller. */
static int hand_out(struct job *j, uint64_t id, const struct root_item *item, struct btrkit_error *err)
{
	struct btrkit_subvolume_item s;
	uint64_t parent = 0;
	int r = item->refs ? subvolume_parent_either(&j->c, id, &parent, &j->what) : 0;

	if (!r && j->o->parent && parent != j->o->parent)
		return 0;
	if (!r)
		r = find_path(j, id, item, &j->what);
	if (r) {
		struct btrkit_error what = j->what;

		j->what = (struct btrkit_error)BTRKIT_ERROR_INIT;
		text_add(what.message, sizeof(what.message), "; the path of subvolume %" PRIu64 " is unknown", id);
		r = tell(j, r, &what, err);
	}
	if (r || (j->o->parent && parent != j->o->parent))
		return r;
	describe(id, parent, item, &s);
	s.path = j->path;
	s.path_len = j->path ? j->path_len : 0;
	s.is_default = j->default_id && id == j->default_id;
	find_snapshots(j, &s);
	return j->fn(j->ctx, &s);
}

static int keep(struct job *j, uint64_t id, const struct root_item *item, struct btrkit_error *err)
{
	struct subvolume_listed one = { .id = id, .item = *item };
	int r = grow((void **)&j->listed, j->num_listed, &j->listed_room, sizeof(*j->listed), err);

	if (!r && subvolumes_by_path(j->o)) {
		r = find_path(j, id, item, err);
		/* That is told when the subvolume is handed out. */
		if (r && r != -ENOMEM && j->lost) {
			r = 0;
			j->path_len = 0;
			*err = (struct btrkit_error)BTRKIT_ERROR_INIT;
		}
		one.path = j->path;
		one.path_len = j->path_len;
		j->path = NULL;
	}
	if (!r)
		j->listed[j->num_listed++] = one;
	else
		free(one.path);
	return r;
}

static int hand_out_sorted(struct job *j, struct btrkit_error *err)
{
	int r = each_subvolume(j, j->o, keep, true, err);

	if (!r && j->num_listed)
		qsort_r(j->listed, j->num_listed, sizeof(*j->listed), subvolumes_compare, (void *)j->o);
	for (size_t i = 0; !r && i < j->num_listed; i++)
		r = hand_out(j, j->listed[i].id, &j->listed[i].item, err);
	for (size_t i = 0; i < j->num_listed; i++)
		free(j->listed[i].path);
	free(j->listed);
	return r;
}

static const struct btrkit_subvolumes_options everything = BTRKIT_SUBVOLUMES_OPTIONS_INIT;

/* Finds the default subvolume and all snapshots. */
static int find_relations(struct job *j, struct btrkit_error *err)
{
	struct btrkit_error own = BTRKIT_ERROR_INIT;
	int r = subvolume_default(j->fs, &j->default_id, &own);

	if (r && r != -ENOENT)
		r = tell(j, r, &own, err);
	else
		r = 0;
	if (!r)
		r = each_subvolume(j, &everything, collect, false, err);
	if (r || !j->count)
		return r;
	qsort(j->snapshots, j->count, sizeof(*j->snapshots), compare);
	j->ids = calloc(j->count, sizeof(*j->ids));
	if (!j->ids)
		return err_nomem(err);
	for (size_t i = 0; i < j->count; i++)
		j->ids[i] = j->snapshots[i].id;
	return 0;
}

int btrkit_subvolumes_around(struct btrkit_fs *fs, const struct btrkit_subvolumes_options *opts,
			     btrkit_subvolume_fn fn, btrkit_lost_fn lost, void *ctx, struct btrkit_error *err)
{
	const struct btrkit_subvolumes_options *o = opts ? opts : &everything;
	struct job j = { .fs = fs, .fn = fn, .lost = lost, .ctx = ctx, .o = o };
	int r = subvolumes_check(o, err);

	if (r)
		return r;
	cursor_init(&j.c, fs, &fs->root_tree);
	r = o->flags & BTRKIT_SUBVOLUMES_RELATIONS ? find_relations(&j, err) : 0;
	if (!r)
		r = o->num_order ? hand_out_sorted(&j, err) : each_subvolume(&j, o, hand_out, true, err);
	cursor_release(&j.c);
	free(j.snapshots);
	free(j.ids);
	free(j.path);
	return r;
}

int btrkit_subvolumes(struct btrkit_fs *fs, const struct btrkit_subvolumes_options *opts, btrkit_subvolume_fn fn,
		      void *ctx, struct btrkit_error *err)
{
	return btrkit_subvolumes_around(fs, opts, fn, NULL, ctx, err);
}

int btrkit_subvolume_get(struct btrkit_fs *fs, uint64_t id, struct btrkit_subvolume_item *ret,
			 struct btrkit_error *err)
{
	struct subvolume s;
	struct cursor c;
	uint64_t parent;
	int r = subvolume_get(fs, id, &s, err);

	if (r)
		return r;
	cursor_init(&c, fs, &fs->root_tree);
	r = subvolume_parent(&c, id, &parent, err);
	cursor_release(&c);
	if (!r)
		describe(id, parent, &s.item, ret);
	return r;
}
