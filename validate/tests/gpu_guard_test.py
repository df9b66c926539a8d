# SPDX-License-Identifier: Apache-2.0
"""The bands around what torch allocates on a GPU, with a libcuda.so.1 that stands in for the driver (gpu_memory_stub.c) and no
GPU. Needs LD_LIBRARY_PATH for that one, SCANKIT_GUARD, the library under test, and SCANKIT_OTHER_DRIVER, one without memory."""
import ctypes
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import types
import unittest

HARNESS = pathlib.Path(__file__).resolve().parent.parent / "harness"
sys.modules["scankit_harness"] = package = types.ModuleType("scankit_harness")
package.__path__ = [str(HARNESS)]
from scankit_harness import gpu_guard, guard  # noqa: E402

GUARD = os.environ["SCANKIT_GUARD"]


class Memory:
    """torch.cuda.memory of a torch that takes another allocator."""
    taken = None

    @staticmethod
    def CUDAPluggableAllocator(path, allocate, free):
        return path, allocate, free

    @classmethod
    def change_current_allocator(cls, allocator):
        cls.taken = allocator


TORCH = types.SimpleNamespace(cuda=types.SimpleNamespace(memory=Memory))
WITHOUT = types.SimpleNamespace(cuda=types.SimpleNamespace(memory=types.SimpleNamespace()))


def damages():
    return [(d.address, d.size, d.offset) for d in guard.damages()]


