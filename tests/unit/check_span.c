// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Trees of files with one defect each, split into leaves in every possible way: the findings must be exactly that
 * defect, wherever the splits are.
 */
#include "tests/unit/unit.h"

#include <sys/stat.h>

#include "lib/check/codes.h"
#include "lib/check/files/file_refs.h"
#include "lib/check/files/span.h"
#include "lib/check/files/span_tree.h"
#include "lib/check/state.h"
#include "lib/check/trees/read.h"
#include "lib/format/feature_bits.h"
#include "lib/format/items/files/dir.h"
#include "lib/format/items/files/verity.h"
#include "tests/unit/synthetic.h"

#define ITEMS_MAX 48
#define LEAF 65536u /* any size that holds all items */
#define LAST UINT64_MAX

struct piece {
	struct btrkit_key key;
	uint8_t bytes[128 + sizeof(struct disk_inode_item)];
	uint32_t size;
};

struct tree {
	struct piece at[ITEMS_MAX];
	size_t n;
};

static struct piece *put(struct tree *t, uint64_t objectid, uint8_t type, uint64_t offset, const void *data,
			 size_t size)
{
	struct piece *p = &t->at[t->n++];

	assert_true(t->n <= ITEMS_MAX);
	assert_true(size <= sizeof(p->bytes));
	p->key = (struct btrkit_key){ objectid, type, offset };
	p->size = (uint32_t)size;
	if (size)
		memcpy(p->bytes, data, size);
	return p;
}

static void put_inode(struct tree *t, uint64_t inode, uint32_t mode, uint32_t nlink, uint64_t size, uint64_t nbytes,
		      uint64_t flags)
{
	const struct disk_inode_item d = {
		.generation = le64_put(SYN_GENERATION),
		.transid = le64_put(SYN_GENERATION),
		.size = le64_put(size),
		.nbytes = le64_put(nbytes),
		.nlink = le32_put(nlink),
		.mode = le32_put(mode),
		.flags = le64_put(flags),
	};

	put(t, inode, KEY_INODE_ITEM, 0, &d, sizeof(d));
}

static void put_ref(struct tree *t, uint64_t inode, uint64_t dir, uint64_t index, const char *name)
{
	const struct disk_inode_ref d = { le64_put(index), le16_put((uint16_t)strlen(name)) };
	struct piece *p = put(t, inode, KEY_INODE_REF, dir, &d, sizeof(d));

	memcpy(p->bytes + p->size, name, strlen(name));
	p->size += (uint32_t)strlen(name);
}

static void put_name(struct tree *t, uint64_t objectid, uint8_t type, uint64_t offset, uint64_t to, uint8_t to_type,
		     uint8_t ft, const char *name)
{
	const struct btrkit_key location = { to, to_type, 0 };
	const struct disk_dir_item d = { .location = key_put(&location),
					 .name_len = le16_put((uint16_t)strlen(name)),
					 .type = ft };
	struct piece *p = put(t, objectid, type, type == KEY_DIR_INDEX ? offset : dir_name_hash(name, strlen(name)), &d,
			      sizeof(d));

	memcpy(p->bytes + p->size, name, strlen(name));
	p->size += (uint32_t)strlen(name);
}

/* Both entries of a name in its directory: DIR_ITEM and DIR_INDEX. */
static void put_entry(struct tree *t, uint64_t dir, uint64_t index, uint64_t to, uint8_t to_type, uint8_t ft,
		      const char *name)
{
	put_name(t, dir, KEY_DIR_ITEM, 0, to, to_type, ft, name);
	put_name(t, dir, KEY_DIR_INDEX, index, to, to_type, ft, name);
}

static void put_extent(struct tree *t, uint64_t inode, uint64_t at, uint8_t type, uint64_t disk, uint64_t length)
{
	const struct disk_file_extent d = {
		.generation = le64_put(SYN_GENERATION),
		.ram_bytes = le64_put(length),
		.type = type,
		.disk_bytenr = le64_put(disk),
		.disk_num_bytes = le64_put(disk ? length : 0),
		.num_bytes = le64_put(length),
	};

	put(t, inode, KEY_EXTENT_DATA, at, &d, sizeof(d));
}

static void put_inline(struct tree *t, uint64_t inode, const char *data)
{
	uint8_t d[FILE_EXTENT_INLINE_START + 64] = { SYN_GENERATION, [8] = (uint8_t)strlen(data) };

	memcpy(d + FILE_EXTENT_INLINE_START, data, strlen(data));
	put(t, inode, KEY_EXTENT_DATA, 0, d, FILE_EXTENT_INLINE_START + strlen(data));
}

