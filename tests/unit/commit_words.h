/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_COMMIT_WORDS_H
#define BTRKIT_TESTS_COMMIT_WORDS_H

#include "tests/unit/unit.h"

#include <btrkit/btrkit.h>

/* The message of a commit that failed ends with what holds now. */
static inline void expect_words(const struct btrkit_error *err, enum btrkit_commit_state state)
{
	static const char *const words[] = {
		[BTRKIT_COMMIT_OLD] = "; the filesystem is as it was",
		[BTRKIT_COMMIT_NEW] = "; the filesystem is changed, but not all superblock mirrors are",
		[BTRKIT_COMMIT_UNKNOWN] = "; the filesystem is as it was or changed, which is not known",
	};
	const size_t len = strlen(err->message), tail = strlen(words[state]);

	assert_true(len > tail);
	assert_string_equal(err->message + len - tail, words[state]);
}

#endif
