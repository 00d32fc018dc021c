// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Reads a directory with several threads. Each takes some names of an open directory, or opens another directory. What
 * they find is added under a lock, in an order that source_finish() makes deterministic.
 */
#include "lib/source/directory.h"

#include <fcntl.h>
#include <locale.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/base/hash.h"
#include "lib/source/layers.h"

#define THREADS_MAX 4 /* more threads would wait for the lock */

/* A file with several names, by device and inode of the host. */
struct linked {
	struct {
		uint64_t device, inode;
	} key;
	uint32_t number;
	UT_hash_handle hh;
};

struct waiting {
	uint32_t inode;
	dev_t device;
	ino_t host;
	struct source_time mtime, ctime;
	bool file_whiteouts; /* as in struct scan_dir */
};

struct scan {
	struct source *s;
	locale_t locale;
	pthread_mutex_t lock; /* protects the following members and the source */
	pthread_cond_t more;
	struct waiting *waiting; /* directories to open; the last is next */
	uint32_t n, max;
	struct scan_dir *open; /* open directories with names left to take */
	unsigned working;
	struct linked *links;
	struct pool pool;
	char *path;
	size_t path_max;
	int ret;
	struct btrkit_error err;
};

static void stop(struct scan *c, int ret, const struct btrkit_error *err)
{
	if (!c->ret) {
		c->ret = ret;
		c->err = *err;
	}
	pthread_cond_broadcast(&c->more);
}

static int tell(const struct source *s, uint32_t dir, const struct scan_failure *f, struct btrkit_error *err)
{
	char path[PATH_SHOWN];

	if (f->errnum == ENOMEM)
		return err_nomem(err);
	if (f->name && f->errnum == ESTALE)
		return source_fail_name(s, dir, f->name, strlen(f->name), err, ESTALE, "changed while it was read");
	if (f->errnum == ESTALE)
		return source_changed(s, dir, err);
	if (!f->name)
		return source_cannot(s, dir, err, f->errnum, f->what);
	source_path_of_name(s, dir, f->name, strlen(f->name), path, sizeof(path));
	return err_system(err, f->errnum, "%s: cannot %s%s%.80s", path, f->what, f->attribute ? " " : "",
			  f->attribute ? f->attribute : "");
}

static void stop_by(struct scan *c, uint32_t dir, const struct scan_failure *f)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	const int ret = tell(c->s, dir, f, &err);

	stop(c, ret, &err);
}

static int wait_for(struct scan *c, uint32_t inode, const struct scan_worker *w, const struct scan_found *f,
		    struct btrkit_error *err)
{
	if (c->n == c->max) {
		struct waiting *grown = reallocarray(c->waiting, c->max * 2u + 64, sizeof(*grown));

		if (!grown)
			return err_nomem(err);
		c->waiting = grown;
		c->max = c->max * 2 + 64;
	}
	c->waiting[c->n++] = (struct waiting){ inode, f->device, f->inode, f->attr.mtime, f->attr.ctime,
					       source_layered(c->s) && scan_has_file_whiteouts(w, f) };
	return 0;
}

/* Adds a name of a file that was found before. @return 1: added or excluded; 0: new file, *ret is to be added; <0 */
static int add_another_name(struct scan *c, uint32_t dir, const struct scan_found *f, struct linked **ret,
			    struct btrkit_error *err)
{
	struct linked *link, key = { .key = { f->device, f->inode } };
	const struct source_inode *i;
	int failed;

	HASH_FIND(hh, c->links, &key.key, sizeof(key.key), link);
	if (!link) {
		link = pool_take(&c->pool, sizeof(*link), 8);
		if (!link)
			return err_nomem(err);
		*link = key;
		*ret = link;
		return 0;
	}
	i = &c->s->inodes[link->number];
	if (i->mode != f->attr.mode || (S_ISREG(i->mode) && i->size != f->attr.size) ||
	    memcmp(&i->mtime, &f->attr.mtime, sizeof(i->mtime)) ||
	    memcmp(&i->ctime, &f->attr.ctime, sizeof(i->ctime))) {
		/* Another type means another file with a number that was free again. */
		failed = (i->mode ^ f->attr.mode) & S_IFMT ? source_changed(c->s, link->number, err) :
							     source_take_changed(c->s, link->number, err);
		if (failed)
			return failed;
	}
	failed = source_add_link(c->s, dir, f->name, strlen(f->name), link->number, err);
	return failed < 0 ? failed : 1;
}

