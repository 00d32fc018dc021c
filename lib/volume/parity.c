// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/volume/parity.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "lib/base/err.h"

#ifdef HAVE_ISAL
#include <isa-l/erasure_code.h>

#define TABLE 32 /* size of ISA-L's table for one coefficient */

bool parity_available(void)
{
	return true;
}

static int check_strips(unsigned n, size_t len, struct btrkit_error *err)
{
	if (!n || n > PARITY_STRIPS_MAX || len > INT_MAX)
		return err_set(err, BTRKIT_INVALID, "cannot compute parity of %u strips of %zu bytes", n, len);
	return 0;
}

/* Coefficients of the strips in Q: powers of 2. */
static void powers(unsigned n, unsigned char *ret)
{
	ret[0] = 1;
	for (unsigned i = 1; i < n; i++)
		ret[i] = gf_mul(ret[i - 1], 2);
}

/* Computes @rows linear combinations of @n strips. */
static int combine(unsigned n, unsigned rows, const unsigned char *coefficients, size_t len, uint8_t *const *strips,
		   uint8_t *const *to, struct btrkit_error *err)
{
	unsigned char *tables = malloc((size_t)TABLE * n * rows);

	if (!tables)
		return err_nomem(err);
	ec_init_tables((int)n, (int)rows, (unsigned char *)coefficients, tables);
	ec_encode_data((int)len, (int)n, (int)rows, tables, (unsigned char **)strips, (unsigned char **)to);
	free(tables);
	return 0;
}

int parity_generate(unsigned n, size_t len, uint8_t *const *data, uint8_t *p, uint8_t *q, struct btrkit_error *err)
{
	unsigned char coefficients[2 * PARITY_STRIPS_MAX];
	uint8_t *to[2] = { p, q };
	int ret = check_strips(n, len, err);

	if (ret)
		return ret;
	memset(coefficients, 1, n);
	powers(n, coefficients + n);
	return combine(n, q ? 2 : 1, coefficients, len, data, to, err);
}

/*
 * Computes the coefficients by which data strip @want is a combination of the @n strips in @use. These strips are
 * combinations of the data strips themselves, so that matrix is inverted.
 */
static int solve(unsigned n, const unsigned *use, unsigned want, unsigned char *coefficients, struct btrkit_error *err)
{
	unsigned char power[PARITY_STRIPS_MAX], *matrix = calloc(2, (size_t)n * n), *inverse = matrix + (size_t)n * n;
	int ret = 0;

	if (!matrix)
		return err_nomem(err);
	powers(n, power);
	for (unsigned i = 0; i < n; i++) {
		unsigned char *row = matrix + (size_t)i * n;

		if (use[i] < n)
			row[use[i]] = 1;
		else if (use[i] == n)
			memset(row, 1, n);
		else
			memcpy(row, power, n);
	}
	if (gf_invert_matrix(matrix, inverse, (int)n))
		ret = err_set(err, BTRKIT_INVALID, "strip cannot be rebuilt from the given ones");
	else
		memcpy(coefficients, inverse + (size_t)want * n, n);
	free(matrix);
	return ret;
}

int parity_rebuild(unsigned n, size_t len, uint8_t *const *strips, bool has_q, unsigned want, uint8_t *to,
		   struct btrkit_error *err)
{
	unsigned char coefficients[PARITY_STRIPS_MAX];
	unsigned use[PARITY_STRIPS_MAX], known = 0;
	uint8_t *from[PARITY_STRIPS_MAX];
	int ret = check_strips(n, len, err);

	if (ret)
		return ret;
	for (unsigned i = 0; i < n + 1u + has_q && known < n; i++) {
		if (i == want || !strips[i])
			continue;
		use[known] = i;
		from[known++] = strips[i];
	}
	if (known < n)
		return err_set(err, BTRKIT_TRUNCATED, "too few strips are left to rebuild the data");
	ret = solve(n, use, want, coefficients, err);
	return ret ? ret : combine(n, 1, coefficients, len, from, &to, err);
}

#else

bool parity_available(void)
{
	return false;
}

static int refuse(struct btrkit_error *err)
{
	return err_set(err, BTRKIT_UNSUPPORTED, "parity is not supported: built without ISA-L");
}

int parity_generate(unsigned n, size_t len, uint8_t *const *data, uint8_t *p, uint8_t *q, struct btrkit_error *err)
{
	(void)n, (void)len, (void)data, (void)p, (void)q;
	return refuse(err);
}

int parity_rebuild(unsigned n, size_t len, uint8_t *const *strips, bool has_q, unsigned want, uint8_t *to,
		   struct btrkit_error *err)
{
	(void)n, (void)len, (void)strips, (void)has_q, (void)want, (void)to;
	return refuse(err);
}

#endif
