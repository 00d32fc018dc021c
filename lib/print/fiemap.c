// SPDX-License-Identifier: LGPL-2.1-or-later
/* Prints a listing of extents as text, tab-separated values or JSON Lines. */
#include "lib/print/fiemap.h"

#include <btrkit/fiemap.h>

#include <stdlib.h>
#include <string.h>

#include "lib/base/digits.h"
#include "lib/base/emit.h"
#include "lib/base/err.h"

/* More than seven numbers, what separates them, and all flags. */
#define TEXT_ROW_ROOM 1024u
#define TSV_NUMBERS_ROOM (4 * (DIGITS_ROOM + 1))

struct fiemap_printer {
	struct emit emit;
	struct btrkit_fiemap_sink sink;
	enum btrkit_format format;
	unsigned block_shift;
	unsigned physical_width;
	bool begun;		     /* the header was printed */
	struct btrkit_extent row_of; /* with owners: the row that they belong to */
	/* The file whose rows are being printed. */
	bool in_file;
	uint64_t root, inode, size;
	char *path;
	size_t path_len, path_size;
	/* Beginning and end of each row of tab-separated values, prepared once per file. */
	struct emit escaped; /* writes to tail */
	char head[64], *tail;
	size_t head_len, tail_len, tail_size;
	/* State for the output of filefrag. */
	uint64_t last_root;
	unsigned logical_width;
	uint64_t row;
	uint64_t fragments;
	struct btrkit_extent last;
};

static unsigned log10_of(uint64_t v)
{
	unsigned n = 0;

	while (v /= 10)
		n++;
	return n;
}

static unsigned at_least(unsigned v, unsigned min)
{
	return v < min ? min : v;
}

static void end_text_file(struct fiemap_printer *p)
{
	struct emit *e = &p->emit;

	if (!p->in_file)
		return;
	emit_name_escaped(e, NULL, "", p->path, p->path_len, false);
	emit_u64(e, NULL, ": ", p->fragments);
	emit_text(e, p->fragments == 1 ? " extent found\n" : " extents found\n");
	p->in_file = false;
}

static void begin_text_file(struct fiemap_printer *p)
{
	uint64_t block = 1ull << p->block_shift, blocks = (p->size >> p->block_shift) + !!(p->size & (block - 1));
	struct emit *e = &p->emit;

	/* filefrag repeats this when the device number changes, and each subvolume has its own in stat(2). */
	if (p->root != p->last_root)
		emit_text(e, "Filesystem type is: 9123683e\n");
	p->last_root = p->root;
	p->logical_width = at_least(log10_of(blocks), 8);
	p->row = 0;
	p->fragments = 0;
	p->last = (struct btrkit_extent){ 0 };
	/* Escape the path, which must not be mistaken for other lines or contain terminal control characters. */
	emit_name_escaped(e, NULL, "File size of ", p->path, p->path_len, false);
	emit_u64(e, NULL, " is ", p->size);
	emit_u64(e, NULL, " (", blocks);
	emit_u64(e, NULL, blocks == 1 ? " block of " : " blocks of ", block);
	emit_text(e, " bytes)\n");
}

static int append_tail(void *ctx, const void *data, size_t len)
{
	struct fiemap_printer *p = ctx;

	if (p->tail_size - p->tail_len < len) {
		size_t size = 2 * (p->tail_len + len);
		char *more = realloc(p->tail, size);

		if (!more)
			return err_nomem(NULL);
		p->tail = more;
		p->tail_size = size;
	}
	memcpy(p->tail + p->tail_len, data, len);
	p->tail_len += len;
	return 0;
}

static int begin_tsv_file(struct fiemap_printer *p)
{
	struct emit *e = &p->escaped;

	char *at = p->head;

	at = digits_put(at, p->root);
	*at++ = '\t';
	at = digits_put(at, p->inode);
	*at++ = '\t';
	p->head_len = (size_t)(at - p->head);
	p->tail_len = 0;
	emit_name_escaped(e, NULL, "\t", p->path, p->path_len, false);
	emit_text(e, "\n");
	return emit_flush(e);
}

