/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CMD_CMD_H
#define CMD_CMD_H

/* What the commands share: options, messages, output, opening. */

#include <btrkit/btrkit.h>

#define EXIT_DONE 0
#define EXIT_FAILED 1
#define EXIT_USAGE 2
#define EXIT_DIFFER 3	/* only where it was asked for */

/* An option. Parsing and --help both come from the table, so that they cannot differ. */
struct cmd_option {
	int id;			/* its letter, or a number from 256 for one that has none */
	const char *name;	/* the long form */
	const char *arg;	/* name of its argument; NULL: it takes none; [=NAME]: it may be left out */
	const char *help;	/* a newline begins another line; NULL: --help does not tell of it */
};

struct command {
	const char *name;
	const char *args;		/* what follows the options, as in --help */
	const char *summary;		/* one line */
	const struct cmd_option *options;	/* ends with a zero id; --help is in none of them */
	int (*run)(const struct command *cmd, int argc, char **argv);
	bool options_first;	/* what follows the first argument are no options */
	void (*more_help)(void);	/* prints what --help tells besides options; may be NULL */
	/* Exit statuses, where they are others than EXIT_FAILED and EXIT_USAGE. */
	int failed, usage;
	int own_ids;	/* ids from that one on are of options that mkfs.btrfs lacks; 0: it is no such command */
};

extern const struct command cmd_cat;
extern const struct command cmd_check;
extern const struct command cmd_diff;
extern const struct command cmd_du;
extern const struct command cmd_dump_super;
extern const struct command cmd_dump_tree;
extern const struct command cmd_edit;
extern const struct command cmd_extract;
extern const struct command cmd_features;
extern const struct command cmd_fiemap;
extern const struct command cmd_inode_resolve;
extern const struct command cmd_list_chunks;
extern const struct command cmd_list_devices;
extern const struct command cmd_list_subvolumes;
extern const struct command cmd_logical_resolve;
extern const struct command cmd_ls;
extern const struct command cmd_map_logical;
extern const struct command cmd_mkfs;
extern const struct command cmd_space_cache;
extern const struct command cmd_stat;
extern const struct command cmd_tree_stats;
extern const struct command cmd_undo;

/* Called under the name of that program, whose exit statuses and rules for the sizes of files then hold. */
extern bool cmd_is_mkfs_btrfs;

/*
 * The next option as getopt_long() gives it: its id (the argument is in optarg), or -1 behind the last. --help and
 * options that are not in the table end the program.
 */
int cmd_next_option(const struct command *cmd, int argc, char **argv);

/* Ends the program with status 2 unless @min to @max (-1: any number) arguments follow the options. */
void cmd_check_args(const struct command *cmd, int argc, int min, int max);

/* A path in a filesystem: @return it. One that is empty is a usage error: it came of something that is not set. */
const char *cmd_path(const struct command *cmd, const char *path);

/* The same of all that are behind argument @first. */
void cmd_check_paths(const struct command *cmd, int argc, char **argv, int first);

