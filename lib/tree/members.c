// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/tree/members.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/base/text.h"
#include "lib/base/uuid.h"
#include "lib/format/items/devices/dev.h"
#include "lib/tree/cursor.h"
#include "lib/tree/start.h"
#include "lib/volume/volume.h"

#define LINE_BYTES sizeof(((struct btrkit_error *)0)->message)

static const char *name_of(const struct members *m, size_t i)
{
	return m->devices[i]->name;
}

/* The end of a long path is more specific than its beginning. */
static const char *name_end(const struct members *m, size_t i, size_t max)
{
	const char *name = name_of(m, i);
	const size_t len = strlen(name);

	return len > max ? name + len - max : name;
}

static bool is_seed(const struct super *s)
{
	return s->flags & SUPER_FLAG_SEEDING;
}

static bool same(const uint8_t *a, const uint8_t *b)
{
	return !memcmp(a, b, UUID_SIZE);
}

/* Linux changes the fsid on one device after another; this UUID stays the same if it is interrupted. */
static bool same_inside(const struct super *a, const struct super *b)
{
	return same(a->metadata_uuid, b->metadata_uuid);
}

static bool is_newer(const struct super *a, const struct super *b)
{
	if (is_seed(a) != is_seed(b))
		return is_seed(b);
	if (a->generation != b->generation)
		return a->generation > b->generation;
	/* The target of a device replacement is not in the chunk tree. */
	return a->devid && !b->devid;
}

/* A filesystem created from a seed consists of the devices of both, each with its own fsid. */
static bool is_foreign(const struct members *m, size_t i)
{
	const struct super *s = &m->supers[i], *chosen = &m->supers[m->chosen];

	return !same(s->fsid, chosen->fsid);
}

static int refuse_foreign(const struct members *m, size_t i, struct btrkit_error *err)
{
	const struct super *a = &m->supers[m->chosen], *b = &m->supers[i];
	char x[UUID_TEXT], y[UUID_TEXT];

	if (same_inside(a, b))
		return err_set(err, BTRKIT_INVALID,
			       "unfinished fsid change: %s has %s, %s still has the other", name_end(m, i, 40),
			       base_uuid_text(b->fsid, y), name_end(m, m->chosen, 40));
	return err_set(err, BTRKIT_INVALID, "different filesystems: %s of %s, %s of %s", name_end(m, m->chosen, 40),
		       base_uuid_text(a->fsid, x), name_end(m, i, 40), base_uuid_text(b->fsid, y));
}

static int refuse_twice(const struct members *m, size_t i, size_t j, struct btrkit_error *err)
{
	const bool copy = m->supers[i].generation == m->supers[j].generation;

	return err_set(err, BTRKIT_INVALID, "device %" PRIu64 " is given twice: %s and %s%s",
		       m->supers[i].devid, name_end(m, i, 60), name_end(m, j, 60),
		       copy ? "" : ", which is a copy from another time");
}

bool members_write_whole(const struct btrkit_open_options *opts)
{
	return (opts->flags & (BTRKIT_OPEN_WRITE | BTRKIT_OPEN_DEGRADED)) == BTRKIT_OPEN_WRITE;
}

int members_choose(struct members *m, struct btrkit_error *err)
{
	m->chosen = 0;
	for (size_t i = 1; i < m->n; i++)
		if (is_newer(&m->supers[i], &m->supers[m->chosen]))
			m->chosen = i;
	for (size_t i = 0; i < m->n; i++) {
		const struct super *s = &m->supers[i];

		if (is_foreign(m, i) && (!is_seed(s) || same_inside(s, &m->supers[m->chosen])))
			return refuse_foreign(m, i, err);
		for (size_t j = 0; j < i; j++)
			if (s->devid == m->supers[j].devid)
				return is_foreign(m, i) != is_foreign(m, j) ? refuse_foreign(m, i, err) :
									      refuse_twice(m, j, i, err);
	}
	return 0;
}

int members_admit_seeds(const struct members *m, struct btrkit_fs *fs, struct btrkit_error *err)
{
	size_t n = 0;

	for (size_t i = 0; i < m->n; i++)
		n += is_foreign(m, i);
	if (!n)
		return 0;
	fs->seeds = calloc(n, sizeof(*fs->seeds));
	if (!fs->seeds)
		return err_nomem(err);
	for (size_t i = 0; i < m->n; i++)
		if (is_foreign(m, i))
			memcpy(fs->seeds[fs->rules.num_seeds++], m->supers[i].metadata_uuid, UUID_SIZE);
	fs->rules.seeds = fs->seeds;
	return 0;
}

struct confirming {
	struct members *m;
	struct btrkit_fs *fs;
	bool *known;	/* for each device: it is in the chunk tree */
	bool seeds;	/* the chunk tree has devices of a seed filesystem */
};

static size_t find(const struct members *m, uint64_t devid)
{
	size_t i = 0;

	while (i < m->n && m->supers[i].devid != devid)
		i++;
	return i;
}

