# SPDX-License-Identifier: Apache-2.0
"""Upstream's own Python on the module, unchanged: selective_scan_interface.py and a Mamba block on the CPU.

The files come from mamba-ssm's source archive, fetched once by pip into $SCANKIT_CACHE (default ~/.cache/scankit-dev).
This release's interface needs torch and einops alone; later ones import triton.
"""
import glob
import os
import subprocess
import sys
import tarfile
import types
import unittest

import torch

RELEASE = "1.2.0.post1"


def skip(reason):
    print("SKIPPED:", reason)
    sys.exit(77)


def archive():
    cache = os.environ.get("SCANKIT_CACHE") or os.path.expanduser("~/.cache/scankit-dev")
    folder = os.path.join(cache, "sdists")
    pattern = os.path.join(folder, f"mamba?ssm-{RELEASE}.tar.gz")
    if not glob.glob(pattern):
        command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", "download", "--no-deps",
                   "--no-binary", ":all:", "--no-build-isolation", "-d", folder, f"mamba-ssm=={RELEASE}"]
        switches = {"MAMBA_SKIP_CUDA_BUILD": "TRUE", "MAMBA_FORCE_BUILD": "TRUE"}
        run = subprocess.run(command, env={**os.environ, **switches}, capture_output=True, text=True, timeout=240)
        if run.returncode != 0:
            skip("pip could not fetch mamba-ssm's source archive: " + run.stderr.strip()[-300:])
    return glob.glob(pattern)[0]


def unpacked():
    path = archive()
    into = path[: -len(".tar.gz")] + ".unpacked"
    if not os.path.isdir(into):
        scratch = f"{into}.{os.getpid()}"
        with tarfile.open(path) as tar:
            tar.extractall(scratch, [m for m in tar.getmembers() if m.isreg() and ".." not in m.name])
        try:
            os.rename(scratch, into)
        except OSError:  # another test run was faster
            pass
    return glob.glob(os.path.join(into, "*", "mamba_ssm"))[0]


try:
    import einops  # noqa: F401
except ImportError:
    skip(f"{sys.executable} has no einops, which upstream's interface imports")

# The package without its __init__, which imports transformers.
package = types.ModuleType("mamba_ssm")
package.__path__ = [unpacked()]
sys.modules["mamba_ssm"] = package

import selective_scan_cuda  # noqa: E402
from mamba_ssm.modules.mamba_simple import Mamba  # noqa: E402
from mamba_ssm.ops import selective_scan_interface as interface  # noqa: E402

# Of upstream's tests/ops/test_selective_scan.py: (rtol, atol), of the outputs and of the weights' gradients.
TOLERANCES = {torch.float32: (6e-4, 2e-3), torch.float16: (3e-3, 5e-3), torch.bfloat16: (3e-2, 5e-2)}


def inputs(dtype, length, groups, has_z, kind="", batch=2, dim=8, states=8):
    """kind: i(maginary parts: complex A), B, C: which of them are constant."""
    torch.manual_seed(0)
    leaf = lambda t: t.detach().requires_grad_()
    weights = torch.complex64 if "i" in kind else torch.float32
    steps = length * (2 if "i" in kind else 1)
    variable = (batch, groups, states, steps) if groups > 1 else (batch, states, steps)
    projection = lambda name: leaf(torch.randn(dim, states, dtype=weights) if name in kind else
                                   torch.randn(*variable).to(dtype))
    return {
        "u": leaf(torch.randn(batch, dim, length).to(dtype)),
        "delta": leaf((0.5 * torch.rand(batch, dim, length)).to(dtype)),
        "A": leaf(-0.5 * torch.rand(dim, states, dtype=weights)),
        "B": projection("B"),
        "C": projection("C"),
        "D": leaf(torch.randn(dim)),
        "z": leaf(torch.randn(batch, dim, length).to(dtype)) if has_z else None,
        "delta_bias": leaf(0.5 * torch.rand(dim)),
    }


class Upstream(unittest.TestCase):
    def compare(self, dtype, length, groups, has_z, kind=""):
        results = []
        for function in (interface.selective_scan_fn, interface.selective_scan_ref):
            tensors = inputs(dtype, length, groups, has_z, kind)
            out, last = function(*tensors.values(), delta_softplus=True, return_last_state=True)
            weight = torch.randn(out.shape, generator=torch.Generator().manual_seed(1)).to(dtype)
            (out * weight).sum().backward()
            results.append((out, last, {k: v.grad for k, v in tensors.items() if v is not None}))
        (out, last, grads), (out_ref, last_ref, grads_ref) = results
        rtol, atol = TOLERANCES[dtype]
        torch.testing.assert_close(out, out_ref, rtol=rtol, atol=atol)
        torch.testing.assert_close(last.to(last_ref.dtype), last_ref, rtol=rtol, atol=atol)
        for name, grad in grads.items():
            scale = grads_ref[name].abs().max().item() + 1.0
            torch.testing.assert_close(grad, grads_ref[name], rtol=5 * rtol, atol=2 * atol * scale, msg=f"d{name}")

    def test_selective_scan_fn_equals_its_reference(self):
        self.assertIs(interface.selective_scan_cuda, selective_scan_cuda)
        for dtype in TOLERANCES:
            for length in (1, 8, 128, 255):
                for groups in (1, 2):
                    for has_z in (True, False):
                        with self.subTest(dtype=dtype, length=length, groups=groups, has_z=has_z):
                            self.compare(dtype, length, groups, has_z)

    def test_complex_and_constant_kinds_equal_the_reference(self):
        """Those that upstream's own test names and has commented out."""
        for kind in ("B", "C", "BC", "i", "iB", "iC", "iBC"):
            for dtype in TOLERANCES:
                for groups in (1,) if "B" in kind else (1, 2):
                    with self.subTest(kind=kind, dtype=dtype, groups=groups):
                        self.compare(dtype, 67, groups, True, kind)

    def test_mamba_block_on_the_cpu(self):
        torch.manual_seed(0)
        block = Mamba(d_model=24, d_state=16, d_conv=4, expand=2, use_fast_path=False)
        x = torch.randn(2, 50, 24)
        answers = []
        calls = []
        for scan in (interface.selective_scan_fn, interface.selective_scan_ref):
            def counted(*args, _scan=scan, **kwargs):
                calls.append(_scan.__name__)
                return _scan(*args, **kwargs)
            block.forward.__globals__["selective_scan_fn"] = counted
            block.zero_grad()
            leaf = x.clone().requires_grad_()
            out = block(leaf)
            out.square().sum().backward()
            answers.append([out, leaf.grad, *(p.grad for p in block.parameters())])
        self.assertEqual(calls, ["selective_scan_fn", "selective_scan_ref"])
        for ours, theirs in zip(*answers):
            self.assertIsNotNone(ours)
            torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


if __name__ == "__main__":
    torch.set_num_threads(1)
    unittest.main()
