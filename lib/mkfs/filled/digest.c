// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/mkfs/filled/digest.h"

#include <btrkit/mkfs.h>

#include "lib/base/csum.h"
#include "lib/base/le.h"
#include "lib/base/zero.h"

bool digest_available(void)
{
	return csum_kind_find(BTRKIT_CSUM_XXHASH64)->compute;
}

static uint64_t hash(const void *data, size_t len)
{
	le64 sum;

	csum_kind_find(BTRKIT_CSUM_XXHASH64)->compute(data, len, (uint8_t *)&sum);
	return le64_get(sum);
}

uint64_t digest_unit(const void *data, size_t len)
{
	const bool zeros = is_all_zeros(data, len);
	const uint64_t sum = zeros ? 0 : hash(data, len);

	return zeros || sum ? sum : 1;
}

uint64_t digest_fold(uint64_t so_far, uint64_t offset, uint64_t unit)
{
	const le64 all[3] = { le64_put(so_far), le64_put(offset), le64_put(unit) };

	return unit ? hash(all, sizeof(all)) : so_far;
}
