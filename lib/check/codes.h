/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_CODES_H
#define BTRKIT_CHECK_CODES_H

/*
 * All kinds of findings: CODE(our name, the public one without its "BTR-", severity, meaning). They are told in this
 * order: what other findings may come of stands first.
 */

#define CHECK_CODES_SUPER(CODE)                                                                                       \
	CODE(SUPER_PRIMARY, "SUPER-PRIMARY", REFUSED, "the primary superblock of a device is damaged")                \
	CODE(SUPER_FIELD, "SUPER-FIELD", REFUSED, "a field of the superblock that Linux refuses")                     \
	CODE(SUPER_FEATURE, "SUPER-FEATURE", REFUSED, "features that are not known, or that do not go together")      \
	CODE(SUPER_UNFINISHED, "SUPER-UNFINISHED", REFUSED,                                                           \
	     "flags of the superblock say that something was left half done")                                         \
	CODE(SUPER_VALUE, "SUPER-VALUE", MISBEHAVES, "a field of the superblock contradicts others or what there is") \
	CODE(SUPER_STALE, "SUPER-STALE", MISBEHAVES, "a device was not there when the others were written last")      \
	CODE(SUPER_COPY, "SUPER-COPY", MISBEHAVES,                                                                    \
	     "a copy of the superblock is damaged, or differs from another of the same generation")                   \
	CODE(SUPER_NEW, "SUPER-NEW", MISBEHAVES, "a mirror of the superblock is newer than the primary one")          \
	CODE(SUPER_OLD, "SUPER-OLD", LEFTOVER, "a mirror of the superblock is older than the primary one")            \
	CODE(SUPER_BACKUP, "SUPER-BACKUP", LEFTOVER, "backup roots of the superblock name what is no root of a tree")

#define CHECK_CODES_VOLUME(CODE)                                                                                       \
	CODE(CHUNK_SHAPE, "CHUNK-SHAPE", REFUSED,                                                                      \
	     "a chunk has a key or a number of stripes that no chunk of its profile has")                              \
	CODE(CHUNK_OVERLAP, "CHUNK-OVERLAP", REFUSED, "a chunk begins inside the one before it")                       \
	CODE(CHUNK_GROUP, "CHUNK-GROUP", REFUSED, "a chunk has no block group")                                        \
	CODE(CHUNK_DEVICE, "CHUNK-DEVICE", REFUSED,                                                                    \
	     "a copy of a chunk lies on a device that the filesystem does not have")                                   \
	CODE(CHUNK_EXTENT, "CHUNK-EXTENT", REFUSED, "a copy of a chunk is in no device extent")                        \
	CODE(SYSTEM_CHUNK, "SYSTEM-CHUNK", REFUSED, "system chunks of the superblock and of the chunk tree differ")    \
	CODE(DEVEXT_CHUNK, "DEVICE-EXTENT-CHUNK", REFUSED, "a device extent is no copy of a chunk")                    \
	CODE(DEVEXT_DIFFERS, "DEVICE-EXTENT-DIFFERS", REFUSED, "a device extent says something else than its chunk")   \
	CODE(DEVEXT_OVERLAP, "DEVICE-EXTENT-OVERLAP", REFUSED, "a device extent begins inside the one before it")      \
	CODE(DEVEXT_END, "DEVICE-EXTENT-END", REFUSED, "a device extent ends behind its device")                       \
	CODE(DEVEXT_DEVICE, "DEVICE-EXTENT-DEVICE", REFUSED,                                                           \
	     "a device extent on a device that the filesystem does not have")                                          \
	CODE(DEVICE_MISSING, "DEVICE-MISSING", REFUSED, "a device of the filesystem is not there")                     \
	CODE(DEVICE_IDENTITY, "DEVICE-IDENTITY", REFUSED, "a device is not the one that its item describes")           \
	CODE(DEVICE_SIZE, "DEVICE-SIZE", REFUSED, "a device is smaller than its item says")                            \
	CODE(DEVICE_TOTAL, "DEVICE-TOTAL", REFUSED, "the superblock says fewer bytes than the devices have")           \
	CODE(DEVICE_SUM, "DEVICE-SUM", MISBEHAVES,                                                                     \
	     "the superblock says more bytes than the devices have, or not those of seeds")                            \
	CODE(DEVICE_COUNT, "DEVICE-COUNT", MISBEHAVES, "the superblock counts other devices than there are")           \
	CODE(DEVICE_USED, "DEVICE-USED", MISBEHAVES, "a device counts other bytes as used than it has device extents") \
	CODE(DEVICE_COPY, "DEVICE-COPY", MISBEHAVES,                                                                   \
	     "a superblock says something else of its device than the device's item")                                  \
	CODE(GROUP_CHUNK, "GROUP-CHUNK", REFUSED, "a block group has no chunk of its own")                             \
	CODE(GROUP_DIFFERS, "GROUP-DIFFERS", REFUSED, "length or flags of a block group are not its chunk's")

