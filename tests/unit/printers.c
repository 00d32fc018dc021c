// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The public functions give the facts that printers print: each line of JSON is composed here from what the structured
 * call gave, and must be equal, so that a printer has no fact of its own. The text has no number that the JSON lacks.
 */
#include "tests/unit/unit.h"

#include <ctype.h>
#include <inttypes.h>

#include <btrkit/btrkit.h>

#include "lib/print/fiemap.h"
#include "lib/print/layout.h"
#include "lib/print/ls.h"
#include "lib/print/references.h"
#include "lib/print/space.h"
#include "lib/print/stat.h"
#include "lib/print/subvolumes.h"
#include "lib/print/tree_stats.h"
#include "lib/print/usage.h"
#include "tests/unit/written.h"

#define SIZE (160ull << 20)
#define TOP 256u

static struct btrkit_error err;
static struct written w;
static struct btrkit_fs *fs;
static uint64_t file, bytenr;

struct text {
	char bytes[65536];
	size_t len;
};

/* What a printer printed as JSON, as text, and what the structures say. */
static struct text json, plain, facts;

static void must(int ret)
{
	written_check(ret, &err);
}

static int append(void *ctx, const void *data, size_t len)
{
	struct text *t = ctx;

	assert_in_range(len, 0, sizeof(t->bytes) - 1 - t->len);
	memcpy(t->bytes + t->len, data, len);
	t->len += len;
	t->bytes[t->len] = '\0';
	return 0;
}

static void fact(const char *fmt, ...) BTRKIT_PRINTF(1, 2);

static void fact(const char *fmt, ...)
{
	char line[1024];
	va_list args;
	int len;

	va_start(args, fmt);
	len = vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	assert_in_range(len, 0, sizeof(line) - 1);
	append(&facts, line, (size_t)len);
}

static int see_extents(void *ctx, const struct btrkit_file_extent *extent)
{
	(void)ctx;
	bytenr = extent->bytenr;
	return 0;
}

/* A file with two names; a subvolume in a directory, with a file and a snapshot. */
static int make(void **state)
{
	const struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
	const struct btrkit_new_inode a_dir = { .mode = 040755 };
	const struct btrkit_new_snapshot read_only = { .flags = BTRKIT_NEW_SNAPSHOT_READ_ONLY };
	const struct btrkit_place hard = { BTRKIT_TOP_LEVEL, TOP, "hard", 4 };
	static const uint8_t bytes[20000] = { 1, 2, 3 };
	struct btrkit_txn *txn;
	uint64_t dir, sub, shared;
	(void)state;

	written_make(&w, &o, SIZE);
	fs = written_open(&w, BTRKIT_OPEN_WRITE);
	txn = written_start(fs);
	must(btrkit_txn_create(txn, BTRKIT_TOP_LEVEL, TOP, "dir", 3, &a_dir, &dir, &err));
	must(btrkit_txn_create(txn, BTRKIT_TOP_LEVEL, dir, "file", 4, NULL, &file, &err));
	must(btrkit_txn_link(txn, BTRKIT_TOP_LEVEL, file, &hard, &err));
	must(btrkit_txn_write(txn, BTRKIT_TOP_LEVEL, file, 8192, bytes, sizeof(bytes), NULL, &err));
	must(btrkit_txn_subvolume_create(txn, BTRKIT_TOP_LEVEL, dir, "sub", 3, NULL, &sub, &err));
	must(btrkit_txn_create(txn, sub, TOP, "shared", 6, NULL, &shared, &err));
	must(btrkit_txn_write(txn, sub, shared, 0, bytes, sizeof(bytes), NULL, &err));
	written_commit(txn);
	txn = written_start(fs);
	must(btrkit_txn_subvolume_snapshot(txn, sub, BTRKIT_TOP_LEVEL, TOP, "snap", 4, &read_only, NULL, &err));
	written_commit(txn);
	must(btrkit_inode_extents(fs, BTRKIT_TOP_LEVEL, file, see_extents, NULL, &err));
	return 0;
}

static int unmake(void **state)
{
	(void)state;
	btrkit_fs_close(fs);
	written_destroy(&w);
	return 0;
}

static int begin(void **state)
{
	(void)state;
	memset(&json, 0, sizeof(json));
	memset(&plain, 0, sizeof(plain));
	memset(&facts, 0, sizeof(facts));
	return 0;
}

