/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_IO_H
#define BTRKIT_IO_H

/**
 * @file
 * Devices: the functions that a backend implements, and the backends of the library.
 *
 * Several threads call a backend at once, including threads that the library starts. All functions of a backend but
 * resize() and close() must allow that. They return 0 or any negative errno, and transfer all of the bytes or fail.
 * They are called only for ranges within the device, as given by io->size, but at any offset and of any length: a
 * backend that needs aligned requests has to align them itself. After an error the contents of the buffer, or of the
 * range that was written, are undefined.
 *
 * When reading, writing, flushing, discarding or reserving fails, the library reports most errnos of a backend as -EIO,
 * and names the original one in the message. The exceptions are -ENOMEM; -ENXIO from reading; and -ENOSPC and -EROFS
 * from the others.
 */

#include <btrkit/types.h>

BTRKIT_BEGIN_DECLS

/** State of a zone of a zoned device. Since: 0.1 */
enum btrkit_zone_state {
	BTRKIT_ZONE_CONVENTIONAL,	/**< can be written anywhere, like other devices */
	BTRKIT_ZONE_EMPTY,		/**< can be written from its start */
	BTRKIT_ZONE_PARTLY,		/**< can be written from its write pointer */
	BTRKIT_ZONE_FULL		/**< cannot be written until it is reset */
};

/** A zone of a zoned device. All numbers are in bytes. Since: 0.1 */
struct btrkit_zone {
	uint64_t start, length;		/**< the length is a power of two, except perhaps that of the last zone */
	uint64_t capacity;		/**< how much of the zone can be written */
	uint64_t write_pointer;		/**< from the start of the device; only of a sequential zone that is not full */
	enum btrkit_zone_state state;
};

/**
 * Functions of a backend. A program can implement its own backend by filling in this table, which must stay valid until
 * the device is closed. read() and close() are required, and write() and flush() for a backend that can be written. All
 * others may be NULL.
 *
 * Since: 0.1
 */
struct btrkit_io_ops {
	/** Reads exactly @p len bytes at @p offset; -ENXIO if the device ends earlier, and for nothing else. */
	int (*read)(struct btrkit_io *io, uint64_t offset, void *buf, size_t len);
	/** Writes exactly @p len bytes at @p offset. NULL for a read-only backend. */
	int (*write)(struct btrkit_io *io, uint64_t offset, const void *buf, size_t len);
	/** Returns when everything that was written has reached stable storage. NULL for a read-only backend. */
	int (*flush)(struct btrkit_io *io);
	/** Discards the contents of a range. May be NULL, or do nothing. */
	int (*discard)(struct btrkit_io *io, uint64_t offset, uint64_t len);
	/**
	 * Allocates space for a range, so that writes to it do not fail for lack of space. May be NULL, or do nothing.
	 */
	int (*reserve)(struct btrkit_io *io, uint64_t offset, uint64_t len);
	/**
	 * Changes the size of the device; added bytes are zero. The caller updates io->size. May be NULL: unsupported.
	 */
	int (*resize)(struct btrkit_io *io, uint64_t size);
	/**
	 * Makes a range share the blocks of the open file @p fd of the host, from byte @p from. May be NULL:
	 * unsupported.
	 */
	int (*clone)(struct btrkit_io *io, uint64_t offset, int fd, uint64_t from, uint64_t len);
	/** Announces that a range will be read soon. May be NULL. */
	void (*prefetch)(struct btrkit_io *io, uint64_t offset, uint64_t len);
	/**
	 * Describes the zone that contains @p offset, which lies within the device. Returns 0, or 1 if the device is
	 * not zoned. NULL: it is not zoned.
	 */
	int (*zone)(struct btrkit_io *io, uint64_t offset, struct btrkit_zone *ret);
	/**
	 * Adds details to a failure: called after one of the other functions returned @p err->err. May change @p err,
	 * but not err->err. May be NULL.
	 */
	void (*explain)(struct btrkit_io *io, struct btrkit_error *err);
	/**
	 * Frees the backend. Called once, by btrkit_io_close() or when the filesystem that owns the device is closed.
	 */
	void (*close)(struct btrkit_io *io);
	void (*reserved[8])(void);	/**< NULL */
};

/**
 * A device. A backend makes this the first member of its own struct, and fills it in before anything uses it.
 *
 * Since: 0.1
 */
struct btrkit_io {
	const struct btrkit_io_ops *ops;
	uint64_t size;		/**< bytes */
	char name[256];		/**< for messages: the path as the user gave it, terminated */
	uint64_t reserved[4];	/**< 0 */
};

