# SPDX-License-Identifier: Apache-2.0
"""Tensors of more than 2^31 elements: every address in the modules must be computed in 64 bits.

PYTHONPATH=DIR python sizes_test.py cpu|cuda. The values repeat with a period that divides no power of two, so that an
address that lost its upper bits meets others. The scan forgets within a few steps (exp(-4) a step): a window of it is
what a small call on that window alone gives. A case that does not fit into the memory that is free is skipped; 77: none ran.
"""
import os
import sys
import unittest

import torch

DEVICE = sys.argv.pop(1) if len(sys.argv) > 1 and sys.argv[1] in ("cpu", "cuda") else "cpu"
if DEVICE == "cuda" and not torch.cuda.is_available():
    print("SKIPPED: torch finds no CUDA device")
    sys.exit(77)

import causal_conv1d_cuda as conv  # noqa: E402
import selective_scan_cuda as scan  # noqa: E402

if DEVICE == "cuda" and not all(m.scankit_info()["images"] for m in (conv, scan)):
    print("SKIPPED: the modules hold no device images; scankit build makes ones that do")
    sys.exit(77)

GIB = 1 << 30
PERIOD = 65521  # prime
WARM = 64       # steps after which the scan has forgotten: exp(-4 * 64)
WINDOW = 300
TYPE = torch.bfloat16
CLOSE = dict(rtol=0.02, atol=0.02)


def free_bytes():
    if DEVICE == "cuda":
        torch.cuda.empty_cache()
        return torch.cuda.mem_get_info()[0]
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def filled(shape, seed, low=-1.0, high=1.0):
    """Values in [low, high) in TYPE, flat position i holding the (i mod PERIOD)th."""
    generator = torch.Generator().manual_seed(seed)
    values = (torch.rand(PERIOD, generator=generator) * (high - low) + low).to(TYPE).to(DEVICE)
    flat = torch.empty(shape, dtype=TYPE, device=DEVICE).view(-1)
    whole = flat.numel() // PERIOD * PERIOD
    flat[:whole].view(-1, PERIOD).copy_(values)
    flat[whole:] = values[:flat.numel() - whole]
    return flat.view(shape)


