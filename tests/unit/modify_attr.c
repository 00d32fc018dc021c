// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Owners, permissions, times and extended attributes, compared with a model in memory, by many threads in one
 * transaction; and the effects of ACLs, flags and the compression property. All are compared after each commit, on a
 * new handle too.
 */
#include "tests/unit/unit.h"

#include <inttypes.h>
#include <linux/fs.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "lib/format/acl.h"
#include "lib/format/items/files/dir.h"
#include "lib/format/items/files/inode.h"
#include "tests/unit/txn_rig.h"
#include "tests/random.h"

#define TOP 256u
#define FILES 12u
#define NAMES 8u
#define VALUE_MAX 3000u
#define THREADS 4u

static const struct rig_kind kinds[] = {
	{ "4k nodes", BTRKIT_PROFILE_SINGLE, BTRKIT_PROFILE_SINGLE, false, 4096, 0, 1, { 160 } },
	{ "16k nodes", BTRKIT_PROFILE_SINGLE, BTRKIT_PROFILE_DUP, false, 16384, 0, 1, { 200 } },
};

/* The last two have the same hash. */
static const char *const names[NAMES] = { "user.a",	  "user.b",	 "trusted.c",	  "security.d",
					  "user.long.name", "trusted.e", "user.d67a6aeb", "user.6a1aed85" };

struct value {
	bool there;
	uint16_t size;
	uint8_t bytes[VALUE_MAX];
};

struct file {
	uint64_t inode;
	struct btrkit_attr attr; /* expected attributes */
	struct value values[NAMES];
};

struct model {
	struct btrkit_txn *txn;
	uint64_t seed;
	struct file files[FILES];
};

static unsigned pick(struct model *m, unsigned below)
{
	random_step(&m->seed);
	return (unsigned)((m->seed >> 33) % below);
}

static void make_files(struct model *m, unsigned number)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;

	for (unsigned i = 0; i < FILES; i++) {
		struct file *f = &m->files[i];
		char name[32];

		snprintf(name, sizeof(name), "%u.%u", number, i);
		rig_expect(btrkit_txn_create(m->txn, BTRKIT_TOP_LEVEL, TOP, name, strlen(name), NULL, &f->inode, &err),
			   0, &err);
		f->attr.mode = S_IFREG | 0644;
	}
}

static void put(struct model *m, struct file *f, unsigned i)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct value *v = &f->values[i], now = { .there = true };
	const unsigned flags = pick(m, 3);
	int wanted = 0;

	/* Two large values with the same name hash would not fit into a small leaf. */
	now.size = (uint16_t)pick(m, pick(m, 8) || i >= NAMES - 2 ? 60 : VALUE_MAX);
	for (unsigned k = 0; k < now.size; k++)
		now.bytes[k] = (uint8_t)(m->seed >> (k % 8) ^ k / 64);
	if (flags & BTRKIT_XATTR_CREATE && v->there)
		wanted = -EEXIST;
	else if (flags & BTRKIT_XATTR_REPLACE && !v->there)
		wanted = -ENODATA;
	rig_expect(btrkit_txn_xattr_set(m->txn, BTRKIT_TOP_LEVEL, f->inode, names[i], now.bytes, now.size, flags, &err),
		   wanted, &err);
	if (!wanted)
		*v = now;
}

static void get(struct model *m, struct file *f, unsigned i)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct value *v = &f->values[i];
	uint8_t bytes[VALUE_MAX];
	size_t size;
	int ret;

	ret = btrkit_txn_xattr_get(m->txn, BTRKIT_TOP_LEVEL, f->inode, names[i], bytes, sizeof(bytes), &size, &err);
	rig_expect(ret, v->there ? 0 : -ENODATA, &err);
	if (ret)
		return;
	assert_int_equal(size, v->size);
	assert_memory_equal(bytes, v->bytes, size);
	if (size)
		rig_expect(btrkit_txn_xattr_get(m->txn, BTRKIT_TOP_LEVEL, f->inode, names[i], NULL, 0, &size, &err),
			   -ERANGE, &err);
}

