// SPDX-License-Identifier: LGPL-2.1-or-later
/* Adds the members of an archive as names and inodes, and passes contents on as they arrive. */
#include "lib/source/archive.h"

#include "lib/base/err.h"

#ifdef HAVE_ARCHIVE

#include <archive.h>
#include <archive_entry.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/format/items/inode.h"
#include "lib/source/members.h"

struct reader {
	struct source *s;
	const struct source_sink *sink;
	struct archive_stream stream;
	struct archive_entry *e;
	const char *path;
	struct source_time mtime;
};

BTRKIT_PRINTF(4, 5)
static int refuse(const struct reader *r, struct btrkit_error *err, int errnum, const char *fmt, ...)
{
	char path[PATH_SHOWN];
	va_list args;
	int ret;

	source_escape(r->path, strlen(r->path), path, sizeof(path));
	va_start(args, fmt);
	ret = source_vfail(path, err, errnum, fmt, args);
	va_end(args);
	return ret;
}

/*
 * Names must be passed through as bytes. In the C locale, which is set here, libarchive does that, but warns that it
 * cannot convert UTF-8 from a pax header. That warning is ignored.
 */
static bool is_harmless(struct archive *a)
{
	const char *text = archive_error_string(a);

	return text && strstr(text, "can't be converted from UTF-8");
}

static struct source_time time_of(int64_t sec, long nsec)
{
	return (struct source_time){ sec, nsec < 0 || nsec > 999999999 ? 0 : (uint32_t)nsec };
}

/* Fills in the attributes of a member. @return what is invalid; NULL: nothing */
static const char *attr_of(const struct reader *r, struct source_attr *a)
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
		a->atime = time_of(archive_entry_atime(e), archive_entry_atime_nsec(e));
	if (archive_entry_ctime_is_set(e))
		a->ctime = time_of(archive_entry_ctime(e), archive_entry_ctime_nsec(e));
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

static int deliver(struct reader *r, uint32_t inode, struct btrkit_error *err)
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
			return refuse(r, err, EUCLEAN, "contents exceed the size or are out of order");
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
static int link_contents(struct reader *r, uint32_t inode, struct btrkit_error *err)
{
	const int64_t size = archive_entry_size(r->e);
	struct source *s = r->s;

	inode = s->inodes[inode].contents;
	if (!S_ISREG(s->inodes[inode].mode) || size <= 0)
		return 0;
	if (s->inodes[inode].size)
		return s->inodes[inode].size == (uint64_t)size ?
			       0 :
			       refuse(r, err, EINVAL, "size differs from that of another hard link");
	for (uint32_t i = inode; i != SOURCE_NONE; i = s->inodes[i].next_sharing)
		s->inodes[i].size = (uint64_t)size;
	return deliver(r, inode, err);
}

static int add_link(struct reader *r, const struct member *m, const char *target, struct btrkit_error *err)
{
	const char *wrong = member_path_wrong(target);
	char shown[80];
	uint32_t inode;
	int ret;

	source_escape(target, strlen(target), shown, sizeof(shown));
	if (wrong)
		return refuse(r, err, EINVAL, "hard link to %s: %s", shown, wrong);
	if (m->parent == SOURCE_NONE)
		return refuse(r, err, EINVAL, "top directory is a hard link");
	ret = source_excludes(r->s, m->parent, m->name, m->len, err);
	if (ret)
		return ret < 0 ? ret : 0;
	inode = member_inode(r->s, target);
	if (inode == SOURCE_NONE)
		return refuse(r, err, EINVAL, "hard link to %s, which is missing or excluded", shown);
	if (source_find(r->s, m->parent, m->name, m->len) != SOURCE_NONE)
		return refuse(r, err, EEXIST, "duplicate entry");
	ret = source_add_link(r->s, m->parent, m->name, m->len, inode, err);
	if (ret)
		return ret < 0 ? ret : 0;
	return link_contents(r, inode, err);
}

static int add_member(struct reader *r, struct btrkit_error *err)
{
	const struct source_attr implicit = {
		.mode = S_IFDIR | 0755, .mtime = r->mtime, .atime = r->mtime, .ctime = r->mtime
	};
	const char *wrong = member_path_wrong(r->path), *target = archive_entry_hardlink(r->e);
	struct source_attr a;
	struct member m;
	uint32_t inode;
	int ret;

	if (wrong)
		return refuse(r, err, EINVAL, "%s", wrong);
	/* Until its own member arrives, a directory has the time of the first member in it. */
	if ((r->s->inodes[0].bits & BIT_IMPLICIT) && !r->s->num_entries)
		r->s->inodes[0].mtime = r->s->inodes[0].atime = r->s->inodes[0].ctime = r->mtime;
	ret = member_find(r->s, r->path, &implicit, &m, err);
	if (ret)
		return ret < 0 ? ret : 0;
	wrong = target ? NULL : attr_of(r, &a);
	if (wrong)
		return refuse(r, err, EINVAL, "%s", wrong);
	if (member_is_whiteout(r->s, &m, target ? NULL : &a))
		return refuse(r, err, EINVAL, "whiteout, which marks a file to be removed");
	if (target)
		return add_link(r, &m, target, err);
	ret = member_add(r->s, &m, &a, &inode, err);
	if (ret)
		return ret < 0 ? ret : 0;
	ret = archive_add_xattrs(r->s, inode, r->e, err);
	if (!ret && S_ISREG(a.mode) && a.size)
		ret = deliver(r, inode, err);
	return ret;
}

static int read_members(struct reader *r, struct btrkit_error *err)
{
	struct archive *a = r->stream.members;
	int status, ret;

	while ((status = archive_read_next_header(a, &r->e)) != ARCHIVE_EOF) {
		if (status != ARCHIVE_OK && !(status == ARCHIVE_WARN && is_harmless(a)))
			return archive_fails(a, r->stream.name, err);
		r->path = archive_entry_pathname(r->e);
		if (!r->path)
			return err_corrupt(err, NULL, "%s: broken archive: member without a name", r->stream.name);
		r->mtime = time_of(archive_entry_mtime(r->e), archive_entry_mtime_nsec(r->e));
		ret = add_member(r, err);
		if (ret < 0)
			return ret;
	}
	return archive_stream_finish(&r->stream, err);
}

int source_read_archive(struct source *s, const struct source_sink *sink, struct btrkit_error *err)
{
	struct reader r = { .s = s, .sink = sink };
	int ret = archive_stream_open(&r.stream, s->state->opts->path, source_name(s), err);

	if (!ret)
		ret = read_members(&r, err);
	archive_stream_close(&r.stream);
	return ret;
}

#else

int source_read_archive(struct source *s, const struct source_sink *sink, struct btrkit_error *err)
{
	(void)s;
	(void)sink;
	return err_set(err, BTRKIT_UNSUPPORTED, "archives are not supported: this build is without libarchive");
}

#endif
