// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reads the contents of a file: its extents of all types as one range of bytes. */
#include <btrkit/file.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/err.h"
#include "lib/format/items/files/file_extent.h"
#include "lib/fs/extent_read.h"
#include "lib/fs/file.h"
#include "lib/fs/inode.h"

/* The target of a symbolic link is inline data, so it is smaller than any tree block. */
#define TARGET_MAX (64u << 10)

struct btrkit_file {
	struct btrkit_fs *fs;
	uint64_t inode, size;
	uint64_t lost, lost_end; /* the bytes that the last call failed to find or to read; lost_end 0: none */
	struct cursor c;
	struct extent_reader extents;
};

/* Blocks of a transaction end with it, which the file may outlive: none is held from one call to the next. */
static int let_go(struct btrkit_file *f, int ret)
{
	if (!ret || ret == -ENOMEM)
		f->lost_end = 0;
	if (f->fs->overlay) {
		cursor_release(&f->c);
		cursor_release(&f->extents.data.csums);
	}
	return ret;
}

struct btrkit_file *btrkit_file_close(struct btrkit_file *f)
{
	if (!f)
		return NULL;
	cursor_release(&f->c);
	extent_reader_release(&f->extents);
	free(f);
	return NULL;
}

static int open_file(struct btrkit_file *f, struct btrkit_fs *fs, uint64_t root, uint64_t inode,
		     struct btrkit_error *err)
{
	struct inode_item item;
	int ret;

	ret = inode_open(fs, root, inode, &f->c, &item, err);
	if (!ret && !S_ISREG(item.mode) && !S_ISLNK(item.mode))
		ret = err_set(err, BTRKIT_INVALID, "inode %" PRIu64 " is neither a file nor a symbolic link", inode);
	if (ret)
		return ret;
	f->inode = inode;
	f->size = item.size;
	return extent_reader_init(&f->extents, fs, !(item.flags & INODE_NODATASUM), err);
}

int btrkit_file_open(struct btrkit_fs *fs, uint64_t root, uint64_t inode, struct btrkit_file **ret,
		     struct btrkit_error *err)
{
	struct btrkit_file *f = calloc(1, sizeof(*f));
	int r;

	if (!f)
		return err_nomem(err);
	f->fs = fs;
	r = let_go(f, open_file(f, fs, root, inode, err));
	if (r) {
		btrkit_file_close(f);
		return r;
	}
	*ret = f;
	return 0;
}

/* Whether an item with that key is an extent of the file. */
static bool is_of_file(const struct btrkit_file *f, const struct btrkit_key *key)
{
	return key->objectid == f->inode && key->type == KEY_EXTENT_DATA;
}

static bool is_extent(const struct btrkit_file *f)
{
	return is_of_file(f, &f->c.item.key);
}

/* Notes that the bytes from @at to before @end are lost. The range is never empty, whatever keys say. @return @ret */
static int lose(struct btrkit_file *f, uint64_t at, uint64_t end, int ret)
{
	f->lost = at;
	f->lost_end = end > at && end < f->size ? end : f->size;
	return ret;
}

/*
 * The search for the extent that covers @at has failed with @ret. If that is because of a leaf, the keys of its parent
 * say which extents may be in it: those from its own key to before that of the next leaf.
 * @return 1: the leaf has nothing at @at, which is in a hole, and *length is the distance to what it has; <0: @ret
 */
static int go_around(struct btrkit_file *f, uint64_t at, int ret, uint64_t *length, struct btrkit_error *err)
{
	struct btrkit_key first, end;

	if (cursor_lost_keys(&f->c, &first, &end))
		return lose(f, at, f->size, ret);
	if (key_cmp(&first, &KEY(f->inode, KEY_EXTENT_DATA, at)) <= 0)
		return lose(f, at, is_of_file(f, &end) ? end.offset : f->size, ret);
	*length = is_of_file(f, &first) ? first.offset - at : UINT64_MAX;
	if (err)
		*err = (struct btrkit_error)BTRKIT_ERROR_INIT;
	return 1;
}

