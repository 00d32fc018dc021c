#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""List files whose extents are separated by holes."""
import pairs
import workloads

pairs.skip_unless_possible()
made = pairs.made('holes.img', workloads.hole_extents)
for bits, goal in ((28, None), (29, None), (30, 1 / 10)):
    workloads.fiemap('fiemap-holes', made, f'f{bits}', 1 << bits - 13, goal)
