/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_MEMORY_H
#define BTRKIT_TESTS_MEMORY_H

/* Simulates lack of memory: the linker replaces the allocation functions with those of memory.c. */

#include <stdbool.h>
#include <stdint.h>

#define MEMORY_SUFFICES UINT64_MAX

/* Starts to count allocations of all threads. Number @at, counted from 0, fails; with @on all after it fail too. */
void memory_count(uint64_t at, bool on);
/* Stops counting and failing. @return the number of allocations */
uint64_t memory_end(void);

/* Stops counting and failing for a while. @return the argument for memory_resume() */
bool memory_pause(void);
void memory_resume(bool counted);

#endif
