# SPDX-License-Identifier: Apache-2.0
"""What the harness reads from NVML, from a library that stands in for it. Needs LD_LIBRARY_PATH."""
import ctypes
import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from harness import gpu_state  # noqa: E402


class GpuState(unittest.TestCase):
    def test_reads_clocks_reasons_and_processes(self):
        gpu, why = gpu_state.open_gpu()
        self.assertEqual(why, "")
        seen = gpu.read()
        self.assertEqual((seen["clock"], seen["highest"], seen["memory_clock"]), (1200, 1980, 2619))
        self.assertEqual((seen["reasons"], seen["temperature"]), (0x40, 91))
        self.assertEqual(seen["others"], 2, "one of the three is this process, under another number")
        self.assertNotIn("power", seen)  # not told
        self.assertNotIn("mode", seen)  # a driver without the function
        self.assertNotIn(os.getpid(), (100, 101, 102))

    def test_no_driver_is_no_fault(self):
        gpu, why = gpu_state.open_gpu(driver="libcuda-that-is-not-here.so.1")
        self.assertIsNone(gpu)
        self.assertIn("libcuda-that-is-not-here", why)

    def test_the_process_structure_is_nvmls(self):
        self.assertEqual(ctypes.sizeof(gpu_state.Process), 24)


if __name__ == "__main__":
    unittest.main()