class Bands(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.why = gpu_guard.start(GUARD, TORCH, guard.Damage)
        cls.library, cls.driver = gpu_guard._library, ctypes.CDLL("libcuda.so.1")
        cls.driver.stub_taken.restype = ctypes.c_size_t
        cls.driver.stub_last_stream.restype = ctypes.c_void_p
        cls.driver.stub_limit.argtypes = [ctypes.c_size_t]

    def setUp(self):
        self.assertEqual(self.why, "")
        damages(), gpu_guard.trouble()

    def tearDown(self):
        self.assertEqual(self.driver.stub_taken(), 0, "memory was lost")

    def allocate(self, size, stream=None):
        return self.library.scankit_gpu_allocate(size, 0, stream)

    def free(self, address, size, stream=None):
        self.library.scankit_gpu_free(address, size, 0, stream)

    def test_torch_is_given_the_two_functions(self):
        self.assertEqual(Memory.taken, (GUARD, "scankit_gpu_allocate", "scankit_gpu_free"))

    def test_writes_within_are_no_damage_and_fresh_memory_is_nan(self):
        for size in (1, 4, 511, 512, 513, 100000):
            place = self.allocate(size)
            self.assertEqual(place % 512, 0)
            self.assertEqual(ctypes.string_at(place, size), b"\xff" * size)
            ctypes.memset(place, 0, size)
            self.assertEqual(damages(), [])
            self.free(place, size)
            self.assertEqual(damages(), [])

    def test_a_byte_behind_and_a_byte_in_front_are_named_once(self):
        place = self.allocate(100)
        for offset in (100, 1000, -1, -1000):
            ctypes.memset(place + offset, 0, 1)
            self.assertEqual(damages(), [(place, 100, offset)])
            self.assertEqual(damages(), [])
        ctypes.memset(place - 8, 0, 4)
        self.assertEqual(damages(), [(place, 100, -5)])  # the byte that is nearest
        self.free(place, 100)

    def test_damage_is_remembered_when_memory_is_freed(self):
        waits = self.driver.stub_waits()
        place = self.allocate(64)
        ctypes.memset(place + 64, 0, 1)
        self.free(place, 64)
        self.assertEqual(damages(), [(place, 64, 64)])
        self.assertGreater(self.driver.stub_waits(), waits, "a kernel may not have come to its end")

    def test_the_words(self):
        out, other, found = self.allocate(32), self.allocate(16), []
        ctypes.memset(out + 33, 0, 1)
        ctypes.memset(other - 1, 0, 1)
        guard.complain("fwd", {out: "out"}, found)
        self.assertEqual(found, ["fwd wrote past the end of out (byte 2 past the end)",
                                 "fwd wrote before the start of memory of 16 bytes (byte 1 before it)"])
        self.free(out, 32), self.free(other, 16)

    def test_many_streams_and_threads(self):
        places, failures = {}, []

        def work(stream):
            try:
                mine = [self.allocate(100 + i, 0x1000 * stream) for i in range(50)]
                for i in range(0, 50, 2):
                    self.free(mine[i], 100 + i, 0x1000 * stream)
                places[stream] = [(mine[i], 100 + i) for i in range(1, 50, 2)]
            except Exception as error:  # told by the thread that waits
                failures.append(error)

        threads = [threading.Thread(target=work, args=(s,)) for s in range(1, 9)]
        [t.start() for t in threads], [t.join() for t in threads]
        self.assertEqual(failures, [])
        alive = [p for each in places.values() for p in each]
        self.assertEqual(len(set(alive)), 200)
        ctypes.memset(alive[77][0] + alive[77][1], 7, 1)
        self.assertEqual(damages(), [alive[77] + (alive[77][1],)])
        last = self.allocate(8, 0xabc000)
        self.assertEqual(self.driver.stub_last_stream(), 0xabc000, "filled where it will be used")
        for place, size in alive + [(last, 8)]:
            self.free(place, size)
        self.assertEqual((damages(), gpu_guard.trouble()), ([], []))

    def test_a_second_free_is_told(self):
        place = self.allocate(8)
        self.free(place, 8)
        self.free(place, 8)
        self.assertEqual(gpu_guard.trouble(), ["unallocated GPU memory was freed (1 times)"])
        self.assertEqual(gpu_guard.trouble(), [])
        self.free(None, 8)
        self.assertEqual(gpu_guard.trouble(), [])

    def test_empty_tensors_have_places_of_their_own(self):
        first, second = self.allocate(0), self.allocate(0)
        self.assertNotIn(None, (first, second))
        self.assertNotEqual(first, second)
        ctypes.memset(first, 0, 1)
        self.assertEqual(damages(), [(first, 0, 0)])
        self.free(first, 0), self.free(second, 0)

    def test_what_cannot_be_had(self):
        for size in (1 << 50, (1 << 63) - 1, -1):
            self.assertIsNone(self.allocate(size))
            self.assertIn("out of GPU memory: an allocation of %d bytes failed" % (size % (1 << 64)), gpu_guard.trouble()[0])
        self.driver.stub_limit(10000)
        kept = self.allocate(100)
        self.assertIsNone(self.allocate(9000))
        self.driver.stub_limit(1 << 26)
        self.assertEqual(damages(), [])
        self.free(kept, 100)

    def test_a_context_in_an_error_state_is_no_damage(self):
        place = self.allocate(8)
        ctypes.memset(place + 8, 0, 1)
        self.driver.stub_break(700)
        self.assertEqual(damages(), [])
        self.driver.stub_break(0)
        self.assertEqual(damages(), [(place, 8, 8)])
        self.free(place, 8)


class Degrades(unittest.TestCase):
    def test_an_old_torch(self):
        self.assertIn("2.0 or newer", gpu_guard.start(GUARD, WITHOUT, guard.Damage))
        self.assertIn("2.0 or newer", gpu_guard.start(GUARD, types.SimpleNamespace(cuda=None), guard.Damage))

    def test_a_torch_that_has_allocated(self):
        def change(_):
            raise RuntimeError("Can't swap an already\ninitialized allocator")
        memory = types.SimpleNamespace(CUDAPluggableAllocator=Memory.CUDAPluggableAllocator, change_current_allocator=change)
        torch = types.SimpleNamespace(cuda=types.SimpleNamespace(memory=memory))
        self.assertEqual(gpu_guard.start(GUARD, torch, guard.Damage), "Can't swap an already initialized allocator")

    def test_a_driver_that_lacks_a_function_and_none_at_all(self):
        with tempfile.TemporaryDirectory() as empty:
            for folder, lacks in ((os.environ["SCANKIT_OTHER_DRIVER"], "cuCtxGetCurrent"), (empty, "libcuda.so.1")):
                seen = subprocess.run([sys.executable, "-B", "-c", PROBE % lacks, GUARD], stdout=subprocess.PIPE, text=True,
                                      env=dict(os.environ, LD_LIBRARY_PATH=folder), check=True).stdout
                self.assertIn(seen.strip(), (lacks, "here"))  # a machine with a driver has one all the same


PROBE = """import ctypes, sys
library, missing = ctypes.CDLL(sys.argv[1]), ctypes.c_char_p()
here = library.scankit_gpu_guard_start(ctypes.byref(missing))
assert here or not library.scankit_gpu_allocate(8, 0, None), "an allocation without a driver"
print("here" if here and "%s" == "libcuda.so.1" else missing.value.decode())"""

if __name__ == "__main__":
    unittest.main()
