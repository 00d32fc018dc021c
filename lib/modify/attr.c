// SPDX-License-Identifier: LGPL-2.1-or-later
/* Attributes stored in the inode item: owner, permissions, times, flags. */
#include <errno.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/err.h"
#include "lib/format/feature_bits.h"
#include "lib/modify/acl.h"
#include "lib/modify/xattr.h"

#define PERMISSIONS 07777u

/* The effect of a change of attributes, determined before anything is modified. */
struct change {
	uint32_t mode;
	bool capability; /* remove security.capability */
	struct acl *acl; /* the access ACL, adapted to the new mode; NULL: none */
	bool acl_goes;	 /* the mode expresses it completely, so remove it */
};

static int check_times(const struct btrkit_attr *a, struct btrkit_error *err)
{
	const struct btrkit_time *times[] = { &a->atime, &a->mtime, &a->ctime, &a->otime };
	int ret = 0;

	for (unsigned i = 0; !ret && i < 4; i++)
		if (a->mask & (unsigned)BTRKIT_ATTR_ATIME << i)
			ret = op_check_time(times[i], err);
	return ret;
}

static int check_attr(const struct btrkit_attr *a, struct btrkit_error *err)
{
	const unsigned all = BTRKIT_ATTR_OTIME * 2 - 1;
	int ret;

	if (a->mask & ~all)
		return err_set(err, BTRKIT_INVALID, "unknown bits in mask 0x%x", a->mask);
	ret = op_check_owner(a->mask & BTRKIT_ATTR_UID ? a->uid : 0, a->mask & BTRKIT_ATTR_GID ? a->gid : 0, err);
	return ret ? ret : check_times(a, err);
}

/* Adapts the access ACL, if there is one, to the new mode. */
static int check_acl(struct op *op, const struct op_inode *in, struct change *c, struct btrkit_error *err)
{
	struct dir_entry e;
	uint32_t mode;
	int ret = xattr_find(op, in->inode, ACL_ACCESS, &e, err);

	if (ret)
		return ret < 0 ? ret : 0;
	ret = acl_parse(e.data, e.data_len, &c->acl, err);
	if (!ret && c->acl)
		ret = acl_follow_mode(c->acl, c->mode, err);
	if (!ret && c->acl)
		c->acl_goes = acl_to_mode(c->acl, &mode);
	if (!ret && c->acl && !c->acl_goes)
		ret = xattr_fits(op, in->inode, ACL_ACCESS, acl_size(c->acl), err);
	return ret;
}

static int check_change(struct op *op, const struct op_inode *in, const struct btrkit_attr *a, struct change *c,
			struct btrkit_error *err)
{
	int ret = op_check_fixed(in, err);

	if (ret)
		return ret;
	c->mode = op_inode_mode(in);
	if (a->mask & (BTRKIT_ATTR_UID | BTRKIT_ATTR_GID) && !S_ISDIR(c->mode)) {
		/*
		 * A change of owner clears S_ISUID, and S_ISGID if the group may execute the file: otherwise it has
		 * another meaning.
		 */
		if (c->mode & S_IXGRP)
			c->mode &= ~(uint32_t)S_ISGID;
		c->mode &= ~(uint32_t)S_ISUID;
		c->capability = true;
	}
	if (a->mask & BTRKIT_ATTR_MODE && S_ISLNK(c->mode))
		return err_set(err, BTRKIT_UNSUPPORTED, "cannot change the mode of symbolic link %" PRIu64, in->inode);
	ret = op_check_writable(op, err);
	if (a->mask & BTRKIT_ATTR_MODE)
		c->mode = (c->mode & S_IFMT) | (a->mode & PERMISSIONS);
	/* As in Linux, the ACL is also rewritten if only the change of owner has cleared bits. */
	if (ret || (!(a->mask & BTRKIT_ATTR_MODE) && c->mode == op_inode_mode(in)))
		return ret;
	return check_acl(op, in, c, err);
}

