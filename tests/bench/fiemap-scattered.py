#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""List a file whose 65,536 extents are in random order on disk, so that their items are scattered over the extent
tree."""
import pairs
import workloads

pairs.skip_unless_possible()
workloads.fiemap('fiemap-scattered', pairs.made('scattered.img', workloads.scattered_extents), 'scattered', 65536, None)
