// SPDX-License-Identifier: LGPL-2.1-or-later
/* Adds the members of an archive as names and inodes, and passes contents on as they arrive. */
#include "lib/source/archive_reader.h"

#ifdef HAVE_ARCHIVE

#include <archive.h>
#include <archive_entry.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/err.h"
#include "lib/format/items/files/inode.h"
#include "lib/source/layers.h"

struct source_time archive_time(int64_t sec, long nsec)
{
	return (struct source_time){ sec, nsec < 0 || nsec > 999999999 ? 0 : (uint32_t)nsec };
}

/* Fills in the attributes of a member. @return what is invalid; NULL: nothing */
static const char *attr_of(const struct archive_reader *r, struct source_attr *a)
{
	struct archive_entry *e = r->e;
	const int64_t uid = archive_entry_uid(e), gid = archive_entry_gid(e), size = archive_entry_size(e);
	const uint32_t major = (uint32_t)archive_entry_rdevmajor(e), minor = (uint32_t)archive_entry_rdevminor(e);

	*a = (struct source_attr){
		.mtime = r->mtime,
		.atime = r->mtime,
		.ctime = r->mtime,
		.mode = archive_mode(e),
		.uid = (uint32_t)uid,
		.gid = (uint32_t)gid,
		.text = archive_entry_symlink(e),
	};
	if (archive_entry_atime_is_set(e))
		a->atime = archive_time(archive_entry_atime(e), archive_entry_atime_nsec(e));
	if (archive_entry_ctime_is_set(e))
		a->ctime = archive_time(archive_entry_ctime(e), archive_entry_ctime_nsec(e));
	if (uid < 0 || uid > UINT32_MAX || gid < 0 || gid > UINT32_MAX)
		return "uid or gid exceeds 32 bits";
	if (S_ISREG(a->mode)) {
		if (size < 0)
			return "negative size";
		a->size = (uint64_t)size;
		a->text = NULL;
	}
	if (S_ISCHR(a->mode) || S_ISBLK(a->mode)) {
		if (!rdev_possible(major, minor))
			return "invalid device number";
		a->rdev = rdev_join(major, minor);
	}
	return NULL;
}

/* Returns the attributes of directories without a member. */
static struct source_attr implicit_attr(const struct archive_reader *r)
{
	return (struct source_attr){
		.mode = S_IFDIR | 0755, .mtime = r->mtime, .atime = r->mtime, .ctime = r->mtime
	};
}

static int deliver(struct archive_reader *r, uint32_t inode, struct btrkit_error *err)
{
	const uint64_t size = r->s->inodes[inode].size;
	struct archive *a = r->stream.members;
	uint64_t at = 0;
	int64_t offset;
	char shown[PATH_SHOWN];
	const void *buf;
	size_t len;
	int ret = r->sink->begin(r->sink->ctx, inode, err), status;

	if (ret < 0)
		return ret;
	while ((status = archive_read_data_block(a, &buf, &len, &offset)) == ARCHIVE_OK) {
		if (!len)
			continue;
		if (offset < 0 || (uint64_t)offset < at || (uint64_t)offset > size || len > size - (uint64_t)offset)
			return archive_refuse(r, err, EUCLEAN, "contents exceed the size or are out of order");
		ret = r->sink->write(r->sink->ctx, (uint64_t)offset, buf, len, err);
		if (ret < 0)
			return ret;
		at = (uint64_t)offset + len;
	}
	if (status != ARCHIVE_EOF) {
		source_escape(r->path, strlen(r->path), shown, sizeof(shown));
		return archive_fails(a, shown, err);
	}
	return r->sink->end(r->sink->ctx, err);
}

/* Handles the contents of a hard link. Any name of a file may have the contents; after the first they are ignored. */
static int link_contents(struct archive_reader *r, uint32_t inode, struct btrkit_error *err)
{
	const int64_t size = archive_entry_size(r->e);
	struct source *s = r->s;

	inode = s->inodes[inode].contents;
	if (!S_ISREG(s->inodes[inode].mode) || size <= 0)
		return 0;
	if (s->inodes[inode].size)
		return s->inodes[inode].size == (uint64_t)size ?
			       0 :
			       archive_refuse(r, err, EINVAL, "size differs from that of another hard link");
	for (uint32_t i = inode; i != SOURCE_NONE; i = s->inodes[i].next_sharing)
		s->inodes[i].size = (uint64_t)size;
	return deliver(r, inode, err);
}