static void take_away(struct model *m, struct file *f, unsigned i)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;

	rig_expect(btrkit_txn_xattr_remove(m->txn, BTRKIT_TOP_LEVEL, f->inode, names[i], &err),
		   f->values[i].there ? 0 : -ENODATA, &err);
	f->values[i].there = false;
}

static void change_attributes(struct model *m, struct file *f)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_attr now = { .mask = pick(m, BTRKIT_ATTR_OTIME * 2) };

	now.mode = pick(m, 010000);
	now.uid = pick(m, 100000);
	now.gid = pick(m, 100000);
	now.atime = (struct btrkit_time){ pick(m, 1u << 30), pick(m, 1000000000) };
	now.mtime = (struct btrkit_time){ -(int64_t)pick(m, 1u << 30), pick(m, 1000000000) };
	now.otime = (struct btrkit_time){ INT64_MAX, 999999999 };
	rig_expect(btrkit_txn_set_attr(m->txn, BTRKIT_TOP_LEVEL, f->inode, &now, &err), 0, &err);
	if (now.mask & (BTRKIT_ATTR_UID | BTRKIT_ATTR_GID))
		f->attr.mode &= f->attr.mode & S_IXGRP ? ~(S_ISUID | S_ISGID) : ~(unsigned)S_ISUID;
	if (now.mask & BTRKIT_ATTR_MODE)
		f->attr.mode = S_IFREG | now.mode;
	if (now.mask & BTRKIT_ATTR_UID)
		f->attr.uid = now.uid;
	if (now.mask & BTRKIT_ATTR_GID)
		f->attr.gid = now.gid;
	if (now.mask & BTRKIT_ATTR_ATIME)
		f->attr.atime = now.atime;
	if (now.mask & BTRKIT_ATTR_MTIME)
		f->attr.mtime = now.mtime;
	if (now.mask & BTRKIT_ATTR_OTIME)
		f->attr.otime = now.otime;
	f->attr.mask |= now.mask;
}

static void *work(void *arg)
{
	struct model *m = arg;

	for (unsigned i = 0; i < 500; i++) {
		struct file *f = &m->files[pick(m, FILES)];
		const unsigned name = pick(m, NAMES), kind = pick(m, 8);

		if (kind < 3)
			put(m, f, name);
		else if (kind < 5)
			get(m, f, name);
		else if (kind < 7)
			change_attributes(m, f);
		else
			take_away(m, f, name);
	}
	return NULL;
}

struct reading {
	const struct file *f;
	unsigned found;
};

static int check_value(void *ctx, const struct btrkit_xattr *x)
{
	struct reading *r = ctx;

	for (unsigned i = 0; i < NAMES; i++) {
		const struct value *v = &r->f->values[i];

		if (strlen(names[i]) != x->name_len || memcmp(names[i], x->name, x->name_len) != 0)
			continue;
		assert_true(v->there);
		assert_int_equal(v->size, x->value_len);
		assert_memory_equal(v->bytes, x->value, x->value_len);
		r->found++;
		return 0;
	}
	fail_msg("%.*s was never set", (int)x->name_len, x->name);
	return 0;
}

static void check_time(const struct file *f, unsigned bit, const struct btrkit_time *is, const struct btrkit_time *want)
{
	if (!(f->attr.mask & bit))
		return;
	assert_true(is->sec == want->sec);
	assert_int_equal(is->nsec, want->nsec);
}

static void check_file(struct btrkit_fs *fs, const struct file *f)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct reading r = { f, 0 };
	struct btrkit_inode in;

	rig_check(btrkit_inode_get(fs, BTRKIT_TOP_LEVEL, f->inode, &in, &err), &err);
	assert_int_equal(in.mode, f->attr.mode);
	assert_int_equal(in.uid, f->attr.uid);
	assert_int_equal(in.gid, f->attr.gid);
	check_time(f, BTRKIT_ATTR_ATIME, &in.atime, &f->attr.atime);
	check_time(f, BTRKIT_ATTR_MTIME, &in.mtime, &f->attr.mtime);
	check_time(f, BTRKIT_ATTR_OTIME, &in.otime, &f->attr.otime);
	rig_check(btrkit_inode_xattrs(fs, BTRKIT_TOP_LEVEL, f->inode, check_value, &r, &err), &err);
	for (unsigned i = 0; i < NAMES; i++)
		r.found -= f->values[i].there;
	assert_int_equal(r.found, 0);
}

