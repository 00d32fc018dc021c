// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/source/manifest.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/format/items/files/inode.h"
#include "lib/source/members.h"

#define ID_MAX (UINT32_MAX - 1) /* UINT32_MAX means no owner */

enum field {
	FIELD_PATH,
	FIELD_SIZE,
	FIELD_MODE,
	FIELD_NLINK,
	FIELD_UID,
	FIELD_GID,
	FIELD_RDEV,
	FIELD_MTIME,
	FIELD_PAYLOAD,
	FIELD_CONTENT,
	FIELD_DIGEST,
	FIELDS
};

static const char *const field_names[FIELDS] = { "PATH", "SIZE",  "MODE",    "NLINK",	"UID",	 "GID",
						 "RDEV", "MTIME", "PAYLOAD", "CONTENT", "DIGEST" };

/* A field, unescaped in place and zero-terminated. */
struct text {
	char *at;
	size_t len;
	bool none; /* "-" */
};

struct line {
	struct text fields[FIELDS];
	char *xattrs, *end; /* rest of the line; NULL: none */
};

struct manifest_link {
	char *path, *target;
	uint64_t line;
};

BTRKIT_PRINTF(4, 5)
static int wrong(const struct manifest *m, struct btrkit_error *err, const char *field, const char *fmt, ...)
{
	char text[120];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	return err_corrupt(err, field, "line %" PRIu64 ": %s", m->line, text);
}

static int wrong_field(const struct manifest *m, struct btrkit_error *err, enum field f, const char *what)
{
	return wrong(m, err, field_names[f], "%s", what);
}

/* Prefixes an error message with the line number. */
static int at_line(uint64_t line, int ret, struct btrkit_error *err)
{
	char text[sizeof(err->message)];

	if (ret < 0 && err && ret != -ENOMEM) {
		memcpy(text, err->message, sizeof(text));
		snprintf(err->message, sizeof(err->message), "line %" PRIu64 ": %.*s", line,
			 (int)sizeof(err->message) - 32, text);
	}
	return ret;
}

static int hex(char c)
{
	return c >= '0' && c <= '9' ? c - '0' :
	       c >= 'a' && c <= 'f' ? c - 'a' + 10 :
	       c >= 'A' && c <= 'F' ? c - 'A' + 10 :
				      -1;
}

/* Decodes the escape sequence at @at, and stores its length in *len. @return the byte; -1: invalid */
static int escape_at(const char *at, const char *end, size_t *len)
{
	*len = 2;
	switch (end - at < 2 ? 0 : at[1]) {
	case '\\':
		return '\\';
	case 'n':
		return '\n';
	case 'r':
		return '\r';
	case 't':
		return '\t';
	case 'x':
		*len = 4;
		return end - at < 4 || hex(at[2]) < 0 || hex(at[3]) < 0 ? -1 : hex(at[2]) << 4 | hex(at[3]);
	default:
		return -1;
	}
}

/* Unescapes in place. The byte after @t is overwritten. @return false: invalid escape sequence */
static bool unescape(struct text *t)
{
	char *to = t->at;
	const char *end = t->at + t->len;

	for (const char *at = t->at; at < end;) {
		size_t len = 1;
		int byte = *at == '\\' ? escape_at(at, end, &len) : (uint8_t)*at;

		if (byte < 0)
			return false;
		*to++ = (char)byte;
		at += len;
	}
	t->len = (size_t)(to - t->at);
	*to = '\0';
	return true;
}

/* Splits a line into fields and unescapes them. */
static int split(const struct manifest *m, char *line, size_t len, struct line *ret, struct btrkit_error *err)
{
	char *end = line + len;

	if (memchr(line, '\0', len))
		return wrong(m, err, NULL, "contains a zero byte");
	for (unsigned i = 0; i < FIELDS; i++) {
		struct text *t = &ret->fields[i];
		char *space;

		if (!line)
			return wrong(m, err, NULL, "%u fields, but %u are needed", i, (unsigned)FIELDS);
		space = memchr(line, ' ', (size_t)(end - line));
		t->at = line;
		t->len = (size_t)((space ? space : end) - line);
		t->none = t->len == 1 && *line == '-';
		if (!t->len)
			return wrong_field(m, err, i, "is empty");
		if (!unescape(t))
			return wrong_field(m, err, i, "invalid escape sequence");
		line = space ? space + 1 : NULL;
	}
	ret->xattrs = line;
	ret->end = end;
	return 0;
}

