// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Random changes to files, compared with a model in memory, by one thread and by many in one transaction: lookups are
 * compared during the transaction, and every name and every byte afterwards. The whole filesystem is audited after each
 * commit.
 */
#include "tests/unit/unit.h"

#include <dirent.h>
#include <inttypes.h>
#include <pthread.h>
#include <sys/stat.h>

#include "tests/unit/hurry.h"
#include "tests/unit/txn_rig.h"
#include "tests/random.h"

#define TOP 256u
#define DIRS_MAX 24u
#define NAMES_MAX 160u
#define SIZE_MAX_OF_FILE 40000u

static const struct rig_kind kinds[] = {
	{ "4k nodes", BTRKIT_PROFILE_SINGLE, BTRKIT_PROFILE_SINGLE, false, 4096, 0, 1, { 160 } },
	{ "16k nodes", BTRKIT_PROFILE_SINGLE, BTRKIT_PROFILE_DUP, false, 16384, 0, 1, { 200 } },
	{ "64k nodes", BTRKIT_PROFILE_SINGLE, BTRKIT_PROFILE_SINGLE, false, 65536, 0, 1, { 200 } },
	{ "mixed", BTRKIT_PROFILE_SINGLE, BTRKIT_PROFILE_SINGLE, true, 4096, 0, 1, { 160 } },
	{ "raid1", BTRKIT_PROFILE_RAID1, BTRKIT_PROFILE_RAID1, false, 4096, 1, 2, { 160, 160 } },
#ifdef HAVE_ISAL
	{ "raid6", BTRKIT_PROFILE_RAID6, BTRKIT_PROFILE_RAID6, false, 4096, 2, 4, { 160, 160, 160, 160 } },
#endif
};

/* A file of the model. */
struct file {
	uint64_t inode;
	unsigned links;
	uint32_t size;
	uint8_t bytes[SIZE_MAX_OF_FILE];
};

struct entry {
	char name[64];
	unsigned dir;	   /* the directory that it is in */
	struct file *file; /* NULL for a directory */
	unsigned is_dir;   /* if it is a directory, its number */
};

/* The part of the tree that one thread changes. */
struct model {
	struct btrkit_txn *txn;
	uint64_t seed;
	uint64_t dirs[DIRS_MAX]; /* inodes; [0] is the top directory; 0: unused */
	struct entry names[NAMES_MAX];
	unsigned num_names;
	uint64_t done[9]; /* operations of each kind */
};

static unsigned pick(struct model *m, unsigned below)
{
	random_step(&m->seed);
	return (unsigned)((m->seed >> 33) % below);
}

static unsigned some_dir(struct model *m)
{
	unsigned d;

	do
		d = pick(m, DIRS_MAX);
	while (!m->dirs[d]);
	return d;
}

static void new_name(struct model *m, char *to)
{
	const unsigned len = 1 + pick(m, 40);

	snprintf(to, 64, "%08x", pick(m, 1u << 31));
	memset(to + 8, 'n', len);
	to[8 + len] = '\0';
}

static struct entry *some_entry(struct model *m, bool dirs, bool files)
{
	for (unsigned tries = 0; m->num_names && tries < 50; tries++) {
		struct entry *e = &m->names[pick(m, m->num_names)];

		if (e->file ? files : dirs)
			return e;
	}
	return NULL;
}

static struct entry *add_entry(struct model *m, unsigned dir, const char *name)
{
	struct entry *e = &m->names[m->num_names++];

	*e = (struct entry){ .dir = dir };
	snprintf(e->name, sizeof(e->name), "%s", name);
	return e;
}

static void drop_entry(struct model *m, struct entry *e)
{
	if (e->file && !--e->file->links)
		free(e->file);
	*e = m->names[--m->num_names];
}