/* The current item is invalid: what it covers is lost, up to the next one. @return @ret */
static int lose_item(struct btrkit_file *f, uint64_t at, int ret)
{
	const int next = cursor_next(&f->c, NULL);
	struct btrkit_key key, end;

	if (!next)
		key = f->c.item.key;
	else if (next == 1 || cursor_lost_keys(&f->c, &key, &end))
		return lose(f, at, f->size, ret);
	return lose(f, at, is_of_file(f, &key) ? key.offset : f->size, ret);
}

/*
 * Finds the extent that covers @at.
 * @return 0: f->c is at its item, and *length is what it covers from @at on; 1: a hole, and *length is the distance to
 * the next extent; <0: f->lost is set
 */
static int find_extent(struct btrkit_file *f, uint64_t at, struct file_extent *fe, uint64_t *length,
		       struct btrkit_error *err)
{
	const struct btrkit_key key = KEY(f->inode, KEY_EXTENT_DATA, at);
	uint64_t covered;
	int ret;

	ret = cursor_seek_back(&f->c, &key, err);
	if (ret < 0)
		return go_around(f, at, ret, length, err);
	if (!ret && is_extent(f)) {
		ret = cursor_blame(&f->c, file_extent_decode(&f->fs->items, &f->c.item, fe, err), err);
		if (ret)
			return lose_item(f, at, ret);
		covered = fe->type == FILE_EXTENT_INLINE ? fe->ram_bytes : fe->num_bytes;
		if (at - f->c.item.key.offset < covered) {
			*length = covered - (at - f->c.item.key.offset);
			return 0;
		}
	}
	ret = cursor_seek(&f->c, &key, err);
	if (ret < 0)
		return go_around(f, at, ret, length, err);
	*length = !ret && is_extent(f) ? f->c.item.key.offset - at : UINT64_MAX;
	if (!*length)
		return lose_item(f, at, cursor_blame(&f->c, err_corrupt(err, "num_bytes", "file extent is empty"),
						     err));
	return 1;
}

static bool is_data(const struct file_extent *fe)
{
	return fe->type == FILE_EXTENT_INLINE || (fe->type == FILE_EXTENT_REG && fe->disk_bytenr);
}

int file_next_data(struct btrkit_file *f, uint64_t offset, uint64_t *ret, struct btrkit_error *err)
{
	while (offset < f->size) {
		struct file_extent fe;
		uint64_t length = 0;
		int r = find_extent(f, offset, &fe, &length, err);

		if (r < 0)
			return r;
		if (!r && is_data(&fe))
			break;
		offset = length < f->size - offset ? offset + length : f->size;
	}
	*ret = offset < f->size ? offset : f->size;
	return 0;
}

static int next_data(struct btrkit_file *f, uint64_t offset, uint64_t *start, uint64_t *length,
		     struct btrkit_error *err)
{
	uint64_t at, end;
	int ret = file_next_data(f, offset, &at, err);

	if (ret)
		return ret;
	for (end = at; end < f->size;) {
		struct file_extent fe;
		uint64_t covered = 0;

		ret = find_extent(f, end, &fe, &covered, err);
		if (ret == -ENOMEM)
			return ret;
		/* What cannot be read behind the data is the failure of the next call. */
		if (ret || !is_data(&fe))
			break;
		end = covered < f->size - end ? end + covered : f->size;
	}
	*start = at;
	*length = end - at;
	return 0;
}

int btrkit_file_next_data(struct btrkit_file *f, uint64_t offset, uint64_t *start, uint64_t *length,
			  struct btrkit_error *err)
{
	return let_go(f, next_data(f, offset, start, length, err));
}

/* Whether another sector of the same extent may be readable. */
static bool is_of_sector(const struct btrkit_error *what)
{
	return (what->places & BTRKIT_AT_DEVID) || !strcmp(what->field, "csum");
}

/*
 * A piece of the extent of the current item, @n bytes from @at on, could not be read: finds the first of its sectors
 * that cannot, and the end of those. @left is what the extent covers from @at on. An extent that can only be read as a
 * whole is lost to its end.
 * @return 0: each could be read by itself; @ret; -ENOMEM
 */
