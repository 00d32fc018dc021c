// SPDX-License-Identifier: LGPL-2.1-or-later
#include "modify_plans.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <linux/fs.h>

#include "modify_between.h"
#include "modify_doing.h"

#define THREADS 4u

struct plan {
	struct doing d;
	uint64_t state;
	const char *const *folders;
	unsigned num_folders, names, operations;
	bool subvolumes; /* create and delete subvolumes too */
};

/* xorshift64* */
static unsigned draw(struct plan *p, unsigned n)
{
	p->state ^= p->state >> 12;
	p->state ^= p->state << 25;
	p->state ^= p->state >> 27;
	return (unsigned)((p->state * 0x2545f4914f6cdd1dull >> 33) % n);
}

static const char *path(struct plan *p, char to[64])
{
	static const char *const made[] = { "dir/file", "dir/small", "dir/packed", "dir/plain", "dir/kept", "pieces",
					    "sub/kept", "snap/kept" };
	const unsigned which = draw(p, 5);

	if (!which && p->subvolumes)
		snprintf(to, 64, "%s", made[draw(p, sizeof(made) / sizeof(made[0]))]);
	else
		snprintf(to, 64, "%s/%s %u", p->folders[draw(p, p->num_folders)], which % 2 ? "f" : "a longer name",
			 draw(p, p->names));
	return to;
}

static void change_names(struct plan *p, const char *a, const char *b)
{
	static const uint32_t modes[] = { S_IFREG | 0644, S_IFREG | 0600, S_IFREG | 0644, S_IFDIR | 0755,
					  S_IFIFO | 0600, S_IFCHR | 0600 };

	switch (draw(p, 8)) {
	case 0:
		drop(&p->d, a);
		break;
	case 1:
		drop_dir(&p->d, a);
		break;
	case 2:
		link_to(&p->d, a, b);
		break;
	case 3:
		make_symlink(&p->d, a, b);
		break;
	case 4:
		move(&p->d, a, b, draw(p, 3));
		break;
	default:
		make(&p->d, a, modes[draw(p, 6)]);
	}
}

static void change_data(struct plan *p, const char *a, const char *b)
{
	const uint64_t at = draw(p, 2) ? draw(p, 200000) : draw(p, 40) * 4 * KIB;
	const unsigned len = 1 + (draw(p, 2) ? draw(p, 3000) : draw(p, 60000));

	switch (draw(p, 9)) {
	case 0:
		cut(&p->d, a, at);
		break;
	case 1:
		punch(&p->d, a, at, len);
		break;
	case 2:
		keep(&p->d, a, at, len, draw(p, 2));
		break;
	case 3:
		share(&p->d, a, draw(p, 20) * 4 * KIB, (1 + draw(p, 10)) * 4 * KIB, b, draw(p, 30) * 4 * KIB);
		break;
	case 4:
		share(&p->d, a, 0, 0, b, 0);
		break;
	default:
		put(&p->d, a, draw(p, 3) ? at : 0, len, draw(p, 1000), draw(p, 3) ? 0 : (uint8_t)(1 + draw(p, 3)));
	}
}

static void change_attributes(struct plan *p, const char *a)
{
	const struct btrkit_attr attr = { .mask = draw(p, 16),
					  .mode = draw(p, 4096),
					  .uid = draw(p, 3),
					  .gid = draw(p, 3),
					  .atime = { draw(p, 1u << 31), draw(p, 1000000000) } };
	char name[32];

	snprintf(name, sizeof(name), "user.%u", draw(p, 6));
	switch (draw(p, 7)) {
	case 0:
		drop_xattr(&p->d, a, name);
		break;
	case 1:
		set_acl(&p->d, a, draw(p, 2) ? "system.posix_acl_access" : "system.posix_acl_default", draw(p, 8));
		break;
	case 2:
		set_flags(&p->d, a, draw(p, 2) ? FS_NOCOW_FL : FS_NODUMP_FL, FS_NOCOW_FL | FS_NODUMP_FL);
		break;
	case 3:
		set_attr(&p->d, a, &attr);
		break;
	default:
		set_xattr(&p->d, a, name, draw(p, 2) ? draw(p, 50) : draw(p, 1500));
	}
}

