/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_IO_H
#define BTRKIT_IO_H

/**
 * @file
 * Where the bytes of a device come from: a table of functions, and the backends that come with the library.
 *
 * A backend is used by many threads at once, which the library starts too; each function must allow that, but for
 * resize() and close(). The functions of a backend return 0 or a negative errno, any there is, and never transfer less
 * than was asked. They are called for ranges that lie on the device, as large as io->size says, at any offset and of
 * any length: who needs aligned ones sees to that. After an error the contents of a buffer, or of the range that was
 * written, are undefined.
 */

#include <btrkit/types.h>

BTRKIT_BEGIN_DECLS

/** What a zone of a zoned device takes. Since: 0.1 */
enum btrkit_zone_state {
	BTRKIT_ZONE_CONVENTIONAL,	/**< writes anywhere, as other devices do */
	BTRKIT_ZONE_EMPTY,		/**< writes from its start on */
	BTRKIT_ZONE_PARTLY,		/**< writes where the last one ended */
	BTRKIT_ZONE_FULL		/**< none until it is reset */
};

/** A zone of a zoned device; all numbers in bytes. Since: 0.1 */
struct btrkit_zone {
	uint64_t start, length;		/**< the length is that of every zone but perhaps the last: a power of two */
	uint64_t capacity;		/**< how much of it can be written */
	uint64_t write_pointer;		/**< from the start of the device; of a sequential zone that is not full */
	enum btrkit_zone_state state;
};

/**
 * The functions of a backend. A program makes its own by filling in this table, which is needed until the device is
 * closed. All may be NULL but for read() and close(); one that can be written to has write() and flush().
 *
 * Since: 0.1
 */
struct btrkit_io_ops {
	/** Reads exactly @p len bytes at @p offset; -ENODATA if the device ends before. */
	int (*read)(struct btrkit_io *io, uint64_t offset, void *buf, size_t len);
	/** Writes exactly @p len bytes at @p offset; NULL for a read-only backend. */
	int (*write)(struct btrkit_io *io, uint64_t offset, const void *buf, size_t len);
	/** Returns after everything written has reached the medium; NULL for a read-only backend. */
	int (*flush)(struct btrkit_io *io);
	/** Tells that the contents of a range are no longer needed. May be NULL, and may do nothing. */
	int (*discard)(struct btrkit_io *io, uint64_t offset, uint64_t len);
	/** Makes sure that writes to a range will find room on the medium. May be NULL, and may do nothing. */
	int (*reserve)(struct btrkit_io *io, uint64_t offset, uint64_t len);
	/** Makes the device larger, by zeros, or smaller; the caller changes io->size. May be NULL: it cannot. */
	int (*resize)(struct btrkit_io *io, uint64_t size);
	/**
	 * Makes a range share the blocks of an open file of the host, from its byte @p from on. May be NULL: it cannot.
	 */
	int (*clone)(struct btrkit_io *io, uint64_t offset, int fd, uint64_t from, uint64_t len);
	/** Tells that a range will be read soon. May be NULL. */
	void (*prefetch)(struct btrkit_io *io, uint64_t offset, uint64_t len);
	/**
	 * Tells of the zone that has @p offset, which lies on the device. Returns 0, or 1 if the device is not zoned.
	 * NULL: it is not.
	 */
	int (*zone)(struct btrkit_io *io, uint64_t offset, struct btrkit_zone *ret);
	/**
	 * After another of these functions has failed with @p err->err: says more of it than the errno does, by
	 * changing @p err, but for err->err. May be NULL.
	 */
	void (*explain)(struct btrkit_io *io, struct btrkit_error *err);
	/** Frees the backend: called once, by btrkit_io_close() or when the filesystem that owns it is closed. */
	void (*close)(struct btrkit_io *io);
	void (*reserved[8])(void);	/**< NULL */
};

/**
 * A device. Backends put this first in a struct of their own, and fill it in before anybody uses it.
 *
 * Since: 0.1
 */
