#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the instructions of a tile in compiled forward kernels by pipe, and predicts its cycles.

usage: slots.py [--tool CUOBJDUMP] [--warps N,N...] CUBIN [KERNEL...]

    nvcc -std=c++20 -arch=sm_90 -cubin -DSCANKIT_FORWARD -DSCANKIT_DTYPE=BF16 -DSCANKIT_TUNE -o f.cubin \\
      B/generated/selective_scan.cu && slots.py f.cubin 4x4 8x2x2

The tile is one of whole pieces with z, D, softplus and saved states. The prediction (slots_model.py) is a model:
it ranks variants; README.md of kernels says how it compares with what was measured.
"""
import argparse
import collections
import re

from sass import kernels, tile_path
from slots_model import pipe_of, predict

CHANNELS = {"4x4": 2}  # of a thread, where the name does not say it


def layout(name):
    """(lanes, states of a lane, channels of a thread, exponentials of 16 that are ex2)."""
    lanes, per, channels = re.match(r"(\d+)x(\d+)(?:x(\d+))?", name).groups()
    by_fma = re.search(r"(\d)of16", name)
    return int(lanes), int(per), int(channels or CHANNELS.get(name, 1)), 16 - int(by_fma[1] if by_fma else 0)


def describe(name, code, warps):
    before, turn, after = tile_path(code)
    lanes, per, channels, of16 = layout(name)
    span = 32 * max(1, 8 // (32 // lanes * channels))  # steps from one barrier to the next
    steps = round(sum(i.opcode == "MUFU.EX2" for i in turn) * 16 / of16 / (per * channels))
    turns, states = span // steps, span * per * channels  # of a lane
    total = len(before) + turns * len(turn) + len(after)
    print(f"{name}: {total} instructions, {total / states:.2f} an element-state; {turns} turns")
    for part, listed in (("before", before), ("turn", turn), ("after", after)):
        pipes = collections.Counter(pipe_of(i) for i in listed)
        print(f"  {part} {len(listed)}: " + ", ".join(f"{k} {v}" for k, v in sorted(pipes.items())))
    path = before + turn * turns + after
    for n in warps:
        cycles = predict(path, 4 * n)
        print(f"  {n} warps a scheduler: {cycles:.0f} cycles, {cycles / states / n:.2f} an element-state")


def main():
    parser = argparse.ArgumentParser(usage=__doc__, add_help=False)
    parser.add_argument("--tool", default="cuobjdump")
    parser.add_argument("--warps", default="1,2,3")
    parser.add_argument("cubin")
    parser.add_argument("kernel", nargs="*")
    options = parser.parse_args()
    prefix = "scankit_forward_"
    for symbol, code in kernels(options.cubin, options.tool).items():
        name = symbol.removeprefix(prefix)
        if name.startswith(("any", "ends", "1x")) or not symbol.startswith(prefix) or options.kernel and name not in options.kernel:
            continue
        describe(name, code, [int(n) for n in options.warps.split(",") if n])


if __name__ == "__main__":
    main()
