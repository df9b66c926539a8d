# SPDX-License-Identifier: Apache-2.0
def fwd(u, delta, A):
    return []


def bwd(u, delta, A):
    return []
