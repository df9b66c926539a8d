# SPDX-License-Identifier: Apache-2.0
"""A module's file that changes after its import, before its first use: what is cut, flipped or swapped never reaches the
driver. No GPU and no torch: driver_stub.c is the driver, and says what it was given.

images_after_import_test.py SCANKIT STUB [unittest's options]. 77 where no NVRTC is here to build a module with.
"""
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

SCANKIT, STUB = sys.argv[1:3]
del sys.argv[1:3]
work = tempfile.mkdtemp()
NAME = "causal_conv1d_cuda"
CHILD = """
import sys
sys.path.insert(0, sys.argv[1])
import causal_conv1d_cuda as module
print("imported", flush=True)
sys.stdin.readline()
try:
    print(module.warm(0))
except RuntimeError as error:
    print("refused:", error)
print(module.scankit_info()["instruction_set"])
"""


def setUpModule():
    build = subprocess.run([SCANKIT, "build", "--module", NAME, "--arch", "sm_90,compute_75", "--out", work + "/"],
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
    if build.returncode:
        print("SKIPPED:", build.stderr.strip().splitlines()[-1])
        shutil.rmtree(work)
        os._exit(77)


def tearDownModule():
    shutil.rmtree(work)


def sections(data):
    offset, = struct.unpack_from("<Q", data, 40)
    count, names_at = struct.unpack_from("<HH", data, 60)
    headers = [struct.unpack_from("<IIQQQQIIQQ", data, offset + 64 * i) for i in range(count)]
    names = headers[names_at][4]
    return {data[names + h[0]:data.index(b"\0", names + h[0])].decode(): (h[4], h[5]) for h in headers}


class Images(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        os.mkdir(self.folder + "/driver")
        shutil.copy(STUB, self.folder + "/driver/libcuda.so.1")
        self.file = os.path.join(self.folder, NAME + ".abi3.so")
        self.log = os.path.join(self.folder, "log")
        self.start()

    def start(self):
        shutil.copy(os.path.join(work, NAME + ".abi3.so"), self.file + ".new")
        os.replace(self.file + ".new", self.file)
        with open(self.file, "rb") as file:
            self.whole = file.read()
        self.index_at, size = sections(self.whole)[".scankit.images"]
        # (kind, sm, offset of the bytes, their number) of each image.
        self.images = [struct.unpack_from("<II8xQQ", self.whole, self.index_at + 16 + 128 * i) for i in range((size - 16) // 128)]
        self.cubins = [i for i, image in enumerate(self.images) if image[:2] == (2, 90)]
        if os.path.exists(self.log):
            os.unlink(self.log)

    # What the child says of its first use, after `change(file)`; and how many images the driver was given.
    def first_use(self, change):
        child = subprocess.Popen([sys.executable, "-c", CHILD, self.folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, universal_newlines=True,
                                 env={**os.environ, "LD_LIBRARY_PATH": self.folder + "/driver", "DRIVER_STUB_LOG": self.log})
        self.assertEqual(child.stdout.readline(), "imported\n")
        with open(self.file, "r+b") as file:
            change(file)
        said, errors = child.communicate("\n", timeout=60)
        self.assertEqual((child.returncode, errors), (0, ""))
        self.assertEqual(len(said.splitlines()), 2, said)  # it lives on
        given = 0
        if os.path.exists(self.log):
            with open(self.log) as file:
                given = len(file.readlines())
        return said.splitlines()[0], given

    def refused(self, change, *expected, most=0):
        said, given = self.first_use(change)
        for text in ("refused: causal_conv1d_cuda.warm: the module's own file is damaged",) + expected:
            self.assertIn(text, said)
        self.assertLessEqual(given, most)

    def test_as_it_was(self):
        said, given = self.first_use(lambda file: None)
        self.assertIn("'sm': 90", said)
        self.assertEqual(given, len(self.cubins))

    def test_flipped(self):
        draw = random.Random(2)
        for place, i in enumerate(self.cubins):
            _, _, offset, size = self.images[i]
            for at in (0, size - 1, draw.randrange(size)):
                with self.subTest(image=i, at=at):
                    self.start()

                    def flip(file):
                        file.seek(offset + at)
                        file.write(bytes([self.whole[offset + at] ^ 1 << draw.randrange(8)]))
                    # Those before it in the file may be used: they are whole.
                    self.refused(flip, "a device image does not have the hash", most=len(self.cubins) - 1)

    def test_an_image_that_is_not_chosen_does_no_harm(self):
        other = next(image for image in self.images if image[0] == 1)

        def flip(file):
            file.seek(other[2])
            file.write(b"\xff")
        said, given = self.first_use(flip)
        self.assertIn("'sm': 90", said)
        self.assertEqual(given, len(self.cubins))

    def test_swapped(self):
        (_, _, one, size_one), (_, _, other, size_other) = (self.images[i] for i in self.cubins[:2])
        size = min(size_one, size_other)

        def swap(file):
            for to, come_from in ((one, other), (other, one)):
                file.seek(to)
                file.write(self.whole[come_from:come_from + size])
        self.refused(swap, "a device image does not have the hash")

    def test_cut(self):
        # Not below the images: what the loader has mapped is gone then, and no code could say so.
        first = self.images[self.cubins[0]][2]
        for length in (first, first + 100, (first + len(self.whole)) // 2, len(self.whole) - 4000, len(self.whole) - 1):
            with self.subTest(length=length):
                self.start()
                self.refused(lambda file, length=length: file.truncate(length))

    def test_an_index_that_lies(self):
        for field, value in ((16, 1 << 62), (24, 1 << 62), (24, 0), (0, 9)):
            with self.subTest(field=field, value=value):
                self.start()

                def lie(file, field=field, value=value):
                    for i in self.cubins:
                        file.seek(self.index_at + 16 + 128 * i + field)
                        file.write(struct.pack("<Q" if field >= 16 else "<I", value))
                self.refused(lie)

    def test_replaced_by_another_build(self):
        # Another inode: the descriptor from the import still has the bytes that belong to the code that runs.
        def replace(_):
            with open(self.file + ".other", "wb") as other:
                other.write(b"another build")
            os.replace(self.file + ".other", self.file)
        said, given = self.first_use(replace)
        self.assertIn("'sm': 90", said)
        self.assertEqual(given, len(self.cubins))

    def test_removed(self):
        said, given = self.first_use(lambda _: os.unlink(self.file))
        self.assertIn("'sm': 90", said)
        self.assertEqual(given, len(self.cubins))


class FreeThreaded(unittest.TestCase):
    """A Python that calls itself free-threaded, with the objects of another: a preloaded Py_GetVersion."""

    def test_is_refused_at_import(self):
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        with open(folder + "/version.c", "w") as file:
            file.write('const char* Py_GetVersion(void) { return "3.13.0 experimental free-threading build (main) [GCC]"; }\n')
        subprocess.run(["cc", "-shared", "-fPIC", "-o", folder + "/version.so", folder + "/version.c"], check=True)
        run = subprocess.run([sys.executable, "-S", "-c", CHILD, work], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, universal_newlines=True, env={**os.environ, "LD_PRELOAD": folder + "/version.so"})
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("are laid out in another way; use a Python build with the GIL", run.stderr)


if __name__ == "__main__":
    unittest.main()
