/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_IO_DRY_H
#define BTRKIT_IO_DRY_H

#include <btrkit/io.h>

/*
 * Makes a device that can be written over one that stays as it is: what is written is kept in memory, in blocks of
 * 4096 bytes, each once, and is gone when the device is closed. @below must not be written meanwhile; it is not closed.
 * @return 0; -ENOMEM
 */
int io_dry(struct btrkit_io *below, struct btrkit_io **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
