// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Applies the damage of each case in a list and run check: it must report the case's code and no codes that are not
 * listed with it; or, for the code NONE, nothing. All codes must occur in the list.
 *
 *	check-codes [--list] CODES IMAGE...
 *
 * --list: print a line for each case with all codes reported
 */
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <btrkit/check.h>

#include "tests/check/edit.h"
#include "tests/check/image.h"

#define CASES_MAX 1024u

struct coded {
	char code[48], image[64];
	char *steps, *also;
	bool done;
};

static struct coded cases[CASES_MAX];
static size_t num_cases;

static bool is_among(const char *codes, const char *code)
{
	const size_t len = strlen(code);

	for (const char *at = codes; (at = strstr(at, code)); at += len)
		if ((at == codes || at[-1] == ' ') && (!at[len] || at[len] == ' '))
			return true;
	return false;
}

/* A case that looks like damage, but is valid. */
static bool is_none(const struct coded *c)
{
	return !strcmp(c->code, "NONE");
}

/* Whether check reported the case's code and all codes listed after "also", and nothing else. */
static bool is_expected(const struct coded *c, const char *told)
{
	char *copy = strdup(told), *word, *rest, *lacking = strdup(c->also);
	bool ret = copy && lacking && (is_none(c) || is_among(told, c->code));

	for (word = copy ? strtok_r(copy, " ", &rest) : NULL; word; word = strtok_r(NULL, " ", &rest))
		ret &= !strcmp(word, c->code) || is_among(c->also, word);
	for (word = lacking ? strtok_r(lacking, " ", &rest) : NULL; word; word = strtok_r(NULL, " ", &rest))
		ret &= is_among(told, word);
	free(copy);
	free(lacking);
	return ret;
}

/* @return whether the right codes were reported */
static bool try_case(const struct coded *c, bool list)
{
	struct sparse *disk = sparse_create(sparse_io(image.good)->size, image.good);
	char codes[CODES_ROOM];
	bool told;
	int ret;

	edit(disk, c->steps);
	ret = image_check(disk, codes);
	told = is_expected(c, codes);
	if (list || !told)
		printf("%s: %s: %s is reported as: %s\n", c->code, c->image, c->steps,
		       ret < 0 ? "cannot be opened" : codes);
	sparse_free(disk);
	return told;
}

static unsigned try_image(const char *path, bool list)
{
	char *copy = strdup(path), *name = copy ? basename(copy) : NULL;
	unsigned missed = 0;

	if (!name)
		die("no memory");
	name[strcspn(name, ".")] = '\0';
	image_open(path);
	for (size_t i = 0; i < num_cases; i++) {
		struct coded *c = &cases[i];

		if (c->done || strcmp(c->image, name))
			continue;
		c->done = true;
		missed += !try_case(c, list);
	}
	image_close();
	free(copy);
	return missed;
}

/*
 * Reads lines of: code, image, steps, and optionally "also" with further codes; or: code, "-", and where it is tested.
 */
static void read_codes(const char *path)
{
	FILE *f = fopen(path, "r");
	char line[1024];

	if (!f)
		die("cannot open the list of codes");
	while (fgets(line, sizeof(line), f)) {
		struct coded *c = &cases[num_cases];
		int at = 0;

		if (line[0] == '#' || line[0] == '\n')
			continue;
		line[strcspn(line, "\n")] = '\0';
		if (num_cases++ == CASES_MAX || sscanf(line, "%47s %63s %n", c->code, c->image, &at) != 2 || !at ||
		    !line[at])
			die(line);
		c->steps = strdup(line + at);
		if (!c->steps)
			die("no memory");
		c->also = strstr(c->steps, " also ");
		if (c->also) {
			*c->also = '\0';
			c->also += strlen(" also ");
		} else {
			c->also = c->steps + strlen(c->steps);
		}
		c->done = !strcmp(c->image, "-");
	}
	fclose(f);
}

/* @return number of codes without a line, plus cases with an unknown code or image */
static unsigned verify_list(void)
{
	size_t n;
	const struct btrkit_check_code *codes = btrkit_check_codes(&n);
	unsigned lacking = 0;

	for (size_t i = 0; i < n; i++) {
		size_t j = 0;

		while (j < num_cases && strcmp(cases[j].code, codes[i].name))
			j++;
		if (j == num_cases) {
			printf("%s: is tried by no case\n", codes[i].name);
			lacking++;
		}
	}
	for (size_t j = 0; j < num_cases; j++) {
		size_t i = 0;

		while (i < n && strcmp(cases[j].code, codes[i].name))
			i++;
		if (is_none(&cases[j]))
			i = 0;
		if (i == n)
			printf("%s: there is no such code\n", cases[j].code);
		if (!cases[j].done)
			printf("%s: there is no image %s\n", cases[j].code, cases[j].image);
		lacking += i == n || !cases[j].done;
	}
	return lacking;
}

int main(int argc, char **argv)
{
	const bool list = argc > 1 && !strcmp(argv[1], "--list");
	const int first = list ? 2 : 1;
	unsigned missed = 0, elsewhere = 0;

	if (argc < first + 2)
		die("usage");
	read_codes(argv[first]);
	for (size_t i = 0; i < num_cases; i++)
		elsewhere += cases[i].done;
	for (int i = first + 1; i < argc; i++)
		missed += try_image(argv[i], list);
	missed += verify_list();
	for (size_t i = 0; i < num_cases; i++)
		free(cases[i].steps);
	printf("%zu cases, %u of them elsewhere, %u not as they should be\n", num_cases, elsewhere, missed);
	return missed != 0;
}
