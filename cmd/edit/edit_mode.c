// SPDX-License-Identifier: LGPL-2.1-or-later
/* Permissions with the syntax of chmod(1): a number, or symbolic changes. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "cmd/edit/edit.h"

#define ALL 0777u
#define SET_ID (S_ISUID | S_ISGID)

/* One change of a symbolic mode. */
struct change {
	uint32_t who;	/* bits that may change; 0: not specified */
	char how;	/* + - = */
	uint32_t bits;	/* for everybody */
	char like;	/* u, g or o: copy theirs; 0: use @bits */
	bool if_any_x;	/* X */
};

static uint32_t take_who(const char **s)
{
	uint32_t who = 0;

	for (;; ++*s) {
		switch (**s) {
		case 'u':
			who |= S_ISUID | S_IRWXU;
			break;
		case 'g':
			who |= S_ISGID | S_IRWXG;
			break;
		case 'o':
			who |= S_ISVTX | S_IRWXO;
			break;
		case 'a':
			who |= SET_ID | S_ISVTX | ALL;
			break;
		default:
			return who;
		}
	}
}

/* @return false: invalid permissions */
static bool take_bits(const char **s, struct change *c)
{
	if (**s && strchr("ugo", **s)) {
		c->like = *(*s)++;
		return !**s || strchr(",+-=", **s);
	}
	for (;; ++*s) {
		switch (**s) {
		case 'r':
			c->bits |= 0444;
			break;
		case 'w':
			c->bits |= 0222;
			break;
		case 'x':
			c->bits |= 0111;
			break;
		case 'X':
			c->if_any_x = true;
			break;
		case 's':
			c->bits |= SET_ID;
			break;
		case 't':
			c->bits |= S_ISVTX;
			break;
		default:
			return !**s || strchr(",+-=", **s);
		}
	}
}

/* Copies the permissions of one class to all three. */
static uint32_t spread(uint32_t mode, char like)
{
	const unsigned shift = like == 'u' ? 6 : like == 'g' ? 3 : 0;

	return (mode >> shift & 7) * 0111;
}

static uint32_t apply(const struct change *c, uint32_t mode, uint32_t umask_bits)
{
	const bool dir = S_ISDIR(mode);
	uint32_t bits = c->like ? spread(mode, c->like) : c->bits, keep = 0;

	if (c->if_any_x && (dir || mode & 0111))
		bits |= 0111;
	/* On a directory these change only if they are named. */
	if (dir)
		keep = SET_ID & ~(c->who ? c->who & c->bits : c->bits);
	bits &= (c->who ? c->who : ~umask_bits) & ~keep;
	switch (c->how) {
	case '+':
		return mode | bits;
	case '-':
		return mode & ~bits;
	default:
		return (mode & (S_IFMT | keep | (c->who ? ~c->who & 07777u : 0))) | bits;
	}
}

int edit_mode(const char *s, uint32_t mode, uint32_t *ret, struct btrkit_error *err)
{
	const mode_t umask_bits = umask(0);

	umask(umask_bits);
	for (;;) {
		const uint32_t who = take_who(&s);

		if (!*s || !strchr("+-=", *s))
			break;
		while (*s && strchr("+-=", *s)) {
			struct change c = { .who = who, .how = *s++ };

			if (!take_bits(&s, &c))
				return edit_fail(err, EINVAL, "invalid permissions: expected rwxXst, or one of ugo");
			mode = apply(&c, mode, umask_bits);
		}
		if (!*s) {
			*ret = mode & 07777;
			return 0;
		}
		if (*s++ != ',')
			break;
	}
	return edit_fail(err, EINVAL, "invalid mode: expected an octal number up to 7777, or [ugoa][+-=][rwxXst],...");
}
