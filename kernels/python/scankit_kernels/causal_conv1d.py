# SPDX-License-Identifier: Apache-2.0
"""The causal depthwise convolution as operators, and upstream's causal_conv1d_fn and causal_conv1d_update on them."""
import torch

from ._operators import absent, define, differentiate, module, unit_stride

_MODULE = "causal_conv1d_cuda"
_ARGUMENTS = "Tensor x, Tensor weight, Tensor? bias, "
_HISTORY = "Tensor? seq_idx, Tensor? initial_states, "


def _states_like(x, weight):
    """(batch, dim, width - 1), the channels last in memory, as upstream makes them."""
    return x.new_empty((x.shape[0], weight.shape[1] - 1, x.shape[1])).transpose(1, 2)


def _contiguous(tensor):
    return None if tensor is None else tensor.contiguous()


def _forward(x, weight, bias, seq_idx, initial_states, final_states, silu):
    final = _states_like(x, weight) if final_states else None
    out = module(_MODULE).causal_conv1d_fwd(x, weight, unit_stride(bias), _contiguous(seq_idx), initial_states, final, silu)
    return out, absent(x) if final is None else final


def _forward_fake(x, weight, bias, seq_idx, initial_states, final_states, silu):
    return torch.empty_like(x), _states_like(x, weight) if final_states else absent(x)


def _backward(x, weight, bias, dout, seq_idx, initial_states, dfinal_states, silu):
    results = module(_MODULE).causal_conv1d_bwd(x, weight, unit_stride(bias), dout, _contiguous(seq_idx), initial_states,
                                                dfinal_states, None, initial_states is not None, silu)
    return tuple(absent(x) if t is None else t for t in results)


def _backward_fake(x, weight, bias, dout, seq_idx, initial_states, dfinal_states, silu):
    return (torch.empty_like(x), weight.new_empty(weight.shape), absent(x) if bias is None else bias.new_empty(bias.shape),
            absent(x) if initial_states is None else torch.empty_like(initial_states))


def _update(x, conv_state, weight, bias, silu, cache_seqlens, conv_state_indices):
    steps = x if x.dim() == 3 else x.unsqueeze(-1)
    out = module(_MODULE).causal_conv1d_update(steps, conv_state, weight, unit_stride(bias), silu, _contiguous(cache_seqlens),
                                               _contiguous(conv_state_indices))
    return out if x.dim() == 3 else out.squeeze(-1)


def _update_fake(x, conv_state, weight, bias, silu, cache_seqlens, conv_state_indices):
    return torch.empty_like(x if x.dim() == 3 else x.unsqueeze(-1)).reshape(x.shape)


_fwd = define(f"causal_conv1d_fwd({_ARGUMENTS}{_HISTORY}bool final_states, bool silu) -> (Tensor out, Tensor final_states)",
              _forward, _forward_fake)
define(f"causal_conv1d_bwd({_ARGUMENTS}Tensor dout, {_HISTORY}Tensor? dfinal_states, bool silu) -> (Tensor dx, Tensor "
       "dweight, Tensor dbias, Tensor dinitial_states)", _backward, _backward_fake)
define("causal_conv1d_update(Tensor x, Tensor(a!) conv_state, Tensor weight, Tensor? bias, bool silu, Tensor? cache_seqlens, "
       "Tensor? conv_state_indices) -> Tensor", _update, _update_fake)


def _setup(ctx, inputs, output):
    *tensors, ctx.final_states, ctx.silu = inputs
    if not ctx.final_states:
        ctx.mark_non_differentiable(output[1])
    ctx.save_for_backward(*tensors)


def _differentiate(ctx, dout, dfinal_states):
    x, weight, bias, seq_idx, initial_states = ctx.saved_tensors
    dx, dweight, dbias, dinitial = torch.ops.scankit.causal_conv1d_bwd(
        x, weight, bias, dout, seq_idx, initial_states, dfinal_states if ctx.final_states else None, ctx.silu)
    return (dx, dweight, None if bias is None else dbias, None, None if initial_states is None else dinitial, None, None)


differentiate(_fwd, _setup, _differentiate)


def _silu(activation):
    if activation not in (None, "silu", "swish"):
        raise NotImplementedError(f"activation is {activation!r}; None, 'silu' and 'swish' are supported")
    return activation is not None


def causal_conv1d_fn(x, weight, bias=None, seq_idx=None, initial_states=None, return_final_states=False,
                     final_states_out=None, activation=None):
    """As causal_conv1d's function of this name: out, or (out, final_states). x: (batch, dim, length); weight: (dim, width);
    bias: (dim,); seq_idx: (batch, length), int32; initial_states, final_states: (batch, dim, width - 1)."""
    out, final = torch.ops.scankit.causal_conv1d_fwd(x, weight, bias, seq_idx, initial_states, return_final_states,
                                                     _silu(activation))
    if not return_final_states:
        return out
    if final_states_out is not None:
        final = final_states_out.copy_(final)
    return out, final


def causal_conv1d_update(x, conv_state, weight, bias=None, activation=None, cache_seqlens=None, conv_state_indices=None):
    """As causal_conv1d's function of this name: takes x, (batch, dim) or (batch, dim, steps), into conv_state, in place."""
    return torch.ops.scankit.causal_conv1d_update(x, conv_state, weight, bias, _silu(activation), cache_seqlens,
                                                  conv_state_indices)
