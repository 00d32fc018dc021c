// SPDX-License-Identifier: LGPL-2.1-or-later
/* Finds the word that a misspelt one was meant to be. */
#include "cmd/nearest.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define WORD_MAX 32	/* longer words are not compared */

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
	const unsigned ab = a < b ? a : b;

	return ab < c ? ab : c;
}

static bool same(char a, char b)
{
	return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Returns how many letters have to be inserted, removed, replaced or swapped with the next to turn @a into @b. */
static unsigned distance(const char *a, size_t la, const char *b, size_t lb)
{
	unsigned d[WORD_MAX + 1][WORD_MAX + 1];

	for (unsigned i = 0; i <= la; i++)
		d[i][0] = i;
	for (unsigned j = 0; j <= lb; j++)
		d[0][j] = j;
	/* Case is no mistake: some words may be given in any. */
	for (size_t i = 1; i <= la; i++) {
		for (size_t j = 1; j <= lb; j++) {
			const unsigned replaced = d[i - 1][j - 1] + !same(a[i - 1], b[j - 1]);

			d[i][j] = min3(d[i - 1][j] + 1, d[i][j - 1] + 1, replaced);
			if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]) &&
			    d[i - 2][j - 2] + 1 < d[i][j])
				d[i][j] = d[i - 2][j - 2] + 1;
		}
	}
	return d[la][lb];
}

void cmd_nearest_try(struct cmd_nearest *n, const char *word)
{
	const size_t given = strcspn(n->given, "="), len = strlen(word);
	unsigned d;

	if (!given || given > WORD_MAX || len > WORD_MAX)
		return;
	d = distance(n->given, given, word, len);
	/* One letter in three may be wrong, so that words with other meanings are not suggested. */
	if (3 * d <= given && (!n->found || d < n->distance)) {
		n->found = word;
		n->distance = d;
	}
}

const char *cmd_nearest_hint(const struct cmd_nearest *n, const char *prefix, struct cmd_hint *hint)
{
	if (!n->found)
		return "";
	snprintf(hint->text, sizeof(hint->text), ", did you mean '%s%.*s'?", prefix, WORD_MAX, n->found);
	return hint->text;
}
