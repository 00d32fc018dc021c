// SPDX-License-Identifier: LGPL-2.1-or-later
/* Devices that join and leave while the volume is open. */
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/volume/volume.h"
#include "lib/volume/volume_impl.h"

int volume_make_room(struct volume *v, struct btrkit_error *err)
{
	struct device *more;

	if (v->num_devices == VOLUME_DEVICES_MAX)
		return err_set(err, BTRKIT_INVALID, "the filesystem has %u devices already", VOLUME_DEVICES_MAX);
	if (v->num_devices < v->devices_max)
		return 0;
	more = reallocarray(v->devices, v->devices_max + 1, sizeof(*more));
	if (!more)
		return err_nomem(err);
	memset(&more[v->devices_max++], 0, sizeof(*more));
	v->devices = more;
	return 0;
}

void volume_join(struct volume *v, struct btrkit_io *io, uint64_t devid, const uint8_t uuid[16])
{
	struct device *d = &v->devices[v->num_devices++];

	memset(d, 0, sizeof(*d));
	d->is = (struct volume_device){ .io = io, .devid = devid, .state = VOLUME_JOINING };
	memcpy(d->is.uuid, uuid, sizeof(d->is.uuid));
}

void volume_set_state(struct volume *v, size_t i, enum volume_state state)
{
	v->devices[i].is.state = state;
}

void volume_set_closed(struct volume *v, size_t i, bool closed)
{
	v->devices[i].closed = closed;
}

bool volume_takes_chunks(const struct volume *v, uint64_t devid)
{
	for (size_t i = 0; i < v->num_devices; i++)
		if (v->devices[i].is.devid == devid)
			return v->devices[i].is.io && !v->devices[i].closed &&
			       v->devices[i].is.state != VOLUME_LEAVING;
	return false;
}

bool volume_device_in_use(const struct volume *v, uint64_t devid)
{
	for (size_t i = 0; i < v->num_chunks; i++)
		for (unsigned k = 0; k < v->chunks[i]->num_stripes; k++)
			if (v->chunks[i]->stripes[k].devid == devid)
				return true;
	return false;
}

void volume_drop_device(struct volume *v, size_t i)
{
	btrkit_io_close(v->devices[i].is.io);
	v->num_devices--;
	memmove(&v->devices[i], &v->devices[i + 1], (v->num_devices - i) * sizeof(*v->devices));
	/* Room for missing devices is zero. */
	memset(&v->devices[v->num_devices], 0, sizeof(*v->devices));
	for (size_t c = 0; c < v->num_chunks; c++)
		for (unsigned k = 0; k < v->chunks[c]->num_stripes; k++)
			if (v->chunks[c]->stripes[k].device > i)
				v->chunks[c]->stripes[k].device--;
}
