// SPDX-License-Identifier: LGPL-2.1-or-later
/* The commit: the order of its steps, and what remains if one fails. */
#include "lib/commit/commit.h"

#include <string.h>

#include "lib/commit/clock.h"
#include "lib/commit/conversion.h"
#include "lib/commit/refs.h"
#include "lib/commit/settle.h"
#include "lib/commit/supers.h"
#include "lib/commit/write.h"

static bool changed_anything(const struct btrkit_txn *txn)
{
	return txn->overlay->num_nodes || refs_pending(txn->refs) || txn->csums.n ||
	       memcmp(&txn->super, &txn->fs->super.disk, sizeof(txn->super));
}

/* Calls the verify callback. Trees that it reads come from the devices. */
static int verify(struct btrkit_txn *txn, struct btrkit_error *err)
{
	struct btrkit_fs *fs = txn->fs;
	int ret;

	if (!txn->verify)
		return 0;
	fs->overlay = NULL;
	ret = txn->verify(txn->verify_ctx, txn, err);
	fs->overlay = txn->overlay;
	return ret;
}

/* Writes everything, up to the last flush. @state: state of the filesystem, also after a failure */
static int write_all(struct btrkit_txn *txn, struct commit_supers **supers, enum btrkit_commit_state *state,
		     struct btrkit_error *err)
{
	int ret = commit_settle(txn, err);

	if (!ret)
		ret = commit_supers_make(txn, supers, err);
	if (!ret)
		ret = commit_supers_reserve(*supers, err);
	if (!ret)
		ret = commit_supers_check(txn->fs, err);
	if (!ret)
		ret = commit_write_blocks(txn, err);
	if (!ret)
		ret = verify(txn, err);
	if (ret)
		return ret;
	*state = BTRKIT_COMMIT_UNKNOWN;
	ret = commit_supers_join(txn, *supers, err);
	if (!ret)
		ret = commit_supers_write(txn, *supers, 0, err);
	if (!ret)
		ret = commit_flush(txn, err);
	if (ret)
		return ret;
	*state = BTRKIT_COMMIT_NEW;
	for (unsigned mirror = 1; !ret && mirror < SUPER_MIRRORS; mirror++)
		ret = commit_supers_write(txn, *supers, mirror, err);
	if (!ret)
		ret = commit_flush(txn, err);
	return ret ? ret : commit_supers_leave(txn, err);
}

static void tell_state(enum btrkit_commit_state state, struct btrkit_error *err)
{
	static const char *const words[] = {
		[BTRKIT_COMMIT_OLD] = "; the filesystem is unchanged",
		[BTRKIT_COMMIT_NEW] = "; the filesystem was changed, but not all superblock mirrors were updated",
		[BTRKIT_COMMIT_UNKNOWN] = "; it is unknown whether the filesystem was changed",
	};
	const size_t room = sizeof(err->message) - strlen(words[state]) - 1;

	if (!err)
		return;
	if (strlen(err->message) > room)
		err->message[room] = '\0';
	strcat(err->message, words[state]);
}

/* Makes the handle use the state that is on the devices now. */
static void become_new(struct btrkit_txn *txn, const struct super *super)
{
	struct btrkit_fs *fs = txn->fs;
	struct btrkit_write_stats *stats = &txn->writer->stats;

	stats->commits++;
	stats->nodes_copied += txn->overlay->copied;
	stats->nodes_created += txn->overlay->created;
	conversion_end(txn, true);
	fs->super = *super;
	fs->items = super_item_ctx(super);
	txn->overlay = overlay_commit(txn->overlay);
	space_committed(txn->space);
	txn_drop(txn);
}

int commit_txn(struct btrkit_txn *txn, uint64_t start, int ret, enum btrkit_commit_state *state,
	       struct btrkit_error *err)
{
	enum btrkit_commit_state reached = BTRKIT_COMMIT_OLD;
	struct commit_supers *supers = NULL;
	/* If an earlier commit failed, its error already says what state it left. */
	const bool before = failure_of_commit(txn->failure, &reached);

	if (!ret)
		ret = failure_check(txn->failure, err);
	if (!ret && !changed_anything(txn)) {
		txn_drop(txn);
		*state = BTRKIT_COMMIT_NEW;
		return 0;
	}
	if (!ret)
		ret = write_all(txn, &supers, &reached, err);
	if (supers && reached == BTRKIT_COMMIT_NEW)
		become_new(txn, commit_supers_decoded(supers));
	else
		txn_drop(txn);
	commit_supers_free(supers);
	if (ret && !before)
		tell_state(reached, err);
	if (ret)
		failure_note_commit(txn->failure, ret, err, reached);
	txn->writer->stats.commit_ns += now_ns() - start;
	*state = reached;
	return ret;
}
