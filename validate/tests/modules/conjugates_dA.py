# SPDX-License-Identifier: Apache-2.0
"""The other convention for the gradient of a complex number."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import right  # noqa: E402

fwd = right.fwd


def bwd(*args):
    results = right.bwd(*args)
    results[2] = results[2].conj().resolve_conj()
    return results