static void note_seed(const struct members *m, const struct dev_item *d)
{
	struct btrkit_error what = { .code = BTRKIT_IO, .err = -EIO, .cause = BTRKIT_CAUSE_DEVICE_MISSING };
	char text[UUID_TEXT];

	err_at_devid(&what, d->devid);
	snprintf(what.message, sizeof(what.message), "device %" PRIu64 " of the seed filesystem %s is missing",
		 d->devid, base_uuid_text(d->fsid, text));
	open_note_device(m->opts, &what);
}

static int confirm_item(struct confirming *c, const struct dev_item *d, struct btrkit_error *err)
{
	const struct members *m = c->m;
	const size_t i = find(m, d->devid);
	const bool seed = !same(d->fsid, c->fs->super.metadata_uuid);
	char text[UUID_TEXT];

	c->seeds |= seed;
	if (i == m->n) {
		if (seed)
			note_seed(m, d);
		return 0;
	}
	/* With a single device that is damage, which is reported elsewhere. */
	if (m->n > 1 && (!same(d->uuid, m->supers[i].dev_uuid) || !same(d->fsid, m->supers[i].metadata_uuid)))
		return err_set(err, BTRKIT_INVALID,
			       "%s is not device %" PRIu64 " of the filesystem: that has the UUID %s",
			       name_end(m, i, 80), d->devid, base_uuid_text(d->uuid, text));
	c->known[i] = true;
	c->m->present++;
	return 0;
}

static int confirm_items(struct confirming *ctx, struct btrkit_error *err)
{
	struct btrkit_fs *fs = ctx->fs;
	struct cursor c;
	int ret;

	cursor_init(&c, fs, &fs->chunk_tree);
	for (ret = cursor_seek(&c, &KEY(OID_DEV_ITEMS, KEY_DEV_ITEM, 0), err);
	     !ret && c.item.key.objectid == OID_DEV_ITEMS && c.item.key.type == KEY_DEV_ITEM;) {
		struct dev_item d;

		/* A damaged device item is no reason to refuse the filesystem. */
		if (!dev_item_decode(&c.item, &d, NULL))
			ret = confirm_item(ctx, &d, err);
		if (!ret)
			ret = cursor_next(&c, err);
	}
	cursor_release(&c);
	return ret < 0 ? ret : 0;
}

static int check_unknown(const struct confirming *c, size_t i, struct btrkit_error *err)
{
	const struct members *m = c->m;
	char text[UUID_TEXT];

	if (is_foreign(m, i))
		return err_set(err, BTRKIT_INVALID,
			       "%s is a device of the seed filesystem %s, which this one is not based on",
			       name_end(m, i, 80), base_uuid_text(m->supers[i].fsid, text));
	if (m->opts->flags & BTRKIT_OPEN_WRITE)
		return err_set(err, BTRKIT_UNSUPPORTED,
			       "writing is not supported: %s, device %" PRIu64 ", no longer belongs to the filesystem",
			       name_end(m, i, 80), m->supers[i].devid);
	if (!m->supers[i].devid)
		open_note(m->opts, "%s is the target of a device replacement", name_of(m, i));
	else
		open_note(m->opts, "%s, device %" PRIu64 ", no longer belongs to the filesystem", name_of(m, i),
			  m->supers[i].devid);
	return 0;
}

int members_confirm(struct members *m, struct btrkit_fs *fs, struct btrkit_error *err)
{
	struct confirming c = { .m = m, .fs = fs, .known = calloc(m->n, sizeof(*c.known)) };
	int ret;

	if (!c.known)
		return err_nomem(err);
	m->present = 0;
	ret = confirm_items(&c, err);
	for (size_t i = 0; !ret && m->n > 1 && i < m->n; i++)
		if (!c.known[i])
			ret = check_unknown(&c, i, err);
	free(c.known);
	/* A single device with a damaged item is not missing. */
	if (m->n == 1 && !m->present)
		m->present = 1;
	if (!ret && c.seeds && m->opts->flags & BTRKIT_OPEN_WRITE)
		ret = err_because(err, BTRKIT_CAUSE_FEATURE,
				  err_set(err, BTRKIT_UNSUPPORTED,
					  "writing is not supported: filesystem on a seed device"));
	return ret;
}

/* Seed devices do not change. */
static bool is_stale(const struct members *m, size_t i)
{
	return !is_foreign(m, i) && m->supers[i].generation != m->supers[m->chosen].generation;
}

void members_mark_stale(const struct members *m, const struct btrkit_fs *fs)
{
	for (size_t i = 0; i < m->n; i++)
		if (is_stale(m, i))
			volume_set_stale(fs->volume, i);
}

