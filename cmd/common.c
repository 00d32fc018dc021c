// SPDX-License-Identifier: LGPL-2.1-or-later
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/nearest.h"
#include "cmd/next_step.h"
#include "lib/print/format.h"

bool cmd_is_mkfs_btrfs;

#define OPTIONS_MAX 64
#define LINE_MAX_BYTES 5120	/* a path of PATH_MAX bytes and a message */
#define PATH_SHOWN 2048
#define OPTION_HELP 255	/* not a letter, and below the ids of long options */

/* Whether the argument of an option is optional, and given after "=". */
static bool is_optional(const char *arg)
{
	return !strncmp(arg, "[=", 2);
}

static void print_option(const char *name, int letter, const char *arg, const char *help)
{
	char left[64], both[8] = "    ";

	if (letter < 256 && letter != OPTION_HELP)
		snprintf(both, sizeof(both), "-%c, ", letter);
	snprintf(left, sizeof(left), "%s--%s%s%s", both, name, arg && !is_optional(arg) ? " " : "", arg ? arg : "");
	for (bool first = true; help; first = false) {
		const char *end = strchrnul(help, '\n');

		printf("  %-24s  %.*s\n", first ? left : "", (int)(end - help), help);
		help = *end ? end + 1 : NULL;
	}
}

static void print_help(const struct command *cmd)
{
	printf("Usage: btrkit %s [OPTION]...%s%s\n%s.\n\n", cmd->name, *cmd->args ? " " : "", cmd->args, cmd->summary);
	for (const struct cmd_option *o = cmd->options; o->id; o++)
		if (o->help)
			print_option(o->name, o->id, o->arg, o->help);
	print_option("help", OPTION_HELP, NULL, "print this help and exit");
	if (cmd->more_help)
		cmd->more_help();
}

static bool spelled_out(const char *name, int argc, char **argv)
{
	const size_t len = strlen(name);

	for (int i = 1; i < argc; i++) {
		const char *word = argv[i];

		if (strncmp(word, "--", 2) || strncmp(word + 2, name, len))
			continue;
		if (!word[2 + len] || word[2 + len] == '=')
			return true;
	}
	return false;
}

/* As mkfs.btrfs, options that mkfs.btrfs lacks must be spelled out, so that abbreviations keep their meaning. */
static bool is_known(const struct command *cmd, const struct cmd_option *o, int argc, char **argv)
{
	return !cmd_is_mkfs_btrfs || !cmd->own_ids || o->id < cmd->own_ids || spelled_out(o->name, argc, argv);
}

static int argument_of(const struct cmd_option *o)
{
	if (!o->arg)
		return no_argument;
	return is_optional(o->arg) ? optional_argument : required_argument;
}

static void build_tables(const struct command *cmd, int argc, char **argv, struct option *longs, char *shorts)
{
	size_t n = 0;

	if (cmd->options_first)
		*shorts++ = '+';
	*shorts++ = ':';	/* distinguishes missing arguments from unknown options */
	for (const struct cmd_option *o = cmd->options; o->id && n < OPTIONS_MAX; o++) {
		if (!is_known(cmd, o, argc, argv))
			continue;
		longs[n++] = (struct option){ o->name, argument_of(o), NULL, o->id };
		if (o->id < 256) {
			*shorts++ = (char)o->id;
			if (o->arg)
				*shorts++ = ':';
		}
	}
	*shorts = 0;
	longs[n++] = (struct option){ "help", no_argument, NULL, OPTION_HELP };
	longs[n] = (struct option){ NULL, 0, NULL, 0 };
}

/* Reports an option that getopt_long() refused. If it is in @longs, it was given an argument that it does not take. */
__attribute__((noreturn)) static void refuse_option(const struct command *cmd, const struct option *longs,
						    const char *word)
{
	if (!optopt) {
		struct cmd_nearest nearest = { .given = word + 2 };
		struct cmd_hint hint;

		for (; longs->name; longs++)
			cmd_nearest_try(&nearest, longs->name);
		cmd_usage_error(cmd, "unknown option '%s'%s", word, cmd_nearest_hint(&nearest, "--", &hint));
	}
	for (; longs->name; longs++)
		if (longs->val == optopt)
			cmd_usage_error(cmd, "option '--%s' takes no argument", longs->name);
	cmd_usage_error(cmd, "unknown option '-%c'", optopt);
}

int cmd_next_option(const struct command *cmd, int argc, char **argv)
{
	struct option longs[OPTIONS_MAX + 2];
	char shorts[2 * OPTIONS_MAX + 3];
	int c;

	build_tables(cmd, argc, argv, longs, shorts);
	opterr = 0;
	optopt = 0;
	c = getopt_long(argc, argv, shorts, longs, NULL);
	switch (c) {
	case OPTION_HELP:
		print_help(cmd);
		exit(cmd_close_stdout(cmd, EXIT_DONE));
	case ':':
		cmd_usage_error(cmd, "option '%s' needs an argument", argv[optind - 1]);
	case '?':
		refuse_option(cmd, longs, argv[optind - 1]);
	default:
		return c;
	}
}

void cmd_check_args(const struct command *cmd, int argc, int min, int max)
{
	if (argc - optind < min)
		cmd_usage_error(cmd, "too few arguments");
	if (max >= 0 && argc - optind > max)
		cmd_usage_error(cmd, "too many arguments");
}

