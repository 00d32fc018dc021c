// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/unit/hostile.h"

#include "tests/unit/unit.h"

#include "lib/format/items/files/dir.h"
#include "lib/format/items/files/inode.h"

void hostile_init(struct hostile *h)
{
	*h = (struct hostile){ 0 };
}

void hostile_free(struct hostile *h)
{
	for (size_t i = 0; i < h->n; i++)
		free((void *)h->items[i].data);
	h->n = 0;
}

/* Appends an item with zeroed data. @return the data */
static void *add(struct hostile *h, struct btrkit_key key, size_t size)
{
	void *data = calloc(1, size);

	assert_non_null(data);
	assert_true(h->n < HOSTILE_ITEMS);
	h->items[h->n++] = (struct syn_item){ key, data, (uint32_t)size };
	return data;
}

void hostile_inode(struct hostile *h, uint64_t inode, uint32_t mode, uint32_t nlink, uint64_t size)
{
	struct disk_inode_item *d = add(h, KEY(inode, KEY_INODE_ITEM, 0), sizeof(*d));

	d->mode = le32_put(mode);
	d->nlink = le32_put(nlink);
	d->size = le64_put(size);
	d->uid = le32_put(77777);
	d->gid = le32_put(77777);
	d->mtime.sec = le64_put(1000000000);
	d->mtime.nsec = le32_put(0x3fffffff); /* not a valid number of nanoseconds; Linux takes this value for "now" */
}

static void put_entry(struct hostile *h, struct btrkit_key key, struct disk_key location, const char *name,
		      const char *value, uint8_t type)
{
	const size_t len = strlen(name), value_len = strlen(value);
	uint8_t *bytes = add(h, key, sizeof(struct disk_dir_item) + len + value_len);
	struct disk_dir_item *d = (void *)bytes;

	d->location = location;
	d->name_len = le16_put((uint16_t)len);
	d->data_len = le16_put((uint16_t)value_len);
	d->type = type;
	memcpy(bytes + sizeof(*d), name, len);
	memcpy(bytes + sizeof(*d) + len, value, value_len);
}

void hostile_entry(struct hostile *h, uint64_t dir, uint64_t index, const char *name, uint64_t inode, uint8_t type)
{
	const struct disk_key location = { .objectid = le64_put(inode), .type = KEY_INODE_ITEM };

	put_entry(h, KEY(dir, KEY_DIR_INDEX, index), location, name, "", type);
	put_entry(h, KEY(dir, KEY_DIR_ITEM, dir_name_hash(name, strlen(name))), location, name, "", type);
}

void hostile_ref(struct hostile *h, uint64_t inode, uint64_t dir, uint64_t index, const char *name)
{
	uint8_t *bytes = add(h, KEY(inode, KEY_INODE_REF, dir), sizeof(struct disk_inode_ref) + strlen(name));
	struct disk_inode_ref *d = (void *)bytes;

	d->index = le64_put(index);
	d->name_len = le16_put((uint16_t)strlen(name));
	memcpy(bytes + sizeof(*d), name, strlen(name));
}

void hostile_name(struct hostile *h, uint64_t dir, uint64_t index, const char *name, uint64_t inode, uint8_t type)
{
	hostile_entry(h, dir, index, name, inode, type);
	hostile_ref(h, inode, dir, index, name);
}

void hostile_data(struct hostile *h, uint64_t inode, const char *text)
{
	const size_t len = strlen(text);
	uint8_t *bytes = add(h, KEY(inode, KEY_EXTENT_DATA, 0), 21 + len);

	bytes[0] = 1;		   /* generation */
	bytes[8] = (uint8_t)len; /* ram_bytes */
	memcpy(bytes + 21, text, len);
}

void hostile_xattr(struct hostile *h, uint64_t inode, const char *name, const char *value)
{
	put_entry(h, KEY(inode, KEY_XATTR_ITEM, dir_name_hash(name, strlen(name))), (struct disk_key){ 0 }, name, value,
		  FT_XATTR);
}

static int compare(const void *a, const void *b)
{
	const struct syn_item *x = a, *y = b;

	return key_cmp(&x->key, &y->key);
}

/* Only one item of each key is kept, the first: two names with the same hash do not share an item here. */
static size_t drop_equal(struct syn_item *items, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		if (kept && !compare(&items[kept - 1], &items[i]))
			free((void *)items[i].data);
		else
			items[kept++] = items[i];
	}
	return kept;
}

void hostile_create(struct hostile *h, struct synthetic *s)
{
	qsort(h->items, h->n, sizeof(h->items[0]), compare);
	h->n = drop_equal(h->items, h->n);
	syn_create(s, h->items, h->n);
}

struct btrkit_fs *hostile_open(struct hostile *h, struct synthetic *s)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_fs *fs = NULL;

	hostile_create(h, s);
	assert_int_equal(syn_open(s, NULL, &fs, &err), 0);
	return fs;
}
