// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/base/compression/encode.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"

#ifdef HAVE_ZLIB
#include <zlib.h>
#endif
#ifdef HAVE_LZO
#include <lzo/lzo1x.h>
#endif
#ifdef HAVE_ZSTD
#include <zstd.h>
#include <zstd_errors.h>
#endif

#include "lib/base/err.h"
#include "lib/base/le.h"

struct encoder {
	const struct kind *kind;
	int level;
	uint32_t sectorsize;
	void *state; /* owned by the method */
};

struct kind {
	uint8_t type;
	const char *name;
	int level_max, level_default; /* 0: no levels */
	int (*open)(struct encoder *e, struct btrkit_error *err);
	void (*close)(struct encoder *e);
	int (*run)(struct encoder *e, const uint8_t *in, size_t len, uint8_t *out, size_t size, size_t *got,
		   struct btrkit_error *err);
	const char *(*version)(void);
};

#ifdef HAVE_ZLIB
static int zlib_open(struct encoder *e, struct btrkit_error *err)
{
	z_stream *stream = calloc(1, sizeof(*stream));

	if (!stream || deflateInit(stream, e->level) != Z_OK) {
		free(stream);
		return err_nomem(err);
	}
	e->state = stream;
	return 0;
}

static void zlib_close(struct encoder *e)
{
	deflateEnd(e->state);
	free(e->state);
}

static int zlib_run(struct encoder *e, const uint8_t *in, size_t len, uint8_t *out, size_t size, size_t *got,
		    struct btrkit_error *err)
{
	z_stream *stream = e->state;
	int ret;

	if (deflateReset(stream) != Z_OK)
		return err_system(err, EIO, "cannot initialize zlib");
	stream->next_in = (Bytef *)in;
	stream->avail_in = (uInt)len;
	stream->next_out = out;
	stream->avail_out = (uInt)size;
	ret = deflate(stream, Z_FINISH);
	if (ret != Z_STREAM_END)
		return 1;
	*got = size - stream->avail_out;
	return 0;
}

#define ZLIB zlib_open, zlib_close, zlib_run, zlibVersion
#else
#define ZLIB NULL, NULL, NULL, NULL
#endif

#ifdef HAVE_LZO
/* The total length (4 bytes) comes first. The length of each segment also has 4 bytes and never crosses a sector. */
#define LZO_LENGTH sizeof(le32)

struct lzo_state {
	uint8_t *segment; /* room for the worst-case compressed size of a sector */
	uint8_t work[LZO1X_1_MEM_COMPRESS];
};

static int lzo_open(struct encoder *e, struct btrkit_error *err)
{
	struct lzo_state *s = malloc(sizeof(*s));

	if (s)
		s->segment = malloc(e->sectorsize + e->sectorsize / 16 + 64 + 3);
	if (!s || !s->segment) {
		free(s);
		return err_nomem(err);
	}
	e->state = s;
	return 0;
}

static void lzo_close(struct encoder *e)
{
	struct lzo_state *s = e->state;

	free(s->segment);
	free(s);
}

static bool lzo_put(uint8_t *out, size_t size, size_t *at, const void *data, size_t len)
{
	if (len > size - *at)
		return false;
	memcpy(out + *at, data, len);
	*at += len;
	return true;
}

static int lzo_run(struct encoder *e, const uint8_t *in, size_t len, uint8_t *out, size_t size, size_t *got,
		   struct btrkit_error *err)
{
	static const uint8_t zeros[LZO_LENGTH];
	struct lzo_state *s = e->state;
	size_t at = LZO_LENGTH;
	le32 length;

	if (size < LZO_LENGTH)
		return 1;
	for (size_t done = 0; done < len; done += e->sectorsize) {
		const size_t n = len - done < e->sectorsize ? len - done : e->sectorsize;
		const size_t left = e->sectorsize - at % e->sectorsize;
		lzo_uint segment;

		if (left < LZO_LENGTH && !lzo_put(out, size, &at, zeros, left))
			return 1;
		if (lzo1x_1_compress(in + done, n, s->segment, &segment, s->work) != LZO_E_OK)
			return err_system(err, EIO, "lzo compression failed");
		length = le32_put((uint32_t)segment);
		if (!lzo_put(out, size, &at, &length, sizeof(length)) || !lzo_put(out, size, &at, s->segment, segment))
			return 1;
	}
	length = le32_put((uint32_t)at);
	memcpy(out, &length, sizeof(length));
	*got = at;
	return 0;
}