/** Flags of btrkit_io_open(). Since: 0.1 */
enum btrkit_io_flags {
	BTRKIT_IO_READ = 0,
	BTRKIT_IO_WRITE = 1 << 0,	/**< open for reading and writing */
	/**
	 * With BTRKIT_IO_WRITE: keeps other programs from using the device while it is open. A block device is opened
	 * with O_EXCL and locked with flock(); a file, or the part of it that is used, is locked for writing. What is
	 * mounted, locked by another program, or a file or device that a loop device shows, is refused with -EBUSY.
	 * Conflicts are checked by byte ranges, through partitions and nested loop devices: other parts of the same
	 * file or disk may be in use. A partition of an unused loop device is claimed, so that it stays unused.
	 *
	 * Without BTRKIT_IO_WRITE: makes sure that nothing modifies what is read. A block device is opened with O_EXCL.
	 * What is mounted, or what a loop device that is in use shows, is refused with -EBUSY. Nothing is locked.
	 */
	BTRKIT_IO_EXCLUSIVE = 1 << 1
};

/**
 * Opens a block device or an image file.
 *
 * @p spec is a path, or `PATH?offset=N[&size=N]` or `PATH?partition=N` for a filesystem inside a disk image. N is in
 * bytes and takes the suffixes k m g t p e; partitions are numbered as by libblkid. If a part of a block device lies in
 * a partition that the kernel knows, the device of that partition is used. Directories, character devices, fifos and
 * other kinds of files are refused. What the system has cached of a block device is dropped: a mounted filesystem
 * writes past that cache.
 *
 * @param spec	the device, as above; not kept
 * @param flags	enum btrkit_io_flags
 * @param ret	receives the device; free it with btrkit_io_close()
 * @return 0; -EINVAL: @p spec is malformed, or no device or file; -EMEDIUMTYPE: a directory, to be opened for reading;
 *	   -EBUSY: in use; -EROFS; -ENOENT, -EACCES and other errors of open(2)
 * Since: 0.1
 */
