// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * shuffled-clones FOLDER BLOCKS EACH FILES: clone the blocks of FOLDER/0, FOLDER/EACH, ... in order, each to the end of
 * a randomly chosen file out of FOLDER/shuffled-0 and so on.
 */
#include <fcntl.h>
#include <linux/fs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define BLOCK 4096ull

static int open_in(const char *folder, const char *prefix, unsigned long number, int flags)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/%s%lu", folder, prefix, number);
	fd = open(path, flags, 0644);
	if (fd < 0) {
		perror(path);
		exit(1);
	}
	return fd;
}

int main(int argc, char **argv)
{
	unsigned long blocks, each, n;
	uint64_t lot = 88172645463325252ull, *lengths;
	int *to, from = -1;

	if (argc != 5)
		return 2;
	blocks = strtoul(argv[2], NULL, 10);
	each = strtoul(argv[3], NULL, 10);
	n = strtoul(argv[4], NULL, 10);
	to = calloc(n, sizeof(*to));
	lengths = calloc(n, sizeof(*lengths));
	if (!to || !lengths) {
		perror("shuffled-clones");
		return 1;
	}
	for (unsigned long i = 0; i < n; i++)
		to[i] = open_in(argv[1], "shuffled-", i, O_CREAT | O_RDWR);
	for (unsigned long i = 0; i < blocks; i++) {
		struct file_clone_range range = { .src_offset = i % each * BLOCK, .src_length = BLOCK };
		unsigned long one;

		if (i % each == 0) {
			close(from);
			from = open_in(argv[1], "", i, O_RDONLY);
		}
		lot ^= lot << 13;
		lot ^= lot >> 7;
		lot ^= lot << 17;
		one = lot % n;
		range.src_fd = from;
		range.dest_offset = lengths[one];
		lengths[one] += BLOCK;
		if (ioctl(to[one], FICLONERANGE, &range)) {
			perror("clone");
			return 1;
		}
	}
	return 0;
}
