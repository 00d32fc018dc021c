/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_BTRKIT_H
#define BTRKIT_BTRKIT_H

/**
 * @file
 * libbtrkit reads, checks, makes and changes filesystems in the on-disk format of btrfs, without mounting them.
 *
 * Handles. A device is a struct btrkit_io (io.h): a block device, an image file, a part of one, memory, or what a
 * program makes of its own functions. One or more of them make a filesystem, struct btrkit_fs (filesystem.h), which
 * owns them from then on and knows chunks, trees and features; it keeps a cache of tree blocks, and nothing else of
 * what it has read. What reads it takes that handle: devices, chunks and what of devices is used (device.h), paths,
 * inodes and directories (inode.h), subvolumes (subvolume.h), contents of files (file.h), extents with their sharedness
 * (fiemap.h), the files that have an address (reference.h), who owns which space (usage.h) and where it lies
 * (usage_paths.h), free space and the caches of it (space.h). Others print: superblocks and trees (dump.h), lists of
 * files (listing.h), of subvolumes, trees and differences (inspect.h); bring files out (extract.h); or hold every
 * structure against every other (check.h). mkfs.h makes filesystems, empty or filled. What changes one is part of a
 * transaction, struct btrkit_txn (transaction.h), and begins with btrkit_txn_: see modify.h and subvolume_modify.h;
 * only the caches of free space are changed in transactions of their own (space.h). undo.h takes back what was written
 * to devices.
 *
 * Names. A function is called by the noun that it is about and what it does with it. What calls a function for each of
 * many is a plural: btrkit_devices(), btrkit_inode_paths(). What gives one after the other ends with _next and returns
 * 0 for one, 1 at the end. What prints ends with _print and takes an enum btrkit_format and a btrkit_write_fn.
 *
 * Parameters that are the same everywhere, and of which comments say no more:
 * - @c fs: the filesystem, open.
 * - @c io: the device, open.
 * - @c txn: the transaction, open.
 * - @c f, @c u, @c p, @c printer: the file, the answer, the directories, the printer that another function has made.
 * - @c root: objectid of the subvolume that is meant; #BTRKIT_TOP_LEVEL is the top level.
 * - @c inode, @c dir: number of an inode, or of a directory's inode, in that subvolume; #BTRKIT_TOP_INODE is that of
 *   its root directory.
 * - @c name, @c len: a name in a directory, of any bytes but 0 and slash, not terminated, and how many bytes it has.
 * - @c offset: where in the device or the file, in bytes.
 * - @c fn, @c ctx: the function that is called, and what it is called with first.
 * - @c write, @c ctx: what is printed goes to @c write, which is called with @c ctx first.
 * - @c format: one of enum btrkit_format.
 * - @c opts: how to do it; where the comment does not say otherwise NULL means all defaults.
 * - @c ret: gets the result, on success only.
 * - @c err: gets what went wrong; NULL: nobody wants to know.
 *
 * Ownership. What a function gives to be freed has one function that does so, which takes NULL too and, but for what
 * can fail then, returns NULL. What is made of a filesystem, such as a file or a printer, is freed before that is
 * closed, unless its comment says otherwise. What a callback is given is valid during the call only, unless its comment
 * says otherwise. Strings and arrays in options are the caller's and are not kept; functions in them, and their
 * contexts, are needed as long as what was made with them.
 *
 * Units. Sizes, lengths, offsets and addresses are bytes. A logical address is one of the filesystem's own address
 * space, which chunks map to devices; a physical address counts from the start of a device. Numbers that begin with
 * BTRFS_ are those of linux/btrfs_tree.h.
 *
 * Errors. What can fail returns an int: 0 or a negative errno, which error.h lists, and what it has to tell besides
 * goes to a struct btrkit_error of the caller. Results are written on success only, unless a comment says otherwise.
 * Numbers of what a handle counts, such as owners, are below what the function with _num tells; others are not looked
 * for.
 *
 * Callbacks. A callback returns 0, or a negative errno, which ends the work and is returned; what comes of a positive
 * value is not defined. The error of a call that was ended so either says that, or is as it was before, so that a
 * callback can put there what it has to tell: begin with BTRKIT_ERROR_INIT, and there is nothing told when the code is
 * BTRKIT_OK. What is called for each of many may read the filesystem by other calls, and not change or close it;
 * functions of a backend, and those that are told of progress, of damage or of a repair, may not do that either.
 *
 * Threads. Many threads may read one filesystem handle at once. Many may work in one transaction at once, by functions
 * that begin with btrkit_txn_; but who reads the filesystem by others meanwhile may find trees that are half changed,
 * and takes that for damage: no thread reads while another changes something, or flushes. Opening, closing, beginning,
 * committing and aborting are for one that is alone with the handle. The library has no data of its own that changes.
 * Some functions start threads, all of which have ended when they return; callbacks then come from one thread at a
 * time, unless their comments say otherwise, and not always from that of the caller.
 *
 * Growth. Structs that callers fill, or have filled, end with reserved members, which are 0: initialise options by the
 * macro that ends with _INIT. Unknown flags are refused. What callbacks are given, one at a time, may grow at its end.
 * Structs without reserved members that are given in arrays, or lie in others, never change.
 *
 * The library prints nothing, never exits, starts no processes, and asks nothing of the kernel's btrfs. Every byte that
 * comes from a device is held to be hostile and is judged before it is used.
 *
 * Caveats:
 * - A mounted filesystem. BTRKIT_IO_EXCLUSIVE refuses devices that are mounted. Without it what is mounted can be read,
 *   but what is read may be of several moments, and is then told as damage or does not fit together. Never write to
 *   what is mounted.
 * - A crash. A transaction that was not committed leaves the filesystem as it was before; btrkit_mkfs() leaves none
 *   before it is done; whatever else writes says in its comment what a crash leaves.
 * - Devices that are missing. What the others have is read; nothing is written.
 * - Log trees, which a crash of a mounted filesystem leaves and Linux replays at the next mount, are shown, and
 *   checked, but not replayed: files are as they were at the last commit. Such filesystems are not written.
 * - Not supported for reading: extent-tree-v2, remap-tree, and data in a raid-stripe-tree. For writing also: zoned
 *   devices, seed devices, unfinished balances and replaces. btrkit_features() has all features; what is refused is
 *   named in the message.
 * - Seals of fs-verity are not verified.
 *
 * btrkit-format(5) describes the JSON that functions print, libbtrkit(3) has all functions on a page.
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
#include <btrkit/listing.h>
#include <btrkit/mkfs.h>
#include <btrkit/modify.h>
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
