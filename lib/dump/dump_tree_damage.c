// SPDX-License-Identifier: LGPL-2.1-or-later
/* Prints damage reports in place of data that cannot be read. */
#include "lib/dump/dump_tree_damage.h"

#include <inttypes.h>
#include <stdlib.h>

#include "lib/base/err.h"
#include "lib/dump/dump_tree_lines.h"
#include "lib/format/key_names.h"
#include "lib/io/buffer.h"
#include "lib/volume/volume.h"

void dump_blame(struct dump *d, int ret, const struct btrkit_error *what)
{
	if (d->damage)
		return;
	d->damage = ret;
	d->damage_error = *what;
}

/* Keeps damage to be told. @return whether there was memory for it */
static bool keep_loss(struct dump_losses *l, const struct btrkit_error *what)
{
	const size_t max = l->max ? 2 * l->max : 8;
	struct btrkit_error *at = l->at;

	if (l->n == l->max) {
		at = realloc(l->at, max * sizeof(*at));
		if (!at)
			return false;
		l->at = at;
		l->max = max;
	}
	l->at[l->n++] = *what;
	return true;
}

/* Records damage because of which parts of the output are missing. */
static void blame_loss(struct dump *d, int ret, const struct btrkit_error *what)
{
	d->lost = true;
	if (!d->tell || !keep_loss(&d->losses, what))
		dump_blame(d, ret, what);
}

int dump_tell_losses(struct dump *d, struct btrkit_error *err)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < d->losses.n; i++)
		ret = d->tell(d->tell_ctx, &d->losses.at[i]);
	d->losses.n = 0;
	return ret ? err_system(err, ret, "stopped by the caller") : 0;
}

void dump_losses_free(struct dump_losses *l)
{
	free(l->at);
}

static const char *code_name(enum btrkit_code code)
{
	switch (code) {
	case BTRKIT_CORRUPT:
		return "corrupt";
	case BTRKIT_TRUNCATED:
		return "truncated";
	case BTRKIT_IO:
		return "io";
	case BTRKIT_UNSUPPORTED:
		return "unsupported";
	default:
		return "other";
	}
}

/* Begins a damage line: in JSON with the kind of damage, in text with @words. */
static void line_begin(struct dump *d, const char *what, const char *words)
{
	dump_line(d, "damage", NULL);
	emit_str(&d->e, "what", words, dump_is_json(d) ? what : "");
}

/* Prints the error; in text, its message follows the location. */
static void show_error(struct emit *e, const struct btrkit_error *what)
{
	if (e->form == EMIT_JSON) {
		emit_str(e, "code", "", code_name(what->code));
		emit_str(e, "cause", "", btrkit_cause_name(what->cause));
		if (what->field[0])
			emit_str(e, "field", "", what->field);
	}
	emit_str(e, "message", ": ", what->message);
	emit_text(e, "\n");
}

/* Reads a copy again to find out what is wrong with it. */
static void check_copy(const struct dump *d, const struct node_ref *ref, const struct copy *copy, uint8_t *buf,
		       struct btrkit_error *what)
{
	const uint32_t size = d->fs->geometry.nodesize;
	int ret;

	if (!copy->io)
		ret = err_because(what, BTRKIT_CAUSE_DEVICE_MISSING, err_set(what, BTRKIT_IO, "device is missing"));
	else if (copy->length < size)
		ret = err_set(what, BTRKIT_CORRUPT, "block is split across strips");
	else if (!buf)
		ret = err_nomem(what);
	else
		ret = btrkit_io_read(copy->io, copy->physical, buf, size, what);
	if (!ret)
		ret = node_verify(&d->fs->rules, ref, buf, what);
	if (!ret)
		err_set(what, BTRKIT_IO, "valid when it was read again");
}

static void show_copy(struct emit *e, unsigned mirror, const struct copy *copy, const struct btrkit_error *what)
{
	emit_object(e, NULL);
	emit_u64(e, "mirror", "\tcopy ", mirror);
	emit_u64(e, "devid", " on device ", copy->devid);
	emit_u64(e, "physical", " at ", copy->physical);
	show_error(e, what);
	emit_object_end(e);
}

