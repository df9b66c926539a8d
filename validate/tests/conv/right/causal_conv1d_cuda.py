# SPDX-License-Identifier: Apache-2.0
"""A right causal_conv1d_cuda in torch's own convolution, in float64, one packed sequence after the other; before 1.5.1
by its signatures, so that both ways of calling are tested."""
import torch
import torch.nn.functional as F


def _forward(x, weight, bias, seq_idx, initial, silu):
    before = x.new_zeros(x.shape[0], x.shape[1], weight.shape[1] - 1) if initial is None else initial
    inputs = torch.cat([before, x], 2)
    if seq_idx is None:
        y = F.conv1d(inputs, weight[:, None], bias, groups=x.shape[1])
    else:
        rows = []
        for b in range(x.shape[0]):
            parts = []
            for number in torch.unique_consecutive(seq_idx[b]):
                part = F.pad(x[b : b + 1, :, seq_idx[b] == number], (weight.shape[1] - 1, 0))
                parts.append(F.conv1d(part, weight[:, None], bias, groups=x.shape[1]))
            rows.append(torch.cat(parts, 2))
        y = torch.cat(rows)
    return (F.silu(y) if silu else y), inputs[:, :, x.shape[2] :]


def causal_conv1d_fwd(x, weight, bias, seq_idx, initial_states, final_states_out, silu):
    exact = [None if t is None else t.double() for t in (x, weight, bias, initial_states)]
    out, final = _forward(exact[0], exact[1], exact[2], seq_idx, exact[3], silu)
    if final_states_out is not None:
        final_states_out.copy_(final)
    return torch.empty_like(x).copy_(out)


def causal_conv1d_bwd(x, weight, bias, dout, seq_idx, initial_states, dfinal_states, dx, return_dinitial, silu):
    given = (x, weight, bias, initial_states)
    leaves = [None if t is None else t.double().requires_grad_() for t in given]
    with torch.enable_grad():
        out, final = _forward(leaves[0], leaves[1], leaves[2], seq_idx, leaves[3], silu)
        loss = (out * dout.double()).sum()
        if dfinal_states is not None:
            loss = loss + (final * dfinal_states.double()).sum()
    found = iter(torch.autograd.grad(loss, [t for t in leaves if t is not None]))
    each = [None if t is None else next(found).to(t.dtype) for t in given]
    dx = torch.empty_like(x) if dx is None else dx
    return dx.copy_(each[0]), each[1], each[2], each[3] if return_dinitial else None


def causal_conv1d_update(x, conv_state, weight, bias, silu, cache_seqlens, conv_state_indices):
    assert cache_seqlens is None and conv_state_indices is None
    initial = conv_state[:, :, 1 - weight.shape[1] :].clone()
    out = causal_conv1d_fwd(x, weight, bias, None, initial, None, silu)
    conv_state.copy_(torch.cat([conv_state, x], 2)[:, :, -conv_state.shape[2] :])
    return out
