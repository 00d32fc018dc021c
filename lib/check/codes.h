/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_CODES_H
#define BTRKIT_CHECK_CODES_H

/*
 * All kinds of findings: CODE(our name, the public one without its "BTR-", severity, meaning). They are reported in
 * this order: causes come before the findings that may follow from them.
 */

#define CHECK_CODES_SUPER(CODE)                                                                                     \
	CODE(SUPER_PRIMARY, "SUPER-PRIMARY", REFUSED, "the primary superblock of a device is damaged")              \
	CODE(SUPER_FIELD, "SUPER-FIELD", REFUSED, "a field of the superblock has a value that Linux refuses")       \
	CODE(SUPER_FEATURE, "SUPER-FEATURE", REFUSED,                                                               \
	     "the superblock has features that are unknown or do not go together")                                  \
	CODE(SUPER_UNFINISHED, "SUPER-UNFINISHED", REFUSED,                                                         \
	     "flags of the superblock mark an unfinished conversion, or an error")                                  \
	CODE(SUPER_VALUE, "SUPER-VALUE", MISBEHAVES,                                                                \
	     "a field of the superblock contradicts other fields or the filesystem")                                \
	CODE(SUPER_STALE, "SUPER-STALE", MISBEHAVES, "a device was missing when the others were last written")      \
	CODE(SUPER_COPY, "SUPER-COPY", MISBEHAVES,                                                                  \
	     "a copy of the superblock is damaged, or differs from another of the same generation")                 \
	CODE(SUPER_NEW, "SUPER-NEW", MISBEHAVES, "a mirror of the superblock is newer than the primary superblock") \
	CODE(SUPER_OLD, "SUPER-OLD", LEFTOVER, "a mirror of the superblock is older than the primary superblock")   \
	CODE(SUPER_BACKUP, "SUPER-BACKUP", LEFTOVER, "a backup root in the superblock is not the root of a tree")

#define CHECK_CODES_VOLUME(CODE)                                                                                      \
	CODE(CHUNK_SHAPE, "CHUNK-SHAPE", REFUSED,                                                                     \
	     "a chunk has a key or a number of stripes that its profile does not allow")                              \
	CODE(CHUNK_OVERLAP, "CHUNK-OVERLAP", REFUSED, "a chunk begins inside the previous one")                       \
	CODE(CHUNK_GROUP, "CHUNK-GROUP", REFUSED, "a chunk has no block group")                                       \
	CODE(CHUNK_DEVICE, "CHUNK-DEVICE", REFUSED,                                                                   \
	     "a stripe of a chunk is on a device that does not belong to the filesystem")                             \
	CODE(CHUNK_EXTENT, "CHUNK-EXTENT", REFUSED, "a stripe of a chunk has no device extent")                       \
	CODE(SYSTEM_CHUNK, "SYSTEM-CHUNK", REFUSED,                                                                   \
	     "the system chunks in the superblock and in the chunk tree differ")                                      \
	CODE(DEVEXT_CHUNK, "DEVICE-EXTENT-CHUNK", REFUSED, "a device extent does not belong to a stripe of a chunk")  \
	CODE(DEVEXT_DIFFERS, "DEVICE-EXTENT-DIFFERS", REFUSED, "a device extent contradicts its chunk")               \
	CODE(DEVEXT_OVERLAP, "DEVICE-EXTENT-OVERLAP", REFUSED, "a device extent begins inside the previous one")      \
	CODE(DEVEXT_END, "DEVICE-EXTENT-END", REFUSED, "a device extent ends beyond the end of its device")           \
	CODE(DEVEXT_DEVICE, "DEVICE-EXTENT-DEVICE", REFUSED,                                                          \
	     "a device extent is on a device that does not belong to the filesystem")                                 \
	CODE(DEVICE_MISSING, "DEVICE-MISSING", REFUSED, "a device of the filesystem is missing")                      \
	CODE(DEVICE_IDENTITY, "DEVICE-IDENTITY", REFUSED,                                                             \
	     "a device is not the one that its item describes, or has no item")                                       \
	CODE(DEVICE_SIZE, "DEVICE-SIZE", REFUSED, "a device is smaller than its item says")                           \
	CODE(DEVICE_TOTAL, "DEVICE-TOTAL", REFUSED, "the superblock records fewer bytes than the devices have")       \
	CODE(DEVICE_SUM, "DEVICE-SUM", MISBEHAVES,                                                                    \
	     "the superblock records more bytes than the devices have, or omits those of seed devices")               \
	CODE(DEVICE_COUNT, "DEVICE-COUNT", MISBEHAVES, "the superblock records a wrong number of devices")            \
	CODE(DEVICE_USED, "DEVICE-USED", MISBEHAVES,                                                                  \
	     "the used bytes of a device are not the sum of its device extents")                                      \
	CODE(DEVICE_COPY, "DEVICE-COPY", MISBEHAVES, "the superblock of a device contradicts the item of the device") \
	CODE(GROUP_CHUNK, "GROUP-CHUNK", REFUSED, "a block group has no chunk of its own")                            \
	CODE(GROUP_DIFFERS, "GROUP-DIFFERS", REFUSED,                                                                 \
	     "the length or flags of a block group differ from those of its chunk")

