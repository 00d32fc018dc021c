/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_MEMORY_H
#define BTRKIT_TESTS_MEMORY_H

/* Memory that runs out: the linker puts the functions of memory.c in the place of the allocator's. */

#include <stdbool.h>
#include <stdint.h>

#define MEMORY_SUFFICES UINT64_MAX

/* Counts allocations, by any thread, from here on: number @at, from 0, fails, and with @on all that follow. */
void memory_count(uint64_t at, bool on);
/* From here on nothing is counted, and nothing fails. @return how many there were */
uint64_t memory_end(void);

/* The same for a while. @return what memory_resume() is to be given */
bool memory_pause(void);
void memory_resume(bool counted);

#endif