static void make(struct model *m, bool directory)
{
	struct btrkit_new_inode what = BTRKIT_NEW_INODE_INIT;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	const unsigned dir = some_dir(m);
	struct entry *e;
	uint64_t inode;
	unsigned slot = 1;
	char name[64];

	while (directory && slot < DIRS_MAX && m->dirs[slot])
		slot++;
	if (m->num_names == NAMES_MAX || slot == DIRS_MAX)
		return;
	new_name(m, name);
	what.mode = directory ? S_IFDIR | 0755 : S_IFREG | 0644;
	rig_expect(btrkit_txn_create(m->txn, BTRKIT_TOP_LEVEL, m->dirs[dir], name, strlen(name), &what, &inode, &err),
		   0, &err);
	e = add_entry(m, dir, name);
	if (directory) {
		e->is_dir = slot;
		m->dirs[slot] = inode;
	} else {
		e->file = calloc(1, sizeof(*e->file));
		e->file->inode = inode;
		e->file->links = 1;
	}
	rig_expect(btrkit_txn_create(m->txn, BTRKIT_TOP_LEVEL, m->dirs[dir], name, strlen(name), &what, NULL, &err),
		   -EEXIST, &err);
}

static void write_some(struct model *m)
{
	static const struct btrkit_write_options packed = { .compression = UNIT_CODECS };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct entry *e = some_entry(m, false, true);
	uint8_t bytes[SIZE_MAX_OF_FILE];
	uint32_t at, len;

	if (!e)
		return;
	at = pick(m, 3) ? pick(m, SIZE_MAX_OF_FILE - 1) : 0;
	len = 1 + pick(m, pick(m, 2) ? 300 : SIZE_MAX_OF_FILE - at);
	len = len < SIZE_MAX_OF_FILE - at ? len : SIZE_MAX_OF_FILE - at;
	for (uint32_t i = 0; i < len; i++)
		bytes[i] = (uint8_t)(m->seed >> (i % 8) ^ i / 64);
	rig_expect(btrkit_txn_write(m->txn, BTRKIT_TOP_LEVEL, e->file->inode, at, bytes, len,
				    pick(m, 2) ? &packed : NULL, &err),
		   0, &err);
	memcpy(e->file->bytes + at, bytes, len);
	if (e->file->size < at + len)
		e->file->size = at + len;
}

static void cut(struct model *m)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct entry *e = some_entry(m, false, true);
	uint32_t size;

	if (!e)
		return;
	size = pick(m, 4) ? pick(m, SIZE_MAX_OF_FILE) : 0;
	rig_expect(btrkit_txn_truncate(m->txn, BTRKIT_TOP_LEVEL, e->file->inode, size, &err), 0, &err);
	if (size < e->file->size)
		memset(e->file->bytes + size, 0, e->file->size - size);
	e->file->size = size;
}

static void punch(struct model *m)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct entry *e = some_entry(m, false, true);
	const uint32_t at = pick(m, SIZE_MAX_OF_FILE), len = 1 + pick(m, pick(m, 2) ? 300 : SIZE_MAX_OF_FILE);

	if (!e)
		return;
	rig_expect(btrkit_txn_punch(m->txn, BTRKIT_TOP_LEVEL, e->file->inode, at, len, &err), 0, &err);
	if (at < e->file->size)
		memset(e->file->bytes + at, 0, len < e->file->size - at ? len : e->file->size - at);
}

static void preallocate(struct model *m)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct entry *e = some_entry(m, false, true);
	const uint32_t at = pick(m, SIZE_MAX_OF_FILE - 1), len = 1 + pick(m, SIZE_MAX_OF_FILE - at);
	const unsigned keep = pick(m, 2);

	if (!e)
		return;
	rig_expect(btrkit_txn_prealloc(m->txn, BTRKIT_TOP_LEVEL, e->file->inode, at, len, keep, &err), 0, &err);
	if (!keep && e->file->size < at + len)
		e->file->size = at + len;
}

