// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/tree/filesystem.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/format/feature.h"
#include "lib/format/raid.h"
#include "lib/io/signature.h"
#include "lib/tree/cache.h"
#include "lib/tree/cursor.h"
#include "lib/tree/members.h"
#include "lib/tree/overlay.h"
#include "lib/tree/start.h"
#include "lib/tree/writable.h"
#include "lib/volume/super_place.h"
#include "lib/volume/volume.h"

#define FLAGS_KNOWN ((BTRKIT_OPEN_DEGRADED << 1) - 1)
#define CACHE_BYTES_DEFAULT (64u << 20)

void open_note(const struct btrkit_open_options *opts, const char *fmt, ...)
{
	char line[400];
	va_list args;

	if (!opts->note)
		return;
	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	opts->note(opts->note_ctx, line);
}

static int read_super(struct btrkit_io *io, unsigned mirror, const struct btrkit_open_options *opts, struct super *ret,
		      struct btrkit_error *err)
{
	struct disk_super disk;
	uint64_t at;
	int r;

	r = super_read(io, mirror, &disk, &at, err);
	if (r == -ENXIO)
		return mirror ? r :
				err_because(err, BTRKIT_CAUSE_NO_SUPERBLOCK,
					    err_set(err, BTRKIT_NOT_BTRFS,
						    "not a btrfs filesystem: only %" PRIu64 " bytes", io->size));
	if (r)
		return r;
	r = super_decode(&disk, super_offset(mirror), ret, err);
	if (!r && !(opts->flags & BTRKIT_OPEN_PARTIAL))
		r = features_check_done(ret, err);
	if (r == -EUCLEAN)
		err_at_device(err, le64_get(disk.dev_item.devid), at);
	return r;
}

/* Notes any mirror that is newer than the valid primary superblock. */
static void compare_mirrors(struct btrkit_io *io, const struct super *primary, const struct btrkit_open_options *opts)
{
	struct super mirror;

	for (unsigned i = 1; i < SUPER_MIRRORS; i++) {
		if (read_super(io, i, opts, &mirror, NULL) || memcmp(mirror.fsid, primary->fsid, sizeof(mirror.fsid)) ||
		    mirror.generation <= primary->generation)
			continue;
		open_note(opts, "%s has generation %" PRIu64 ", newer than the primary's %" PRIu64 "; it is not used",
			  super_mirror_names()[i], mirror.generation, primary->generation);
	}
}

/* Chooses the superblock: the one requested, or the primary if it is valid, otherwise the newest valid mirror. */
static int choose_super(struct btrkit_io *io, const struct btrkit_open_options *opts, struct super *ret,
			unsigned *mirror, struct btrkit_error *err)
{
	struct btrkit_error primary = BTRKIT_ERROR_INIT;
	char reason[300];
	struct super s;
	bool found = false;
	int r;

	if (opts->flags & BTRKIT_OPEN_SUPER_MIRROR) {
		*mirror = opts->super_mirror;
		return read_super(io, *mirror, opts, ret, err);
	}
	r = read_super(io, 0, opts, ret, &primary);
	*mirror = 0;
	if (!r) {
		compare_mirrors(io, ret, opts);
		return 0;
	}
	/*
	 * If a valid superblock has unsupported features, do not look for another one. While an undo is unfinished,
	 * mirrors may have been restored before the primary: do not use them in its place.
	 */
	if ((r != -EUCLEAN && r != -EMEDIUMTYPE && r != -EIO) || io_undo_is_unfinished(io)) {
		if (err)
			*err = primary;
		return r;
	}
	for (unsigned i = 1; i < SUPER_MIRRORS; i++) {
		if (read_super(io, i, opts, &s, NULL) || (found && s.generation <= ret->generation))
			continue;
		*ret = s;
		*mirror = i;
		found = true;
	}
	if (!found) {
		if (err)
			*err = primary;
		return r;
	}
	open_note(opts, "%s is used, because the primary is invalid: %s", super_mirror_names()[*mirror],
		  btrkit_error_format(&primary, reason, sizeof(reason)));
	return 0;
}

