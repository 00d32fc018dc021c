/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_BASE_EMIT_JSON_H
#define BTRKIT_BASE_EMIT_JSON_H

/* What the fields of emit.c ask of the JSON form. */

#include "lib/base/emit.h"

/* What stands before a value: the comma, and the key of @len bytes if there is one. @return false: it is left out */
bool emit_json_lead(struct emit *e, const char *key, size_t len);

/* A string as emit_name() describes it. */
void emit_json_string(struct emit *e, const uint8_t *s, size_t len);

#endif
