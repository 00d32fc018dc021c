// SPDX-License-Identifier: LGPL-2.1-or-later
/* Creation of inodes. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "lib/base/err.h"
#include "lib/modify/extents.h"
#include "lib/modify/names/inherit.h"
#include "lib/modify/names/names.h"

/* An inode to create. */
struct making {
	struct name name;
	const struct btrkit_new_inode *what;
	size_t target_len;
	uint64_t inode;
	uint32_t room; /* bytes reserved for inherited attributes */
	struct inherited from_dir;
};

static bool is_device(uint32_t mode)
{
	return S_ISCHR(mode) || S_ISBLK(mode);
}

/* Collects the inherited attributes. @return 0; -EAGAIN: they need m->room bytes reserved, which is now set; <0 */
static int find_inherited(struct op *op, const struct op_inode *dir, struct making *m, struct btrkit_error *err)
{
	struct inherited *h = &m->from_dir;
	uint32_t need;
	int ret;

	h->mode = m->what->mode;
	ret = inherit_acls(op, dir, h, err);
	if (!ret && (S_ISREG(h->mode) || S_ISDIR(h->mode)) && !(le64_get(dir->item.flags) & INODE_NODATACOW))
		ret = property_inherited(op, dir, &h->compression, err);
	if (ret < 0)
		return ret;
	need = inherit_bytes(h);
	if (need <= m->room)
		return 0;
	m->room = need;
	return -EAGAIN;
}

/* Applies the setgid bit and the flags that a new inode inherits from its directory. */
static void inherit(const struct op_inode *dir, struct disk_inode_item *item)
{
	const uint64_t from = le64_get(dir->item.flags);
	uint32_t mode = le32_get(item->mode);
	uint64_t flags = 0;

	if (op_inode_mode(dir) & S_ISGID) {
		item->gid = dir->item.gid;
		if (S_ISDIR(mode))
			mode |= S_ISGID;
	}
	if (from & INODE_NOCOMPRESS)
		flags |= INODE_NOCOMPRESS;
	else if (from & INODE_COMPRESS)
		flags |= INODE_COMPRESS;
	if (from & INODE_NODATACOW)
		flags |= INODE_NODATACOW | (S_ISREG(mode) ? INODE_NODATASUM : 0);
	item->mode = le32_put(mode);
	item->flags = le64_put(flags);
}

static int insert_inode(struct op *op, const struct op_inode *dir, const struct making *m, struct btrkit_error *err)
{
	const struct btrkit_new_inode *what = m->what;
	const struct disk_time time = what->time ? op_put_time(what->time) : op->now;
	struct disk_inode_item item = {
		.generation = le64_put(op->txn->generation),
		.transid = le64_put(op->txn->generation),
		.nlink = le32_put(1),
		.uid = le32_put(what->uid),
		.gid = le32_put(what->gid),
		.mode = le32_put(m->from_dir.mode),
		.rdev = le64_put(is_device(what->mode) ? rdev_join(major(what->rdev), minor(what->rdev)) : 0),
		.size = le64_put(m->target_len),
		.nbytes = le64_put(m->target_len),
		.atime = time,
		.ctime = time,
		.mtime = time,
		.otime = time,
	};

	inherit(dir, &item);
	inherit_property(op, &m->from_dir, &item);
	return delayed_insert(op->t, &KEY(m->inode, KEY_INODE_ITEM, 0), &item, sizeof(item), NULL, err);
}

/* Stores the target of a symbolic link in an inline extent, without a terminating zero. */
static int insert_target(struct op *op, const struct making *m, struct btrkit_error *err)
{
	const struct disk_file_extent d = {
		.generation = le64_put(op->txn->generation),
		.ram_bytes = le64_put(m->target_len),
		.type = FILE_EXTENT_INLINE,
	};
	uint8_t *data;
	int ret;

	if (!m->target_len)
		return 0;
	ret = delayed_insert(op->t, &KEY(m->inode, KEY_EXTENT_DATA, 0), NULL,
			     FILE_EXTENT_INLINE_START + (uint32_t)m->target_len, &data, err);
	if (ret)
		return ret;
	memcpy(data, &d, FILE_EXTENT_INLINE_START);
	memcpy(data + FILE_EXTENT_INLINE_START, m->what->target, m->target_len);
	return 0;
}