void open_note_device(const struct btrkit_open_options *opts, const struct btrkit_error *what)
{
	if (opts->device_note)
		opts->device_note(opts->note_ctx, what);
	else
		open_note(opts, "%s", what->message);
}

static int verify_options(const struct btrkit_open_options *opts, size_t n, struct btrkit_error *err)
{
	if (opts->flags & ~(unsigned)FLAGS_KNOWN)
		return err_set(err, BTRKIT_INVALID, "unknown flag");
	if (opts->super_mirror >= SUPER_MIRRORS)
		return err_set(err, BTRKIT_INVALID, "invalid superblock copy %u: must be 0, 1 or 2",
			       opts->super_mirror);
	if (!n || n > VOLUME_DEVICES_MAX)
		return err_set(err, BTRKIT_INVALID, "invalid number of devices: %zu", n);
	return start_check(opts, err);
}

/* Reads the superblock of each device, and chooses that of the filesystem. */
static int read_supers(struct btrkit_fs *fs, struct members *m, struct btrkit_error *err)
{
	const struct btrkit_open_options *opts = m->opts;
	unsigned mirrors[VOLUME_DEVICES_MAX];
	int ret;

	for (size_t i = 0; i < m->n; i++) {
		ret = choose_super(m->devices[i], opts, &m->supers[i], &mirrors[i], err);
		/* Linux only reads the primary superblock, so a commit needs it. */
		if (!ret && opts->flags & BTRKIT_OPEN_WRITE && mirrors[i])
			ret = err_set(err, BTRKIT_UNSUPPORTED, "writing is not supported: %s",
				      opts->flags & BTRKIT_OPEN_SUPER_MIRROR ? "a superblock mirror was requested" :
									       "the primary superblock is invalid");
		if (ret) {
			if (m->n > 1)
				err_name(err, m->devices[i]->name);
			return ret;
		}
	}
	ret = members_choose(m, err);
	if (ret)
		return ret;
	fs->super = m->supers[m->chosen];
	fs->super_mirror = mirrors[m->chosen];
	fs->geometry = (struct geometry){ fs->super.sectorsize, fs->super.nodesize, fs->super.csum };
	fs->items = super_item_ctx(&fs->super);
	fs->rules = (struct node_rules){ .csum = fs->geometry.csum,
					 .nodesize = fs->geometry.nodesize,
					 .sectorsize = fs->geometry.sectorsize };
	memcpy(fs->rules.fsid, fs->super.metadata_uuid, sizeof(fs->rules.fsid));
	if (members_write_whole(opts) && m->n < fs->super.num_devices)
		return err_because(err, BTRKIT_CAUSE_DEVICE_MISSING,
				   err_set(err, BTRKIT_UNSUPPORTED,
					   "filesystem has %" PRIu64 " devices, %zu given: all are needed for writing",
					   fs->super.num_devices, m->n));
	return members_admit_seeds(m, fs, err);
}

/* If device items cannot be read, trust the superblocks of the given devices. */
static int confirm(struct btrkit_fs *fs, struct members *m, struct btrkit_error *err)
{
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	const int ret = members_confirm(m, fs, &what);

	if (ret)
		m->present = m->n;
	return start_partial(fs, m->opts, ret, &what, err);
}

/* Unfinished changes are noted, but do not prevent reading. */
static void note_half_done(const struct btrkit_fs *fs, const struct btrkit_open_options *opts)
{
	char list[FEATURES_TEXT];

	if (features_half_done(&fs->super, list, sizeof(list)))
		open_note(opts, "%s: shown as it is", list);
}

