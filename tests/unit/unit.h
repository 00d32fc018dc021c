/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_UNIT_H
#define BTRKIT_TESTS_UNIT_H

/* Included first by every unit test: cmocka with the headers that it requires. */

#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "config.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* Features of this build. The library refuses missing ones by name; tests then check everything else. */
#ifdef HAVE_ISAL
#define UNIT_PARITY true
#else
#define UNIT_PARITY false
#endif
#if defined(HAVE_ZLIB) && defined(HAVE_LZO) && defined(HAVE_ZSTD)
#define UNIT_CODECS true
#else
#define UNIT_CODECS false
#endif
#if defined(HAVE_XXHASH) && defined(HAVE_GCRYPT)
#define UNIT_SUMS true
#else
#define UNIT_SUMS false
#endif
#ifdef HAVE_UUID
#define UNIT_UUID true
#else
#define UNIT_UUID false
#endif
#define UNIT_NEEDS(has) \
	do { \
		if (!(has)) \
			skip(); \
	} while (0)

#endif