#define CHECK_CODES_BLOCK(CODE)                                                                                 \
	CODE(BLOCK_READ, "BLOCK-READ", REFUSED, "no copy of a tree block can be read")                          \
	CODE(BLOCK_CSUM, "BLOCK-CSUM", REFUSED, "no copy of a tree block has the checksum that it says")        \
	CODE(BLOCK_HEADER, "BLOCK-HEADER", REFUSED,                                                             \
	     "the header of a tree block is not what its address and its parent say")                           \
	CODE(BLOCK_ORDER, "BLOCK-ORDER", REFUSED,                                                               \
	     "keys of a tree block are out of order, or items do not lie as they should")                       \
	CODE(BLOCK_FLAGS, "BLOCK-FLAGS", REFUSED, "a tree block lacks the flag that says it was written")       \
	CODE(BLOCK_PARENT, "BLOCK-PARENT", REFUSED, "the keys of a tree block do not fit what its parent says") \
	CODE(BLOCK_CYCLE, "BLOCK-CYCLE", REFUSED, "a tree block is reached in a way that it cannot be")         \
	CODE(BLOCK_COPY, "BLOCK-COPY", MISBEHAVES, "a copy of a tree block is damaged, and another one is not") \
	CODE(ITEM_INVALID, "ITEM-INVALID", REFUSED, "an item that Linux refuses for what is in it")             \
	CODE(ITEM_TREE, "ITEM-TREE", MISBEHAVES, "an item in a tree that has no such items")                    \
	CODE(ITEM_UNKNOWN, "ITEM-UNKNOWN", LEFTOVER, "an item of a type that Linux does not know")              \
	CODE(TREE_MISSING, "TREE-MISSING", REFUSED, "a tree that every filesystem has is not there")

