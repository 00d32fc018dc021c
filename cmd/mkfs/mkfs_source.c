// SPDX-License-Identifier: LGPL-2.1-or-later
/* Options about the contents of a new filesystem. */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/mkfs/mkfs.h"

/* Makes room for one more than @n elements. */
static void *grow(const struct command *cmd, void *at, size_t n, size_t size)
{
	void *more = reallocarray(at, n + 1, size);

	if (!more)
		exit(cmd_fail_no_memory(cmd));
	return more;
}

static void take_string(const struct command *cmd, const char ***list, size_t *n, const char *const **shown,
			 const char *string)
{
	*list = grow(cmd, *list, *n, sizeof(**list));
	(*list)[(*n)++] = string;
	*shown = *list;
}

static void take_source(const struct command *cmd, struct mkfs_request *req, enum btrkit_source_kind kind,
			const char *path)
{
	struct btrkit_mkfs_source *s = &req->source;

	if (s->kind && s->kind != kind)
		cmd_usage_error(cmd, "--rootdir, --tar and --manifest cannot be combined");
	if (s->kind == BTRKIT_SOURCE_MANIFEST)
		cmd_usage_error(cmd, "--manifest: there is already '%s'", s->path);
	/* mkfs.btrfs uses the last one. */
	if (!s->kind || (cmd_is_mkfs_btrfs && kind == BTRKIT_SOURCE_DIRECTORY)) {
		s->kind = kind;
		s->path = path;
		return;
	}
	take_string(cmd, &req->layers, &s->num_layers, &s->layers, path);
}

/* Parses TYPE:DIR. Without a known type, everything is the name. */
static void take_subvolume(const struct command *cmd, struct mkfs_request *req, const char *s)
{
	static const struct {
		const char *name;
		bool readonly, is_default;
	} types[] = { { "rw:", false, false }, { "ro:", true, false }, { "default:", false, true },
		      { "default-ro:", true, true } };
	struct btrkit_mkfs_subvolume v = { .path = s };

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		const size_t len = strlen(types[i].name);

		if (!strncmp(s, types[i].name, len))
			v = (struct btrkit_mkfs_subvolume){ s + len, types[i].readonly, types[i].is_default };
	}
	for (size_t i = 0; v.is_default && i < req->source.num_subvolumes; i++)
		if (req->source.subvolumes[i].is_default)
			cmd_usage_error(cmd, "--subvol: '%s': there is already a default subvolume", s);
	req->subvolumes = grow(cmd, req->subvolumes, req->source.num_subvolumes, sizeof(v));
	req->subvolumes[req->source.num_subvolumes++] = v;
	req->source.subvolumes = req->subvolumes;
}

/* Parses FLAG[,FLAG...]:PATH. */
static void take_inode_flags(const struct command *cmd, struct mkfs_request *req, const char *s)
{
	const char *colon = strchr(s, ':');
	struct btrkit_mkfs_inode_flags f = { .path = colon ? colon + 1 : NULL };

	if (!colon)
		cmd_usage_error(cmd, "--inode-flags: '%s' has no path", s);
	for (const char *at = s; at < colon; at++) {
		const size_t len = strcspn(at, ",:");

		if (len == 9 && !strncmp(at, "nodatacow", len))
			f.nodatacow = true;
		else if (len == 9 && !strncmp(at, "nodatasum", len))
			f.nodatasum = true;
		else
			cmd_usage_error(cmd, "--inode-flags: '%.*s' is unknown", (int)len, at);
		at += len;
	}
	if (!f.nodatacow && !f.nodatasum)
		cmd_usage_error(cmd, "--inode-flags: '%s' has no flag", s);
	req->inode_flags = grow(cmd, req->inode_flags, req->source.num_inode_flags, sizeof(f));
	req->inode_flags[req->source.num_inode_flags++] = f;
	req->source.inode_flags = req->inode_flags;
}

/* Parses UID:GID. */
static void take_owner(const struct command *cmd, struct mkfs_request *req, const char *s)
{
	const char *const whole = s;
	unsigned long long id[2];
	char *end;

	for (unsigned i = 0; i < 2; i++) {
		errno = 0;
		id[i] = isdigit((unsigned char)*s) ? strtoull(s, &end, 10) : UINT64_MAX;
		if (id[i] >= UINT32_MAX || errno || *end != (i ? '\0' : ':'))
			cmd_usage_error(cmd, "--root-owner: '%s' is not UID:GID", whole);
		s = end + 1;
	}
	req->source.flags |= BTRKIT_SOURCE_ROOT_OWNER;
	req->source.root_uid = (uint32_t)id[0];
	req->source.root_gid = (uint32_t)id[1];
}

static void take_free(const struct command *cmd, struct btrkit_mkfs_options *o, const char *s)
{
	const size_t len = strlen(s);
	char number[16];
	uint64_t percent;

	if (!len || s[len - 1] != '%') {
		o->free_bytes = cmd_size(cmd, "--free", s);
		return;
	}
	if (len >= sizeof(number))
		cmd_usage_error(cmd, "--free: '%s' is too large", s);
	memcpy(number, s, len - 1);
	number[len - 1] = '\0';
	percent = cmd_number(cmd, "--free", number, false);
	if (percent > UINT16_MAX)
		cmd_usage_error(cmd, "--free: '%s' is too large", s);
	o->free_percent = (unsigned)percent;
}