int btrkit_io_open(const char *spec, unsigned flags, struct btrkit_io **ret,
		   struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Creates a device in memory that can be read and written and holds @p size zero bytes.
 *
 * @param size	in bytes, not 0
 * @param ret	receives the device; free it with btrkit_io_close()
 * @return 0; -EINVAL: 0, or too large for memory; -ENOMEM
 * Since: 0.1
 */
int btrkit_io_memory(uint64_t size, struct btrkit_io **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** When a fault-injecting device fails. Since: 0.1 */
struct btrkit_io_faults {
	uint64_t fail_read_after;	/**< this many reads succeed, all later ones fail; UINT64_MAX: none fails */
	uint64_t fail_write_after;	/**< the same for writes and flushes, counted together */
	uint64_t truncate_at;		/**< the device is cut to this size in bytes; UINT64_MAX: not cut */
	int error;			/**< the negative errno of a call that fails; 0: -EIO */
	uint64_t reserved[4];	/**< 0 */
};

#define BTRKIT_IO_FAULTS_INIT { UINT64_MAX, UINT64_MAX, UINT64_MAX, 0, { 0 } }

/**
 * Wraps a device so that calls fail as @p faults says.
 *
 * @param below	the device; owned by the wrapper on success, and closed with it
 * @param faults	copied
 * @param ret	receives the wrapper; free it with btrkit_io_close()
 * @return 0; -ENOMEM: @p below remains the caller's
 * Since: 0.1
 */
int btrkit_io_fault(struct btrkit_io *below, const struct btrkit_io_faults *faults, struct btrkit_io **ret,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** Closes a device and frees it. NULL is allowed. @return NULL. Since: 0.1 */
struct btrkit_io *btrkit_io_close(struct btrkit_io *io);

/**
 * Reads exactly @p len bytes at @p offset.
 *
 * @param buf	receives the bytes; undefined after a failure
 * @param len	in bytes
 * @return 0; -ENXIO: the range ends after the device does; -EIO or another errno of the backend
 * Since: 0.1
 */
int btrkit_io_read(struct btrkit_io *io, uint64_t offset, void *buf, size_t len,
		   struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Writes exactly @p len bytes at @p offset.
 *
 * @param buf	the bytes
 * @param len	in bytes
 * @return 0; -EROFS: a read-only device; -ENOSPC: the range ends after the device does; -EIO or another errno of the
 *	   backend
 * Since: 0.1
 */
int btrkit_io_write(struct btrkit_io *io, uint64_t offset, const void *buf, size_t len,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** Makes everything that was written durable. @return 0; -EROFS; -EIO or another errno of the backend. Since: 0.1 */
int btrkit_io_flush(struct btrkit_io *io, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Discards the contents of a range: what is read there afterwards is undefined. Does nothing if the backend cannot
 * discard.
 *
 * @param len	in bytes
 * @return as btrkit_io_write()
 * Since: 0.1
 */
int btrkit_io_discard(struct btrkit_io *io, uint64_t offset, uint64_t len, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Allocates space for a range, so that later writes to it do not fail for lack of space: a sparse file gets the blocks
 * that it lacks there. The contents stay the same. Does nothing if the backend cannot do it.
 *
 * @param len	in bytes
 * @return as btrkit_io_write(); -ENOSPC also if the medium is full
 * Since: 0.1
 */
int btrkit_io_reserve(struct btrkit_io *io, uint64_t offset, uint64_t len, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Changes the size of an image file. Added bytes are zero and take no space on the medium. No other thread may use the
 * device meanwhile.
 *
 * @param size	new size in bytes
 * @return 0; -EROFS; -EOPNOTSUPP: a block device, a part of a file, or a backend without resize(); -EFBIG, -EIO,
 *	   -ENOMEM, or another errno of the backend
 * Since: 0.1
 */
int btrkit_io_resize(struct btrkit_io *io, uint64_t size, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Makes a range of an image file share the blocks of another open file instead of copying them (a reflink). Both files
 * must be on one filesystem that supports this, and all numbers must be multiples of its block size.
 *
 * @param fd	the file to share with, open for reading; remains the caller's
 * @param from	where the range begins in that file, in bytes
 * @param len	in bytes
 * @return 0; -EROFS; -ENOSPC: the range ends after the device does; -EOPNOTSUPP: a block device, or a backend without
 *	   clone(); -EXDEV, -EINVAL, or another errno of the backend
 * Since: 0.1
 */
int btrkit_io_clone(struct btrkit_io *io, uint64_t offset, int fd, uint64_t from, uint64_t len,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Looks for the signature of any filesystem or partition table on a device, using libblkid.
 *
 * @param type	receives the name that libblkid has for it (`ext4`, `btrfs`, `dos`), or "an unfinished undo"; always
 *		terminated
 * @param size	size of @p type in bytes
 * @return 0: nothing found; 1: found; -EOPNOTSUPP: a build without libblkid, or a device that was not opened by
 *	   btrkit_io_open(); -EIO, -ENOMEM
 * Since: 0.1
 */
int btrkit_io_signature(struct btrkit_io *io, char *type, size_t size, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Looks for a btrfs filesystem with a given fsid on all block devices, using libblkid.
 *
 * @param fsid	16 bytes
 * @param but	devices to ignore
 * @param n	number of devices in @p but
 * @param name	receives the path of the first device found; always terminated
 * @param size	size of @p name in bytes
 * @return 0: nothing found, or a build without libblkid; 1: found; -ENOMEM
 * Since: 0.1
 */
int btrkit_io_find_fsid(const uint8_t fsid[16], struct btrkit_io *const *but, size_t n, char *name, size_t size,
			struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** Callbacks of a recording device. Each may be NULL. Since: 0.1 */
struct btrkit_io_record_ops {
	/** Before a write of the @p len bytes at @p data. A negative errno makes the write fail. */
	int (*write)(void *ctx, uint64_t offset, const void *data, size_t len);
	/** Before a flush. A negative errno makes it fail. */
	int (*flush)(void *ctx);
	/** Before a discard. A negative errno makes it fail. */
	int (*discard)(void *ctx, uint64_t offset, uint64_t len);
	void (*reserved[4])(void);	/**< NULL */
};

/**
 * Wraps a device, and reports each write, flush and discard before it is done. Tests use it to construct the states
 * that a crash can leave.
 *
 * @param below	the device; owned by the wrapper on success, and closed with it
 * @param ops	copied
 * @param ret	receives the wrapper; free it with btrkit_io_close()
 * @return 0; -ENOMEM: @p below remains the caller's
 * Since: 0.1
 */
int btrkit_io_record(struct btrkit_io *below, const struct btrkit_io_record_ops *ops, void *ctx, struct btrkit_io **ret,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;

BTRKIT_END_DECLS

#endif
