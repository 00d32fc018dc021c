#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Lists a file whose 65,536 extents lie in no order, so that what the extent tree says of each is elsewhere."""
import pairs
import workloads

pairs.skip_unless_possible()
workloads.fiemap('fiemap-scattered', pairs.made('scattered.img', workloads.scattered_extents), 'scattered', 65536, None)
