/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_CRASH_SPARSE_H
#define BTRKIT_TESTS_CRASH_SPARSE_H

/*
 * A device in memory that stores only pages that were written. It may be layered over another device, which shows
 * through where there is no page and is never changed, so that each crash state costs only its differences.
 */

#include <stdio.h>

#include <btrkit/io.h>

struct sparse;

/* @below: the lower device, which must outlive this one; NULL: zeros. Exits if out of memory. */
struct sparse *sparse_create(uint64_t size, struct sparse *below);
void sparse_free(struct sparse *s);
/* Makes the device resizable in whole pages, like a file. It must not be layered. */
void sparse_like_file(struct sparse *s);

/* Copies a layer. Writes to one copy are not seen in the other. */
struct sparse *sparse_clone(const struct sparse *s);

/* Loads a file. */
struct sparse *sparse_import(const char *path);

/* The device for the library. Closing it does nothing: it lives as long as @s. */
struct btrkit_io *sparse_io(struct sparse *s);

void sparse_read(struct sparse *s, uint64_t offset, void *buf, size_t len);
void sparse_write(struct sparse *s, uint64_t offset, const void *buf, size_t len);
void sparse_discard(struct sparse *s, uint64_t offset, uint64_t len);

/* Read-only access to a page of 4096 bytes. */
#define SPARSE_PAGE 4096u
const uint8_t *sparse_page(const struct sparse *s, uint64_t number);

/* Record in @pages, a bit per page, what the library reads from now on. NULL: stop. */
void sparse_trace(struct sparse *s, uint8_t *pages);

/* Whether two devices of the same size differ in a byte outside the three superblocks. */
bool sparse_differs(struct sparse *a, struct sparse *b);

/* Whether two devices of the same size have the same contents. */
bool sparse_equal(struct sparse *a, struct sparse *b);

/* Hashes all differences from @base, a lower layer of @s, or NULL for zeros. Equal contents have equal hashes. */
uint64_t sparse_hash(struct sparse *s, const struct sparse *base);

/* Writes to a file, with holes for zeros. */
void sparse_export(struct sparse *s, const char *path);

/* Prints the differences from the lower device: OFFSET:BYTES for each run, in hexadecimal, separated by blanks. */
void sparse_print(struct sparse *s, FILE *to);

#endif
