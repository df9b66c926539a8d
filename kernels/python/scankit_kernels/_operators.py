# SPDX-License-Identifier: Apache-2.0
"""What every operator of the namespace `scankit` is registered with."""
import importlib

import torch

if not hasattr(torch.library, "register_autograd"):
    raise ImportError(
        f"scankit_kernels needs torch 2.4 or newer: torch {torch.__version__} has no torch.library.register_autograd. "
        "selective_scan_cuda and causal_conv1d_cuda work with it all the same: call them, or mamba-ssm, directly.")

# A fragment: the folder's files, and a reload of one, add to one namespace. Not torch.library.custom_op, which costs
# twice the host time of a call.
_library = torch.library.Library("scankit", "FRAGMENT")
# The modules read strides, so Inductor must keep the ones that the fake tensors had.
_tags = (torch.Tag.pt2_compliant_tag, torch.Tag.needs_fixed_stride_order)


class ModuleMissing(ImportError):
    """A compiled module is not here, or is not scankit's."""


def module(name, needs="scankit_info"):
    """The compiled module, imported when the first operator runs on real tensors: tracing needs none."""
    try:
        found = importlib.import_module(name)
    except ImportError as error:
        raise ModuleMissing(f"{name} cannot be imported ({error}); `scankit fix --module {name}` installs it") from error
    if hasattr(found, needs):
        return found
    whose = f"does not have {needs}" if hasattr(found, "scankit_info") else "is not scankit's"
    raise ModuleMissing(f"{name} in {found.__file__} {whose}; `scankit fix --module {name}` installs one that does")


def define(schema, implementation, fake):
    """scankit::NAME of `schema` for the CPU and CUDA; `fake` makes its outputs without computing them."""
    name = "scankit::" + schema.partition("(")[0]
    _library.define(schema, tags=_tags)
    for key in ("CPU", "CUDA"):
        _library.impl(schema.partition("(")[0], implementation, key)
    torch.library.register_fake(name, fake, lib=_library)
    return name


def differentiate(name, setup, backward):
    torch.library.register_autograd(name, backward, setup_context=setup, lib=_library)


def unit_stride(tensor):
    """The tensor, or a contiguous copy where its last dimension is not dense, which the kernels need."""
    if tensor is None or tensor.shape[-1] <= 1 or tensor.stride(-1) == 1:
        return tensor
    return tensor.contiguous()


def absent(beside):
    """In place of an output that the arguments rule out: an operator's schema has no optional outputs."""
    return beside.new_empty(0)


def autocast_dtype(device_type):
    """The dtype of the autocast region that we are in, or None."""
    try:
        return torch.get_autocast_dtype(device_type) if torch.is_autocast_enabled(device_type) else None
    except RuntimeError:  # a kind of device without autocast (meta)
        return None
