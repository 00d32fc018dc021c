// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Speed of the library's checksums for blocks of the size of sectors and tree blocks, and for blocks so large that call
 * overhead does not matter, with data in the processor's cache. Prints a line for each: name, block size in bytes,
 * GB/s.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/base/csum.h"

#define BUFFER (256u << 10)

/* CPU time, as openssl(1) uses it: the machine may be busy. */
static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The best of several runs, because the machine may be busy. */
static double speed(const struct csum_kind *kind, const uint8_t *data, size_t block, double turn)
{
	uint8_t sum[CSUM_SIZE_MAX];
	double best = 0;

	for (unsigned k = 0; k < 5; k++) {
		const double start = now();
		double bytes = 0, took;

		do {
			for (size_t at = 0; at < BUFFER; at += block)
				kind->compute(data + at, block, sum);
			bytes += BUFFER;
			took = now() - start;
		} while (took < turn);
		if (bytes / took > best)
			best = bytes / took;
	}
	return best / 1e9;
}

int main(int argc, char **argv)
{
	const double turn = argc > 1 ? atof(argv[1]) : 0.2;
	uint8_t *data = aligned_alloc(4096, BUFFER);

	if (!data)
		return 1;
	for (size_t i = 0; i < BUFFER; i++)
		data[i] = (uint8_t)(i * 2654435761u >> 24);
	for (uint16_t type = 0; csum_kind_find(type); type++) {
		const struct csum_kind *kind = csum_kind_find(type);

		for (size_t block = 4096; kind->compute && block <= BUFFER; block *= block < 16384 ? 4 : 16)
			printf("%s %zu %.2f\n", kind->name, block, speed(kind, data, block, turn));
	}
	free(data);
	return 0;
}
