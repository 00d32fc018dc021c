// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/base/compression/codec.h"

#include <errno.h>
#include <limits.h>
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
#endif

#include "lib/base/err.h"
#include "lib/base/le.h"
#include "lib/base/reader.h"

/* A compression method that a file extent may name. */
struct codec {
	uint8_t type;		/* value of the file extent's compression field */
	const char *name;
	/*
	 * Decompress until the stream ends or @out is full, whichever comes first, like Linux does; bytes after the end
	 * of the stream are padding. *got is the number of bytes written to @out, set on success only.
	 * @return 0; -EUCLEAN: not a complete stream of this method; -ENOMEM
	 */
	int (*decompress)(const uint8_t *in, size_t in_len, uint8_t *out, size_t out_len, uint32_t sectorsize,
			  size_t *got, struct btrkit_error *err);
};

#ifdef HAVE_ZLIB
static int zlib_decompress(const uint8_t *in, size_t in_len, uint8_t *out, size_t out_len, uint32_t sectorsize,
			   size_t *got, struct btrkit_error *err)
{
	z_stream stream = { 0 };
	int ret;

	(void)sectorsize;
	if (in_len > UINT_MAX || out_len > UINT_MAX)
		return err_corrupt(err, NULL, "zlib stream too large");
	/* zlib does not modify the input; its prototype only lacks the const. */
	stream.next_in = (Bytef *)in;
	stream.avail_in = (uInt)in_len;
	if (inflateInit(&stream) != Z_OK)
		return err_nomem(err);
	/* Do not verify the stream's own checksum. Linux does not either: the checksum tree covers the data. */
	inflateValidate(&stream, 0);
	stream.next_out = out;
	stream.avail_out = (uInt)out_len;
	ret = inflate(&stream, Z_SYNC_FLUSH);
	inflateEnd(&stream);
	if (ret == Z_MEM_ERROR)
		return err_nomem(err);
	if (ret != Z_STREAM_END && stream.avail_out)
		return err_corrupt(err, NULL, "bad zlib stream at byte %zu of %zu", in_len - stream.avail_in, in_len);
	*got = out_len - stream.avail_out;
	return 0;
}
#else
#define zlib_decompress NULL
#endif

#ifdef HAVE_LZO
/*
 * The stream starts with its total length, including this field. Segments follow, each preceded by its length; a
 * segment decompresses to one sector. A length field never crosses a sector boundary: if fewer bytes than that are left
 * in a sector, they are skipped.
 */
#define LZO_LENGTH sizeof(le32)

/* Reads the next length. @return false: the stream ends before it */
static bool lzo_length(struct reader *r, uint32_t *ret)
{
	const le32 *length = reader_take(r, LZO_LENGTH);

	if (!length)
		return false;
	*ret = le32_get(*length);
	return true;
}

/* Decompresses the next segment into @buf, which has room for a sector. *got is the size of the result. */
static int lzo_segment(struct reader *r, uint8_t *buf, uint32_t sectorsize, size_t *got, struct btrkit_error *err)
{
	lzo_uint size = sectorsize;
	const uint8_t *segment;
	uint32_t length;

	if (!lzo_length(r, &length))
		return err_corrupt(err, NULL, "lzo stream ends inside a segment's length");
	segment = reader_take(r, length);
	if (!segment)
		return err_corrupt(err, NULL, "lzo segment has %u bytes, only %zu are left", length, reader_left(r));
	if (lzo1x_decompress_safe(segment, length, buf, &size, NULL) != LZO_E_OK)
		return err_corrupt(err, NULL, "bad lzo segment of %u bytes", length);
	*got = size;
	return 0;
}

static int lzo_segments(struct reader *r, const uint8_t *start, uint8_t *buf, uint8_t *out, size_t out_len,
			uint32_t sectorsize, size_t *got, struct btrkit_error *err)
{
	size_t done = 0;

	while (done < out_len && reader_left(r)) {
		size_t n, left;
		int ret = lzo_segment(r, buf, sectorsize, &n, err);

		if (ret)
			return ret;
		if (n > out_len - done)
			n = out_len - done;
		memcpy(out + done, buf, n);
		done += n;
		left = sectorsize - (size_t)(r->pos - start) % sectorsize;
		if (left < LZO_LENGTH && !reader_take(r, left))
			break;
	}
	*got = done;
	return 0;
}

