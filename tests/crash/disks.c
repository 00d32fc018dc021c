// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disks.h"

#include <stdio.h>

struct disks disks_one(struct sparse *s)
{
	return (struct disks){ 1, { s } };
}

struct disks disks_over(const struct disks *below)
{
	struct disks d = { .n = below->n };

	for (unsigned i = 0; i < d.n; i++)
		d.at[i] = sparse_create(sparse_io(below->at[i])->size, below->at[i]);
	return d;
}

void disks_free(struct disks *d)
{
	for (unsigned i = 0; i < d->n; i++)
		sparse_free(d->at[i]);
	d->n = 0;
}

uint64_t disks_hash(const struct disks *d, const struct disks *base)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < d->n; i++)
		sum += sparse_hash(d->at[i], base->at[i]) * (2 * i + 1);
	return sum;
}

void disks_export(const struct disks *d, const char *path)
{
	char name[4096];

	for (unsigned i = 0; i < d->n; i++) {
		if (d->n == 1)
			snprintf(name, sizeof(name), "%s.img", path);
		else
			snprintf(name, sizeof(name), "%s-%u.img", path, i + 1);
		sparse_export(d->at[i], name);
	}
}
