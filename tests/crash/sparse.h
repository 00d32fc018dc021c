/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_CRASH_SPARSE_H
#define BTRKIT_TESTS_CRASH_SPARSE_H

/*
 * A device of which only the pages that were written take memory. It may lie over another, which it shows where it has
 * no page of its own and never changes: so a state of a device costs what is different in it.
 */

#include <stdio.h>

#include <btrkit/io.h>

struct sparse;

/* @below: may be NULL, for zeros; it must outlive this one. Ends the program when there is no memory. */
struct sparse *sparse_create(uint64_t size, struct sparse *below);
void sparse_free(struct sparse *s);
/* From here on it can be resized, by whole pages. It must lie over nothing. */
void sparse_like_file(struct sparse *s);

/* The same over the same: what is written to one does not appear in the other. */
struct sparse *sparse_clone(const struct sparse *s);

/* What is in a file. */
struct sparse *sparse_import(const char *path);

/* The device for the library. To close it does nothing: it lives as long as @s. */
struct btrkit_io *sparse_io(struct sparse *s);

void sparse_read(struct sparse *s, uint64_t offset, void *buf, size_t len);
void sparse_write(struct sparse *s, uint64_t offset, const void *buf, size_t len);
void sparse_discard(struct sparse *s, uint64_t offset, uint64_t len);

/* A page of 4096 bytes, to be read only. */
#define SPARSE_PAGE 4096u
const uint8_t *sparse_page(const struct sparse *s, uint64_t number);

/* From here on the device notes in @pages, a bit for each, what the library reads. NULL: no longer. */
void sparse_trace(struct sparse *s, uint8_t *pages);

/* Whether two devices of one size differ in a byte outside the three superblocks. */
bool sparse_differs(struct sparse *a, struct sparse *b);

/* Whether two devices of one size have the same bytes. */
bool sparse_equal(struct sparse *a, struct sparse *b);

/* Of all that is different from @base, which @s lies over, or from zeros. Equal bytes have equal hashes. */
uint64_t sparse_hash(struct sparse *s, const struct sparse *base);

/* Into a file, with a hole wherever there is nothing but zeros. */
void sparse_export(struct sparse *s, const char *path);

/* What is different from what it lies over: OFFSET:BYTES of each run, in hexadecimal, with spaces between. */
void sparse_print(struct sparse *s, FILE *to);

#endif