static int compare_pieces(const void *a, const void *b)
{
	return key_cmp(&((const struct piece *)a)->key, &((const struct piece *)b)->key);
}

#define EXTENT_1 (1ull << 20)
#define EXTENT_2 (2ull << 20)

static void make_good(struct tree *t)
{
	const struct disk_verity_desc desc = { .size = le64_put(4) };

	*t = (struct tree){ 0 };
	put_inode(t, 256, S_IFDIR | 0755, 1, 2 * (3 + 3 + 3 + 3), 0, 0);
	put_ref(t, 256, 256, 0, "..");
	put_entry(t, 256, 2, 257, KEY_INODE_ITEM, FT_REG, "fil");
	put_entry(t, 256, 3, 258, KEY_INODE_ITEM, FT_DIR, "dir");
	put_entry(t, 256, 4, 300, KEY_ROOT_ITEM, FT_DIR, "sub");
	put_entry(t, 256, 5, 262, KEY_INODE_ITEM, FT_REG, "ver");
	put_inode(t, 257, S_IFREG | 0644, 2, 12288, 8192, INODE_NODATASUM);
	put_ref(t, 257, 256, 2, "fil");
	put_ref(t, 257, 258, 2, "hard");
	put_name(t, 257, KEY_XATTR_ITEM, 0, 0, 0, FT_XATTR, "user.x");
	put_extent(t, 257, 0, FILE_EXTENT_REG, EXTENT_1, 4096);
	put_extent(t, 257, 4096, FILE_EXTENT_REG, 0, 4096);
	put_extent(t, 257, 8192, FILE_EXTENT_PREALLOC, EXTENT_2, 4096);
	put_inode(t, 258, S_IFDIR | 0755, 1, 2 * (4 + 4 + 4), 0, 0);
	put_ref(t, 258, 256, 3, "dir");
	put_entry(t, 258, 2, 257, KEY_INODE_ITEM, FT_REG, "hard");
	put_entry(t, 258, 3, 259, KEY_INODE_ITEM, FT_SYMLINK, "link");
	put_entry(t, 258, 4, 261, KEY_INODE_ITEM, FT_FIFO, "fifo");
	put_inode(t, 259, S_IFLNK | 0777, 1, 3, 3, 0);
	put_ref(t, 259, 258, 3, "link");
	put_inline(t, 259, "fil");
	put_inode(t, 260, S_IFREG | 0644, 0, 1, 2, 0); /* an orphan, to be deleted */
	put_inode(t, 261, S_IFIFO | 0644, 1, 0, 0, 0);
	put_ref(t, 261, 258, 4, "fifo");
	put_inode(t, 262, S_IFREG | 0644, 1, 0, 0, INODE_VERITY);
	put_ref(t, 262, 256, 5, "ver");
	put(t, 262, KEY_VERITY_DESC_ITEM, 0, &desc, sizeof(desc));
	put(t, 262, KEY_VERITY_DESC_ITEM, 1, "abcd", 4);
	put(t, 262, KEY_VERITY_MERKLE_ITEM, 0, "abcd", 4);
	put_inode(t, 263, S_IFDIR | 0755, 0, 0, 0, 0); /* an orphan too; its DIR_INDEX items are deleted last */
	put_name(t, 263, KEY_DIR_INDEX, 2, 264, KEY_INODE_ITEM, FT_REG, "gone");
	put(t, OID_ORPHAN, KEY_ORPHAN_ITEM, 260, NULL, 0);
	put(t, OID_ORPHAN, KEY_ORPHAN_ITEM, 263, NULL, 0);
	qsort(t->at, t->n, sizeof(t->at[0]), compare_pieces);
}

static struct piece *find(struct tree *t, uint64_t objectid, uint8_t type, uint64_t offset)
{
	struct piece *found = NULL;

	for (size_t i = 0; i < t->n; i++)
		if (t->at[i].key.objectid == objectid && t->at[i].key.type == type &&
		    (t->at[i].key.offset == offset || offset == LAST))
			found = &t->at[i];
	assert_non_null(found);
	return found;
}

