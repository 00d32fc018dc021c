// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Makes the damage of each row of a table of Linux's rules, and runs check: it must report exactly the row's codes, of
 * which the worst has the row's severity. What Linux refuses must be of severity "refused".
 *
 *	check-linux [--list | --write DIR] TABLE IMAGE...
 *
 * --list: print what is reported for each row
 * --write: write the damaged images to DIR instead, by the number of their line
 */
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <btrkit/check.h>

#include "tests/check/edit.h"
#include "tests/check/image.h"

#define ROWS_MAX 512u
#define COLUMNS 6u

enum column {
	RULE,
	IMAGE,
	STEPS,
	CODES,
	SEVERITY,
	ANSWER
};

static struct row {
	unsigned line;
	char *all; /* the line, cut into columns */
	const char *column[COLUMNS];
	bool done;
} rows[ROWS_MAX];
static size_t num_rows;

static enum { COMPARE, LIST, WRITE } mode;
static const char *folder;

static void split(struct row *r)
{
	char *rest = r->all;

	for (unsigned i = 0; i < COLUMNS; i++) {
		char *end = strstr(rest, " | ");

		if (!end != (i == COLUMNS - 1))
			die(r->all);
		r->column[i] = rest;
		if (!end)
			return;
		*end = '\0';
		rest = end + strlen(" | ");
	}
}

static void read_rows(const char *path)
{
	FILE *f = fopen(path, "r");
	char text[2048];

	if (!f)
		die("cannot open the table");
	for (unsigned line = 1; fgets(text, sizeof(text), f); line++) {
		struct row *r = &rows[num_rows];

		if (text[0] == '#' || text[0] == '\n')
			continue;
		if (num_rows++ == ROWS_MAX)
			die("too many rows");
		text[strcspn(text, "\n")] = '\0';
		r->line = line;
		r->all = strdup(text);
		if (!r->all)
			die("no memory");
		split(r);
	}
	fclose(f);
}

/* Returns the word of the worst severity among the codes; the worst is the lowest number. */
static const char *worst(const char *codes)
{
	size_t n;
	const struct btrkit_check_code *all = btrkit_check_codes(&n);
	char *copy = strdup(codes), *rest, *word;
	unsigned found = BTRKIT_CHECK_SEVERITIES;

	if (!copy)
		die("no memory");
	for (word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
		for (size_t i = 0; i < n; i++)
			if (!strcmp(all[i].name, word) && all[i].severity < found)
				found = all[i].severity;
	free(copy);
	return found == BTRKIT_CHECK_SEVERITIES ? "none" : btrkit_check_severity_name(found);
}

/* Whether the row says that Linux refuses the filesystem, or some of it. */
static bool is_refused_by_linux(const struct row *r)
{
	return !strncmp(r->column[ANSWER], "refuses", strlen("refuses"));
}

/* @return whether check reports what the row says, and the row is consistent */
static bool try_row(const struct row *r, struct sparse *disk)
{
	char codes[CODES_ROOM];
	const bool opened = image_check(disk, codes) >= 0;
	const char *told = !opened ? "cannot be opened" : codes[0] ? codes : "nothing";
	const char *severity = opened ? worst(codes) : "refused";
	const bool good = !strcmp(told, r->column[CODES]) && !strcmp(severity, r->column[SEVERITY]) &&
			  (!is_refused_by_linux(r) || !strcmp(severity, "refused"));

	if (mode == LIST || !good)
		printf("%u | %s | %s | %s | %s | %s | %s\n", r->line, r->column[RULE], r->column[IMAGE],
		       r->column[STEPS], told, severity, r->column[ANSWER]);
	return good;
}

static void write_row(const struct row *r, struct sparse *disk)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/%u", folder, r->line);
	sparse_export(disk, path);
}

static unsigned try_image(const char *path)
{
	char *copy = strdup(path), *name = copy ? basename(copy) : NULL;
	unsigned missed = 0;

	if (!name)
		die("no memory");
	name[strcspn(name, ".")] = '\0';
	image_open(path);
	for (size_t i = 0; i < num_rows; i++) {
		struct row *r = &rows[i];
		struct sparse *disk;

		if (r->done || strcmp(r->column[IMAGE], name))
			continue;
		r->done = true;
		disk = sparse_create(sparse_io(image.good)->size, image.good);
		edit(disk, r->column[STEPS]);
		if (mode == WRITE)
			write_row(r, disk);
		else
			missed += !try_row(r, disk);
		sparse_free(disk);
	}
	image_close();
	free(copy);
	return missed;
}

int main(int argc, char **argv)
{
	unsigned missed = 0;
	int first = 1;

	if (argc > 2 && !strcmp(argv[1], "--list")) {
		mode = LIST;
		first = 2;
	} else if (argc > 3 && !strcmp(argv[1], "--write")) {
		mode = WRITE;
		folder = argv[2];
		first = 3;
	}
	if (argc < first + 2)
		die("usage");
	read_rows(argv[first]);
	for (int i = first + 1; i < argc; i++)
		missed += try_image(argv[i]);
	for (size_t i = 0; i < num_rows; i++) {
		if (!rows[i].done)
			printf("line %u: there is no image %s\n", rows[i].line, rows[i].column[IMAGE]);
		missed += !rows[i].done;
		free(rows[i].all);
	}
	printf("%zu rules, %u not as they should be\n", num_rows, missed);
	return missed != 0;
}
