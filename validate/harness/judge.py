# SPDX-License-Identifier: Apache-2.0
"""Measures how far a module's tensor is from the fp64 result. The verdict is scankit's; the bounds come with the job.

In norm: ||got - exact|| / ||exact|| beside the same figure of the exact result rounded to the tensor's dtype, and a few
roundings of fp32 of the terms that were added up: a sum that cancels to almost nothing is only as good as its terms.
And one element that rounds to its other neighbour: in a tensor of a few elements the exact result may by chance be close
to numbers of the dtype, which makes its own rounding error no measure of what rounding explains.
Per element: |got - exact| against  factor * u * |exact| + constant * magnitude,  u the dtype's unit roundoff.
"""
import torch

from scankit_harness.channel import number

UNIT = {torch.float32: 2.0 ** -24, torch.float16: 2.0 ** -11, torch.bfloat16: 2.0 ** -8}
# Half the spacing of fp16's subnormals. For the others: what flushing subnormals to zero may lose in a few terms.
FLOOR = {torch.float32: 2.0 ** -120, torch.float16: 2.0 ** -25, torch.bfloat16: 2.0 ** -120}
SUM_UNIT = 2.0 ** -22  # four unit roundoffs of fp32, in which every kernel adds up


def compare(name, got, exact, magnitude, rounded, dtype, tolerance, spread=None):
    """All fp64 on the CPU but `got`. `rounded` is the exact result after the contract's own roundings. Of complex
    results each part is judged, by the magnitude of both. `spread`: where what is not finite may be though the exact
    result is (nonfinite.py)."""
    if exact.is_complex():
        got = torch.view_as_real(got.detach().to("cpu").to(torch.complex64).reshape(exact.shape).resolve_conj())
        exact, rounded = torch.view_as_real(exact.resolve_conj()), torch.view_as_real(rounded.resolve_conj())
        magnitude, dtype = magnitude.real[..., None].expand(exact.shape), torch.float32
    constant = tolerance["fp32"] if dtype == torch.float32 else tolerance["half"]
    factor = tolerance["factor"]
    got = got.detach().to("cpu").to(torch.float64).reshape(exact.shape)
    bound = factor * (UNIT[dtype] * exact.abs() + FLOOR[dtype]) + constant * magnitude
    difference = (got - exact).abs()
    # Where the dtype ends, an infinity of the right sign is what rounding gives.
    overflow = torch.isinf(got) & (exact.abs() + bound >= torch.finfo(dtype).max) & (got * exact.sign() > 0)
    difference = torch.where(overflow, torch.zeros_like(difference), difference)
    same = (torch.isnan(got) & torch.isnan(exact)) | (got == exact)
    if spread is not None:
        same = same | (spread & ~torch.isfinite(got))
    difference = torch.where(same, torch.zeros_like(difference), difference)
    difference = torch.where(torch.isnan(difference), torch.full_like(difference, float("inf")), difference)
    inside = torch.isfinite(rounded) & torch.isfinite(got) & ~overflow
    error = _norm_ratio(difference, exact, magnitude, inside | torch.isinf(difference))
    explained = _norm_ratio((rounded - exact).abs(), exact, magnitude, inside)
    return {"name": name, "dtype": str(dtype).replace("torch.", ""), "error": number(error),
            "explained": number(explained), "constant": constant,
            "bound": number(factor * explained + constant + _cancelled(exact, magnitude, inside) + _one_neighbour(exact, dtype, inside)),
            "worst": _worst(got, exact, bound, difference)}


def _norm_ratio(difference, exact, magnitude, where):
    if not bool(where.any()):
        return 0.0
    top = float(difference[where].norm())
    if top == 0.0:
        return 0.0
    bottom = float(exact[where & torch.isfinite(exact)].norm())
    bottom = bottom if bottom > 0 else float(magnitude[where & torch.isfinite(magnitude)].norm())
    return top / bottom if bottom > 0 else float("inf")


def _cancelled(exact, magnitude, where):
    """What SUM_UNIT of the terms is beside the sums that are left of them."""
    left = float(exact[where].norm())
    return SUM_UNIT * float(magnitude[where & torch.isfinite(magnitude)].norm()) / left if left > 0 else 0.0


def _one_neighbour(exact, dtype, where):
    """The largest element's distance to the next number of the dtype, beside the norm: 2 u where it is alone, next to nothing
    among thousands."""
    norm = float(exact[where].norm()) if bool(where.any()) else 0.0
    return 2 * UNIT[dtype] * float(exact[where].abs().max()) / norm if norm > 0 else 0.0


def _worst(got, exact, bound, difference):
    if exact.numel() == 0:
        return {"index": [], "value": 0.0, "expected": 0.0, "bound": 0.0, "ratio": 0.0}
    ratio = (difference / bound).reshape(-1)
    ratio = torch.where(difference.reshape(-1) == 0, torch.zeros_like(ratio), ratio)
    ratio = torch.where(torch.isnan(ratio), torch.full_like(ratio, float("inf")), ratio)
    place = int(ratio.argmax())
    index, rest = [], place
    for extent in reversed(exact.shape):
        index.insert(0, rest % extent)
        rest //= extent
    pick = [t.reshape(-1)[place] for t in (got, exact, bound, ratio)]
    return {"index": index, "value": number(pick[0]), "expected": number(pick[1]), "bound": number(pick[2]),
            "ratio": number(pick[3])}


def largest_difference(a, b):
    """Of two runs of the same call, relative to the norm; NaN or the same infinity in the same place is equal."""
    x, y = (torch.view_as_real(t) if t.is_complex() else t for t in (a, b))
    x, y = (t.detach().to("cpu").to(torch.float64) for t in (x, y))
    same = (x == y) | (torch.isnan(x) & torch.isnan(y))
    difference = torch.where(same, torch.zeros_like(x), (x - y).abs())
    size = float(x[torch.isfinite(x)].norm())
    return float(difference.norm()) / size if size > 0 else float(difference.norm())