static int open_members(struct btrkit_fs *fs, struct members *m, struct btrkit_error *err)
{
	const struct btrkit_open_options *opts = m->opts;
	int r;

	r = read_supers(fs, m, err);
	if (!r)
		r = node_cache_create(opts->cache_bytes ? opts->cache_bytes : CACHE_BYTES_DEFAULT,
				      fs->geometry.nodesize, &fs->slabs, &fs->cache, err);
	if (!r)
		r = volume_create(m->devices, m->supers, m->n, &fs->volume, err);
	if (r)
		return r;
	volume_watch(fs->volume, opts->bad_read, opts->bad_read_ctx);
	members_mark_stale(m, fs);
	if (opts->flags & BTRKIT_OPEN_DEGRADED)
		members_leave_stale(m, fs);
	r = start_roots(fs, opts, err);
	if (!r)
		r = chunks_read(fs, opts, err);
	if (!r)
		r = members_tell_stale(m, fs, err);
	if (!r)
		r = confirm(fs, m, err);
	if (!r)
		r = start_tree_root(fs, opts, err);
	if (r)
		return r;
	note_half_done(fs, opts);
	members_note_missing(m, fs);
	if (opts->flags & BTRKIT_OPEN_WRITE) {
		r = fs_check_write(fs, true, err);
		fs->writable = !r;
	}
	return r;
}

static void close_writer(struct btrkit_fs *fs)
{
	if (fs->writer)
		fs->writer_destroy(fs->writer);
}

/* Frees what is left without writer and volume. @return NULL */
static struct btrkit_fs *free_fs(struct btrkit_fs *fs)
{
	node_cache_destroy(fs->cache);
	slabs_destroy(&fs->slabs);
	stock_destroy(&fs->stock);
	free(fs->seeds);
	free(fs);
	return NULL;
}

struct btrkit_fs *btrkit_fs_close(struct btrkit_fs *fs)
{
	if (!fs)
		return NULL;
	close_writer(fs);
	volume_destroy(fs->volume);
	return free_fs(fs);
}

struct btrkit_fs *fs_release(struct btrkit_fs *fs)
{
	if (!fs)
		return NULL;
	close_writer(fs);
	volume_release(fs->volume);
	return free_fs(fs);
}

int btrkit_fs_open(struct btrkit_io *const *devices, size_t n, const struct btrkit_open_options *opts,
		   struct btrkit_fs **ret, struct btrkit_error *err)
{
	static const struct btrkit_open_options defaults = BTRKIT_OPEN_OPTIONS_INIT;
	struct members m = { .devices = devices, .n = n, .opts = opts ? opts : &defaults };
	struct btrkit_fs *fs;
	int r;

	r = verify_options(m.opts, n, err);
	if (r)
		return r;
	fs = calloc(1, sizeof(*fs));
	if (fs) {
		stock_init(&fs->stock);
		slabs_init(&fs->slabs, &fs->stock);
	}
	m.supers = calloc(n, sizeof(*m.supers));
	if (fs)
		fs->no_links = m.opts->flags & BTRKIT_OPEN_NO_LINKS;
	if (fs)
		fs->degraded = m.opts->flags & BTRKIT_OPEN_DEGRADED;
	r = fs && m.supers ? open_members(fs, &m, err) : err_nomem(err);
	free(m.supers);
	if (!r) {
		*ret = fs;
		return 0;
	}
	fs_release(fs);
	return r;
}

void btrkit_fs_get_info(const struct btrkit_fs *fs, struct btrkit_fs_info *info)
{
	const struct super *s = &fs->super;

	*info = (struct btrkit_fs_info){
		.generation = s->generation,
		.total_bytes = s->total_bytes,
		.bytes_used = s->bytes_used,
		.num_devices = s->num_devices,
		.sectorsize = s->sectorsize,
		.nodesize = s->nodesize,
		.super_mirror = fs->super_mirror,
		.csum_name = s->csum->name,
		.log_root = s->log_root,
		.data_copies = volume_data_factor(fs->volume),
	};
	memcpy(info->fsid, s->fsid, sizeof(info->fsid));
	memcpy(info->label, s->disk.label, sizeof(s->disk.label));
}

struct tree_root tree_root_of(const struct btrkit_key *key, const struct root_item *item)
{
	return (struct tree_root){ key->objectid, key->offset, item->bytenr, item->generation, item->level };
}

