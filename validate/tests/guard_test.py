# SPDX-License-Identifier: Apache-2.0
"""The bands of validate/guard: a block that was freed must not use up room in the table of blocks.

Run with SCANKIT_GUARD, the library to preload; this script starts itself again with it."""
import ctypes
import os
import sys
import unittest

BLOCKS = 20000  # the table takes 24576 at a time
ALIGNMENT = 64  # of torch's allocations


class Table(unittest.TestCase):
    def setUp(self):
        self.c = ctypes.CDLL(None)
        self.c.malloc_usable_size.restype = ctypes.c_size_t

    def allocate(self, size):
        block = ctypes.c_void_p()
        self.assertEqual(self.c.posix_memalign(ctypes.byref(block), ctypes.c_size_t(ALIGNMENT), ctypes.c_size_t(size)), 0)
        return block

    def has_bands(self, block, size):
        # The C library rounds an odd size up; the guard tells what was asked for.
        return self.c.malloc_usable_size(block) == size

    def test_every_round_has_bands(self):
        for size in (101, 4099, 1009, 8191):
            blocks = [self.allocate(size) for _ in range(BLOCKS)]
            self.assertEqual(sum(self.has_bands(block, size) for block in blocks), BLOCKS, size)
            for block in blocks[::2] + blocks[1::2]:
                self.c.free(block)

    def test_what_remains_is_found_after_others_are_freed(self):
        blocks = [self.allocate(101) for _ in range(BLOCKS)]
        for block in blocks[::3]:
            self.c.free(block)
        kept = blocks[1::3] + blocks[2::3]
        self.assertTrue(all(self.has_bands(block, 101) for block in kept))
        for block in kept:
            self.c.free(block)


if __name__ == "__main__":
    if os.environ.get("LD_PRELOAD") != os.environ["SCANKIT_GUARD"]:
        os.environ["LD_PRELOAD"] = os.environ["SCANKIT_GUARD"]
        os.execv(sys.executable, [sys.executable, "-B", *sys.argv])
    unittest.main()
