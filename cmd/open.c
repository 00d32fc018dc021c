// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cmd/cmd.h"

#define SCANNED_MAX 1024	/* maximum number of devices of a filesystem */
/* Small, since changed blocks take memory as well. */
#define WRITE_CACHE_BYTES (16u << 20)

int cmd_keep_undo(const char *file, struct btrkit_io **ios, size_t n, struct btrkit_error *err)
{
	return file ? btrkit_io_undo(ios, n, file, 0, ios, err) : 0;
}

bool cmd_same_device(const char *a, const char *b)
{
	struct stat x, y;

	if (!strcmp(a, b))
		return true;
	return !stat(a, &x) && !stat(b, &y) &&
	       (S_ISBLK(x.st_mode) ? S_ISBLK(y.st_mode) && x.st_rdev == y.st_rdev :
				     x.st_dev == y.st_dev && x.st_ino == y.st_ino);
}

bool cmd_is_device(const char *file, const char *device)
{
	const char *mark = strrchr(device, '?');
	bool same = cmd_same_device(file, device);
	char *path;

	if (same || !mark)
		return same;
	path = strndup(device, (size_t)(mark - device));
	same = !path || cmd_same_device(file, path);
	free(path);
	return same;
}

int cmd_open_device(const char *const *devices, size_t i, unsigned flags, struct btrkit_io **ret,
		    struct btrkit_error *err)
{
	for (size_t j = 0; flags & BTRKIT_IO_EXCLUSIVE && j < i; j++) {
		if (!cmd_same_device(devices[i], devices[j]))
			continue;
		*err = (struct btrkit_error){ .code = BTRKIT_INVALID, .err = -EINVAL, .message = "is given twice" };
		return -EINVAL;
	}
	return btrkit_io_open(devices[i], flags, ret, err);
}

struct opening {
	const char *const *devices; /* as given */
	size_t n;
	bool scan;
	const char *undo; /* file, or NULL */
	struct btrkit_open_options opts;
	const char *blame; /* the device to name in an error */
	bool unused;	   /* refuse devices in use although they are only read */
};

static bool for_writing(const struct opening *o)
{
	return o->opts.flags & BTRKIT_OPEN_WRITE;
}

static unsigned io_flags(const struct opening *o)
{
	if (for_writing(o))
		return BTRKIT_IO_WRITE | BTRKIT_IO_EXCLUSIVE;
	return o->unused ? BTRKIT_IO_EXCLUSIVE : BTRKIT_IO_READ;
}

/* Opens @io again with other flags, since the scan opens devices for reading. */
static int reopen(struct btrkit_io **io, unsigned flags, struct btrkit_error *err)
{
	struct btrkit_io *again;
	int r = btrkit_io_open((*io)->name, flags, &again, err);

	if (r)
		return r;
	btrkit_io_close(*io);
	*io = again;
	return 0;
}

/* @ios has room for devices found by the scan. @opened: the number of devices to close, also after a failure */
static int open_ios(struct opening *o, struct btrkit_io **ios, size_t *opened, struct btrkit_error *err)
{
	const unsigned flags = io_flags(o);
	size_t found = 0;
	int r = 0;

	while (*opened < o->n && !r) {
		o->blame = o->devices[*opened];
		r = cmd_open_device(o->devices, *opened, flags, &ios[*opened], err);
		*opened += !r;
	}
	if (r)
		return r;
	o->blame = o->devices[0];
	/*
	 * If the scan cannot use a superblock, the library reports that when it opens the filesystem, or uses a mirror.
	 */
	if (o->scan)
		r = btrkit_fs_scan(ios, o->n, BTRKIT_SCAN_ALL, ios + o->n, SCANNED_MAX, &found, err);
	if (r == -EINVAL)
		return r;
	*opened += found;
	r = 0;
	for (size_t i = o->n; flags != BTRKIT_IO_READ && i < *opened && !r; i++)
		r = reopen(&ios[i], flags, err);
	return r;
}

static int open_fs(struct opening *o, struct btrkit_fs **ret, struct btrkit_error *err)
{
	struct btrkit_io **ios = calloc(o->n + SCANNED_MAX, sizeof(struct btrkit_io *));
	size_t opened = 0;
	int r;

	if (!ios)
		return cmd_no_memory(err);
	r = open_ios(o, ios, &opened, err);
	if (!r)
		r = cmd_keep_undo(o->undo, ios, opened, err);
	/* On success the handle owns the devices. */
	if (!r)
		r = btrkit_fs_open(ios, opened, &o->opts, ret, err);
	while (r && opened)
		btrkit_io_close(ios[--opened]);
	free(ios);
	return r;
}

static struct btrkit_fs *open_or_say(const struct command *cmd, struct opening *o)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_fs *fs;

	if (!open_fs(o, &fs, &err))
		return fs;
	cmd_fail(cmd, o->blame, &err);
	return NULL;
}

static struct btrkit_fs *open_noted(const struct command *cmd, struct opening *o,
				    const struct btrkit_open_options *opts)
{
	static struct cmd_note note; /* static, since the handle may use it as long as it exists */

	if (opts)
		o->opts = *opts;
	note = (struct cmd_note){ cmd, o->devices[0] };
	o->opts.note = cmd_note;
	o->opts.device_note = cmd_note_device;
	o->opts.note_ctx = &note;
	return open_or_say(cmd, o);
}

struct btrkit_fs *cmd_open(const struct command *cmd, const char *const *devices, size_t n, bool scan,
			   const struct btrkit_open_options *opts)
{
	struct opening o = { devices, n, scan, NULL, BTRKIT_OPEN_OPTIONS_INIT, devices[0], false };

	return open_noted(cmd, &o, opts);
}

struct btrkit_fs *cmd_open_unused(const struct command *cmd, const char *const *devices, size_t n, bool scan,
				  const struct btrkit_open_options *opts)
{
	struct opening o = { devices, n, scan, NULL, BTRKIT_OPEN_OPTIONS_INIT, devices[0], true };

	return open_noted(cmd, &o, opts);
}

/* Keeps the last note, which explains why writing is refused; one line is enough. */
#define NOTE_SIZE 512
static void keep_note(void *ctx, const char *line)
{
	snprintf(ctx, NOTE_SIZE, "%s", line);
}

struct btrkit_fs *cmd_open_write(const struct command *cmd, const char *const *devices, size_t n, bool scan,
				 unsigned flags, const char *undo)
{
	const bool writes = flags & BTRKIT_OPEN_WRITE;
	struct opening o = { devices, n, scan, undo, BTRKIT_OPEN_OPTIONS_INIT, devices[0], false };
	struct cmd_note note = { cmd, devices[0] };
	static char line[NOTE_SIZE];
	struct btrkit_fs *fs;

	o.opts.flags = flags;
	o.opts.cache_bytes = WRITE_CACHE_BYTES;
	o.opts.note = keep_note;
	o.opts.note_ctx = line;
	fs = open_or_say(cmd, &o);
	if (fs && *line && writes)
		cmd_note(&note, line);
	return fs;
}
