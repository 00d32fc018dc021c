// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/base/err.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/text.h"

#define NAME_SHOWN 80 /* maximum bytes of a name in a message */

int err_errno(enum btrkit_code code)
{
	switch (code) {
	case BTRKIT_OK:
		return 0;
	case BTRKIT_NOT_BTRFS:
		return -EMEDIUMTYPE;
	case BTRKIT_UNSUPPORTED:
		return -EOPNOTSUPP;
	case BTRKIT_CORRUPT:
		return -EUCLEAN;
	case BTRKIT_TRUNCATED:
		return -ENXIO;
	case BTRKIT_IO:
	case BTRKIT_SYSTEM:
		return -EIO;
	case BTRKIT_NO_SPACE:
		return -ENOSPC;
	case BTRKIT_BUSY:
		return -EBUSY;
	case BTRKIT_INVALID:
		return -EINVAL;
	case BTRKIT_NOT_FOUND:
		return -ENOENT;
	case BTRKIT_NO_MEMORY:
		return -ENOMEM;
	case BTRKIT_NO_ATTRIBUTE:
		return -ENODATA;
	}
	return -EINVAL;
}

const char *btrkit_cause_name(enum btrkit_cause cause)
{
	static const char *const names[] = {
		[BTRKIT_CAUSE_OTHER] = "other",
		[BTRKIT_CAUSE_NO_SUPERBLOCK] = "no-superblock",
		[BTRKIT_CAUSE_UNDO_UNFINISHED] = "undo-unfinished",
		[BTRKIT_CAUSE_FEATURE] = "feature",
		[BTRKIT_CAUSE_LOG_TREE] = "log-tree",
		[BTRKIT_CAUSE_DEVICE_MISSING] = "device-missing",
		[BTRKIT_CAUSE_DEVICE_STALE] = "device-stale",
		[BTRKIT_CAUSE_IN_USE] = "in-use",
		[BTRKIT_CAUSE_LOCKED] = "locked",
		[BTRKIT_CAUSE_UNMAPPED] = "unmapped",
		[BTRKIT_CAUSE_CSUM] = "csum",
		[BTRKIT_CAUSE_FSID] = "fsid",
		[BTRKIT_CAUSE_BYTENR] = "bytenr",
		[BTRKIT_CAUSE_OWNER] = "owner",
		[BTRKIT_CAUSE_LEVEL] = "level",
		[BTRKIT_CAUSE_GENERATION] = "generation",
		[BTRKIT_CAUSE_FIRST_KEY] = "first-key",
	};

	return (unsigned)cause < sizeof(names) / sizeof(names[0]) ? names[cause] : NULL;
}

static enum btrkit_code code_of_errno(int errnum)
{
	switch (errnum) {
	case EIO:
		return BTRKIT_IO;
	case ENOSPC:
		return BTRKIT_NO_SPACE;
	case EBUSY:
		return BTRKIT_BUSY;
	case EINVAL:
		return BTRKIT_INVALID;
	case ENOENT:
		return BTRKIT_NOT_FOUND;
	case ENOMEM:
		return BTRKIT_NO_MEMORY;
	case ENODATA:
		return BTRKIT_NO_ATTRIBUTE;
	default:
		return BTRKIT_SYSTEM;
	}
}

static void fill(struct btrkit_error *err, enum btrkit_code code, int errnum, const char *fmt, va_list args)
{
	*err = (struct btrkit_error){ .code = code, .err = errnum };
	vsnprintf(err->message, sizeof(err->message), fmt, args);
}

int err_set(struct btrkit_error *err, enum btrkit_code code, const char *fmt, ...)
{
	va_list args;

	if (err) {
		va_start(args, fmt);
		fill(err, code, err_errno(code), fmt, args);
		va_end(args);
	}
	return err_errno(code);
}

int err_system(struct btrkit_error *err, int errnum, const char *fmt, ...)
{
	char reason[64], *text;
	va_list args;

	if (errnum < 0)
		errnum = -errnum;
	if (!errnum)
		errnum = EIO;
	if (err) {
		va_start(args, fmt);
		fill(err, code_of_errno(errnum), -errnum, fmt, args);
		va_end(args);
		/* This is the GNU strerror_r(), which may return a static string instead of using the buffer. */
		text = strerror_r(errnum, reason, sizeof(reason));
		text_add(err->message, sizeof(err->message), ": %s", text);
	}
	return -errnum;
}