static int add_xattrs(struct scan *c, const struct scan_worker *w, const struct scan_found *f, uint32_t inode,
		      struct btrkit_error *err)
{
	int ret = 0;

	for (size_t at = f->xattrs; at < f->xattrs_end && !ret;) {
		struct scan_xattr head;
		const char *name = w->bytes + at + sizeof(head);

		memcpy(&head, w->bytes + at, sizeof(head));
		ret = source_add_xattr(c->s, inode, name, name + head.name_len + 1, head.value_len, err);
		at += sizeof(head) + head.name_len + 1 + head.value_len;
	}
	return ret;
}

/* Notes a directory that is to be read, and what it hides of the layers below. */
static int add_directory(struct scan *c, const struct scan_worker *w, const struct scan_found *f, uint32_t inode,
			 struct btrkit_error *err)
{
	if (source_layered(c->s) && scan_is_opaque(w, f))
		source_layer_close(c->s, inode);
	return wait_for(c, inode, w, f, err);
}

static int add_found(struct scan *c, const struct scan_worker *w, const struct scan_dir *d, const struct scan_found *f,
		     struct btrkit_error *err)
{
	const uint32_t dir = d->inode;
	struct linked *link = NULL;
	uint32_t inode;
	int ret;

	if (f->target)
		return source_fail_name(c->s, dir, f->name, strlen(f->name), err, EINVAL,
					"is the target of the new filesystem");
	ret = source_layered(c->s) ? scan_layered(c->s, w, d, f, &inode, err) : 0;
	if (ret)
		return ret < 0 ? ret : ret == SCAN_MERGED ? add_directory(c, w, f, inode, err) : 0;
	ret = f->linked ? add_another_name(c, dir, f, &link, err) : 0;

	if (ret)
		return ret < 0 ? ret : 0;
	ret = source_add(c->s, dir, f->name, strlen(f->name), &f->attr, &inode, err);
	if (ret)
		return ret < 0 ? ret : 0;
	if (link) {
		link->number = inode;
		HASH_ADD(hh, c->links, key, sizeof(link->key), link);
		if (!link->hh.tbl)
			return err_nomem(err);
	}
	if (S_ISDIR(f->attr.mode))
		ret = add_directory(c, w, f, inode, err);
	return ret ? ret : add_xattrs(c, w, f, inode, err);
}

/* Drops excluded names before they are examined. */
static int leave_out(struct scan *c, struct scan_dir *d, struct btrkit_error *err)
{
	uint32_t kept = 0;

	if (!c->s->state->opts->num_exclude)
		return 0;
	for (uint32_t i = 0; i < d->n; i++) {
		const char *name = d->names + d->at[i];
		const int ret = source_excludes(c->s, d->inode, name, strlen(name), err);

		if (ret < 0)
			return ret;
		if (!ret)
			d->at[kept++] = d->at[i];
	}
	d->n = kept;
	return 0;
}

/* Sets the path on the host for calls that take no descriptor; NULL if it is too long. */
static int set_host_path(const struct scan *c, struct scan_dir *d, size_t len)
{
	const char *top = source_layer_path(c->s, c->s->state->layer);
	const size_t top_len = strlen(top);
	char *at;

	if (top_len + len + 3 > PATH_MAX)
		return 0;
	d->path = at = malloc(top_len + len + 3);
	if (!at)
		return -ENOMEM;
	at = mempcpy(at, top, top_len);
	*at++ = '/';
	if (len) {
		at = mempcpy(at, c->path, len);
		*at++ = '/';
	}
	*at = '\0';
	return 0;
}