/* --subvol: the number of the subvolume that it names, of the top level if @subvol is NULL. @return 0; <0 */
int cmd_find_subvolume(struct btrkit_fs *fs, const char *subvol, uint64_t *ret,
		       struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* A line to stderr, and only one: what would end it, and all else that a terminal obeys, is written as \ooo. */
void cmd_say(const char *fmt, ...) BTRKIT_PRINTF(1, 2);

/* A usage error: one line to stderr; ends the program with status 2, or what the command has in its place. */
void cmd_usage_error(const struct command *cmd, const char *fmt, ...) BTRKIT_PRINTF(2, 3) __attribute__((noreturn));

/*
 * A number in decimal, hexadecimal (0x) or octal (0), with a size suffix b k m g t p e (1024) where @suffix. Anything
 * else is a usage error about @option.
 */
uint64_t cmd_number(const struct command *cmd, const char *option, const char *s, bool suffix);

/* A number from 1 to @most, in one of those forms, without a suffix. */
unsigned cmd_count(const struct command *cmd, const char *option, const char *s, unsigned most);
#define CMD_THREADS_MAX 1024

/* A size in decimal with or without such a suffix. */
uint64_t cmd_size(const struct command *cmd, const char *option, const char *s);

/* --compress: TYPE[:LEVEL]. @return whether there is a level. Anything else is a usage error. */
bool cmd_compression(const struct command *cmd, const char *s, enum btrkit_compression *kind, int *level);

/* --format: one of those up to @last, which are all that the command has. */
enum btrkit_format cmd_format(const struct command *cmd, const char *s, enum btrkit_format last);

/* The exit status of a failure. */
int cmd_failed(const struct command *cmd);

/* The one line of a failure. @device may be NULL. @return EXIT_FAILED, or what the command has in its place */
int cmd_fail(const struct command *cmd, const char *device, const struct btrkit_error *err);

/* The same of something in the filesystem. A path that does not end with a zero byte is @len bytes long. */
int cmd_fail_path(const struct command *cmd, const char *device, const char *path, size_t len,
		  const struct btrkit_error *err);

/* The failure that there is no memory, as the library has it. @return -ENOMEM */
int cmd_no_memory(struct btrkit_error *err);
/* Says so. @return as cmd_fail() */
int cmd_fail_no_memory(const struct command *cmd);

/* The note function of the library: one line to stderr. @ctx is a struct cmd_note. */
struct cmd_note {
	const struct command *cmd;
	const char *device;
};
void cmd_note(void *ctx, const char *line);

/* Whether two names are of one device or file. */
bool cmd_same_device(const char *a, const char *b);
/* Whether a file is a device as it was given, of which a part may be meant, which stands behind its path. */
bool cmd_is_device(const char *file, const char *device);

/* The devices of a command's one filesystem, and whether others are looked for. */
struct cmd_devices {
	const char **at; /* the first is the argument, which the command puts there */
	size_t n;
	bool noscan;
};
#define CMD_OPT_DEVICE 1000
#define CMD_OPT_NOSCAN 1001
/* For who opens only what is given as arguments. */
#define CMD_NOSCAN_OPTION { CMD_OPT_NOSCAN, "noscan", NULL, "use only the given devices, do not look for others" }
#define CMD_DEVICE_OPTIONS \
	{ CMD_OPT_DEVICE, "device", "DEV", "also use this device of the same filesystem (repeatable)" }, \
	CMD_NOSCAN_OPTION
/* For who can start from others than the newest roots. */
#define CMD_OPT_SUPER 's'
#define CMD_OPT_BACKUP 1002
#define CMD_OPT_TREE_ROOT 1003
#define CMD_OPT_CHUNK_ROOT 1004
#define CMD_START_OPTIONS \
	{ CMD_OPT_SUPER, "super", "N", "start from copy N of the superblock: 0, 1 or 2" }, \
	{ CMD_OPT_BACKUP, "backup", "N", "start from the backup roots in slot N, 0 to 3" }, \
	{ CMD_OPT_TREE_ROOT, "tree-root", "BYTENR", "use the block at this address as root of the root tree" }, \
	{ CMD_OPT_CHUNK_ROOT, "chunk-root", "BYTENR", "use the block at this address as root of the chunk tree" }
/* @return whether the option that getopt_long() has just given is one of them: @o has it then */
bool cmd_start_option(const struct command *cmd, struct btrkit_open_options *o, int option);

/* As many as arguments can name. @return 0; the exit status after saying that there is no memory */
int cmd_devices_begin(const struct command *cmd, int argc, struct cmd_devices *ret);
/* @return whether the option that getopt_long() has just given is one of CMD_DEVICE_OPTIONS: it is taken then */
bool cmd_devices_option(struct cmd_devices *d, int option);
void cmd_devices_end(struct cmd_devices *d);
/* As cmd_open(). */
struct btrkit_fs *cmd_devices_open(const struct command *cmd, const struct cmd_devices *d,
				   const struct btrkit_open_options *opts);
/* The same to show files, with a word where those that Linux would show are newer. */
struct btrkit_fs *cmd_files_open(const struct command *cmd, const struct cmd_devices *d);

/*
 * Opens a filesystem for reading from @n devices, or says why not. Notes of the library go to stderr.
 * @scan: look for the devices that are missing. @opts: may be NULL. @return NULL after a failure
 */
struct btrkit_fs *cmd_open(const struct command *cmd, const char *const *devices, size_t n, bool scan,
			   const struct btrkit_open_options *opts);

/* The same of devices that are not mounted, and stay so as long as they are open. */
struct btrkit_fs *cmd_open_unused(const struct command *cmd, const char *const *devices, size_t n, bool scan,
				  const struct btrkit_open_options *opts);

/*
 * The same for writing, with nobody else at the devices. @dry_run: only read, for who says what would be written.
 * @undo: file that keeps what is overwritten, or NULL
 */
struct btrkit_fs *cmd_open_write(const struct command *cmd, const char *const *devices, size_t n, bool scan,
				 bool dry_run, const char *undo);

/*
 * --undo FILE: from now on what is overwritten on devices is kept in @file. To be called when they have been judged and
 * before they are written to. @file: may be NULL, then nothing is done.
 * @return 0, or a negative errno: @ios are as before
 */
int cmd_keep_undo(const char *file, struct btrkit_io **ios, size_t n, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Opens device number @i of @devices. To be used by nobody else it may not be among those before it too, which the
 * lock would tell as somebody else's.
 */
int cmd_open_device(const char *const *devices, size_t i, unsigned flags, struct btrkit_io **ret,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Long work: a percentage on the standard error while that is a terminal, and signals that end it. cmd_progress() is
 * the progress function of the library, its context the struct.
 */
struct cmd_progress {
	const char *what;
	bool terminal;
	int percent;	/* what cmd_progress() told last; -1: nothing */
	int64_t told;	/* when a line was due last, by cmd_clock(); 0: never */
	bool shown;	/* a line stands there */
};
void cmd_progress_begin(struct cmd_progress *p, const char *what);
/* How far that is; 0 where the whole is not known yet. */
int cmd_percent(uint64_t done, uint64_t total);
int cmd_progress(void *ctx, uint64_t done, uint64_t total);
/* Whether who tells more than a percentage is to write a line now: several times a second, and to a terminal only. */
bool cmd_progress_due(struct cmd_progress *p);
/* Takes away the line that stands there, if there is one. */
void cmd_progress_end(struct cmd_progress *p);
/* The line that was told is gone. */
void cmd_progress_clear(void);
/* Nanoseconds since some time or other. */
int64_t cmd_clock(void);
/* Whether a signal asks for an end. */
bool cmd_progress_stopped(void);
/* Whether the work returned @ret because of a signal. */
bool cmd_was_interrupted(int ret);

/* Standard output. What write() refused is kept, so that it can be told from a failure of the device. */
struct cmd_output {
	int error;	/* negative errno */
};
/* A btrkit_write_fn; @ctx is a struct cmd_output. */
int cmd_write(void *ctx, const void *data, size_t len);

/* The same to any descriptor. @return 0; a negative errno */
int cmd_write_fd(int fd, const void *data, size_t len);

/* A file that is written to another one beside it, which takes its place when it is whole, with its mode. */
struct cmd_whole {
	char *path, *temporary;
	int fd; /* to be written to */
};
/* @return 0; a negative errno: there is nothing to end */
int cmd_whole_begin(struct cmd_whole *w, const char *file) BTRKIT_MUST_CHECK;
/* @whole: otherwise all is as before. @return 0; a negative errno: it is as before */
int cmd_whole_end(struct cmd_whole *w, bool whole) BTRKIT_MUST_CHECK;

/*
 * The end of a report that returned @ret: says what failed, if anything did, or that a signal has ended it. A closed
 * pipe on stdout is a failure without words.
 * @return the exit status
 */
int cmd_end(const struct command *cmd, const char *device, const struct cmd_output *out, int ret,
	    const struct btrkit_error *err);

/* Flushes and closes the standard output. @return @status, or that of a failure after saying why */
int cmd_close_stdout(const struct command *cmd, int status);

#endif
