// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/damage/modify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <btrkit/check.h>
#include <btrkit/mkfs.h>
#include <btrkit/subvolume_modify.h>

#include "lib/base/crc32c.h"
#include "lib/base/err.h"
#include "lib/format/feature_bits.h"
#include "lib/modify/op.h"
#include "lib/modify/subvolume_remove.h"

#define SIZE (160u << 20)
#define BYTES (300u << 10)

struct making {
	struct base *b;
	struct btrkit_fs *fs;
	struct btrkit_txn *txn;
	struct btrkit_error err;
	uint8_t *bytes;
};

static void must(struct making *m, int ret)
{
	if (!ret)
		return;
	fprintf(stderr, "damage-modify: %d: %s\n", ret, m->err.message);
	exit(2);
}

static uint64_t create(struct making *m, uint64_t root, uint64_t dir, const char *name, uint32_t mode)
{
	const struct btrkit_new_inode what = { .mode = mode, .target = S_ISLNK(mode) ? "to" : NULL };
	uint64_t inode;

	must(m, btrkit_txn_create(m->txn, root, dir, name, strlen(name), &what, &inode, &m->err));
	return inode;
}

static void put(struct making *m, uint64_t root, uint64_t inode, uint64_t at, size_t len, uint8_t compression)
{
	const struct btrkit_write_options how = { .compression = compression, .threads = 1 };

	must(m, btrkit_txn_write(m->txn, root, inode, at, m->bytes, len, &how, &m->err));
}

static void commit(struct making *m)
{
	must(m, btrkit_txn_commit(m->txn, NULL, &m->err));
	must(m, btrkit_txn_start(m->fs, &m->txn, &m->err));
}

/* A file of each form. */
static void fill_files(struct making *m)
{
	struct base *b = m->b;
	const uint64_t *f = b->files;
	const struct btrkit_clone what = { BASE_TOP, b->files[1], 0, BASE_TOP, b->files[6], 8192, 0 };

	put(m, BASE_TOP, f[0], 0, 900, 0);
	put(m, BASE_TOP, f[1], 0, BYTES, 0);
	put(m, BASE_TOP, f[2], 5000, BYTES, 3);
	put(m, BASE_TOP, f[3], 0, 700, 1);
	must(m, btrkit_txn_prealloc(m->txn, BASE_TOP, f[4], 0, 200000, 0, &m->err));
	put(m, BASE_TOP, f[4], 65536, 20000, 0);
	put(m, BASE_TOP, f[5], 1u << 20, 9000, 0);
	must(m, btrkit_txn_clone(m->txn, &what, &m->err));
	for (unsigned i = 0; i < 40; i++)
		put(m, BASE_TOP, f[7], i * 8192ull, 4096, 0);
}

static void fill_top(struct making *m)
{
	struct base *b = m->b;
	char name[200];

	b->dir = create(m, BASE_TOP, BASE_DIR, "dir", S_IFDIR | 0755);
	b->full = create(m, BASE_TOP, b->dir, "full", S_IFDIR | 0755);
	create(m, BASE_TOP, b->dir, "empty", S_IFDIR | 0755);
	create(m, BASE_TOP, b->dir, "link", S_IFLNK | 0777);
	create(m, BASE_TOP, b->dir, "fifo", S_IFIFO | 0600);
	for (unsigned i = 0; i < BASE_FILES; i++) {
		snprintf(name, sizeof(name), "file-%u", i);
		b->files[i] = create(m, BASE_TOP, i & 1 ? BASE_DIR : b->dir, name, S_IFREG | 0644);
		must(m, btrkit_txn_xattr_set(m->txn, BASE_TOP, b->files[i], "user.a", m->bytes, 40 * i, 0, &m->err));
	}
	fill_files(m);
	for (unsigned i = 0; i < 60; i++) {
		snprintf(name, sizeof(name), "entry-%u", i);
		create(m, BASE_TOP, b->full, name, S_IFREG | 0644);
	}
	/* More names than fit into one item. */
	b->many = create(m, BASE_TOP, b->dir, "many", S_IFREG | 0644);
	for (unsigned i = 0; i < (b->nodesize == 4096 ? 40u : 160u); i++) {
		const size_t len = (size_t)snprintf(name, sizeof(name), "many-%0150u", i);
		const struct btrkit_place to = { BASE_TOP, b->dir, name, len };

		must(m, btrkit_txn_link(m->txn, BASE_TOP, b->many, &to, &m->err));
	}
}