/* The length of a control character at @s, in ASCII or two bytes in Unicode; 0: it is none. */
static size_t control_len(const char *s)
{
	const unsigned char *u = (const unsigned char *)s;

	if (u[0] < ' ' || u[0] == 0x7f)
		return 1;
	return u[0] == 0xc2 && u[1] >= 0x80 && u[1] < 0xa0 ? 2 : 0;
}

void cmd_say(const char *fmt, ...)
{
	char text[LINE_MAX_BYTES], line[4 * LINE_MAX_BYTES + 1];
	va_list args;
	size_t n = 0;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	for (const char *at = text; *at;) {
		size_t control = control_len(at);

		if (!control)
			line[n++] = *at++;
		for (; control; control--)
			n += (size_t)sprintf(line + n, "\\%03o", (unsigned char)*at++);
	}
	line[n++] = '\n';
	fwrite(line, 1, n, stderr);
}

void cmd_usage_error(const struct command *cmd, const char *fmt, ...)
{
	char what[LINE_MAX_BYTES];
	va_list args;

	va_start(args, fmt);
	vsnprintf(what, sizeof(what), fmt, args);
	va_end(args);
	cmd_say("btrkit %s: %s (see btrkit %s --help)", cmd->name, what, cmd->name);
	if (cmd_is_mkfs_btrfs)
		exit(EXIT_FAILED);
	exit(cmd->usage ? cmd->usage : EXIT_USAGE);
}

static uint64_t number(const struct command *cmd, const char *option, const char *s, bool hex, bool suffix)
{
	static const char letters[] = "bkmgtpe";
	unsigned long long v;
	char *end;

	/* A leading zero does not make a number octal. */
	hex = hex && *s == '0' && (s[1] == 'x' || s[1] == 'X');
	errno = 0;
	v = strtoull(s, &end, hex ? 16 : 10);
	if (!isdigit((unsigned char)*s))
		cmd_usage_error(cmd, "%s: '%s' is not a number", option, s);
	if (errno)
		cmd_usage_error(cmd, "%s: '%s' is too large", option, s);
	if (suffix && *end) {
		const char *at = strchr(letters, tolower((unsigned char)*end));
		unsigned shift = at ? 10 * (unsigned)(at - letters) : 0;

		if (shift && v > UINT64_MAX >> shift)
			cmd_usage_error(cmd, "%s: '%s' is too large", option, s);
		v <<= shift;
		end += at != NULL;
	}
	if (*end)
		cmd_usage_error(cmd, "%s: '%s' is not a number", option, s);
	return v;
}

uint64_t cmd_number(const struct command *cmd, const char *option, const char *s, bool suffix)
{
	return number(cmd, option, s, true, suffix);
}

unsigned cmd_count(const struct command *cmd, const char *option, const char *s, unsigned most)
{
	const uint64_t n = cmd_number(cmd, option, s, false);

	if (!n || n > most)
		cmd_usage_error(cmd, "%s: must be from 1 to %u", option, most);
	return (unsigned)n;
}

uint64_t cmd_size(const struct command *cmd, const char *option, const char *s)
{
	return number(cmd, option, s, false, true);
}

enum btrkit_format cmd_format(const struct command *cmd, const char *s, enum btrkit_format last)
{
	static const char *const names[] = { [BTRKIT_FORMAT_TEXT] = "text", [BTRKIT_FORMAT_JSON] = "json",
					     [PRINT_FORMAT_TSV] = "tsv" };

	struct cmd_nearest nearest = { .given = s };
	struct cmd_hint hint;

	for (unsigned i = 0; i <= (unsigned)last; i++) {
		if (!strcmp(names[i], s))
			return (enum btrkit_format)i;
		cmd_nearest_try(&nearest, names[i]);
	}
	cmd_usage_error(cmd, "--format: '%s' is unknown%s", s, cmd_nearest_hint(&nearest, "", &hint));
}

int cmd_failed(const struct command *cmd)
{
	return cmd->failed ? cmd->failed : EXIT_FAILED;
}

int cmd_fail(const struct command *cmd, const char *device, const struct btrkit_error *err)
{
	char line[BTRKIT_ERROR_LINE];
	struct cmd_next_step step = { "" };

	btrkit_error_format(err, line, sizeof(line));
	cmd_say("btrkit %s: %s%s%s%s", cmd->name, device ? device : "", device ? ": " : "", line,
		device ? cmd_next_step(cmd, device, err, &step) : "");
	return cmd_failed(cmd);
}

int cmd_fail_path(const struct command *cmd, const char *device, const char *path, size_t len,
		  const struct btrkit_error *err)
{
	char line[BTRKIT_ERROR_LINE];

	btrkit_error_format(err, line, sizeof(line));
	/* Some messages already contain the path, at their beginning or as their last word. */
	if ((strlen(line) > len && !memcmp(line + strlen(line) - len, path, len) &&
	     line[strlen(line) - len - 1] == ' ') || (err->err == -ENOTDIR && !strncmp(line, path, len)))
		return cmd_fail(cmd, device, err);
	/* The end of a long path is the more informative part, as is the error after it. */
	if (len > PATH_SHOWN)
		cmd_say("btrkit %s: %s: ...%.*s: %s", cmd->name, device, PATH_SHOWN, path + len - PATH_SHOWN, line);
	else
		cmd_say("btrkit %s: %s: %.*s: %s", cmd->name, device, len ? (int)len : 1, len ? path : "/", line);
	return cmd_failed(cmd);
}

int cmd_no_memory(struct btrkit_error *err)
{
	*err = (struct btrkit_error){ .code = BTRKIT_NO_MEMORY, .err = -ENOMEM, .message = "out of memory" };
	return -ENOMEM;
}