/* Parses a number that consists of digits only. */
static bool number(const char *at, size_t len, unsigned base, uint64_t max, uint64_t *ret)
{
	uint64_t v = 0;

	for (size_t i = 0; i < len; i++) {
		const unsigned digit = (unsigned)at[i] - '0';

		if (digit >= base || v > (max - digit) / base)
			return false;
		v = v * base + digit;
	}
	*ret = v;
	return len > 0;
}

static int take_number(const struct manifest *m, const struct line *l, enum field f, uint64_t max, uint64_t *ret,
		       struct btrkit_error *err)
{
	const struct text *t = &l->fields[f];

	return number(t->at, t->len, 10, max, ret) ? 0 : wrong_field(m, err, f, "invalid number");
}

static bool take_time(const struct text *t, struct source_time *ret)
{
	const bool negative = t->len && *t->at == '-';
	const char *at = t->at + negative, *end = t->at + t->len, *dot = memchr(at, '.', (size_t)(end - at));
	uint64_t sec, nsec;

	if (!dot || !number(at, (size_t)(dot - at), 10, INT64_MAX, &sec) ||
	    !number(dot + 1, (size_t)(end - dot) - 1, 10, 999999999, &nsec))
		return false;
	*ret = (struct source_time){ negative ? -(int64_t)sec : (int64_t)sec, (uint32_t)nsec };
	return true;
}

static int take_owners(const struct manifest *m, const struct line *l, struct source_attr *a, struct btrkit_error *err)
{
	const bool device = S_ISCHR(a->mode) || S_ISBLK(a->mode);
	uint64_t nlink = 0, uid = 0, gid = 0, rdev = 0;
	int ret = take_number(m, l, FIELD_NLINK, UINT32_MAX, &nlink, err);

	if (!ret)
		ret = take_number(m, l, FIELD_UID, ID_MAX, &uid, err);
	if (!ret)
		ret = take_number(m, l, FIELD_GID, ID_MAX, &gid, err);
	if (!ret)
		ret = take_number(m, l, FIELD_RDEV, UINT64_MAX, &rdev, err);
	if (ret < 0)
		return ret;
	if (device && !rdev_possible(major(rdev), minor(rdev)))
		return wrong_field(m, err, FIELD_RDEV, "invalid device number");
	a->uid = (uint32_t)uid;
	a->gid = (uint32_t)gid;
	a->rdev = device ? rdev_join(major(rdev), minor(rdev)) : 0;
	return 0;
}

/* Checks a file with contents below the base directory. */
static int stat_contents(const struct manifest *m, const char *path, struct source_attr *a, struct btrkit_error *err)
{
	struct stat st;

	if (fstatat(m->s->state->roots[0], path, &st, 0))
		return err_system(err, errno, "line %" PRIu64 ": contents %.100s", m->line, path);
	if (!S_ISREG(st.st_mode))
		return wrong(m, err, NULL, "contents %.80s: not a regular file", path);
	if (source_is_target(m->s, &st))
		return wrong(m, err, NULL, "%.80s is the target of the new filesystem", path);
	if ((uint64_t)st.st_size != a->size)
		return wrong_field(m, err, FIELD_SIZE, "does not match the contents");
	a->identity = source_identity_and_times(&st);
	return 0;
}

static int take_contents(const struct manifest *m, struct line *l, struct source_attr *a, struct btrkit_error *err)
{
	const struct text *payload = &l->fields[FIELD_PAYLOAD], *content = &l->fields[FIELD_CONTENT];
	const char *path = payload->none ? l->fields[FIELD_PATH].at : payload->at;

	if (!content->none && content->len != a->size)
		return wrong_field(m, err, FIELD_CONTENT, "length does not match SIZE");
	if (!content->none || !a->size) {
		a->text = content->at;
		a->is_inline = true;
		return 0;
	}
	path += strspn(path, "/");
	if (!payload->none && strlen(payload->at) != payload->len)
		return wrong_field(m, err, FIELD_PAYLOAD, "contains a zero byte");
	if (!*path || member_path_wrong(path))
		return wrong_field(m, err, FIELD_PAYLOAD, "leads out of the base directory");
	a->text = path;
	return stat_contents(m, path, a, err);
}

static int take_attr(const struct manifest *m, struct line *l, uint32_t mode, struct source_attr *a,
		     struct btrkit_error *err)
{
	const struct text *payload = &l->fields[FIELD_PAYLOAD], *content = &l->fields[FIELD_CONTENT];
	int ret;

