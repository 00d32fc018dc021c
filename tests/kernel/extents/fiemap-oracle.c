// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What Linux says: the rows of `btrkit fiemap -a --format tsv`, taken from a mounted filesystem by the FIEMAP ioctl.
// It shares no code with btrkit, whose check it is.
//
//	fiemap-oracle MOUNTPOINT [OPEN-FILE...]
//
// MOUNTPOINT shows the top level (subvolid=5). OPEN-FILE is an unlinked file that some process holds open
// (/proc/PID/fd/N); it is listed under its root and inode with an empty path.

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/btrfs.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_INODE 256
#define STUB_INODE 2	// where a snapshot shows a subvolume that lay in its source

struct file {
	uint64_t root, inode;
	const char *path;
	struct fiemap_extent *rows;
	uint32_t num_rows;
};

static struct file *files;
static size_t num_files, max_files;

static void die(const char *what, const char *where)
{
	fprintf(stderr, "fiemap-oracle: %s: %s: %s\n", where, what, strerror(errno));
	exit(1);
}

static void *must(void *p)
{
	if (!p)
		die("malloc", "memory");
	return p;
}

static char *join(const char *dir, const char *name)
{
	char *path = must(malloc(strlen(dir) + strlen(name) + 2));

	sprintf(path, "%s%s%s", dir, *dir ? "/" : "", name);
	return path;
}

static uint64_t root_of(int fd, const char *path)
{
	struct btrfs_ioctl_ino_lookup_args args = { .objectid = FIRST_INODE };

	if (ioctl(fd, BTRFS_IOC_INO_LOOKUP, &args))
		die("BTRFS_IOC_INO_LOOKUP", path);
	return args.treeid;
}

// The first of several names, in the order of the inode's references: Linux walks them in key order.
static char *first_name(int fd, uint64_t inode, const char *path)
{
	char buf[4096];
	struct btrfs_data_container *names = (void *)buf;
	struct btrfs_ioctl_ino_path_args args = { .inum = inode, .size = sizeof(buf), .fspath = (uintptr_t)buf };

	if (ioctl(fd, BTRFS_IOC_INO_PATHS, &args))
		die("BTRFS_IOC_INO_PATHS", path);
	if (!names->elem_cnt) {
		errno = ENAMETOOLONG;
		die("BTRFS_IOC_INO_PATHS", path);
	}
	return must(strdup((char *)names->val + names->val[0]));
}

// One call has to hold everything: Linux merges rows within a call, and with no room it never looks at sharedness.
static void map_extents(int fd, struct file *file, const char *path)
{
	for (uint32_t room = 256;; room *= 4) {
		struct fiemap *map = must(calloc(1, sizeof(*map) + room * sizeof(map->fm_extents[0])));

		map->fm_length = FIEMAP_MAX_OFFSET;
		map->fm_flags = FIEMAP_FLAG_SYNC;
		map->fm_extent_count = room;
		if (ioctl(fd, FS_IOC_FIEMAP, map))
			die("FS_IOC_FIEMAP", path);
		if (map->fm_mapped_extents < room) {
			file->num_rows = map->fm_mapped_extents;
			file->rows = must(malloc((file->num_rows + 1) * sizeof(*file->rows)));
			memcpy(file->rows, map->fm_extents, file->num_rows * sizeof(*file->rows));
			free(map);
			return;
		}
		free(map);
	}
}

static void add_file(int fd, uint64_t root, uint64_t inode, const char *path)
{
	if (num_files == max_files) {
		max_files = max_files ? max_files * 2 : 1024;
		files = must(realloc(files, max_files * sizeof(*files)));
	}
	struct file *file = &files[num_files++];

	*file = (struct file){ .root = root, .inode = inode, .path = path };
	map_extents(fd, file, path);
}

static int open_at(int dir, const char *name, int flags, const char *path)
{
	int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NOATIME | O_CLOEXEC | flags);

	if (fd < 0)
		die("open", path);
	return fd;
}

static void walk(int fd, uint64_t root, const char *path)
{
	DIR *dir = must(fdopendir(fd));
	struct dirent *entry;

	while ((entry = readdir(dir))) {
		struct stat st;

		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		char *name = join(path, entry->d_name);

		if (fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW))
			die("stat", name);
		if (S_ISDIR(st.st_mode) && st.st_ino != STUB_INODE) {
			int child = open_at(fd, entry->d_name, O_DIRECTORY, name);

			if (st.st_ino == FIRST_INODE)
				walk(child, root_of(child, name), "");
			else
				walk(child, root, name);
		} else if (S_ISREG(st.st_mode)) {
			int child = open_at(fd, entry->d_name, 0, name);

			add_file(child, root, st.st_ino,
				 st.st_nlink > 1 ? first_name(child, st.st_ino, name) : must(strdup(name)));
			close(child);
		}
		free(name);
	}
	closedir(dir);
}

static int compare_files(const void *a, const void *b)
{
	const struct file *x = a, *y = b;

	if (x->root != y->root)
		return x->root < y->root ? -1 : 1;
	return x->inode < y->inode ? -1 : x->inode > y->inode;
}

static void print_path(const char *path)
{
	static const char codes[] = "\a\b\t\n\v\f\r\033\\", letters[] = "abtnvfre\\";

	for (; *path; path++) {
		unsigned char c = *path;
		const char *code = strchr(codes, c);

		if (code)
			printf("\\%c", letters[code - codes]);
		else if (c < 0x20 || c >= 0x7f)
			printf("\\%03o", c);
		else
			putchar(c);
	}
}

static void print_file(const struct file *file)
{
	for (uint32_t i = 0; i < file->num_rows; i++) {
		const struct fiemap_extent *row = &file->rows[i];

		printf("%" PRIu64 "\t%" PRIu64 "\t%llu\t%llu\t%llu\t0x%x\t", file->root, file->inode, row->fe_logical,
		       row->fe_physical, row->fe_length, row->fe_flags);
		print_path(file->path);
		putchar('\n');
	}
}

int main(int argc, char **argv)
{
	struct rlimit many = { 1 << 16, 1 << 16 };

	if (argc < 2) {
		fprintf(stderr, "usage: fiemap-oracle MOUNTPOINT [OPEN-FILE...]\n");
		return 2;
	}
	setrlimit(RLIMIT_NOFILE, &many);

	int top = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (top < 0)
		die("open", argv[1]);
	walk(top, root_of(top, argv[1]), "");
	for (int i = 2; i < argc; i++) {
		struct stat st;
		int fd = open(argv[i], O_RDONLY | O_CLOEXEC);

		if (fd < 0 || fstat(fd, &st))
			die("open", argv[i]);
		add_file(fd, root_of(fd, argv[i]), st.st_ino, "");
		close(fd);
	}

	qsort(files, num_files, sizeof(*files), compare_files);
	for (size_t i = 0; i < num_files; i++)
		if (!i || compare_files(&files[i - 1], &files[i]))
			print_file(&files[i]);
	if (fflush(stdout))
		die("write", "stdout");
	return 0;
}