/* Builds a leaf in memory of the items from @from up to but not including @to. */
static void make_leaf(const struct tree *t, size_t from, size_t to, uint8_t *block)
{
	struct disk_header *h = (struct disk_header *)block;
	struct disk_item *items = (struct disk_item *)(h + 1);
	uint32_t end = LEAF - sizeof(*h);

	memset(block, 0, LEAF);
	h->bytenr = le64_put(EXTENT_1);
	h->owner = le64_put(OID_FS_TREE);
	h->nritems = le32_put((uint32_t)(to - from));
	for (size_t i = from; i < to; i++) {
		end -= t->at[i].size;
		items[i - from] = (struct disk_item){ key_put(&t->at[i].key), le32_put(end), le32_put(t->at[i].size) };
		memcpy(block + sizeof(*h) + end, t->at[i].bytes, t->at[i].size);
	}
}

static void forget(struct check *c)
{
	for (size_t i = 0; i < CHECK_NUM_CODES; i++)
		free(c->findings[i].at);
	memset(c->findings, 0, sizeof(c->findings));
	free(c->names.at);
	c->names = (struct array){ 0 };
}

struct span_case {
	struct synthetic s;
	struct check c;
	struct check_root root;
};

static void begin(struct span_case *b, const struct tree *t)
{
	struct syn_item items[ITEMS_MAX];
	struct btrkit_error err = BTRKIT_ERROR_INIT;

	memset(b, 0, sizeof(*b));
	for (size_t i = 0; i < t->n; i++)
		items[i] = (struct syn_item){ t->at[i].key, t->at[i].bytes, t->at[i].size };
	syn_create(&b->s, items, t->n);
	assert_int_equal(syn_open(&b->s, NULL, &b->c.fs, &err), 0);
	b->c.items = b->c.fs->items;
	b->c.items.nodesize = LEAF;
	b->c.items.incompat &= ~INCOMPAT_NO_HOLES;
	b->c.extents_lost = true; /* this test has no extent table */
	b->c.opts.repeats = 32;
	b->c.key = 12345;
	pthread_mutex_init(&b->c.lock, NULL);
	assert_int_equal(fs_find_root(b->c.fs, OID_FS_TREE, &b->root.root, NULL, &err), 0);
}

static void end(struct span_case *b)
{
	forget(&b->c);
	pthread_mutex_destroy(&b->c.lock);
	btrkit_fs_close(b->c.fs);
}

static struct span leaf_span(struct span_case *b, const struct tree *t, size_t from, size_t to)
{
	uint8_t *block = malloc(LEAF);
	struct check_hints hints = { 0 };
	struct node n;
	struct span s;

	assert_non_null(block);
	make_leaf(t, from, to, block);
	n = check_node(&b->c, block);
	span_leaf(&b->c, &n, false, &hints, &s);
	free(block);
	return s;
}

/* Splits before items @i and @j. @right: join the second and third part first */
static void check_cut(struct span_case *b, const struct tree *t, size_t i, size_t j, bool right)
{
	struct span first = leaf_span(b, t, 0, i), second = leaf_span(b, t, i, j), third = leaf_span(b, t, j, t->n);

	if (right) {
		span_join(&b->c, OID_FS_TREE, &second, &third);
		span_join(&b->c, OID_FS_TREE, &first, &second);
	} else {
		span_join(&b->c, OID_FS_TREE, &first, &second);
		span_join(&b->c, OID_FS_TREE, &first, &third);
	}
	span_tree(&b->c, &b->root, &first);
}

static void check_singly(struct span_case *b, const struct tree *t)
{
	struct span all = leaf_span(b, t, 0, 1);

	for (size_t i = 1; i < t->n; i++) {
		const struct span next = leaf_span(b, t, i, i + 1);

		span_join(&b->c, OID_FS_TREE, &all, &next);
	}
	span_tree(&b->c, &b->root, &all);
}

/* Each of the codes must have been found, and no other. */
static void expect(struct span_case *b, const char *what, const enum check_code *codes, size_t n)
{
	size_t num;
	const struct btrkit_check_code *all = btrkit_check_codes(&num);
	unsigned wrong = 0;

	for (size_t i = 0; i < num; i++) {
		uint64_t expected = 0;

		for (size_t j = 0; j < n; j++)
			expected += codes[j] == (enum check_code)i;
		if (b->c.findings[i].total == expected)
			continue;
		wrong++;
		print_error("%s: %s %u times, not %u\n", what, all[i].name, (unsigned)b->c.findings[i].total,
			    (unsigned)expected);
		for (size_t j = 0; j < b->c.findings[i].n; j++)
			print_error("  %s (%llu %u %llu)\n", b->c.findings[i].at[j].what.message,
				    (unsigned long long)b->c.findings[i].at[j].what.key.objectid,
				    b->c.findings[i].at[j].what.key.type,
				    (unsigned long long)b->c.findings[i].at[j].what.key.offset);
	}
	assert_int_equal(wrong, 0);
	forget(&b->c);
}