#define CHECK_CODES_EXTENT(CODE)                                                                              \
	CODE(EXTENT_OVERLAP, "EXTENT-OVERLAP", REFUSED, "an extent begins inside the one before it")          \
	CODE(EXTENT_PLACE, "EXTENT-PLACE", REFUSED,                                                           \
	     "an extent that does not lie in one block group, or not in one of its kind")                     \
	CODE(EXTENT_SUPER, "EXTENT-SUPER", MISBEHAVES,                                                        \
	     "an extent that lies over a superblock, which Linux writes with each commit")                    \
	CODE(EXTENT_FLAGS, "EXTENT-FLAGS", MISBEHAVES, "an extent has flags that no Linux knows")             \
	CODE(EXTENT_REFCOUNT, "EXTENT-REFCOUNT", REFUSED, "an extent counts other references than it has")    \
	CODE(EXTENT_REF_TWICE, "EXTENT-REF-TWICE", REFUSED, "a reference to an extent is told in two places") \
	CODE(EXTENT_REF_STRAY, "EXTENT-REF-STRAY", REFUSED,                                                   \
	     "a reference of an extent that there is not, or of another kind")                                \
	CODE(EXTENT_REF_KEY, "EXTENT-REF-KEY", REFUSED, "a reference that is not where its hash says")        \
	CODE(EXTENT_MISSING, "EXTENT-MISSING", REFUSED, "something that is used is not in the extent tree")   \
	CODE(EXTENT_BLOCK, "EXTENT-BLOCK", REFUSED,                                                           \
	     "the extent tree says something else of a tree block than the block itself")                     \
	CODE(EXTENT_REF_MISSING, "EXTENT-REF-MISSING", REFUSED,                                               \
	     "a reference that there is and that the extent tree does not tell")                              \
	CODE(EXTENT_REF_EXTRA, "EXTENT-REF-EXTRA", REFUSED,                                                   \
	     "a reference that the extent tree tells and that there is not")                                  \
	CODE(EXTENT_COMPRESSION, "EXTENT-COMPRESSION", REFUSED,                                               \
	     "file extents say that one extent is compressed in different ways")                              \
	CODE(EXTENT_SNAPSHOT, "EXTENT-SNAPSHOT", REFUSED, "a tree block is shared that Linux would take for unshared")

#define CHECK_CODES_CSUM(CODE)                                                                 \
	CODE(CSUM_OVERLAP, "CSUM-OVERLAP", REFUSED, "data has checksums in two items")         \
	CODE(CSUM_EXTENT, "CSUM-EXTENT", MISBEHAVES, "there are checksums of what is no data") \
	CODE(CSUM_EMPTY, "CSUM-EMPTY", LEFTOVER, "a checksum item without a checksum")
#define CHECK_CODES_STRIPE(CODE)                                                                    \
	CODE(STRIPE_PLACE, "STRIPE-PLACE", REFUSED,                                                 \
	     "the stripe tree says of data that it lies where its block group does not")            \
	CODE(STRIPE_OVERLAP, "STRIPE-OVERLAP", REFUSED, "data has places in two items")             \
	CODE(STRIPE_MISSING, "STRIPE-MISSING", REFUSED, "data of which nothing says where it lies") \
	CODE(STRIPE_EXTENT, "STRIPE-EXTENT", LEFTOVER, "the stripe tree has a place of what is no data")
#define CHECK_CODES_SPACE(CODE)                                                                                      \
	CODE(GROUP_USED, "GROUP-USED", MISBEHAVES, "a block group counts other bytes as used than its extents have") \
	CODE(BYTES_USED, "BYTES-USED", MISBEHAVES, "the superblock counts other bytes as used than extents have")    \
	CODE(SPACE_FEATURE, "SPACE-FEATURE", REFUSED,                                                                \
	     "there is a free space tree where there should be none, or none where it should be")                    \
	CODE(SPACE_INFO, "SPACE-INFO", REFUSED,                                                                      \
	     "the free space tree does not know a block group, or knows it with another length")                     \
	CODE(SPACE_ITEM, "SPACE-ITEM", REFUSED,                                                                      \
	     "items of the free space tree do not fit the block group that they are of")                             \
	CODE(SPACE_WRONG, "SPACE-WRONG", REFUSED,                                                                    \
	     "the free space tree says something else than what lies between extents")                               \
	CODE(SPACE_STRAY, "SPACE-STRAY", MISBEHAVES, "free space in the free space tree of no block group")          \
	CODE(SPACE_CACHE_SIZE, "SPACE-CACHE-SIZE", REFUSED,                                                          \
	     "the v1 cache of a block group is larger than its file, which makes Linux crash")                       \
	CODE(SPACE_CACHE, "SPACE-CACHE", MISBEHAVES,                                                                 \
	     "the v1 cache of a block group says something else than what lies between extents")                     \
	CODE(SPACE_CACHE_FILE, "SPACE-CACHE-FILE", LEFTOVER,                                                         \
	     "the file of a v1 cache is not whole, or not as Linux makes it")                                        \
	CODE(SPACE_LEFTOVER, "SPACE-LEFTOVER", LEFTOVER,                                                             \
	     "free space of the temporary block groups of mkfs.btrfs up to 6.2")
