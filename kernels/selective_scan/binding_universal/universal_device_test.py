# SPDX-License-Identifier: Apache-2.0
"""What the module promises on a device beyond its numbers: the first use inside a graph's capture, a file that changes after
its import, fork, and several devices (skipped on one GPU).

PYTHONPATH=DIR python universal_device_test.py, as device_test.py. 77: nothing to test here.
"""
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import unittest

import torch

if not torch.cuda.is_available():
    print("SKIPPED: torch finds no CUDA device")
    sys.exit(77)

import selective_scan_cuda as module  # noqa: E402

if not module.scankit_info()["images"]:
    print("SKIPPED: the module contains no device images; scankit build makes one that does")
    sys.exit(77)

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
from without_cubins import entries  # noqa: E402

INPUTS = """
import os, sys, torch

def inputs(device, seed=3):
    torch.manual_seed(seed)
    on = lambda *shape: torch.randn(*shape).to(device)
    return [on(2, 8, 129), on(2, 8, 129) * 0.5, -on(8, 16).abs(), on(2, 1, 16, 129), on(2, 1, 16, 129), on(8), on(2, 8, 129), on(8)]
"""
exec(INPUTS)  # the children begin with the same text
HERE = INPUTS + "import selective_scan_cuda as module\n"


def everything(tensors):
    """fwd and bwd of one call, in a list."""
    results = module.fwd(*tensors, True)
    out, x = results[:2]
    return results + [g for g in module.bwd(*tensors, torch.ones_like(out), x, out, None, True, False) if g is not None]


def stored(path):
    """Offset and size of each image as it is in the file, mostly packed."""
    with open(path, "rb") as file:
        data = file.read()
    return [struct.unpack_from("<QQ", data, entry + 16) for entry in entries(data)]


def same(test, results, expected):
    for device in range(torch.cuda.device_count()):
        torch.cuda.synchronize(device)
    test.assertEqual(len(results), len(expected))
    for one, other in zip(results, expected):
        torch.testing.assert_close(one.cpu(), other.cpu(), rtol=1e-4, atol=1e-4)


