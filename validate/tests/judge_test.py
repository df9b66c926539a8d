# SPDX-License-Identifier: Apache-2.0
"""What the harness takes for rounding: tensors of a few elements, whose own rounding error is a matter of luck."""
import pathlib
import sys
import types
import unittest

try:
    import torch
except ImportError:
    print("SKIPPED: no torch here")
    sys.exit(77)

# The harness is a package of another name in the child that runs it.
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from harness import channel  # noqa: E402

package = types.ModuleType("scankit_harness")
package.channel = channel
sys.modules["scankit_harness"], sys.modules["scankit_harness.channel"] = package, channel
from harness import judge  # noqa: E402

TOLERANCE = {"fp32": 1e-4, "half": 1e-3, "factor": 4}


def judged(exact, got):
    exact = torch.tensor(exact, dtype=torch.float64)
    return judge.compare("out", torch.tensor(got, dtype=torch.bfloat16), exact, exact.abs(),
                         exact.to(torch.bfloat16).double(), torch.bfloat16, TOLERANCE)


class FewElements(unittest.TestCase):
    # 0.640625 and 0.64453125 are neighbours in bf16: a kernel that rounds twice may end at either.
    def test_the_other_neighbour_is_rounding(self):
        answer = judged([0.6407], [0.64453125])
        self.assertGreater(answer["error"], 4 * answer["explained"] + 1e-3, "else the test shows nothing")
        self.assertLess(answer["error"], answer["bound"])
        self.assertLess(answer["worst"]["ratio"], 1)

    def test_what_is_further_away_is_not(self):
        self.assertGreater(judged([0.6407], [0.66015625])["worst"]["ratio"], 1)

    def test_among_thousands_it_is_next_to_nothing(self):
        exact = torch.linspace(0.5, 1, 4096).tolist()
        answer = judged(exact, exact)
        self.assertLess(answer["bound"] - 4 * answer["explained"] - 1e-3, 2e-4)


if __name__ == "__main__":
    unittest.main()