#define CHECK_CODES_BLOCK(CODE)                                                                                        \
	CODE(BLOCK_READ, "BLOCK-READ", REFUSED, "no copy of a tree block can be read")                                 \
	CODE(BLOCK_CSUM, "BLOCK-CSUM", REFUSED, "no copy of a tree block matches its checksum")                        \
	CODE(BLOCK_HEADER, "BLOCK-HEADER", REFUSED,                                                                    \
	     "the header of a tree block contradicts its address or its parent")                                       \
	CODE(BLOCK_ORDER, "BLOCK-ORDER", REFUSED, "keys in a tree block are out of order, or its items are misplaced") \
	CODE(BLOCK_FLAGS, "BLOCK-FLAGS", REFUSED, "the flags or the backref revision of a tree block are invalid")     \
	CODE(BLOCK_PARENT, "BLOCK-PARENT", REFUSED, "the keys of a tree block contradict its parent")                  \
	CODE(BLOCK_CYCLE, "BLOCK-CYCLE", REFUSED,                                                                      \
	     "a tree block is referred to from several places that cannot share it")                                   \
	CODE(BLOCK_COPY, "BLOCK-COPY", MISBEHAVES, "a copy of a tree block is damaged, and another one is good")       \
	CODE(ITEM_INVALID, "ITEM-INVALID", REFUSED, "an item has contents that Linux refuses")                         \
	CODE(ITEM_UNCHECKED, "ITEM-UNCHECKED", MISBEHAVES,                                                             \
	     "an item has invalid contents, of a type that Linux does not validate")                                   \
	CODE(ITEM_TREE, "ITEM-TREE", MISBEHAVES, "an item is in a tree that has no items of its type")                 \
	CODE(ITEM_UNKNOWN, "ITEM-UNKNOWN", LEFTOVER, "an item has a type that Linux does not know")                    \
	CODE(TREE_MISSING, "TREE-MISSING", REFUSED, "a tree that every filesystem has is missing")

