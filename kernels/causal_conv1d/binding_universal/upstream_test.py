# SPDX-License-Identifier: Apache-2.0
"""Upstream's own Python on the module, unchanged: causal_conv1d_interface.py of several releases and the fast path of a
Mamba block, which calls both modules.

python upstream_test.py [--device cuda] [unittest's options]
"""
import importlib
import os
import sys
import unittest

import torch

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "binding"))
from source_archive import archive, bare_package, require, skip  # noqa: E402

import causal_conv1d_cuda  # noqa: E402

DEVICE = "cpu"
if "--device" in sys.argv:
    at = sys.argv.index("--device")
    DEVICE = sys.argv[at + 1]
    del sys.argv[at : at + 2]

# Every signature: 8, 7, 5 and 4 arguments of fwd. 1.5.1 and later use torch.library.custom_op, of torch 2.4.
RELEASES = [release for release in ("1.7.0", "1.6.1", "1.4.0", "1.1.1", "1.0.0")
            if release < "1.5" or hasattr(torch.library, "custom_op")]
# Of upstream's tests/test_causal_conv1d.py: (rtol, atol).
TOLERANCES = {torch.float32: (3e-4, 1e-3), torch.float16: (3e-3, 5e-3), torch.bfloat16: (1e-2, 5e-2)}

for each in RELEASES:
    archive("causal-conv1d", each)  # skips here: within a test that would be an error


def interface_of(release):
    bare_package("causal-conv1d", release, "causal_conv1d")
    interface = importlib.import_module("causal_conv1d.causal_conv1d_interface")
    for name in ("causal_conv1d_fn", "causal_conv1d_update"):  # as its __init__ does
        setattr(sys.modules["causal_conv1d"], name, getattr(interface, name))
    return interface


def leaf(tensor):
    return tensor.detach().requires_grad_()


