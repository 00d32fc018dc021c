// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Makes random changes to whole filesystems, and passes them to a target, which corrects the checksums: each run must
 * end, with bounded time and memory. Usage: damage-TARGET FIRST COUNT FILE... A failure prints the number of the
 * damage; with COUNT 1 it can be repeated alone.
 */
#include "tests/fuzz/fuzz.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#define SECONDS_EACH 20
#define BYTES_MAX (1u << 20)
#define CHOICES_MAX 80
#define MEMORY_MAX (1ull << 30)

static char failure[128];

static uint64_t next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static void died(int number)
{
	/* Only functions that may be called in a signal handler. */
	if (write(STDERR_FILENO, failure, strlen(failure)) < 0)
		_exit(2);
	signal(number, SIG_DFL);
	raise(number);
}

/* A number that is likely to break a parser, or one that occurs elsewhere in the image. */
static uint64_t number_from(uint64_t *state, const uint8_t *data, size_t size)
{
	static const uint64_t edges[] = { 0, 1, 2, 0x7f, 0xff, 0x100, 0x3e80, 0xffff, 0x7fffffff, 0xffffffff,
					  0x7fffffffffffffffull, 0xffffffffffffffffull, 0xffffffffffffff00ull };
	uint64_t v;

	switch (next(state) % 3) {
	case 0:
		return edges[next(state) % (sizeof(edges) / sizeof(edges[0]))];
	case 1:
		memcpy(&v, data + next(state) % (size - 8), sizeof(v));
		return v;
	default:
		return next(state);
	}
}

static void damage(uint64_t *state, uint8_t *data, size_t size)
{
	unsigned n = 1 + (unsigned)(next(state) % 6);

	while (n--) {
		size_t at = next(state) % (size - 512), from;
		uint64_t v;

		switch (next(state) % 4) {
		case 0:
			data[at] ^= (uint8_t)(1u << next(state) % 8);
			break;
		case 1:
			v = number_from(state, data, size);
			memcpy(data + at, &v, 1 + next(state) % 8);
			break;
		case 2:
			memset(data + at, 0, next(state) % 512);
			break;
		case 3:
			from = next(state) % (size - 512);
			memmove(data + at, data + from, next(state) % 512);
			break;
		}
	}
}

/* The bytes after the last record are choices for the target: mostly small numbers. */
static size_t choose(uint64_t *state, uint8_t *data, size_t size)
{
	size_t n = next(state) % 2 * CHOICES_MAX;

	for (size_t i = 0; i < n; i++)
		data[size + i] = (uint8_t)next(state) >> next(state) % 9;
	return size + n;
}

static size_t read_file(const char *path, uint8_t *data)
{
	FILE *f = fopen(path, "rb");
	size_t size = f ? fread(data, 1, BYTES_MAX, f) : 0;

	if (f)
		fclose(f);
	if (size < 4096) {
		fprintf(stderr, "damage: cannot read %s\n", path);
		exit(2);
	}
	return size;
}

int main(int argc, char **argv)
{
	static uint8_t whole[BYTES_MAX], damaged[BYTES_MAX + CHOICES_MAX];
	const struct rlimit memory = { MEMORY_MAX, MEMORY_MAX };
	uint64_t first, count, done = 0;

	if (argc < 4)
		return 2;
	first = strtoull(argv[1], NULL, 0);
	count = strtoull(argv[2], NULL, 0);
	/* Sanitizers reserve far more address space than this limit. */
	if (!getenv("ASAN_OPTIONS"))
		setrlimit(RLIMIT_AS, &memory);
	signal(SIGALRM, died);
	signal(SIGSEGV, died);
	signal(SIGABRT, died);
	for (int i = 3; i < argc; i++) {
		size_t size = read_file(argv[i], whole);

		for (uint64_t n = first; n < first + count; n++, done++) {
			uint64_t state = n;

			snprintf(failure, sizeof(failure), "damage: number %llu of %.60s\n", (unsigned long long)n,
				 argv[i]);
			memcpy(damaged, whole, size);
			damage(&state, damaged, size);
			alarm(SECONDS_EACH);
			LLVMFuzzerTestOneInput(damaged, choose(&state, damaged, size));
		}
	}
	printf("%llu damages: no crash, no hang, less than a gigabyte of memory\n", (unsigned long long)done);
	return 0;
}
