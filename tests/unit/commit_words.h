/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_COMMIT_WORDS_H
#define BTRKIT_TESTS_COMMIT_WORDS_H

#include "tests/unit/unit.h"

#include <btrkit/btrkit.h>

/* The message of a failed commit ends with what state the filesystem is in now. */
static inline void expect_words(const struct btrkit_error *err, enum btrkit_commit_state state)
{
	static const char *const words[] = {
		[BTRKIT_COMMIT_OLD] = "; the filesystem is unchanged",
		[BTRKIT_COMMIT_NEW] = "; the filesystem was changed, but not all superblock mirrors were updated",
		[BTRKIT_COMMIT_UNKNOWN] = "; it is unknown whether the filesystem was changed",
	};
	const size_t len = strlen(err->message), tail = strlen(words[state]);

	assert_true(len > tail);
	assert_string_equal(err->message + len - tail, words[state]);
}

#endif
