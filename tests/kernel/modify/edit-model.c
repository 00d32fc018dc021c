// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Random edits of file trees in transactions, compared with sorted arrays: after each commit, the contents of the
 * device must equal the arrays byte for byte.
 *
 *	edit-model IMAGE SEED ITEMS MANIFEST TREE:INODE,INODE,... TREE: ...
 *
 * Xattrs of the inodes are added and removed until ITEMS were inserted or deleted; everything else in these trees must
 * not change, and nothing in a tree without inodes. MANIFEST receives every xattr that exists at the end: tree, inode,
 * length of name and of value (64 bits each, little-endian), name, value.
 */
#include <btrkit/btrkit.h>

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/crc32c.h"
#include "lib/commit/txn.h"
#include "lib/format/items/files/dir.h"
#include "lib/reserve/reserve.h"
#include "lib/tree/cursor.h"
#include "tests/audit/audit.h"

#define TREES_MAX 8
#define INODES_MAX 256
#define BATCH_MAX 400
#define PREFIX "user."

struct model {
	uint64_t tree;
	uint64_t inodes[INODES_MAX];
	size_t num_inodes;
	struct item *items; /* sorted by key; bytes are never freed, so a copy of the array is a snapshot */
	size_t n, room;
	uint32_t rest; /* checksum of all other items */
};

enum { INSERTED, DELETED, REPLACED, PATCHED, REKEYED, BATCHES, RANGES, REFUSED, COMMITS, ABORTS, COMPARED, COUNTERS };
static const char *const counter_names[COUNTERS] = {
	"inserted", "deleted", "replaced", "patched", "rekeyed", "batches", "ranges deleted", "refused", "commits",
	"aborts", "compared",
};

struct world {
	const char *path;
	struct btrkit_fs *fs;
	struct btrkit_txn *txn;
	struct model models[TREES_MAX];
	size_t num_models;
	uint64_t random;
	uint64_t count[COUNTERS];
	uint32_t max_size; /* of an attribute's item */
	bool shrinking;
};

static struct btrkit_error err;

static void die(const char *what)
{
	fprintf(stderr, "edit-model: %s\n", what);
	exit(1);
}

static void must(int ret, const char *what)
{
	char line[512];

	if (!ret)
		return;
	fprintf(stderr, "edit-model: %s: %d, %s\n", what, ret, btrkit_error_format(&err, line, sizeof(line)));
	exit(1);
}

static void *take(size_t bytes)
{
	void *p = malloc(bytes ? bytes : 1);

	if (!p)
		die("out of memory");
	return p;
}

static uint64_t roll(struct world *w, uint64_t below)
{
	w->random ^= w->random << 13;
	w->random ^= w->random >> 7;
	w->random ^= w->random << 17;
	return (w->random * 0x2545F4914F6CDD1Dull >> 20) % below;
}

/* The model. */

