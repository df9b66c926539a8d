# SPDX-License-Identifier: Apache-2.0
"""Cycles of a tile on one multiprocessor: warps in order, by the stall counts and barriers in the code, and pipes.

Not measured; caches, dispatch and clocks are left out. Constants in cycles: what a pipe is taken for, and how long
what it gives is waited for.
"""
import random

ALU = set("LOP3 ISETP FSETP FSEL SEL FMNMX SHF IADD3 LEA MOV VIADD PRMT F2FP VIMNMX R2P PLOP3 CS2R IABS".split())
MEMORY = set("LDS STS SHFL LDG STG ST LD".split())
WAIT = {"mufu": 20, "lds": 28, "sts": 20, "shfl": 22, "ldg": 700, "ldc": 30}
BRANCH, BARRIER, QUEUE = 14, 20, 8
NEVER, NONE = 1 << 60, 7  # a time, and a barrier


def pipe_of(i):
    if i.base in ("FFMA", "FMUL", "FADD"):
        return "fma"
    if i.base in ("IMAD", "MUFU", "LDC") or i.base in MEMORY:
        return i.base.lower()
    return "alu" if i.base in ALU else "control"


def steps_of(path):
    """(cycles to the next one, barriers set and waited for, unit, cycles it is taken, cycles waited for)."""
    listed = []
    for i, following in zip(path, path[1:] + [None]):
        pipe, taken = pipe_of(i), following is not None and following.address != i.address + 16
        unit, busy = {"fma": ("fma", 1), "imad": ("fma", 2), "alu": ("alu", 2), "mufu": ("mufu", 8)}.get(pipe, ("", 0))
        if i.base in MEMORY:
            unit, busy = "memory", 4 if ".128" in i.opcode else 2 if ".64" in i.opcode else 1
        stall = max(1, i.stall) + (BRANCH if taken else 0)
        listed.append((stall, i.write, i.read, i.wait, unit, busy, WAIT.get(pipe, 20), i.base == "BAR"))
    return listed


class Warp:
    def __init__(self, block, ready):
        self.block, self.ready, self.at, self.tile, self.marks = block, ready, 0, 0, []
        self.barriers = [[] for _ in range(NONE)]

    def waits(self, mask, now):
        for n in range(6):
            if mask >> n & 1 and self.barriers[n]:
                self.barriers[n] = [t for t in self.barriers[n] if t > now]
                if self.barriers[n]:
                    return True
        return False

    def set(self, write, read):
        for n in (write, read):
            if n != NONE:
                self.barriers[n].append(NEVER)

    def release(self, write, read, written, read_by):
        for n, t in ((write, written), (read, read_by)):
            if n != NONE:
                self.barriers[n].remove(NEVER)
                self.barriers[n].append(t)


class Multiprocessor:
    def __init__(self, steps, warps, warps_of_block, seed):
        draw = random.Random(seed)
        starts = [draw.randrange(6000) for _ in range(warps)]
        self.steps, self.of_block = steps, warps_of_block
        self.warps = [Warp(n // warps_of_block, starts[n // warps_of_block * warps_of_block]) for n in range(warps)]
        self.sets = [self.warps[n::4] for n in range(4)]
        self.mufu, self.memory = [[] for _ in range(4)], [[] for _ in range(4)]
        self.free = [{"fma": 0, "alu": 0, "mufu": 0} for _ in range(4)]
        self.memory_free, self.turn, self.last, self.arrived = 0, 0, [0] * 4, {}

    def drain(self, now):
        for n in range(4):
            if self.mufu[n] and self.free[n]["mufu"] <= now:
                warp, write, read, busy, wait = self.mufu[n].pop(0)
                self.free[n]["mufu"] = now + busy
                warp.release(write, read, now + wait, now + 4)
        for n in (*range(self.turn, 4), *range(self.turn)):
            if self.memory_free <= now and self.memory[n]:  # of all four
                warp, write, read, busy, wait = self.memory[n].pop(0)
                self.memory_free, self.turn = now + busy, (n + 1) % 4
                warp.release(write, read, now + wait + busy, now + 10)

    def issue(self, n, warp, now):
        stall, write, read, mask, unit, busy, wait, barrier = self.steps[warp.at]
        if warp.ready > now or warp.waits(mask, now):
            return False
        if unit in ("mufu", "memory"):
            queue = (self.mufu if unit == "mufu" else self.memory)[n]
            if len(queue) >= QUEUE:
                return False
            queue.append((warp, write, read, busy, wait))
            warp.set(write, read)
        elif unit:
            if self.free[n][unit] > now:
                return False
            self.free[n][unit] = now + busy
        elif write != NONE:
            warp.barriers[write].append(now + wait)
        warp.ready = now + stall
        if barrier:
            here = self.arrived.setdefault((warp.block, warp.tile), [])
            here.append(warp)
            for other in here:
                other.ready = now + BARRIER if len(here) == self.of_block else NEVER
        warp.at += 1
        if warp.at == len(self.steps):
            warp.at, warp.tile = 0, warp.tile + 1
            warp.marks.append(now)
        return True

    def run(self, tiles):
        now = 0
        while min(w.tile for w in self.warps) < tiles:
            self.drain(now)
            for n, warps in enumerate(self.sets):
                for k in range(len(warps)):  # the one that was last goes on first
                    which = (self.last[n] + k) % len(warps)
                    if self.issue(n, warps[which], now):
                        self.last[n] = which
                        break
            now += 1
        return sum((w.marks[tiles - 2] - w.marks[0]) / (tiles - 2) for w in self.warps) / len(self.warps)


def predict(path, warps, warps_of_block=2, tiles=5, runs=3):
    """Mean of runs whose blocks begin at other times: they differ by up to 5 %."""
    steps = steps_of(path)
    return sum(Multiprocessor(steps, warps, warps_of_block, n).run(tiles) for n in range(runs)) / runs
