// SPDX-License-Identifier: LGPL-2.1-or-later
/* From words to an operation with its options and operands. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cmd/edit/edit.h"
#include "cmd/nearest.h"

static int unknown_option(const struct edit_op *op, const char *word, struct btrkit_error *err)
{
	edit_fail(err, EINVAL, "");
	snprintf(err->message, sizeof(err->message), "%s: unknown option '%.100s' of the operation%s", op->name, word,
		 !strncmp(word, "--", 2) ? "; options of btrkit edit belong before DEV" : "");
	return -EINVAL;
}

/* Takes words that start with - as options, up to -- or the first operand. @operands: set by -- */
static int take_options(struct edit_call *c, bool *operands, struct btrkit_error *err)
{
	while (c->n && c->words[0][0] == '-' && c->words[0][1]) {
		const char *word = *c->words;

		/* -x is a mode, -i are flags, and -h neither. */
		if (c->op->sign && strcmp(word, "--") && word[1 + strspn(word + 1, c->op->letters)])
			return 0;
		c->words++;

		c->n--;
		if (!strcmp(word, "--")) {
			*operands = true;
			return 0;
		}
		while (*++word) {
			const char *at = strchr(c->op->letters, *word);

			if (!at)
				return unknown_option(c->op, c->words[-1], err);
			c->flags |= 1u << (at - c->op->letters);
		}
	}
	return 0;
}

/* Whether a word looks like an option: it begins with -, and is neither - alone nor a negative number. */
static bool is_option(const char *word)
{
	return word[0] == '-' && word[1] && !(word[1] >= '0' && word[1] <= '9');
}

/*
 * Refuses options behind the first operand: `rm -r data --undo FILE` would remove data and keep nothing. A name that
 * begins with - is given behind --, or as ./-name. @first: so many leading words may begin with -, as part of a mode or
 * of flags; a value, which may be anything, only with a single one.
 */
static int check_operands(const struct edit_call *c, size_t first, struct btrkit_error *err)
{
	for (size_t i = 0; i < c->n; i++) {
		const char *word = c->words[i];
		const bool whole = !strncmp(word, "--", 2);

		if (!is_option(word) || (i < first && !(whole && i)))
			continue;
		edit_fail(err, EINVAL, "");
		snprintf(err->message, sizeof(err->message),
			 "%s: option '%.100s' belongs before %s; a name that begins with - needs a -- before it",
			 c->op->name, word, whole && word[2] ? "DEV" : "the operands");
		return -EINVAL;
	}
	return 0;
}

/* @return the number of words that name the operation; 0: another one */
static size_t matches(const struct edit_op *op, char **words, size_t n)
{
	const size_t len = strlen(words[0]);

	if (!strcmp(op->name, words[0]))
		return 1;
	return n > 1 && !strncmp(op->name, words[0], len) && op->name[len] == ' ' &&
	       !strcmp(op->name + len + 1, words[1]) ? 2 : 0;
}

static int unknown_operation(char **words, size_t n, struct btrkit_error *err)
{
	const bool group = !strcmp(words[0], "subvolume") || !strcmp(words[0], "property");
	struct cmd_nearest nearest = { .given = words[0] };
	struct cmd_hint hint;

	for (const struct edit_op *op = edit_ops; op->name; op++)
		cmd_nearest_try(&nearest, op->name);
	edit_fail(err, EINVAL, "");
	if (words[0][0] == '-' && words[0][1])
		snprintf(err->message, sizeof(err->message), "option '%.100s' belongs before DEV", words[0]);
	else
		snprintf(err->message, sizeof(err->message), "unknown operation '%.100s%.1s%.80s'%s", words[0],
			 group && n > 1 ? " " : "", group && n > 1 ? words[1] : "",
			 cmd_nearest_hint(&nearest, "", &hint));
	return -EINVAL;
}

int edit_check(char **words, size_t n, struct edit_call *ret, struct btrkit_error *err)
{
	struct edit_call c = { .op = edit_ops };
	bool operands = false;
	size_t named = 0;
	int r;

	/* As in front of operands: what follows is no option of the command. */
	if (n > 1 && !strcmp(words[0], "--")) {
		words++;
		n--;
	}
	while (c.op->name && !(named = matches(c.op, words, n)))
		c.op++;
	if (!c.op->name)
		return unknown_operation(words, n, err);
	c.words = words + named;
	c.n = n - named;
	r = take_options(&c, &operands, err);
	if (!r && !operands)
		r = check_operands(&c, c.op->dashes, err);
	if (!r && ((int)c.n < c.op->min || (c.op->max >= 0 && c.n > (size_t)c.op->max))) {
		r = edit_fail(err, EINVAL, "");
		snprintf(err->message, sizeof(err->message), "%s takes %s", c.op->name,
			 *c.op->args ? c.op->args : "nothing else");
	}
	if (!r)
		*ret = c;
	return r;
}
