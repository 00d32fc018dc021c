// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/base/array.h"

#include <stdlib.h>

#include "lib/base/err.h"

int array_grow(struct array *a, size_t entry, struct btrkit_error *err)
{
	const size_t room = a->room ? 2 * a->room : 16;
	void *more = reallocarray(a->at, room, entry);

	if (!more)
		return err_nomem(err);
	a->at = more;
	a->room = room;
	return 0;
}
