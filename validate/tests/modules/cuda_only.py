# SPDX-License-Identifier: Apache-2.0
def fwd(*args):
    raise RuntimeError("Expected u.is_cuda() to be true, but got false.")


bwd = fwd