static void clone_some(struct model *m)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct entry *e = some_entry(m, false, true), *other = some_entry(m, false, true);
	const uint32_t from = pick(m, 10) * 4096, to = pick(m, 8) * 4096;
	struct btrkit_clone what = { BTRKIT_TOP_LEVEL, 0, from, BTRKIT_TOP_LEVEL, 0, to, 0 };
	uint32_t len;

	if (!e || !other)
		return;
	what.from_inode = e->file->inode;
	what.to_inode = other->file->inode;
	len = e->file->size > from ? e->file->size - from : 0;
	if (len > SIZE_MAX_OF_FILE - to || pick(m, 2))
		what.length = len = len < 8192 ? 4096 : 8192;
	if (from >= e->file->size ? what.length || from > e->file->size :
	    len > e->file->size - from || (len % 4096 && to + len < other->file->size) ||
	    (e->file == other->file && to < from + (len + 4095) / 4096 * 4096 &&
	     from < to + (len + 4095) / 4096 * 4096)) {
		rig_expect(btrkit_txn_clone(m->txn, &what, &err), -EINVAL, &err);
		return;
	}
	rig_expect(btrkit_txn_clone(m->txn, &what, &err), 0, &err);
	memcpy(other->file->bytes + to, e->file->bytes + from, len);
	if (len && other->file->size < to + len)
		other->file->size = to + len;
}

static void remove_one(struct model *m)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct entry *e = some_entry(m, true, true);
	const size_t len = e ? strlen(e->name) : 0;
	bool empty = true;
	int ret;

	if (!e)
		return;
	for (unsigned i = 0; !e->file && i < m->num_names; i++)
		empty = empty && m->names[i].dir != e->is_dir;
	ret = btrkit_txn_unlink(m->txn, BTRKIT_TOP_LEVEL, m->dirs[e->dir], e->name, len,
				e->file ? BTRKIT_UNLINK_DIR : BTRKIT_UNLINK_FILE, &err);
	rig_expect(ret, e->file ? -ENOTDIR : -EISDIR, &err);
	ret = btrkit_txn_unlink(m->txn, BTRKIT_TOP_LEVEL, m->dirs[e->dir], e->name, len,
				e->file ? BTRKIT_UNLINK_FILE : BTRKIT_UNLINK_DIR, &err);
	rig_expect(ret, empty ? 0 : -ENOTEMPTY, &err);
	if (ret)
		return;
	if (!e->file)
		m->dirs[e->is_dir] = 0;
	drop_entry(m, e);
}

static void link_one(struct model *m)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct entry *e = some_entry(m, true, true), *made;
	const unsigned dir = some_dir(m);
	struct btrkit_place to = { .root = BTRKIT_TOP_LEVEL, .dir = m->dirs[dir] };
	char name[64];
	int ret;

	if (!e || m->num_names == NAMES_MAX)
		return;
	new_name(m, name);
	to.name = name;
	to.len = strlen(name);
	ret = btrkit_txn_link(m->txn, BTRKIT_TOP_LEVEL, e->file ? e->file->inode : m->dirs[e->is_dir], &to, &err);
	rig_expect(ret, e->file ? 0 : -EPERM, &err);
	if (ret)
		return;
	made = add_entry(m, dir, name);
	made->file = e->file;
	made->file->links++;
}

/* Whether a directory is @above or below it. */
static bool is_below(const struct model *m, unsigned dir, unsigned above)
{
	while (dir && dir != above) {
		unsigned i = 0;

		while (m->names[i].file || m->names[i].is_dir != dir)
			i++;
		dir = m->names[i].dir;
	}
	return dir == above;
}