/* Printed with the first file, or at the end if there was no error: a header alone would look like an empty listing. */
static void print_json_header(struct fiemap_printer *p)
{
	struct emit *e = &p->emit;

	if (p->begun || p->format != BTRKIT_FORMAT_JSON)
		return;
	p->begun = true;
	emit_header(e, "fiemap");
}

static int print_file(void *ctx, const struct btrkit_fiemap_file *file)
{
	struct fiemap_printer *p = ctx;

	print_json_header(p);
	if (p->format == BTRKIT_FORMAT_TEXT)
		end_text_file(p);
	if (p->path_size < file->path_len) {
		char *more = realloc(p->path, file->path_len);

		if (!more)
			return err_nomem(NULL);
		p->path = more;
		p->path_size = file->path_len;
	}
	/* A damaged name may be empty, and then the buffer may be NULL. */
	if (file->path_len)
		memcpy(p->path, file->path, file->path_len);
	p->path_len = file->path_len;
	p->root = file->root;
	p->inode = file->inode;
	p->size = file->size;
	if (p->format == BTRKIT_FORMAT_TEXT)
		begin_text_file(p);
	p->in_file = true;
	if (p->format == PRINT_FORMAT_TSV) {
		int ret = begin_tsv_file(p);

		if (ret)
			return ret;
	}
	return emit_failed(&p->emit);
}

static char *put(char *to, const char *words)
{
	const size_t len = strlen(words);

	memcpy(to, words, len);
	return to + len;
}

static char *put_flags(char *to, const struct fiemap_printer *p, const struct btrkit_extent *x)
{
	static const struct {
		uint32_t flag;
		const char *name;
	} names[] = {
		{ BTRKIT_EXTENT_LAST, "last" },
		{ BTRKIT_EXTENT_ENCODED, "encoded" },
		{ BTRKIT_EXTENT_NOT_ALIGNED, "not_aligned" },
		{ BTRKIT_EXTENT_INLINE, "inline" },
		{ BTRKIT_EXTENT_UNWRITTEN, "unwritten" },
		{ BTRKIT_EXTENT_SHARED, "shared" },
		{ BTRKIT_EXTENT_MAYBE_SHARED, "maybe_shared" },
	};
	char comma = ' ';

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!(x->flags & names[i].flag))
			continue;
		*to++ = comma;
		to = put(to, names[i].name);
		comma = ',';
	}
	return x->logical + x->length >= p->size ? put(to, ",eof") : to;
}

static void text_header(struct fiemap_printer *p)
{
	emit_textf(&p->emit, " ext: %*s %*s length: %*s flags:\n", (int)(p->logical_width * 2 + 3),
		   "logical_offset:", (int)(p->physical_width * 2 + 3),
		   "physical_offset:", (int)(p->physical_width + 1), "expected:");
}

static void text_row(struct fiemap_printer *p, const struct btrkit_extent *x)
{
	/* Inline data is shown in bytes. */
	unsigned shift = x->flags & BTRKIT_EXTENT_INLINE ? 0 : p->block_shift;
	uint64_t more = (x->length - 1) >> shift, logical = x->logical >> shift, physical = x->physical >> shift;
	/* Physical offset of the row if the file were not fragmented, with the hole before it reserved on disk. */
	uint64_t expected = x->logical - p->last.logical + p->last.physical;
	struct emit *e = &p->emit;
	char *start, *to;

	if (!p->row)
		text_header(p);
	if (x->logical && x->physical != expected && x->physical != p->last.physical + p->last.length) {
		p->fragments++;
	} else {
		expected = 0;
		if (!p->fragments)
			p->fragments = 1;
	}
	/* Most of the time goes into this, so it is written directly. */
	to = start = emit_room(e, TEXT_ROW_ROOM);
	if (!start)
		return;
	to = digits_put_wide(to, p->row++, 4);
	to = digits_put_wide(put(to, ": "), logical, p->logical_width);
	to = digits_put_wide(put(to, ".."), logical + more, p->logical_width);
	to = digits_put_wide(put(to, ": "), physical, p->physical_width);
	to = digits_put_wide(put(to, ".."), physical + more, p->physical_width);
	to = digits_put_wide(put(to, ": "), x->length >> shift, 6);
	to = put(to, ": ");
	if (expected) {
		to = put(digits_put_wide(to, expected >> shift, p->physical_width), ":");
	} else {
		memset(to, ' ', p->physical_width + 1);
		to += p->physical_width + 1;
	}
	to = put(put_flags(to, p, x), "\n");
	emit_took(e, (size_t)(to - start));
	p->last = *x;
}

