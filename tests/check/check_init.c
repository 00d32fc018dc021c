// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The init process of a virtual machine in which Linux checks damaged filesystems, because some of them crash the
 * kernel. See other_checks.py, which creates the files read here.
 *
 * /modules contains the kernel modules; /modules/list has their names in load order. /images/NAME has the nonzero parts
 * of an image: its size, then runs of offset, length and bytes. /cases has a line for each case: number, NAME, changes
 * as OFFSET:HEX. From the case given as "from=N" on the kernel command line, each one is mounted read-only, read,
 * mounted for writing, written to, balanced, emptied and unmounted. With "answer" on the command line, a case with an
 * even number is mounted read-only instead, and one with an odd number writable (linux_vm.py). The devices of an image
 * lie one behind the other, as many as its superblock says. Output on the console:
 *
 *	CASE N
 *	STEP errno (for each failed step), or ANSWER what errno
 *	LOG line (kernel messages about btrfs, or kernel errors)
 *	END N
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "tests/check/check_use.h"

#define IMAGE "/scratch/image"
#define BTRFS_IOC_SCAN_DEV _IOW(0x94, 4, char[4096])
#define BTRFS_IOC_FORGET_DEV _IOW(0x94, 5, char[4096])

#define DEVICES_MAX 8u
#define SUPER_AT 65536
#define NUM_DEVICES_AT 136

static int kmsg;
static bool asks_for_answers;
static unsigned devices; /* of the current image */

static void load_modules(void)
{
	char name[256], path[512];
	FILE *list = fopen("/modules/list", "r");

	while (list && fscanf(list, "%255s", name) == 1) {
		int fd;

		snprintf(path, sizeof(path), "/modules/%s", name);
		fd = open(path, O_RDONLY);
		if (fd < 0 || (syscall(SYS_finit_module, fd, "", 0) && errno != EEXIST))
			printf("cannot load %s: %s\n", name, strerror(errno));
		close(fd);
	}
	if (list)
		fclose(list);
}

/* Prints new kernel messages about btrfs and kernel errors. */
static void tell_log(void)
{
	char record[8192];
	ssize_t n;

	while ((n = read(kmsg, record, sizeof(record) - 1)) > 0) {
		const char *text;

		record[n] = '\0';
		text = strchr(record, ';');
		record[strcspn(record, "\n")] = '\0';
		if (text && (strstr(text, "BTRFS") || strstr(text, "WARNING") || strstr(text, "BUG") ||
			     strstr(text, "I/O error")))
			printf("LOG %s\n", text + 1);
	}
}

static bool put_bytes(int to, const char *hex, off_t at)
{
	uint8_t bytes[4096];
	size_t n = 0;

	for (; hex[0] && hex[0] != ' ' && hex[0] != '\n' && n < sizeof(bytes); hex += 2) {
		const char two[] = { hex[0], hex[1], 0 };

		bytes[n++] = (uint8_t)strtoul(two, NULL, 16);
	}
	return pwrite(to, bytes, n, at) == (ssize_t)n;
}

/* Makes a fresh image and applies the changes of the case. */
static int make_image(const char *name, char *changes)
{
	char path[512];
	uint64_t head[2], size, num = 0;
	uint8_t *piece = NULL;
	size_t room = 0;
	FILE *from;
	int to;
	bool good;

	snprintf(path, sizeof(path), "/images/%s", name);
	from = fopen(path, "rb");
	unlink(IMAGE);
	to = open(IMAGE, O_RDWR | O_CREAT | O_TRUNC, 0600);
	good = from && to >= 0 && fread(&size, sizeof(size), 1, from) == 1 && !ftruncate(to, (off_t)size);
	while (good && fread(head, sizeof(head), 1, from) == 1) {
		if (head[1] > room)
			piece = realloc(piece, room = head[1]);
		good = piece && fread(piece, head[1], 1, from) == 1 &&
		       pwrite(to, piece, head[1], (off_t)head[0]) == (ssize_t)head[1];
	}
	good = good && pread(to, &num, sizeof(num), SUPER_AT + NUM_DEVICES_AT) == sizeof(num);
	devices = num && num <= DEVICES_MAX ? (unsigned)num : 1;
	for (char *at = changes; good && *at && *at != '\n'; at += strcspn(at, " \n"), at += *at == ' ') {
		char *hex;
		const off_t offset = (off_t)strtoull(at, &hex, 10);

		good = *hex == ':' && put_bytes(to, hex + 1, offset);
	}
	if (from)
		fclose(from);
	free(piece);
	if (!good) {
		printf("cannot make %s\n", name);
		close(to);
		return -1;
	}
	return to;
}