static void change_subvolumes(struct plan *p)
{
	char a[64], b[64];

	snprintf(a, sizeof(a), "%s/vol %u", p->folders[draw(p, 3)], draw(p, 3));
	snprintf(b, sizeof(b), "%s/vol %u", p->folders[draw(p, 3)], draw(p, 3));
	switch (draw(p, 5)) {
	case 0:
		delete_subvolume(&p->d, a);
		break;
	case 1:
		subvolume(&p->d, a);
		break;
	case 2:
		snapshot(&p->d, "sub", a, draw(p, 2));
		break;
	default:
		snapshot(&p->d, draw(p, 2) ? "snap" : b, a, false);
	}
}

static bool is_fatal(int ret)
{
	return ret == -EIO || ret == -EUCLEAN || ret == -ENOMEM;
}

static void step(struct plan *p)
{
	char a[64], b[64];

	path(p, a);
	path(p, b);
	switch (draw(p, 12)) {
	case 0:
		if (p->subvolumes)
			change_subvolumes(p);
		break;
	case 1:
	case 2:
		change_attributes(p, a);
		break;
	case 3:
	case 4:
	case 5:
	case 6:
		change_names(p, a, b);
		break;
	default:
		change_data(p, a, b);
	}
	/* A failed operation must have changed nothing, or only as much as space allowed. */
	if (!is_fatal(p->d.ret))
		p->d.ret = 0;
}

static const char *const folders[] = { "dir", "sub", "other", "snap/dir", "sub/dir", "dir/empty" };

static struct plan plan_of(struct btrkit_fs *fs, unsigned seed, struct btrkit_error *err)
{
	return (struct plan){ .d = { .fs = fs, .err = err },
			      .state = seed * 0x9e3779b97f4a7c15ull + 1,
			      .folders = folders,
			      .num_folders = sizeof(folders) / sizeof(folders[0]),
			      .names = 8 };
}

static int run(struct btrkit_fs *fs, unsigned seed, unsigned operations, unsigned between,
	       void (*commit)(struct doing *), struct btrkit_error *err)
{
	struct plan p = plan_of(fs, seed, err);
	int ret;

	p.subvolumes = true;
	p.d = doing_start(fs, err);
	between_commit_every(between);
	for (unsigned i = 0; i < operations && !p.d.ret; i++) {
		step(&p);
		if (!draw(&p, operations / 3 + 1))
			commit(&p.d);
	}
	between_commit_every(0);
	/* Make sure that there is something to commit. */
	if (!p.d.ret)
		set_xattr(&p.d, "dir", "user.end", seed % 100 + 1);
	ret = doing_end(&p.d);
	return ret;
}

int plan_run(struct btrkit_fs *fs, unsigned seed, unsigned operations, unsigned between, struct btrkit_error *err)
{
	return run(fs, seed, operations, between, doing_commit, err);
}

int plan_run_continued(struct btrkit_fs *fs, unsigned seed, unsigned operations, struct btrkit_error *err)
{
	return run(fs, seed, operations, 0, doing_continue, err);
}

static void *run_thread(void *ctx)
{
	struct plan *p = ctx;

	for (unsigned i = 0; i < p->operations && !p->d.ret; i++)
		step(p);
	return NULL;
}

int plan_run_threads(struct btrkit_fs *fs, unsigned seed, unsigned commits, struct btrkit_error *err)
{
	/* One shared directory for all threads, and one directory for each. */
	static const char *const own[THREADS][2] = { { "other", "dir" }, { "other", "sub" }, { "other", "snap/dir" },
						     { "other", "dir/empty" } };
	struct btrkit_error errs[THREADS];
	struct doing d = doing_start(fs, err);
	struct plan plans[THREADS];
	pthread_t threads[THREADS];

	for (unsigned round = 0; round < 2 && !d.ret; round++) {
		for (unsigned i = 0; i < THREADS; i++) {
			errs[i] = (struct btrkit_error)BTRKIT_ERROR_INIT;
			plans[i] = plan_of(fs, seed + round * THREADS + i, &errs[i]);
			plans[i].d.txn = d.txn;
			plans[i].folders = own[i];
			plans[i].num_folders = 2;
			plans[i].operations = 40;
			if (pthread_create(&threads[i], NULL, run_thread, &plans[i]))
				exit(99);
		}
		for (unsigned i = 0; i < commits; i++)
			doing_continue(&d);
		for (unsigned i = 0; i < THREADS; i++) {
			pthread_join(threads[i], NULL);
			if (plans[i].d.ret && !d.ret) {
				d.ret = plans[i].d.ret;
				*err = errs[i];
			}
		}
		if (!round)
			doing_commit(&d);
	}
	return doing_end(&d);
}