/* Notes that a name of this layer was passed over, since a hard link to it may follow. */
static int hide(struct archive_reader *r, struct btrkit_error *err)
{
	const char *target = archive_entry_hardlink(r->e);
	struct archive_hidden *also = NULL;
	uint32_t inode = SOURCE_NONE;
	int ret = 0;

	if (!target && S_ISDIR(archive_entry_mode(r->e)))
		return 0;
	if (target && !member_path_wrong(target)) {
		inode = member_inode(r->s, target);
		ret = archive_links_find(&r->links, target, &also, err);
	}
	return ret ? ret : archive_links_hide(&r->links, r->path, inode, also, err);
}

/* Adds a hard link to a name that a layer above hides. */
static int link_hidden(struct archive_reader *r, const struct member *m, const char *target, const char *shown,
		       uint32_t *inode, struct btrkit_error *err)
{
	struct archive_hidden *h;
	int ret = archive_links_find(&r->links, target, &h, err);

	if (ret)
		return ret;
	if (!h)
		return archive_refuse(r, err, EINVAL, "hard link to %s, which is missing or excluded", shown);
	*inode = archive_hidden_inode(h);
	if (*inode != SOURCE_NONE)
		return 0;
	if (source_find(r->s, m->parent, m->name, m->len) != SOURCE_NONE)
		return archive_refuse(r, err, EEXIST, "duplicate entry");
	ret = archive_links_later(&r->links, r->path, h, err);
	return ret ? ret : 1;
}

static int add_link(struct archive_reader *r, const struct member *m, const char *target, struct btrkit_error *err)
{
	const char *wrong = member_path_wrong(target);
	char shown[80];
	uint32_t inode, there;
	int ret;

	source_escape(target, strlen(target), shown, sizeof(shown));
	if (wrong)
		return archive_refuse(r, err, EINVAL, "hard link to %s: %s", shown, wrong);
	if (m->parent == SOURCE_NONE)
		return archive_refuse(r, err, EINVAL, "top directory is a hard link");
	ret = source_excludes(r->s, m->parent, m->name, m->len, err);
	if (ret)
		return ret < 0 ? ret : 0;
	inode = member_inode(r->s, target);
	if (inode == SOURCE_NONE)
		ret = link_hidden(r, m, target, shown, &inode, err);
	if (ret)
		return ret < 0 ? ret : 0;
	there = source_find(r->s, m->parent, m->name, m->len);
	/* A link to itself, or one that comes twice. */
	if (there == inode)
		return link_contents(r, inode, err);
	if (there != SOURCE_NONE)
		return archive_refuse(r, err, EEXIST, "duplicate entry");
	ret = source_add_link(r->s, m->parent, m->name, m->len, inode, err);
	if (ret)
		return ret < 0 ? ret : 0;
	return link_contents(r, inode, err);
}

/* Takes the inode flags that btrfs has. */
static unsigned flags_of(struct archive_entry *e)
{
	static const struct {
		unsigned long theirs;
		unsigned flag;
	} known[] = { { FS_SYNC_FL, SOURCE_SYNC },     { FS_IMMUTABLE_FL, SOURCE_IMMUTABLE },
		      { FS_APPEND_FL, SOURCE_APPEND }, { FS_NODUMP_FL, SOURCE_NODUMP },
		      { FS_NOATIME_FL, SOURCE_NOATIME }, { FS_DIRSYNC_FL, SOURCE_DIRSYNC } };
	unsigned long set, clear;
	unsigned flags = 0;

	archive_entry_fflags(e, &set, &clear);
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (set & known[i].theirs)
			flags |= known[i].flag;
	return flags;
}

/* Adds what a new inode has besides its attributes. */
static int complete(struct archive_reader *r, uint32_t inode, const struct source_attr *a, struct btrkit_error *err)
{
	int ret = archive_add_xattrs(r->s, inode, r->e, err);

	if (ret)
		return ret;
	source_add_flags(r->s, inode, flags_of(r->e));
	return S_ISREG(a->mode) && a->size ? deliver(r, inode, err) : 0;
}