#define CHECK_CODES_EXTENT(CODE)                                                                                   \
	CODE(EXTENT_OVERLAP, "EXTENT-OVERLAP", REFUSED, "an extent begins inside the previous one")                \
	CODE(EXTENT_PLACE, "EXTENT-PLACE", REFUSED, "an extent is not inside one block group of its type")         \
	CODE(EXTENT_SUPER, "EXTENT-SUPER", MISBEHAVES,                                                             \
	     "an extent overlaps a superblock, which Linux writes with each commit")                               \
	CODE(EXTENT_FLAGS, "EXTENT-FLAGS", MISBEHAVES, "an extent has flags that Linux does not know")             \
	CODE(EXTENT_REFCOUNT, "EXTENT-REFCOUNT", REFUSED,                                                          \
	     "the reference count of an extent differs from the number of its references")                         \
	CODE(EXTENT_REF_TWICE, "EXTENT-REF-TWICE", REFUSED, "a reference to an extent is recorded in two places")  \
	CODE(EXTENT_REF_STRAY, "EXTENT-REF-STRAY", REFUSED,                                                        \
	     "a reference belongs to an extent that does not exist, or is of the wrong kind")                      \
	CODE(EXTENT_REF_KEY, "EXTENT-REF-KEY", REFUSED, "a reference is not at the key that its hash gives")       \
	CODE(EXTENT_MISSING, "EXTENT-MISSING", REFUSED, "the extent tree lacks an extent that is in use")          \
	CODE(EXTENT_BLOCK, "EXTENT-BLOCK", REFUSED, "the extent tree contradicts a tree block")                    \
	CODE(EXTENT_REF_MISSING, "EXTENT-REF-MISSING", REFUSED, "the extent tree lacks a reference that exists")   \
	CODE(EXTENT_REF_EXTRA, "EXTENT-REF-EXTRA", REFUSED, "the extent tree has a reference that does not exist") \
	CODE(EXTENT_COMPRESSION, "EXTENT-COMPRESSION", REFUSED,                                                    \
	     "file extents disagree about the compression of an extent")                                           \
	CODE(EXTENT_SNAPSHOT, "EXTENT-SNAPSHOT", REFUSED,                                                          \
	     "a tree block is shared, but Linux would take it for unshared")

#define CHECK_CODES_CSUM(CODE)                                                                     \
	CODE(CSUM_OVERLAP, "CSUM-OVERLAP", REFUSED, "two checksum items cover the same data")      \
	CODE(CSUM_EXTENT, "CSUM-EXTENT", MISBEHAVES, "there are checksums for space without data") \
	CODE(CSUM_EMPTY, "CSUM-EMPTY", LEFTOVER, "a checksum item contains no checksum")
#define CHECK_CODES_STRIPE(CODE)                                                                            \
	CODE(STRIPE_PLACE, "STRIPE-PLACE", REFUSED, "the stripe tree has an invalid location for data")     \
	CODE(STRIPE_OVERLAP, "STRIPE-OVERLAP", REFUSED, "two items of the stripe tree cover the same data") \
	CODE(STRIPE_MISSING, "STRIPE-MISSING", REFUSED, "the stripe tree lacks the location of data")       \
	CODE(STRIPE_EXTENT, "STRIPE-EXTENT", LEFTOVER, "the stripe tree has a location for space without data")
#define CHECK_CODES_SPACE(CODE)                                                                                       \
	CODE(GROUP_USED, "GROUP-USED", REFUSED, "the used bytes of a block group are not the sum of its extents")  \
	CODE(BYTES_USED, "BYTES-USED", MISBEHAVES, "the used bytes in the superblock are not the sum of all extents") \
	CODE(SPACE_FEATURE, "SPACE-FEATURE", REFUSED, "the free space tree and its feature bit are not both present") \
	CODE(SPACE_INFO, "SPACE-INFO", REFUSED,                                                                       \
	     "the free space tree lacks a block group, or has it with another length")                                \
	CODE(SPACE_ITEM, "SPACE-ITEM", REFUSED, "items of the free space tree do not fit their block group")          \
	CODE(SPACE_WRONG, "SPACE-WRONG", REFUSED, "the free space tree contradicts the extent tree")                  \
	CODE(SPACE_STRAY, "SPACE-STRAY", MISBEHAVES, "the free space tree has free space outside any block group")    \
	CODE(SPACE_CACHE_SIZE, "SPACE-CACHE-SIZE", REFUSED,                                                           \
	     "the v1 cache of a block group is larger than its file, or in none: Linux crashes")                      \
	CODE(SPACE_CACHE, "SPACE-CACHE", MISBEHAVES, "the v1 cache of a block group contradicts the extent tree")     \
	CODE(SPACE_CACHE_FILE, "SPACE-CACHE-FILE", LEFTOVER,                                                          \
	     "the file of a v1 cache is incomplete, or unlike those that Linux creates")                              \
	CODE(SPACE_LEFTOVER, "SPACE-LEFTOVER", LEFTOVER,                                                              \
	     "the free space tree has free space of temporary block groups of mkfs.btrfs up to 6.2")
