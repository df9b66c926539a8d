# SPDX-License-Identifier: Apache-2.0
"""read_pylock.py FILE: pylock.toml as the reference implementation of PEP 751 reads it, and what it would install here."""
import pathlib
import sys
import tomllib

from packaging.pylock import Pylock
from packaging.utils import parse_wheel_filename

file = pathlib.Path(sys.argv[1])
lock = Pylock.from_dict(tomllib.loads(file.read_text()))
assert str(lock.lock_version) == "1.0" and lock.created_by == "scankit", lock
lock.validate()
packages = {one.name: one for one in lock.packages}
assert set(packages) == {"alpha", "beta"}, set(packages)
for name, one in packages.items():
    (wheel,) = one.wheels
    assert parse_wheel_filename(wheel.filename)[:2] == (name, one.version), wheel
    assert len(wheel.hashes["sha256"]) == 64
assert packages["alpha"].wheels[0].url.startswith("http://127.0.0.1:") and packages["alpha"].wheels[0].path is None
assert (file.parent / packages["beta"].wheels[0].path).is_file() and packages["beta"].wheels[0].url is None
chosen = {one.name for one, _ in lock.select()}
assert chosen == {"alpha", "beta"}, chosen