/* @return whether the option selects the source */
static bool take_kind(const struct command *cmd, struct mkfs_request *req, int c)
{
	switch (c) {
	case 'r':
		take_source(cmd, req, BTRKIT_SOURCE_DIRECTORY, optarg);
		return true;
	case OPT_TAR:
		take_source(cmd, req, BTRKIT_SOURCE_ARCHIVE, optarg);
		return true;
	case OPT_MANIFEST:
		take_source(cmd, req, BTRKIT_SOURCE_MANIFEST, optarg);
		return true;
	default:
		return false;
	}
}

/* @return whether the option only sets flags */
static bool take_flag(struct mkfs_request *req, int c)
{
	static const struct {
		int option;
		unsigned mkfs, source;	/* BTRKIT_MKFS_*, BTRKIT_SOURCE_* */
	} flags[] = {
		{ OPT_WHITEOUTS, 0, BTRKIT_SOURCE_WHITEOUTS },
		{ OPT_ACCEPT_CHANGES, 0, BTRKIT_SOURCE_ACCEPT_CHANGES },
		{ OPT_DETERMINISTIC, BTRKIT_MKFS_DETERMINISTIC, BTRKIT_SOURCE_NO_HOST_XATTRS },
		{ OPT_SIZE_ONLY, BTRKIT_MKFS_DRY, 0 },
		{ OPT_REFLINK, BTRKIT_MKFS_SHARE, 0 },
		{ OPT_VERIFY, BTRKIT_MKFS_VERIFY, 0 },
	};

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		if (flags[i].option != c)
			continue;
		req->opts.flags |= flags[i].mkfs;
		req->source.flags |= flags[i].source;
		return true;
	}
	return false;
}

/* @return whether the option changes what is made of a source */
static bool take_treatment(const struct command *cmd, struct mkfs_request *req, int c)
{
	struct btrkit_mkfs_source *s = &req->source;

	switch (c) {
	case OPT_BASEDIR:
		s->basedir = optarg;
		return true;
	case 'u':
		take_subvolume(cmd, req, optarg);
		return true;
	case OPT_INODE_FLAGS:
		take_inode_flags(cmd, req, optarg);
		return true;
	case OPT_COMPRESS:
		req->level_given = cmd_compression(cmd, optarg, &req->opts.compression,
						   &req->opts.compression_level);
		return true;
	case OPT_EXCLUDE:
		take_string(cmd, &req->exclude, &s->num_exclude, &s->exclude, optarg);
		return true;
	case OPT_WITH_XATTR:
		take_string(cmd, &req->with_xattrs, &s->num_with_xattrs, &s->with_xattrs, optarg);
		return true;
	case OPT_WITHOUT_XATTR:
		take_string(cmd, &req->without_xattrs, &s->num_without_xattrs, &s->without_xattrs, optarg);
		return true;
	case OPT_ROOT_OWNER:
		take_owner(cmd, req, optarg);
		return true;
	case OPT_SHRINK:
		req->shrink = true;
		return true;
	case OPT_FREE:
		take_free(cmd, &req->opts, optarg);
		return true;
	case OPT_SORT:
		req->opts.sort = optarg;
		return true;
	case OPT_THREADS:
		req->opts.threads = cmd_count(cmd, "--threads", optarg, CMD_THREADS_MAX);
		return true;
	default:
		return take_flag(req, c);
	}
}

bool mkfs_take_source_option(const struct command *cmd, struct mkfs_request *req, int c)
{
	if (take_kind(cmd, req, c))
		return true;
	if (!take_treatment(cmd, req, c))
		return false;
	/* "no" is also the default without a source. */
	if (c == OPT_COMPRESS && req->opts.compression == BTRKIT_COMPRESSION_NONE)
		return true;
	for (const struct cmd_option *o = mkfs_options; o->id; o++)
		if (o->id == c)
			req->needs_source = o->name;
	return true;
}

void mkfs_check_source(const struct command *cmd, struct mkfs_request *req)
{
	struct btrkit_mkfs_options *o = &req->opts;

	if (!req->source.kind) {
		if (req->needs_source)
			cmd_usage_error(cmd, "--%s needs --rootdir, --tar or --manifest", req->needs_source);
		return;
	}
	o->source = &req->source;
	if (req->source.basedir && req->source.kind != BTRKIT_SOURCE_MANIFEST)
		cmd_usage_error(cmd, "--basedir needs --manifest");
	/* In a directory whiteouts are copied like other files. */
	if ((req->source.flags & BTRKIT_SOURCE_WHITEOUTS) && req->source.kind == BTRKIT_SOURCE_DIRECTORY)
		cmd_usage_error(cmd, "--whiteouts needs --tar or --manifest");
	if ((req->source.flags & BTRKIT_SOURCE_ACCEPT_CHANGES) && req->source.kind != BTRKIT_SOURCE_DIRECTORY)
		cmd_usage_error(cmd, "--accept-changes needs --rootdir");
	if ((req->source.flags & BTRKIT_SOURCE_ACCEPT_CHANGES) && o->flags & (BTRKIT_MKFS_VERIFY | BTRKIT_MKFS_SHARE))
		cmd_usage_error(cmd, "--accept-changes cannot be used with --verify or --reflink");
	if ((req->source.flags & BTRKIT_SOURCE_WHITEOUTS) && req->source.num_layers)
		cmd_usage_error(cmd, "--whiteouts cannot be used with several layers, to which whiteouts apply");
	mkfs_check_image(req);
	if (getenv("SOURCE_DATE_EPOCH"))
		o->flags |= BTRKIT_MKFS_CLAMP_TIMES;
}

void mkfs_release_source(struct mkfs_request *req)
{
	free(req->subvolumes);
	free(req->inode_flags);
	free(req->exclude);
	free(req->with_xattrs);
	free(req->without_xattrs);
	free(req->layers);
}