#define CHECK_CODES_ROOT(CODE)                                                                                        \
	CODE(ROOT_GENERATION, "ROOT-GENERATION", MISBEHAVES,                                                          \
	     "the generations in a root item contradict each other or the superblock")                                \
	CODE(ROOT_KEY, "ROOT-KEY", REFUSED,                                                                           \
	     "a root item has a key that Linux assumes unused, or with which it does not find a tree it needs")       \
	CODE(ROOT_TWICE, "ROOT-TWICE", MISBEHAVES,                                                                    \
	     "a root item is not found by Linux, because its tree has another one or belongs elsewhere")              \
	CODE(ROOT_UNKNOWN, "ROOT-UNKNOWN", LEFTOVER, "a tree is not known to Linux")                                  \
	CODE(ROOT_DROP, "ROOT-DROP", REFUSED, "a root item describes an impossible deletion of its tree")             \
	CODE(ROOT_DIR, "ROOT-DIR", REFUSED, "the top directory of a subvolume does not have number 256")              \
	CODE(ROOT_REF, "ROOT-REF", REFUSED, "a subvolume and the tree that contains it disagree about its location")  \
	CODE(ROOT_REF_ENTRY, "ROOT-REF-ENTRY", REFUSED, "a subvolume has no entry in the directory that contains it") \
	CODE(ROOT_REFS, "ROOT-REFS", MISBEHAVES, "a subvolume has a wrong reference count")                           \
	CODE(ROOT_LOST, "ROOT-LOST", MISBEHAVES, "a subvolume is in no directory, or inside itself")                  \
	CODE(ROOT_ORPHAN, "ROOT-ORPHAN", MISBEHAVES,                                                                  \
	     "a deleted subvolume has no orphan item, so it is not cleaned up")                                       \
	CODE(ROOT_ORPHAN_STRAY, "ROOT-ORPHAN-STRAY", LEFTOVER, "an orphan item names a tree that is not deleted")     \
	CODE(ROOT_DEFAULT, "ROOT-DEFAULT", REFUSED, "the default subvolume does not exist, or none is named")         \
	CODE(DEV_REPLACE, "DEV-REPLACE", REFUSED,                                                                     \
	     "a device replacement is in a state that Linux cannot continue from")                                    \
	CODE(BALANCE, "BALANCE", LEFTOVER, "an interrupted balance would be abandoned by Linux instead of resumed")   \
	CODE(UUID_MISSING, "UUID-MISSING", MISBEHAVES,                                                                \
	     "the UUID tree lacks the UUID of a subvolume, which send and receive need")                              \
	CODE(UUID_STALE, "UUID-STALE", LEFTOVER, "the UUID tree has a UUID for a subvolume that has another one")