class Upstream(unittest.TestCase):
    def compare(self, interface, dtype, length, channel_last, with_states=False, dim=24, width=4):
        torch.manual_seed(length)
        x = torch.randn(2, length, dim) if channel_last else torch.randn(2, dim, length)
        x = x.to(DEVICE, dtype)
        states = torch.randn(2, width - 1, dim, device=DEVICE).to(dtype).transpose(1, 2) if with_states else None
        base = [x, torch.randn(dim, width, device=DEVICE), torch.randn(dim, device=DEVICE)]
        answers = []
        for function in (interface.causal_conv1d_fn, interface.causal_conv1d_ref):
            tensors = [leaf(t.clone()) for t in base] + ([leaf(states.clone())] if with_states else [])
            as_given = tensors[0].transpose(1, 2) if channel_last else tensors[0]
            more = {"initial_states": tensors[3], "return_final_states": True} if with_states else {}
            out = function(as_given, tensors[1], tensors[2], activation="silu", **more)
            final = None
            if with_states:
                out, final = out
            weight = torch.randn(out.shape, generator=torch.Generator().manual_seed(1)).to(DEVICE, dtype)
            loss = (out * weight).sum() + (0 if final is None else torch.sigmoid(final.float()).sum())
            loss.backward()
            answers.append([out, final, *(t.grad for t in tensors)])
        rtol, atol = TOLERANCES[dtype]
        for ours, theirs in zip(*answers):
            if theirs is not None:
                scale = max(1.0, theirs.float().abs().max().item() / 4)
                torch.testing.assert_close(ours.float(), theirs.float(), rtol=rtol, atol=atol * scale)

    def test_causal_conv1d_fn_equals_its_reference(self):
        for release in RELEASES:
            interface = interface_of(release)
            for dtype in TOLERANCES:
                for length in (1, 2, 8, 129, 372):
                    for channel_last in (False, True):
                        with self.subTest(release=release, dtype=dtype, length=length, channel_last=channel_last):
                            self.compare(interface, dtype, length, channel_last)

    def test_states(self):
        for release in RELEASES:
            if release < "1.2":
                continue
            interface = interface_of(release)
            for dtype in TOLERANCES:
                for length in (1, 2, 3, 129):
                    with self.subTest(release=release, dtype=dtype, length=length):
                        self.compare(interface, dtype, length, True, with_states=True)

    def test_causal_conv1d_update_equals_its_reference(self):
        for release in RELEASES:
            interface = interface_of(release)
            for dtype in TOLERANCES:
                for steps in ((None,) if release < "1.4" else (None, 1, 4, 5)):
                    for ring in ((False,) if release < "1.4" else (False, True)):
                        with self.subTest(release=release, dtype=dtype, steps=steps, ring=ring):
                            self.compare_update(interface, dtype, steps, ring, slots=4 if release < "1.4" else 9)

    def compare_update(self, interface, dtype, steps, ring, slots):
        torch.manual_seed(0)
        x = torch.randn(3, 20, *([] if steps is None else [steps]), device=DEVICE).to(dtype)
        state = torch.randn(3, 20, slots, device=DEVICE).to(dtype)
        weight, bias = torch.randn(20, 4, device=DEVICE), torch.randn(20, device=DEVICE)
        more = {"cache_seqlens": torch.tensor([0, 7, 1000], dtype=torch.int32, device=DEVICE)} if ring else {}
        states = [state.clone(), state.clone()]
        ours, theirs = (function(x, own, weight, bias, activation="silu", **more) for function, own in zip(
            (interface.causal_conv1d_update, interface.causal_conv1d_update_ref), states))
        rtol, atol = TOLERANCES[dtype]
        torch.testing.assert_close(ours, theirs, rtol=rtol, atol=atol)
        self.assertTrue(torch.equal(*states))

    def test_packed_sequences(self):
        interface = interface_of(RELEASES[0])
        if "seq_idx" not in interface.causal_conv1d_ref.__code__.co_varnames:
            self.skipTest("the newest release that this torch can import has no reference of packed sequences")
        numbers = torch.tensor([[0] * 5 + [1] * 20 + [2] * 8 + [-1] * 7, [3] * 40], dtype=torch.int32, device=DEVICE)
        for with_states in (False, True):
            x = torch.randn(2, 40, 24, device=DEVICE)
            initial = torch.randn(2, 3, 24, device=DEVICE) if with_states else None
            answers = []
            for function in (interface.causal_conv1d_fn, interface.causal_conv1d_ref):
                leaves = [leaf(t) for t in (x, *([initial] if with_states else []))]
                more = {"initial_states": leaves[1].transpose(1, 2)} if with_states else {}
                weight = leaf(torch.ones(24, 4, device=DEVICE).cumsum(1) / 7)
                out = function(leaves[0].transpose(1, 2), weight, seq_idx=numbers, activation="silu", **more)
                out.square().sum().backward()
                answers.append([out, weight.grad, *(t.grad for t in leaves)])
            for ours, theirs in zip(*answers):
                torch.testing.assert_close(ours, theirs, rtol=3e-4, atol=1e-3)

    def test_fast_path_of_a_mamba_block(self):
        try:
            import einops  # noqa: F401
            import selective_scan_cuda  # noqa: F401
        except ImportError as error:
            self.skipTest(str(error))
        interface_of("1.4.0")  # mamba-ssm 1.2 calls the module with 7 and 10 arguments
        bare_package("mamba-ssm", "1.2.0.post1", "mamba_ssm")
        from mamba_ssm.modules import mamba_simple
        from mamba_ssm.ops import selective_scan_interface
        self.assertIs(selective_scan_interface.causal_conv1d_cuda, causal_conv1d_cuda)
        torch.manual_seed(0)
        block = mamba_simple.Mamba(d_model=24, d_state=16, d_conv=4, expand=2).to(DEVICE)
        x, answers = torch.randn(2, 50, 24, device=DEVICE), []
        for fast in (True, False):
            block.use_fast_path = fast
            block.zero_grad()
            own = leaf(x)
            out = block(own)
            out.square().sum().backward()
            answers.append([out, own.grad, *(p.grad for p in block.parameters())])
        for ours, slow in zip(*answers):
            torch.testing.assert_close(ours, slow, rtol=1e-4, atol=1e-4)


if __name__ == "__main__":
    if not RELEASES:
        skip("this torch can import no release")
    if RELEASES[0] >= "1.5":  # torch imports it to call a custom_op
        require("sympy", "sympy==1.14.0", "mpmath==1.3.0")
    torch.set_num_threads(1)
    unittest.main()
