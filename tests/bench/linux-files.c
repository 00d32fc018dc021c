// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Does what create.c and fill.c do, by Linux in a mounted filesystem: create DIR THREADS FILES NAMELEN, or fill DIR
 * THREADS ROUNDS BYTES. Prints the same lines.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Attempts to remove a file when there is no space. */
#define TRIES 100

struct worker {
	pthread_t thread;
	int dir;
	unsigned long files;
	unsigned long again; /* removals that failed for lack of space and had to wait for a commit */
	size_t bytes;
	unsigned name_len;
	int removes;
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void *create(void *arg)
{
	struct worker *w = arg;
	char name[256];

	for (unsigned long i = 0; i < w->files; i++) {
		int fd;

		snprintf(name, sizeof(name), "%0*lx", (int)w->name_len, (unsigned long)(uint32_t)(i * 0x9e3779b9u));
		fd = openat(w->dir, name, O_CREAT | O_EXCL | O_WRONLY, 0644);
		if (fd < 0)
			die(name);
		close(fd);
	}
	return NULL;
}

/* Linux may lack the space to remove a file: sync and try again, as an administrator would. */
static void remove_file(struct worker *w, const char *name)
{
	for (int i = 0; unlinkat(w->dir, name, 0); i++) {
		if (errno != ENOSPC || i == TRIES)
			die(name);
		w->again++;
		if (syncfs(w->dir))
			die("sync");
	}
}

static void *fill(void *arg)
{
	struct worker *w = arg;
	char name[32], *data = malloc(w->bytes);
	unsigned long i = 0;

	memset(data, 'x', w->bytes);
	for (;; i++) {
		int fd;

		snprintf(name, sizeof(name), "file_%lu", i);
		if (w->removes && i == w->files)
			break;
		if (w->removes) {
			remove_file(w, name);
			continue;
		}
		fd = openat(w->dir, name, O_CREAT | O_EXCL | O_WRONLY, 0644);
		if (fd < 0 && errno == ENOSPC)
			break;
		if (fd < 0)
			die(name);
		if (write(fd, data, w->bytes) != (ssize_t)w->bytes) {
			close(fd);
			remove_file(w, name);
			break;
		}
		close(fd);
	}
	w->files = i;
	free(data);
	return NULL;
}

static double run(struct worker *workers, unsigned threads, void *(*work)(void *), int top)
{
	const double start = now();

	for (unsigned i = 0; i < threads; i++)
		pthread_create(&workers[i].thread, NULL, work, &workers[i]);
	for (unsigned i = 0; i < threads; i++)
		pthread_join(workers[i].thread, NULL);
	if (syncfs(top))
		die("sync");
	return now() - start;
}

int main(int argc, char **argv)
{
	struct worker *workers;
	unsigned threads;
	int top, filling;

	if (argc != 6)
		return 2;
	filling = !strcmp(argv[1], "fill");
	threads = (unsigned)atoi(argv[3]);
	workers = calloc(threads, sizeof(*workers));
	top = open(argv[2], O_RDONLY | O_DIRECTORY);
	if (top < 0)
		die(argv[2]);
	for (unsigned i = 0; i < threads; i++) {
		char name[32];

		snprintf(name, sizeof(name), "d%u", i);
		if (mkdirat(top, name, 0755))
			die(name);
		workers[i].dir = openat(top, name, O_RDONLY | O_DIRECTORY);
		workers[i].bytes = strtoul(argv[5], NULL, 10);
		workers[i].name_len = (unsigned)workers[i].bytes;
		workers[i].files = strtoul(argv[4], NULL, 10) / threads;
	}
	if (!filling) {
		printf("%.3f\n", run(workers, threads, create, top));
		return 0;
	}
	for (int round = 0; round < atoi(argv[4]); round++) {
		unsigned long files = 0, again = 0;
		double filled, removed;

		for (unsigned i = 0; i < threads; i++)
			workers[i].removes = workers[i].again = 0;
		filled = run(workers, threads, fill, top);
		for (unsigned i = 0; i < threads; i++) {
			files += workers[i].files;
			workers[i].removes = 1;
		}
		removed = run(workers, threads, fill, top);
		for (unsigned i = 0; i < threads; i++)
			again += workers[i].again;
		printf("%lu files: %.3f s to fill, %.3f s to remove, %lu again\n", files, filled, removed, again);
		fflush(stdout);
	}
	return 0;
}