	*a = (struct source_attr){ .mode = mode };
	ret = take_number(m, l, FIELD_SIZE, INT64_MAX, &a->size, err);
	if (!ret)
		ret = take_owners(m, l, a, err);
	if (ret < 0)
		return ret;
	if (!take_time(&l->fields[FIELD_MTIME], &a->mtime))
		return wrong_field(m, err, FIELD_MTIME, "not a time as SECONDS.NANOSECONDS");
	a->atime = a->ctime = a->mtime;
	if (S_ISREG(mode))
		return take_contents(m, l, a, err);
	if (!content->none)
		return wrong_field(m, err, FIELD_CONTENT, "only allowed for regular files");
	if (S_ISLNK(mode)) {
		if (payload->none || strlen(payload->at) != payload->len)
			return wrong_field(m, err, FIELD_PAYLOAD, "invalid target of a symbolic link");
		a->text = payload->at;
	} else if (!payload->none) {
		return wrong_field(m, err, FIELD_PAYLOAD, "only allowed for regular files and links");
	}
	return 0;
}

static int add_xattrs(const struct manifest *m, const struct line *l, uint32_t inode, struct btrkit_error *err)
{
	for (char *at = l->xattrs, *end; at; at = end ? end + 1 : NULL) {
		struct text name = { .at = at }, value;
		char *equals;
		int ret;

		end = memchr(at, ' ', (size_t)(l->end - at));
		value.len = (size_t)((end ? end : l->end) - at);
		equals = memchr(at, '=', value.len);
		if (!equals)
			return wrong(m, err, "XATTR", "missing =");
		name.len = (size_t)(equals - at);
		value.at = equals + 1;
		value.len -= name.len + 1;
		/* The value first, because unescaping the name overwrites the "=". */
		if (!unescape(&value) || !unescape(&name))
			return wrong(m, err, "XATTR", "invalid escape sequence");
		if (strlen(name.at) != name.len)
			return wrong(m, err, "XATTR", "name contains a zero byte");
		ret = source_add_xattr(m->s, inode, name.at, value.at, value.len, err);
		if (ret < 0)
			return at_line(m->line, ret, err);
	}
	return 0;
}

static int add_link(const struct manifest *m, const char *path, const char *target, uint64_t line,
		    struct btrkit_error *err)
{
	struct source *s = m->s;
	char shown[PATH_SHOWN];
	struct member at;
	uint32_t inode;
	int ret = member_find(s, path, NULL, &at, err);

	if (ret > 0)
		return 0;
	if (ret == -ENOMEM)
		return ret;
	if (ret < 0 || at.parent == SOURCE_NONE)
		return err_corrupt(err, "PATH", "line %" PRIu64 ": parent directory is missing", line);
	ret = source_excludes(s, at.parent, at.name, at.len, err);
	if (ret)
		return ret < 0 ? ret : 0;
	inode = member_inode(s, target);
	if (inode == SOURCE_NONE) {
		source_escape(target, strlen(target), shown, sizeof(shown));
		return err_corrupt(err, "PAYLOAD", "line %" PRIu64 ": hard link to %s, which does not exist", line,
				   shown);
	}
	ret = source_add_link(s, at.parent, at.name, at.len, inode, err);
	return ret < 0 ? at_line(line, ret, err) : 0;
}

/* Remembers a hard link whose target may follow later. */
static int keep_link(struct manifest *m, const char *path, const char *target, struct btrkit_error *err)
{
	struct manifest_link *link;

	if (m->num_links == m->max_links) {
		struct manifest_link *grown = reallocarray(m->links, m->max_links * 2 + 16, sizeof(*grown));

		if (!grown)
			return err_nomem(err);
		m->links = grown;
		m->max_links = m->max_links * 2 + 16;
	}
	link = &m->links[m->num_links];
	*link = (struct manifest_link){ strdup(path), strdup(target), m->line };
	m->num_links++;
	return link->path && link->target ? 0 : err_nomem(err);
}

/* Finds the directory of a path. @return 0; 1: excluded by an option; -EUCLEAN */
static int find_place(const struct manifest *m, const char *path, struct member *ret, struct btrkit_error *err)
{
	const int failed = member_find(m->s, path, NULL, ret, err);

	if (failed == -ENOENT)
		return wrong_field(m, err, FIELD_PATH, "parent directory is missing");
	if (!failed && ret->parent != SOURCE_NONE && (m->s->inodes[0].bits & BIT_IMPLICIT))
		return wrong_field(m, err, FIELD_PATH, "the top directory must come first");
	return failed;
}

static int verify_path(const struct manifest *m, const struct text *path, struct btrkit_error *err)
{
	if (*path->at != '/' || strlen(path->at) != path->len)
		return wrong_field(m, err, FIELD_PATH, "not an absolute path");
	if (member_path_wrong(path->at + strspn(path->at, "/")))
		return wrong_field(m, err, FIELD_PATH, "leads out of the tree");
	return 0;
}

