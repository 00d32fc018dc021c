/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Buffers that devices and files are read into. */
#ifndef BTRKIT_IO_BUFFER_H
#define BTRKIT_IO_BUFFER_H

#include <stdlib.h>

/*
 * Some processors copy several times more slowly to an address 16 bytes past a multiple of 64, which is where malloc()
 * puts large buffers.
 */
#define IO_BUFFER_ALIGN 64u

static inline size_t io_buffer_round(size_t size)
{
	return (size + IO_BUFFER_ALIGN - 1) & ~(size_t)(IO_BUFFER_ALIGN - 1);
}

/* The buffer is to be freed with free(). */
static inline void *io_buffer(size_t size)
{
	return aligned_alloc(IO_BUFFER_ALIGN, io_buffer_round(size));
}

#endif
