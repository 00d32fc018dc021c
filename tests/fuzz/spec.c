// SPDX-License-Identifier: LGPL-2.1-or-later
/* The name of a device, or of a part of one. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>

#include "lib/io/spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct io_spec spec;
	char *text = malloc(size + 1);
	const uint64_t device = 1 << 20;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	if (!io_spec_parse(text, &spec, NULL)) {
		if (!spec.partition && !io_spec_locate(&spec, -1, device, NULL) &&
		    (spec.offset > device || spec.size > device - spec.offset))
			abort();
		free(spec.path);
	}
	free(text);
	return 0;
}