static void move(struct model *m)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct entry *e = some_entry(m, true, true);
	const unsigned dir = some_dir(m);
	struct btrkit_place from, to;
	char name[64];
	bool loop;
	int ret;

	if (!e)
		return;
	new_name(m, name);
	loop = !e->file && is_below(m, dir, e->is_dir);
	from = (struct btrkit_place){ BTRKIT_TOP_LEVEL, m->dirs[e->dir], e->name, strlen(e->name) };
	to = (struct btrkit_place){ BTRKIT_TOP_LEVEL, m->dirs[dir], name, strlen(name) };
	ret = btrkit_txn_rename(m->txn, &from, &to, BTRKIT_RENAME_NOREPLACE, &err);
	rig_expect(ret, loop ? -EINVAL : 0, &err);
	if (ret)
		return;
	e->dir = dir;
	snprintf(e->name, sizeof(e->name), "%s", name);
}

/* Renames over another file, which is removed, or exchange the two. */
static void move_over(struct model *m)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct entry *e = some_entry(m, false, true), *other = some_entry(m, false, true);
	const bool exchange = pick(m, 2);
	struct btrkit_place from, to;
	struct file *f;

	if (!e || !other || e == other)
		return;
	from = (struct btrkit_place){ BTRKIT_TOP_LEVEL, m->dirs[e->dir], e->name, strlen(e->name) };
	to = (struct btrkit_place){ BTRKIT_TOP_LEVEL, m->dirs[other->dir], other->name, strlen(other->name) };
	rig_expect(btrkit_txn_rename(m->txn, &from, &to, BTRKIT_RENAME_NOREPLACE, &err), -EEXIST, &err);
	rig_expect(btrkit_txn_rename(m->txn, &from, &to, exchange ? BTRKIT_RENAME_EXCHANGE : 0, &err), 0, &err);
	/* Renaming one name of a file to another name of the same file does nothing. */
	if (e->file == other->file)
		return;
	f = e->file;
	e->file = other->file;
	other->file = f;
	if (!exchange)
		drop_entry(m, e);
}

static void look_up(struct model *m)
{
	static const char too_long[256] = "too long";
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct entry *e = some_entry(m, true, true);
	struct btrkit_found found;

	if (!e)
		return;
	rig_expect(btrkit_txn_lookup(m->txn, BTRKIT_TOP_LEVEL, m->dirs[e->dir], e->name, strlen(e->name), &found, &err),
		   0, &err);
	assert_int_equal(found.inode, e->file ? e->file->inode : m->dirs[e->is_dir]);
	assert_int_equal(found.type, e->file ? DT_REG : DT_DIR);
	rig_expect(btrkit_txn_lookup(m->txn, BTRKIT_TOP_LEVEL, m->dirs[e->dir], "none", 4, &found, &err), -ENOENT,
		   &err);
	rig_expect(btrkit_txn_lookup(m->txn, BTRKIT_TOP_LEVEL, m->dirs[e->dir], too_long, sizeof(too_long), &found,
				     &err),
		   -ENAMETOOLONG, &err);
}

static void step(struct model *m)
{
	const unsigned kind = pick(m, 20);

	switch (kind) {
	case 0:
		make(m, true);
		break;
	case 1:
	case 2:
	case 3:
		make(m, false);
		break;
	case 4:
	case 5:
	case 6:
	case 7:
		write_some(m);
		break;
	case 8:
		cut(m);
		break;
	case 9:
	case 10:
		remove_one(m);
		break;
	case 11:
		link_one(m);
		break;
	case 12:
		move(m);
		break;
	case 13:
		move_over(m);
		break;
	case 14:
		punch(m);
		break;
	case 15:
		preallocate(m);
		break;
	case 16:
	case 17:
		clone_some(m);
		break;
	default:
		look_up(m);
	}
}

struct listing {
	const struct model *m;
	struct btrkit_fs *fs;
	unsigned dir, found;
};

