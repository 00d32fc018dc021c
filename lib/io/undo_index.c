// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/io/undo_index.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/crc32c.h"
#include "lib/base/err.h"

struct loader {
	struct btrkit_io *file;
	struct undo_index *index;
	struct disk_undo_record *record;	/* buffer for the largest record and its payload */
	bool written;	/* there are NEW records */
};

static int damaged(struct btrkit_error *err, uint64_t at, const char *field)
{
	return err_corrupt(err, field, "is damaged at %" PRIu64, at);
}

static int none(struct btrkit_error *err)
{
	return err_set(err, BTRKIT_INVALID, "is not an undo file, or its run ended before it wrote to a device");
}

static int load_header(const struct loader *l, struct btrkit_error *err)
{
	struct disk_undo_header h;
	int ret = l->file->size < sizeof(h) ? -ENXIO : btrkit_io_read(l->file, 0, &h, sizeof(h), err);

	if (ret == -ENXIO || (!ret && memcmp(h.magic, UNDO_MAGIC, sizeof(h.magic))))
		return none(err);
	if (ret)
		return ret;
	if (le32_get(h.version) != UNDO_VERSION)
		return err_set(err, BTRKIT_UNSUPPORTED, "has unsupported version %" PRIu32,
			       le32_get(h.version));
	if (le32_get(h.csum) != ~crc32c(~0u, &h.version, sizeof(h) - sizeof(h.csum)))
		return damaged(err, 0, "csum");
	memcpy(l->index->id, h.id, sizeof(h.id));
	return 0;
}

/* Reads the header of a record that may be at @at. @return 0; 1: it is certainly not one; <0 */
static int read_head(const struct loader *l, uint64_t at, struct btrkit_error *err)
{
	struct disk_undo_record *r = l->record;
	int ret;

	if (l->file->size < at || l->file->size - at < sizeof(*r))
		return 1;
	ret = btrkit_io_read(l->file, at, r, sizeof(*r), err);
	if (ret)
		return ret;
	return memcmp(r->id, l->index->id, sizeof(r->id)) || le32_get(r->payload) > UNDO_WINDOW ||
	       l->file->size - at - sizeof(*r) < le32_get(r->payload);
}

/* Reads the payload. @return 0: the record is complete; 1: it is not; <0 */
static int read_payload(const struct loader *l, uint64_t at, struct btrkit_error *err)
{
	struct disk_undo_record *r = l->record;
	const uint32_t len = le32_get(r->payload);
	const int ret = btrkit_io_read(l->file, at + sizeof(*r), r + 1, len, err);

	if (ret)
		return ret;
	return le32_get(r->csum) != ~crc32c(~0u, &r->payload, sizeof(*r) - sizeof(r->csum) + len);
}

/* @return 0: there is a complete record at @at; 1: there is none; <0 */
static int read_record(const struct loader *l, uint64_t at, struct btrkit_error *err)
{
	const int ret = read_head(l, at, err);

	return ret ? ret : read_payload(l, at, err);
}

static int add_device(struct loader *l, uint64_t at, struct btrkit_error *err)
{
	const struct disk_undo_device *d = (const struct disk_undo_device *)(l->record + 1);
	struct undo_index *index = l->index;
	struct undo_device *more;

	if (le16_get(l->record->device) != index->num_devices || index->num_devices == UNDO_DEVICES_MAX)
		return damaged(err, at, "device");
	if (le32_get(l->record->payload) != sizeof(*d))
		return damaged(err, at, "payload");
	more = reallocarray(index->devices, index->num_devices + 1, sizeof(*more));
	if (!more)
		return err_nomem(err);
	index->devices = more;
	more += index->num_devices++;
	more->size = le64_get(d->size);
	memcpy(more->name, d->name, sizeof(more->name));
	more->name[sizeof(more->name) - 1] = '\0';
	return 0;
}

/* Whether the range consists of whole blocks, except for the last one of the device, within one window. */
static bool is_range(uint64_t offset, uint64_t len, uint64_t size)
{
	return len && len <= UNDO_WINDOW && offset <= size && len <= size - offset && !(offset % UNDO_BLOCK) &&
	       (!(len % UNDO_BLOCK) || len == size - offset) && len <= UNDO_WINDOW - offset % UNDO_WINDOW;
}

