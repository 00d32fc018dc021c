// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cmd/mount_options.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define FSTAB "/etc/fstab"
#define CMDLINE "/proc/cmdline"
#define TEXT_MAX 4096	/* lines of fstab and the kernel's command line are shorter */

struct search {
	const struct command *cmd;
	const struct btrkit_fs_info *info;
	const struct cmd_devices *devices;
	enum btrkit_space_cache_kind kind;
};

/* Whether the text is a UUID with these bytes, in any case. */
static bool is_uuid(const char *s, const uint8_t uuid[16])
{
	unsigned digits = 0, byte;

	for (; *s; s++) {
		if (*s == '-')
			continue;
		if (digits % 2 || digits >= 32 || sscanf(s, "%2x", &byte) != 1 || !isxdigit((unsigned char)s[1]) ||
		    byte != uuid[digits / 2])
			return false;
		s++;
		digits += 2;
	}
	return digits == 32;
}

/* Whether a name in this directory of links, which udev makes, is one of the devices. */
static bool is_linked(const struct search *s, const char *dir, const char *name)
{
	char path[TEXT_MAX];
	size_t n = (size_t)snprintf(path, sizeof(path), "%s/", dir);

	/* As udev writes names. Bytes above 0x7f are parts of letters. */
	for (; *name && n + sizeof("\\xff") <= sizeof(path); name++) {
		const unsigned char c = (unsigned char)*name;

		if (isalnum(c) || c > 0x7f || strchr("#+-.:=@_", c))
			path[n++] = *name;
		else
			n += (size_t)snprintf(path + n, sizeof(path) - n, "\\x%02x", c);
	}
	path[n] = '\0';
	for (size_t i = 0; !*name && i < s->devices->n; i++)
		if (cmd_same_device(path, s->devices->at[i]))
			return true;
	return false;
}

static bool is_partition(const struct search *s, char *uuid)
{
	if (is_linked(s, "/dev/disk/by-partuuid", uuid))
		return true;
	for (char *c = uuid; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	return is_linked(s, "/dev/disk/by-partuuid", uuid);
}

/* Removes the quotes around the value of a tag. @return the value */
static char *unquote(char *value)
{
	const size_t len = strlen(value);

	if (len < 2 || (*value != '"' && *value != '\'') || value[len - 1] != *value)
		return value;
	value[len - 1] = '\0';
	return value + 1;
}

/* Whether this is the filesystem: UUID=, LABEL=, PARTUUID=, PARTLABEL= or the path of one of the devices. */
static bool is_meant(const struct search *s, char *spec)
{
	const char *const label = s->info->label;

	if (!strncasecmp(spec, "UUID=", 5))
		return is_uuid(unquote(spec + 5), s->info->fsid);
	if (!strncasecmp(spec, "LABEL=", 6))
		return *label && !strcmp(unquote(spec + 6), label);
	if (!strncasecmp(spec, "PARTUUID=", 9))
		return is_partition(s, unquote(spec + 9));
	if (!strncasecmp(spec, "PARTLABEL=", 10))
		return is_linked(s, "/dev/disk/by-partlabel", unquote(spec + 10));
	for (size_t i = 0; i < s->devices->n; i++)
		if (cmd_same_device(spec, s->devices->at[i]))
			return true;
	return false;
}

/* Whether a line of fstab with this type, or list of types, may mount btrfs. Splits the list. */
static bool is_type(char *types)
{
	char *rest;

	for (const char *t = strtok_r(types, ",", &rest); t; t = strtok_r(NULL, ",", &rest))
		if (!strcmp(t, "btrfs") || !strcmp(t, "auto"))
			return true;
	return false;
}

/* Reports options of one place. @options: separated by commas, which are overwritten */
static void check_options(const struct search *s, const char *place, char *options)
{
	const bool v2 = s->kind == BTRKIT_SPACE_CACHE_V2;
	const char *bad = NULL;
	char *rest;

	/* The last one applies. */
	for (char *o = strtok_r(options, ",", &rest); o; o = strtok_r(NULL, ",", &rest)) {
		if (!strcmp(o, "clear_cache") && v2)
			return;
		if (!strcmp(o, "space_cache") || !strcmp(o, "space_cache=v1") || !strcmp(o, "nospace_cache"))
			bad = v2 ? o : NULL;
		else if (!strcmp(o, "space_cache=v2"))
			bad = v2 ? NULL : o;
	}
	if (!bad)
		return;
	cmd_say("btrkit %s: %s: %s has the mount option %s, %s", s->cmd->name, s->devices->at[0], place, bad,
		v2 ? "with which Linux now refuses to mount it for writing: remove it" :
		     "with which the next mount makes the free space tree again");
}

/* Replaces \ooo, as which fstab has blanks, by the byte. @return @text */
static char *unescape(char *text)
{
	char *to = text;

	for (const char *at = text; *at; to++) {
		unsigned byte;

		if (*at == '\\' && strspn(at + 1, "01234567") >= 3 && sscanf(at + 1, "%3o", &byte) == 1 && byte) {
			*to = (char)byte;
			at += 4;
		} else {
			*to = *at++;
		}
	}
	*to = '\0';
	return text;
}

static void search_fstab(const struct search *s)
{
	FILE *f = fopen(FSTAB, "re");
	char line[TEXT_MAX], *rest;

	if (!f)
		return;
	while (fgets(line, sizeof(line), f)) {
		char *spec = strtok_r(line, " \t\n", &rest), *dir = spec ? strtok_r(NULL, " \t\n", &rest) : NULL;
		char *type = dir ? strtok_r(NULL, " \t\n", &rest) : NULL;
		char *options = type ? strtok_r(NULL, " \t\n", &rest) : NULL;

		if (options && *spec != '#' && is_type(type) && is_meant(s, unescape(spec)))
			check_options(s, FSTAB, options);
	}
	fclose(f);
}

/* Splits the kernel's command line as Linux does: not at blanks within double quotes. @return NULL: the end */
static char *next_word(char **rest)
{
	char *word = *rest + strspn(*rest, " \n"), *end = word;

	for (bool quoted = false; *end && (quoted || !strchr(" \n", *end)); end++)
		quoted ^= *end == '"';
	*rest = end + (*end != '\0');
	*end = '\0';
	return *word ? unquote(word) : NULL;
}

static void search_cmdline(const struct search *s)
{
	FILE *f = fopen(CMDLINE, "re");
	char text[TEXT_MAX] = "", *root = NULL, *flags = NULL, *rest = text;

	if (!f)
		return;
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	fclose(f);
	for (char *word = next_word(&rest); word; word = next_word(&rest)) {
		if (!strncmp(word, "root=", 5))
			root = unquote(word + 5);
		else if (!strncmp(word, "rootflags=", 10))
			flags = unquote(word + 10);
	}
	if (root && flags && is_meant(s, root))
		check_options(s, "the kernel's command line", flags);
}

void cmd_warn_of_mount_options(const struct command *cmd, const struct btrkit_fs_info *info,
			       const struct cmd_devices *devices, enum btrkit_space_cache_kind kind)
{
	const struct search s = { cmd, info, devices, kind };

	search_fstab(&s);
	search_cmdline(&s);
}