static void run(const struct rig_kind *kind)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct model *models = calloc(THREADS, sizeof(*models));
	struct btrkit_txn *txn;
	struct btrkit_fs *fs;
	struct rig r;

	assert_int_equal(dir_name_hash(names[6], strlen(names[6])), dir_name_hash(names[7], strlen(names[7])));
	rig_make(&r, kind);
	fs = rig_open(&r, BTRKIT_OPEN_WRITE, 0);
	for (unsigned round = 0; round < 3; round++) {
		pthread_t ids[THREADS];

		rig_check(btrkit_txn_start(fs, &txn, &err), &err);
		for (unsigned i = 0; i < THREADS; i++) {
			models[i].txn = txn;
			if (!round) {
				models[i].seed = 5 + i;
				make_files(&models[i], i);
			}
			assert_int_equal(pthread_create(&ids[i], NULL, work, &models[i]), 0);
		}
		if (round == 1)
			rig_check(btrkit_txn_flush(txn, &err), &err);
		for (unsigned i = 0; i < THREADS; i++)
			pthread_join(ids[i], NULL);
		rig_check(btrkit_txn_commit(txn, NULL, &err), &err);
		for (unsigned i = 0; i < THREADS * FILES; i++)
			check_file(fs, &models[i / FILES].files[i % FILES]);
		rig_verify(&r);
	}
	btrkit_fs_close(fs);
	fs = rig_open(&r, 0, 0);
	for (unsigned i = 0; i < THREADS * FILES; i++)
		check_file(fs, &models[i / FILES].files[i % FILES]);
	btrkit_fs_close(fs);
	rig_destroy(&r);
	free(models);
}

static void test_model(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		run(&kinds[i]);
}

/* One filesystem with a transaction, and the helpers of the tests on it. */
struct place {
	struct rig r;
	struct btrkit_fs *fs;
	struct btrkit_txn *txn;
	struct btrkit_error err;
};

static void open_place(struct place *p)
{
	*p = (struct place){ .err = BTRKIT_ERROR_INIT };
	rig_make(&p->r, &kinds[0]);
	p->fs = rig_open(&p->r, BTRKIT_OPEN_WRITE, 0);
	rig_check(btrkit_txn_start(p->fs, &p->txn, &p->err), &p->err);
}

static void close_place(struct place *p)
{
	rig_check(btrkit_txn_commit(p->txn, NULL, &p->err), &p->err);
	rig_verify(&p->r);
	btrkit_fs_close(p->fs);
	rig_destroy(&p->r);
}

static uint64_t make(struct place *p, uint64_t dir, const char *name, uint32_t mode)
{
	const struct btrkit_new_inode what = { .mode = mode, .target = S_ISLNK(mode) ? "target" : NULL };
	uint64_t inode;

	rig_check(btrkit_txn_create(p->txn, BTRKIT_TOP_LEVEL, dir, name, strlen(name), &what, &inode, &p->err),
		  &p->err);
	return inode;
}

static int set(struct place *p, uint64_t inode, const char *name, const void *value, size_t size)
{
	return btrkit_txn_xattr_set(p->txn, BTRKIT_TOP_LEVEL, inode, name, value, size, 0, &p->err);
}

/* @size 0: the attribute must not exist */
static void assert_value(struct place *p, uint64_t inode, const char *name, const void *value, size_t size)
{
	uint8_t bytes[4096];
	size_t got;
	int ret;

	ret = btrkit_txn_xattr_get(p->txn, BTRKIT_TOP_LEVEL, inode, name, bytes, sizeof(bytes), &got, &p->err);
	if (!size) {
		assert_int_equal(ret, -ENODATA);
		assert_int_equal(p->err.code, BTRKIT_NO_ATTRIBUTE);
		return;
	}
	rig_check(ret, &p->err);
	assert_int_equal(got, size);
	assert_memory_equal(bytes, value, size);
}

