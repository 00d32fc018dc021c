/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_FUZZ_SAMPLES_H
#define BTRKIT_TESTS_FUZZ_SAMPLES_H

/* The good items of the unit tests: at least one for every row of the item registry. */

#include "tests/unit/items_samples.h"

/* NULL after the last sample. */
const struct sample *sample_at(size_t i);

/* Fills a leaf with all samples, one for each key. @return their number; 0: they do not fit */
uint32_t samples_leaf(uint8_t *block, uint32_t len);

#endif