static bool has_attr(const struct source *s, uint32_t inode, const struct source_attr *a)
{
	const struct source_inode *i = &s->inodes[inode];
	const bool owner = !inode && s->state->opts->flags & BTRKIT_SOURCE_ROOT_OWNER;

	if ((i->mode ^ a->mode) & (S_ISLNK(a->mode) ? S_IFMT : UINT32_MAX) ||
	    memcmp(&i->mtime, &a->mtime, sizeof(i->mtime)) != 0)
		return false;
	if (!owner && (i->uid != a->uid || i->gid != a->gid))
		return false;
	if ((S_ISCHR(a->mode) || S_ISBLK(a->mode)) && i->rdev != a->rdev)
		return false;
	if (S_ISLNK(a->mode))
		return !strcmp(i->text, a->text ? a->text : "");
	return !S_ISREG(a->mode) || (!i->size && !a->size);
}

/*
 * Returns whether a member that came before is equal. Contents of files cannot be compared any more.
 * @return 1: yes; 0; <0
 */
static int is_again(struct archive_reader *r, const struct member *m, const struct source_attr *a,
		    struct btrkit_error *err)
{
	const uint32_t there = m->parent == SOURCE_NONE ? 0 : source_find(r->s, m->parent, m->name, m->len);
	const struct source_xattrs *before;
	int ret;

	if (there == SOURCE_NONE || r->s->inodes[there].bits & BIT_IMPLICIT || !has_attr(r->s, there, a))
		return 0;
	ret = source_xattrs_flush(r->s, err);
	if (ret)
		return ret;
	before = r->s->inodes[there].xattrs;
	r->s->inodes[there].xattrs = NULL;
	ret = archive_add_xattrs(r->s, there, r->e, err);
	if (!ret)
		ret = source_xattrs_flush(r->s, err);
	if (!ret)
		ret = source_xattrs_equal(before, r->s->inodes[there].xattrs);
	r->s->inodes[there].xattrs = before;
	return ret;
}

/* Removes what a whiteout hides. It is no file itself. */
static int whiteout(struct archive_reader *r, enum member_whiteout kind, const struct member *m,
		    struct btrkit_error *err)
{
	const size_t skip = kind == WHITEOUT_NAME ? strlen(".wh.") : 0;

	if (!source_layered(r->s))
		return archive_refuse(r, err, EINVAL, "whiteout, which marks a file to be removed");
	if (kind == WHITEOUT_OPAQUE)
		source_layer_close(r->s, m->parent);
	if (kind == WHITEOUT_OPAQUE || kind == WHITEOUT_OTHER)
		return 0;
	if (m->len == skip)
		return archive_refuse(r, err, EINVAL, "whiteout without a name");
	return source_layer_remove(r->s, m->parent, m->name + skip, m->len - skip, err);
}

/* Adds a member other than a hard link to a layer. *done: it is hidden, or was merged with a directory above */
static int add_layered(struct archive_reader *r, const struct member *m, const struct source_attr *a, bool *done,
		       struct btrkit_error *err)
{
	const struct archive_overlay overlay = archive_overlay(r->e);
	enum layer_view view = LAYER_MERGED;
	uint32_t inode = 0;

	if (m->parent != SOURCE_NONE)
		view = source_layer_look(r->s, m->parent, m->name, m->len, S_ISDIR(a->mode), &inode);
	else if (r->s->inodes[0].layer == r->s->state->layer)
		view = LAYER_NEW;
	*done = view == LAYER_HIDDEN;
	if (*done)
		return hide(r, err);
	if (overlay.wrong)
		return archive_refuse(r, err, EOPNOTSUPP, "attribute overlay.%s is not supported in a layer",
				      overlay.wrong);
	if (view == LAYER_MERGED && S_ISDIR(a->mode)) {
		if (overlay.opaque)
			source_layer_close(r->s, inode);
		*done = !(r->s->inodes[inode].bits & BIT_IMPLICIT);
	}
	return 0;
}

static int add_new(struct archive_reader *r, const struct member *m, const struct source_attr *a,
		   struct btrkit_error *err)
{
	uint32_t inode;
	int ret = is_again(r, m, a, err);

	if (ret)
		return ret < 0 ? ret : 0;
	ret = member_add(r->s, m, a, &inode, err);
	if (ret)
		return ret < 0 ? ret : 0;
	if (source_layered(r->s) && S_ISDIR(a->mode) && archive_overlay(r->e).opaque)
		source_layer_close(r->s, inode);
	return complete(r, inode, a, err);
}