/* Attaches one of the devices that lie in the image. */
static bool attach(int file, unsigned number)
{
	struct loop_config how = { .fd = (uint32_t)file };
	struct stat st;
	char path[64];
	int loop;
	bool good;

	if (fstat(file, &st))
		return false;
	how.info.lo_sizelimit = (uint64_t)st.st_size / devices;
	how.info.lo_offset = number * how.info.lo_sizelimit;
	snprintf(path, sizeof(path), LOOPS, number);
	loop = open(path, O_RDWR);
	good = loop >= 0 && !ioctl(loop, LOOP_CONFIGURE, &how);
	close(loop);
	return good;
}

static void release(unsigned number)
{
	char path[64];
	int loop;

	snprintf(path, sizeof(path), LOOPS, number);
	loop = open(path, O_RDWR);
	ioctl(loop, LOOP_CLR_FD, 0);
	close(loop);
}

/* Passes the name of a loop device to btrfs. */
static bool control(unsigned long request, unsigned number)
{
	int fd = open("/dev/btrfs-control", O_RDWR);
	char args[4096] = "";
	bool good;

	snprintf(args + 8, sizeof(args) - 8, LOOPS, number);
	good = !ioctl(fd, request, args);
	close(fd);
	return good;
}

static void use(unsigned number)
{
	unsigned first = devices;
	char path[64];

	if (!asks_for_answers) {
		check_use();
		return;
	}
	/* One device is scanned by the mount. */
	for (unsigned i = devices; devices > 1 && i-- > 0;)
		if (control(BTRFS_IOC_SCAN_DEV, i))
			first = i;
	snprintf(path, sizeof(path), LOOPS, first == devices ? 0 : first);
	check_answer(path, number % 2);
}

static void one(unsigned number, const char *name, char *changes)
{
	unsigned attached = 0;
	int file;

	printf("CASE %u\n", number);
	file = make_image(name, changes);
	while (file >= 0 && attached < devices && attach(file, attached))
		attached++;
	if (file < 0 || attached < devices) {
		printf("cannot attach: %s\n", strerror(errno));
	} else {
		use(number);
		sync();
	}
	for (unsigned i = 0; i < attached; i++) {
		control(BTRFS_IOC_FORGET_DEV, i);
		release(i);
	}
	close(file);
	tell_log();
	printf("END %u\n", number);
}

int main(void)
{
	static char line[1 << 20];
	char command[1024] = "";
	unsigned from = 0;
	FILE *f;

	mkdir("/proc", 0700);
	mkdir("/sys", 0700);
	mkdir("/dev", 0700);
	mkdir("/scratch", 0700);
	mkdir(MNT, 0700);
	mount("proc", "/proc", "proc", 0, NULL);
	mount("sysfs", "/sys", "sysfs", 0, NULL);
	mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
	mount("tmpfs", "/scratch", "tmpfs", 0, "size=90%");
	setvbuf(stdout, NULL, _IOLBF, 0);
	f = fopen("/proc/cmdline", "r");
	if (f && fgets(command, sizeof(command), f) && strstr(command, "from="))
		from = (unsigned)strtoul(strstr(command, "from=") + 5, NULL, 10);
	asks_for_answers = strstr(command, " answer");
	if (f)
		fclose(f);
	load_modules();
	kmsg = open("/dev/kmsg", O_RDONLY | O_NONBLOCK);
	lseek(kmsg, 0, SEEK_END);
	f = fopen("/cases", "r");
	if (!f)
		printf("cannot open the cases: %s\n", strerror(errno));
	while (f && fgets(line, sizeof(line), f)) {
		char name[128];
		unsigned number;
		int at = 0;

		if (sscanf(line, "%u %127s %n", &number, name, &at) == 2 && number >= from)
			one(number, name, line + at);
	}
	printf("ALL DONE\n");
	sync();
	reboot(RB_POWER_OFF);
	return 0;
}
