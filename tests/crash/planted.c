// SPDX-License-Identifier: LGPL-2.1-or-later
#include "planted.h"

#include "lib/space/space_impl.h"

int planted_now = -1;

static unsigned occasion; /* occasions so far */
static bool seen;
static struct range freed;

void planted_begin(int number)
{
	planted_now = number;
	seen = false;
	occasion = 0;
	freed.length = 0;
}

void planted_commit(void)
{
	freed.length = 0;
}

bool planted_seen(void)
{
	return seen;
}

bool planted_wrong(int defect, unsigned at)
{
	if (planted_now != defect || (at && ++occasion != at))
		return false;
	seen = true;
	return true;
}

WRAPPED(int, space_leave, struct space *s, const struct range *r, struct btrkit_error *err)
{
	const int ret = __real_space_leave(s, r, err);

	if (planted_now == planted_reuse && !freed.length)
		freed = *r;
	return ret;
}

WRAPPED(int, space_alloc, struct space *s, uint64_t type, uint64_t min, uint64_t max, uint64_t align, struct range *ret,
	struct btrkit_error *err)
{
	if (freed.length == max && planted_wrong(planted_reuse, 1)) {
		*ret = freed;
		freed.length = 0;
		return 0;
	}
	return __real_space_alloc(s, type, min, max, align, ret, err);
}
