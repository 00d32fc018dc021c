// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Reading in a transaction: what its functions show, before and after a flush, is what the committed filesystem has.
 * Readers at the same time as writers see each change completely or not at all.
 */
#include "tests/unit/unit.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include <btrkit/btrkit.h>

#include "lib/base/crc32c.h"
#include "tests/unit/written.h"
#include "tests/random.h"

#define SIZE (200ull << 20)
#define TOP 256u
#define TEXT_MAX (4u << 20)
#define BYTES_MAX (3u << 20)

static struct btrkit_error err;
static uint8_t bytes[BYTES_MAX], seen[BYTES_MAX];

static void must(int ret)
{
	char line[BTRKIT_ERROR_LINE];

	if (ret)
		fail_msg("%d: %s", ret, btrkit_error_format(&err, line, sizeof(line)));
}

/* Everything that can be read, as text. With a transaction, through it; otherwise what is committed. */
struct account {
	struct btrkit_fs *fs;
	struct btrkit_txn *txn;
	char *text;
	size_t len;
	uint64_t root, dir; /* being listed */
	uint64_t last;
	unsigned depth;
};

__attribute__((format(printf, 2, 3))) static void say(struct account *a, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	a->len += (size_t)vsnprintf(a->text + a->len, TEXT_MAX - a->len, fmt, args);
	va_end(args);
	assert_true(a->len < TEXT_MAX);
}

static int take_xattr(void *ctx, const struct btrkit_xattr *x)
{
	say(ctx, " %.*s=%zu:%08x", (int)x->name_len, x->name, x->value_len, crc32c(0, x->value, x->value_len));
	return 0;
}

static void say_contents(struct account *a, const struct btrkit_inode *i)
{
	struct btrkit_file *file;
	size_t got;

	assert_true(i->size <= BYTES_MAX);
	memset(seen, 0xaa, sizeof(seen));
	if (a->txn) {
		must(btrkit_txn_read(a->txn, i->root, i->inode, 0, seen, sizeof(seen), &got, &err));
	} else {
		must(btrkit_file_open(a->fs, i->root, i->inode, &file, &err));
		must(btrkit_file_read(file, 0, seen, sizeof(seen), &got, &err));
		btrkit_file_close(file);
	}
	assert_int_equal(got, i->size);
	say(a, " %zu:%08x", got, crc32c(0, seen, got));
}

/* Any part of a file is the same as in the whole, which is in @seen. */
static void expect_parts(struct account *a, const struct btrkit_inode *i)
{
	static const uint64_t at[] = { 0, 1, 4095, 4096, 5000, 70001, 1 << 20, UINT64_MAX - 5000 };
	static uint8_t part[10000];
	size_t got;

	for (size_t k = 0; a->txn && k < ARRAY_SIZE(at); k++) {
		const uint64_t left = i->size > at[k] ? i->size - at[k] : 0;

		must(btrkit_txn_read(a->txn, i->root, i->inode, at[k], part, sizeof(part), &got, &err));
		assert_int_equal(got, left < sizeof(part) ? left : sizeof(part));
		if (got)
			assert_memory_equal(part, seen + at[k], got);
	}
}

static void say_time(struct account *a, const struct btrkit_time *t)
{
	say(a, " %" PRId64 ".%u", t->sec, t->nsec);
}

static void say_inode(struct account *a, uint64_t root, uint64_t inode, struct btrkit_inode *i)
{
	if (a->txn)
		must(btrkit_txn_inode_get(a->txn, root, inode, i, &err));
	else
		must(btrkit_inode_get(a->fs, root, inode, i, &err));
	say(a, " %" PRIu64 ":%" PRIu64 " %o %u %u:%u %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIx64, i->root, i->inode,
	    i->mode, i->nlink, i->uid, i->gid, i->size, i->nbytes, i->rdev, i->flags);
	say(a, " %" PRIu64 " %" PRIu64 " %" PRIu64, i->generation, i->transid, i->sequence);
	say_time(a, &i->atime);
	say_time(a, &i->ctime);
	say_time(a, &i->mtime);
	say_time(a, &i->otime);
	if (a->txn)
		must(btrkit_txn_xattrs(a->txn, root, inode, take_xattr, a, &err));
	else
		must(btrkit_inode_xattrs(a->fs, root, inode, take_xattr, a, &err));
	if (S_ISREG(i->mode) || S_ISLNK(i->mode)) {
		say_contents(a, i);
		expect_parts(a, i);
	}
}