class Beyond32Bits(unittest.TestCase):
    def need(self, gib):
        free = free_bytes()
        if free < gib * GIB:
            self.skipTest(f"{gib} GiB are needed, {free / GIB:.0f} are free")

    def scan_inputs(self, batch, dim, length, states, with_z):
        on = lambda *shape: torch.randn(*shape, generator=torch.Generator().manual_seed(1)).to(DEVICE)
        return dict(u=filled((batch, dim, length), 1), delta=filled((batch, dim, length), 2, 4, 6),
                    A=-torch.rand(dim, states, generator=torch.Generator().manual_seed(2)).to(DEVICE) * 0.5 - 1,
                    B=filled((batch, 1, states, length), 3), C=filled((batch, 1, states, length), 4), D=on(dim),
                    z=filled((batch, dim, length), 5) if with_z else None, delta_bias=None)

    def scan_both(self, tensors, dout):
        """{name: tensor} of forward and backward."""
        out, x, *gated = scan.fwd(*tensors.values(), False)
        results = dict(out=out)
        if gated:
            results["gated"] = gated[0]
        gradients = scan.bwd(*tensors.values(), dout, x, out if gated else None, None, False, False)
        names = ["du", "ddelta", "dA", "dB", "dC", "dD", "ddelta_bias", "dz"]
        results.update((n, g) for n, g in zip(names, gradients) if g is not None)
        return results

    def compare_windows(self, tensors, dout, results, batches, firsts):
        """Against small calls on the windows that begin at `firsts`, in each of `batches`."""
        length = tensors["u"].shape[-1]
        timed = lambda t: t is not None and t.dim() > 2 and t.shape[-1] == length
        for b in batches:
            for first in firsts:
                begin, end = max(0, first - WARM), min(length, first + WINDOW + WARM)
                part = lambda t: t[b:b + 1, ..., begin:end].contiguous() if timed(t) else t
                small = self.scan_both({n: part(t) for n, t in tensors.items()}, part(dout))
                inside = slice(first - begin, min(first + WINDOW, end) - begin)
                for name, value in results.items():
                    if timed(value):
                        torch.testing.assert_close(part(value)[..., inside], small[name][..., inside], **CLOSE,
                                                   msg=lambda text: f"{name}[{b}, ..., {first}:]: {text}")

    def check_scan(self, batch, dim, length, states, batches, firsts, with_z):
        tensors = self.scan_inputs(batch, dim, length, states, with_z)
        dout = filled((batch, dim, length), 6)
        results = self.scan_both(tensors, dout)
        self.compare_windows(tensors, dout, results, batches, firsts)
        # A sum over all of it: nothing was left out. In pieces, since the product is as large as the tensor.
        if not with_z:
            exact = sum((d.double() * u.double()).sum((0, 2)) for d, u in zip(dout.split(GIB // 16, -1),
                                                                            tensors["u"].split(GIB // 16, -1)))
            torch.testing.assert_close(results["dD"].double(), exact, rtol=1e-3, atol=1e-3 * (batch * length) ** 0.5)

    def test_scan_of_many_sequences(self):
        self.need(60)
        at = (1 << 31) // (1024 * 1024)
        self.check_scan(at + 52, 1024, 1024, 1, [0, at // 2, at - 1, at, at + 51], [0, 700], with_z=True)

    def test_scan_of_three_long_channels(self):
        self.need(72)
        length = (1 << 30) - 77
        self.check_scan(1, 3, length, 1, [0], [0, length // 2, (1 << 29) + 5, length - WINDOW, length - 2000], with_z=False)

    def test_scan_with_many_states(self):
        self.need(100)
        length = (1 << 27) + 9
        self.check_scan(2, 4, length, 16, [0, 1], [0, (1 << 26) - 100, length - WINDOW], with_z=False)

    def check_conv(self, x, batches, firsts):
        weight, bias = filled((x.shape[1], 4), 7), filled((x.shape[1],), 8)
        dout = filled((x.shape[0], x.shape[2], x.shape[1]), 9).transpose(1, 2) if x.stride(1) == 1 else filled(x.shape, 9)
        both = lambda x, dout: (conv.causal_conv1d_fwd(x, weight, bias, None, None, None, True),
                                conv.causal_conv1d_bwd(x, weight, bias, dout, None, None, None, None, False, True)[0])
        results = both(x, dout)
        for b in batches:
            for first in firsts:
                begin = max(0, first - 8)
                part = lambda t: t[b:b + 1, :, begin:first + WINDOW + 8]
                inside = slice(first - begin, first - begin + WINDOW)
                for name, value, small in zip(("out", "dx"), results, both(part(x), part(dout))):
                    torch.testing.assert_close(part(value)[..., inside], small[..., inside], **CLOSE,
                                               msg=lambda text: f"{name}[{b}, :, {first}:]: {text}")

    def test_convolution_of_many_sequences(self):
        self.need(20)
        at = (1 << 31) // (1024 * 1024)
        self.check_conv(filled((at + 52, 1024, 1024), 1), [0, at // 2, at - 1, at, at + 51], [0, 700])

    def test_convolution_with_channels_last(self):
        self.need(20)
        length = (1 << 25) + 24
        self.check_conv(filled((1, length, 72), 1).transpose(1, 2), [0],
                        [0, (1 << 31) // 72 - 20, (1 << 30) // 72, length - WINDOW - 8])

    def test_convolution_of_three_long_channels(self):
        self.need(28)
        length = (1 << 30) - 72
        self.check_conv(filled((1, 3, length), 1), [0], [0, (1 << 29) - 3, length // 2, length - WINDOW - 8])


class Storage(unittest.TestCase):
    """What resize_() left of a storage is read to the tensor's shape otherwise."""

    def test_a_storage_that_is_smaller_than_its_tensor_is_refused(self):
        make = Beyond32Bits().scan_inputs
        for name in ("u", "delta", "B", "C", "z"):
            tensors = make(2, 8, 256, 16, True)
            scan.fwd(*tensors.values(), False)
            tensors[name].untyped_storage().resize_(64)
            with self.assertRaisesRegex(RuntimeError, f"fwd: {name} has a storage of 64 bytes"):
                scan.fwd(*tensors.values(), False)
        wide = torch.randn(2, 8, 257, device=DEVICE)
        x = wide[:, :, 1:]
        arguments = (torch.randn(8, 4, device=DEVICE), None, None, None, None, True)
        conv.causal_conv1d_fwd(x, *arguments)
        wide.untyped_storage().resize_(wide.untyped_storage().nbytes() - 4)  # behind the offset, one element too few
        with self.assertRaisesRegex(RuntimeError, "x has a storage of"):
            conv.causal_conv1d_fwd(x, *arguments)


if __name__ == "__main__":
    program = unittest.main(exit=False, verbosity=2)
    if program.result.testsRun == len(program.result.skipped):
        sys.exit(77)
    sys.exit(not program.result.wasSuccessful())