static void fill_subvolume(struct making *m, uint64_t root)
{
	char name[200];

	for (unsigned i = 0; i < 90; i++) {
		snprintf(name, sizeof(name), "in-%0100u", i);
		put(m, root, create(m, root, BASE_DIR, name, S_IFREG | 0644), 0, i % 3 ? 20 : 6000, 0);
	}
}

static uint64_t subvolume(struct making *m, uint64_t root, const char *name)
{
	uint64_t id;

	must(m, btrkit_txn_subvolume_create(m->txn, root, BASE_DIR, name, strlen(name), NULL, &id, &m->err));
	return id;
}

static uint64_t snapshot(struct making *m, uint64_t of, const char *name)
{
	uint64_t id;

	must(m, btrkit_txn_subvolume_snapshot(m->txn, of, BASE_TOP, BASE_DIR, name, strlen(name), NULL, &id, &m->err));
	return id;
}

/* Leftovers of a crash: orphan items for inodes, one of which still has a name, and for one that does not exist. */
static void leave_orphans(struct making *m)
{
	static const struct ticket_need need = { .items = 20, .bytes = 1000 };
	const uint64_t inode = create(m, BASE_TOP, BASE_DIR, "orphan", S_IFREG | 0644);
	const uint64_t inodes[] = { inode, OID_ORPHAN }, orphans[] = { m->b->files[0], inode, 5000 };
	struct op_inode in;
	struct op op;

	put(m, BASE_TOP, inode, 0, BYTES, 0);
	must(m, op_begin(&op, m->txn, BASE_TOP, &need, &m->err));
	delayed_lock(op.t, inodes, 2, &op.locks);
	must(m, op_inode_get(&op, inode, &in, &m->err));
	in.item.nlink = le32_put(0);
	must(m, op_inode_put(&op, &in, &m->err));
	for (unsigned i = 0; i < 3; i++)
		must(m, delayed_insert(op.t, &KEY(OID_ORPHAN, KEY_ORPHAN_ITEM, orphans[i]), "", 0, NULL, &m->err));
	must(m, op_end(&op, 0, NULL));
}

/* Subvolumes with shared blocks, and a half-deleted one. */
static void fill_subvolumes(struct making *m)
{
	struct base *b = m->b;
	struct tree_drop d = { .id = 0 };
	bool done;

	b->sub = subvolume(m, BASE_TOP, "sub");
	fill_subvolume(m, b->sub);
	subvolume(m, b->sub, "inner");
	commit(m);
	b->snapshot = snapshot(m, b->sub, "snap");
	commit(m);
	create(m, b->sub, BASE_DIR, "later", S_IFREG | 0644);
	b->dead = snapshot(m, b->sub, "dead");
	fill_subvolume(m, subvolume(m, BASE_TOP, "gone"));
	snapshot(m, b->dead, "dead-2");
	commit(m);
	create(m, b->dead, BASE_DIR, "later still", S_IFREG | 0644);
	put(m, b->dead, create(m, b->dead, BASE_DIR, "large", S_IFREG | 0644), 0, BYTES, 0);
	commit(m);
	must(m, subvolume_take_name(m->txn, b->dead, &m->err));
	d.id = b->dead;
	must(m, subvolume_drop_some(m->txn, &d, 8, &done, &m->err));
	if (done)
		must(m, err_set(&m->err, BTRKIT_INVALID, "it is all gone at once"));
}