int err_nomem(struct btrkit_error *err)
{
	return err_set(err, BTRKIT_NO_MEMORY, "out of memory");
}

int err_pass(struct btrkit_error *err, const struct btrkit_error *own, int ret)
{
	if (ret < 0 && err)
		*err = *own;
	return ret;
}

int (err_corrupt)(struct btrkit_error *err, const char *field, const char *fmt, ...)
{
	va_list args;

	if (err) {
		va_start(args, fmt);
		fill(err, BTRKIT_CORRUPT, -EUCLEAN, fmt, args);
		va_end(args);
		if (field)
			snprintf(err->field, sizeof(err->field), "%s", field);
	}
	return -EUCLEAN;
}

void err_name(struct btrkit_error *err, const char *name)
{
	const size_t len = strlen(name);
	char text[sizeof(err->message)];

	if (!err)
		return;
	memcpy(text, err->message, sizeof(text));
	/* Keep the end of a long path, which identifies it best. */
	snprintf(err->message, sizeof(err->message), "%s: %.*s", len > NAME_SHOWN ? name + len - NAME_SHOWN : name,
		 (int)sizeof(err->message) - NAME_SHOWN - 3, text);
}

void err_at_device(struct btrkit_error *err, uint64_t devid, uint64_t physical)
{
	if (err && !(err->places & BTRKIT_AT_DEVID)) {
		err->places |= BTRKIT_AT_DEVID | BTRKIT_AT_PHYSICAL;
		err->devid = devid;
		err->physical = physical;
	}
}

void err_at_devid(struct btrkit_error *err, uint64_t devid)
{
	if (err && !(err->places & BTRKIT_AT_DEVID)) {
		err->places |= BTRKIT_AT_DEVID;
		err->devid = devid;
	}
}

void err_at_logical(struct btrkit_error *err, uint64_t logical)
{
	if (err && !(err->places & BTRKIT_AT_LOGICAL)) {
		err->places |= BTRKIT_AT_LOGICAL;
		err->logical = logical;
	}
}

void err_at_tree(struct btrkit_error *err, uint64_t tree)
{
	if (err && !(err->places & BTRKIT_AT_TREE)) {
		err->places |= BTRKIT_AT_TREE;
		err->tree = tree;
	}
}

void err_at_item(struct btrkit_error *err, uint32_t slot, const struct btrkit_key *key)
{
	if (err && !(err->places & BTRKIT_AT_SLOT)) {
		err->places |= BTRKIT_AT_SLOT;
		err->slot = slot;
		if (key) {
			err->places |= BTRKIT_AT_KEY;
			err->key = *key;
		}
	}
}

void err_at_key(struct btrkit_error *err, const struct btrkit_key *key)
{
	if (err && !(err->places & BTRKIT_AT_KEY)) {
		err->places |= BTRKIT_AT_KEY;
		err->key = *key;
	}
}

const char *btrkit_error_format(const struct btrkit_error *err, char *buf, size_t size)
{
	if (!size)
		return buf;
	*buf = 0;
	text_add_printable(buf, size, err->message);
	if (err->places & BTRKIT_AT_TREE)
		text_add(buf, size, ", tree %" PRIu64, err->tree);
	if (err->places & BTRKIT_AT_LOGICAL)
		text_add(buf, size, ", block %" PRIu64, err->logical);
	if (err->places & BTRKIT_AT_DEVID)
		text_add(buf, size, ", device %" PRIu64, err->devid);
	if (err->places & BTRKIT_AT_PHYSICAL)
		text_add(buf, size, ", physical %" PRIu64, err->physical);
	if (err->places & BTRKIT_AT_SLOT)
		text_add(buf, size, ", slot %" PRIu32, err->slot);
	if (err->places & BTRKIT_AT_KEY)
		text_add(buf, size, ", key (%" PRIu64 " %u %" PRIu64 ")", err->key.objectid, err->key.type,
			 err->key.offset);
	if (err->field[0])
		text_add(buf, size, ", field %s", err->field);
	if (err->copies[0]) {
		text_add(buf, size, "; ");
		text_add_printable(buf, size, err->copies);
	}
	return buf;
}
