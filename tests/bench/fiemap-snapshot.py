#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""List the 327,680 extents of a file with a snapshot, with the sharedness of each."""
import pairs
import workloads

pairs.skip_unless_possible()
workloads.fiemap('fiemap-snapshot', pairs.made('snap.img', workloads.snapshot_extents), 'foobar', 327680, 1 / 10)