static bool is_super(uint64_t page)
{
	for (unsigned mirror = 0; mirror < SUPER_MIRRORS; mirror++)
		if (page == super_offset(mirror) / SPARSE_PAGE)
			return true;
	return false;
}

/* Finds tree blocks: whatever check reads that has the checksum of a tree block, except the chunk tree. */
static void find_blocks(struct making *m)
{
	struct base *b = m->b;
	uint8_t *pages = calloc(1, SIZE / SPARSE_PAGE / 8), *block = malloc(b->nodesize);
	struct btrkit_check_options opts = BTRKIT_CHECK_OPTIONS_INIT;

	if (!pages || !block)
		exit(2);
	sparse_trace(b->at, pages);
	opts.threads = 1;
	must(m, btrkit_check(m->fs, &opts, NULL, &m->err));
	sparse_trace(b->at, NULL);
	b->blocks = calloc(SIZE / SPARSE_PAGE, sizeof(*b->blocks));
	if (!b->blocks)
		exit(2);
	for (uint64_t n = 0; n < SIZE / SPARSE_PAGE; n++) {
		const struct disk_header *h = (struct disk_header *)block;
		le32 sum;

		if (!(pages[n / 8] & 1u << n % 8))
			continue;
		sparse_read(b->at, n * SPARSE_PAGE, block, b->nodesize);
		sum = le32_put(~crc32c(~0u, block + 32, b->nodesize - 32));
		if (memcmp(block, &sum, sizeof(sum)) != 0 || le64_get(h->bytenr) % b->nodesize || is_super(n) ||
		    le64_get(h->bytenr) == m->fs->chunk_tree.bytenr)
			continue;
		b->blocks[b->num_blocks++] = (struct base_block){ n * SPARSE_PAGE, le64_get(h->bytenr), h->level };
	}
	free(block);
	free(pages);
}

static void open_base(struct making *m, unsigned flags)
{
	struct btrkit_open_options opts = BTRKIT_OPEN_OPTIONS_INIT;
	struct btrkit_io *io = sparse_io(m->b->at);

	opts.flags = flags;
	must(m, btrkit_fs_open(&io, 1, &opts, &m->fs, &m->err));
}

void base_make(struct base *b, enum base_kind kind)
{
	static const uint8_t fsid[16] = { 1 };
	struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
	struct making m = { .b = b, .err = BTRKIT_ERROR_INIT, .bytes = malloc(BYTES) };
	struct btrkit_io *io;

	*b = (struct base){ .at = sparse_create(SIZE, NULL), .nodesize = kind == BASE_SMALL_NODES ? 4096 : 16384 };
	if (!m.bytes)
		exit(2);
	for (uint32_t i = 0; i < BYTES; i++)
		m.bytes[i] = (uint8_t)(i * i >> 9);
	io = sparse_io(b->at);
	/* Each number must be the same damage in every run, apart from times. */
	o.fsid = fsid;
	o.flags |= BTRKIT_MKFS_REPRODUCIBLE;
	o.nodesize = b->nodesize;
	o.data = o.metadata = BTRKIT_PROFILE_SINGLE;
	if (kind == BASE_HOLES) {
		o.incompat &= ~(uint64_t)INCOMPAT_NO_HOLES;
		o.flags |= BTRKIT_MKFS_QUOTA;
	}
	must(&m, btrkit_mkfs(&io, 1, &o, NULL, &m.err));
	open_base(&m, BTRKIT_OPEN_WRITE);
	must(&m, btrkit_txn_start(m.fs, &m.txn, &m.err));
	fill_top(&m);
	fill_subvolumes(&m);
	leave_orphans(&m);
	must(&m, btrkit_txn_commit(m.txn, NULL, &m.err));
	btrkit_fs_close(m.fs);
	open_base(&m, 0);
	find_blocks(&m);
	btrkit_fs_close(m.fs);
	free(m.bytes);
}

void base_free(struct base *b)
{
	free(b->blocks);
	sparse_free(b->at);
}
