# SPDX-License-Identifier: Apache-2.0
"""The path through a tile, the counts and the model, on a listing of a few instructions."""
import unittest

from sass import read, tile_path
from slots_model import pipe_of, predict

# (text, stall, barrier set, barriers waited for); the outer loop begins at 0x10, the scan loop at 0x50.
CODE = [
    ("S2R R0, SR_TID.X", 1, 7, 0),
    ("@P0 BRA 0x40", 5, 7, 0),
    ("LDG.E.U16 R2, desc[UR4][R4.64]", 1, 7, 0),
    ("BRA 0x50", 5, 7, 0),
    ("LDG.E.128 R4, desc[UR4][R4.64]", 1, 7, 0),
    ("MUFU.EX2 R8, R8", 1, 0, 0),
    ("MUFU.EX2 R9, R9", 1, 0, 0),
    ("MUFU.EX2 R10, R10", 1, 0, 0),
    ("MUFU.EX2 R11, R11", 1, 0, 0),
    ("FFMA R8, R9, R10, R11", 4, 7, 1),
    ("@!P1 BRA 0x50", 5, 7, 0),
    ("BAR.SYNC.DEFER_BLOCKING 0x0", 1, 7, 0),
    ("@!P2 BRA 0x10", 5, 7, 0),
    ("EXIT", 5, 7, 0),
]


def listing():
    lines = ["\t\tFunction : scankit_forward_4x4"]
    for n, (text, stall, barrier, mask) in enumerate(CODE):
        high = stall << 41 | barrier << 46 | 7 << 49 | mask << 52
        lines += [f"        /*{16 * n:04x}*/    {text} ;  /* 0x{0:016x} */", f"        /* 0x{high:016x} */"]
    return "\n".join(lines)


class Slots(unittest.TestCase):
    def setUp(self):
        self.code = read(listing())["scankit_forward_4x4"]

    def test_reads_what_cuobjdump_prints(self):
        self.assertEqual([i.text for i in self.code], [text for text, *_ in CODE])
        self.assertEqual((self.code[9].stall, self.code[9].wait, self.code[5].write), (4, 1, 0))

    def test_takes_the_way_of_whole_pieces(self):
        before, turn, after = tile_path(self.code)
        self.assertEqual([i.opcode for i in before], ["BRA", "LDG.E.128"])
        self.assertEqual([pipe_of(i) for i in turn], ["mufu"] * 4 + ["fma", "control"])
        self.assertEqual([i.base for i in after], ["BAR", "BRA"])

    def test_special_functions_take_eight_cycles_each(self):
        before, turn, after = tile_path(self.code)
        few, many = (predict(before + turn * n + after, 4) for n in (4, 8))
        self.assertAlmostEqual((many - few) / 4, 4 * 8 + 20, delta=20)
        full = predict(before + turn * 8 + after, 32, tiles=60)
        self.assertAlmostEqual(full / 8, 8 * 4 * 8, delta=16)


unittest.main()