static size_t model_find(const struct model *m, const struct btrkit_key *key, bool *exact)
{
	size_t low = 0, high = m->n;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (key_cmp(&m->items[mid].key, key) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	*exact = low < m->n && !key_cmp(&m->items[low].key, key);
	return low;
}

static void model_put(struct model *m, const struct item *item)
{
	bool exact;
	size_t at = model_find(m, &item->key, &exact);

	if (exact)
		die("item is in the model already");
	if (m->n == m->room) {
		m->room = m->room ? 2 * m->room : 1024;
		m->items = realloc(m->items, m->room * sizeof(*m->items));
		if (!m->items)
			die("out of memory");
	}
	memmove(m->items + at + 1, m->items + at, (m->n - at) * sizeof(*m->items));
	m->items[at] = *item;
	m->n++;
}

static void model_take_out(struct model *m, size_t at, size_t n)
{
	memmove(m->items + at, m->items + at + n, (m->n - at - n) * sizeof(*m->items));
	m->n -= n;
}

static bool in_model(const struct model *m, const struct btrkit_key *key)
{
	if (key->type != KEY_XATTR_ITEM)
		return false;
	for (size_t i = 0; i < m->num_inodes; i++)
		if (m->inodes[i] == key->objectid)
			return true;
	return false;
}

static uint32_t add_to_sum(uint32_t sum, const struct item *item)
{
	const uint64_t head[4] = { item->key.objectid, item->key.type, item->key.offset, item->size };

	return crc32c(crc32c(sum, head, sizeof(head)), item->data, item->size);
}

/* Reads a whole tree from the device: into the model, or to compare with it. */
static void read_tree(struct world *w, struct btrkit_fs *fs, struct model *m, bool compare)
{
	struct tree_root root;
	struct cursor c;
	uint32_t rest = 0;
	size_t at = 0;
	int ret;

	must(fs_find_root(fs, m->tree, &root, NULL, &err), "root of a tree");
	cursor_init(&c, fs, &root);
	for (ret = cursor_seek(&c, &KEY(0, 0, 0), &err); !ret; ret = cursor_next(&c, &err)) {
		struct item item = c.item;

		if (!in_model(m, &item.key)) {
			rest = add_to_sum(rest, &item);
		} else if (compare) {
			if (at == m->n || key_cmp(&m->items[at].key, &item.key) || m->items[at].size != item.size ||
			    memcmp(m->items[at].data, item.data, item.size)) {
				fprintf(stderr, "edit-model: tree %" PRIu64 ": item %" PRIu64 " %" PRIu64 " differs\n",
					m->tree, item.key.objectid, item.key.offset);
				exit(1);
			}
			at++;
		} else {
			uint8_t *data = take(item.size);

			item.data = memcpy(data, item.data, item.size);
			model_put(m, &item);
		}
	}
	cursor_release(&c);
	must(ret < 0 ? ret : 0, "reading a tree");
	if (compare && (at != m->n || rest != m->rest)) {
		fprintf(stderr, "edit-model: tree %" PRIu64 ": %zu of %zu items, the others %s\n", m->tree, at, m->n,
			rest == m->rest ? "equal" : "differ");
		exit(1);
	}
	m->rest = rest;
	w->count[COMPARED] += compare ? at : 0;
}

static struct btrkit_fs *reopened(const struct world *w, bool writing)
{
	struct btrkit_open_options opts = BTRKIT_OPEN_OPTIONS_INIT;
	struct btrkit_fs *fs;
	struct btrkit_io *io;

	opts.flags = writing ? BTRKIT_OPEN_WRITE : 0;
	must(btrkit_io_open(w->path, writing ? BTRKIT_IO_WRITE | BTRKIT_IO_EXCLUSIVE : 0, &io, &err), "open");
	must(btrkit_fs_open(&io, 1, &opts, &fs, &err), "open");
	return fs;
}

/* Uses a separate handle, which has seen none of the edits. */
static void compare_all(struct world *w)
{
	struct btrkit_fs *fs = reopened(w, false);

	must(audit(fs, AUDIT_LEFTOVERS, NULL, &err), "audit");

	for (size_t i = 0; i < w->num_models; i++)
		read_tree(w, fs, &w->models[i], true);
	btrkit_fs_close(fs);
}

/* Items. */

/* Usually small; large sizes are rarer in proportion, so that each size contributes similar bytes. */
static uint32_t some_size(struct world *w)
{
	switch (roll(w, 20 + w->max_size / 250)) {
	case 0:
		return w->max_size;
	case 1:
		return (uint32_t)roll(w, w->max_size);
	default:
		return (uint32_t)roll(w, 250);
	}
}

static size_t some_name(struct world *w, char name[static 256])
{
	size_t len = strlen(PREFIX) + 8 + roll(w, roll(w, 20) ? 12 : 240);

	memcpy(name, PREFIX, strlen(PREFIX));
	for (size_t i = strlen(PREFIX); i < len; i++)
		name[i] = (char)('a' + roll(w, 26));
	return len;
}

/* An attribute's bytes; the value is made as long as @size wants it, or as it can be. */
static void fill_item(struct world *w, struct item *item, const char *name, size_t len, uint32_t size)
{
	uint32_t least = (uint32_t)(sizeof(struct disk_dir_item) + len);
	struct disk_dir_item *dir;
	uint8_t *value;

	item->size = size < least ? least : size > w->max_size ? w->max_size : size;
	dir = take(item->size);
	*dir = (struct disk_dir_item){
		.transid = le64_put(w->txn->generation),
		.data_len = le16_put((uint16_t)(item->size - least)),
		.name_len = le16_put((uint16_t)len),
		.type = FT_XATTR,
	};
	memcpy(dir + 1, name, len);
	value = (uint8_t *)(dir + 1) + len;
	for (uint32_t i = 0, word = 0; i < item->size - least; i++, word >>= 8) {
		if (i % 4 == 0)
			word = (uint32_t)roll(w, 1ull << 32);
		value[i] = (uint8_t)word;
	}
	item->data = (uint8_t *)dir;
}

/* Makes a new xattr of an inode. */
static struct item new_item(struct world *w, const struct model *m, uint64_t inode)
{
	struct item item;
	char name[256];
	bool exact;
	size_t len;

	do {
		len = some_name(w, name);
		item.key = KEY(inode, KEY_XATTR_ITEM, dir_name_hash(name, len));
		model_find(m, &item.key, &exact);
	} while (exact);
	fill_item(w, &item, name, len, some_size(w));
	return item;
}

static const char *name_of(const struct item *item, size_t *len)
{
	*len = le16_get(((const struct disk_dir_item *)item->data)->name_len);
	return (const char *)item->data + sizeof(struct disk_dir_item);
}

static uint64_t some_inode(struct world *w, const struct model *m)
{
	return m->inodes[roll(w, m->num_inodes)];
}

/* Edits of both tree and model. */

static void insert_one(struct world *w, struct model *m, struct edit_tree *t)
{
	struct item item = new_item(w, m, some_inode(w, m));

	must(edit_insert(t, &item.key, item.data, item.size, &err), "edit_insert");
	model_put(m, &item);
	w->count[INSERTED]++;
}

static int by_key(const void *a, const void *b)
{
	return key_cmp(&((const struct item *)a)->key, &((const struct item *)b)->key);
}

/* Inserts a batch into one inode or into several. */
static void insert_many(struct world *w, struct model *m, struct edit_tree *t)
{
	static struct item items[BATCH_MAX];
	const bool scattered = roll(w, 3) == 0;
	uint64_t inode = some_inode(w, m), bytes = 0;
	size_t n = 0, want = 2 + roll(w, BATCH_MAX - 2);

	while (n < want && bytes < 20ull * w->max_size) {
		items[n] = new_item(w, m, inode);
		bytes += items[n].size;
		model_put(m, &items[n++]);
		if (scattered)
			inode = some_inode(w, m);
	}
	qsort(items, n, sizeof(*items), by_key);
	must(edit_insert_many(t, items, n, &err), "edit_insert_many");
	w->count[INSERTED] += n;
	w->count[BATCHES]++;
}

static void delete_one(struct world *w, struct model *m, struct edit_tree *t)
{
	size_t at = roll(w, m->n);

	must(edit_delete(t, &m->items[at].key, &err), "edit_delete");
	model_take_out(m, at, 1);
	w->count[DELETED]++;
}

/* Within one inode, because other items lie between inodes; the bounds need not exist. */
static void delete_range(struct world *w, struct model *m, struct edit_tree *t)
{
	size_t at = roll(w, m->n), n = 1, most = 1 + roll(w, roll(w, 4) ? 40 : 2 * BATCH_MAX);
	struct btrkit_key first = m->items[at].key, last;
	uint64_t count = 0;

	while (n < most && at + n < m->n && m->items[at + n].key.objectid == first.objectid)
		n++;
	last = m->items[at + n - 1].key;
	if (roll(w, 2) && last.offset < UINT32_MAX &&
	    (at + n == m->n || m->items[at + n].key.offset != last.offset + 1 ||
	     m->items[at + n].key.objectid != last.objectid))
		last.offset++;
	must(edit_delete_range(t, &first, &last, &count, &err), "edit_delete_range");
	if (count != n)
		die("a different number of items was deleted");
	model_take_out(m, at, n);
	w->count[DELETED] += n;
	w->count[RANGES]++;
}

static void replace_one(struct world *w, struct model *m, struct edit_tree *t)
{
	struct item *item = &m->items[roll(w, m->n)];
	size_t len;
	const char *name = name_of(item, &len);

	fill_item(w, item, name, len, some_size(w));
	must(edit_replace(t, &item->key, item->data, item->size, &err), "edit_replace");
	w->count[REPLACED]++;
}

/* Changes some bytes of a value in place. */
static void patch_one(struct world *w, struct model *m, struct edit_tree *t)
{
	struct item *item = &m->items[roll(w, m->n)];
	uint32_t size, from;
	uint8_t *bytes, *mine = take(item->size);
	size_t len;

	name_of(item, &len);
	from = (uint32_t)(sizeof(struct disk_dir_item) + len);
	memcpy(mine, item->data, item->size);
	must(edit_bytes(t, &item->key, &bytes, &size, &err), "edit_bytes");
	if (size != item->size || memcmp(bytes, mine, size))
		die("edit_bytes returns different bytes");
	for (unsigned i = 0; i < 4 && from < size; i++) {
		uint32_t at = from + (uint32_t)roll(w, size - from);

		bytes[at] = mine[at] = (uint8_t)roll(w, 256);
	}
	item->data = mine;
	w->count[PATCHED]++;
}

/* Renames to a name of the same length whose hash keeps the item's place in the order. */
static void rekey_one(struct world *w, struct model *m, struct edit_tree *t)
{
	size_t at = roll(w, m->n), len;
	struct item *item = &m->items[at];
	struct btrkit_key key = item->key;
	uint8_t *mine = take(item->size), *bytes;
	const char *old = name_of(item, &len);
	char name[256];
	uint32_t size;

	memcpy(name, old, len);
	for (unsigned tries = 0; tries < 3000; tries++) {
		for (size_t i = len < 11 ? strlen(PREFIX) : len - 6; i < len; i++)
			name[i] = (char)('a' + roll(w, 26));
		key.offset = dir_name_hash(name, len);
		if (key.offset != item->key.offset && (!at || key_cmp(&m->items[at - 1].key, &key) < 0) &&
		    (at + 1 == m->n || key_cmp(&key, &m->items[at + 1].key) < 0)) {
			must(edit_rekey(t, &item->key, &key, &err), "edit_rekey");
			must(edit_bytes(t, &key, &bytes, &size, &err), "edit_bytes");
			memcpy(mine, item->data, item->size);
			memcpy(mine + sizeof(struct disk_dir_item), name, len);
			memcpy(bytes, mine, size);
			item->key = key;
			item->data = mine;
			w->count[REKEYED]++;
			return;
		}
	}
}

/* Operations that must be refused without an effect. */
static void try_wrong(struct world *w, struct model *m, struct edit_tree *t)
{
	struct item absent = new_item(w, m, some_inode(w, m));
	const struct item *there = &m->items[roll(w, m->n)];
	int ret = 0;

	switch (roll(w, 4)) {
	case 0:
		ret = edit_insert(t, &there->key, absent.data, absent.size, &err) == -EEXIST;
		break;
	case 1:
		ret = edit_delete(t, &absent.key, &err) == -ENOENT;
		break;
	case 2:
		ret = edit_replace(t, &absent.key, absent.data, absent.size, &err) == -ENOENT;
		break;
	case 3:
		ret = edit_insert(t, &absent.key, absent.data, leaf_room(w->fs->geometry.nodesize), &err) == -EINVAL;
		break;
	}
	if (!ret)
		die("an edit was not refused");
	w->count[REFUSED]++;
}

static void edit_once(struct world *w, struct model *m, struct edit_tree *t)
{
	static const struct {
		unsigned growing, shrinking; /* out of 1000 */
		void (*edit)(struct world *w, struct model *m, struct edit_tree *t);
	} edits[] = {
		{ 8, 4, insert_many },
		{ 4, 15, delete_range },
		{ 300, 150, insert_one },
		{ 250, 400, delete_one },
		{ 250, 250, replace_one },
		{ 110, 100, patch_one },
		{ 20, 20, rekey_one },
		{ 58, 61, try_wrong },
	};
	uint64_t at = roll(w, 1000);
	size_t i;

	if (m->n < 100)
		w->shrinking = false;
	if (m->n < 10) {
		insert_one(w, m, t);
		return;
	}
	for (i = 0; at >= (w->shrinking ? edits[i].shrinking : edits[i].growing); i++)
		at -= w->shrinking ? edits[i].shrinking : edits[i].growing;
	edits[i].edit(w, m, t);
}

/* One transaction over one or more of the trees; one in ten is aborted. */
static void transact(struct world *w, uint64_t most)
{
	struct model before[TREES_MAX];
	const bool abort = roll(w, 10) == 0;
	uint64_t count[COUNTERS], edits = 1 + roll(w, roll(w, 3) ? 4000 : 40);
	enum btrkit_commit_state state;

	memcpy(before, w->models, sizeof(before));
	memcpy(count, w->count, sizeof(count));
	for (size_t i = 0; abort && i < w->num_models; i++) {
		before[i].items = take(before[i].room * sizeof(*before[i].items));
		if (before[i].n)
			memcpy(before[i].items, w->models[i].items, before[i].n * sizeof(*before[i].items));
	}
	must(btrkit_txn_start(w->fs, &w->txn, &err), "btrkit_txn_start");
	while (edits-- && (abort || w->count[INSERTED] + w->count[DELETED] < most)) {
		struct model *m = &w->models[roll(w, w->num_models)];
		struct edit_tree *t;

		if (!m->num_inodes)
			continue;
		if (roll(w, 5000) == 0)
			w->shrinking = !w->shrinking;
		must(txn_reserve(w->txn, 200, &err), "txn_reserve");
		must(txn_tree(w->txn, m->tree, &t, &err), "txn_tree");
		edit_once(w, m, t);
	}
	if (abort) {
		btrkit_txn_abort(w->txn);
		for (size_t i = 0; i < w->num_models; i++)
			free(w->models[i].items);
		memcpy(w->models, before, sizeof(before));
		memcpy(w->count, count, sizeof(count));
		w->count[ABORTS]++;
	} else {
		must(btrkit_txn_commit(w->txn, &state, &err), "btrkit_txn_commit");
		if (state != BTRKIT_COMMIT_NEW)
			die("the commit reports the old state");
		w->count[COMMITS]++;
	}
	compare_all(w);
}

static void parse_model(struct world *w, const char *arg)
{
	struct model *m = &w->models[w->num_models++];
	char *end;

	if (w->num_models > TREES_MAX)
		die("too many trees");
	m->tree = strtoull(arg, &end, 10);
	while (*end && end[1]) {
		if (m->num_inodes == INODES_MAX)
			die("too many inodes");
		m->inodes[m->num_inodes++] = strtoull(end + 1, &end, 10);
	}
}

static void write_manifest(const struct world *w, const char *path)
{
	FILE *f = fopen(path, "w");

	for (size_t i = 0; f && i < w->num_models; i++)
		for (const struct item *item = w->models[i].items; item < w->models[i].items + w->models[i].n; item++) {
			size_t len;
			const char *name = name_of(item, &len);
			const le64 head[4] = { le64_put(w->models[i].tree), le64_put(item->key.objectid), le64_put(len),
					       le64_put(item->size - sizeof(struct disk_dir_item) - len) };

			fwrite(head, sizeof(head), 1, f);
			fwrite(name, item->size - sizeof(struct disk_dir_item), 1, f);
		}
	if (!f || fclose(f))
		die("cannot write the manifest");
}

int main(int argc, char **argv)
{
	static struct world w;
	struct btrkit_write_stats stats;
	uint64_t most;

	if (argc < 6)
		die("usage: edit-model IMAGE SEED ITEMS MANIFEST TREE:INODE,... [TREE:INODE,...]...");
	w.path = argv[1];
	w.random = strtoull(argv[2], NULL, 10) * 2 + 1;
	most = strtoull(argv[3], NULL, 10);
	for (int i = 5; i < argc; i++)
		parse_model(&w, argv[i]);
	w.fs = reopened(&w, true);
	w.max_size = leaf_room(w.fs->geometry.nodesize) - (uint32_t)sizeof(struct disk_item);
	for (size_t i = 0; i < w.num_models; i++)
		read_tree(&w, w.fs, &w.models[i], false);
	while (w.count[INSERTED] + w.count[DELETED] < most)
		transact(&w, most);
	btrkit_fs_get_write_stats(w.fs, &stats);
	btrkit_fs_close(w.fs);
	write_manifest(&w, argv[4]);
	for (unsigned i = 0; i < COUNTERS; i++)
		printf("%" PRIu64 " %s%s", w.count[i], counter_names[i], i + 1 < COUNTERS ? ", " : "\n");
	printf("%" PRIu64 " blocks copied, %" PRIu64 " made, %" PRIu64 " batches, %" PRIu64 " references queued, "
	       "%" PRIu64 " netted, %" PRIu64 " bytes written\n", stats.nodes_copied, stats.nodes_created,
	       stats.ref_batches, stats.refs_queued, stats.refs_netted, stats.bytes_written);
	return 0;
}
