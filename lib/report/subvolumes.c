// SPDX-License-Identifier: LGPL-2.1-or-later
/* Lists subvolumes like `btrfs subvolume list` and `show`. */
#include <btrkit/inspect.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/base/uuid.h"
#include "lib/format/items/render.h"
#include "lib/format/items/root.h"
#include "lib/fs/subvolume.h"
#include "lib/report/list.h"
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
	struct emit *e;
	enum btrkit_format format;
	struct cursor c;	/* in the root tree, in addition to the listing's cursor */
	struct snapshot *snapshots;
	size_t count, room;
	uint64_t mounted;	/* default subvolume */
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

/* Calls @fn for the root items that @o selects, except that of the top-level subvolume. */
static int each_subvolume(struct job *j, const struct btrkit_subvolumes_options *o, subvolume_fn fn,
			  struct btrkit_error *err)
{
	struct btrkit_key key = KEY(OID_FIRST_FREE, KEY_ROOT_ITEM, 0);
	struct cursor c;
	int r;

	cursor_init(&c, j->fs, &j->fs->root_tree);
	for (r = cursor_seek(&c, &key, err); !r; r = cursor_next(&c, err)) {
		const struct btrkit_key at = c.item.key;
		struct root_item item;

		if (at.objectid > OID_LAST_FREE) {
			r = 1;
			break;
		}
		if (at.type != KEY_ROOT_ITEM)
			continue;
		r = cursor_blame(&c, root_item_decode(&j->fs->items, &c.item, &item, err), err);
		if (!r && subvolumes_wanted(o, &at, &item))
			r = fn(j, at.objectid, &item, err);
		if (r)
			break;
	}
	cursor_release(&c);
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

static void print_snapshots(const struct job *j, const uint8_t uuid[16])
{
	struct snapshot first = { .id = 0 };
	size_t low = 0, high = j->count;

	memcpy(first.of, uuid, sizeof(first.of));
	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (compare(&j->snapshots[middle], &first) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	emit_array(j->e, "snapshots");
	for (; low < j->count && !memcmp(j->snapshots[low].of, uuid, sizeof(first.of)); low++)
		emit_u64(j->e, NULL, "", j->snapshots[low].id);
	emit_array_end(j->e);
}

/* Prints a UUID, or "-" padded to its width. */
static void print_uuid(struct job *j, const char *words, const uint8_t uuid[16])
{
	emit_text(j->e, words);
	if (!base_uuid_is_none(uuid))
		emit_uuid(j->e, "", "", uuid);
	else
		emit_text(j->e, j->format == BTRKIT_FORMAT_TEXT ? "-                                   " : "-");
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

static void print_path(struct job *j, const struct root_item *item, const char *words)
{
	if (j->path)
		emit_name_escaped(j->e, "path", words, j->path, j->path_len, false);
	else
		emit_str(j->e, "", words, item->refs ? "-" : "DELETED");
}

/* Prints the first columns, common to both formats. */
static void print_numbers(struct job *j, uint64_t id, uint64_t parent, const struct root_item *item,
			  const char *const words[4])
{
	emit_u64(j->e, "", words[0], id);
	emit_u64(j->e, "", words[1], item->generation);
	emit_u64(j->e, "", words[2], item->otransid);
	emit_u64(j->e, "", words[3], parent);
}

static void print_text(struct job *j, uint64_t id, uint64_t parent, const struct root_item *item)
{
	static const char *const words[] = { "ID ", " gen ", " cgen ", " parent " };

	print_numbers(j, id, parent, item, words);
	emit_u64(j->e, "", " top level ", parent);
	print_uuid(j, " parent_uuid ", item->parent_uuid);
	print_uuid(j, " received_uuid ", item->received_uuid);
	print_uuid(j, " uuid ", item->uuid);
	print_path(j, item, " path ");
	emit_text(j->e, "\n");
}

static void print_tsv(struct job *j, uint64_t id, uint64_t parent, const struct root_item *item)
{
	static const char *const words[] = { "", "\t", "\t", "\t" };

	print_numbers(j, id, parent, item, words);
	emit_s64(j->e, "", "\t", (int64_t)le64_get(item->otime.sec));
	emit_x64(j->e, "", "\t", item->flags);
	print_uuid(j, "\t", item->uuid);
	print_uuid(j, "\t", item->parent_uuid);
	print_uuid(j, "\t", item->received_uuid);
	print_path(j, item, "\t");
	emit_text(j->e, "\n");
}

static void print_json(struct job *j, uint64_t id, uint64_t parent, const struct root_item *item)
{
	static const struct flag_name flags[] = {
		{ ROOT_SUBVOL_RDONLY, "RDONLY" }, { ROOT_SUBVOL_DEAD, "DEAD" }, { 0, NULL },
	};
	struct emit *e = j->e;

	emit_object(e, NULL);
	emit_u64(e, "id", "", id);
	emit_u64(e, "generation", "", item->generation);
	emit_u64(e, "parent", "", parent);
	emit_u64(e, "top_level", "", parent);
	if (j->path)
		print_path(j, item, "");
	emit_bool(e, "default", id == j->mounted);
	emit_bool(e, "deleted", !item->refs);
	emit_u64(e, "flags", "", item->flags);
	flags_names_emit(e, "flags_names", flags, item->flags);
	emit_uuid(e, "uuid", "", item->uuid);
	emit_uuid(e, "parent_uuid", "", item->parent_uuid);
	emit_uuid(e, "received_uuid", "", item->received_uuid);
	emit_u64(e, "otransid", "", item->otransid);
	emit_u64(e, "ctransid", "", item->ctransid);
	emit_u64(e, "stransid", "", item->stransid);
	emit_u64(e, "rtransid", "", item->rtransid);
	render_time(e, "otime", "", &item->otime);
	render_time(e, "ctime", "", &item->ctime);
	render_time(e, "stime", "", &item->stime);
	render_time(e, "rtime", "", &item->rtime);
	emit_u64(e, "last_snapshot", "", item->last_snapshot);
	emit_u64(e, "bytenr", "", item->bytenr);
	emit_u64(e, "level", "", item->level);
	emit_u64(e, "bytes_used", "", item->bytes_used);
	print_snapshots(j, item->uuid);
	emit_object_end(e);
}

static int print(struct job *j, uint64_t id, const struct root_item *item, struct btrkit_error *err)
{
	uint64_t parent = 0;
	int r = item->refs ? subvolume_parent(&j->c, id, &parent, err) : 0;

	if (!r && j->o->parent && parent != j->o->parent)
		return 0;
	if (!r)
		r = find_path(j, id, item, err);
	if (r)
		return r;
	if (j->format == BTRKIT_FORMAT_JSON)
		print_json(j, id, parent, item);
	else if (j->format == BTRKIT_FORMAT_TSV)
		print_tsv(j, id, parent, item);
	else
		print_text(j, id, parent, item);
	return emit_failed(j->e);
}

static int keep(struct job *j, uint64_t id, const struct root_item *item, struct btrkit_error *err)
{
	struct subvolume_listed one = { .id = id, .item = *item };
	int r = grow((void **)&j->listed, j->num_listed, &j->listed_room, sizeof(*j->listed), err);

	if (!r && subvolumes_by_path(j->o)) {
		r = find_path(j, id, item, err);
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

static int print_sorted(struct job *j, struct btrkit_error *err)
{
	int r = each_subvolume(j, j->o, keep, err);

	if (!r && j->num_listed)
		qsort_r(j->listed, j->num_listed, sizeof(*j->listed), subvolumes_compare, (void *)j->o);
	for (size_t i = 0; !r && i < j->num_listed; i++)
		r = print(j, j->listed[i].id, &j->listed[i].item, err);
	for (size_t i = 0; i < j->num_listed; i++)
		free(j->listed[i].path);
	free(j->listed);
	return r;
}

static const struct btrkit_subvolumes_options everything = BTRKIT_SUBVOLUMES_OPTIONS_INIT;

static int list(struct job *j, struct btrkit_error *err)
{
	struct btrkit_error own = BTRKIT_ERROR_INIT;
	int r = 0;

	if (j->format == BTRKIT_FORMAT_JSON) {
		r = subvolume_default(j->fs, &j->mounted, &own);
		r = r && r != -ENOENT ? err_pass(err, &own, r) : each_subvolume(j, &everything, collect, err);
	}
	if (!r && j->count)
		qsort(j->snapshots, j->count, sizeof(*j->snapshots), compare);
	if (r)
		return r;
	return j->o->num_order ? print_sorted(j, err) : each_subvolume(j, j->o, print, err);
}

int btrkit_subvolumes_print(struct btrkit_fs *fs, const struct btrkit_subvolumes_options *opts,
			    enum btrkit_format format, btrkit_write_fn write, void *ctx, struct btrkit_error *err)
{
	const struct btrkit_subvolumes_options *options = opts ? opts : &everything;
	struct emit e;
	struct job j = { .fs = fs, .e = &e, .format = format, .o = options };
	int r = subvolumes_check(options, err);

	if (!r)
		r = list_begin(&e, format == BTRKIT_FORMAT_TSV ? BTRKIT_FORMAT_TEXT : format, "list-subvolumes", write,
			       ctx, err);
	if (r)
		return r;
	cursor_init(&j.c, fs, &fs->root_tree);
	r = list(&j, err);
	cursor_release(&j.c);
	free(j.snapshots);
	free(j.path);
	return list_end(&e, r);
}