static int make(struct op *op, uint64_t dir_inode, struct making *m, struct btrkit_error *err)
{
	const struct name_entry entry = { KEY(m->inode, KEY_INODE_ITEM, 0), dir_type_of_mode(m->what->mode) };
	struct op_inode dir;
	uint64_t index;
	int ret;

	delayed_lock(op->t, (const uint64_t[]){ dir_inode, m->inode }, 2, &op->locks);
	ret = op_inode_get(op, dir_inode, &dir, err);
	if (!ret)
		ret = name_check_new(op, &dir, &m->name, err);
	if (!ret)
		ret = name_fits(op, &dir, &m->name, err);
	if (!ret && m->target_len > extents_inline_max(op))
		ret = err_system(err, ENAMETOOLONG, "symbolic link target of %zu bytes", m->target_len);
	if (!ret)
		ret = find_inherited(op, &dir, m, err);
	if (!ret)
		ret = delayed_next_index(op->t, &op->reader, dir_inode, &index, err);
	if (!ret)
		ret = delayed_new_inode(op->t, m->inode, err);
	if (!ret)
		ret = insert_inode(op, &dir, m, err);
	if (!ret)
		ret = name_ref_add(op, m->inode, dir_inode, &m->name, index, true, err);
	if (!ret)
		ret = insert_target(op, m, err);
	if (!ret)
		ret = inherit_put(op, m->inode, &m->from_dir, err);
	if (!ret)
		ret = name_add(op, &dir, &m->name, &entry, index, err);
	return ret ? ret : op_inode_put(op, &dir, err);
}

/* Checks everything that does not depend on the filesystem. */
static int check_create(struct making *m, struct btrkit_error *err)
{
	const struct btrkit_new_inode *what = m->what;
	int ret;

	if (!dir_type_of_mode(what->mode) || what->mode & ~(S_IFMT | 07777u))
		return err_set(err, BTRKIT_INVALID, "invalid file mode 0%o", what->mode);
	ret = op_check_owner(what->uid, what->gid, err);
	if (!ret && what->time)
		ret = op_check_time(what->time, err);
	if (!ret && is_device(what->mode) && !rdev_possible(major(what->rdev), minor(what->rdev)))
		ret = err_set(err, BTRKIT_INVALID, "device number out of range");
	if (ret)
		return ret;
	if (S_ISLNK(what->mode) != !!what->target)
		return err_set(err, BTRKIT_INVALID, "a symbolic link needs a target, other types must not have one");
	m->target_len = what->target ? strlen(what->target) : 0;
	if (what->target && !m->target_len)
		return err_system(err, ENOENT, "empty symbolic link target");
	return m->target_len < PATH_MAX ?
		       0 :
		       err_system(err, ENAMETOOLONG, "symbolic link target of %zu bytes", m->target_len);
}

static int reserve_and_make(struct btrkit_txn *txn, uint64_t root, uint64_t dir, struct making *m,
			    struct btrkit_error *err)
{
	/* All items of the inode, its entry and index, and the inode of the directory. */
	const struct ticket_need need = {
		.items = 4,
		.bytes = (uint32_t)(5 * sizeof(struct disk_item) + sizeof(struct disk_inode_item) +
				    sizeof(struct disk_inode_ref) + 2 * sizeof(struct disk_dir_item) +
				    3 * m->name.len + FILE_EXTENT_INLINE_START + m->target_len + m->room),
	};
	struct op op;
	int ret;

	ret = op_begin(&op, txn, root, &need, err);
	if (ret)
		return ret;
	if (!m->inode)
		ret = delayed_take_inode(op.t, &m->inode, err);
	if (!ret)
		ret = make(&op, dir, m, err);
	if (!ret)
		op_spare(&op, &need, need.bytes);
	inherit_forget(&m->from_dir);
	return op_end(&op, ret, err);
}

int btrkit_txn_create(struct btrkit_txn *txn, uint64_t root, uint64_t dir, const char *name, size_t len,
		      const struct btrkit_new_inode *what, uint64_t *inode, struct btrkit_error *err)
{
	static const struct btrkit_new_inode file = BTRKIT_NEW_INODE_INIT;
	struct making m = { .name = { name, len }, .what = what ? what : &file };
	int ret;

	if (m.what->flags)
		return err_set(err, BTRKIT_INVALID, "unknown flags 0x%x", m.what->flags);
	ret = name_check_in(txn, root, dir, &m.name, err);
	if (!ret)
		ret = check_create(&m, err);
	if (ret)
		return ret;
	/*
	 * The size of inherited attributes is known only inside the operation, and may have grown again by the next
	 * attempt.
	 */
	do
		ret = reserve_and_make(txn, root, dir, &m, err);
	while (ret == -EAGAIN);
	ret = name_in_the_way(txn, root, dir, &m.name, ret, err);
	if (!ret && inode)
		*inode = m.inode;
	return ret;
}
