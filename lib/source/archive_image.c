// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Recognizes what `docker save`, `podman save`, `crane pull` and the OCI image layout put into an archive: not the
 * files of an image, but one archive for each of its layers, and lists of them.
 */
#include "lib/source/archive_reader.h"

#ifdef HAVE_ARCHIVE

#include <string.h>

#include "lib/base/err.h"

enum {
	SEEN_MANIFEST = 1 << 0, /* manifest.json of docker */
	SEEN_LAYER = 1 << 1,	/* archives of layers, named by those programs */
	SEEN_LAYOUT = 1 << 2,	/* oci-layout */
	SEEN_INDEX = 1 << 3	/* index.json of OCI */
};

#define DIGEST 64u

/* Returns whether a path begins with a SHA-256 digest in hexadecimal. */
static bool has_digest(const char *path)
{
	return strspn(path, "0123456789abcdef") == DIGEST;
}

/* Returns whether this follows a digest in the name of a layer: of docker, podman, or crane and kaniko. */
static bool is_layer(const char *behind)
{
	return !strcmp(behind, "/layer.tar") || !strcmp(behind, ".tar") || !strcmp(behind, ".tar.gz");
}

static unsigned kind_of(const char *path)
{
	static const char blobs[] = "blobs/sha256/";

	path += strspn(path, "/");
	if (!strncmp(path, "./", 2))
		path += 2;
	if (!strcmp(path, "manifest.json"))
		return SEEN_MANIFEST;
	if (!strcmp(path, "oci-layout"))
		return SEEN_LAYOUT;
	if (!strcmp(path, "index.json"))
		return SEEN_INDEX;
	if (has_digest(path) && is_layer(path + DIGEST))
		return SEEN_LAYER;
	if (!strncmp(path, blobs, sizeof(blobs) - 1) && has_digest(path + sizeof(blobs) - 1))
		return SEEN_LAYER;
	return 0;
}

int archive_check_image(struct archive_reader *r, struct btrkit_error *err)
{
	static const unsigned docker = SEEN_MANIFEST | SEEN_LAYER, oci = SEEN_LAYOUT | SEEN_INDEX;

	r->seen |= kind_of(r->path);
	if ((r->seen & docker) != docker && (r->seen & oci) != oci)
		return 0;
	return err_set(err, BTRKIT_INVALID,
		       "%s: contains images of containers, not their files: unpack it, and name the layers of one "
		       "image (in manifest.json, or in the manifest that index.json names) with --tar each, the lowest "
		       "first",
		       r->stream.name);
}

#endif