static void check_all_cuts(const char *what, const struct tree *t, const enum check_code *codes, size_t n)
{
	struct span_case b;

	begin(&b, t);
	check_singly(&b, t);
	expect(&b, what, codes, n);
	for (size_t i = 0; i <= t->n; i++)
		for (size_t j = i; j <= t->n; j++) {
			check_cut(&b, t, i, j, (i + j) % 2);
			expect(&b, what, codes, n);
		}
	end(&b);
}

static void good_is_good(void **state)
{
	struct tree t;

	(void)state;
	make_good(&t);
	check_all_cuts("good", &t, NULL, 0);
}

/* A change to the good tree: a field is set, or an item is dropped, added or moved. */
enum op {
	SET,
	DROP,
	ADD,
	MOVE
};

#define INODE(member) offsetof(struct disk_inode_item, member), sizeof(((struct disk_inode_item *)0)->member)
#define DIR(member) offsetof(struct disk_dir_item, member), sizeof(((struct disk_dir_item *)0)->member)
#define EXTENT(member) offsetof(struct disk_file_extent, member), sizeof(((struct disk_file_extent *)0)->member)
#define NAME_AT(type, i) sizeof(struct type) + (i), 1

struct change {
	enum op op;
	struct btrkit_key key;
	size_t at, width;
	uint64_t value;
};

static void apply(struct tree *t, const struct change *ch)
{
	struct piece *p;

	if (ch->op == ADD) {
		const uint8_t none[sizeof(struct disk_inode_item)] = { 0 };

		put(t, ch->key.objectid, ch->key.type, ch->key.offset, none, ch->at);
		qsort(t->at, t->n, sizeof(t->at[0]), compare_pieces);
		return;
	}
	p = find(t, ch->key.objectid, ch->key.type, ch->key.offset);
	if (ch->op == DROP) {
		memmove(p, p + 1, (size_t)(t->at + --t->n - p) * sizeof(*p));
		return;
	}
	if (ch->op == MOVE) {
		p->key.offset = ch->value;
		return;
	}
	for (size_t i = 0; i < ch->width; i++)
		p->bytes[ch->at + i] = (uint8_t)(ch->value >> 8 * i);
}

#define ITEM(inode)                      \
	{                                \
		inode, KEY_INODE_ITEM, 0 \
	}
#define CODES(...) { __VA_ARGS__ }, sizeof((enum check_code[]){ __VA_ARGS__ }) / sizeof(enum check_code)
#define CHANGES(...) { __VA_ARGS__ }, sizeof((struct change[]){ __VA_ARGS__ }) / sizeof(struct change)