#define CHECK_CODES_INODE(CODE)                                                                                       \
	CODE(TREE_TOP, "TREE-TOP", REFUSED, "the top directory of a tree is missing or invalid")                      \
	CODE(INODE_MISSING, "INODE-MISSING", REFUSED, "there are items of an inode that has no inode item")           \
	CODE(INODE_NUMBER, "INODE-NUMBER", MISBEHAVES,                                                                \
	     "an inode number is so high that Linux has none left for new inodes")                                    \
	CODE(INODE_FLAGS, "INODE-FLAGS", REFUSED, "an inode has flags that Linux does not know")                      \
	CODE(INODE_KIND, "INODE-KIND", MISBEHAVES, "an inode has items that its file type does not allow")            \
	CODE(INODE_GENERATION, "INODE-GENERATION", MISBEHAVES, "an inode has a generation newer than the filesystem") \
	CODE(INODE_OWNER, "INODE-OWNER", MISBEHAVES, "an inode has an invalid user or group")                         \
	CODE(INODE_NLINK, "INODE-NLINK", MISBEHAVES,                                                                  \
	     "the link count of an inode differs from the number of its names")                                       \
	CODE(INODE_ORPHAN, "INODE-ORPHAN", MISBEHAVES,                                                                \
	     "an inode without names has no orphan item, so it is not deleted")                                       \
	CODE(INODE_SYMLINK, "INODE-SYMLINK", MISBEHAVES, "a symbolic link is unlike those that Linux creates")        \
	CODE(INODE_XATTR, "INODE-XATTR", MISBEHAVES, "an inode has the same extended attribute twice")                \
	CODE(INODE_PROPERTY, "INODE-PROPERTY", MISBEHAVES,                                                            \
	     "an inode has a property that Linux does not know, or whose value it does not accept")                   \
	CODE(INODE_ATTRIBUTE, "INODE-ATTRIBUTE", MISBEHAVES,                                                          \
	     "an inode has an invalid ACL or capability: Linux denies access, does not run the file, or ignores it")  \
	CODE(INODE_VERITY, "INODE-VERITY", REFUSED, "a file with fs-verity lacks a valid descriptor")                 \
	CODE(INODE_CACHE, "INODE-CACHE", LEFTOVER,                                                                    \
	     "there is a cache of free inode numbers, which Linux no longer uses")                                    \
	CODE(DIR_SIZE, "DIR-SIZE", MISBEHAVES, "the size of a directory does not match its names")                    \
	CODE(DIR_NAMES, "DIR-NAMES", MISBEHAVES, "a directory has more than one name")                                \
	CODE(DIR_CIRCLE, "DIR-CIRCLE", MISBEHAVES, "directories contain each other, and no path leads to them")       \
	CODE(DIR_DUPLICATE, "DIR-DUPLICATE", MISBEHAVES, "a directory has a name or an index twice")                  \
	CODE(DIR_INDEX, "DIR-INDEX", MISBEHAVES,                                                                      \
	     "a directory entry has an index that is reserved, or with which reading the directory never ends")       \
	CODE(DIR_NAME, "DIR-NAME", REFUSED, "a directory entry has a name that no file can have")                     \
	CODE(DIR_LOCATION, "DIR-LOCATION", REFUSED, "a directory entry leads to neither an inode nor a subvolume")    \
	CODE(NAME_NO_INODE, "NAME-NO-INODE", REFUSED, "the inode of a directory entry does not exist")                \
	CODE(NAME_NO_ITEM, "NAME-NO-ITEM", REFUSED, "a directory entry cannot be found by its name")                  \
	CODE(NAME_NO_INDEX, "NAME-NO-INDEX", MISBEHAVES, "a directory entry has no index, so it is not listed")       \
	CODE(NAME_NO_REF, "NAME-NO-REF", REFUSED, "the inode of a directory entry does not have its name")            \
	CODE(NAME_NO_ENTRY, "NAME-NO-ENTRY", MISBEHAVES, "the directory has no entry for a name of an inode")         \
	CODE(NAME_TWICE, "NAME-TWICE", MISBEHAVES, "an inode has one of its names twice")                             \
	CODE(NAME_INDEX, "NAME-INDEX", MISBEHAVES, "a name has a different index in its inode than in its directory") \
	CODE(NAME_TYPE, "NAME-TYPE", REFUSED, "a directory entry has a file type other than that of its inode")       \
	CODE(NAME_DIFFERS, "NAME-DIFFERS", MISBEHAVES,                                                                \
	     "a directory entry leads to a different place by its name than by its index")                            \
	CODE(NAME_HASH, "NAME-HASH", REFUSED, "a name of an inode is not at the key that its hash gives")             \
	CODE(NAME_SUM, "NAME-SUM", MISBEHAVES,                                                                        \
	     "names in a tree contradict each other, and were not examined one by one")                               \
	CODE(FILE_EXTENT, "FILE-EXTENT", MISBEHAVES, "a file extent has impossible values")                           \
	CODE(FILE_OVERLAP, "FILE-OVERLAP", REFUSED, "two extents of a file overlap")                                  \
	CODE(FILE_GAP, "FILE-GAP", MISBEHAVES,                                                                        \
	     "a file has a hole without an extent, on a filesystem without no-holes")                                 \
	CODE(FILE_NBYTES, "FILE-NBYTES", MISBEHAVES, "the byte count of an inode is not the sum of its extents")      \
	CODE(FILE_COMPRESSED, "FILE-COMPRESSED", MISBEHAVES, "a file whose flags exclude checksums is compressed")    \
	CODE(FILE_CSUM_MISSING, "FILE-CSUM-MISSING", REFUSED, "data lacks checksums that it should have")             \
	CODE(FILE_CSUM_ODD, "FILE-CSUM-ODD", MISBEHAVES, "data has checksums that it should not have")                \
	CODE(FILE_CSUM_PREALLOC, "FILE-CSUM-KEPT", LEFTOVER, "preallocated space has checksums")