static struct btrkit_inode inode_of(struct place *p, uint64_t inode)
{
	struct btrkit_inode in;

	rig_check(btrkit_txn_flush(p->txn, &p->err), &p->err);
	rig_check(btrkit_inode_get(p->fs, BTRKIT_TOP_LEVEL, inode, &in, &p->err), &p->err);
	return in;
}

static void add_entry(uint8_t *to, size_t *size, uint16_t tag, uint16_t perm, uint32_t id)
{
	const struct disk_acl_entry d = { le16_put(tag), le16_put(perm), le32_put(id) };

	memcpy(to + *size, &d, sizeof(d));
	*size += sizeof(d);
}

/* Writes an ACL for the owner, user 7 (rwx), the group (r-x), the mask and others. @return its size */
static size_t make_acl(uint8_t *to, uint16_t owner, uint16_t mask, uint16_t other)
{
	const le32 version = le32_put(ACL_VERSION);
	size_t size = sizeof(version);

	memcpy(to, &version, sizeof(version));
	add_entry(to, &size, ACL_USER_OBJ, owner, ACL_NO_ID);
	add_entry(to, &size, ACL_USER, 7, 7);
	add_entry(to, &size, ACL_GROUP_OBJ, 5, ACL_NO_ID);
	add_entry(to, &size, ACL_MASK, mask, ACL_NO_ID);
	add_entry(to, &size, ACL_OTHER, other, ACL_NO_ID);
	return size;
}

static void test_acl(void **state)
{
	const struct btrkit_attr mode = { .mask = BTRKIT_ATTR_MODE, .mode = 0640 };
	uint64_t dir, file, below, link;
	uint8_t acl[64], other[64];
	struct place p;
	size_t size;

	(void)state;
	open_place(&p);
	dir = make(&p, TOP, "dir", S_IFDIR | 0755);
	file = make(&p, TOP, "file", S_IFREG | 0600);
	size = make_acl(acl, 7, 7, 5);
	assert_int_equal(set(&p, file, ACL_DEFAULT, acl, size), -EACCES);
	assert_int_equal(set(&p, file, ACL_ACCESS, acl, size - 8), -EINVAL);
	assert_int_equal(set(&p, file, ACL_ACCESS, acl, size - 1), -EINVAL);
	rig_check(set(&p, file, ACL_ACCESS, acl, size), &p.err);
	assert_int_equal(inode_of(&p, file).mode, S_IFREG | 0775);
	/* The ACL follows a change of the mode. */
	rig_check(btrkit_txn_set_attr(p.txn, BTRKIT_TOP_LEVEL, file, &mode, &p.err), &p.err);
	make_acl(other, 6, 4, 0);
	assert_value(&p, file, ACL_ACCESS, other, size);
	/*
	 * A file made before the default ACL was set has none, although the absence is cached; one made afterwards has
	 * it.
	 */
	below = make(&p, dir, "before", S_IFREG | 0666);
	assert_value(&p, below, ACL_ACCESS, NULL, 0);
	rig_check(set(&p, dir, ACL_DEFAULT, acl, size), &p.err);
	below = make(&p, dir, "file", S_IFREG | 0666);
	make_acl(other, 6, 6, 4);
	assert_value(&p, below, ACL_ACCESS, other, size);
	assert_value(&p, below, ACL_DEFAULT, NULL, 0);
	assert_int_equal(inode_of(&p, below).mode, S_IFREG | 0664);
	below = make(&p, dir, "dir", S_IFDIR | 0700);
	make_acl(other, 7, 0, 0);
	assert_value(&p, below, ACL_ACCESS, other, size);
	assert_value(&p, below, ACL_DEFAULT, acl, size);
	link = make(&p, dir, "link", S_IFLNK | 0777);
	assert_value(&p, link, ACL_ACCESS, NULL, 0);
	assert_int_equal(set(&p, link, ACL_ACCESS, acl, size), -EOPNOTSUPP);
	assert_int_equal(btrkit_txn_set_attr(p.txn, BTRKIT_TOP_LEVEL, link, &mode, &p.err), -EOPNOTSUPP);
	rig_check(btrkit_txn_xattr_remove(p.txn, BTRKIT_TOP_LEVEL, dir, ACL_DEFAULT, &p.err), &p.err);
	rig_check(btrkit_txn_xattr_remove(p.txn, BTRKIT_TOP_LEVEL, dir, ACL_DEFAULT, &p.err), &p.err);
	below = make(&p, dir, "after", S_IFREG | 0666);
	assert_value(&p, below, ACL_ACCESS, NULL, 0);
	close_place(&p);
}

