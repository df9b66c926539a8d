# SPDX-License-Identifier: Apache-2.0
"""Loads the end-to-end suite's fixtures (doctor/tests/e2e/suite.py) for the tests of the file formats."""
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(REPOSITORY / folder) for folder in ("doctor/tests/e2e", "builder/tests", "envspec/tests", "ci/tests/formats")]
pytest_plugins = ["suite"]
