// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/format/items/string_item.h"

#include "lib/format/items/render.h"

static int string_validate(const struct item_ctx *ctx, const struct item *item, struct btrkit_error *err)
{
	(void)ctx;
	(void)item;
	(void)err;
	return 0;
}

static void string_render(struct emit *e, const struct item_ctx *ctx, const struct item *item, unsigned flags)
{
	(void)ctx;
	/* Like names of subvolumes, see root_ref.c. */
	if (flags & RENDER_HIDE_NAMES)
		emit_str(e, "string", "\t\titem data ", "HIDDEN");
	else
		emit_name(e, "string", "\t\titem data ", item->data, render_text_length(e, item->data, item->size));
	emit_text(e, "\n");
}

const struct item_type item_type_string = {
	.type = KEY_STRING_ITEM,
	.name = "STRING_ITEM",
	.validate = string_validate,
	.render = string_render,
};
