/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_CHECK_EDIT_H
#define BTRKIT_TESTS_CHECK_EDIT_H

/* Damage in words: each step finds something of the image at hand, or changes what was found. README.md has them. */

#include "tests/crash/sparse.h"

/* Does steps, between which there are semicolons, on a device over the image. What cannot be done ends the program. */
void edit(struct sparse *disk, const char *steps);

#endif