#define CHECK_CODES_QGROUP(CODE)                                                                                       \
	CODE(QGROUP_CONFIG, "QGROUP-CONFIG", MISBEHAVES,                                                               \
	     "the items of quota groups are invalid or contradict each other")                                         \
	CODE(QGROUP_STATUS, "QGROUP-STATUS", REFUSED,                                                                  \
	     "the quota status is missing or misplaced, or keeps Linux from mounting")                               \
	CODE(QGROUP_STALE, "QGROUP-STALE", LEFTOVER, "the counters of quota groups are from another commit")           \
	CODE(QGROUP_RELATION, "QGROUP-RELATION", MISBEHAVES,                                                           \
	     "a relation of quota groups is recorded one way only, or is impossible")                                  \
	CODE(QGROUP_MISSING, "QGROUP-MISSING", LEFTOVER, "a subvolume has no quota group although quotas are enabled") \
	CODE(QGROUP_COUNT, "QGROUP-COUNT", MISBEHAVES, "a quota group has wrong counters")
#define CHECK_CODES_LOG(CODE)                                                                           \
	CODE(LOG_BLOCK, "LOG-BLOCK", REFUSED,                                                           \
	     "a block of a log tree is at an impossible address, or is referred to twice")              \
	CODE(LOG_ROOT, "LOG-ROOT", REFUSED, "the root item of a log tree makes Linux fail or crash")    \
	CODE(LOG_TREE, "LOG-TREE", MISBEHAVES, "a log tree belongs to a subvolume that does not exist") \
	CODE(LOG_EXTENT, "LOG-EXTENT", REFUSED, "a log tree refers to data at an impossible address")   \
	CODE(LOG_INODE, "LOG-INODE", REFUSED,                                                           \
	     "a log tree has items that their inode cannot have, or whose inode does not exist")        \
	CODE(LOG_NAME, "LOG-NAME", REFUSED, "a log tree has a name that is invalid or misplaced")       \
	CODE(LOG_CSUM, "LOG-CSUM", REFUSED,                                                             \
	     "data that a log tree refers to lacks checksums, or has some that it should not have")
#define CHECK_CODES_DATA(CODE)                                                                                       \
	CODE(DATA_CSUM, "DATA-CSUM", REFUSED, "no copy of data matches its checksum")                                \
	CODE(DATA_COPY, "DATA-COPY", MISBEHAVES, "a copy of data does not match its checksum, and another one does") \
	CODE(DATA_COMPRESSED, "DATA-COMPRESSED", REFUSED, "compressed data cannot be decompressed")                  \
	CODE(DATA_PARITY, "DATA-PARITY", MISBEHAVES, "parity does not match its data, or cannot be checked")

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
