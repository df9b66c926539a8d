# SPDX-License-Identifier: Apache-2.0
"""A real environment full of what must not leave the house: in its folder's name, in variables, in what an import says, in a
log. Every report is made twice: without --redact the secrets are there, with it none is."""
import json
import shutil

import pytest

from environment import MODULE
from fixtures import host_python, run, site_of, suffix_of

USER, OTHER, NODE, DOMAIN = "zeldaquux", "quentinbar", "node1734", "secret-corp.example"
TOKEN, PUSH = "hf_abcdefghijKLMNOPQRSTuvwxyz012345", "ghp_0123456789abcdefghijABCDEFGHIJ012345"
PASSWORD, CLOUD = "hunter2-pass-9", "AKIAQWERTYUIOPASDFGH"
SECRETS = (USER, OTHER, NODE, DOMAIN, TOKEN, PUSH, PASSWORD, CLOUD)
INDEX = f"https://{USER}:{PASSWORD}@index.{DOMAIN}/simple"
LOG = f"""\
{USER}@{NODE}:~/project$ HF_TOKEN={TOKEN} pip install --index-url {INDEX} mamba-ssm
Looking in indexes: https://{USER}:****@index.{DOMAIN}/simple
export AWS_ACCESS_KEY_ID={CLOUD}
remote: Authorization: Bearer {PUSH}
Traceback (most recent call last):
  File "/home/{OTHER}/project/train.py", line 3, in <module>
    import selective_scan_cuda
ERROR: Could not find a version that satisfies the requirement causal-conv1d (from {INDEX} as {CLOUD}, Authorization: Bearer {PUSH}, from {NODE})
RuntimeError: refused by {NODE}: password={PASSWORD} user {USER}
ImportError: /home/{OTHER}/project/.venv/lib/python3.11/site-packages/selective_scan_cuda.cpython-311-x86_64-linux-gnu.so: undefined symbol: _ZN3c104cuda9SetDeviceEi
"""


@pytest.fixture
def python(work, monkeypatch):
    """The interpreter of that environment, with the variables of its user and their project as the current folder."""
    home = work / "home" / USER
    (home / "project").mkdir(parents=True)
    python = home / "project/.venv/bin/python"
    run(host_python(), "-m", "venv", "--without-pip", home / "project/.venv")
    site = site_of(python)
    # A module that is cut short, one whose failure tells what it was given, and a .pth line into another user's home.
    with open(shutil.which("bash"), "rb") as program:
        (site / (MODULE + suffix_of(python))).write_bytes(program.read(200))
    (site / "causal_conv1d_cuda.py").write_text(
        f'raise ImportError("cannot fetch {INDEX}/ with token={TOKEN} from {home}/.netrc on {NODE}.{DOMAIN}")\n')
    (site / f"{OTHER}.pth").write_text(f"/home/{OTHER}/checkout\n")
    (home / f"project/build-{NODE}.log").write_text(LOG)
    for name, value in {"HOME": home, "USER": USER, "LOGNAME": USER, "HOSTNAME": f"{NODE}.{DOMAIN}", "SLURMD_NODENAME": NODE,
                        "HF_TOKEN": TOKEN, "PIP_INDEX_URL": INDEX, "PYTHONPATH": f"/home/{OTHER}/lib:{home}/extra",
                        "LD_LIBRARY_PATH": f"/mnt/{NODE}/lib:{home}/lib"}.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.chdir(home / "project")
    return python


def reports(scankit, folder, name, *words):
    """Every form of one diagnosis."""
    into = folder / name
    forms = [("json", "json"), ("junit", "xml"), ("sarif", "sarif"), ("github", "github"), ("markdown", "md"), ("html", "html")]
    result = scankit("doctor", *words, "-v", *[word for form, end in forms for word in ("--report", f"{form}={into}.{end}")])
    into.with_suffix(".txt").write_text(result.out)
    assert result.status in (0, 1, 4), result


def all_of(scankit, folder, python, *options):
    folder.mkdir()
    home = python.parents[3]
    log = home / f"project/build-{NODE}.log"
    reports(scankit, folder, "live", "--python", python, *options)
    reports(scankit, folder, "files", "--python", python, "--no-import", "--gpu", "sm_90", *options)
    reports(scankit, folder, "named", "--so", site_of(python), "--python", python, *options)
    reports(scankit, folder, "log", "--log", log, *options)
    reports(scankit, folder, "joined", "--log", log, "--from", home / "facts.json", *options)
    scankit("snapshot", "--import", "--python", python, *options, "--out", folder / "snapshot.json").ends(0)


def diagnosis(file):
    report = json.loads(file.read_text())
    return report["verdict"], [finding["cause"] for finding in report["findings"]]


@pytest.mark.ctest(fixtures="torch_env")
def test_redact(scankit, python, work):
    scankit("snapshot", "--import", "--python", python, "--out", python.parents[3] / "facts.json").ends(0)
    opened, clean = work / "open", work / "clean"
    all_of(scankit, opened, python)
    all_of(scankit, clean, python, "--redact")
    reports(scankit, clean, "stored", "--from", clean / "snapshot.json")

    said = {folder: {file.name: file.read_text() for file in folder.iterdir()} for folder in (opened, clean)}
    assert len(said[clean]) == 43  # six diagnoses in seven forms, and the snapshot
    for secret in SECRETS:
        assert any(secret in text for text in said[opened].values()), f"{secret} was never there: the test proves nothing"
        left = [name for name, text in said[clean].items() if secret in text]
        assert not left, f"{secret} is still in {left}"
    # The same diagnosis as without: what was taken out is no fact.
    for name in ("live", "files", "log", "joined"):
        assert diagnosis(opened / f"{name}.json") == diagnosis(clean / f"{name}.json"), f"{name}: another diagnosis with --redact"
