/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_BTRKIT_H
#define BTRKIT_BTRKIT_H

/**
 * @file
 * libbtrkit reads, checks, creates and modifies filesystems in the btrfs on-disk format without mounting them.
 *
 * Handles. A device is a struct btrkit_io (io.h): a block device, an image file, a part of either, memory, or a backend
 * that a program implements itself. One or more devices form a filesystem, struct btrkit_fs (filesystem.h), which owns
 * them once it is open. The handle keeps the superblock, the chunks and devices, and a cache of tree blocks; it keeps
 * nothing else of what it reads.
 *
 * Reading: devices, chunks and used ranges (device.h); paths, inodes and directories (inode.h); subvolumes
 * (subvolume.h); file contents (file.h); file extents and whether they are shared (fiemap.h); the files that use a
 * logical address (reference.h); space usage by subvolume (usage.h) and by directory (usage_paths.h); free space and
 * its caches (space.h).
 *
 * More: subvolumes, tree statistics and differences (inspect.h). dump.h prints superblocks, trees and items as they are
 * on disk. extract.h copies files out, and check.h checks all structures against each other.
 *
 * Writing: mkfs.h creates filesystems, empty or filled. Changes to an existing filesystem are part of a transaction,
 * struct btrkit_txn (transaction.h), and their functions begin with btrkit_txn_: see modify.h and subvolume_modify.h.
 * Only the free space caches are converted in transactions of their own (space.h). undo.h restores what a program
 * overwrote on its devices.
 *
 * Names. A function name consists of the noun that it is about and a verb. A function that calls a callback for each of
 * several things is a plural: btrkit_devices(), btrkit_inode_paths(). An iterator ends in _next and returns 0 for an
 * item and 1 at the end. A function that prints begins with btrkit_dump_, and passes its output to a
 * btrkit_write_fn, in a format of enum btrkit_format.
 *
 * Parameters that mean the same everywhere. Comments on functions do not repeat them:
 * - @c fs: an open filesystem.
 * - @c io: an open device.
 * - @c txn: an open transaction.
 * - @c f, @c u, @c p, @c d: the open file, usage, directories or walk, made by another function.
 * - @c root: objectid of a subvolume; #BTRKIT_TOP_LEVEL is the top level.
 * - @c inode, @c dir: inode number of a file or of a directory in that subvolume; #BTRKIT_TOP_INODE is the root
 *   directory of each subvolume.
 * - @c name, @c len: name of a directory entry and its length in bytes. It may hold any bytes but 0 and slash, and need
 *   not be terminated.
 * - @c offset: position in the device or file, in bytes.
 * - @c fn, @c ctx: a callback, and its first argument.
 * - @c write, @c ctx: the callback that receives the output, and its first argument.
 * - @c format: one of enum btrkit_format.
 * - @c opts: options; NULL selects all defaults, unless the comment says otherwise.
 * - @c ret: receives the result, on success only.
 * - @c err: receives the details of a failure; may be NULL.
 *
 * Ownership. Each object that a function returns has one function that frees it. That function accepts NULL, and
 * returns NULL unless it can fail. Free whatever was made from a filesystem, such as files and printers, before you
 * close the filesystem, unless a comment says otherwise. What a callback receives is valid only during the call, unless
 * a comment says otherwise. Strings and arrays in options remain the caller's and are not kept. Callbacks in options,
 * and their contexts, must stay valid as long as the object that was made with them.
 *
 * Units. Sizes, lengths, offsets and addresses are in bytes. A logical address belongs to the filesystem's own address
 * space, which chunks map to devices. A physical address counts from the start of a device. Constants that begin with
 * BTRFS_ are those of linux/btrfs_tree.h.
 *
 * Errors. A function that can fail returns an int: 0, or a negative errno. error.h lists them. Details go to the
 * caller's struct btrkit_error. Results are written on success only, unless a comment says otherwise. An index, such as
 * the number of an owner, must be smaller than the count that the matching _num function returns; this is not checked.
 *
 * Callbacks. A callback returns 0 to continue, or a negative errno, which stops the work and which the function then
 * returns. The effect of a positive value is undefined. When a callback stops a function, the function either describes
 * that in its struct btrkit_error or leaves the struct unchanged. A callback may thus put its own details there:
 * initialise it with BTRKIT_ERROR_INIT; if the code is still BTRKIT_OK, the library has added nothing. A callback that
 * receives items one by one may call functions that read the filesystem, but must not change or close it. Functions of
 * a backend, and callbacks for progress, damage or repairs, must not call the library on that filesystem at all.
 *
 * Threads. Any number of threads may read one filesystem handle at once. Any number of threads may also use one
 * transaction at once, through functions that begin with btrkit_txn_. But functions that read the filesystem in other
 * ways may then find half-changed trees and report corruption, so no thread may use them while another thread changes
 * or flushes something. Functions that need the extent tree, such as those for sharedness, usage and checks, fail with
 * -EBUSY while a transaction is open. Opening, closing, and starting, committing and aborting a transaction need
 * exclusive use of the handle. The library has no mutable data of its own. Some functions start threads, which have
 * ended when the function returns, except for one that prepares memory for a transaction: it ends with the transaction.
 * Callbacks are called by one thread at a time, not always the caller's, unless a comment says otherwise.
 *
 * ABI. Structs that callers fill in or have filled in end with reserved members, which must be 0: initialise options
 * with the macro that ends in _INIT. Unknown flags are refused. Structs that callbacks receive, one at a time, may grow
 * at their end. Structs without reserved members that are passed in arrays or embedded in other structs never change.
 *
 * The library does not print, exit or start processes, and needs no btrfs support in the kernel. It treats every byte
 * that it reads from a device as untrusted and validates it before use.
 *
 * Caveats:
 * - Mounted filesystems. BTRKIT_IO_EXCLUSIVE refuses mounted devices. Without it a mounted filesystem can be read, but
 *   it may change meanwhile: the result may be reported as corruption, or be inconsistent. Never write to a mounted
 *   filesystem.
 * - Crashes. A transaction that was not committed leaves the filesystem as it was. btrkit_mkfs() leaves no filesystem
 *   until it is done. Other functions that write say what a crash leaves.
 * - Missing devices. Whatever the other devices hold can be read; the filesystem cannot be written.
 * - Log trees, which Linux leaves after a crash and replays at the next mount, are shown and checked but not replayed:
 *   files are as of the last commit. A filesystem with a log tree cannot be written.
 * - Unsupported for reading: extent-tree-v2, remap-tree, and file data with a raid-stripe-tree. Also unsupported for
 *   writing: zoned devices, seed devices, and unfinished balances and device replaces. btrkit_features() lists all
 *   features; an error message names the feature that was refused.
 * - fs-verity signatures and hashes are not verified.
 *
 * btrkit-format(5) describes the JSON output, and libbtrkit(3) lists all functions on one page.
 */

#include <btrkit/check.h>
#include <btrkit/device.h>
#include <btrkit/dump.h>
#include <btrkit/error.h>
#include <btrkit/extract.h>
#include <btrkit/feature.h>
#include <btrkit/file.h>
#include <btrkit/fiemap.h>
#include <btrkit/filesystem.h>
#include <btrkit/inode.h>
#include <btrkit/inspect.h>
#include <btrkit/io.h>
#include <btrkit/iterate.h>
#include <btrkit/mkfs.h>
#include <btrkit/modify.h>
#include <btrkit/modify_read.h>
#include <btrkit/reference.h>
#include <btrkit/space.h>
#include <btrkit/subvolume.h>
#include <btrkit/subvolume_modify.h>
#include <btrkit/transaction.h>
#include <btrkit/types.h>
#include <btrkit/undo.h>
#include <btrkit/usage.h>
#include <btrkit/usage_paths.h>
#include <btrkit/version.h>

#endif