static int lzo_decompress(const uint8_t *in, size_t in_len, uint8_t *out, size_t out_len, uint32_t sectorsize,
			  size_t *got, struct btrkit_error *err)
{
	struct reader r = reader_of(in, in_len);
	uint32_t total;
	uint8_t *buf;
	int ret;

	if (!lzo_length(&r, &total))
		return err_corrupt(err, NULL, "lzo stream of %zu bytes has no length", in_len);
	/* The stream must reach into the last sector of the extent. */
	if (total < LZO_LENGTH || total > in_len || in_len - total >= sectorsize)
		return err_corrupt(err, NULL, "lzo stream of %zu bytes has invalid length %u", in_len, total);
	r.end = in + total;
	buf = malloc(sectorsize);
	if (!buf)
		return err_nomem(err);
	ret = lzo_segments(&r, in, buf, out, out_len, sectorsize, got, err);
	free(buf);
	return ret;
}
#else
#define lzo_decompress NULL
#endif

#ifdef HAVE_ZSTD
/* Linux rejects frames with a larger window, and no extent is larger than this window anyway. */
#define ZSTD_WINDOW_LOG_MAX 17

static int zstd_decompress(const uint8_t *in, size_t in_len, uint8_t *out, size_t out_len, uint32_t sectorsize,
			   size_t *got, struct btrkit_error *err)
{
	ZSTD_inBuffer from = { in, in_len, 0 };
	ZSTD_outBuffer to = { out, out_len, 0 };
	ZSTD_DCtx *ctx = ZSTD_createDCtx();
	size_t ret, before;

	(void)sectorsize;
	if (!ctx)
		return err_nomem(err);
	ret = ZSTD_DCtx_setParameter(ctx, ZSTD_d_windowLogMax, ZSTD_WINDOW_LOG_MAX);
	/* Without progress, either the whole input is consumed or the output is full. */
	do {
		before = from.pos + to.pos;
		if (!ZSTD_isError(ret))
			ret = ZSTD_decompressStream(ctx, &to, &from);
	} while (!ZSTD_isError(ret) && ret && to.pos < to.size && from.pos + to.pos > before);
	ZSTD_freeDCtx(ctx);
	if (ZSTD_isError(ret))
		return err_corrupt(err, NULL, "bad zstd stream: %s", ZSTD_getErrorName(ret));
	if (ret && to.pos < to.size)
		return err_corrupt(err, NULL, "zstd stream of %zu bytes ends early", in_len);
	*got = to.pos;
	return 0;
}
#else
#define zstd_decompress NULL
#endif

static const struct codec codecs[] = {
	{ 1, "zlib", zlib_decompress },
	{ 2, "lzo", lzo_decompress },
	{ 3, "zstd", zstd_decompress },
};

/* Sets *got to the number of bytes written to @out. */
static int decompress(uint8_t type, const void *in, size_t in_len, void *out, size_t out_len, uint32_t sectorsize,
		      size_t *got, struct btrkit_error *err)
{
	const struct codec *codec = NULL;

	for (size_t i = 0; i < sizeof(codecs) / sizeof(codecs[0]); i++)
		if (codecs[i].type == type)
			codec = &codecs[i];
	if (!codec)
		return err_set(err, BTRKIT_UNSUPPORTED, "unknown compression %u", type);
	if (!codec->decompress)
		return err_set(err, BTRKIT_UNSUPPORTED, "this build cannot decompress %s", codec->name);
	return codec->decompress(in, in_len, out, out_len, sectorsize, got, err);
}

int codec_decompress(uint8_t type, const void *in, size_t in_len, void *out, size_t out_len, uint32_t sectorsize,
		     struct btrkit_error *err)
{
	size_t got = 0;
	const int ret = decompress(type, in, in_len, out, out_len, sectorsize, &got, err);

	if (!ret)
		memset((uint8_t *)out + got, 0, out_len - got);
	return ret;
}

int codec_decompress_inline(uint8_t type, const void *in, size_t in_len, void *out, size_t out_len,
			    uint32_t sectorsize, struct btrkit_error *err)
{
	size_t got = 0;
	const int ret = decompress(type, in, in_len, out, out_len, sectorsize, &got, err);

	if (!ret && got < out_len)
		return err_corrupt(err, "ram_bytes", "inline data of %zu bytes decompresses to %zu", out_len, got);
	return ret;
}