static int add_found(struct archive_reader *r, const struct member *m, struct btrkit_error *err)
{
	const char *target = archive_entry_hardlink(r->e), *wrong;
	enum member_whiteout kind;
	struct source_attr a = { 0 };
	bool done = false;
	int ret = 0;

	wrong = target ? NULL : attr_of(r, &a);
	if (wrong)
		return archive_refuse(r, err, EINVAL, "%s", wrong);
	kind = member_whiteout(r->s, m, target ? NULL : &a);
	if (kind)
		return whiteout(r, kind, m, err);
	if (target) {
		uint32_t inode;

		if (source_layered(r->s) && m->parent != SOURCE_NONE &&
		    source_layer_look(r->s, m->parent, m->name, m->len, false, &inode) == LAYER_HIDDEN)
			return hide(r, err);
		return add_link(r, m, target, err);
	}
	if (source_layered(r->s))
		ret = add_layered(r, m, &a, &done, err);
	return ret || done ? ret : add_new(r, m, &a, err);
}

int archive_add_member(struct archive_reader *r, struct btrkit_error *err)
{
	const struct source_attr implicit = implicit_attr(r);
	const char *wrong = member_path_wrong(r->path);
	struct member m;
	int ret;

	if (wrong)
		return archive_refuse(r, err, EINVAL, "%s", wrong);
	/* Until its own member arrives, a directory has the time of the first member in it. */
	if ((r->s->inodes[0].bits & BIT_IMPLICIT) && !r->s->num_entries)
		r->s->inodes[0].mtime = r->s->inodes[0].atime = r->s->inodes[0].ctime = r->mtime;
	ret = member_find(r->s, r->path, &implicit, &m, err);
	if (ret == MEMBER_HIDDEN)
		return hide(r, err);
	if (ret)
		return ret < 0 ? ret : 0;
	return add_found(r, &m, err);
}

/* Adds the current member under a name that waits for it. @return 0; 1: excluded; <0 */
static int add_as(struct archive_reader *r, const char *path, struct archive_hidden *h, struct btrkit_error *err)
{
	const struct source_attr implicit = implicit_attr(r);
	struct source_attr a;
	struct member m;
	uint32_t inode;
	int ret = member_find(r->s, path, &implicit, &m, err);
	const char *wrong = ret ? NULL : attr_of(r, &a);

	if (wrong)
		return archive_refuse(r, err, EINVAL, "%s", wrong);
	if (!ret)
		ret = member_add(r->s, &m, &a, &inode, err);
	if (ret)
		return ret;
	archive_hidden_set_inode(h, inode);
	return complete(r, inode, &a, err);
}

int archive_add_late(struct archive_reader *r, struct btrkit_error *err)
{
	struct archive_hidden *h;
	int ret = archive_links_find(&r->links, r->path, &h, err);

	if (ret || !h)
		return ret;
	/* In cpio the last name of a file has the contents, and may be one of those that waited. */
	if (archive_entry_hardlink(r->e))
		return archive_hidden_inode(h) == SOURCE_NONE ? 0 : link_contents(r, archive_hidden_inode(h), err);
	if (!archive_hidden_wanted(h))
		return 0;
	for (size_t i = 0; i < r->links.num_late && archive_hidden_wanted(h); i++) {
		if (r->links.late[i].target != h)
			continue;
		ret = add_as(r, r->links.late[i].path, h, err);
		if (ret < 0)
			return ret;
	}
	return 0;
}

int archive_link_late(struct archive_reader *r, struct btrkit_error *err)
{
	for (size_t i = 0; i < r->links.num_late; i++) {
		const struct archive_late *late = &r->links.late[i];
		const uint32_t inode = archive_hidden_inode(late->target);
		const struct source_attr implicit = implicit_attr(r);
		struct member m;
		int ret;

		if (inode == SOURCE_NONE)
			continue;
		ret = member_find(r->s, late->path, &implicit, &m, err);
		if (!ret && source_find(r->s, m.parent, m.name, m.len) != inode)
			ret = source_add_link(r->s, m.parent, m.name, m.len, inode, err);
		if (ret < 0)
			return ret;
	}
	return 0;
}

#endif