static const struct {
	const char *what;
	struct change changes[4];
	size_t num_changes;
	enum check_code codes[4];
	size_t num_codes;
} rows[] = {
	/* Inodes. */
	{ "no top", CHANGES({ DROP, ITEM(256), 0, 0, 0 }), CODES(CHECK_INODE_MISSING) },
	{ "top without ..", CHANGES({ DROP, { 256, KEY_INODE_REF, 256 }, 0, 0, 0 }), CODES(CHECK_TREE_TOP) },
	{ "top with 0 links", CHANGES({ SET, ITEM(256), INODE(nlink), 0 }), CODES(CHECK_TREE_TOP) },
	{ "no inode item", CHANGES({ DROP, ITEM(257), 0, 0, 0 }), CODES(CHECK_INODE_MISSING) },
	{ "flags", CHANGES({ SET, ITEM(257), INODE(flags), 1ull << 33 | 1 }), CODES(CHECK_INODE_FLAGS) },
	{ "generation", CHANGES({ SET, ITEM(257), INODE(generation), SYN_GENERATION + 1 }),
	  CODES(CHECK_INODE_GENERATION) },
	{ "transid", CHANGES({ SET, ITEM(257), INODE(transid), SYN_GENERATION + 1 }), CODES(CHECK_INODE_GENERATION) },
	{ "invalid", CHANGES({ SET, ITEM(257), INODE(transid), SYN_GENERATION + 2 }), CODES(CHECK_ITEM_INVALID) },
	{ "nlink", CHANGES({ SET, ITEM(257), INODE(nlink), 3 }), CODES(CHECK_INODE_NLINK) },
	{ "no orphan item", CHANGES({ DROP, { OID_ORPHAN, KEY_ORPHAN_ITEM, 260 }, 0, 0, 0 }),
	  CODES(CHECK_INODE_ORPHAN) },
	{ "fifo with entries", CHANGES({ SET, ITEM(258), INODE(mode), S_IFREG | 0755 }),
	  CODES(CHECK_INODE_KIND, CHECK_NAME_TYPE) },
	{ "directory with extents", CHANGES({ SET, ITEM(259), INODE(mode), S_IFDIR | 0755 }),
	  CODES(CHECK_INODE_KIND, CHECK_NAME_TYPE) },
	{ "symlink flags", CHANGES({ SET, ITEM(259), INODE(flags), INODE_IMMUTABLE }), CODES(CHECK_INODE_SYMLINK) },
	{ "symlink size", CHANGES({ SET, ITEM(259), INODE(size), 4 }), CODES(CHECK_INODE_SYMLINK) },
	{ "verity without descriptor", CHANGES({ DROP, { 262, KEY_VERITY_DESC_ITEM, 0 }, 0, 0, 0 }),
	  CODES(CHECK_INODE_VERITY) },
	{ "verity descriptor lost", CHANGES({ DROP, { 262, KEY_VERITY_DESC_ITEM, 1 }, 0, 0, 0 }),
	  CODES(CHECK_INODE_VERITY) },
	{ "verity of a fifo", CHANGES({ SET, ITEM(261), INODE(flags), INODE_VERITY }), CODES(CHECK_INODE_KIND) },
	{ "item of another tree", CHANGES({ ADD, { 257, KEY_DIR_LOG_INDEX, 5 }, 8, 0, 0 }), CODES(CHECK_ITEM_TREE) },
	{ "unknown item", CHANGES({ ADD, { 257, 200 + 2, 5 }, 0, 0, 0 }), CODES(CHECK_ITEM_UNKNOWN) },
	{ "inode cache",
	  CHANGES({ SET, ITEM(257), INODE(nlink), 2 }, { ADD, ITEM(OID_FREE_INO), 160, 0, 0 },
		  { SET, ITEM(OID_FREE_INO), INODE(mode), S_IFREG }),
	  CODES(CHECK_INODE_CACHE) },
	/* Directories. */
	{ "size", CHANGES({ SET, ITEM(258), INODE(size), 23 }), CODES(CHECK_DIR_SIZE) },
	{ "low index",
	  CHANGES({ SET, { 257, KEY_INODE_REF, 256 }, 0, 8, 1 }, { MOVE, { 256, KEY_DIR_INDEX, 2 }, 0, 0, 1 }),
	  CODES(CHECK_DIR_INDEX) },
	{ "slash", CHANGES({ SET, { 256, KEY_DIR_INDEX, 2 }, NAME_AT(disk_dir_item, 1), '/' }),
	  CODES(CHECK_DIR_NAME, CHECK_NAME_NO_ITEM) },
	{ "subvolume's type", CHANGES({ SET, { 256, KEY_DIR_INDEX, 4 }, DIR(type), FT_REG }),
	  CODES(CHECK_NAME_TYPE, CHECK_NAME_DIFFERS) },
	{ "no such inode", CHANGES({ DROP, ITEM(261), 0, 0, 0 }, { DROP, { 261, KEY_INODE_REF, 258 }, 0, 0, 0 }),
	  CODES(CHECK_NAME_NO_INODE) },
	{ "no name", CHANGES({ DROP, { 261, KEY_INODE_REF, 258 }, 0, 0, 0 }, { SET, ITEM(261), INODE(nlink), 0 }),
	  CODES(CHECK_NAME_NO_REF, CHECK_INODE_ORPHAN) },
	{ "type", CHANGES({ SET, ITEM(261), INODE(mode), S_IFSOCK }), CODES(CHECK_NAME_TYPE) },
	{ "index", CHANGES({ SET, { 261, KEY_INODE_REF, 258 }, 0, 8, 9 }), CODES(CHECK_NAME_INDEX) },
	{ "differs", CHANGES({ SET, { 258, KEY_DIR_ITEM, LAST }, DIR(type), FT_CHR }), CODES(CHECK_NAME_DIFFERS) },
	{ "no index", CHANGES({ DROP, { 258, KEY_DIR_INDEX, 2 }, 0, 0, 0 }, { SET, ITEM(258), INODE(size), 20 }),
	  CODES(CHECK_NAME_NO_INDEX) },
	{ "no item", CHANGES({ DROP, { 258, KEY_DIR_ITEM, LAST }, 0, 0, 0 }, { SET, ITEM(258), INODE(size), 20 }),
	  CODES(CHECK_NAME_NO_ITEM) },
	{ "location", CHANGES({ SET, { 256, KEY_DIR_INDEX, 2 }, offsetof(struct disk_key, type), 1, 0 }),
	  CODES(CHECK_DIR_LOCATION) },
	{ "no entry",
	  CHANGES({ DROP, { 256, KEY_DIR_INDEX, 5 }, 0, 0, 0 }, { DROP, { 256, KEY_DIR_ITEM, 0xf0ffc6fc }, 0, 0, 0 },
		  { SET, ITEM(256), INODE(size), 18 }),
	  CODES(CHECK_NAME_NO_ENTRY) },
	/* Files. */
	{ "nbytes", CHANGES({ SET, ITEM(257), INODE(nbytes), 12288 }), CODES(CHECK_FILE_NBYTES) },
	{ "gap", CHANGES({ DROP, { 257, KEY_EXTENT_DATA, 4096 }, 0, 0, 0 }), CODES(CHECK_FILE_GAP) },
	{ "gap at the end", CHANGES({ SET, ITEM(257), INODE(size), 12289 }), CODES(CHECK_FILE_GAP) },
	{ "gap at the beginning",
	  CHANGES({ DROP, { 257, KEY_EXTENT_DATA, 0 }, 0, 0, 0 }, { SET, ITEM(257), INODE(nbytes), 4096 }),
	  CODES(CHECK_FILE_GAP) },
	{ "overlap",
	  CHANGES({ SET, { 257, KEY_EXTENT_DATA, 4096 }, EXTENT(num_bytes), 8192 },
		  { SET, { 257, KEY_EXTENT_DATA, 4096 }, EXTENT(ram_bytes), 8192 }),
	  CODES(CHECK_FILE_OVERLAP) },
	{ "behind the end", CHANGES({ SET, { 257, KEY_EXTENT_DATA, 0 }, EXTENT(offset), 4096 }),
	  CODES(CHECK_FILE_EXTENT) },
	{ "generation of an extent", CHANGES({ SET, { 257, KEY_EXTENT_DATA, 0 }, EXTENT(generation), 8 }),
	  CODES(CHECK_FILE_EXTENT) },
	{ "compressed", CHANGES({ SET, { 257, KEY_EXTENT_DATA, 0 }, EXTENT(compression), 1 }),
	  CODES(CHECK_FILE_COMPRESSED, CHECK_FILE_CSUM_MISSING) },
	{ "no checksums", CHANGES({ SET, ITEM(257), INODE(flags), 0 }), CODES(CHECK_FILE_CSUM_MISSING) },
};