static int lose_data(struct btrkit_file *f, const struct file_extent *fe, uint64_t at, uint8_t *to, size_t n,
		     uint64_t left, int ret)
{
	const uint64_t start = f->c.item.key.offset;
	const uint32_t unit = f->fs->geometry.sectorsize;
	uint64_t bad = UINT64_MAX, i;
	size_t step;

	if (fe->compression || fe->type == FILE_EXTENT_INLINE)
		return lose(f, at, at + left, ret);
	for (i = 0; i < n; i += step) {
		struct btrkit_error what = BTRKIT_ERROR_INIT;
		const size_t rest = unit - (size_t)((at + i - start + fe->offset) % unit);
		int r;

		step = rest < n - i ? rest : n - (size_t)i;
		r = extent_read(&f->extents, fe, at + i - start, to + i, step, &what);
		if (r == -ENOMEM)
			return r;
		if (r && bad == UINT64_MAX)
			bad = i;
		if (r && !is_of_sector(&what))
			return lose(f, at + bad, at + left, ret);
		if (!r && bad != UINT64_MAX)
			break;
	}
	return bad == UINT64_MAX ? 0 : lose(f, at + bad, at + i, ret);
}

static int read_file(struct btrkit_file *f, uint64_t offset, void *buf, size_t len, size_t *got,
		     struct btrkit_error *err)
{
	uint8_t *to = buf;
	size_t done = 0;

	if (offset >= f->size)
		len = 0;
	else if (len > f->size - offset)
		len = (size_t)(f->size - offset);
	while (done < len) {
		struct file_extent fe;
		uint64_t length = 0;
		size_t n;
		int ret = find_extent(f, offset + done, &fe, &length, err);

		if (ret < 0)
			return ret;
		n = length < len - done ? (size_t)length : len - done;
		if (ret)
			memset(to + done, 0, n);
		else
			ret = cursor_blame(&f->c, extent_read(&f->extents, &fe, offset + done - f->c.item.key.offset,
							      to + done, n, err), err);
		if (ret < 0)
			ret = lose_data(f, &fe, offset + done, to + done, n, length, ret);
		if (ret < 0)
			return ret;
		done += n;
	}
	*got = done;
	return 0;
}

int btrkit_file_read(struct btrkit_file *f, uint64_t offset, void *buf, size_t len, size_t *got,
		     struct btrkit_error *err)
{
	return let_go(f, read_file(f, offset, buf, len, got, err));
}

int btrkit_file_lost(const struct btrkit_file *f, uint64_t *start, uint64_t *length)
{
	if (f->lost_end <= f->lost)
		return 1;
	*start = f->lost;
	*length = f->lost_end - f->lost;
	return 0;
}

int btrkit_link_target(struct btrkit_fs *fs, uint64_t root, uint64_t inode, btrkit_path_fn fn, void *ctx,
		       struct btrkit_error *err)
{
	struct btrkit_inode i;
	char *target;
	size_t len;
	int r = btrkit_inode_get(fs, root, inode, &i, err);

	if (!r && !S_ISLNK(i.mode))
		r = err_set(err, BTRKIT_INVALID, "inode %" PRIu64 " is not a symbolic link", inode);
	if (!r)
		r = file_link_target(fs, &i, &target, &len, err);
	if (r)
		return r;
	r = fn(ctx, target, len);
	free(target);
	return r;
}

int file_link_target(struct btrkit_fs *fs, const struct btrkit_inode *i, char **ret, size_t *len,
		     struct btrkit_error *err)
{
	struct btrkit_file *f;
	char *target;
	int r;

	if (i->size > TARGET_MAX)
		return err_corrupt(err, "size", "symbolic link has invalid size %" PRIu64, i->size);
	target = malloc(i->size + 1);
	if (!target)
		return err_nomem(err);
	r = btrkit_file_open(fs, i->root, i->inode, &f, err);
	if (!r) {
		r = btrkit_file_read(f, 0, target, i->size, len, err);
		btrkit_file_close(f);
	}
	if (r) {
		free(target);
		return r;
	}
	target[*len] = '\0';
	*ret = target;
	return 0;
}
