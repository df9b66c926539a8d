# SPDX-License-Identifier: Apache-2.0
"""Loads the suite's fixtures (suite.py) for the tests of this directory."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
pytest_plugins = ["suite"]