/* Stops, unless a directory changed and that is accepted. */
static void take_changed(struct scan *c, uint32_t dir, const struct scan_failure *f)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	int ret;

	if (f->errnum != ESTALE) {
		stop_by(c, dir, f);
		return;
	}
	ret = source_take_changed(c->s, dir, &err);
	if (ret)
		stop(c, ret, &err);
}

static void finish(struct scan *c, struct scan_dir *d)
{
	struct scan_failure failure;

	if (!c->ret && scan_close(d, &failure))
		take_changed(c, d->inode, &failure);
	scan_free(d);
}

/* Opens the next directory. Releases the lock meanwhile. */
static void open_next(struct scan *c)
{
	const struct waiting next = c->waiting[--c->n];
	struct scan_dir *d = calloc(1, sizeof(*d));
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct scan_failure failure;
	ssize_t len = source_full_path(c->s, next.inode, &c->path, &c->path_max);
	char *path = len < 0 ? NULL : strdup(len ? c->path : ".");
	int ret;

	if (!d || !path || set_host_path(c, d, (size_t)len)) {
		free(path);
		if (d) {
			d->fd = -1;
			scan_free(d);
		}
		ret = err_nomem(&err);
		stop(c, ret, &err);
		return;
	}
	d->inode = next.inode;
	d->fd = -1;
	d->stat.st_dev = next.device;
	d->stat.st_ino = next.host;
	d->stat.st_mtim = (struct timespec){ next.mtime.sec, next.mtime.nsec };
	d->stat.st_ctim = (struct timespec){ next.ctime.sec, next.ctime.nsec };
	d->file_whiteouts = next.file_whiteouts;
	d->accept_changes = source_accepts_changes(c->s);
	pthread_mutex_unlock(&c->lock);
	ret = scan_open(d, c->s->state->roots[c->s->state->layer], path, &failure);
	pthread_mutex_lock(&c->lock);
	free(path);
	/* One that was removed has no entries; another one in its place is not taken. */
	if (ret && d->fd < 0) {
		take_changed(c, d->inode, &failure);
		scan_free(d);
		return;
	}
	if (ret)
		stop_by(c, d->inode, &failure);
	else if ((ret = leave_out(c, d, &err)))
		stop(c, ret, &err);
	if (ret || !d->n) {
		finish(c, d);
		return;
	}
	d->next = c->open;
	c->open = d;
	pthread_cond_broadcast(&c->more);
}

/* Takes some names of an open directory, and examines them without the lock. */
static void take_names(struct scan *c, struct scan_worker *w)
{
	struct scan_dir *d = c->open;
	const uint32_t start = d->taken, left = d->n - start, n = left < SCAN_RANGE ? left : SCAN_RANGE;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct scan_failure failure;
	int ret;

	d->taken += n;
	d->users++;
	if (d->taken == d->n)
		c->open = d->next;
	pthread_mutex_unlock(&c->lock);
	ret = scan_range(w, d, start, n, &failure);
	pthread_mutex_lock(&c->lock);
	if (ret)
		stop_by(c, d->inode, &failure);
	for (uint32_t i = 0; i < w->n && !ret; i++) {
		ret = add_found(c, w, d, &w->found[i], &err);
		if (ret)
			stop(c, ret, &err);
	}
	d->users--;
	/* If the scan stops early, directories with names left are freed at the end. */
	if (!d->users && d->taken == d->n)
		finish(c, d);
	if (c->n)
		pthread_cond_broadcast(&c->more);
}

static void *work(void *ctx)
{
	struct scan *c = ctx;
	struct scan_worker *w = malloc(sizeof(*w));
	const locale_t before = uselocale(c->locale);
	struct btrkit_error err = BTRKIT_ERROR_INIT;

	pthread_mutex_lock(&c->lock);
	if (w) {
		w->bytes = NULL;
		w->len = w->max = 0;
		w->source = c->s;
	} else {
		stop(c, err_nomem(&err), &err);
	}
	while (!c->ret && (c->open || c->n || c->working)) {
		if (!c->open && !c->n) {
			pthread_cond_wait(&c->more, &c->lock);
			continue;
		}
		c->working++;
		if (c->open)
			take_names(c, w);
		else
			open_next(c);
		c->working--;
	}
	pthread_cond_broadcast(&c->more);
	pthread_mutex_unlock(&c->lock);
	uselocale(before);
	if (w)
		free(w->bytes);
	free(w);
	return NULL;
}