/* Its copies are outdated, and would not be updated. */
static int refuse_stale(const struct members *m, const struct btrkit_fs *fs, size_t i, struct btrkit_error *err)
{
	err_set(err, BTRKIT_UNSUPPORTED,
		"writing is not supported: device %" PRIu64 " (%s) is stale, with generation %" PRIu64
		", the filesystem has %" PRIu64,
		m->supers[i].devid, name_end(m, i, 60), m->supers[i].generation, fs->super.generation);
	if (err)
		err->unmirrored = volume_unmirrored(fs->volume, m->supers[i].devid);
	return err_because(err, BTRKIT_CAUSE_DEVICE_STALE, -EOPNOTSUPP);
}

int members_tell_stale(const struct members *m, const struct btrkit_fs *fs, struct btrkit_error *err)
{
	struct btrkit_error what = { .code = BTRKIT_IO, .err = -EIO, .cause = BTRKIT_CAUSE_DEVICE_STALE };

	for (size_t i = 0; i < m->n; i++) {
		if (!is_stale(m, i))
			continue;
		volume_find_unmirrored(fs->volume, i);
		if (members_write_whole(m->opts))
			return refuse_stale(m, fs, i, err);
		what.places = BTRKIT_AT_DEVID;
		what.devid = m->supers[i].devid;
		what.unmirrored = volume_unmirrored(fs->volume, what.devid);
		snprintf(what.message, sizeof(what.message), "device %" PRIu64 " is stale: it has generation %" PRIu64
			 ", the filesystem %" PRIu64, what.devid, m->supers[i].generation, fs->super.generation);
		open_note_device(m->opts, &what);
	}
	return 0;
}

void members_leave_stale(const struct members *m, const struct btrkit_fs *fs)
{
	for (size_t i = 0; i < m->n; i++)
		if (volume_is_stale(fs->volume, m->supers[i].devid))
			volume_leave_out(fs->volume, i);
}

/* Maximum number of missing devices whose numbers are noted. */
#define MISSING_NAMED_MAX 8u

/* The missing device with the lowest number from @from on. @return 0: there is none */
static uint64_t missing_from(const struct volume *v, uint64_t from)
{
	uint64_t lowest = 0;

	for (size_t i = 0; i < volume_num_devices(v); i++) {
		const struct volume_device d = volume_device(v, i);

		if (!d.io && d.devid >= from && (!lowest || d.devid < lowest))
			lowest = d.devid;
	}
	return lowest;
}

/* Names the missing devices that are known. @return the number of one if no other is missing, otherwise 0 */
static uint64_t name_missing(const struct volume *v, uint64_t missing, char *line)
{
	const uint64_t first = missing_from(v, 1);
	uint64_t named = 0;

	for (uint64_t id = first; id && named < MISSING_NAMED_MAX; id = missing_from(v, id + 1))
		text_add(line, LINE_BYTES, "%s %" PRIu64, named++ ? "," : missing > 1 ? "devices" : "device", id);
	if (!named)
		text_add(line, LINE_BYTES, missing > 1 ? "devices" : "a device");
	else if (missing > named)
		text_add(line, LINE_BYTES, " and %" PRIu64 " more", missing - named);
	return missing == 1 ? first : 0;
}

/* Adds how much cannot be read. */
static void add_lost_chunks(const struct volume *v, char *line)
{
	uint64_t lost = 0, bytes = 0, types = 0;

	for (size_t i = 0; i < volume_num_chunks(v); i++) {
		if (volume_chunk_reachable(v, i))
			continue;
		lost++;
		bytes += volume_chunk(v, i)->length;
		types |= volume_chunk(v, i)->type;
	}
	if (!lost) {
		text_add(line, LINE_BYTES, ": all chunks can be read");
		return;
	}
	text_add(line, LINE_BYTES, ": %" PRIu64 " of %zu chunks cannot be read completely, %" PRIu64 " bytes of", lost,
		 volume_num_chunks(v), bytes);
	text_add(line, LINE_BYTES, "%s%s%s", types & BG_DATA ? " data" : "",
		 !(types & BG_METADATA) ? "" : !(types & BG_DATA) ? " metadata" : types & BG_SYSTEM ? ", metadata" :
		 " and metadata",
		 !(types & BG_SYSTEM) ? "" : types & (BG_DATA | BG_METADATA) ? " and system" : " system");
}

void members_note_missing(const struct members *m, const struct btrkit_fs *fs)
{
	const uint64_t all = fs->super.num_devices, missing = m->present < all ? all - m->present : 0;
	struct btrkit_error what = { .code = BTRKIT_IO, .err = -EIO, .cause = BTRKIT_CAUSE_DEVICE_MISSING };
	char *line = what.message;
	uint64_t devid;

	if (!missing)
		return;
	devid = name_missing(fs->volume, missing, line);
	if (devid)
		err_at_devid(&what, devid);
	text_add(line, LINE_BYTES, " %s missing, %" PRIu64 " of %" PRIu64, missing > 1 ? "are" : "is", missing, all);
	add_lost_chunks(fs->volume, line);
	open_note_device(m->opts, &what);
}
