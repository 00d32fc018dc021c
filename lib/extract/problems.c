// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reports problems, and decides which of them end the extraction. */
#include "lib/extract/extract.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/err.h"

#define PATH_SHOWN ((size_t)80)	/* bytes of a path in a message */

int extract_problem(struct extract *x, const char *path, int ret, const struct btrkit_error *what)
{
	x->result->problems++;
	if (ret == -ENOMEM || !x->opts->problem) {
		if (x->err)
			*x->err = *what;
		return ret;
	}
	return x->opts->problem(x->opts->problem_ctx, path, strlen(path), what);
}

/* Errors that the next file would encounter too. */
static bool is_hopeless(int errnum)
{
	return errnum == ENOSPC || errnum == EDQUOT || errnum == EROFS || errnum == EIO || errnum == ENOMEM;
}

int extract_unmade(struct extract *x, const char *path, int errnum, const char *fmt, ...)
{
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	char text[150];
	va_list args;
	const size_t len = strlen(path);
	int ret;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	ret = err_system(&what, errnum, "%s", text);
	if (!is_hopeless(errnum))
		return extract_problem(x, path, ret, &what);
	x->result->problems++;
	x->result->target_failed = 1;
	/* The end of a long path tells more than its beginning. */
	return err_system(x->err, errnum, "%s%s: %s", len > PATH_SHOWN ? "..." : "",
			  len > PATH_SHOWN ? path + len - PATH_SHOWN : *path ? path : "/", text);
}

int extract_left_out(struct extract *x, const char *path, const char *why)
{
	struct btrkit_error what = BTRKIT_ERROR_INIT;

	if (!x->opts->left_out)
		return 0;
	(void)err_set(&what, BTRKIT_UNSUPPORTED, "%s", why);
	return x->opts->left_out(x->opts->left_out_ctx, path, strlen(path), &what);
}

int extract_progress(struct extract *x)
{
	int ret;

	if (!x->opts->progress)
		return 0;
	ret = x->opts->progress(x->opts->progress_ctx, x->result->names, x->result->bytes);
	return ret ? err_system(x->err, ret, "stopped by the caller") : 0;
}