/*
 * Returns the number of additional threads. None if a preloaded library replaces file system calls: fakeroot would wait
 * forever for a reply that another thread received.
 */
static unsigned helpers(const struct scan *c)
{
	cpu_set_t set;
	int n;

	if (c->s->state->in_between || sched_getaffinity(0, sizeof(set), &set))
		return 0;
	n = CPU_COUNT(&set);
	return n < 1 ? 0 : (unsigned)(n < THREADS_MAX ? n : THREADS_MAX) - 1;
}

static void work_together(struct scan *c)
{
	pthread_t threads[THREADS_MAX];
	unsigned n = 0;
	const unsigned wanted = helpers(c);

	while (n < wanted && !pthread_create(&threads[n], NULL, work, c))
		n++;
	(void)work(c);
	while (n)
		pthread_join(threads[--n], NULL);
}

/* Opens the top directory of the current layer. */
static int open_top(struct source *s, struct stat *st, struct btrkit_error *err)
{
	const char *path = source_layer_path(s, s->state->layer);
	int *fd = &s->state->roots[s->state->layer];

	*fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*fd < 0)
		return err_system(err, errno, "%s: cannot open directory", path);
	return fstat(*fd, st) ? err_system(err, errno, "%s: cannot stat directory", path) : 0;
}

/* Takes the attributes of the top directory, which are those of the highest layer. */
static int take_top(struct scan *c, struct scan_worker *w, const struct source_attr *attr, struct btrkit_error *err)
{
	int ret;

	if (c->s->state->layer != c->s->state->opts->num_layers)
		return 0;
	ret = source_set_attr(c->s, 0, attr, err);
	return ret ? ret : add_xattrs(c, w, &w->found[0], 0, err);
}

/* Opens the top directory and makes it the first one to read. */
static int begin(struct scan *c, struct btrkit_error *err)
{
	struct source *s = c->s;
	struct scan_failure failure;
	struct scan_dir d = { .fd = -1 };
	struct scan_worker *w;
	int ret = open_top(s, &d.stat, err);

	if (ret)
		return ret;
	w = calloc(1, sizeof(*w));
	if (!w || set_host_path(c, &d, 0)) {
		free(w);
		return err_nomem(err);
	}
	w->source = s;
	d.fd = s->state->roots[s->state->layer];
	ret = scan_top(w, &d, &failure);
	if (ret)
		ret = tell(s, 0, &failure, err);
	else
		ret = take_top(c, w, &w->found[0].attr, err);
	if (!ret)
		ret = wait_for(c, 0, w, &w->found[0], err);
	free(d.path);
	free(w->bytes);
	free(w);
	return ret;
}

/* Reads the current layer. */
static int read_layer(struct source *s, struct btrkit_error *err)
{
	struct scan c = { .s = s, .locale = uselocale((locale_t)0), .err = BTRKIT_ERROR_INIT };
	int ret = begin(&c, err);

	if (!ret) {
		pthread_mutex_init(&c.lock, NULL);
		pthread_cond_init(&c.more, NULL);
		work_together(&c);
		pthread_cond_destroy(&c.more);
		pthread_mutex_destroy(&c.lock);
		ret = c.ret;
		if (ret && err)
			*err = c.err;
	}
	while (c.open) {
		struct scan_dir *next = c.open->next;

		scan_free(c.open);
		c.open = next;
	}
	HASH_CLEAR(hh, c.links);
	pool_free(&c.pool);
	free(c.waiting);
	free(c.path);
	return ret;
}

int source_read_directory(struct source *s, struct btrkit_error *err)
{
	int ret = 0;

	for (uint32_t layer = (uint32_t)s->state->opts->num_layers + 1; !ret && layer;) {
		s->state->layer = --layer;
		ret = read_layer(s, err);
	}
	return ret;
}
