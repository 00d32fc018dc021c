/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_BASE_EMIT_JSON_H
#define BTRKIT_BASE_EMIT_JSON_H

/* JSON functions used by emit.c. */

#include "lib/base/emit.h"

/*
 * Writes what precedes a value: the comma, and the key of @len bytes if @key is not NULL. @return false: the value is
 * dropped
 */
bool emit_json_lead(struct emit *e, const char *key, size_t len);

/* Writes a JSON string, escaped as described at emit_name(). */
void emit_json_string(struct emit *e, const uint8_t *s, size_t len);

#endif