static int set_flags(struct place *p, uint64_t inode, uint32_t flags, uint32_t mask)
{
	return btrkit_txn_set_flags(p->txn, BTRKIT_TOP_LEVEL, inode, flags, mask, &p->err);
}

static void test_flags(void **state)
{
	uint64_t dir, file;
	struct place p;

	(void)state;
	open_place(&p);
	dir = make(&p, TOP, "dir", S_IFDIR | 0755);
	file = make(&p, TOP, "file", S_IFREG | 0644);
	rig_check(set_flags(&p, file, FS_NOCOW_FL | FS_NODUMP_FL | FS_DIRSYNC_FL, UINT32_MAX), &p.err);
	assert_int_equal(inode_of(&p, file).flags, INODE_NODATACOW | INODE_NODATASUM | INODE_NODUMP);
	assert_int_equal(set_flags(&p, file, FS_COMPR_FL, FS_COMPR_FL), -EINVAL);
	assert_int_equal(set(&p, file, "btrfs.compression", "zstd", 4), -EINVAL);
	rig_check(btrkit_txn_write(p.txn, BTRKIT_TOP_LEVEL, file, 0, "data", 4, NULL, &p.err), &p.err);
	rig_check(set_flags(&p, file, 0, UINT32_MAX), &p.err);
	assert_int_equal(inode_of(&p, file).flags, INODE_NODATACOW | INODE_NODATASUM);
	assert_int_equal(set_flags(&p, file, FS_EXTENT_FL, FS_EXTENT_FL), -EOPNOTSUPP);
	rig_check(set(&p, dir, "btrfs.compression", "zstd:7", 6), &p.err);
	assert_int_equal(inode_of(&p, dir).flags, INODE_COMPRESS);
	file = make(&p, dir, "file", S_IFREG | 0644);
	assert_value(&p, file, "btrfs.compression", "zstd", 4);
	assert_int_equal(inode_of(&p, file).flags, INODE_COMPRESS);
	rig_check(set_flags(&p, file, FS_NOCOMP_FL | FS_APPEND_FL, UINT32_MAX), &p.err);
	assert_value(&p, file, "btrfs.compression", NULL, 0);
	assert_int_equal(inode_of(&p, file).flags, INODE_NOCOMPRESS | INODE_APPEND);
	assert_int_equal(set(&p, file, "user.a", "1", 1), -EPERM);
	assert_int_equal(btrkit_txn_write(p.txn, BTRKIT_TOP_LEVEL, file, 0, "data", 4, NULL, &p.err), -EPERM);
	rig_check(set_flags(&p, file, FS_COMPR_FL, FS_COMPR_FL | FS_NOCOMP_FL | FS_APPEND_FL), &p.err);
	assert_value(&p, file, "btrfs.compression", "zlib", 4);
	close_place(&p);
}

