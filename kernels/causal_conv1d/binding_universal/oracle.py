# SPDX-License-Identifier: Apache-2.0
"""Causal depthwise convolution in float64, straight from its definition, with torch's autograd for the gradients."""
import torch


def convolve(x, weight, bias=None, sequence=None, initial=None, silu=False):
    """(out, final states) of float64 tensors."""
    batch, dim, length = x.shape
    width = weight.shape[1]
    before = torch.zeros(batch, dim, width - 1, dtype=x.dtype) if initial is None else initial
    extended = torch.cat([before, x], -1)
    numbers = None
    if sequence is not None:
        first = sequence[:, :1] if initial is not None else torch.full_like(sequence[:, :1], -1)
        numbers = torch.cat([first.expand(batch, width - 1), sequence], 1) if length else sequence
    y = torch.zeros_like(x)
    for tap in range(width):
        term = weight[:, tap, None] * extended[..., tap : tap + length]
        if numbers is not None:
            same = numbers[:, tap : tap + length] == sequence
            term = torch.where(same[:, None], term, torch.zeros_like(term))
        y = y + term
    if bias is not None:
        y = y + bias[:, None]
    if silu:
        y = y * torch.sigmoid(y)
    if sequence is not None:
        y = torch.where((sequence < 0)[:, None], torch.zeros_like(y), y)
    return y, extended[..., length:]


def update(x, state, weight, bias=None, silu=False, positions=None, entries=None):
    """(out, state afterwards): one step after the other, as a decoder sees them."""
    out, state = torch.zeros_like(x), state.clone()
    width, slots = weight.shape[1], state.shape[2]
    for b in range(x.shape[0]):
        entry = b if entries is None else int(entries[b])
        if entry < 0:
            continue
        ring = slots if positions is None else int(positions[b])
        window = torch.stack([state[entry, :, (ring - back) % slots] for back in range(width - 1, 0, -1)], 1)
        for t in range(x.shape[2]):
            new = x[b, :, t, None]
            window = torch.cat([window[:, 1 - width:], new], 1)
            y = (window * weight).sum(1) + (0 if bias is None else bias)
            out[b, :, t] = y * torch.sigmoid(y) if silu else y
            if positions is None:
                state[entry] = torch.cat([state[entry, :, 1:], new], 1)
            else:
                state[entry, :, (ring + t) % slots] = new[:, 0]
    return out, state


def excess(got, exact, floor=1e-6):
    """Error over what is allowed, as ratios of norms: twice the rounding of the exact answer to the tensor's dtype, at
    least its usual size, plus `floor`. Above 1 is wrong; NaN is infinitely wrong."""
    got, exact = got.detach().cpu(), exact.detach().double()
    norm, error = exact.norm().item(), (got.double() - exact).norm().item()
    if not error < float("inf"):
        return float("inf")
    rounding = max((exact.to(got.dtype).double() - exact).norm().item(), 0.3 * torch.finfo(got.dtype).eps * norm)
    return error / (2 * rounding + floor * norm + 1e-30) if error else 0.0
