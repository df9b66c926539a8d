# SPDX-License-Identifier: Apache-2.0
"""The universal modules here, in this Python and this torch: each imports, computes and survives fork. Prints one line.

python universal_check.py; the modules on PYTHONPATH. Needs torch alone.
"""
import os
import platform
import sys

import torch
import causal_conv1d_cuda
import selective_scan_cuda
import selective_scan_cuda_core
import selective_scan_cuda_oflex


def by_hand(u, delta, A, B, C):
    state, out = torch.zeros(u.shape[0], *A.shape, dtype=torch.float64), []
    u, delta, A, B, C = (t.double() for t in (u, delta, A, B, C))
    for i in range(u.shape[2]):
        state = torch.exp(delta[:, :, i, None] * A) * state + delta[:, :, i, None] * u[:, :, i, None] * B[:, :, :, i]
        out.append((state * C[:, :, :, i]).sum(-1))
    return torch.stack(out, 2)


def close(one, other):
    error = (one.double() - other).abs().max().item()
    assert error < 1e-4, error


torch.manual_seed(5)
u, delta, A = torch.randn(2, 8, 40), torch.rand(2, 8, 40), -torch.rand(8, 16)
B, C = torch.randn(2, 1, 16, 40), torch.randn(2, 1, 16, 40)
expected = by_hand(u, delta, A, B, C)


def scan():
    close(selective_scan_cuda.fwd(u, delta, A, B, C, None, None, None, False)[0], expected)


scan()
for module in (selective_scan_cuda_core, selective_scan_cuda_oflex):
    more = (True,) if module is selective_scan_cuda_oflex else ()
    close(module.fwd(u, delta, A, B, C, None, None, False, 1, *more)[0], expected)
out = torch.empty_like(u)
weight = torch.randn(8, 4)
causal_conv1d_cuda.causal_conv1d_fwd(u, weight, None, None, None, out, None, False)
padded = torch.nn.functional.pad(u.double(), (3, 0))
close(out, torch.nn.functional.conv1d(padded, weight.double()[:, None], groups=8))

child = os.fork()
if child == 0:
    try:
        scan()
        os._exit(0)
    finally:
        os._exit(1)
assert os.waitpid(child, 0)[1] == 0, "the child of a fork"
try:
    glibc = os.confstr("CS_GNU_LIBC_VERSION")
except ValueError:
    glibc = "unknown"
info = selective_scan_cuda.scankit_info()
print("CPython %s, torch %s, %s, %s, %s" % (platform.python_version(), torch.__version__, glibc, info["instruction_set"],
                                            "DLPack" if hasattr(torch._C, "_dlpack_exchange_api") else "attributes"))
sys.stdout.flush()
