// SPDX-License-Identifier: LGPL-2.1-or-later
/* Decompression. Input: the compression type, the size of the output in units of 512 bytes, the stream. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>

#include "lib/base/compression/codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t out_len, in_len;
	uint8_t *in, *out;

	if (size < 2)
		return 0;
	out_len = (size_t)data[1] * 512 + 1;
	in_len = size - 2;
	/* Both buffers have their exact size, so that sanitizers find every access past the end. */
	out = malloc(out_len);
	in = malloc(in_len + !in_len);
	if (in && out) {
		memcpy(in, data + 2, in_len);
		if (codec_decompress(data[0], in, in_len, out, out_len, 4096, NULL) > 0)
			abort();
	}
	free(in);
	free(out);
	return 0;
}
