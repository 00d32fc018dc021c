/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_VERSION_H
#define BTRKIT_VERSION_H

/**
 * @file
 * The library's version and how it was built.
 */

#include <btrkit/types.h>

BTRKIT_BEGIN_DECLS

/**
 * Version of the library, such as "0.1.0".
 *
 * @return a constant of the library
 * Since: 0.1
 */
const char *btrkit_version(void);

/**
 * The external libraries it was built with and without, as "+zlib -lzo ...".
 *
 * @return a constant of the library
 * Since: 0.1
 */
const char *btrkit_build_features(void);

/**
 * The licence of this build as a whole, an SPDX expression: lzo2 makes it the GPL's.
 *
 * @return a constant of the library
 * Since: 0.1
 */
const char *btrkit_build_license(void);

BTRKIT_END_DECLS

#endif