struct tree_root fs_root_of(const struct btrkit_fs *fs, const struct btrkit_key *key, const struct root_item *item)
{
	const struct edit_tree *edited = fs->overlay ? overlay_open_tree(fs->overlay, key->objectid) : NULL;

	return edited && edited->c.root.key_offset == key->offset ? edited->c.root : tree_root_of(key, item);
}

int fs_check_committed(const struct btrkit_fs *fs, struct btrkit_error *err)
{
	return fs->overlay ? err_set(err, BTRKIT_BUSY, "a transaction is open") : 0;
}

/* @return 0; 1: there is none, with no error reported; <0 */
static int seek_root(struct btrkit_fs *fs, const struct tree_root *root_tree, uint64_t id, struct tree_root *ret,
		     struct root_item *item, struct btrkit_error *err)
{
	struct root_item decoded;
	struct cursor c;
	int r;

	cursor_init(&c, fs, root_tree);
	r = cursor_seek_back(&c, &KEY(id, KEY_ROOT_ITEM, UINT64_MAX), err);
	if (!r && (c.item.key.objectid != id || c.item.key.type != KEY_ROOT_ITEM))
		r = 1;
	if (!r)
		r = cursor_blame(&c, root_item_decode(&fs->items, &c.item, &decoded, err), err);
	if (!r) {
		*ret = tree_root_of(&c.item.key, &decoded);
		if (item)
			*item = decoded;
	}
	cursor_release(&c);
	return r;
}

static int no_tree(uint64_t id, int r, struct btrkit_error *err)
{
	return r == 1 ? err_set(err, BTRKIT_NOT_FOUND, "no tree %" PRIu64, id) : r;
}

int fs_find_root_in(struct btrkit_fs *fs, const struct tree_root *root_tree, uint64_t id, struct tree_root *ret,
		    struct root_item *item, struct btrkit_error *err)
{
	return no_tree(id, seek_root(fs, root_tree, id, ret, item, err), err);
}

int fs_try_root(struct btrkit_fs *fs, uint64_t id, struct tree_root *ret, struct root_item *item,
		struct btrkit_error *err)
{
	const struct edit_tree *edited = fs->overlay ? overlay_open_tree(fs->overlay, id) : NULL;
	int r = 0;

	if (!edited || item)
		r = seek_root(fs, &fs->root_tree, id, ret, item, err);
	/* The commit updates the item. */
	if (!r && edited)
		*ret = edited->c.root;
	return r;
}

int fs_find_root(struct btrkit_fs *fs, uint64_t id, struct tree_root *ret, struct root_item *item,
		 struct btrkit_error *err)
{
	return no_tree(id, fs_try_root(fs, id, ret, item, err), err);
}

int fs_try_tree(struct btrkit_fs *fs, uint64_t id, struct tree_root *ret, struct root_item *item,
		struct btrkit_error *err)
{
	if (id != OID_ROOT_TREE && id != OID_CHUNK_TREE)
		return fs_try_root(fs, id, ret, item, err);
	*ret = id == OID_ROOT_TREE ? fs->root_tree : fs->chunk_tree;
	if (item)
		*item = (struct root_item){ 0 };
	return 0;
}

int fs_find_tree(struct btrkit_fs *fs, uint64_t id, struct tree_root *ret, struct root_item *item,
		 struct btrkit_error *err)
{
	return no_tree(id, fs_try_tree(fs, id, ret, item, err), err);
}

int fs_chunk_tree_uuid(struct btrkit_fs *fs, uint8_t uuid[16], struct btrkit_error *err)
{
	const struct tree_root *root = &fs->chunk_tree;
	const struct node_ref ref = { root->bytenr, root->generation, root->id, root->level, NULL };
	struct node *n;
	int ret = node_get(fs, &ref, &n, err);

	if (ret)
		return ret;
	memcpy(uuid, node_header(n)->chunk_tree_uuid, 16);
	node_put(fs, n);
	return 0;
}