static void check_file(struct btrkit_fs *fs, const struct file *f)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	uint8_t bytes[SIZE_MAX_OF_FILE + 1];
	struct btrkit_file *open;
	struct btrkit_inode in;
	size_t got;

	rig_expect(btrkit_inode_get(fs, BTRKIT_TOP_LEVEL, f->inode, &in, &err), 0, &err);
	assert_int_equal(in.size, f->size);
	assert_int_equal(in.nlink, f->links);
	rig_check(btrkit_file_open(fs, BTRKIT_TOP_LEVEL, f->inode, &open, &err), &err);
	rig_check(btrkit_file_read(open, 0, bytes, sizeof(bytes), &got, &err), &err);
	btrkit_file_close(open);
	assert_int_equal(got, f->size);
	assert_memory_equal(bytes, f->bytes, got);
}

static int check_entry(void *ctx, const struct btrkit_dir_entry *d)
{
	struct listing *l = ctx;

	for (unsigned i = 0; i < l->m->num_names; i++) {
		const struct entry *e = &l->m->names[i];

		if (e->dir != l->dir || strlen(e->name) != d->name_len || memcmp(e->name, d->name, d->name_len) != 0)
			continue;
		assert_int_equal(d->inode, e->file ? e->file->inode : l->m->dirs[e->is_dir]);
		if (e->file)
			check_file(l->fs, e->file);
		l->found++;
		return 0;
	}
	/* The top directory also has the names of other threads. */
	if (l->dir)
		fail_msg("%.*s is in a directory", (int)d->name_len, d->name);
	return 0;
}

static void check_model(const struct model *m, struct btrkit_fs *fs)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	unsigned found = 0;

	for (unsigned d = 0; d < DIRS_MAX; d++) {
		struct listing l = { m, fs, d, 0 };

		if (m->dirs[d])
			rig_check(btrkit_inode_entries(fs, BTRKIT_TOP_LEVEL, m->dirs[d], check_entry, &l, &err), &err);
		found += l.found;
	}
	assert_int_equal(found, m->num_names);
}

static void clear_model(struct model *m)
{
	while (m->num_names)
		drop_entry(m, &m->names[0]);
}

static void *work(void *arg)
{
	struct model *m = arg;

	for (unsigned i = 0; i < 400; i++)
		step(m);
	return NULL;
}

/* A few transactions with @threads threads; the model is compared on the handle that wrote, and on a new one. */
static void run(const struct rig_kind *kind, unsigned threads)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct model *models = calloc(threads, sizeof(*models));
	struct btrkit_txn *txn;
	struct btrkit_fs *fs;
	struct rig r;

	rig_make(&r, kind);
	for (unsigned i = 0; i < threads; i++) {
		models[i].seed = 77 + i;
		models[i].dirs[0] = TOP;
	}
	fs = rig_open(&r, BTRKIT_OPEN_WRITE, 0);
	for (unsigned round = 0; round < 3; round++) {
		pthread_t ids[16];

		rig_check(btrkit_txn_start(fs, &txn, &err), &err);
		if (round == 2)
			txn_hurry(txn);
		for (unsigned i = 0; i < threads; i++) {
			models[i].txn = txn;
			if (threads == 1)
				work(&models[i]);
			else
				assert_int_equal(pthread_create(&ids[i], NULL, work, &models[i]), 0);
		}
		if (round == 1)
			rig_check(btrkit_txn_flush(txn, &err), &err);
		for (unsigned i = 0; threads > 1 && i < threads; i++)
			pthread_join(ids[i], NULL);
		rig_check(btrkit_txn_commit(txn, NULL, &err), &err);
		for (unsigned i = 0; i < threads; i++)
			check_model(&models[i], fs);
		rig_verify(&r);
	}
	btrkit_fs_close(fs);
	fs = rig_open(&r, 0, 0);
	for (unsigned i = 0; i < threads; i++) {
		check_model(&models[i], fs);
		clear_model(&models[i]);
	}
	btrkit_fs_close(fs);
	rig_destroy(&r);
	free(models);
}

static void test_model(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		run(&kinds[i], 1);
}

static void test_threads(void **state)
{
	(void)state;
	run(&kinds[0], 8);
	run(&kinds[1], 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_model),
		cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
