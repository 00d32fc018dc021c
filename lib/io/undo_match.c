// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The devices may be given in any order and under any names. They are identified by comparing their contents with the
 * file. If that is ambiguous nothing is restored, unless the caller says that they are in the order of the file.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "lib/base/err.h"
#include "lib/io/undo_run.h"

struct match {
	struct undo *u;
	struct btrkit_io *const *devices;
	size_t n;
	bool *fits;	/* n devices of the file times n given devices */
	bool *taken;	/* for each given device */
};

static bool *fit(const struct match *m, size_t target, size_t device)
{
	return &m->fits[target * m->n + device];
}

/* Determines whether a given device can be that of the file. @return 0, or a read error */
static int compare(struct match *m, size_t target, size_t device, bool all, struct btrkit_error *err)
{
	struct btrkit_error own = BTRKIT_ERROR_INIT;
	struct undo *u = m->u;
	bool *ret = fit(m, target, device);
	int r;

	*ret = u->index.devices[target].size == m->devices[device]->size;
	if (!*ret)
		return 0;
	u->t = &u->targets[target];
	u->t->device = m->devices[device];
	r = undo_check(u, all, &own);
	u->t->device = NULL;
	*ret = !r;
	/* A mismatch is not an error. */
	return err_pass(err, &own, r == -EINVAL ? 0 : r);
}

static int compare_all(struct match *m, bool all, struct btrkit_error *err)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < m->n; i++)
		for (size_t j = 0; !ret && j < m->n; j++)
			if (!all || (!m->u->targets[i].device && !m->taken[j] && *fit(m, i, j)))
				ret = compare(m, i, j, all, err);
	return ret;
}

/* The number of given devices that a target can be; @ret is one of them. */
static size_t choices(const struct match *m, size_t target, size_t *ret)
{
	size_t n = 0;

	for (size_t j = 0; j < m->n; j++) {
		if (m->taken[j] || !*fit(m, target, j))
			continue;
		*ret = j;
		n++;
	}
	return n;
}

/*
 * Assigns targets that have only one choice left, until there are none: this finds a unique solution if there is one.
 * @return 0; 1: some are ambiguous; -EINVAL
 */
static int assign(struct match *m, struct btrkit_error *err)
{
	struct undo *u = m->u;
	size_t left = 0;

	for (bool more = true; more;) {
		more = false;
		left = 0;
		for (size_t i = 0, j = 0; i < m->n; i++) {
			const size_t n = u->targets[i].device ? m->n + 1 : choices(m, i, &j);

			if (!n) {
				err_set(err, BTRKIT_INVALID, "none of the devices is %.80s, or it has changed since",
					u->index.devices[i].name);
				return undo_blame(u, -EINVAL, err);
			}
			if (n == 1) {
				u->targets[i].device = m->devices[j];
				m->taken[j] = more = true;
			}
			left += n > 1 && n <= m->n;
		}
	}
	return !!left;
}

static int refuse_ambiguous(const struct match *m, struct btrkit_error *err)
{
	size_t i = 0;

	while (m->u->targets[i].device)
		i++;
	err_set(err, BTRKIT_INVALID,
		"cannot determine which device is %.60s: pass them in the order of the file, and specify that",
		m->u->index.devices[i].name);
	return undo_blame(m->u, -EINVAL, err);
}

static int match_several(struct match *m, struct btrkit_error *err)
{
	int ret = compare_all(m, false, err);

	/* The superblock in the first window identifies most devices. */
	if (!ret)
		ret = assign(m, err);
	if (ret != 1)
		return ret;
	ret = compare_all(m, true, err);
	if (!ret)
		ret = assign(m, err);
	return ret == 1 ? refuse_ambiguous(m, err) : ret;
}

static int match_in_order(struct undo *u, struct btrkit_io *const *devices, size_t n, struct btrkit_error *err)
{
	for (size_t i = 0; i < n; i++) {
		if (u->index.devices[i].size != devices[i]->size) {
			err_set(err, BTRKIT_INVALID,
				"was made for a device of %" PRIu64 " bytes, this one has %" PRIu64,
				u->index.devices[i].size, devices[i]->size);
			return undo_blame(u, -EINVAL, err);
		}
		u->targets[i].device = devices[i];
	}
	return 0;
}

int undo_match(struct undo *u, struct btrkit_io *const *devices, size_t n, struct btrkit_error *err)
{
	struct match m = { .u = u, .devices = devices, .n = n };
	int ret;

	if (u->index.num_devices != n)
		ret = undo_blame(u,
				 err_set(err, BTRKIT_INVALID, "was made for %u devices, but %zu were given",
					 u->index.num_devices, n),
				 err);
	else if (n == 1 || u->opts->flags & BTRKIT_UNDO_ORDERED)
		ret = match_in_order(u, devices, n, err);
	else {
		m.fits = calloc(n, n * sizeof(*m.fits));
		m.taken = calloc(n, sizeof(*m.taken));
		u->quiet = true;
		ret = m.fits && m.taken ? match_several(&m, err) : err_nomem(err);
		u->quiet = false;
		free(m.fits);
		free(m.taken);
	}
	return ret;
}
