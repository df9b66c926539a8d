# SPDX-License-Identifier: Apache-2.0
"""What a NaN or an infinity among the inputs may do to the results.

In out, out_z and the last state it must be where the plain recurrence has it, and nowhere else. A gradient is NaN where the
plain recurrence's is; where that one is finite, a NaN is let pass in the channels, and in dB and dC in the groups, that such
an input has reached: kernels add up the gradients of several steps at once, and 0 x NaN is NaN."""
import torch

STRICT = ("out", "out_z", "last_state")
SEQUENCES = ("du", "ddelta", "dz")
PER_CHANNEL = ("dA", "dD", "ddelta_bias")


def _bad(tensor):
    return ~torch.isfinite(tensor.abs())


def _reached(results):
    """(batch, dim): channels of which some result is not finite."""
    channels = None
    for name in ("out", "du", "ddelta", "dz"):
        if name in results:
            here = _bad(results[name][0]).any(-1)
            channels = here if channels is None else channels | here
    return channels


def spread(name, results):
    """Where a NaN is let pass although the exact result is finite; None where nowhere."""
    if name in STRICT:
        return None
    channels, exact = _reached(results), results[name][0]
    if name in SEQUENCES:
        return channels[..., None].expand(exact.shape)
    if name in PER_CHANNEL or exact.dim() == 2:  # a constant B's or C's gradient is (dim, states)
        channels = channels.any(0)
        return channels.reshape((-1,) + (1,) * (exact.dim() - 1)).expand(exact.shape)
    groups = channels.reshape(channels.shape[0], exact.shape[1], -1).any(-1)
    return groups[..., None, None].expand(exact.shape)