static void set_time(const struct btrkit_attr *a, unsigned bit, const struct btrkit_time *from, struct disk_time *to)
{
	if (a->mask & bit)
		*to = op_put_time(from);
}

static int apply(struct op *op, struct op_inode *in, const struct btrkit_attr *a, const struct change *c,
		 struct btrkit_error *err)
{
	struct disk_inode_item *item = &in->item;
	int ret = c->capability ? xattr_drop_capability(op, in->inode, err) : 0;

	if (!ret && c->acl)
		ret = c->acl_goes ? acl_drop(op, in->inode, ACL_ACCESS, err) :
				    acl_put(op, in->inode, ACL_ACCESS, c->acl, err);
	if (ret)
		return ret;
	item->mode = le32_put(c->mode);
	if (a->mask & BTRKIT_ATTR_UID)
		item->uid = le32_put(a->uid);
	if (a->mask & BTRKIT_ATTR_GID)
		item->gid = le32_put(a->gid);
	item->ctime = op->now;
	set_time(a, BTRKIT_ATTR_ATIME, &a->atime, &item->atime);
	set_time(a, BTRKIT_ATTR_MTIME, &a->mtime, &item->mtime);
	set_time(a, BTRKIT_ATTR_CTIME, &a->ctime, &item->ctime);
	set_time(a, BTRKIT_ATTR_OTIME, &a->otime, &item->otime);
	return op_inode_put(op, in, err);
}

int btrkit_txn_set_attr(struct btrkit_txn *txn, uint64_t root, uint64_t inode, const struct btrkit_attr *attr,
			struct btrkit_error *err)
{
	/* The inode, its ACL and its capabilities; none of them grows. */
	const struct ticket_need need = { .items = 3 };
	struct change c = { 0 };
	struct op_inode in;
	struct op op;
	int ret;

	ret = check_attr(attr, err);
	if (!ret)
		ret = op_begin(&op, txn, root, &need, err);
	if (ret)
		return ret;
	delayed_lock(op.t, &inode, 1, &op.locks);
	ret = op_inode_get(&op, inode, &in, err);
	if (!ret && attr->mask)
		ret = check_change(&op, &in, attr, &c, err);
	if (!ret && attr->mask)
		ret = apply(&op, &in, attr, &c, err);
	free(c.acl);
	return op_end(&op, ret, err);
}

/* FS_*_FL flags of FS_IOC_GETFLAGS, and the inode flags that correspond to them. */
static const struct flag {
	uint32_t fs;
	uint64_t inode;
} flag_bits[] = {
	{ FS_SYNC_FL, INODE_SYNC },	  { FS_IMMUTABLE_FL, INODE_IMMUTABLE }, { FS_APPEND_FL, INODE_APPEND },
	{ FS_NODUMP_FL, INODE_NODUMP },	  { FS_NOATIME_FL, INODE_NOATIME },	{ FS_DIRSYNC_FL, INODE_DIRSYNC },
	{ FS_NOCOW_FL, INODE_NODATACOW }, { FS_NOCOMP_FL, INODE_NOCOMPRESS },	{ FS_COMPR_FL, INODE_COMPRESS },
};

/* FS_*_FL flags of an inode. As in Linux, INODE_NOCOMPRESS hides FS_COMPR_FL. */
static uint32_t flags_of(const struct op_inode *in)
{
	const uint64_t has = le64_get(in->item.flags);
	uint32_t ret = 0;

	for (size_t i = 0; i < sizeof(flag_bits) / sizeof(flag_bits[0]); i++)
		ret |= has & flag_bits[i].inode ? flag_bits[i].fs : 0;
	return has & INODE_NOCOMPRESS ? ret & ~(uint32_t)FS_COMPR_FL : ret;
}

/* Drops the flags that do not apply to this type of inode. */
static uint32_t flags_for(const struct op_inode *in, uint32_t flags)
{
	if (S_ISDIR(op_inode_mode(in)))
		return flags;
	if (S_ISREG(op_inode_mode(in)))
		return flags & ~(uint32_t)FS_DIRSYNC_FL;
	return flags & (FS_NODUMP_FL | FS_NOATIME_FL);
}

