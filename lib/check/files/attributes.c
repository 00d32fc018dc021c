// SPDX-License-Identifier: LGPL-2.1-or-later
/* Checks extended attributes whose values Linux interprets. */
#include <inttypes.h>
#include <string.h>

#include "lib/check/files/attributes.h"
#include "lib/check/files/span.h"
#include "lib/check/files/span_reader.h"
#include "lib/check/findings.h"
#include "lib/format/acl.h"
#include "lib/format/attribute.h"
#include "lib/format/items/files/dir.h"

static bool begins(const struct dir_entry *e, const char *with)
{
	return e->name_len >= strlen(with) && !memcmp(e->name, with, strlen(with));
}

static bool is(const struct dir_entry *e, const char *name)
{
	return e->name_len == strlen(name) && begins(e, name);
}

static void check_property(struct span_reader *r, const struct item *item, const struct dir_entry *e)
{
	if (!is(e, ATTRIBUTE_COMPRESSION))
		span_report(r, CHECK_INODE_PROPERTY, item, "name", "unknown property, name length ", e->name_len);
	else if (!attribute_compression_valid(e->data, e->data_len))
		span_report(r, CHECK_INODE_PROPERTY, item, "data", "invalid compression property, value length ",
			    e->data_len);
}

static void check_acl(struct span_reader *r, const struct item *item, const struct dir_entry *e)
{
	struct btrkit_error why = BTRKIT_ERROR_INIT;
	const struct check_location at = { r->leaf->owner, r->leaf->bytenr, &item->key, "data" };

	/* An ACL with an empty value is treated as absent. */
	if (e->data_len && acl_check(e->data, e->data_len, &why))
		check_report_at(r->c, CHECK_INODE_ATTRIBUTE, &at, "%s", why.message);
}

void span_attribute(struct span_reader *r, const struct item *item, const struct dir_entry *e)
{
	uint32_t flags;

	if (begins(e, ATTRIBUTE_PROPERTY)) {
		check_property(r, item, e);
	} else if (is(e, ACL_ACCESS)) {
		check_acl(r, item, e);
	} else if (is(e, ACL_DEFAULT)) {
		r->inode->seen |= SEEN_DEFAULT_ACL;
		check_acl(r, item, e);
	} else if (is(e, ATTRIBUTE_CAPABILITY) && !attribute_capability(e->data, e->data_len, &flags)) {
		span_report(r, CHECK_INODE_ATTRIBUTE, item, "data", "invalid file capabilities, value length ",
			    e->data_len);
	}
}
