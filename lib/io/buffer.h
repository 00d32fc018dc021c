/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Memory that devices and files are read into. */
#ifndef BTRKIT_IO_BUFFER_H
#define BTRKIT_IO_BUFFER_H

#include <stdlib.h>

/*
 * Some processors copy several times as slowly to what lies 16 bytes behind a multiple of this, and there malloc() puts
 * what is large.
 */
#define IO_BUFFER_ALIGN 64u

static inline size_t io_buffer_round(size_t size)
{
	return (size + IO_BUFFER_ALIGN - 1) & ~(size_t)(IO_BUFFER_ALIGN - 1);
}

/* Given back by free(). */
static inline void *io_buffer(size_t size)
{
	return aligned_alloc(IO_BUFFER_ALIGN, io_buffer_round(size));
}

#endif
