// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Operations that change a randomly damaged filesystem must end, in bounded time and memory, with success or an error
 * message; and what they commit must be readable, to the end or to such an error. The damaged blocks have valid
 * checksums.
 *
 *	damage-modify FIRST COUNT
 *
 * A failure prints the number of the damage and the operation; with COUNT 1 it can be reproduced alone. If VERBOSE is
 * set in the environment, errors are printed too.
 */
#include "tests/damage/modify.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#define SECONDS_EACH 20
#define MEMORY_MAX (1ull << 30)

static char failure[160];
static unsigned long long number;

static struct {
	uint64_t opened, done, refused, commits, not_committed, sound;
} counts;

static void at(const char *what)
{
	snprintf(failure, sizeof(failure), "damage-modify: number %llu: %s\n", number, what);
}

static void died(int signal_number)
{
	/* Only async-signal-safe functions here. */
	if (write(STDERR_FILENO, failure, strlen(failure)) < 0)
		_exit(2);
	signal(signal_number, SIG_DFL);
	raise(signal_number);
}

/* A failure must have a message. */
static int ended(int ret, struct btrkit_error *err)
{
	if (ret > 0 || (ret < 0 && !err->message[0]) || ret == -EDOM)
		abort();
	if (ret && getenv("VERBOSE"))
		fprintf(stderr, "%s    %d: %s\n", failure, ret, err->message);
	*err = (struct btrkit_error)BTRKIT_ERROR_INIT;
	return ret;
}

static bool is_fatal(int ret)
{
	return ret == -ENOMEM || ret == -EUCLEAN || ret == -EIO || ret == -ENXIO;
}

static int open_it(struct doing *d, struct sparse *device, unsigned flags)
{
	struct btrkit_open_options opts = BTRKIT_OPEN_OPTIONS_INIT;
	struct btrkit_io *io = sparse_io(device);

	at("opening");
	opts.flags = flags;
	return ended(btrkit_fs_open(&io, 1, &opts, &d->fs, d->err), d->err);
}

static int start(struct doing *d)
{
	at("beginning");
	return d->txn ? 0 : ended(btrkit_txn_start(d->fs, &d->txn, d->err), d->err);
}

static int commit(struct doing *d)
{
	struct btrkit_txn *txn = d->txn;
	int ret;

	if (!txn)
		return 0;
	d->txn = NULL;
	at("the commit");
	ret = ended(btrkit_txn_commit(txn, NULL, d->err), d->err);
	counts.commits += !ret;
	counts.not_committed += !!ret;
	return ret;
}

static int operate(struct doing *d, const struct operation *o, uint64_t *state)
{
	int ret;

	if (start(d))
		return -1;
	/* Allow commits in the middle of operations in every other case. */
	btrkit_txn_set_may_commit(d->txn, hurt_number(state) % 2);
	at(o->name);
	ret = ended(o->run(d), d->err);
	counts.done += !ret;
	counts.refused += !!ret;
	d->round++;
	if (is_fatal(ret) || ret == -EINVAL)
		d->txn = btrkit_txn_abort(d->txn);
	return hurt_number(state) % 8 ? 0 : commit(d);
}

static const struct operation *operation(size_t i)
{
	i %= num_name_operations + num_content_operations;
	return i < num_content_operations ? &content_operations[i] : &name_operations[i - num_content_operations];
}

/* Runs all operations, starting with any of them, so that destructive ones are not always last. */
static void operate_all(struct sparse *device, const struct base *b, uint64_t *state)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct doing d = { .b = b, .err = &err };
	size_t left = num_name_operations + num_content_operations, first = hurt_number(state) % left;

	while (left) {
		if (open_it(&d, device, BTRKIT_OPEN_WRITE))
			return;
		counts.opened++;
		while (left && !operate(&d, operation(first++), state))
			left--;
		/* After a failed commit the handle starts no transaction; skip the operation. */
		if (left)
			left--;
		if (!left)
			(void)!commit(&d);
		if (d.txn)
			d.txn = btrkit_txn_abort(d.txn);
		btrkit_fs_close(d.fs);
	}
}

static void read_it(struct sparse *device)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct doing d = { .err = &err };

	if (open_it(&d, device, 0))
		return;
	at("reading");
	counts.sound += !ended(read_all(&d), d.err);
	btrkit_fs_close(d.fs);
}

static void try_one(const struct base *b)
{
	struct sparse *device = sparse_create(sparse_io(b->at)->size, b->at);
	uint64_t state = number;

	/* Number 0 is undamaged. */
	if (number)
		hurt(b, device, &state);
	/* Limit CPU time: the machine may be busy. */
	setitimer(ITIMER_PROF, &(struct itimerval){ .it_value.tv_sec = SECONDS_EACH }, NULL);
	read_it(device);
	operate_all(device, b, &state);
	read_it(device);
	sparse_free(device);
}

int main(int argc, char **argv)
{
	const struct rlimit memory = { MEMORY_MAX, MEMORY_MAX };
	struct base bases[BASE_KINDS];
	unsigned long long first, count;

	if (argc != 3)
		return 2;
	first = strtoull(argv[1], NULL, 0);
	count = strtoull(argv[2], NULL, 0);
	/* Sanitizers reserve huge address ranges. */
	if (!getenv("ASAN_OPTIONS"))
		setrlimit(RLIMIT_AS, &memory);
	for (unsigned kind = 0; kind < BASE_KINDS; kind++)
		base_make(&bases[kind], kind);
	signal(SIGPROF, died);
	signal(SIGSEGV, died);
	signal(SIGABRT, died);
	for (number = first; number < first + count; number++)
		for (unsigned kind = 0; kind < BASE_KINDS; kind++)
			try_one(&bases[kind]);
	for (unsigned kind = 0; kind < BASE_KINDS; kind++)
		base_free(&bases[kind]);
	printf("%llu damages, %llu handles: %llu operations done, %llu refused; %llu commits, %llu not; %llu of %llu "
	       "are "
	       "sound\n",
	       count * BASE_KINDS, (unsigned long long)counts.opened, (unsigned long long)counts.done,
	       (unsigned long long)counts.refused, (unsigned long long)counts.commits,
	       (unsigned long long)counts.not_committed, (unsigned long long)counts.sound, 2 * count * BASE_KINDS);
	return 0;
}
