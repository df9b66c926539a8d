# SPDX-License-Identifier: Apache-2.0
"""Upstream's own Python on the module, unchanged: selective_scan_interface.py and a Mamba block.

python upstream_test.py [--device cuda] [unittest's options]

This release's interface needs torch and einops alone; later ones import triton.
"""
import os
import sys
import unittest

import torch

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "binding"))
from source_archive import bare_package, skip  # noqa: E402

DEVICE = "cpu"
if "--device" in sys.argv:
    at = sys.argv.index("--device")
    DEVICE = sys.argv[at + 1]
    del sys.argv[at : at + 2]

try:
    import einops  # noqa: F401
except ImportError:
    skip(f"{sys.executable} has no einops, which upstream's interface imports")
bare_package("mamba-ssm", "1.2.0.post1", "mamba_ssm")

import selective_scan_cuda  # noqa: E402
from mamba_ssm.modules.mamba_simple import Mamba  # noqa: E402
from mamba_ssm.ops import selective_scan_interface as interface  # noqa: E402

# Of upstream's tests/ops/test_selective_scan.py: (rtol, atol), of the outputs and of the weights' gradients.
TOLERANCES = {torch.float32: (6e-4, 2e-3), torch.float16: (3e-3, 5e-3), torch.bfloat16: (3e-2, 5e-2)}


def inputs(dtype, length, groups, has_z, kind="", batch=2, dim=8, states=8):
    """kind: i(maginary parts: complex A), B, C: which of them are constant."""
    torch.manual_seed(0)
    leaf = lambda t: t.detach().to(DEVICE).requires_grad_()
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
            weight = torch.randn(out.shape, generator=torch.Generator().manual_seed(1)).to(out)
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

    def block_by(self, scan, autocast):
        """Output and gradients of a Mamba block whose scan is the function."""
        calls = []

        def counted(*args, **kwargs):
            calls.append(scan.__name__)
            return scan(*args, **kwargs)

        torch.manual_seed(0)
        block = Mamba(d_model=24, d_state=16, d_conv=4, expand=2, use_fast_path=False)
        leaf = torch.randn(2, 50, 24).to(DEVICE).requires_grad_()
        block.to(DEVICE).forward.__globals__["selective_scan_fn"] = counted
        with torch.autocast(DEVICE, dtype=torch.bfloat16, enabled=autocast):
            out = block(leaf)
        out.float().square().sum().backward()
        self.assertEqual(calls, [scan.__name__])
        return {"out": out, "dx": leaf.grad, **{name: p.grad for name, p in block.named_parameters()}}

    def test_mamba_block(self):
        for autocast, tolerance in ((False, 1e-4), (True, 3e-2)):
            ours = self.block_by(interface.selective_scan_fn, autocast)
            theirs = self.block_by(interface.selective_scan_ref, autocast)
            for name, value in ours.items():
                with self.subTest(name=name, autocast=autocast):
                    self.assertIsNotNone(value)
                    scale = theirs[name].abs().max().item() + 1e-2
                    torch.testing.assert_close(value, theirs[name], rtol=tolerance, atol=tolerance * scale)


if __name__ == "__main__":
    torch.set_num_threads(1)
    unittest.main()
