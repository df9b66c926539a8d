# SPDX-License-Identifier: Apache-2.0
"""FILE SECONDS SEED: a pytest file, for at most so many seconds. With a SEED other than 0 its tests come in a random order,
so that those which the time sufficed for are a fair sample. On descriptor 3: "done total" after each test, and at the end
"left N" of those that were not run. The status is pytest's, where time was over that of the tests which ran.
"""
import os
import random
import sys
import time

sys.path[0] = os.getcwd()  # as `python -m pytest` has it, not the folder of this file: its names are not the tests' to find
import pytest  # noqa: E402


def tell(line):
    try:
        os.write(3, (line + "\n").encode())
    except OSError:
        pass  # nobody listens


class Bounded:
    def __init__(self, seconds, seed):
        self.end = time.monotonic() + seconds
        self.seed = seed
        self.session = None
        self.done = self.total = 0
        self.over = False

    def pytest_collection_modifyitems(self, session, items):
        self.session, self.total = session, len(items)
        if self.seed:
            random.Random(self.seed).shuffle(items)

    def pytest_runtest_logfinish(self):
        self.done += 1
        tell("%d %d" % (self.done, self.total))
        if time.monotonic() > self.end and self.done < self.total:
            self.over = True
            self.session.shouldstop = "the time is over"


def main():
    path, seconds, seed = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
    bounded = Bounded(seconds, seed)
    status = pytest.main(["-q", "-rf", "--tb=no", "--color=no", "-p", "no:cacheprovider", path], plugins=[bounded])
    if bounded.over:
        tell("left %d" % (bounded.total - bounded.done))
        status = 1 if bounded.session.testsfailed else 0
    sys.stdout.flush()
    sys.exit(int(status))


if __name__ == "__main__":
    main()