static void each_fault_is_found(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct tree t;

		make_good(&t);
		for (size_t j = 0; j < rows[i].num_changes; j++)
			apply(&t, &rows[i].changes[j]);
		check_all_cuts(rows[i].what, &t, rows[i].codes, rows[i].num_codes);
	}
}

/* Whatever is lost, at any place, no finding may be reported that only follows from the loss. */
static void what_is_lost_is_not_checked(void **state)
{
	struct span_case b;
	struct tree t;

	(void)state;
	make_good(&t);
	begin(&b, &t);
	for (size_t i = 0; i <= t.n; i++)
		for (size_t j = i; j <= t.n; j++) {
			struct span first = leaf_span(&b, &t, 0, i), lost, last = leaf_span(&b, &t, j, t.n);

			span_lost(&lost);
			if ((i + j) % 2) {
				span_join(&b.c, OID_FS_TREE, &lost, &last);
				span_join(&b.c, OID_FS_TREE, &first, &lost);
			} else {
				span_join(&b.c, OID_FS_TREE, &first, &lost);
				span_join(&b.c, OID_FS_TREE, &first, &last);
			}
			assert_true(first.flags & SPAN_LOST);
			span_tree(&b.c, &b.root, &first);
			expect(&b, "lost", NULL, 0);
		}
	end(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_is_good),
		cmocka_unit_test(each_fault_is_found),
		cmocka_unit_test(what_is_lost_is_not_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
