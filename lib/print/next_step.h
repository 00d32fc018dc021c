/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_PRINT_NEXT_STEP_H
#define BTRKIT_PRINT_NEXT_STEP_H

/* What a user can do about a device. */

#include <stddef.h>
#include <stdint.h>

/**
 * Writes what can be done about a stale device, to be appended to a line: a scrub repairs only what can be read without
 * it.
 *
 * @param unmirrored	see struct btrkit_error
 */
void print_stale_step(uint64_t unmirrored, char *text, size_t size);

#endif
