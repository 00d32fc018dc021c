/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_CHECK_EDIT_H
#define BTRKIT_TESTS_CHECK_EDIT_H

/*
 * A small language for damage: each step selects something in the current image, or changes what was selected.
 * Described in README.md.
 */

#include "tests/crash/sparse.h"

/* Applies steps, separated by semicolons, to a device over the image. Exits if a step is impossible. */
void edit(struct sparse *disk, const char *steps);

#endif