static void tsv_row(struct fiemap_printer *p, const struct btrkit_extent *x)
{
	struct emit *e = &p->emit;
	char *to, *start = emit_room(e, sizeof(p->head) + TSV_NUMBERS_ROOM);

	if (!start)
		return;
	memcpy(start, p->head, p->head_len);
	to = digits_put(start + p->head_len, x->logical);
	*to++ = '\t';
	to = digits_put(to, x->physical);
	*to++ = '\t';
	to = digits_put(to, x->length);
	*to++ = '\t';
	to = digits_put_hex(to, x->flags);
	emit_took(e, (size_t)(to - start));
	emit_bytes(e, p->tail, p->tail_len);
}

/* The caller closes the object. */
static void begin_json_row(struct fiemap_printer *p, const struct btrkit_extent *x)
{
	struct emit *e = &p->emit;

	emit_object(e, NULL);
	emit_u64(e, "root", "", p->root);
	emit_u64(e, "inode", "", p->inode);
	emit_u64(e, "logical", "", x->logical);
	emit_u64(e, "physical", "", x->physical);
	emit_u64(e, "length", "", x->length);
	emit_u64(e, "flags", "", x->flags);
	emit_name(e, "path", "", p->path, p->path_len);
}

static void json_row(struct fiemap_printer *p, const struct btrkit_extent *x)
{
	begin_json_row(p, x);
	emit_object_end(&p->emit);
}

/* Prints the row followed by its owners. */
static void text_owners(struct fiemap_printer *p, const struct btrkit_reference *refs, size_t n)
{
	struct emit *e = &p->emit;

	text_row(p, &p->row_of);
	for (size_t i = 0; i < n; i++) {
		emit_u64(e, NULL, "\troot ", refs[i].root);
		emit_u64(e, NULL, " inode ", refs[i].inode);
		emit_u64(e, NULL, " offset ", refs[i].offset);
		emit_text(e, "\n");
	}
}

/* Prints a line for each owner, which begins like the row. Without owners, print one line with empty columns. */
static void tsv_owners(struct fiemap_printer *p, const struct btrkit_reference *refs, size_t n)
{
	struct emit *e = &p->emit;
	const size_t line_end = 1;

	for (size_t i = 0; i < n || !i; i++) {
		p->tail_len -= line_end;
		tsv_row(p, &p->row_of);
		p->tail_len += line_end;
		if (n) {
			emit_u64(e, NULL, "\t", refs[i].root);
			emit_u64(e, NULL, "\t", refs[i].inode);
			emit_u64(e, NULL, "\t", refs[i].offset);
		} else {
			emit_text(e, "\t\t\t");
		}
		emit_text(e, "\n");
	}
}

static void json_owners(struct fiemap_printer *p, const struct btrkit_reference *refs, size_t n)
{
	struct emit *e = &p->emit;

	begin_json_row(p, &p->row_of);
	emit_array(e, "owners");
	for (size_t i = 0; i < n; i++) {
		emit_object(e, NULL);
		emit_u64(e, "root", "", refs[i].root);
		emit_u64(e, "inode", "", refs[i].inode);
		emit_u64(e, "offset", "", refs[i].offset);
		emit_object_end(e);
	}
	emit_array_end(e);
	emit_object_end(e);
}

static int keep_row(void *ctx, const struct btrkit_extent *rows, size_t n)
{
	struct fiemap_printer *p = ctx;

	if (n)
		p->row_of = rows[0];
	return 0;
}

