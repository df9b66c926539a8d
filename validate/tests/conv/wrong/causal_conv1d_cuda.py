# SPDX-License-Identifier: Apache-2.0
"""Leaves the last step of sequences of odd length out of dweight, and the state behind after several steps at once."""
import importlib.util
import os

_path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "right", "causal_conv1d_cuda.py")
_spec = importlib.util.spec_from_file_location("right_conv", _path)
right = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(right)
causal_conv1d_fwd = right.causal_conv1d_fwd


def causal_conv1d_bwd(x, weight, bias, dout, *more):
    dx, dweight, dbias, dinitial = right.causal_conv1d_bwd(x, weight, bias, dout, *more)
    if x.shape[2] % 2 and x.shape[2] > 1:
        less = dout.clone()
        less[:, :, -1] = 0
        more = [*more[:3], None, *more[4:]]
        dweight = right.causal_conv1d_bwd(x, weight, bias, less, *more)[1]
    return dx, dweight, dbias, dinitial


def causal_conv1d_update(x, conv_state, *more):
    state = conv_state.clone()
    out = right.causal_conv1d_update(x, conv_state, *more)
    if x.shape[2] > 1:
        conv_state.copy_(state)
    return out
