/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CMD_MKFS_H
#define CMD_MKFS_H

/* btrkit mkfs: its command line and its output. */

#include "cmd/cmd.h"

#define MKFS_SECTORSIZE 4096u	/* the default */
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
	MKFS_OWN_OPTIONS,	/* those from here on do not exist in mkfs.btrfs */
	OPT_UNDO = MKFS_OWN_OPTIONS,
	OPT_TAR,
	OPT_MANIFEST,
	OPT_BASEDIR,
	OPT_EXCLUDE,
	OPT_WITH_XATTR,
	OPT_WITHOUT_XATTR,
	OPT_ROOT_OWNER,
	OPT_WHITEOUTS,
	OPT_ACCEPT_CHANGES,
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
	uint8_t fsid[16], device_uuid[16];	/* opts points to these, if given */
	bool force;
	unsigned verbosity;			/* 0: print nothing, 1: the summary, 2 and more: details */
	bool old_features;			/* -R was used */
	const char *const *devices;
	size_t num_devices;
	const char *undo;			/* undo file, or NULL */
	struct btrkit_mkfs_source source;	/* opts points to this, if given */
	const char *needs_source;		/* an option that was given and requires a source */
	bool shrink;
	bool level_given;			/* of compression */
	bool json;
	uint64_t keep_size;			/* minimum size of the image file at the end */
	/* Arrays of the source. */
	struct btrkit_mkfs_subvolume *subvolumes;
	struct btrkit_mkfs_inode_flags *inode_flags;
	const char **exclude, **with_xattrs, **without_xattrs, **layers;
};

/* Properties of a profile. */
struct mkfs_profile {
	const char *name;			/* as printed */
	enum btrkit_profile profile;
	uint64_t flag;				/* of block groups; 0 for single */
	unsigned tolerates;			/* devices that may be lost */
};
#define MKFS_PROFILES 9
extern const struct mkfs_profile mkfs_profiles[MKFS_PROFILES];

/* Indexed by enum btrkit_csum. */
extern const char *const mkfs_csums[4];

extern const struct cmd_option mkfs_options[];

/* In mkfs_options.c: */
/* Parses the command line and the environment. Errors end the program. */
void mkfs_parse(const struct command *cmd, int argc, char **argv, struct mkfs_request *req);

/* In mkfs_source.c: */
/* Handles an option about the source. @return whether it is one */
bool mkfs_take_source_option(const struct command *cmd, struct mkfs_request *req, int c);
/* Checks the source after all options were parsed. */
void mkfs_check_source(const struct command *cmd, struct mkfs_request *req);
void mkfs_release_source(struct mkfs_request *req);

/* In mkfs_image.c: */
/* Decides how the size of an image file that is filled is determined. */
void mkfs_check_image(struct mkfs_request *req);
/* Creates a missing image file if it is to be filled. @return 0 or a negative errno */
int mkfs_create_image(const struct mkfs_request *req, const char *path, bool *created);
/* Enlarges an image file that is smaller than the requested size. Call it after the guards. @return 0; <0 */
int mkfs_enlarge_image(const struct mkfs_request *req, struct btrkit_io *io, struct btrkit_error *err);
/* To be called when the filesystem in the image file is complete. @return 0 or a negative errno */
int mkfs_restore_size(const struct mkfs_request *req);

/* Progress and interruption. */
struct mkfs_watch {
	struct cmd_progress progress;
	const struct command *cmd;
	const char *device;
	int64_t began;				/* start of filling, by cmd_clock(); 0: not yet */
};

/* In mkfs_watch.c: */
/* Sets the progress functions in the options. */
void mkfs_watch_begin(struct mkfs_watch *w, const struct command *cmd, struct mkfs_request *req);
void mkfs_watch_end(struct mkfs_watch *w);

/* In mkfs_features.c: */
/* Parses the list of -O, or with @old of -R; modifies it. */
void mkfs_take_features(const struct command *cmd, struct btrkit_mkfs_options *o, char *list, bool old);

/* Prints the names of the features that are set, as for -O, separated by commas. */
void mkfs_print_features(uint64_t incompat, uint64_t compat_ro, bool quota);

/* In mkfs_print.c: */
/* Prints warnings about what was made: one line each to stderr. */
void mkfs_warn(const struct command *cmd, const struct mkfs_request *req, const struct btrkit_mkfs_result *r);

void mkfs_print_summary(const struct mkfs_request *req, const struct btrkit_mkfs_result *r);

/* In mkfs_print_filled.c: */
/* Prints the part of the summary about the contents. */
void mkfs_print_filled(const struct mkfs_request *req, const struct btrkit_mkfs_result *r);

/* In mkfs_print.c: */
/* Formats a size like btrfs-progs. @return @to */
const char *mkfs_pretty(uint64_t size, char to[32]);

/* Reads a queue attribute of a block device, or of its disk, from sysfs. @return false: none, as for a file */
bool mkfs_queue_value(const char *device, const char *name, char *to, size_t size);
/* Whether the device is non-rotational according to sysfs. */
bool mkfs_is_ssd(const char *device);

/* In mkfs_register.c: */
/* Registers the block devices with Linux, so that a filesystem on several can be mounted by naming one. */
void mkfs_register(const struct command *cmd, const struct mkfs_request *req);

#endif
