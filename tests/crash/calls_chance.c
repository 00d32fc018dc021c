// SPDX-License-Identifier: LGPL-2.1-or-later
/* Random arguments, and callbacks that sometimes abort. */
#include "tests/crash/calls.h"
#include "tests/random.h"

#include <errno.h>
#include <string.h>

unsigned calls_pick(struct caller *c, unsigned below)
{
	random_step(&c->seed);
	return (unsigned)((c->seed >> 33) % below);
}

bool calls_one_in(struct caller *c, unsigned many)
{
	return !calls_pick(c, many);
}

/* Unusual numbers. */
static uint64_t odd(struct caller *c)
{
	static const uint64_t numbers[] = { 0, 1, 2, 3, 6, 255, UINT32_MAX, INT64_MAX, UINT64_MAX - 255, UINT64_MAX };

	return numbers[calls_pick(c, sizeof(numbers) / sizeof(numbers[0]))];
}

uint64_t calls_root(struct caller *c)
{
	if (calls_one_in(c, 12))
		return odd(c);
	return calls_pick(c, 3) ? BTRKIT_TOP_LEVEL : 256 + calls_pick(c, 6);
}

uint64_t calls_inode(struct caller *c)
{
	if (calls_one_in(c, 12))
		return odd(c);
	return calls_pick(c, 3) ? BTRKIT_TOP_INODE + calls_pick(c, 12) : BTRKIT_TOP_INODE;
}

uint64_t calls_offset(struct caller *c)
{
	switch (calls_pick(c, 12)) {
	case 0:
		return odd(c);
	case 1:
	case 2:
	case 3:
		return calls_pick(c, CALLS_BYTES);
	case 4:
		return (uint64_t)calls_pick(c, 1u << 20) << 12;
	default:
		return calls_pick(c, CALLS_BYTES) & ~4095u;
	}
}

uint64_t calls_address(struct caller *c)
{
	return calls_one_in(c, 8) ? odd(c) : 13631488 + ((uint64_t)calls_pick(c, 16384) << 12);
}

const char *calls_name(struct caller *c, size_t *len)
{
	static const char *const names[] = { "a", "b", "c", "d", "e", "f", "g", "h", "257", "\xff", "",
					     ".", "..", "x/y" };
	const unsigned i = calls_pick(c, sizeof(names) / sizeof(names[0]) + 2), usual = calls_pick(c, 10);

	if (calls_pick(c, 4)) {
		strcpy(c->name, names[usual]);
	} else if (i < sizeof(names) / sizeof(names[0])) {
		strcpy(c->name, names[i]);
	} else {
		const size_t long_one = i % 2 ? 255 : 256 + calls_pick(c, 40);

		memset(c->name, 'n', long_one);
		c->name[long_one] = '\0';
	}
	*len = strlen(c->name);
	return c->name;
}

const char *calls_path(struct caller *c)
{
	static const char *const paths[] = { "", "/", "a", "b", "c/a", "d/b", "/e/f/g", "a/", "//b", "./a", "../a",
					     "none",
					     "256", "300", "5", "-1", "99999999999999999999" };

	return paths[calls_pick(c, sizeof(paths) / sizeof(paths[0]))];
}

enum btrkit_format calls_format(struct caller *c)
{
	return (enum btrkit_format)calls_pick(c, calls_one_in(c, 8) ? 5 : 3);
}

unsigned calls_flags(struct caller *c, unsigned known)
{
	if (calls_one_in(c, 16))
		return calls_pick(c, 1u << 30);
	return calls_pick(c, 2) ? 0 : calls_pick(c, 1u << 16) & known;
}

int calls_go_on(struct caller *c)
{
	/* A countdown of 0 never aborts; the countdown ends at 0, so only one abort happens. */
	if (!c->countdown || --c->countdown)
		return 0;
	c->ended = true;
	return -ECANCELED;
}

int calls_write(void *ctx, const void *data, size_t len)
{
	(void)data;
	(void)len;
	return calls_go_on(ctx);
}

int calls_progress(void *ctx, uint64_t done, uint64_t total)
{
	(void)done;
	(void)total;
	return calls_go_on(ctx);
}

int calls_damage(void *ctx, const struct btrkit_error *what)
{
	(void)what;
	return calls_go_on(ctx);
}

int calls_problem(void *ctx, const char *path, size_t len, const struct btrkit_error *what)
{
	(void)path;
	(void)len;
	(void)what;
	return calls_go_on(ctx);
}
