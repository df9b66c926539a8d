# SPDX-License-Identifier: Apache-2.0
"""The forward as a user would write it in Triton: a program has 32 channels of a batch entry with all their states, and
walks along the length."""
import torch
import triton
import triton.language as tl

CHANNELS = 32


@triton.jit
def _kernel(u, delta, A, B, C, D, z, bias, out, dim, length, states: tl.constexpr, channels: tl.constexpr):
    batch, channel = tl.program_id(1), tl.program_id(0) * channels + tl.arange(0, channels)
    state, there = tl.arange(0, states), channel < dim
    rate = tl.load(A + channel[:, None] * states + state[None, :], mask=there[:, None], other=0.0)
    d, b = tl.load(D + channel, mask=there, other=0.0), tl.load(bias + channel, mask=there, other=0.0)
    rows = (batch * dim + channel).to(tl.int64) * length
    projections = (batch * states + state).to(tl.int64) * length
    h = tl.zeros((channels, states), tl.float32)
    for i in range(length):
        x = tl.load(u + rows + i, mask=there, other=0.0).to(tl.float32)
        dt = tl.load(delta + rows + i, mask=there, other=0.0).to(tl.float32) + b
        dt = tl.where(dt > 20.0, dt, tl.log(1.0 + tl.exp(dt)))
        h = tl.exp(dt[:, None] * rate) * h + (dt * x)[:, None] * tl.load(B + projections + i).to(tl.float32)[None, :]
        y = tl.sum(h * tl.load(C + projections + i).to(tl.float32)[None, :], axis=1) + d * x
        gate = tl.load(z + rows + i, mask=there, other=0.0).to(tl.float32)
        tl.store(out + rows + i, (y * gate * tl.sigmoid(gate)).to(out.dtype.element_ty), mask=there)


def forward(given):
    batch, dim, length = given.u.shape
    out = torch.empty_like(given.u)
    grid = ((dim + CHANNELS - 1) // CHANNELS, batch)
    _kernel[grid](given.u, given.delta, given.A, given.B, given.C, given.D, given.z, given.delta_bias, out, dim, length,
                  given.A.shape[1], CHANNELS)
    return out
