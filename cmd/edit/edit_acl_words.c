// SPDX-License-Identifier: LGPL-2.1-or-later
/* The syntax of setfacl(1). */
#include <ctype.h>
#include <string.h>

#include "cmd/edit/edit_acl.h"

/* The length of a part that ends with a colon, a comma or the end. */
static size_t part(const char *s)
{
	return strcspn(s, ":,");
}

static bool is_word(const char *s, size_t len, const char *word)
{
	return len && (len == 1 || len == strlen(word)) && !strncmp(s, word, len);
}

static bool take_id(const char *s, size_t len, uint32_t *id)
{
	uint64_t v = 0;

	for (size_t i = 0; i < len; i++) {
		if (!isdigit((unsigned char)s[i]) || v > UINT32_MAX)
			return false;
		v = 10 * v + (uint64_t)(s[i] - '0');
	}
	*id = len ? (uint32_t)v : NOBODY;
	return v < UINT32_MAX;
}

static bool take_perm(const char *s, size_t len, uint32_t *perm)
{
	static const char letters[] = "xwr";

	*perm = 0;
	if (len == 1 && *s >= '0' && *s <= '7') {
		*perm = (uint32_t)(*s - '0');
		return true;
	}
	for (size_t i = 0; i < len; i++) {
		const char *at = strchr(letters, s[i]);

		if (!at && s[i] != '-')
			return false;
		*perm |= at ? 1u << (at - letters) : 0;
	}
	return len > 0;
}

static uint16_t take_tag(const char *s, size_t len)
{
	if (is_word(s, len, "user"))
		return USER;
	if (is_word(s, len, "group"))
		return GROUP;
	return is_word(s, len, "mask") ? MASK : is_word(s, len, "other") ? OTHER : 0;
}

const char *acl_take_entry(const char *s, bool with_perm, struct acl_wish *w)
{
	size_t len = part(s);

	w->of_new = is_word(s, len, "default") && s[len] == ':';
	if (w->of_new) {
		s += len + 1;
		len = part(s);
	}
	w->tag = take_tag(s, len);
	w->id = NOBODY;
	s += len;
	if (!w->tag)
		return NULL;
	/* The mask and others have no id, and the empty field may be omitted. */
	if (*s == ':' && (w->tag & (USER | GROUP) || s[1] == ':')) {
		len = part(++s);
		if (!take_id(s, len, &w->id))
			return NULL;
		s += len;
	}
	if (w->id == NOBODY && w->tag & (USER | GROUP))
		w->tag = w->tag == USER ? OWNER : OWNER_GROUP;
	else if (w->id != NOBODY && w->tag & (MASK | OTHER))
		return NULL;
	if (with_perm) {
		len = *s == ':' ? part(++s) : 0;
		if (!take_perm(s, len, &w->perm))
			return NULL;
		s += len;
	} else if (*s == ':' && (!s[1] || s[1] == ',')) {
		s++;
	}
	return !*s || *s == ',' ? s : NULL;
}
