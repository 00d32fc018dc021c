// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * LD_PRELOAD library. Before a file named SWAP is opened, it is exchanged once with SWAP.new in the same directory. And
 * it counts lookups of names.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

static void swap(int dir, const char *path)
{
	static bool done;
	const char *name = getenv("SWAP");
	char other[PATH_MAX];

	if (!name || done || strcmp(basename(path), name))
		return;
	snprintf(other, sizeof(other), "%s.new", path);
	done = true;
	if (renameat2(dir, path, dir, other, RENAME_EXCHANGE))
		abort();
}

/* Both functions under their large-file names too. */
int openat(int dir, const char *path, int flags, ...)
{
	static int (*real)(int, const char *, int, ...);
	mode_t mode = 0;
	va_list args;

	if (!real)
		real = (int (*)(int, const char *, int, ...))dlsym(RTLD_NEXT, "openat64");
	if (flags & (O_CREAT | __O_TMPFILE)) {
		va_start(args, flags);
		mode = va_arg(args, mode_t);
		va_end(args);
	}
	swap(dir, path);
	return real(dir, path, flags, mode);
}

int open(const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list args;

	if (flags & (O_CREAT | __O_TMPFILE)) {
		va_start(args, flags);
		mode = va_arg(args, mode_t);
		va_end(args);
	}
	return openat(AT_FDCWD, path, flags, mode);
}

/*
 * Counts the names that the command looks up in a transaction, and writes their number to the file LOOKUPS in the end.
 * Only its arguments are passed on, so that the types of the library need not be known here.
 */
static unsigned long lookups;
int btrkit_txn_lookup(void *txn, uint64_t root, uint64_t dir, const char *name, size_t len, void *ret, void *err);

int btrkit_txn_lookup(void *txn, uint64_t root, uint64_t dir, const char *name, size_t len, void *ret, void *err)
{
	static int (*real)(void *, uint64_t, uint64_t, const char *, size_t, void *, void *);

	if (!real)
		real = (int (*)(void *, uint64_t, uint64_t, const char *, size_t, void *, void *))
			dlsym(RTLD_NEXT, "btrkit_txn_lookup");
	lookups++;
	return real(txn, root, dir, name, len, ret, err);
}

__attribute__((destructor)) static void tell(void)
{
	const char *name = getenv("LOOKUPS");
	FILE *f = name ? fopen(name, "w") : NULL;

	if (f) {
		fprintf(f, "%lu\n", lookups);
		fclose(f);
	}
}