struct btrkit_io {
	const struct btrkit_io_ops *ops;
	uint64_t size;		/**< in bytes */
	char name[256];		/**< for messages: the path, as the user gave it; terminated */
	uint64_t reserved[4];	/**< 0 */
};

/** Flags of btrkit_io_open(). Since: 0.1 */
enum btrkit_io_flags {
	BTRKIT_IO_READ = 0,
	BTRKIT_IO_WRITE = 1 << 0,	/**< open for writing too */
	/**
	 * With BTRKIT_IO_WRITE: keep others off as long as it is open. A block device is opened O_EXCL and flock()ed, a
	 * file, or the part of it that is meant, is write-locked. What is mounted, or locked by another, or what a loop
	 * device shows of a file or device is refused with -EBUSY. That goes by bytes, through partitions and loop
	 * devices on loop devices: another part of the same file or disk may be in use, and a partition of a
	 * loop device that nobody uses is claimed, so that it stays so.
	 * Without BTRKIT_IO_WRITE: see that nobody changes what is read. A block device is opened O_EXCL; what is
	 * mounted, or what a loop device that is in use shows, is refused with -EBUSY. Nothing is locked.
	 */
	BTRKIT_IO_EXCLUSIVE = 1 << 1
};

/**
 * Opens a block device or an image file.
 *
 * @p spec is a path, or `PATH?offset=N[&size=N]` or `PATH?partition=N` for a filesystem inside a disk image
 * (N in bytes, or with k m g t p e; partitions as libblkid counts them). A part of a block device that lies in a
 * partition which Linux knows is read and written by that. Everything else (directory, char device, fifo) is refused.
 *
 * @param ret	the backend, to be freed by btrkit_io_close()
 * @param flags	BTRKIT_IO_*
 * @return 0; -EINVAL for a bad spec or what is no device; -EMEDIUMTYPE for a directory that is to be read;
 *	   -EBUSY; -EROFS; -ENOENT, -EACCES and the like from the operating system
 * Since: 0.1
 */