static void say_directory(struct account *a, uint64_t root, uint64_t dir);

static int take_entry(void *ctx, const struct btrkit_dir_entry *e)
{
	struct account *a = ctx;
	struct btrkit_inode i;

	assert_true(e->index > a->last);
	a->last = e->index;
	say(a, "%*s%.*s %" PRIu64 " %u", (int)a->depth, "", (int)e->name_len, e->name, e->index, e->type);
	if (e->inode == BTRKIT_EMPTY_SUBVOLUME) {
		say(a, " stub in %" PRIu64 "\n", e->root);
		return 0;
	}
	say_inode(a, e->root, e->inode, &i);
	say(a, "\n");
	if (S_ISDIR(i.mode))
		say_directory(a, e->root, e->inode);
	a->last = e->index;
	return 0;
}

static void say_directory(struct account *a, uint64_t root, uint64_t dir)
{
	a->last = 0;
	a->depth++;
	if (a->txn)
		must(btrkit_txn_entries_after(a->txn, root, dir, 0, take_entry, a, &err));
	else
		must(btrkit_inode_entries(a->fs, root, dir, take_entry, a, &err));
	a->depth--;
}

static char *account_of(struct btrkit_fs *fs, struct btrkit_txn *txn)
{
	struct account a = { .fs = fs, .txn = txn, .text = malloc(TEXT_MAX) };
	struct btrkit_inode top;

	assert_non_null(a.text);
	a.text[0] = '\0';
	say_inode(&a, BTRKIT_TOP_LEVEL, TOP, &top);
	say(&a, "\n");
	say_directory(&a, BTRKIT_TOP_LEVEL, TOP);
	return a.text;
}

static uint64_t create(struct btrkit_txn *txn, uint64_t root, uint64_t dir, const char *name, uint32_t mode)
{
	const struct btrkit_new_inode what = { .mode = mode, .target = S_ISLNK(mode) ? "to/somewhere" : NULL };
	uint64_t inode;

	must(btrkit_txn_create(txn, root, dir, name, strlen(name), &what, &inode, &err));
	return inode;
}

/* Random changes of a few files, which may exist. */
static void change_file(struct btrkit_txn *txn, uint64_t inode, uint64_t *random)
{
	const struct btrkit_attr attr = { .mask = BTRKIT_ATTR_MODE | BTRKIT_ATTR_MTIME, .mode = *random & 0777,
					  .mtime = { (int64_t)(*random >> 40), 5 } };
	const uint64_t at = *random >> 33 & 0x1fffff, len = *random >> 20 & 0x3ffff;
	struct btrkit_write_options how = BTRKIT_WRITE_OPTIONS_INIT;
	char name[24];

	how.threads = 1;
	if (UNIT_CODECS && *random & 1)
		how.compression = BTRKIT_COMPRESSION_ZLIB;
	snprintf(name, sizeof(name), "user.%u", (unsigned)(*random >> 12 & 7));
	switch (*random >> 59 & 7) {
	case 0:
		must(btrkit_txn_write(txn, BTRKIT_TOP_LEVEL, inode, at, bytes + at / 2, len, &how, &err));
		break;
	case 1:
		must(btrkit_txn_write(txn, BTRKIT_TOP_LEVEL, inode, 0, bytes + at, len & 0x7ff, &how, &err));
		break;
	case 2:
		must(btrkit_txn_truncate(txn, BTRKIT_TOP_LEVEL, inode, at, &err));
		break;
	case 3:
		must(btrkit_txn_punch(txn, BTRKIT_TOP_LEVEL, inode, at, len + 1, &err));
		break;
	case 4:
		must(btrkit_txn_prealloc(txn, BTRKIT_TOP_LEVEL, inode, at, len + 1, 0, &err));
		break;
	case 5:
		must(btrkit_txn_set_attr(txn, BTRKIT_TOP_LEVEL, inode, &attr, &err));
		break;
	default:
		must(btrkit_txn_xattr_set(txn, BTRKIT_TOP_LEVEL, inode, name, bytes + at, len & 0x1ff, 0, &err));
	}
}

