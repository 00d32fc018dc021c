// SPDX-License-Identifier: LGPL-2.1-or-later
/* Setting and removing extended attributes: checks of names and values, and side effects. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/err.h"
#include "lib/base/le.h"
#include "lib/modify/acl.h"
#include "lib/modify/xattr.h"

#define NAME_MAX_OF_XATTR 255u
#define SIZE_MAX_OF_XATTR 65536u /* the limit of the VFS */

/* A change to an attribute. */
struct setting {
	const char *name;
	const void *value;
	size_t size;
	unsigned flags; /* BTRKIT_XATTR_* */
	bool remove;
	struct acl *acl; /* for an ACL: the parsed value; NULL: no entries */
};

static bool is_acl(const char *name)
{
	return !strcmp(name, ACL_ACCESS) || !strcmp(name, ACL_DEFAULT);
}

/* Checks the value of security.capability. @return 0; -EINVAL */
static int check_capability(const void *value, size_t size, struct btrkit_error *err)
{
	uint32_t flags = 0;

	if (attribute_capability(value, size, &flags) >= 2 && !(flags & ~ATTRIBUTE_CAPABILITY_EFFECTIVE))
		return 0;
	return err_set(err, BTRKIT_INVALID, "invalid file capabilities");
}

/* Checks everything that does not depend on the filesystem. */
static int check_setting(struct setting *s, struct btrkit_error *err)
{
	const size_t len = s->name ? strlen(s->name) : 0;

	if (s->flags & ~(unsigned)(BTRKIT_XATTR_CREATE | BTRKIT_XATTR_REPLACE))
		return err_set(err, BTRKIT_INVALID, "unknown flags 0x%x", s->flags);
	if (!len || len > NAME_MAX_OF_XATTR)
		return err_system(err, ERANGE, "attribute name of %zu bytes", len);
	if (s->size > SIZE_MAX_OF_XATTR)
		return err_system(err, E2BIG, "attribute of %zu bytes", s->size);
	if (is_acl(s->name))
		return s->size ? acl_parse(s->value, s->size, &s->acl, err) : 0;
	return !strcmp(s->name, ATTRIBUTE_CAPABILITY) && s->size ? check_capability(s->value, s->size, err) : 0;
}

/* The name without its namespace, if that is one of the first @n below; otherwise NULL. */
static const char *rest_of(const char *name, size_t n)
{
	static const char *const kinds[] = { "security.", "trusted.", "system.", "user.", "btrfs." };

	for (size_t i = 0; i < n; i++) {
		if (!strncmp(name, kinds[i], strlen(kinds[i])))
			return name + strlen(kinds[i]);
	}
	return NULL;
}

enum {
	KINDS_UNASKED = 3, /* in these namespaces not the VFS, but only btrfs checks for a read-only subvolume */
	KINDS = 5,
};

/* Checks whether the inode can have an attribute with that name. @return 0; -EPERM; -EROFS; -EOPNOTSUPP; -EINVAL */
static int check_name(const struct op *op, const struct op_inode *in, const char *name, struct btrkit_error *err)
{
	/* For the VFS, special files are writable even if the subvolume is read-only. */
	const bool special = !property_matters(in) && !S_ISLNK(op_inode_mode(in));
	const bool unasked = rest_of(name, KINDS_UNASKED);
	const char *rest = strncmp(name, "system.", 7) != 0 ? rest_of(name, KINDS) : NULL;
	int ret;

	if (!strncmp(name, "user.", 5) && !property_matters(in))
		return err_system(err, EPERM, "%s: user attributes are only allowed for files and directories", name);
	ret = unasked || special ? 0 : op_check_writable(op, err);
	if (ret)
		return ret;
	if (!rest)
		return err_set(err, BTRKIT_UNSUPPORTED, "unsupported attribute namespace: %s", name);
	if (!*rest)
		return err_set(err, BTRKIT_INVALID, "attribute name is empty after the namespace: %s", name);
	if (!strncmp(name, "btrfs.", 6) && strcmp(name, ATTRIBUTE_COMPRESSION) != 0)
		return err_set(err, BTRKIT_INVALID, "unknown property %s", name);
	return unasked ? op_check_writable(op, err) : 0;
}

/* Checks whether an ACL can be set. @return 0; -EPERM; -EROFS; -EOPNOTSUPP; -EACCES; -EINVAL */
static int check_acl(const struct op *op, const struct op_inode *in, const struct setting *s, struct btrkit_error *err)
{
	int ret = op_check_fixed(in, err);

	if (!ret)
		ret = op_check_writable(op, err);
	if (ret)
		return ret;
	if (S_ISLNK(op_inode_mode(in)))
		return err_set(err, BTRKIT_UNSUPPORTED, "symbolic link %" PRIu64 " cannot have an ACL", in->inode);
	if (s->acl && !strcmp(s->name, ACL_DEFAULT) && !S_ISDIR(op_inode_mode(in)))
		return err_system(err, EACCES, "only directories can have a default ACL");
	return s->acl ? acl_check(s->value, s->size, err) : 0;
}

static int put_inode(struct op *op, struct op_inode *in, struct btrkit_error *err)
{
	in->item.ctime = op->now;
	return op_inode_put(op, in, err);
}

