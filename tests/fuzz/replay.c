// SPDX-License-Identifier: LGPL-2.1-or-later
/* Passes files, and all files of directories, to a fuzz target: the driver of builds without libFuzzer. */
#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static unsigned replayed;

static int replay_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	uint8_t *data = NULL;
	long size = 0;
	int ret = -1;

	if (f && !fseek(f, 0, SEEK_END) && (size = ftell(f)) >= 0 && !fseek(f, 0, SEEK_SET))
		/* Exactly as large as the input, so that sanitizers find every access past the end. */
		data = malloc((size_t)size + !size);
	if (data && fread(data, 1, (size_t)size, f) == (size_t)size) {
		LLVMFuzzerTestOneInput(data, (size_t)size);
		replayed++;
		ret = 0;
	}
	free(data);
	if (f)
		fclose(f);
	if (ret)
		fprintf(stderr, "replay: cannot read %s\n", path);
	return ret;
}

static int replay(const char *path)
{
	struct dirent *entry;
	struct stat st;
	char child[4096];
	int ret = 0;
	DIR *dir;

	if (!stat(path, &st) && !S_ISDIR(st.st_mode))
		return replay_file(path);
	dir = opendir(path);
	if (!dir) {
		fprintf(stderr, "replay: cannot read %s\n", path);
		return -1;
	}
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.') {
			snprintf(child, sizeof(child), "%s/%s", path, entry->d_name);
			ret |= replay_file(child);
		}
	closedir(dir);
	return ret;
}

int main(int argc, char **argv)
{
	int ret = 0;

	for (int i = 1; i < argc; i++)
		ret |= replay(argv[i]);
	printf("replayed %u inputs\n", replayed);
	return ret || !replayed;
}