#define FILES 24u

struct made {
	uint64_t dir, files[FILES];
	unsigned names;
};

static void change(struct btrkit_txn *txn, struct made *m, uint64_t *random)
{
	const unsigned i = (unsigned)(*random >> 3) % FILES;
	char name[24], other[24];
	struct btrkit_place from = { BTRKIT_TOP_LEVEL, m->dir, name, 0 }, to = { BTRKIT_TOP_LEVEL, TOP, other, 0 };

	random_step(random);
	if (!m->files[i]) {
		snprintf(name, sizeof(name), "file-%u", i);
		m->files[i] = create(txn, BTRKIT_TOP_LEVEL, m->dir, name, i % 5 ? S_IFREG | 0644 : S_IFLNK | 0777);
		return;
	}
	if (*random >> 60) {
		if (i % 5)
			change_file(txn, m->files[i], random);
		return;
	}
	/* Another name for it, or none at all. */
	snprintf(other, sizeof(other), "name-%u", m->names++);
	from.len = (size_t)snprintf(name, sizeof(name), "file-%u", i);
	to.len = strlen(other);
	if (*random & 1) {
		must(btrkit_txn_link(txn, BTRKIT_TOP_LEVEL, m->files[i], &to, &err));
	} else {
		must(btrkit_txn_unlink(txn, BTRKIT_TOP_LEVEL, m->dir, name, from.len, BTRKIT_UNLINK_FILE, &err));
		m->files[i] = 0;
	}
}

static void make_subvolumes(struct btrkit_txn *txn)
{
	uint64_t sub, nested;

	must(btrkit_txn_subvolume_create(txn, BTRKIT_TOP_LEVEL, TOP, "sub", 3, NULL, &sub, &err));
	must(btrkit_txn_subvolume_create(txn, sub, TOP, "nested", 6, NULL, &nested, &err));
	create(txn, nested, TOP, "inside", S_IFREG | 0600);
	/* The snapshot has an empty directory for the nested one. */
	must(btrkit_txn_subvolume_snapshot(txn, sub, BTRKIT_TOP_LEVEL, TOP, "snapshot", 8, NULL, NULL, &err));
	create(txn, sub, TOP, "later", S_IFREG | 0600);
}

static void what_is_read_is_what_is_committed(void **state)
{
	const struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
	struct made m = { 0 };
	struct btrkit_txn *txn;
	struct btrkit_fs *fs;
	struct written w;
	uint64_t random = 7;
	(void)state;

	written_make(&w, &o, SIZE);
	fs = written_open(&w, BTRKIT_OPEN_WRITE);
	for (unsigned round = 0; round < 40; round++) {
		char *before, *flushed, *committed;

		must(btrkit_txn_start(fs, &txn, &err));
		if (!round)
			m.dir = create(txn, BTRKIT_TOP_LEVEL, TOP, "dir", S_IFDIR | 0755);
		if (round == 1)
			make_subvolumes(txn);
		for (unsigned i = 0; i < 40; i++)
			change(txn, &m, &random);
		before = account_of(fs, txn);
		must(btrkit_txn_flush(txn, &err));
		flushed = account_of(fs, txn);
		must(btrkit_txn_commit(txn, NULL, &err));
		committed = account_of(fs, NULL);
		assert_string_equal(before, flushed);
		assert_string_equal(before, committed);
		free(before);
		free(flushed);
		free(committed);
	}
	btrkit_fs_close(fs);
	written_verify(&w);
	written_destroy(&w);
}

static int refuse_all(void *ctx, const struct btrkit_dir_entry *e)
{
	(void)ctx;
	(void)e;
	return -EINTR;
}

static int refuse_xattrs(void *ctx, const struct btrkit_xattr *x)
{
	(void)ctx;
	(void)x;
	return -EINTR;
}

