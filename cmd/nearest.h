/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CMD_NEAREST_H
#define CMD_NEAREST_H

/*
 * Suggestions for misspelt words: pass each word that was possible to cmd_nearest_try(), then append
 * cmd_nearest_hint() to the message.
 */

struct cmd_nearest {
	const char *given;	/* an option may have an argument after "=" */
	const char *found;	/* nearest of the words so far; NULL: none resembles it */
	unsigned distance;
};

struct cmd_hint {
	char text[96];
};

/* @word: lives as long as @n */
void cmd_nearest_try(struct cmd_nearest *n, const char *word);

/* Returns the hint with @prefix before the word, in @hint, or "" if no word resembles the given one. */
const char *cmd_nearest_hint(const struct cmd_nearest *n, const char *prefix, struct cmd_hint *hint);

#endif