class FreshProcess(unittest.TestCase):
    """Each in a child with a copy of the module: what is tested is the first use."""

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.file = os.path.join(self.folder, os.path.basename(module.__file__))
        shutil.copy(module.__file__, self.file)

    def child(self, code):
        run = subprocess.run([sys.executable, "-c", HERE + code], capture_output=True, text=True, timeout=300, cwd="/",
                             env={**os.environ, "PYTHONPATH": self.folder})
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        return run.stdout

    def test_first_use_inside_a_capture(self):
        self.child("""
host = module.fwd(*inputs("cpu"), True)
tensors = inputs("cuda")
kept = tensors[0].clone()
tensors[0].zero_()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    results = module.fwd(*tensors, True)
tensors[0].copy_(kept)
graph.replay()
torch.cuda.synchronize()
for one, other in zip(results, host):
    torch.testing.assert_close(one.cpu(), other, rtol=1e-4, atol=1e-4)
""")

    def test_a_file_that_is_replaced_after_import(self):
        # os.replace: another inode. The descriptor from import still has the images that belong to this code.
        self.child(f"""
open({self.file!r} + ".new", "wb").write(b"another build")
os.replace({self.file!r} + ".new", {self.file!r})
torch.testing.assert_close(module.fwd(*inputs("cuda"), True)[0].cpu(), module.fwd(*inputs("cpu"), True)[0], rtol=1e-4, atol=1e-4)
""")

    def damaged(self, change, expected):
        # In place, as rsync --inplace and cp do. The driver would crash on such an image: the process must live on.
        self.child(f"""
size = os.path.getsize({self.file!r})
with open({self.file!r}, "r+b") as file:
    {change}
try:
    module.fwd(*inputs("cuda"), True)
except RuntimeError as error:
    assert {expected!r} in str(error) and "install it again" in str(error), error
else:
    sys.exit("a damaged image was used")
assert torch.ones(2, device="cuda").sum().item() == 2
module.fwd(*inputs("cpu"), True)
""")

    def test_flipped_after_import(self):
        # All payloads, whichever of them are for this device, in their middle.
        middles = [offset + size // 2 for offset, size in stored(self.file)]
        self.assertEqual(len(middles), len(module.scankit_info()["images"]))
        self.damaged(f"for at in {middles}: file.seek(at); file.write(b'\\xff' * 16)", "does not have the hash")

    def test_cut_after_import(self):
        self.damaged("file.truncate(size // 2)", "the module's own file is damaged")

    def test_swapped_after_import(self):
        # Neighbouring stretches of the payloads exchanged: every byte is one of ours, at the wrong place.
        self.damaged("""
    for at in range(1 << 20, size - (1 << 18), 1 << 17):
        file.seek(at)
        one, other = file.read(1 << 16), file.read(1 << 16)
        file.seek(at)
        file.write(other + one)
""", "does not have the hash")

    def test_fork_after_cuda(self):
        self.child("""
module.fwd(*inputs("cuda"), True)
host = module.fwd(*inputs("cpu"), True)[0]
child = os.fork()
if child == 0:
    ok = torch.equal(module.fwd(*inputs("cpu"), True)[0], host)
    try:
        module.warm(0)
        ok = False
    except RuntimeError as error:
        ok = ok and "spawn" in str(error)
    os._exit(0 if ok else 1)
assert os.waitpid(child, 0)[1] == 0
module.fwd(*inputs("cuda"), True)
""")


@unittest.skipIf(torch.cuda.device_count() < 2, "torch sees one GPU; this test needs two")
class TwoDevices(unittest.TestCase):
    def setUp(self):
        self.expected = everything(inputs("cpu"))
        self.addCleanup(torch.cuda.set_device, torch.cuda.current_device())

    def test_either_device_with_either_current(self):
        for current in (0, 1):
            for device in (0, 1):
                with self.subTest(current=current, device=device):
                    torch.cuda.set_device(current)
                    results = everything(inputs(f"cuda:{device}"))
                    self.assertEqual({r.device.index for r in results}, {device})
                    self.assertEqual(torch.cuda.current_device(), current)
                    same(self, results, self.expected)

    def test_the_first_use_is_of_the_other_device(self):
        run = subprocess.run([sys.executable, "-c", HERE + """
tensors = inputs("cuda:1")
assert torch.cuda.current_device() == 0
out = module.fwd(*tensors, True)[0]
torch.testing.assert_close(out.cpu(), module.fwd(*inputs("cpu"), True)[0], rtol=1e-4, atol=1e-4)
assert torch.cuda.current_device() == 0
assert module.warm(1)["device"] == 1
"""], capture_output=True, text=True, timeout=300)
        self.assertEqual(run.returncode, 0, run.stderr)

    def test_side_streams_of_the_other_device(self):
        torch.cuda.set_device(0)
        tensors = inputs("cuda:1")
        kept = tensors[0].clone()
        tensors[0].zero_()
        torch.cuda.synchronize(1)
        side = torch.cuda.Stream(device=1)
        with torch.cuda.stream(side):
            torch.cuda._sleep(200_000_000)
            tensors[0].copy_(kept)  # a launch on another stream would read the zeros
            results = everything(tensors)
        torch.cuda.set_device(0)
        side.synchronize()
        same(self, results, self.expected)

    def test_four_threads_at_once(self):
        results = [None] * 4

        # inputs() seeds the one global generator: the tensors are made before the threads race.
        made = [inputs(f"cuda:{i % 2}") for i in range(4)]
        threads = [threading.Thread(target=self.repeat, args=(made[i], i // 2, results, i)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for i in range(4):
            same(self, results[i], self.expected)

    def repeat(self, tensors, current, results, i):
        torch.cuda.set_device(current)
        for _ in range(20):
            results[i] = everything(tensors)

    def test_autograds_threads(self):
        class Scan(torch.autograd.Function):
            @staticmethod
            def forward(ctx, u, *rest):
                out, x, out_z = module.fwd(u, *rest, True)
                ctx.save_for_backward(u, *rest, out, x)
                return out_z

            @staticmethod
            def backward(ctx, grad):
                *tensors, out, x = ctx.saved_tensors
                return (module.bwd(*tensors, grad.contiguous(), x, out, None, True, False)[0],) + (None,) * 7

        leaves, total = [], 0
        for device in ("cpu", "cuda:0", "cuda:1"):
            u, *rest = inputs(device)
            leaves.append(u.requires_grad_())
            total = total + Scan.apply(u, *rest).sum().cpu()
        total.backward()
        for leaf in leaves[1:]:
            torch.testing.assert_close(leaf.grad.cpu(), leaves[0].grad, rtol=1e-4, atol=1e-4)

    def test_a_graph_on_the_second(self):
        torch.cuda.set_device(1)
        tensors = inputs("cuda:1")
        kept = tensors[0].clone()
        tensors[0].zero_()
        everything(tensors)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            results = everything(tensors)
        tensors[0].copy_(kept)
        graph.replay()
        same(self, results, self.expected)

    def test_states_and_packed_sequences_on_the_other_device(self):
        def stateful(device):
            tensors = [t[:1] if t.dim() > 2 else t for t in inputs("cpu")]
            state = torch.ones(2, 8, 16)
            bounds = torch.tensor([0, 40, 129], dtype=torch.int32)
            on = [t.to(device) for t in tensors + [state, bounds]]
            *given, state, bounds = on
            out, x, last, out_z = module.fwd_stateful(*given, True, state, bounds, True)
            back = module.bwd_stateful(*given, torch.ones_like(out), x, out, None, True, False, state, bounds, last)
            return [out, last, out_z] + [g for g in back if g is not None]

        expected = stateful("cpu")
        for current in (0, 1):
            torch.cuda.set_device(current)
            results = stateful(f"cuda:{1 - current}")
            self.assertEqual({r.device.index for r in results}, {1 - current})
            self.assertEqual(torch.cuda.current_device(), current)
            same(self, results, expected)

    def test_mixed_devices_are_refused(self):
        tensors, elsewhere = inputs("cuda:0"), inputs("cuda:1")
        out, x = module.fwd(*tensors, True)[:2]
        names = ["u", "delta", "A", "B", "C", "D", "z", "delta_bias"]
        for i, name in enumerate(names[1:], 1):
            mixed = tensors[:i] + [elsewhere[i]] + tensors[i + 1:]
            expected = f"{name} is on cuda:1, u on cuda:0"
            with self.assertRaisesRegex(RuntimeError, expected):
                module.fwd(*mixed, True)
            with self.assertRaisesRegex(RuntimeError, expected):
                module.bwd(*mixed, out, x, out, None, True, False)
        with self.assertRaisesRegex(RuntimeError, "dout is on cuda:1, u on cuda:0"):
            module.bwd(*tensors, out.to("cuda:1"), x, out, None, True, False)
        with self.assertRaisesRegex(RuntimeError, "initial_state is on cuda:1, u on cuda:0"):
            module.fwd_stateful(*tensors, True, torch.ones(2, 8, 16, device="cuda:1"), None, True)
        with self.assertRaisesRegex(RuntimeError, "state is on cuda:1, x on cuda:0"):
            module.state_update(torch.ones(2, 8, 16, device="cuda:1"), *(t[..., 0].contiguous() for t in tensors[:2]),
                                tensors[2], *(t[..., 0].contiguous() for t in tensors[3:5]), tensors[5],
                                tensors[6][..., 0].contiguous(), tensors[7], True)


if __name__ == "__main__":
    info = module.scankit_info()
    print({key: info[key] for key in ("version", "path", "images_problem")}, len(info["images"]), "images")
    unittest.main()