static void failures_have_no_consequences(void **state)
{
	const struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
	struct account a = { .text = malloc(TEXT_MAX) };
	struct btrkit_inode inode;
	struct btrkit_txn *txn;
	struct btrkit_fs *fs;
	struct written w;
	uint64_t file;
	size_t got = 7;
	(void)state;

	written_make(&w, &o, SIZE);
	fs = written_open(&w, BTRKIT_OPEN_WRITE);
	must(btrkit_txn_start(fs, &txn, &err));
	file = create(txn, BTRKIT_TOP_LEVEL, TOP, "file", S_IFREG | 0644);
	must(btrkit_txn_xattr_set(txn, BTRKIT_TOP_LEVEL, file, "user.a", "b", 1, 0, &err));
	assert_int_equal(btrkit_txn_inode_get(txn, BTRKIT_TOP_LEVEL, 999, &inode, &err), -ENOENT);
	assert_int_equal(btrkit_txn_inode_get(txn, 999, TOP, &inode, &err), -ENOENT);
	assert_int_equal(btrkit_txn_entries_after(txn, BTRKIT_TOP_LEVEL, file, 0, take_entry, &a, &err), -ENOTDIR);
	assert_int_equal(btrkit_txn_entries_after(txn, BTRKIT_TOP_LEVEL, 999, 0, take_entry, &a, &err), -ENOENT);
	assert_int_equal(btrkit_txn_entries_after(txn, BTRKIT_TOP_LEVEL, TOP, 0, refuse_all, NULL, &err), -EINTR);
	must(btrkit_txn_entries_after(txn, BTRKIT_TOP_LEVEL, TOP, UINT64_MAX, refuse_all, NULL, &err));
	assert_int_equal(btrkit_txn_xattrs(txn, BTRKIT_TOP_LEVEL, 999, take_xattr, &a, &err), -ENOENT);
	assert_int_equal(btrkit_txn_xattrs(txn, BTRKIT_TOP_LEVEL, file, refuse_xattrs, &a, &err), -EINTR);
	assert_int_equal(btrkit_txn_read(txn, BTRKIT_TOP_LEVEL, TOP, 0, seen, 1, &got, &err), -EINVAL);
	assert_int_equal(btrkit_txn_read(txn, BTRKIT_TOP_LEVEL, 999, 0, seen, 1, &got, &err), -ENOENT);
	assert_int_equal(got, 7);
	must(btrkit_txn_read(txn, BTRKIT_TOP_LEVEL, file, 0, NULL, 0, &got, &err));
	assert_int_equal(got, 0);
	must(btrkit_txn_failure(txn, &err));
	must(btrkit_txn_commit(txn, NULL, &err));
	btrkit_fs_close(fs);
	free(a.text);
	written_destroy(&w);
}

/* Threads: writers fill whole files with one value and replace names, readers look. */
#define SHARED_FILES 6u
#define FILE_BYTES (96u << 10)
#define STAYING 100u
#define ROUNDS 60u

struct threads {
	struct btrkit_txn *txn;
	uint64_t dir, files[SHARED_FILES];
	atomic_bool done;
	atomic_uint started;
};

static void *write_files(void *ctx)
{
	struct threads *t = ctx;
	const struct btrkit_write_options how = { .threads = 1 };
	const unsigned who = atomic_fetch_add(&t->started, 1);
	uint8_t *data = malloc(FILE_BYTES);
	struct btrkit_error own = BTRKIT_ERROR_INIT;
	char name[24], value[4];

	for (unsigned i = 0; data && i < ROUNDS; i++) {
		const uint64_t file = t->files[(i + who) % SHARED_FILES];
		const size_t len = (size_t)snprintf(name, sizeof(name), "changing-%u-%u", who, i % 3);

		memset(data, (int)(i + 1), FILE_BYTES);
		memset(value, (int)(i + 1), sizeof(value));
		if (btrkit_txn_write(t->txn, BTRKIT_TOP_LEVEL, file, 0, data, FILE_BYTES, &how, &own) ||
		    btrkit_txn_xattr_set(t->txn, BTRKIT_TOP_LEVEL, file, "user.all", value, sizeof(value), 0, &own))
			abort();
		if (i % 6 < 3 ?
			    btrkit_txn_create(t->txn, BTRKIT_TOP_LEVEL, t->dir, name, len, NULL, NULL, &own) :
			    btrkit_txn_unlink(t->txn, BTRKIT_TOP_LEVEL, t->dir, name, len, BTRKIT_UNLINK_FILE, &own))
			abort();
	}
	free(data);
	return NULL;
}

