# SPDX-License-Identifier: Apache-2.0
"""scankit's universal modules as torch operators: autograd, torch.compile, torch.export, fake tensors, float64 on the CPU."""
from ._operators import ModuleMissing
from .causal_conv1d import causal_conv1d_fn, causal_conv1d_update
from .selective_scan import selective_scan_fn, selective_state_update

__all__ = ["ModuleMissing", "causal_conv1d_fn", "causal_conv1d_update", "selective_scan_fn", "selective_state_update"]
