/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CMD_CMD_H
#define CMD_CMD_H

/* Shared by all commands: options, messages, output, opening devices. */

#include <btrkit/btrkit.h>

#define EXIT_DONE 0
#define EXIT_FAILED 1
#define EXIT_USAGE 2
#define EXIT_DIFFER 3	/* only with an option that asks for it */

/* An option. Both parsing and --help use this table, so they always agree. */
struct cmd_option {
	int id;			/* its letter, or a number from 256 on if it has none */
	const char *name;	/* the long form */
	const char *arg;	/* name of its argument; NULL: none; [=NAME]: optional */
	const char *help;	/* lines separated by newlines; NULL: hidden from --help */
};

struct command {
	const char *name;
	const char *args;		/* what follows the options, for --help */
	const char *summary;		/* one line */
	const struct cmd_option *options;	/* ends with a zero id; --help is added to every table */
	int (*run)(const struct command *cmd, int argc, char **argv);
	bool options_first;	/* no options are accepted after the first argument */
	void (*more_help)(void);	/* prints more for --help; may be NULL */
	/* Exit statuses, if other than EXIT_FAILED and EXIT_USAGE. */
	int failed, usage;
	int own_ids;	/* options from this id on do not exist in mkfs.btrfs; 0: not such a command */
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

/* Called as mkfs.btrfs: use the exit statuses and the rules for image sizes of that program. */
extern bool cmd_is_mkfs_btrfs;

/* In common.c: */
/*
 * Gets the next option, as getopt_long() does: its id, with the argument in optarg, or -1 after the last one. --help
 * and unknown options end the program.
 */
int cmd_next_option(const struct command *cmd, int argc, char **argv);

/* Ends the program with status 2 unless @min to @max (-1: any number) arguments follow the options. */
void cmd_check_args(const struct command *cmd, int argc, int min, int max);

/* In path.c: */
/*
 * Checks a path in a filesystem. An empty path is a usage error, since it most likely comes from an unset variable.
 * @return @path
 */
const char *cmd_path(const struct command *cmd, const char *path);

/* Like cmd_path(), for all arguments from number @first on. */
void cmd_check_paths(const struct command *cmd, int argc, char **argv, int first);

/* --subvol: gets the id of the subvolume, or that of the top level if @subvol is NULL. @return 0; <0 */
int cmd_find_subvolume(struct btrkit_fs *fs, const char *subvol, uint64_t *ret,
		       struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In common.c: */
/* Prints one line to stderr. Newlines and other control characters are printed as \ooo. */
void cmd_say(const char *fmt, ...) BTRKIT_PRINTF(1, 2);

/*
 * Reports a usage error as one line on stderr, and ends the program with status 2 or the status that the command uses.
 */
void cmd_usage_error(const struct command *cmd, const char *fmt, ...) BTRKIT_PRINTF(2, 3) __attribute__((noreturn));

/*
 * Parses a decimal or hexadecimal (0x) number, if @suffix is set with an optional size suffix b k m g t p e (powers of
 * 1024). Anything else is a usage error for @option.
 */
uint64_t cmd_number(const struct command *cmd, const char *option, const char *s, bool suffix);

/* Parses a number from 1 to @most, without a suffix. */
unsigned cmd_count(const struct command *cmd, const char *option, const char *s, unsigned most);
#define CMD_THREADS_MAX 1024

/* Parses a decimal size with an optional suffix. */
uint64_t cmd_size(const struct command *cmd, const char *option, const char *s);

/* In compress.c: */
/* --compress: parses TYPE[:LEVEL]. Anything else is a usage error. @return whether there is a level */
bool cmd_compression(const struct command *cmd, const char *s, enum btrkit_compression *kind, int *level);

/* In common.c: */
/* --format: accepts the formats up to @last, which are those that the command supports. */
enum btrkit_format cmd_format(const struct command *cmd, const char *s, enum btrkit_format last);

/* The exit status for failures. */
int cmd_failed(const struct command *cmd);

/*
 * Prints the line for a failure. @device may be NULL. @return EXIT_FAILED, or the status that the command uses instead
 */
int cmd_fail(const struct command *cmd, const char *device, const struct btrkit_error *err);

/* Like cmd_fail(), for a path in the filesystem, of @len bytes; it need not be terminated. */
int cmd_fail_path(const struct command *cmd, const char *device, const char *path, size_t len,
		  const struct btrkit_error *err);

/* Sets the error of the library for a failed allocation. @return -ENOMEM */
int cmd_no_memory(struct btrkit_error *err);

/* In output.c: */
/* Reports a failed allocation. @return as cmd_fail() */
int cmd_fail_no_memory(const struct command *cmd);

/* Prints a note of the library as one line to stderr. @ctx is a struct cmd_note. */
struct cmd_note {
	const struct command *cmd;
	const char *device;
};
void cmd_note(void *ctx, const char *line);
/* Prints a note about a missing or stale device as cmd_note() does, and what can be done about it. */
void cmd_note_device(void *ctx, const struct btrkit_error *what);

/* In open.c: */
/* Whether two names refer to the same device or file. */
bool cmd_same_device(const char *a, const char *b);
/* Whether a file is the device of a specification, which may select a part of it. */
bool cmd_is_device(const char *file, const char *device);

/*
 * Opens a filesystem on @n devices for reading, or reports the failure. Notes of the library go to stderr.
 * @scan: search for missing devices. @opts: may be NULL. @return NULL after a failure
 */
struct btrkit_fs *cmd_open(const struct command *cmd, const char *const *devices, size_t n, bool scan,
			   const struct btrkit_open_options *opts);

/* Like cmd_open(), but fails for devices that are mounted, and keeps others from mounting them meanwhile. */
struct btrkit_fs *cmd_open_unused(const struct command *cmd, const char *const *devices, size_t n, bool scan,
				  const struct btrkit_open_options *opts);

/*
 * Opens a filesystem for writing, with exclusive use of the devices. @flags: of enum btrkit_open_flags; without
 * BTRKIT_OPEN_WRITE only for reading, to print what would be written. @undo: undo file, or NULL
 */
struct btrkit_fs *cmd_open_write(const struct command *cmd, const char *const *devices, size_t n, bool scan,
				 unsigned flags, const char *undo);

/*
 * --undo FILE: from now on saves what is overwritten on the devices to @file; does nothing if @file is NULL. Call it
 * after the devices have been checked and before the first write.
 * @return 0, or a negative errno: @ios are unchanged
 */
int cmd_keep_undo(const char *file, struct btrkit_io **ios, size_t n, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Opens device number @i of @devices. For exclusive use, refuses a device that is listed twice: otherwise its lock
 * would be reported as somebody else's.
 */
int cmd_open_device(const char *const *devices, size_t i, unsigned flags, struct btrkit_io **ret,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Progress of long work: shows a percentage on stderr if that is a terminal, and handles signals. cmd_progress() is a
 * progress function of the library, with the struct as context.
 */
struct cmd_progress {
	const char *what;
	bool terminal;
	int percent;	/* last shown by cmd_progress(); -1: none */
	int64_t told;	/* when a line was last due, by cmd_clock(); 0: never */
	bool shown;	/* a line is shown */
};

/* In progress.c: */
void cmd_progress_begin(struct cmd_progress *p, const char *what);
/* The percentage; 0 if @total is not known yet. */
int cmd_percent(uint64_t done, uint64_t total);
int cmd_progress(void *ctx, uint64_t done, uint64_t total);
/*
 * Whether it is time to print a line, for callers that show more than a percentage: several times a second, and only on
 * a terminal.
 */
bool cmd_progress_due(struct cmd_progress *p);
/* Erases the line, if one is shown. */
void cmd_progress_end(struct cmd_progress *p);
/* Erases the current line. */
void cmd_progress_clear(void);
/* A monotonic time in nanoseconds. */
int64_t cmd_clock(void);
/* Whether a signal has asked to stop. */
bool cmd_progress_stopped(void);
/* Whether @ret was returned because of a signal. */
bool cmd_was_interrupted(int ret);

/* Standard output. Write errors are recorded, to distinguish them from errors of the device. */
struct cmd_output {
	int error;	/* negative errno */
};

/* In output.c: */
/* A btrkit_write_fn; @ctx is a struct cmd_output. */
int cmd_write(void *ctx, const void *data, size_t len);

/* Like cmd_write(), for any descriptor. @return 0; a negative errno */
int cmd_write_fd(int fd, const void *data, size_t len);

/*
 * A file that is replaced atomically: written to a temporary file next to it, which is renamed when complete and gets
 * its mode.
 */
struct cmd_whole {
	char *path, *temporary;
	int fd; /* to write to */
};

/* In whole.c: */
/* @return 0; a negative errno: do not call cmd_whole_end() */
int cmd_whole_begin(struct cmd_whole *w, const char *file) BTRKIT_MUST_CHECK;
/* @whole: put the new file in place; otherwise the old one stays. @return 0; a negative errno: the old one stays */
int cmd_whole_end(struct cmd_whole *w, bool whole) BTRKIT_MUST_CHECK;

/* In output.c: */
/*
 * Ends a command that has returned @ret: reports a failure of it or of the output, or an interruption. A closed pipe on
 * stdout is a failure without a message.
 * @return the exit status
 */
int cmd_end(const struct command *cmd, const char *device, const struct cmd_output *out, int ret,
	    const struct btrkit_error *err);

/* Flushes and closes stdout. @return @status, or the status for failures after reporting one */
int cmd_close_stdout(const struct command *cmd, int status);

#include "cmd/devices.h"

#endif
