// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Makes the damage of each row of a table of Linux's rules, and runs check: it must report exactly the row's codes, of
 * which the worst has the row's severity. What Linux refuses must be of severity "refused".
 *
 *	check-linux [--list | --cases FILE] TABLE IMAGE...
 *
 * --list: print what is reported for each row
 * --cases: write a line for each row to FILE instead: the number of its line, the image, and the changes to it as
 *	OFFSET:HEX, separated by tabs
 */
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <btrkit/check.h>

#include "tests/check/edit.h"
#include "tests/check/image.h"

#define ROWS_MAX 1024u
#define COLUMNS 7u

enum column {
	RULE,
	IMAGE,
	STEPS,
	CODES,
	SEVERITY,
	READ_ONLY, /* what Linux answers to a read-only mount */
	WRITABLE
};

static struct row {
	unsigned line;
	char *all; /* the line, cut into columns */
	const char *column[COLUMNS];
	bool done;
} rows[ROWS_MAX];
static size_t num_rows;

static enum { COMPARE, LIST, CASES } mode;
static FILE *cases;

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

/* Whether an answer says that Linux refuses the filesystem, or some of it. A write alone may also be refused. */
static bool is_refusal(const char *answer)
{
	static const char seed[] = "refuses to mount (EACCES)"; /* writable, which is no damage */
	static const char *const words[] = { "refuses to mount", "refuses to read", "turns read-only", "crashes",
					     "hangs" };

	for (size_t i = 0; strcmp(answer, seed) && i < sizeof(words) / sizeof(words[0]); i++)
		if (!strncmp(answer, words[i], strlen(words[i])))
			return true;
	return false;
}

static bool is_refused_by_linux(const struct row *r)
{
	return is_refusal(r->column[READ_ONLY]) || is_refusal(r->column[WRITABLE]);
}

/* @return whether check reports what the row says, and the row is consistent */
static bool try_row(const struct row *r, struct sparse *disk)
{
	char codes[CODES_ROOM];
	const int found = image_check(disk, codes);
	const char *told = codes[0] ? codes : "nothing";
	const char *severity = found >= 0 ? worst(codes) : "refused";

	if (found < 0)
		told = found == -1 ? "cannot be opened" : "not supported";
	const bool good = !strcmp(told, r->column[CODES]) && !strcmp(severity, r->column[SEVERITY]) &&
			  (!is_refused_by_linux(r) || !strcmp(severity, "refused"));

	if (mode == LIST || !good)
		printf("%u | %s | %s | %s | %s | %s | %s | %s\n", r->line, r->column[RULE], r->column[IMAGE],
		       r->column[STEPS], told, severity, r->column[READ_ONLY], r->column[WRITABLE]);
	return good;
}

static void write_case(const struct row *r, struct sparse *disk)
{
	fprintf(cases, "%u\t%s\t", r->line, r->column[IMAGE]);
	sparse_print(disk, cases);
	fputc('\n', cases);
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
		if (mode == CASES)
			write_case(r, disk);
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
	} else if (argc > 3 && !strcmp(argv[1], "--cases")) {
		mode = CASES;
		cases = fopen(argv[2], "w");
		if (!cases)
			die("cannot write the cases");
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
	if (cases && fclose(cases))
		die("cannot write the cases");
	printf("%zu rules, %u not as they should be\n", num_rows, missed);
	return missed != 0;
}
