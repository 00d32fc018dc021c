// SPDX-License-Identifier: LGPL-2.1-or-later
/* Detection of contents with libblkid. */
#include <btrkit/io.h>

#include <stdio.h>
#include <sys/stat.h>

#include "config.h"

#ifdef HAVE_BLKID
#include <blkid.h>
#endif

#include "lib/base/err.h"
#include "lib/base/uuid.h"
#include "lib/format/super.h"
#include "lib/io/file.h"
#include "lib/io/signature.h"

#ifdef HAVE_BLKID
static int name_signature(blkid_probe probe, char *type, size_t size, struct btrkit_error *err)
{
	const char *found;
	int ret = blkid_do_fullprobe(probe);

	if (ret < 0)
		return err_set(err, BTRKIT_IO, "cannot look for signatures");
	if (ret)
		return 0;
	if (blkid_probe_lookup_value(probe, "TYPE", &found, NULL) &&
	    blkid_probe_lookup_value(probe, "PTTYPE", &found, NULL))
		found = "unknown";
	snprintf(type, size, "%s", found);
	return 1;
}

static int look(int fd, uint64_t start, uint64_t len, char *type, size_t size, struct btrkit_error *err)
{
	blkid_probe probe = blkid_new_probe();
	int ret;

	if (!probe)
		return err_nomem(err);
	if (blkid_probe_set_device(probe, fd, (blkid_loff_t)start, (blkid_loff_t)len) ||
	    blkid_probe_enable_superblocks(probe, 1) ||
	    blkid_probe_set_superblocks_flags(probe, BLKID_SUBLKS_TYPE) ||
	    blkid_probe_enable_partitions(probe, 1))
		ret = err_set(err, BTRKIT_IO, "cannot look for signatures");
	else
		ret = name_signature(probe, type, size, err);
	blkid_free_probe(probe);
	return ret;
}

static int search(blkid_cache cache, const char *fsid, int (*fn)(void *ctx, const char *path), void *ctx)
{
	blkid_dev_iterate each = blkid_dev_iterate_begin(cache);
	blkid_dev dev;
	int ret = 0;

	if (!each)
		return 0;
	blkid_dev_set_search(each, "UUID", fsid);
	while (!ret && !blkid_dev_next(each, &dev))
		if (blkid_dev_has_tag(dev, "TYPE", "btrfs"))
			ret = fn(ctx, blkid_dev_devname(dev));
	blkid_dev_iterate_end(each);
	return ret;
}

int io_cached_devices(const uint8_t fsid[16], bool probe, int (*fn)(void *ctx, const char *path), void *ctx,
		      struct btrkit_error *err)
{
	char text[UUID_TEXT];
	blkid_cache cache;
	int ret;

	/* Probe into a private cache that is not saved. */
	if (blkid_get_cache(&cache, probe ? "/dev/null" : NULL))
		return err_nomem(err);
	if (probe)
		blkid_probe_all(cache);
	ret = search(cache, base_uuid_text(fsid, text), fn, ctx);
	blkid_put_cache(cache);
	return ret;
}
#else
int io_cached_devices(const uint8_t fsid[16], bool probe, int (*fn)(void *ctx, const char *path), void *ctx,
		      struct btrkit_error *err)
{
	(void)fsid, (void)probe, (void)fn, (void)ctx, (void)err;
	return 0;
}

static int look(int fd, uint64_t start, uint64_t len, char *type, size_t size, struct btrkit_error *err)
{
	(void)fd;
	(void)start;
	(void)len;
	(void)type;
	(void)size;
	return err_set(err, BTRKIT_UNSUPPORTED, "looking for signatures needs a build with libblkid");
}
#endif

struct finding {
	struct btrkit_io *const *but;
	size_t n;
	char *name;
	size_t size;
};

static int take_other(void *ctx, const char *path)
{
	const struct finding *f = ctx;
	struct stat st, other;
	uint64_t start;
	int fd;

	for (size_t i = 0; i < f->n && !stat(path, &st); i++)
		if (io_file_place(f->but[i], &fd, &start) && !fstat(fd, &other) && S_ISBLK(other.st_mode) &&
		    st.st_rdev == other.st_rdev)
			return 0;
	snprintf(f->name, f->size, "%s", path);
	return 1;
}

int btrkit_io_find_fsid(const uint8_t fsid[16], struct btrkit_io *const *but, size_t n, char *name, size_t size,
			struct btrkit_error *err)
{
	struct finding f = { but, n, name, size };

	if (size)
		name[0] = '\0';
	return io_cached_devices(fsid, true, take_other, &f, err);
}

bool io_undo_is_unfinished(struct btrkit_io *io)
{
	struct disk_super disk;

	return !btrkit_io_read(io, super_offset(0), &disk, sizeof(disk), NULL) && super_refuse_undo_mark(&disk, NULL);
}

int btrkit_io_signature(struct btrkit_io *io, char *type, size_t size, struct btrkit_error *err)
{
	uint64_t start;
	int fd;

	if (size)
		type[0] = '\0';
	if (!io_file_place(io, &fd, &start))
		return err_set(err, BTRKIT_UNSUPPORTED, "only a file or block device can be searched for signatures");
	/* libblkid does not know this one. */
	if (io_undo_is_unfinished(io)) {
		snprintf(type, size, "an unfinished undo");
		return 1;
	}
	/* For libblkid a length of zero means the whole device. */
	return io->size ? look(fd, start, io->size, type, size, err) : 0;
}
