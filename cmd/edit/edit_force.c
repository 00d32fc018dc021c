// SPDX-License-Identifier: LGPL-2.1-or-later
/* Writing to read-only subvolumes; received ones lose their received UUID by that. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/edit/edit.h"

int edit_subvolume(struct edit *e, uint64_t id, struct btrkit_subvolume *ret, struct btrkit_error *err)
{
	int r = id ? btrkit_subvolume_next(e->fs, id - 1, ret, err) : 1;

	if (r < 0 || (!r && ret->id == id))
		return r;
	edit_fail(err, ENOENT, "");
	snprintf(err->message, sizeof(err->message), "no subvolume %" PRIu64, id);
	return -ENOENT;
}

static struct edit_forced *find(struct edit *e, uint64_t id)
{
	for (size_t i = 0; i < e->num_forced; i++)
		if (e->forced[i].id == id)
			return &e->forced[i];
	return NULL;
}

static struct edit_forced *find_or_add(struct edit *e, uint64_t id, struct btrkit_error *err)
{
	struct edit_forced *f = find(e, id);

	if (f)
		return f;
	f = realloc(e->forced, (e->num_forced + 1) * sizeof(*f));
	if (!f) {
		edit_fail(err, ENOMEM, "subvolumes");
		return NULL;
	}
	e->forced = f;
	f += e->num_forced++;
	*f = (struct edit_forced){ .id = id };
	return f;
}

static int make_writable(struct edit *e, const struct btrkit_subvolume *s, bool again, struct btrkit_error *err)
{
	static const uint8_t none[16];
	struct edit_forced *f;
	int ret = btrkit_txn_subvolume_set_read_only(e->txn, s->id, false, true, err);

	if (ret)
		return ret;
	f = find_or_add(e, s->id, err);
	if (!f)
		return -ENOMEM;
	f->again = again;
	if (memcmp(s->received_uuid, none, sizeof(none)) != 0) {
		f->received = true;
		memcpy(f->uuid, s->received_uuid, sizeof(f->uuid));
	}
	return 0;
}

int edit_unlock(struct edit *e, uint64_t root, struct btrkit_error *err)
{
	struct btrkit_subvolume s;
	int ret;

	if (!e->force_readonly)
		return 0;
	ret = edit_subvolume(e, root, &s, err);
	return ret || !s.read_only ? ret : make_writable(e, &s, true, err);
}

int edit_set_read_only(struct edit *e, uint64_t id, bool read_only, bool forget, struct btrkit_error *err)
{
	struct edit_forced *f = find(e, id);
	struct btrkit_subvolume s;
	int ret;

	if (f)
		f->again = false;
	if (read_only || !(forget || e->force_readonly))
		return btrkit_txn_subvolume_set_read_only(e->txn, id, read_only, false, err);
	ret = edit_subvolume(e, id, &s, err);
	return ret || !s.read_only ? ret : make_writable(e, &s, false, err);
}

int edit_lock_again(struct edit *e, struct btrkit_error *err)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < e->num_forced; i++) {
		if (e->forced[i].again)
			ret = btrkit_txn_subvolume_set_read_only(e->txn, e->forced[i].id, true, false, err);
		/* It may have been deleted. */
		if (ret == -ENOENT)
			ret = 0;
	}
	return ret;
}

void edit_say_forced(struct edit *e, const struct cmd_note *to)
{
	for (size_t i = 0; i < e->num_forced; i++) {
		const uint8_t *u = e->forced[i].uuid;
		char line[128];
		size_t n;

		if (!e->forced[i].received)
			continue;
		n = (size_t)snprintf(line, sizeof(line),
				     "subvolume %" PRIu64 " was changed: cleared received_uuid ",
				     e->forced[i].id);
		for (unsigned k = 0; k < 16; k++)
			n += (size_t)snprintf(line + n, sizeof(line) - n, "%s%02x",
					      k == 4 || k == 6 || k == 8 || k == 10 ? "-" : "", u[k]);
		cmd_note((void *)to, line);
	}
	e->num_forced = 0;
}