int btrkit_io_open(const char *spec, unsigned flags, struct btrkit_io **ret,
		   struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * A device in memory of @p size zero bytes, readable and writable.
 *
 * @return 0, -EINVAL for a size that memory cannot hold, -ENOMEM
 * Since: 0.1
 */
int btrkit_io_memory(uint64_t size, struct btrkit_io **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** What a fault-injecting backend does with calls that reach it. Since: 0.1 */
struct btrkit_io_faults {
	uint64_t fail_read_after;	/**< this many reads succeed, then every one fails; UINT64_MAX: never */
	uint64_t fail_write_after;	/**< likewise writes and flushes */
	uint64_t truncate_at;		/**< the device ends here; UINT64_MAX: at its own end */
	int error;			/**< the negative errno of a failing call, 0 for -EIO */
	uint64_t reserved[4];	/**< 0 */
};

#define BTRKIT_IO_FAULTS_INIT { UINT64_MAX, UINT64_MAX, UINT64_MAX, 0, { 0 } }

/**
 * Wraps @p below, which it owns from then on, and lets calls fail as @p faults says.
 *
 * @return 0 or -ENOMEM (@p below stays the caller's)
 * Since: 0.1
 */
int btrkit_io_fault(struct btrkit_io *below, const struct btrkit_io_faults *faults, struct btrkit_io **ret,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** Closes and frees a backend. NULL is allowed. @return NULL. Since: 0.1 */
struct btrkit_io *btrkit_io_close(struct btrkit_io *io);

/**
 * Reads exactly @p len bytes at @p offset.
 *
 * @param buf	gets them; undefined after a failure
 * @return 0; -ENODATA if the device ends before the range does; -EIO
 * Since: 0.1
 */
int btrkit_io_read(struct btrkit_io *io, uint64_t offset, void *buf, size_t len,
		   struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Writes exactly @p len bytes at @p offset.
 *
 * @param buf	has them
 * @return 0; -EROFS for a read-only backend; -ENOSPC past the end; -EIO
 * Since: 0.1
 */
int btrkit_io_write(struct btrkit_io *io, uint64_t offset, const void *buf, size_t len,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** Makes what was written durable. @return 0, -EROFS, -EIO. Since: 0.1 */
int btrkit_io_flush(struct btrkit_io *io, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Tells the device that the contents of a range are no longer needed. What is read there afterwards is undefined. A
 * backend that cannot do it does nothing.
 *
 * @return 0; -EROFS for a read-only backend; -ENOSPC past the end; -EIO
 * Since: 0.1
 */
int btrkit_io_discard(struct btrkit_io *io, uint64_t offset, uint64_t len, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Makes sure that writes to a range will not fail for want of room: a sparse file gets the blocks it lacks there. What
 * is read there stays the same. A backend that cannot do it does nothing.
 *
 * @return 0; -EROFS for a read-only backend; -ENOSPC; -EIO
 * Since: 0.1
 */
int btrkit_io_reserve(struct btrkit_io *io, uint64_t offset, uint64_t len, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Gives an image file another size: what is added is zeros, and takes no room on the medium. No other thread may use
 * the backend meanwhile.
 *
 * @param size	in bytes
 * @return 0; -EROFS; -EOPNOTSUPP: a block device, a part of a file, or a backend that cannot do it; -EFBIG, -EIO,
 *	   -ENOMEM
 * Since: 0.1
 */
int btrkit_io_resize(struct btrkit_io *io, uint64_t size, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Makes a range of an image file what an open file has from its byte @p from on, without copying it: they share their
 * blocks until one of them is written to. The filesystem that holds both must be able to, and all numbers are multiples
 * of its blocks.
 *
 * @param fd	of the host, open for reading
 * @return 0; -EROFS; -ENOSPC past the end; -EOPNOTSUPP: a block device, a backend that cannot do it; -EXDEV, -EINVAL
 *	   and what else the system says
 * Since: 0.1
 */
int btrkit_io_clone(struct btrkit_io *io, uint64_t offset, int fd, uint64_t from, uint64_t len,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Looks for a filesystem, partition table or other signature by libblkid, without regard to what this library reads.
 *
 * @param type	the name of what was found, as libblkid has it (`ext4`, `btrfs`, `dos`), or "an unfinished undo";
 *		always terminated
 * @param size	room in @p type
 * @return 0: nothing was found; 1: @p type names it; -EOPNOTSUPP in a build without libblkid, and for a device that was
 *	   not opened by btrkit_io_open(); -EIO
 * Since: 0.1
 */
int btrkit_io_signature(struct btrkit_io *io, char *type, size_t size, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Looks among all block devices, by libblkid, for a btrfs filesystem with that fsid; @p but are not looked at.
 *
 * @param name	where it is, always terminated
 * @param fsid	16 bytes
 * @param n	how many are not looked at
 * @param size	room in @p name
 * @return 0: nothing was found, or this build is without libblkid; 1: @p name is the path of a device that has it;
 *	   -ENOMEM
 * Since: 0.1
 */
int btrkit_io_find_fsid(const uint8_t fsid[16], struct btrkit_io *const *but, size_t n, char *name, size_t size,
			struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** Hears what reaches a recording backend. Each may be NULL. Since: 0.1 */
struct btrkit_io_record_ops {
	/** Before a write: @p data holds its @p len bytes. A negative errno fails it. */
	int (*write)(void *ctx, uint64_t offset, const void *data, size_t len);
	/** Before a flush. A negative errno fails it. */
	int (*flush)(void *ctx);
	/** Before a discard. */
	int (*discard)(void *ctx, uint64_t offset, uint64_t len);
	void (*reserved[4])(void);	/**< NULL */
};

/**
 * Wraps @p below, which it owns from then on, and tells @p ops of each write, flush and discard before it is done: what
 * crash states are made from.
 *
 * @return 0 or -ENOMEM (@p below stays the caller's)
 * Since: 0.1
 */
int btrkit_io_record(struct btrkit_io *below, const struct btrkit_io_record_ops *ops, void *ctx, struct btrkit_io **ret,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;

BTRKIT_END_DECLS

#endif
