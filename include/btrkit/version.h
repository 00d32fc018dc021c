/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_VERSION_H
#define BTRKIT_VERSION_H

/**
 * @file
 * Version and build configuration of the library.
 */

#include <btrkit/types.h>

BTRKIT_BEGIN_DECLS

/**
 * Returns the version of the library, such as "0.1.0".
 *
 * @return a constant string
 * Since: 0.1
 */
const char *btrkit_version(void);

/**
 * Returns the external libraries that this build uses (+) and does without (-), such as "+zlib -lzo ...".
 *
 * @return a constant string
 * Since: 0.1
 */
const char *btrkit_build_features(void);

/**
 * Returns the licence of this build as a whole, as an SPDX expression: a build with lzo2 is under the GPL.
 *
 * @return a constant string
 * Since: 0.1
 */
const char *btrkit_build_license(void);

BTRKIT_END_DECLS

#endif