static int check_flags(const struct op *op, uint32_t old, uint32_t flags, struct btrkit_error *err)
{
	const uint32_t compression = FS_COMPR_FL | FS_NOCOMP_FL;
	uint32_t known = 0;

	for (size_t i = 0; i < sizeof(flag_bits) / sizeof(flag_bits[0]); i++)
		known |= flag_bits[i].fs;
	if (flags & ~known)
		return err_set(err, BTRKIT_UNSUPPORTED, "flags 0x%" PRIx32 " are not supported", flags & ~known);
	if ((flags & compression) == compression)
		return err_set(err, BTRKIT_INVALID, "compression is both enabled and disabled");
	if (((flags | old) & FS_NOCOW_FL && flags & FS_COMPR_FL) || (old & FS_NOCOW_FL && flags & compression) ||
	    (flags & FS_NOCOW_FL && old & compression))
		return err_set(err, BTRKIT_INVALID, "compression and nocow exclude each other");
	if (flags & FS_NOCOW_FL && op->txn->fs->super.incompat & INCOMPAT_ZONED)
		return err_system(err, EPERM, "nocow is not possible on a zoned filesystem");
	return 0;
}

static int apply_flags(struct op *op, struct op_inode *in, uint32_t flags, struct btrkit_error *err)
{
	/* The compression that Linux sets together with FS_COMPR_FL. */
	static const char method[] = "zlib";
	const bool regular = S_ISREG(op_inode_mode(in)), property = flags & FS_COMPR_FL;
	uint64_t now = le64_get(in->item.flags);
	int ret;

	for (size_t i = 0; i < sizeof(flag_bits) / sizeof(flag_bits[0]); i++) {
		const struct flag *f = &flag_bits[i];

		/* FS_NOCOW_FL can be changed only while the file is empty. */
		if (f->fs == FS_NOCOW_FL && regular && le64_get(in->item.size))
			continue;
		now = flags & f->fs ? now | f->inode : now & ~f->inode;
		if (f->fs == FS_NOCOW_FL && regular)
			now = flags & f->fs ? now | INODE_NODATASUM : now & ~(uint64_t)INODE_NODATASUM;
	}
	ret = property ? xattr_fits(op, in->inode, ATTRIBUTE_COMPRESSION, strlen(method), err) : 0;
	if (!ret)
		ret = property ? xattr_put(op, in->inode, ATTRIBUTE_COMPRESSION, method, strlen(method), err) :
				 xattr_drop(op, in->inode, ATTRIBUTE_COMPRESSION, err);
	if (ret < 0)
		return ret;
	in->item.flags = le64_put(now);
	in->item.ctime = op->now;
	return op_inode_put(op, in, err);
}

int btrkit_txn_set_flags(struct btrkit_txn *txn, uint64_t root, uint64_t inode, uint32_t flags, uint32_t mask,
			 struct btrkit_error *err)
{
	/* The inode, and the attribute btrfs.compression. */
	const struct ticket_need need = { .items = 2, .bytes = xattr_bytes(strlen(ATTRIBUTE_COMPRESSION), 8) };
	struct op_inode in;
	uint32_t old, wanted;
	struct op op;
	int ret;

	ret = op_begin(&op, txn, root, &need, err);
	if (ret)
		return ret;
	delayed_lock(op.t, &inode, 1, &op.locks);
	ret = op_inode_get(&op, inode, &in, err);
	if (!ret)
		ret = op_check_writable(&op, err);
	if (!ret) {
		old = flags_of(&in);
		wanted = flags_for(&in, (old & ~mask) | (flags & mask));
		ret = check_flags(&op, old, wanted, err);
		if (!ret)
			ret = apply_flags(&op, &in, wanted, err);
	}
	return op_end(&op, ret, err);
}
