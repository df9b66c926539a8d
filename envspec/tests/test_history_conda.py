# SPDX-License-Identifier: Apache-2.0
"""`env check --since` and `env diff` of an environment that real conda commands have changed."""
import datetime
import time

import pytest

pytestmark = pytest.mark.ctest(group="envspec.history_conda", labels="ci;e2e", timeout=600)


def test_commands(conda):
    """Each command with its time, and what it linked and unlinked; also a removal, and a way back to an older revision."""
    env, python = conda.project.env, conda.project.python
    began = time.time()
    time.sleep(1.1)  # conda records whole seconds
    conda.run("install", "--prefix", conda.prefix, "zeta=1.1").ends(0)
    conda.run("remove", "--prefix", conda.prefix, "native").ends(0)
    result = env("check", "--since", "scankit.lock", "--python", python, "--json").ends(7)
    events = [event for event in result.json["events"] if event["source"] == "conda"]
    by_field = {change["field"]: (event, change) for event in events for change in event["changes"]}
    event, change = by_field["packages.zeta"]
    assert (change["before"], change["after"]) == ("1.0", "1.1"), change
    assert event["command"].endswith(f"install --yes --quiet --prefix {conda.prefix} zeta=1.1"), event
    at = datetime.datetime.strptime(event["time"] + "+0000", "%Y-%m-%d %H:%M:%S UTC%z").timestamp()
    assert began <= at <= time.time(), event
    event, change = by_field["packages.native"]
    assert (change["before"], change["after"]) == ("1.0", None), change
    assert event["command"].endswith("remove --yes --quiet --prefix {} native".format(conda.prefix)), event
    assert all(event["recorded_in"] == str(conda.prefix / "conda-meta/history") for event, _ in by_field.values()), by_field
    assert not [one for one in result.json["unexplained"] if one["field"] in ("packages.zeta", "packages.native")], result.json
    # Back to the first revision: one more command, which undoes both, and nothing differs from the lock any more.
    conda.run("install", "--prefix", conda.prefix, "--revision", "0").ends(0)
    text = env("check", "--since", "1h", "--python", python).ends(7)
    text.has_line(r"install .*--revision 0").has_line(r"remove .*native")
    env("diff", "scankit.lock", python).ends(0)