static void test_limits(void **state)
{
	static const uint8_t capability[20] = { 1, 0, 0, 2, 1 };
	static uint8_t value[65537];
	const struct btrkit_attr wrong = { .mask = BTRKIT_ATTR_MTIME, .mtime = { 0, 1000000000 } };
	const struct btrkit_attr nobody = { .mask = BTRKIT_ATTR_UID, .uid = UINT32_MAX };
	struct btrkit_new_inode of_nobody = BTRKIT_NEW_INODE_INIT, late = of_nobody, device = of_nobody;
	struct btrkit_new_subvolume in_no_group = BTRKIT_NEW_SUBVOLUME_INIT, never = in_no_group;
	char name[258] = "user.";
	uint64_t file, fifo;
	struct place p;

	(void)state;
	open_place(&p);
	file = make(&p, TOP, "file", S_IFREG | 0644);
	fifo = make(&p, TOP, "fifo", S_IFIFO | 0644);
	assert_int_equal(set(&p, file, "user.a", value, 3935), -ENOSPC);
	rig_check(set(&p, file, "user.a", value, 3934), &p.err);
	assert_value(&p, file, "user.a", value, 3934);
	assert_int_equal(set(&p, file, "user.a", value, 65537), -E2BIG);
	memset(name + 5, 'n', 251);
	assert_int_equal(set(&p, file, name, "", 0), -ERANGE);
	name[255] = '\0';
	rig_check(set(&p, file, name, "", 0), &p.err);
	assert_int_equal(set(&p, file, "", "", 0), -ERANGE);
	assert_int_equal(set(&p, file, "user.", "", 0), -EINVAL);
	assert_int_equal(set(&p, file, "system.x", "", 0), -EOPNOTSUPP);
	assert_int_equal(set(&p, file, "btrfs.x", "", 0), -EINVAL);
	assert_int_equal(set(&p, fifo, "user.a", "", 0), -EPERM);
	assert_int_equal(set(&p, 9999, "user.a", "", 0), -ENOENT);
	assert_int_equal(set(&p, file, "security.capability", capability, 19), -EINVAL);
	assert_int_equal(btrkit_txn_set_attr(p.txn, BTRKIT_TOP_LEVEL, file, &wrong, &p.err), -EINVAL);
	assert_int_equal(btrkit_txn_set_attr(p.txn, BTRKIT_TOP_LEVEL, file, &nobody, &p.err), -EINVAL);
	/* Nor can anything be created with such attributes. */
	late.time = never.time = &wrong.mtime;
	assert_int_equal(btrkit_txn_create(p.txn, BTRKIT_TOP_LEVEL, TOP, "n", 1, &late, NULL, &p.err), -EINVAL);
	assert_int_equal(btrkit_txn_subvolume_create(p.txn, BTRKIT_TOP_LEVEL, TOP, "n", 1, &never, NULL, &p.err),
			 -EINVAL);
	device.mode = S_IFCHR | 0600;
	for (unsigned i = 0; i < 3; i++) {
		device.rdev = i == 2 ? makedev(0xfff, 0xfffff) : i ? makedev(1, 0x100000) : makedev(0x1000, 1);
		assert_int_equal(btrkit_txn_create(p.txn, BTRKIT_TOP_LEVEL, TOP, "n", 1, &device, NULL, &p.err),
				 i == 2 ? 0 : -EINVAL);
	}
	of_nobody.uid = in_no_group.gid = UINT32_MAX;
	assert_int_equal(btrkit_txn_create(p.txn, BTRKIT_TOP_LEVEL, TOP, "n", 1, &of_nobody, NULL, &p.err), -EINVAL);
	assert_int_equal(btrkit_txn_subvolume_create(p.txn, BTRKIT_TOP_LEVEL, TOP, "n", 1, &in_no_group, NULL, &p.err),
			 -EINVAL);
	/* Capabilities are removed by a write or truncation, even if they were looked up before. */
	for (unsigned i = 0; i < 2; i++) {
		rig_check(set(&p, file, "security.capability", capability, sizeof(capability)), &p.err);
		assert_value(&p, file, "security.capability", capability, sizeof(capability));
		rig_check(i ? btrkit_txn_write(p.txn, BTRKIT_TOP_LEVEL, file, 0, "x", 1, NULL, &p.err) :
			      btrkit_txn_truncate(p.txn, BTRKIT_TOP_LEVEL, file, 9, &p.err),
			  &p.err);
		assert_value(&p, file, "security.capability", NULL, 0);
	}
	close_place(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_model),
		cmocka_unit_test(test_acl),
		cmocka_unit_test(test_flags),
		cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