#define CHECK_CODES_ROOT(CODE)                                                                                        \
	CODE(ROOT_GENERATION, "ROOT-GENERATION", REFUSED,                                                             \
	     "the generations that a root item tells contradict each other")                                          \
	CODE(ROOT_KEY, "ROOT-KEY", REFUSED, "a root item where Linux takes it that there can be none")                \
	CODE(ROOT_TWICE, "ROOT-TWICE", MISBEHAVES, "a root item that Linux does not find: the tree has another one")  \
	CODE(ROOT_UNKNOWN, "ROOT-UNKNOWN", LEFTOVER, "a tree that Linux does not know")                               \
	CODE(ROOT_DROP, "ROOT-DROP", REFUSED, "what a root item says of the drop of its tree cannot be")              \
	CODE(ROOT_DIR, "ROOT-DIR", REFUSED, "a subvolume's top directory is not where it has to be")                  \
	CODE(ROOT_REF, "ROOT-REF", REFUSED,                                                                           \
	     "a subvolume and the tree that it lies in do not say the same of where it lies")                         \
	CODE(ROOT_REF_ENTRY, "ROOT-REF-ENTRY", REFUSED, "a subvolume has no entry in the directory that it lies in")  \
	CODE(ROOT_REFS, "ROOT-REFS", REFUSED, "a subvolume counts other references than one")                         \
	CODE(ROOT_LOST, "ROOT-LOST", MISBEHAVES, "a subvolume lies in no directory, or in itself")                    \
	CODE(ROOT_ORPHAN, "ROOT-ORPHAN", MISBEHAVES,                                                                  \
	     "a deleted subvolume is not in the list of those that are cleaned up")                                   \
	CODE(ROOT_ORPHAN_STRAY, "ROOT-ORPHAN-STRAY", LEFTOVER,                                                        \
	     "the list of deleted subvolumes that are cleaned up has something that is none")                         \
	CODE(ROOT_DEFAULT, "ROOT-DEFAULT", REFUSED, "the default subvolume is none")                                  \
	CODE(DEV_REPLACE, "DEV-REPLACE", REFUSED, "a device is being replaced in a way that Linux cannot go on with") \
	CODE(BALANCE, "BALANCE", LEFTOVER, "an interrupted balance that Linux gives up instead of going on with it")  \
	CODE(UUID_MISSING, "UUID-MISSING", MISBEHAVES,                                                                \
	     "a subvolume is not found by its UUID, which send and receive go by")                                    \
	CODE(UUID_STALE, "UUID-STALE", LEFTOVER, "a UUID leads to a subvolume that has another one")
