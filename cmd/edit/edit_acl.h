/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CMD_EDIT_ACL_H
#define CMD_EDIT_ACL_H

/* Entries of ACLs, and their syntax. */

#include "cmd/edit/edit.h"

/* The numbers are those of Linux. */
enum acl_tag { OWNER = 0x01, USER = 0x02, OWNER_GROUP = 0x04, GROUP = 0x08, MASK = 0x10, OTHER = 0x20 };
#define NOBODY UINT32_MAX	/* id of an entry that has none */

/* An entry as it was given. */
struct acl_wish {
	bool of_new;
	uint16_t tag;
	uint32_t id, perm;
};

/* In edit_acl_words.c: */
/* Parses an entry. @with_perm: it ends with permissions. @return what follows, a comma or the end; NULL: invalid */
const char *acl_take_entry(const char *s, bool with_perm, struct acl_wish *ret);

#endif