static int add_entry(struct loader *l, uint64_t at, struct btrkit_error *err)
{
	const struct disk_undo_record *r = l->record;
	const uint64_t offset = le64_get(r->offset), len = le64_get(r->len);
	const unsigned device = le16_get(r->device);
	struct undo_index *index = l->index;
	uint64_t payload;

	if (device >= index->num_devices)
		return damaged(err, at, "device");
	if (!is_range(offset, len, index->devices[device].size))
		return damaged(err, at, "offset");
	payload = r->type == UNDO_NEW ? undo_sectors(len) * sizeof(le32) : r->flags & UNDO_ZEROS ? 0 : len;
	if (le32_get(r->payload) != payload)
		return damaged(err, at, "payload");
	if (index->num_entries == index->room) {
		size_t room = index->room ? 2 * index->room : 256;
		struct undo_entry *more = reallocarray(index->entries, room, sizeof(*more));

		if (!more)
			return err_nomem(err);
		index->entries = more;
		index->room = room;
	}
	index->entries[index->num_entries++] = (struct undo_entry){
		offset, at + sizeof(*r), (uint32_t)len, (uint16_t)device, r->type, r->flags,
	};
	if (r->type == UNDO_OLD)
		index->saved += len;
	else
		l->written = true;
	return 0;
}

static int add_record(struct loader *l, uint64_t at, struct btrkit_error *err)
{
	switch (l->record->type) {
	case UNDO_DEVICE:
		return add_device(l, at, err);
	case UNDO_OLD:
	case UNDO_NEW:
		return add_entry(l, at, err);
	case UNDO_END:
		return 0;
	default:
		return err_set(err, BTRKIT_UNSUPPORTED, "has a record of unsupported type %u",
			       l->record->type);
	}
}

/*
 * Reports damage if there is a record at @at that was written when what is at @end was already on disk. @left: a limit
 * for the bytes that may still be read
 */
static int check_candidate(const struct loader *l, uint64_t at, uint64_t end, uint64_t *left, struct btrkit_error *err)
{
	int ret = read_head(l, at, err);

	if (!ret && le64_get(l->record->synced) <= end)
		return 0;
	if (!ret && le32_get(l->record->payload) > *left)
		return damaged(err, end, NULL);
	if (!ret) {
		*left -= le32_get(l->record->payload);
		ret = read_payload(l, at, err);
	}
	if (ret)
		return ret < 0 ? ret : 0;
	return damaged(err, end, NULL);
}

/*
 * The last records may be missing because of a power failure while they were written; others must not. Remaining
 * records do not overlap, so together they cannot have more bytes than the file: if they do, the file was crafted.
 */
static int verify_rest(const struct loader *l, uint64_t end, struct btrkit_error *err)
{
	uint64_t may_read = l->file->size > end ? l->file->size - end + UNDO_WINDOW : 0;
	uint8_t chunk[64 * UNDO_ALIGN];
	int ret = 0;

	for (uint64_t at = end; !ret && at < l->file->size; at += sizeof(chunk)) {
		uint64_t left = l->file->size - at;
		size_t len = left < sizeof(chunk) ? (size_t)left : sizeof(chunk);

		ret = btrkit_io_read(l->file, at, chunk, len, err);
		for (size_t i = 0; !ret && i + sizeof(struct disk_undo_record) <= len; i += UNDO_ALIGN)
			if (!memcmp(chunk + i + offsetof(struct disk_undo_record, id), l->index->id, 16))
				ret = check_candidate(l, at + i, end, &may_read, err);
	}
	return ret;
}

static uint64_t window_of(const struct undo_entry *e)
{
	return e->offset / UNDO_WINDOW;
}

static int by_place(const void *a, const void *b)
{
	const struct undo_entry *x = a, *y = b;

	if (x->device != y->device)
		return x->device < y->device ? -1 : 1;
	if (window_of(x) != window_of(y))
		return window_of(x) < window_of(y) ? -1 : 1;
	if (x->type != y->type)
		return x->type < y->type ? -1 : 1;
	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

static int load(struct loader *l, struct btrkit_error *err)
{
	uint64_t at = sizeof(struct disk_undo_header);
	int ret = load_header(l, err);

	while (!ret) {
		ret = read_record(l, at, err);
		if (!ret) {
			ret = add_record(l, at, err);
			at = undo_align(at + sizeof(*l->record) + le32_get(l->record->payload));
		}
	}
	if (ret < 0)
		return ret;
	ret = verify_rest(l, at, err);
	if (!ret && !l->written)
		ret = none(err);
	if (!ret)
		qsort(l->index->entries, l->index->num_entries, sizeof(*l->index->entries), by_place);
	return ret;
}

int undo_index_load(struct btrkit_io *file, struct undo_index *ret, struct btrkit_error *err)
{
	struct undo_index index = { 0 };
	struct loader l = { file, &index, malloc(sizeof(struct disk_undo_record) + UNDO_WINDOW), false };
	int r = l.record ? load(&l, err) : err_nomem(err);

	free(l.record);
	if (r)
		undo_index_release(&index);
	else
		*ret = index;
	return r;
}

void undo_index_release(struct undo_index *index)
{
	free(index->devices);
	free(index->entries);
}

size_t undo_index_window(const struct undo_index *index, size_t first)
{
	const struct undo_entry *e = index->entries + first;
	size_t n = 1;

	while (first + n < index->num_entries && e[n].device == e->device && window_of(&e[n]) == window_of(e))
		n++;
	return n;
}