static int print_owners(void *ctx, const struct btrkit_reference *refs, size_t n)
{
	struct fiemap_printer *p = ctx;

	if (p->format == BTRKIT_FORMAT_TEXT)
		text_owners(p, refs, n);
	else if (p->format == PRINT_FORMAT_TSV)
		tsv_owners(p, refs, n);
	else
		json_owners(p, refs, n);
	return emit_failed(&p->emit);
}

static int print_rows(void *ctx, const struct btrkit_extent *rows, size_t n)
{
	struct fiemap_printer *p = ctx;

	for (size_t i = 0; i < n; i++) {
		if (p->format == BTRKIT_FORMAT_TEXT)
			text_row(p, &rows[i]);
		else if (p->format == PRINT_FORMAT_TSV)
			tsv_row(p, &rows[i]);
		else
			json_row(p, &rows[i]);
	}
	return emit_failed(&p->emit);
}

/* Of the formats only JSON has a place for it. */
static int print_lost(void *ctx, const struct btrkit_fiemap_file *file, uint64_t logical, uint64_t length)
{
	struct fiemap_printer *p = ctx;
	struct emit *e = &p->emit;

	if (p->format != BTRKIT_FORMAT_JSON)
		return 0;
	print_json_header(p);
	emit_object(e, NULL);
	emit_u64(e, "root", "", file->root);
	emit_u64(e, "inode", "", file->inode);
	emit_u64(e, "lost_from", "", logical);
	emit_u64(e, "length", "", length);
	emit_name(e, "path", "", file->path, file->path_len);
	emit_object_end(e);
	return emit_failed(e);
}

int fiemap_printer_create(struct btrkit_fs *fs, enum btrkit_format format, unsigned flags, btrkit_write_fn write,
				 void *ctx, struct fiemap_printer **ret, struct btrkit_error *err)
{
	struct fiemap_printer *p;
	struct btrkit_fs_info info;

	if (format != BTRKIT_FORMAT_TEXT && format != PRINT_FORMAT_TSV && format != BTRKIT_FORMAT_JSON)
		return err_set(err, BTRKIT_INVALID, "unknown format");
	if (flags & ~PRINT_FIEMAP_OWNERS)
		return err_set(err, BTRKIT_INVALID, "unknown flags");
	p = calloc(1, sizeof(*p));
	if (!p)
		return err_nomem(err);
	if (emit_init(&p->emit, format == BTRKIT_FORMAT_JSON ? EMIT_JSON : EMIT_TEXT, write, ctx) ||
	    emit_init(&p->escaped, EMIT_TEXT, append_tail, p)) {
		/* If emit_init() failed, the buffer is NULL, which emit_finish() allows. */
		(void)emit_finish(&p->emit);
		free(p);
		return err_nomem(err);
	}
	p->sink = (struct btrkit_fiemap_sink){ print_file, print_rows, p, NULL, NULL, print_lost, { NULL } };
	if (flags & PRINT_FIEMAP_OWNERS) {
		p->sink.extents = keep_row;
		p->sink.owners = print_owners;
	}
	p->format = format;
	btrkit_fs_get_info(fs, &info);
	p->block_shift = (unsigned)__builtin_ctz(info.sectorsize);
	p->physical_width = at_least(log10_of(info.total_bytes / info.data_copies / info.sectorsize), 10);
	*ret = p;
	return 0;
}

const struct btrkit_fiemap_sink *fiemap_printer_sink(struct fiemap_printer *p)
{
	return &p->sink;
}

void fiemap_printer_break_off(struct fiemap_printer *p)
{
	p->in_file = false;
}

int fiemap_printer_finish(struct fiemap_printer *p, bool complete)
{
	int ret;

	if (!p)
		return 0;
	if (complete)
		print_json_header(p);
	if (complete && p->format == BTRKIT_FORMAT_TEXT)
		end_text_file(p);
	ret = emit_finish(&p->emit);
	(void)emit_finish(&p->escaped);
	free(p->path);
	free(p->tail);
	free(p);
	return ret;
}
