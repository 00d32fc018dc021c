// SPDX-License-Identifier: LGPL-2.1-or-later
/* The property btrfs.compression: an extended attribute that also determines inode flags. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/err.h"
#include "lib/format/attribute.h"
#include "lib/modify/xattr.h"

int property_check(const struct op_inode *in, const void *value, size_t size, struct btrkit_error *err)
{
	if (!size)
		return 0;
	if (le64_get(in->item.flags) & (INODE_NODATACOW | INODE_NODATASUM))
		return err_set(err, BTRKIT_INVALID, "inode %" PRIu64 " has no checksums, and cannot be compressed",
			       in->inode);
	if (attribute_compression_valid(value, size))
		return 0;
	return err_set(err, BTRKIT_INVALID, "unknown compression \"%.*s\"", size < 16 ? (int)size : 16,
		       (const char *)value);
}

bool property_matters(const struct op_inode *in)
{
	return S_ISREG(op_inode_mode(in)) || S_ISDIR(op_inode_mode(in));
}

void property_apply(struct op *op, struct disk_inode_item *item, const void *value, size_t size)
{
	const struct attribute_method *m = attribute_method_of(value, size);
	uint64_t flags = le64_get(item->flags) & ~(uint64_t)(INODE_COMPRESS | INODE_NOCOMPRESS);

	if (size)
		flags |= m ? INODE_COMPRESS : INODE_NOCOMPRESS;
	item->flags = le64_put(flags);
	if (m && m->incompat)
		op_need_feature(op, m->incompat);
}

int property_inherited(struct op *op, const struct op_inode *dir, const char **ret, struct btrkit_error *err)
{
	const struct attribute_method *m;
	struct dir_entry e;
	int r;

	/* The flag is set whenever the attribute selects a method. */
	if (!(le64_get(dir->item.flags) & INODE_COMPRESS))
		return 1;
	r = xattr_find(op, dir->inode, ATTRIBUTE_COMPRESSION, &e, err);
	if (r)
		return r;
	m = attribute_method_of(e.data, e.data_len);
	if (!m)
		return 1;
	*ret = m->name;
	return 0;
}