static int set_acl(struct op *op, struct op_inode *in, const struct setting *s, struct btrkit_error *err)
{
	uint32_t mode = op_inode_mode(in);
	bool keep = s->acl;
	int ret = check_acl(op, in, s, err);

	if (ret)
		return ret;
	if (!s->acl && !strcmp(s->name, ACL_DEFAULT) && !S_ISDIR(mode))
		return 0;
	/* An ACL that the mode expresses completely is not stored. */
	if (s->acl && !strcmp(s->name, ACL_ACCESS))
		keep = !acl_to_mode(s->acl, &mode);
	if (keep)
		ret = xattr_fits(op, in->inode, s->name, acl_size(s->acl), err);
	if (ret)
		return ret;
	in->item.mode = le32_put(mode);
	ret = keep ? acl_put(op, in->inode, s->name, s->acl, err) : acl_drop(op, in->inode, s->name, err);
	return ret ? ret : put_inode(op, in, err);
}

/* @return 0; 1: no such attribute; <0 */
static int set_attribute(struct op *op, struct op_inode *in, const struct setting *s, struct btrkit_error *err)
{
	const bool property = !strcmp(s->name, ATTRIBUTE_COMPRESSION), drop = s->remove || (property && !s->size);
	struct dir_entry e;
	int ret;

	ret = op_check_fixed(in, err);
	if (!ret)
		ret = check_name(op, in, s->name, err);
	if (!ret && property)
		ret = property_check(in, s->value, s->size, err);
	if (ret || (property && !property_matters(in)))
		return ret;
	if (!drop && s->size + strlen(s->name) + sizeof(struct disk_dir_item) > entry_room(op))
		return err_system(err, ENOSPC, "attribute of %zu bytes does not fit in a leaf", s->size);
	ret = xattr_find(op, in->inode, s->name, &e, err);
	if (ret < 0 || (ret && (s->remove || s->flags & BTRKIT_XATTR_REPLACE)))
		return ret;
	if (!ret && !drop && s->flags & BTRKIT_XATTR_CREATE)
		return err_system(err, EEXIST, "attribute %s", s->name);
	if (drop) {
		ret = ret ? 0 : xattr_drop(op, in->inode, s->name, err);
	} else {
		ret = xattr_fits(op, in->inode, s->name, s->size, err);
		if (!ret)
			ret = xattr_put(op, in->inode, s->name, s->value, s->size, err);
	}
	if (ret)
		return ret;
	if (property)
		property_apply(op, &in->item, s->value, s->size);
	return put_inode(op, in, err);
}

static int no_such_attribute(const char *name, uint64_t inode, struct btrkit_error *err)
{
	return err_system(err, ENODATA, "inode %" PRIu64 " has no attribute %s", inode, name);
}

static int change(struct btrkit_txn *txn, uint64_t root, uint64_t inode, struct setting *s, struct btrkit_error *err)
{
	struct ticket_need need;
	struct op_inode in;
	struct op op;
	int ret;

	ret = check_setting(s, err);
	if (ret)
		return ret;
	/* The attribute and the inode; attributes with the same hash may have to move with it. */
	need = (struct ticket_need){ .items = 3,
				     .bytes = s->remove ? 0 : xattr_bytes(strlen(s->name), s->size),
				     .removes = s->remove };
	ret = op_begin(&op, txn, root, &need, err);
	if (!ret) {
		delayed_lock(op.t, &inode, 1, &op.locks);
		ret = op_inode_get(&op, inode, &in, err);
		if (!ret)
			ret = is_acl(s->name) ? set_acl(&op, &in, s, err) : set_attribute(&op, &in, s, err);
		ret = op_end(&op, ret, err);
	}
	free(s->acl);
	return ret == 1 ? no_such_attribute(s->name, inode, err) : ret;
}

int btrkit_txn_xattr_set(struct btrkit_txn *txn, uint64_t root, uint64_t inode, const char *name, const void *value,
			 size_t size, unsigned flags, struct btrkit_error *err)
{
	struct setting s = { .name = name, .value = value, .size = size, .flags = flags };

	return change(txn, root, inode, &s, err);
}

int btrkit_txn_xattr_remove(struct btrkit_txn *txn, uint64_t root, uint64_t inode, const char *name,
			    struct btrkit_error *err)
{
	struct setting s = { .name = name, .remove = true };

	return change(txn, root, inode, &s, err);
}

static int get(struct op *op, uint64_t inode, const char *name, void *value, size_t room, size_t *size,
	       struct btrkit_error *err)
{
	struct op_inode in;
	struct dir_entry e;
	int ret;

	delayed_lock(op->t, &inode, 1, &op->locks);
	ret = op_inode_get(op, inode, &in, err);
	if (!ret)
		ret = xattr_find(op, inode, name, &e, err);
	if (ret)
		return ret;
	*size = e.data_len;
	if (e.data_len > room)
		return err_system(err, ERANGE, "attribute %s has %u bytes", name, e.data_len);
	if (e.data_len)
		memcpy(value, e.data, e.data_len);
	return 0;
}

int btrkit_txn_xattr_get(struct btrkit_txn *txn, uint64_t root, uint64_t inode, const char *name, void *value,
			 size_t room, size_t *size, struct btrkit_error *err)
{
	struct op op;
	int ret;

	ret = op_begin_reading(&op, txn, root, err);
	if (ret)
		return ret;
	ret = op_end(&op, get(&op, inode, name, value, room, size, err), err);
	return ret == 1 ? no_such_attribute(name, inode, err) : ret;
}