/* Whether a number stands in the JSON as a number of its own. Small ones, which may be indexes, are not looked for. */
static bool is_known(const char *number, size_t len)
{
	for (const char *at = json.bytes; (at = strstr(at, number)); at++)
		if (at > json.bytes && !isalnum((unsigned char)at[-1]) && !isalnum((unsigned char)at[len]))
			return true;
	return len < 3;
}

static void expect_same(const char *command)
{
	char header[100];

	snprintf(header, sizeof(header), "{\"__header\":{\"version\":1,\"command\":\"%s\"}}\n", command);
	assert_memory_equal(json.bytes, header, strlen(header));
	assert_string_equal(json.bytes + strlen(header), facts.bytes);
	for (const char *at = plain.bytes; *at;) {
		const size_t len = strspn(at, "0123456789"), word = strcspn(at, " ,:;\t\n");
		char number[32];

		if (len && (!at[len] || strchr(" ,:;\t\n", at[len]))) {
			snprintf(number, sizeof(number), "%.*s", (int)len, at);
			if (!is_known(number, len))
				fail_msg("%s: the text has %s, the JSON does not:\n%s", command, number, json.bytes);
		}
		at += word ? word : 1;
	}
	assert_true(plain.len);
}

static const char *uuid(const uint8_t bytes[16])
{
	static char text[4][40];
	static unsigned next;
	char *to = text[next++ % 4];
	char *at = to;

	for (unsigned i = 0; i < 16; i++)
		at += sprintf(at, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", bytes[i]);
	return to;
}

static int tell_device(void *ctx, const struct btrkit_device *d)
{
	(void)ctx;
	fact("{\"devid\":%" PRIu64 ",\"total_bytes\":%" PRIu64 ",\"bytes_used\":%" PRIu64 ",\"uuid\":\"%s\"", d->devid,
	     d->total_bytes, d->bytes_used, uuid(d->uuid));
	fact(",\"path\":\"%s\",\"missing\":false,\"write_errors\":%" PRIu64 ",\"read_errors\":%" PRIu64, d->name,
	     d->write_errors, d->read_errors);
	fact(",\"flush_errors\":%" PRIu64 ",\"corruption_errors\":%" PRIu64 ",\"generation_errors\":%" PRIu64 "}\n",
	     d->flush_errors, d->corruption_errors, d->generation_errors);
	return 0;
}

static void devices(void **state)
{
	(void)state;
	must(btrkit_devices(fs, tell_device, NULL, &err));
	must(print_devices(fs, BTRKIT_FORMAT_JSON, append, &json, &err));
	must(print_devices(fs, BTRKIT_FORMAT_TEXT, append, &plain, &err));
	expect_same("list-devices");
}

static int tell_chunk(void *ctx, const struct btrkit_chunk *c)
{
	(void)ctx;
	fact("{\"logical\":%" PRIu64 ",\"length\":%" PRIu64 ",\"type\":%" PRIu64 ",\"used\":%" PRIu64, c->logical,
	     c->length, c->type, c->used);
	fact(",\"stripe_length\":%" PRIu64 ",\"reachable\":%s,\"stripes\":[", c->stripe_length,
	     c->reachable ? "true" : "false");
	for (unsigned i = 0; i < c->num_stripes; i++)
		fact("%s{\"devid\":%" PRIu64 ",\"physical\":%" PRIu64 "}", i ? "," : "", c->stripes[i].devid,
		     c->stripes[i].physical);
	fact("]}\n");
	return 0;
}

static void chunks(void **state)
{
	(void)state;
	must(btrkit_chunks(fs, tell_chunk, NULL, &err));
	must(print_chunks(fs, BTRKIT_FORMAT_JSON, append, &json, &err));
	must(print_chunks(fs, BTRKIT_FORMAT_TEXT, append, &plain, &err));
	expect_same("list-chunks");
}

static int tell_copy(void *ctx, const struct btrkit_copy *c)
{
	assert_int_equal(c->role, BTRKIT_COPY_DATA);
	fact("{\"mirror\":%u,\"logical\":%" PRIu64 ",\"physical\":%" PRIu64 ",\"devid\":%" PRIu64, c->mirror,
	     *(uint64_t *)ctx, c->physical, c->devid);
	fact(",\"device\":\"%s\",\"length\":%" PRIu64 ",\"role\":\"data\"}\n", c->name, c->length);
	return 0;
}

static void copies(void **state)
{
	uint64_t logical = bytenr + 4096;
	(void)state;

	must(btrkit_logical_copies(fs, logical, tell_copy, &logical, &err));
	must(print_logical_copies(fs, logical, BTRKIT_FORMAT_JSON, append, &json, &err));
	must(print_logical_copies(fs, logical, BTRKIT_FORMAT_TEXT, append, &plain, &err));
	expect_same("map-logical");
}

static void tell_time(const char *name, const struct btrkit_time *t)
{
	fact(",\"%s\":{\"sec\":%" PRId64 ",\"nsec\":%" PRIu32 "}", name, t->sec, t->nsec);
}

static int tell_subvolume(void *ctx, const struct btrkit_subvolume_item *s)
{
	(void)ctx;
	fact("{\"id\":%" PRIu64 ",\"generation\":%" PRIu64 ",\"parent\":%" PRIu64 ",\"top_level\":%" PRIu64, s->id,
	     s->generation, s->parent, s->parent);
	fact(",\"path\":\"%.*s\",\"default\":%s,\"deleted\":%s,\"flags\":%" PRIu64, (int)s->path_len, s->path,
	     s->is_default ? "true" : "false", s->deleted ? "true" : "false", s->flags);
	fact(",\"flags_names\":[%s]", s->read_only ? "\"RDONLY\"" : "");
	fact(",\"uuid\":\"%s\",\"parent_uuid\":\"%s\",\"received_uuid\":\"%s\"", uuid(s->uuid), uuid(s->parent_uuid),
	     uuid(s->received_uuid));
	fact(",\"otransid\":%" PRIu64 ",\"ctransid\":%" PRIu64 ",\"stransid\":%" PRIu64 ",\"rtransid\":%" PRIu64,
	     s->otransid, s->ctransid, s->stransid, s->rtransid);
	tell_time("otime", &s->otime);
	tell_time("ctime", &s->ctime);
	tell_time("stime", &s->stime);
	tell_time("rtime", &s->rtime);
	fact(",\"last_snapshot\":%" PRIu64 ",\"bytenr\":%" PRIu64 ",\"level\":%u,\"bytes_used\":%" PRIu64,
	     s->last_snapshot, s->bytenr, s->level, s->bytes_used);
	fact(",\"snapshots\":[");
	for (size_t i = 0; i < s->num_snapshots; i++)
		fact("%s%" PRIu64, i ? "," : "", s->snapshots[i]);
	fact("]}\n");
	return 0;
}

static void subvolumes(void **state)
{
	struct btrkit_subvolumes_options o = BTRKIT_SUBVOLUMES_OPTIONS_INIT;
	(void)state;

	o.flags = BTRKIT_SUBVOLUMES_RELATIONS;
	must(btrkit_subvolumes(fs, &o, tell_subvolume, NULL, &err));
	must(print_subvolumes(fs, NULL, BTRKIT_FORMAT_JSON, NULL, NULL, append, &json, &err));
	must(print_subvolumes(fs, NULL, BTRKIT_FORMAT_TEXT, NULL, NULL, append, &plain, &err));
	expect_same("list-subvolumes");
}

static int tell_tree(void *ctx, const struct btrkit_tree_stats *s)
{
	uint64_t blocks = 0, used = 0;
	unsigned n = 0;
	(void)ctx;

	for (unsigned i = 0; i < s->num_levels; i++) {
		blocks += s->levels[i].blocks;
		used += s->levels[i].used;
	}
	fact("{\"tree\":%" PRIu64 ",\"key_offset\":%" PRIu64 ",\"bytenr\":%" PRIu64 ",\"generation\":%" PRIu64,
	     s->tree, s->key_offset, s->bytenr, s->generation);
	fact(",\"levels\":%u,\"blocks\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"used\":%" PRIu64 ",\"free\":%" PRIu64,
	     s->num_levels, blocks, blocks * s->nodesize, used, blocks * s->nodesize - used);
	fact(",\"inline_bytes\":%" PRIu64 ",\"nodes\":[", s->inline_bytes);
	for (unsigned i = 0; i < s->num_levels; i++)
		fact("%s{\"level\":%u,\"blocks\":%" PRIu64 ",\"items\":%" PRIu64 ",\"used\":%" PRIu64
		     ",\"free\":%" PRIu64 "}", i ? "," : "", i, s->levels[i].blocks, s->levels[i].items,
		     s->levels[i].used, s->levels[i].blocks * s->nodesize - s->levels[i].used);
	fact("],\"items\":[");
	for (unsigned i = 0; i < 256; i++)
		if (s->types[i].count)
			fact("%s{\"type\":%u,\"type_name\":\"%s\",\"count\":%" PRIu64 ",\"bytes\":%" PRIu64 "}",
			     n++ ? "," : "", i, btrkit_item_type_name(s->types[i].objectid, (uint8_t)i),
			     s->types[i].count, s->types[i].bytes);
	fact("]}\n");
	return 0;
}

static void tree_stats(void **state)
{
	(void)state;
	must(btrkit_tree_stats(fs, NULL, 0, tell_tree, NULL, &err));
	must(print_tree_stats(fs, NULL, 0, BTRKIT_FORMAT_JSON, NULL, NULL, append, &json, &err));
	must(print_tree_stats(fs, NULL, 0, BTRKIT_FORMAT_TEXT, NULL, NULL, append, &plain, &err));
	expect_same("tree-stats");
}

static int tell_path(void *ctx, const char *path, size_t len)
{
	const struct btrkit_reference *r = ctx;

	fact("{\"root\":%u,\"inode\":%" PRIu64, (unsigned)BTRKIT_TOP_LEVEL, file);
	if (r)
		fact(",\"offset\":%" PRIu64 ",\"length\":%" PRIu64 ",\"extent_offset\":%" PRIu64, r->offset, r->length,
		     r->extent_offset);
	fact(",\"path\":\"%.*s\"}\n", (int)len, path);
	return 0;
}

static int tell_reference(void *ctx, const struct btrkit_reference *ref)
{
	struct btrkit_reference r = *ref;
	(void)ctx;

	assert_int_equal(r.inode, file);
	return btrkit_inode_paths(fs, r.root, r.inode, tell_path, &r, &err);
}

static void references(void **state)
{
	(void)state;
	must(btrkit_logical_references(fs, bytenr + 5000, 0, tell_reference, NULL, &err));
	must(print_logical_references(fs, bytenr + 5000, 0, BTRKIT_FORMAT_JSON, NULL, NULL, append, &json, &err));
	must(print_logical_references(fs, bytenr + 5000, 0, BTRKIT_FORMAT_TEXT, NULL, NULL, append, &plain, &err));
	expect_same("logical-resolve");
}

static void paths(void **state)
{
	(void)state;
	must(btrkit_inode_paths(fs, BTRKIT_TOP_LEVEL, file, tell_path, NULL, &err));
	must(print_inode_paths(fs, BTRKIT_TOP_LEVEL, file, BTRKIT_FORMAT_JSON, NULL, NULL, append, &json, &err));
	must(print_inode_paths(fs, BTRKIT_TOP_LEVEL, file, BTRKIT_FORMAT_TEXT, NULL, NULL, append, &plain, &err));
	expect_same("inode-resolve");
}

static void tell_free(const struct btrkit_space_copy *c)
{
	assert_int_equal(c->verdict, BTRKIT_SPACE_EQUAL);
	fact(",\"v2\":{\"form\":\"%s\",\"free_bytes\":%" PRIu64 ",\"free_ranges\":%" PRIu64,
	     c->bitmaps ? "bitmaps" : "extents", c->free_bytes, c->free_ranges);
	fact(",\"verdict\":\"equal\"}}\n");
}

static int tell_group(void *ctx, const struct btrkit_space_group *g)
{
	(void)ctx;
	fact("{\"logical\":%" PRIu64 ",\"length\":%" PRIu64 ",\"flags\":%" PRIu64 ",\"used\":%" PRIu64, g->logical,
	     g->length, g->flags, g->used);
	fact(",\"free_bytes\":%" PRIu64 ",\"free_ranges\":%" PRIu64 ",\"super_bytes\":%" PRIu64, g->free_bytes,
	     g->free_ranges, g->super_bytes);
	tell_free(&g->v2);
	return 0;
}

static void tell_count(const char *cache, const struct btrkit_space_count *c)
{
	static const char *const verdicts[] = { "absent", "equal", "different", "ignored", "damaged" };

	fact(",\"%s\":{\"bytes\":%" PRIu64, cache, c->bytes);
	for (unsigned i = 0; i < ARRAY_SIZE(verdicts); i++)
		fact(",\"%s\":%" PRIu64, verdicts[i], c->groups[i]);
	fact(",\"leftovers\":%" PRIu64 "}", c->leftovers);
}

static void space(void **state)
{
	const struct btrkit_space_sink sink = { .group = tell_group };
	struct btrkit_space_summary s, printed;
	(void)state;

	must(btrkit_space_status(fs, &sink, &s, &err));
	fact("{\"summary\":{\"groups\":%" PRIu64 ",\"length\":%" PRIu64 ",\"used\":%" PRIu64 ",\"extents\":%" PRIu64,
	     s.groups, s.length, s.used, s.extents);
	tell_count("v2", &s.v2);
	tell_count("v1", &s.v1);
	assert_int_equal(s.in_use, BTRKIT_SPACE_CACHE_V2);
	fact(",\"generation\":%" PRIu64 ",\"cache_generation\":%" PRIu64 ",\"in_use\":\"v2\",\"valid\":%s",
	     s.generation, s.cache_generation, s.valid ? "true" : "false");
	fact(",\"contradictions\":%" PRIu64 "}}\n", s.contradictions);
	must(print_space_status(fs, BTRKIT_FORMAT_JSON, append, &json, &printed, &err));
	must(print_space_status(fs, BTRKIT_FORMAT_TEXT, append, &plain, NULL, &err));
	expect_same("space-cache status");
	assert_memory_equal(&printed, &s, sizeof(s));
}

static char name[16]; /* of the file whose rows follow */

static int tell_file(void *ctx, const struct btrkit_fiemap_file *f)
{
	(void)ctx;
	assert_int_equal(f->inode, file);
	assert_int_equal(f->size, 8192 + 20000);
	snprintf(name, sizeof(name), "%.*s", (int)f->path_len, f->path);
	return 0;
}

static int tell_rows(void *ctx, const struct btrkit_extent *rows, size_t n)
{
	(void)ctx;
	for (size_t i = 0; i < n; i++)
		fact("{\"root\":%u,\"inode\":%" PRIu64 ",\"logical\":%" PRIu64 ",\"physical\":%" PRIu64
		     ",\"length\":%" PRIu64 ",\"flags\":%" PRIu32 ",\"path\":\"%s\"}\n",
		     (unsigned)BTRKIT_TOP_LEVEL, file, rows[i].logical, rows[i].physical, rows[i].length,
		     rows[i].flags, name);
	return 0;
}

static void print_file(enum btrkit_format format, struct text *to)
{
	struct fiemap_printer *p;

	must(fiemap_printer_create(fs, format, 0, append, to, &p, &err));
	must(btrkit_fiemap_path(fs, BTRKIT_TOP_LEVEL, "dir/file", fiemap_printer_sink(p), NULL, &err));
	assert_int_equal(fiemap_printer_finish(p, true), 0);
}

/* A file is named by its first name. The text counts blocks like filefrag, so it has other numbers. */
static void fiemap(void **state)
{
	const struct btrkit_fiemap_sink sink = { .file = tell_file, .extents = tell_rows };
	(void)state;

	must(btrkit_fiemap_path(fs, BTRKIT_TOP_LEVEL, "dir/file", &sink, NULL, &err));
	print_file(BTRKIT_FORMAT_JSON, &json);
	print_file(BTRKIT_FORMAT_TEXT, &plain);
	if (!strstr(plain.bytes, "File size of hard is 28192 (7 blocks of 4096 bytes)"))
		fail_msg("%s", plain.bytes);
	plain.bytes[1] = '\0';
	expect_same("fiemap");
}

static void tell_inode(const struct btrkit_inode *i)
{
	fact("{\"path\":\"dir\",\"root\":%" PRIu64 ",\"inode\":%" PRIu64 ",\"type\":\"directory\",\"mode\":%" PRIu32,
	     i->root, i->inode, i->mode);
	fact(",\"nlink\":%" PRIu32 ",\"uid\":%" PRIu32 ",\"gid\":%" PRIu32 ",\"size\":%" PRIu64, i->nlink, i->uid,
	     i->gid, i->size);
}

static void ls_and_stat(void **state)
{
	struct print_ls_options ls = { .flags = PRINT_LS_LONG | PRINT_LS_DIRECTORY, .format = BTRKIT_FORMAT_JSON };
	struct print_stat_options stat = { .format = BTRKIT_FORMAT_JSON };
	const char *const path = "dir";
	struct btrkit_inode i;
	(void)state;

	must(btrkit_inode_find(fs, BTRKIT_TOP_LEVEL, path, &i, &err));
	tell_inode(&i);
	tell_time("mtime", &i.mtime);
	fact("}\n");
	must(print_ls(fs, BTRKIT_TOP_LEVEL, &path, 1, &ls, append, &json, &err));
	plain.len = 1;
	expect_same("ls");

	begin(NULL);
	tell_inode(&i);
	fact(",\"nbytes\":%" PRIu64, i.nbytes);
	tell_time("atime", &i.atime);
	tell_time("mtime", &i.mtime);
	tell_time("ctime", &i.ctime);
	tell_time("otime", &i.otime);
	fact(",\"generation\":%" PRIu64 ",\"transid\":%" PRIu64 ",\"sequence\":%" PRIu64 ",\"flags\":%" PRIu64 "}\n",
	     i.generation, i.transid, i.sequence, i.flags);
	must(print_stat(fs, BTRKIT_TOP_LEVEL, &path, 1, &stat, append, &json, &err));
	plain.len = 1;
	expect_same("stat");
}

static void tell_space(const char *member, const struct btrkit_usage_space *s)
{
	fact("%s{\"data\":%" PRIu64 ",\"uncompressed\":%" PRIu64 ",\"metadata\":%" PRIu64 ",\"extents\":%" PRIu64
	     ",\"blocks\":%" PRIu64 "}", member, s->data, s->uncompressed, s->metadata, s->extents, s->blocks);
}

static struct btrkit_usage_space less(const struct btrkit_usage_space *a, const struct btrkit_usage_space *b)
{
	return (struct btrkit_usage_space){ a->data - b->data, a->uncompressed - b->uncompressed,
					    a->metadata - b->metadata, a->extents - b->extents,
					    a->blocks - b->blocks };
}

static int tell_label(void *ctx, const char *path, size_t len)
{
	(void)ctx;
	fact(",\"path\":\"/%.*s\"", (int)len, path);
	return 0;
}

static void tell_owner(const struct btrkit_usage_owner *o)
{
	static const char *const kinds[] = { "subvolume", "dropped", "relocation", "data-relocation", "filesystem" };
	const struct btrkit_usage_space shared = less(&o->referenced, &o->exclusive);

	fact("{\"owner\":\"%s\"", kinds[o->kind]);
	if (o->kind == BTRKIT_USAGE_SUBVOLUME) {
		fact(",\"id\":%" PRIu64, o->id);
		must(btrkit_subvolume_path(fs, o->id, tell_label, NULL, &err));
	}
	tell_space(",\"referenced\":", &o->referenced);
	tell_space(",\"exclusive\":", &o->exclusive);
	tell_space(",\"shared\":", &shared);
	tell_space(",\"log\":", &o->log);
	fact(",\"orphans\":%" PRIu64 "}\n", o->orphans);
}

static void usage(void **state)
{
	struct usage_printer_options o = { .flags = USAGE_PRINTER_BYTES, .format = BTRKIT_FORMAT_JSON };
	struct btrkit_usage_space exclusive = { 0 }, shared;
	struct btrkit_usage_total total;
	struct btrkit_usage_owner owner;
	struct usage_printer *p;
	struct btrkit_usage *u;
	(void)state;

	must(btrkit_usage_load(fs, NULL, &u, &err));
	for (size_t i = 0; i < btrkit_usage_num_owners(u); i++) {
		struct btrkit_usage_space *e = &exclusive;

		btrkit_usage_get_owner(u, i, &owner);
		tell_owner(&owner);
		*e = (struct btrkit_usage_space){ e->data + owner.exclusive.data,
						  e->uncompressed + owner.exclusive.uncompressed,
						  e->metadata + owner.exclusive.metadata,
						  e->extents + owner.exclusive.extents,
						  e->blocks + owner.exclusive.blocks };
	}
	btrkit_usage_get_total(u, &total);
	shared = less(&total.space, &exclusive);
	assert_true(shared.extents > 0);
	tell_space("{\"total\":{\"referenced\":", &total.space);
	tell_space(",\"exclusive\":", &exclusive);
	tell_space(",\"shared\":", &shared);
	fact("}}\n");
	must(usage_printer_create(fs, u, &o, append, &json, &p, &err));
	must(usage_printer_owners(p, &err));
	assert_int_equal(usage_printer_finish(p), 0);
	plain.len = 1;
	expect_same("du");
	btrkit_usage_free(u);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(devices, begin),	   cmocka_unit_test_setup(chunks, begin),
		cmocka_unit_test_setup(copies, begin),	   cmocka_unit_test_setup(subvolumes, begin),
		cmocka_unit_test_setup(tree_stats, begin), cmocka_unit_test_setup(references, begin),
		cmocka_unit_test_setup(paths, begin),	   cmocka_unit_test_setup(space, begin),
		cmocka_unit_test_setup(fiemap, begin),	   cmocka_unit_test_setup(ls_and_stat, begin),
		cmocka_unit_test_setup(usage, begin),
	};

	return cmocka_run_group_tests(tests, make, unmake);
}