static const char *lzo_version_text(void)
{
	return lzo_version_string();
}

#define LZO lzo_open, lzo_close, lzo_run, lzo_version_text
#else
#define LZO NULL, NULL, NULL, NULL
#endif

#ifdef HAVE_ZSTD
/* Linux rejects frames with a larger window. */
#define ZSTD_WINDOW_LOG_MAX 17

static int zstd_open(struct encoder *e, struct btrkit_error *err)
{
	ZSTD_CCtx *ctx = ZSTD_createCCtx();

	if (!ctx)
		return err_nomem(err);
	if (ZSTD_isError(ZSTD_CCtx_setParameter(ctx, ZSTD_c_compressionLevel, e->level))) {
		ZSTD_freeCCtx(ctx);
		return err_system(err, EIO, "zstd does not support level %d", e->level);
	}
	e->state = ctx;
	return 0;
}

static void zstd_close(struct encoder *e)
{
	ZSTD_freeCCtx(e->state);
}

static int zstd_run(struct encoder *e, const uint8_t *in, size_t len, uint8_t *out, size_t size, size_t *got,
		    struct btrkit_error *err)
{
	const size_t ret = ZSTD_compress2(e->state, out, size, in, len);

	/* The window is never larger than the input, which has at most ENCODE_MAX bytes. */
	_Static_assert(ENCODE_MAX == 1u << ZSTD_WINDOW_LOG_MAX, "window");
	if (!ZSTD_isError(ret)) {
		*got = ret;
		return 0;
	}
	return ZSTD_getErrorCode(ret) == ZSTD_error_dstSize_tooSmall ?
		       1 :
		       err_system(err, EIO, "zstd compression failed: %s", ZSTD_getErrorName(ret));
}

#define ZSTD zstd_open, zstd_close, zstd_run, ZSTD_versionString
#else
#define ZSTD NULL, NULL, NULL, NULL
#endif

static const struct kind kinds[] = {
	{ 1, "zlib", 9, 3, ZLIB },
	{ 2, "lzo", 0, 0, LZO },
	{ 3, "zstd", 15, 3, ZSTD },
};

static const struct kind *find(uint8_t type)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (kinds[i].type == type)
			return &kinds[i];
	return NULL;
}

int encoder_create(uint8_t type, int level, uint32_t sectorsize, struct encoder **ret, struct btrkit_error *err)
{
	const struct kind *kind = find(type);
	struct encoder *e;
	int r;

	if (!kind)
		return err_set(err, BTRKIT_UNSUPPORTED, "unknown compression %u", type);
	if (!kind->run)
		return err_set(err, BTRKIT_UNSUPPORTED, "this build cannot compress with %s", kind->name);
	if (level < 0 || level > kind->level_max)
		return err_set(err, BTRKIT_INVALID, "%s has no level %d", kind->name, level);
	e = calloc(1, sizeof(*e));
	if (!e)
		return err_nomem(err);
	*e = (struct encoder){ kind, level ? level : kind->level_default, sectorsize, NULL };
	r = kind->open(e, err);
	if (r)
		free(e);
	else
		*ret = e;
	return r;
}

struct encoder *encoder_destroy(struct encoder *e)
{
	if (!e)
		return NULL;
	e->kind->close(e);
	free(e);
	return NULL;
}

int encoder_run(struct encoder *e, const void *in, size_t len, void *out, size_t size, size_t *got,
		struct btrkit_error *err)
{
	return e->kind->run(e, in, len, out, size, got, err);
}

const char *encoder_library(uint8_t type)
{
	const struct kind *kind = find(type);

	return kind && kind->version ? kind->version() : NULL;
}