#define CHECK_CODES_INODE(CODE)                                                                                     \
	CODE(TREE_TOP, "TREE-TOP", REFUSED, "a tree whose top directory is missing, or not what it should be")      \
	CODE(INODE_MISSING, "INODE-MISSING", REFUSED, "items of an inode that has no inode item")                   \
	CODE(INODE_NUMBER, "INODE-NUMBER", MISBEHAVES, "an inode behind which Linux has no number for a new one")   \
	CODE(INODE_FLAGS, "INODE-FLAGS", REFUSED, "an inode with flags that Linux does not know")                   \
	CODE(INODE_KIND, "INODE-KIND", MISBEHAVES, "an inode with items that its kind of file does not have")       \
	CODE(INODE_GENERATION, "INODE-GENERATION", MISBEHAVES, "an inode that is younger than the filesystem")      \
	CODE(INODE_OWNER, "INODE-OWNER", MISBEHAVES, "an inode of a user or group that there cannot be")            \
	CODE(INODE_NLINK, "INODE-NLINK", MISBEHAVES, "an inode that counts other names than it has")                \
	CODE(INODE_ORPHAN, "INODE-ORPHAN", MISBEHAVES, "an inode without names that nothing says is to be deleted") \
	CODE(INODE_SYMLINK, "INODE-SYMLINK", MISBEHAVES, "a symbolic link unlike any that Linux makes")             \
	CODE(INODE_XATTR, "INODE-XATTR", MISBEHAVES, "an inode that has one extended attribute twice")              \
	CODE(INODE_VERITY, "INODE-VERITY", REFUSED, "a file with fs-verity that lacks what describes it")           \
	CODE(INODE_CACHE, "INODE-CACHE", LEFTOVER, "a cache of free inode numbers, which Linux no longer has")      \
	CODE(DIR_SIZE, "DIR-SIZE", MISBEHAVES, "a directory whose size is not that of its names")                   \
	CODE(DIR_NAMES, "DIR-NAMES", MISBEHAVES, "a directory with more than one name")                             \
	CODE(DIR_DUPLICATE, "DIR-DUPLICATE", MISBEHAVES, "a name, or an index, that a directory has twice")         \
	CODE(DIR_INDEX, "DIR-INDEX", MISBEHAVES,                                                                    \
	     "an entry with the index of \".\" or \"..\", or with one that reading a directory finds no end at")    \
	CODE(DIR_NAME, "DIR-NAME", REFUSED, "an entry with a name that no file can have")                           \
	CODE(DIR_LOCATION, "DIR-LOCATION", REFUSED, "an entry that leads to no inode and to no subvolume")          \
	CODE(NAME_NO_INODE, "NAME-NO-INODE", REFUSED, "an entry of a directory whose inode is not there")           \
	CODE(NAME_NO_ITEM, "NAME-NO-ITEM", REFUSED, "an entry of a directory that cannot be found by its name")     \
	CODE(NAME_NO_INDEX, "NAME-NO-INDEX", REFUSED, "an entry of a directory that is not listed")                 \
	CODE(NAME_NO_REF, "NAME-NO-REF", REFUSED, "an entry of a directory that its inode does not know")           \
	CODE(NAME_NO_ENTRY, "NAME-NO-ENTRY", REFUSED, "a name of an inode that its directory does not have")        \
	CODE(NAME_TWICE, "NAME-TWICE", REFUSED, "an inode that knows one of its names twice")                       \
	CODE(NAME_INDEX, "NAME-INDEX", REFUSED, "a name with another index in its inode than in its directory")     \
	CODE(NAME_TYPE, "NAME-TYPE", MISBEHAVES, "an entry that says another kind of file than its inode")          \
	CODE(NAME_DIFFERS, "NAME-DIFFERS", REFUSED, "an entry that leads elsewhere by its name than by its index")  \
	CODE(NAME_HASH, "NAME-HASH", REFUSED, "a name of an inode that is not where its hash says")                 \
	CODE(NAME_SUM, "NAME-SUM", MISBEHAVES,                                                                      \
	     "names of a tree that contradict each other, and were not gone through")                               \
	CODE(FILE_EXTENT, "FILE-EXTENT", MISBEHAVES, "a file extent that says what cannot be")                      \
	CODE(FILE_OVERLAP, "FILE-OVERLAP", REFUSED, "a file with two extents in one place")                         \
	CODE(FILE_GAP, "FILE-GAP", MISBEHAVES,                                                                      \
	     "a file with a hole that has no extent, on a filesystem where all have")                               \
	CODE(FILE_NBYTES, "FILE-NBYTES", MISBEHAVES, "a file that counts other bytes than its extents have")        \
	CODE(FILE_COMPRESSED, "FILE-COMPRESSED", MISBEHAVES, "a compressed file that is to have no checksums")      \
	CODE(FILE_CSUM_MISSING, "FILE-CSUM-MISSING", REFUSED, "data without the checksums that they should have")   \
	CODE(FILE_CSUM_ODD, "FILE-CSUM-ODD", MISBEHAVES, "data with checksums that they should not have")           \
	CODE(FILE_CSUM_KEPT, "FILE-CSUM-KEPT", LEFTOVER, "space that is kept for data, with checksums")
