// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reads archives member by member, as layers from the top down. */
#include "lib/source/archive_reader.h"

#include "lib/base/err.h"

#ifdef HAVE_ARCHIVE

#include <archive.h>
#include <archive_entry.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/source/layers.h"

int archive_refuse(const struct archive_reader *r, struct btrkit_error *err, int errnum, const char *fmt, ...)
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

static int read_member(struct archive_reader *r, struct btrkit_error *err)
{
	int ret;

	r->path = archive_entry_pathname(r->e);
	if (!r->path)
		return err_corrupt(err, NULL, "%s: broken archive: member without a name", r->stream.name);
	r->mtime = archive_time(archive_entry_mtime(r->e), archive_entry_mtime_nsec(r->e));
	if (r->again)
		return archive_add_late(r, err);
	ret = archive_check_image(r, err);
	return ret ? ret : archive_add_member(r, err);
}

static int read_members(struct archive_reader *r, struct btrkit_error *err)
{
	const uint32_t layer = r->s->state->layer;
	int ret = archive_stream_open(&r->stream, source_layer_path(r->s, layer), source_name(r->s), err);

	while (!ret && !(ret = archive_stream_next(&r->stream, &r->e, err)))
		ret = read_member(r, err);
	if (ret == 1)
		ret = archive_stream_finish(&r->stream, err);
	archive_stream_close(&r->stream);
	return ret;
}

/* Reads the archive again for the targets of hard links that a layer above hides. */
static int read_again(struct archive_reader *r, struct btrkit_error *err)
{
	const char *path = source_layer_path(r->s, r->s->state->layer);
	char name[PATH_SHOWN];
	struct stat st;
	int ret;

	if (!strcmp(path, "-") || stat(path, &st) || !S_ISREG(st.st_mode)) {
		source_escape(source_name(r->s), strlen(source_name(r->s)), name, sizeof(name));
		return err_set(err, BTRKIT_INVALID,
			       "%s: must be read twice, since a layer above hides the target of the hard link %.100s: "
			       "give the name of a file",
			       name, r->links.late[0].path);
	}
	r->again = true;
	ret = read_members(r, err);
	return ret ? ret : archive_link_late(r, err);
}

static int read_layer(struct source *s, const struct source_sink *sink, struct btrkit_error *err)
{
	struct archive_reader r = { .s = s, .sink = sink };
	int ret = read_members(&r, err);

	if (!ret && r.links.num_late)
		ret = read_again(&r, err);
	archive_links_free(&r.links);
	return ret;
}

int source_read_archive(struct source *s, const struct source_sink *sink, struct btrkit_error *err)
{
	int ret = 0;

	for (uint32_t layer = (uint32_t)s->state->opts->num_layers + 1; !ret && layer;) {
		s->state->layer = --layer;
		ret = read_layer(s, sink, err);
	}
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
