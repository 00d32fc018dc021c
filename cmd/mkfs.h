/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CMD_MKFS_H
#define CMD_MKFS_H

/* btrkit mkfs: what its command line asks for, and what it prints. */

#include "cmd.h"

#define MKFS_SECTORSIZE 4096u	/* where none is asked for */
#define MKFS_MIXED_GROUPS 0x4u	/* bit of the incompat features */

/* Options without a letter. */
enum {
	OPT_DEVICE_UUID = 256,
	OPT_CSUM,
	OPT_CHECKSUM,
	OPT_INODE_FLAGS,
	OPT_COMPRESS,
	OPT_REFLINK,
	OPT_SHRINK,
	MKFS_OWN_OPTIONS,	/* those from here on are not in mkfs.btrfs */
	OPT_UNDO = MKFS_OWN_OPTIONS,
	OPT_TAR,
	OPT_MANIFEST,
	OPT_BASEDIR,
	OPT_EXCLUDE,
	OPT_WITH_XATTR,
	OPT_WITHOUT_XATTR,
	OPT_ROOT_OWNER,
	OPT_WHITEOUTS,
	OPT_DETERMINISTIC,
	OPT_FREE,
	OPT_SIZE_ONLY,
	OPT_THREADS,
	OPT_FORMAT,
	OPT_VERIFY,
	OPT_SORT
};

struct mkfs_request {
	struct btrkit_mkfs_options opts;
	uint8_t fsid[16], device_uuid[16];	/* what opts points to, where given */
	bool force;
	unsigned verbosity;			/* 0: print nothing, 1: the summary, from 2 on more */
	bool old_features;			/* -R was used */
	const char *const *devices;
	size_t num_devices;
	const char *undo;			/* file for what is overwritten, or NULL */
	struct btrkit_mkfs_source source;	/* what opts points to, where one is given */
	const char *needs_source;		/* an option that was given and is of use with a source only */
	bool shrink;
	bool level_given;			/* of compression */
	bool json;
	uint64_t keep_size;			/* what the image file has at least when all is done */
	/* Arrays of the source. */
	struct btrkit_mkfs_subvolume *subvolumes;
	struct btrkit_mkfs_inode_flags *inode_flags;
	const char **exclude, **with_xattrs, **without_xattrs;
};

/* What there is to say of a profile. */
struct mkfs_profile {
	const char *name;			/* as it is printed */
	enum btrkit_profile profile;
	uint64_t flag;				/* of block groups; 0 for single */
	unsigned tolerates;			/* devices that may be lost */
};
#define MKFS_PROFILES 9
extern const struct mkfs_profile mkfs_profiles[MKFS_PROFILES];

/* Indexed by enum btrkit_csum. */
extern const char *const mkfs_csums[4];

extern const struct cmd_option mkfs_options[];

/* Fills in what the command line and the environment say, or ends the program. */
void mkfs_parse(const struct command *cmd, int argc, char **argv, struct mkfs_request *req);

/* Takes an option about the source. @return whether it was one */
bool mkfs_take_source_option(const struct command *cmd, struct mkfs_request *req, int c);
/* When all options were taken. */
void mkfs_judge_source(const struct command *cmd, struct mkfs_request *req);
void mkfs_release_source(struct mkfs_request *req);

/* How large image files that are filled become, as far as options say. */
void mkfs_judge_image(struct mkfs_request *req);
/* An image file that is to be filled is made if there is none. @return 0 or a negative errno */
int mkfs_create_image(const struct mkfs_request *req, const char *path, bool *created);
/* It becomes larger if it is too small for the size asked for: when it was guarded. @return 0; <0 */
int mkfs_enlarge_image(const struct mkfs_request *req, struct btrkit_io *io, struct btrkit_error *err);
/* When the filesystem in the image file is done. @return 0 or a negative errno */
int mkfs_restore_size(const struct mkfs_request *req);

/* Whoever looks on, and may interrupt. */
struct mkfs_watch {
	struct cmd_progress progress;
	const struct command *cmd;
	const char *device;
	int64_t began;				/* filling, by cmd_clock(); 0: not yet */
};
/* The options tell it from then on how far everything is. */
void mkfs_watch_begin(struct mkfs_watch *w, const struct command *cmd, struct mkfs_request *req);
void mkfs_watch_end(struct mkfs_watch *w);

/* The list of -O, and with @old of -R; changes it. */
void mkfs_take_features(const struct command *cmd, struct btrkit_mkfs_options *o, char *list, bool old);

/* Names of the features that are set, as -O takes them, each but the first after a comma. */
void mkfs_print_features(uint64_t incompat, uint64_t compat_ro, bool quota);

/* Words about what was made that do not stop it: one line each to stderr. */
void mkfs_warn(const struct command *cmd, const struct mkfs_request *req, const struct btrkit_mkfs_result *r);

void mkfs_print_summary(const struct mkfs_request *req, const struct btrkit_mkfs_result *r);
/* The part of it about what was filled in. */
void mkfs_print_filled(const struct mkfs_request *req, const struct btrkit_mkfs_result *r);
/* As btrfs-progs prints sizes. @return @to */
const char *mkfs_pretty(uint64_t size, char to[32]);

/*
 * A value that sysfs has about the block device, or the disk that it is a part of. @return false if there is none: it
 * is a file
 */
bool mkfs_queue_value(const char *device, const char *name, char *to, size_t size);
/* Whether sysfs says that it does not rotate. */
bool mkfs_is_ssd(const char *device);

/* Tells Linux of the block devices among them, so that a filesystem on several can be mounted by naming one. */
void mkfs_register(const struct command *cmd, const struct mkfs_request *req);

#endif