static int read_link(struct manifest *m, const struct line *l, uint32_t mode, struct btrkit_error *err)
{
	const struct text *target = &l->fields[FIELD_PAYLOAD];
	const char *path = l->fields[FIELD_PATH].at;

	if (S_ISDIR(mode))
		return wrong_field(m, err, FIELD_MODE, "hard link to a directory");
	if (target->none || strlen(target->at) != target->len ||
	    member_path_wrong(target->at + strspn(target->at, "/")))
		return wrong_field(m, err, FIELD_PAYLOAD, "invalid target of a hard link");
	if (member_inode(m->s, target->at) == SOURCE_NONE)
		return keep_link(m, path, target->at, err);
	return add_link(m, path, target->at, m->line, err);
}

int manifest_read_line(struct manifest *m, char *line, size_t len, struct btrkit_error *err)
{
	struct source_attr a;
	struct member at;
	struct line l;
	uint64_t mode;
	uint32_t inode;
	bool link;
	int ret;

	m->line++;
	ret = split(m, line, len, &l, err);
	if (!ret)
		ret = verify_path(m, &l.fields[FIELD_PATH], err);
	if (!ret)
		ret = find_place(m, l.fields[FIELD_PATH].at, &at, err);
	if (ret)
		return ret < 0 ? ret : 0;
	link = *l.fields[FIELD_MODE].at == '@';
	if (!number(l.fields[FIELD_MODE].at + link, l.fields[FIELD_MODE].len - link, 8, 0177777, &mode))
		return wrong_field(m, err, FIELD_MODE, "not an octal mode");
	ret = link ? 0 : take_attr(m, &l, (uint32_t)mode, &a, err);
	if (ret < 0)
		return ret;
	if (member_whiteout(m->s, &at, link ? NULL : &a))
		return wrong_field(m, err, FIELD_PATH, "whiteout, which marks a file to be removed");
	if (link)
		return read_link(m, &l, (uint32_t)mode, err);
	ret = member_add(m->s, &at, &a, &inode, err);
	if (ret)
		return ret < 0 ? at_line(m->line, ret, err) : 0;
	return add_xattrs(m, &l, inode, err);
}

int manifest_finish(struct manifest *m, struct btrkit_error *err)
{
	int ret = 0;

	if (m->s->inodes[0].bits & BIT_IMPLICIT)
		return err_corrupt(err, NULL, "no line for the top directory");
	for (size_t i = 0; i < m->num_links && !ret; i++)
		ret = add_link(m, m->links[i].path, m->links[i].target, m->links[i].line, err);
	return ret;
}

void manifest_free(struct manifest *m)
{
	for (size_t i = 0; i < m->num_links; i++) {
		free(m->links[i].path);
		free(m->links[i].target);
	}
	free(m->links);
}

static int read_lines(struct manifest *m, FILE *stream, struct btrkit_error *err)
{
	char *line = NULL;
	size_t max = 0;
	ssize_t len;
	int ret = 0;

	while (!ret && (errno = 0, len = getline(&line, &max, stream)) >= 0) {
		if (len && line[len - 1] == '\n')
			line[--len] = '\0';
		ret = manifest_read_line(m, line, (size_t)len, err);
	}
	if (!ret && errno == ENOMEM)
		ret = err_nomem(err);
	else if (!ret && ferror(stream))
		ret = err_system(err, errno, "cannot read manifest");
	free(line);
	return ret ? ret : manifest_finish(m, err);
}

int source_read_manifest(struct source *s, struct btrkit_error *err)
{
	const struct btrkit_mkfs_source *o = s->state->opts;
	const char *basedir = o->basedir ? o->basedir : ".";
	struct manifest m = { .s = s };
	FILE *stream;
	int ret, fd;

	s->state->roots[0] = open(basedir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->state->roots[0] < 0)
		return err_system(err, errno, "%.100s: cannot open directory", basedir);
	fd = strcmp(o->path, "-") ? open(o->path, O_RDONLY | O_CLOEXEC) : fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return err_system(err, errno, "%.100s: cannot open manifest", source_name(s));
	stream = fdopen(fd, "r");
	if (!stream) {
		ret = errno;
		close(fd);
		return err_system(err, ret, "%.100s: cannot open manifest", source_name(s));
	}
	ret = read_lines(&m, stream, err);
	fclose(stream);
	manifest_free(&m);
	return ret;
}