struct looking {
	unsigned staying;
	uint64_t last;
};

static int look_at_entry(void *ctx, const struct btrkit_dir_entry *e)
{
	struct looking *l = ctx;

	if (e->index <= l->last)
		abort();
	l->last = e->index;
	l->staying += e->name_len > 8 && !memcmp(e->name, "staying-", 8);
	return 0;
}

static int look_at_value(void *ctx, const struct btrkit_xattr *x)
{
	const uint8_t *value = x->value;
	(void)ctx;

	if (x->value_len != 4 || value[0] != value[1] || value[0] != value[3])
		abort();
	return 0;
}

static void *read_files(void *ctx)
{
	struct threads *t = ctx;
	uint8_t *data = malloc(2 * FILE_BYTES);
	struct btrkit_error own = BTRKIT_ERROR_INIT;
	struct btrkit_inode inode;
	size_t got;

	for (unsigned i = 0; data && !atomic_load(&t->done); i++) {
		const uint64_t file = t->files[i % SHARED_FILES];
		struct looking l = { 0 };

		if (btrkit_txn_read(t->txn, BTRKIT_TOP_LEVEL, file, 0, data, 2 * FILE_BYTES, &got, &own) ||
		    (got && got != FILE_BYTES) || (got && memcmp(data, data + 1, got - 1)))
			abort();
		if (btrkit_txn_inode_get(t->txn, BTRKIT_TOP_LEVEL, file, &inode, &own) ||
		    (inode.size && inode.size != FILE_BYTES))
			abort();
		if (btrkit_txn_xattrs(t->txn, BTRKIT_TOP_LEVEL, file, look_at_value, NULL, &own))
			abort();
		if (btrkit_txn_entries_after(t->txn, BTRKIT_TOP_LEVEL, t->dir, 0, look_at_entry, &l, &own) ||
		    l.staying != STAYING)
			abort();
	}
	free(data);
	return NULL;
}

static void readers_see_whole_changes(void **state)
{
	const struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
	struct threads t = { .done = false };
	pthread_t writers[3], readers[3];
	struct btrkit_fs *fs;
	struct written w;
	char name[24];
	(void)state;

	written_make(&w, &o, SIZE);
	fs = written_open(&w, BTRKIT_OPEN_WRITE);
	must(btrkit_txn_start(fs, &t.txn, &err));
	t.dir = create(t.txn, BTRKIT_TOP_LEVEL, TOP, "dir", S_IFDIR | 0755);
	for (unsigned i = 0; i < STAYING; i++) {
		snprintf(name, sizeof(name), "staying-%u", i);
		create(t.txn, BTRKIT_TOP_LEVEL, t.dir, name, S_IFREG | 0644);
	}
	for (unsigned i = 0; i < SHARED_FILES; i++) {
		snprintf(name, sizeof(name), "file-%u", i);
		t.files[i] = create(t.txn, BTRKIT_TOP_LEVEL, TOP, name, S_IFREG | 0644);
	}
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(pthread_create(&readers[i], NULL, read_files, &t), 0);
		assert_int_equal(pthread_create(&writers[i], NULL, write_files, &t), 0);
	}
	for (unsigned i = 0; i < 3; i++) {
		pthread_join(writers[i], NULL);
		if (i == 1)
			must(btrkit_txn_flush(t.txn, &err));
	}
	atomic_store(&t.done, true);
	for (unsigned i = 0; i < 3; i++)
		pthread_join(readers[i], NULL);
	must(btrkit_txn_commit(t.txn, NULL, &err));
	btrkit_fs_close(fs);
	written_verify(&w);
	written_destroy(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_read_is_what_is_committed),
		cmocka_unit_test(failures_have_no_consequences),
		cmocka_unit_test(readers_see_whole_changes),
	};

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * i >> 9 ^ i);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