#define CHECK_CODES_QGROUP(CODE)                                                                          \
	CODE(QGROUP_CONFIG, "QGROUP-CONFIG", MISBEHAVES, "the items of qgroups contradict each other")    \
	CODE(QGROUP_STATUS, "QGROUP-STATUS", REFUSED,                                                     \
	     "the state of quota is not where Linux looks for it, or keeps it from mounting")             \
	CODE(QGROUP_STALE, "QGROUP-STALE", LEFTOVER, "qgroups were counted in an older commit")           \
	CODE(QGROUP_RELATION, "QGROUP-RELATION", MISBEHAVES,                                              \
	     "a relation of qgroups that is told one way, or cannot be")                                  \
	CODE(QGROUP_MISSING, "QGROUP-MISSING", LEFTOVER, "a subvolume has no qgroup, with quota enabled") \
	CODE(QGROUP_COUNT, "QGROUP-COUNT", MISBEHAVES, "a qgroup counts other bytes than there are")
#define CHECK_CODES_LOG(CODE)                                                                                       \
	CODE(LOG_BLOCK, "LOG-BLOCK", REFUSED, "a block of a log tree lies where it cannot, or is pointed to twice") \
	CODE(LOG_ROOT, "LOG-ROOT", REFUSED, "a root item of a log tree that Linux refuses, or does not survive")    \
	CODE(LOG_TREE, "LOG-TREE", MISBEHAVES, "a log tree of a subvolume that there is not")                       \
	CODE(LOG_EXTENT, "LOG-EXTENT", REFUSED, "data that a log tree tells of lies where it cannot")               \
	CODE(LOG_INODE, "LOG-INODE", REFUSED,                                                                       \
	     "a log tree has items that its inode cannot have, or of an inode that there is not")                   \
	CODE(LOG_NAME, "LOG-NAME", REFUSED, "a log tree has a name that cannot be, or not where it is")             \
	CODE(LOG_CSUM, "LOG-CSUM", REFUSED,                                                                         \
	     "data that a log tree tells of has no checksums, or has some that it should not have")
#define CHECK_CODES_DATA(CODE)                                                                           \
	CODE(DATA_CSUM, "DATA-CSUM", REFUSED, "no copy of data has its checksum")                        \
	CODE(DATA_COPY, "DATA-COPY", MISBEHAVES,                                                         \
	     "a copy of data does not have its checksum, and others make up for it")                     \
	CODE(DATA_COMPRESSED, "DATA-COMPRESSED", REFUSED, "compressed data that cannot be decompressed") \
	CODE(DATA_PARITY, "DATA-PARITY", MISBEHAVES, "parity does not fit the data that it is of")

#define CHECK_CODES(CODE)        \
	CHECK_CODES_SUPER(CODE)  \
	CHECK_CODES_VOLUME(CODE) \
	CHECK_CODES_BLOCK(CODE)  \
	CHECK_CODES_EXTENT(CODE) \
	CHECK_CODES_SPACE(CODE)  \
	CHECK_CODES_ROOT(CODE)   \
	CHECK_CODES_INODE(CODE)  \
	CHECK_CODES_CSUM(CODE)   \
	CHECK_CODES_STRIPE(CODE) \
	CHECK_CODES_DATA(CODE)   \
	CHECK_CODES_QGROUP(CODE) \
	CHECK_CODES_LOG(CODE)

#define CHECK_CODE_ENUM(id, name, severity, meaning) CHECK_##id,
enum check_code {
	CHECK_CODES(CHECK_CODE_ENUM) CHECK_NUM_CODES
};

#endif