static void show_copies(struct dump *d, const struct node_ref *ref)
{
	uint8_t *buf = io_buffer(d->fs->geometry.nodesize);
	struct copy copy;

	emit_array(&d->e, "copies");
	for (unsigned i = 0; !volume_map(d->fs->volume, ref->bytenr, d->fs->geometry.nodesize, i, &copy, NULL); i++) {
		struct btrkit_error what = BTRKIT_ERROR_INIT;

		check_copy(d, ref, &copy, buf, &what);
		show_copy(&d->e, i + 1, &copy, &what);
	}
	emit_array_end(&d->e);
	free(buf);
}

void dump_damaged_block(struct dump *d, const struct node_ref *ref, int ret, const struct btrkit_error *what)
{
	const char *parity = strstr(what->copies, "by parity");
	struct emit *e = &d->e;

	dump_begin(d);
	blame_loss(d, ret, what);
	line_begin(d, "block", "damaged block");
	emit_u64(e, "bytenr", " ", ref->bytenr);
	if (ref->level < LEVELS_MAX)
		emit_u64(e, "level", " level ", ref->level);
	if (ref->generation != NODE_ANY)
		emit_u64(e, "generation", " generation ", ref->generation);
	if (what->places & BTRKIT_AT_TREE)
		emit_u64(e, "tree", " of tree ", what->tree);
	show_error(e, what);
	show_copies(d, ref);
	if (parity)
		emit_str(e, "parity", "\t", parity);
	if (parity)
		emit_text(e, "\n");
	emit_object_end(e);
}

void dump_damaged_pointer(struct dump *d, const struct node *n, uint32_t slot, uint64_t tree)
{
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	const struct btrkit_key key = node_key(n, slot);
	struct emit *e = &d->e;
	int ret = err_corrupt(&what, "key", "key is not before that of the next block");

	err_at_tree(&what, tree);
	err_at_logical(&what, n->bytenr);
	err_at_item(&what, slot, &key);
	dump_begin(d);
	blame_loss(d, ret, &what);
	line_begin(d, "pointer", "damaged pointer");
	emit_u64(e, "bytenr", " in block ", n->bytenr);
	emit_u64(e, "slot", " slot ", slot);
	emit_u64(e, "blockptr", " to block ", le64_get(node_ptrs(n)[slot].blockptr));
	emit_u64(e, "tree", " of tree ", tree);
	show_error(e, &what);
	emit_object_end(e);
}

void dump_damaged_chunks(struct dump *d, int ret, const struct btrkit_error *what)
{
	dump_begin(d);
	blame_loss(d, ret, what);
	line_begin(d, "chunks", "damaged chunks");
	if (what->places & BTRKIT_AT_LOGICAL)
		emit_u64(&d->e, "bytenr", " in block ", what->logical);
	show_error(&d->e, what);
	emit_object_end(&d->e);
}

void dump_damaged_device(struct dump *d, int ret, const struct btrkit_error *what)
{
	blame_loss(d, ret, what);
	line_begin(d, "device", "damaged device");
	emit_u64(&d->e, "devid", " ", what->devid);
	emit_u64(&d->e, "physical", " at ", what->physical);
	show_error(&d->e, what);
	emit_object_end(&d->e);
}

void dump_damaged_root(struct dump *d, const struct btrkit_key *key, bool shown, int ret,
		       const struct btrkit_error *what)
{
	char line[BTRKIT_ERROR_LINE];

	dump_begin(d);
	if (shown)
		dump_blame(d, ret, what);
	else
		blame_loss(d, ret, what);
	/* Like for other items, text has the contents of the item without an error. */
	if (shown && !dump_is_json(d))
		return;
	line_begin(d, "root", "damaged root item");
	key_emit(&d->e, "key", " ", key);
	if (dump_is_json(d)) {
		show_error(&d->e, what);
	} else {
		emit_str(&d->e, "", ": ", btrkit_error_format(what, line, sizeof(line)));
		emit_text(&d->e, "\n");
	}
	emit_object_end(&d->e);
}

void dump_damaged_item(struct dump *d, const struct node *n, uint32_t slot, int ret, const struct btrkit_error *what)
{
	const struct btrkit_key key = node_key(n, slot);

	dump_blame(d, ret, what);
	if (!dump_is_json(d))
		return;
	line_begin(d, "item", "");
	emit_u64(&d->e, "tree", "", d->tree);
	emit_u64(&d->e, "bytenr", "", n->bytenr);
	emit_u64(&d->e, "level", "", n->level);
	emit_u64(&d->e, "slot", "", slot);
	key_emit(&d->e, "key", "", &key);
	show_error(&d->e, what);
	emit_object_end(&d->e);
}
