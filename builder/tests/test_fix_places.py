# SPDX-License-Identifier: Apache-2.0
"""Where and under what a fix may run: other directories, other machines, disks that are full or read-only, two at once, Ctrl-C."""
import contextlib
import os
import re
import shutil
import signal
import time
from pathlib import Path

import pytest

from fixtures import MACHINES, python_with_torch, run, torch_of
from program import run_program
from repairs import WEB_PAGE

pytestmark = pytest.mark.ctest(group="fix", labels="matrix;e2e", timeout=900, fixtures="torch_env")
MODULE = "causal_conv1d_cuda"
MACHINE = MACHINES / "h200_torch211/snapshot.json"
# The smaller of the modules, and PTX alone: a build of seconds.
PTX = ["--module", MODULE, "--arch", "compute_75", "--yes"]


def broken_environment(repair, name="env"):
    """With a web page in the place of the module; `old` is its state."""
    here = repair("tested", name)
    here.stale = here.break_module(MODULE)
    here.old = here.state()
    return here


@pytest.fixture
def broken(repair):
    return broken_environment(repair)


def nothing_changed(here):
    assert here.state() == here.old
    assert not here.staged(), here.staged()


def imports_from(here, folder, python=None, variables=None):
    file = run(python or here.python, "-c", f"import torch, {MODULE} as m; print(m.__file__)", variables=variables).strip()
    assert file.startswith(f"{folder}/"), file


def test_json(broken):
    plan = broken.fix("--arch", "sm_90", "--dry-run", "--json").ends(0).json
    assert plan["state"] == "planned"
    step = plan["steps"][0]
    assert (step["kind"], step["module"], step["cause"], len(step["moves"])) == ("install_module", MODULE, "corrupt_binary", 1), step
    assert len(plan["unproven"]) == 1 and "scankit validate" in plan["proof"], plan
    assert broken.fix("--json").ends(1).json["state"] == "declined"
    nothing_changed(broken)


def test_other_machine(broken):
    result = broken.fix("--for", MACHINE, "--yes").ends(0, "not tested: sm_90 code")
    result.ends(0, f"to test it on that GPU: scankit validate --quick --python {broken.python} --module {MODULE}")
    broken.runs(f"import torch, {MODULE} as m; assert {{image['sm'] for image in m.scankit_info()['images']}} == {{90}}, m.scankit_info()")
    broken.restore().ends(0)
    nothing_changed(broken)
    broken.fix(*PTX, "--for", MACHINE).ends(2)


def test_targets(broken, scankit, work, monkeypatch):
    # A venv has no user site; the Python below it has.
    broken.fix(*PTX, "--target", "user").ends(1, "does not use the user site")
    target = work / "elsewhere"
    broken.fix(*PTX, "--target", target).ends(0, f"export PYTHONPATH={target}")
    nothing_changed(broken)
    imports_from(broken, target, variables={"PYTHONPATH": target})
    broken.restore("--target", target).ends(0)
    assert not list(target.rglob("*.so"))

    plain = broken.runs('import os, sys; print(os.path.join(sys.base_prefix, "bin", "python%d.%d" % sys.version_info[:2]))')
    (work / "home").mkdir()
    monkeypatch.setenv("HOME", str(work / "home"))
    monkeypatch.setenv("PYTHONUSERBASE", str(work / "user"))
    user_site = Path(run(plain, "-c", "import site; print(site.getusersitepackages())").strip())
    user_site.mkdir(parents=True)
    shutil.copy(broken.site / "torch.pth", user_site)
    if run_program(plain, "-c", "import torch").status == 0:
        scankit("fix", "--python", plain, *PTX, "--target", "user", timeout=900).ends(0)
        imports_from(broken, user_site, plain)
        scankit("restore", "--python", plain, "--target", "user").ends(0)
        assert os.listdir(user_site) == ["torch.pth"]


def test_externally_managed(repair, scankit, work, monkeypatch):
    """The operating system's own Python, which its package manager keeps (PEP 668)."""
    repair("bare")  # for the cache
    system = "/usr/bin/python3"
    with_torch = python_with_torch()
    monkeypatch.setenv("HOME", str(work / "home"))
    monkeypatch.setenv("PYTHONUSERBASE", str(work / "user_of_the_system"))
    (work / "home").mkdir()
    marker = 'import os, sysconfig; open(os.path.join(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED"))'
    if not os.path.exists(system) or run_program(system, "-c", marker).status:
        pytest.skip("no Python here is the operating system's")
    user_site = Path(run(system, "-c", "import site; print(site.getusersitepackages())").strip())
    user_site.mkdir(parents=True)
    (user_site / "torch.pth").write_text(f"{torch_of(with_torch).parent}\n")
    if run_program(system, "-c", "import torch").status:
        pytest.skip(f"this torch is for another Python than {system}")
    (work / "now").touch()
    managed = "is managed by the operating system's package manager (EXTERNALLY-MANAGED)"
    scankit("fix", "--python", system, "--package", "mamba-ssm", "--yes").ends(1, managed)
    scankit("fix", "--python", system, *PTX, timeout=900).ends(0, f"{managed}, so it is installed into {user_site}")
    imports_from(None, user_site, system)
    scankit("restore", "--python", system).ends(0)
    assert os.listdir(user_site) == ["torch.pth"]
    stdlib = run(system, "-c", 'import sysconfig; print(sysconfig.get_path("stdlib"))').strip()
    touched = run("sh", "-c", 'find "$0" /usr/lib/python3/dist-packages /usr/local/lib/python3* /usr/.scankit -newer "$1" '
                  "! -name '*.pyc' ! -name __pycache__ 2>/dev/null; true", stdlib, work / "now")
    assert not touched, touched


def test_flavor_torch(broken, work):
    """The classic module, linked with this torch, in the same transaction: over a broken file, and over our universal one."""
    file = broken.site / f"{MODULE}{broken.env.suffix}"

    def is_the_classic_one():
        told = broken.runs(f"import torch, {MODULE} as m; print(m.__file__, m.scankit_info()['flavor'])")
        assert told == f"{file} torch"

    broken.fix(*PTX, "--flavor", "torch").ends(0)
    is_the_classic_one()
    [record] = broken.site.glob("scankit_causal_conv1d_cuda-*.dist-info")
    assert re.search(r"(?m)^Tag: cp3[0-9]+-cp3[0-9]+-linux_x86_64$", (record / "WHEEL").read_text())
    assert re.search(rf"(?m)^{re.escape(file.name)},sha256=", (record / "RECORD").read_text())
    broken.fix(*PTX, "--flavor", "torch").ends(0, "nothing to do")
    broken.restore().ends(0)
    nothing_changed(broken)

    broken.fix(*PTX).ends(0)
    universal = broken.state()
    broken.fix(*PTX, "--flavor", "torch").ends(0)
    is_the_classic_one()
    assert not (broken.site / f"{MODULE}.abi3.so").exists()
    broken.restore().ends(0)
    assert broken.state() == universal

    broken.fix(*PTX, "--flavor", "torch", "--target", work / "torch").ends(0)
    imports_from(broken, work / "torch", variables={"PYTHONPATH": work / "torch"})
    broken.fix(*PTX, "--flavor", "classic").ends(2)
    broken.fix(*PTX, "--flavor", "torch", "--target", work / "other", variables={"CXX": None, "PATH": work / "none"}).ends(1, "compiler")


def test_two_at_once(broken, work):
    """One wins; the other was refused, or came when all was done."""
    names = ("one", "two")
    both = [broken.scankit.start("fix", "--python", broken.python, *PTX, out=work / name, err=work / f"{name}.err") for name in names]
    print("they end with", [one.wait() for one in both])
    said = [(work / name).read_text() + (work / f"{name}.err").read_text() for name in names]
    assert any(re.search("repaired|nothing to do", text) for text in said), said
    assert all(re.search("repaired|nothing to do|another scankit", text) for text in said), said
    broken.runs(f"import torch, {MODULE}")
    while broken.state() != broken.old and broken.restore().status == 0:
        pass
    nothing_changed(broken)


def test_interrupted(broken, work):
    for number in (signal.SIGINT, signal.SIGTERM):
        progress = work / f"progress-{number.name}"
        # Who started pytest may ignore SIGINT; env puts it back.
        fixer = broken.scankit.with_(before=["env", "--default-signal=INT"]).start("fix", "--python", broken.python, *PTX, err=progress)
        while not re.search(r"(?m)^verifying", progress.read_text()) and fixer.poll() is None:
            time.sleep(0.05)
        fixer.send_signal(number)
        # By the signal itself or with the status that a shell shows for it.
        assert fixer.wait() in (-number, 128 + number), progress.read_text()
        nothing_changed(broken)
        assert "nothing was changed" in progress.read_text()


# Disks of the test's own -----------------------------------------------------------------------------------------------------

@pytest.fixture
def disk(work):
    """disk(SIZE): a small file system, mounted at WORK/disk."""
    folder = work / "disk"

    def disk(size):
        folder.mkdir()
        if run_program("mount", "-t", "tmpfs", "-o", f"size={size}", "none", folder).status:
            pytest.skip("no file system may be mounted here")
        return folder
    yield disk
    while run_program("umount", folder).status == 0:
        pass


@pytest.fixture
def broken_on_disk(disk, repair):
    disk("64m")
    return broken_environment(repair, "disk/env")


def test_full_disk(broken_on_disk, work):
    here = broken_on_disk
    here.fix(*PTX).ends(0)
    here.restore().ends(0)
    # From nothing to nearly enough, in steps: each point of the fix is the one that fails.
    for kept in (0, 4, 16, 64, 200, 400, 700, 1000, 1300, 1700, 2500, 8000):
        disk = os.statvfs(work / "disk")
        with contextlib.suppress(OSError), open(work / "disk/filler", "wb", buffering=0) as filler:
            for _ in range(disk.f_bavail * disk.f_frsize // 1024 - kept):
                filler.write(bytes(1024))
        result = here.fix(*PTX)
        (work / "disk/filler").unlink()
        if result.status == 0:
            here.restore().ends(0)
        else:
            assert re.search("no space|space left", result.err, re.IGNORECASE), f"{kept} KiB: {result!r}"
            here.restore()
        nothing_changed(here)


def test_read_only(broken_on_disk, work, monkeypatch):
    here = broken_on_disk

    def remount(how):
        run("mount", "-o", f"remount,{how}", work / "disk")

    for name, value in (("HOME", work / "home"), ("XDG_DATA_HOME", work / "home/data"), ("SHELL", "/bin/bash")):
        monkeypatch.setenv(name, str(value))
    remount("ro")
    here.fix(*PTX).ends(0, "Read-only file system")  # the module goes to the user's own directory
    here.restore().ends(0)
    assert not list((work / "home").rglob("*.so"))
    nothing_changed(here)
    remount("rw")
    here.fix(*PTX).ends(0)
    remount("ro")
    here.restore().ends(1, "is not writable")
    remount("rw")
    here.restore().ends(0)
    nothing_changed(here)


def test_other_disk(broken, disk, monkeypatch):
    """A shadowing copy in a directory of PYTHONPATH on another disk: nothing can be renamed from there into the backup."""
    copy = disk("16m") / f"{MODULE}{broken.env.suffix}"
    copy.write_text(WEB_PAGE)
    monkeypatch.setenv("PYTHONPATH", str(copy.parent))
    broken.fix(*PTX).ends(0)
    broken.runs(f"import torch, {MODULE}")
    broken.restore().ends(1, "outside the environment")
    broken.restore("--yes").ends(0)
    assert "DOCTYPE" in copy.read_text()


# Another user ----------------------------------------------------------------------------------------------------------------

AS_NOBODY = """
IFS=: read -ra closed <<<"$1" && shift
for folder in "${closed[@]}"; do
  mkdir -p /mnt/real && mount --rbind "$folder" /mnt/real && mount -t tmpfs -o mode=755 none "$folder"
  for place in /mnt/real/* /mnt/real/.[!.]*; do
    [ -d "$place" ] && mkdir "$folder/${place##*/}" && mount --rbind "$place" "$folder/${place##*/}"
  done
done
exec setpriv --reuid 65534 --regid 65534 --clear-groups "$@"
"""


@pytest.fixture
def as_nobody(work, scankit):
    """The words before a command that run it as a user who may write nothing of root's. Root's own directories are often closed
    to others (the Python is in one here): in a mount namespace of its own each of those is a new one with the same entries."""
    if os.getuid() != 0:
        return []
    if run_program("unshare", "-m", "true").status:
        pytest.skip("no command can be run as another user here")
    python = python_with_torch()
    closed = []
    for place in (os.path.realpath(python), torch_of(python), work / ".", scankit.path):
        for folder in reversed(Path(place).parents):
            if folder != work and not folder.stat().st_mode & 0o001 and str(folder) not in closed:
                closed.append(str(folder))
    work.chmod(0o755)
    return ["unshare", "-m", "bash", "-c", AS_NOBODY, "-", ":".join(closed)]


class User:
    """Somebody with a home, but without a right to write into the environment."""

    def __init__(self, here, work, as_nobody):
        self.here, self.work, self.as_nobody, self.home = here, work, as_nobody, work / "home"
        self.scankit = here.scankit.with_(before=[*as_nobody, "env", "-u", "XDG_DATA_HOME", f"HOME={self.home}", "SHELL=/bin/bash",
                                                  f"XDG_CACHE_HOME={self.home}/cache"])

    def fix(self, *words):
        return self.scankit("fix", "--python", self.here.python, *words, timeout=900)

    def restore(self):
        return self.scankit("restore", "--python", self.here.python)

    def shell(self, *words, variables=()):
        """In a fresh shell of this user."""
        return run_program(*self.as_nobody, "env", "-i", f"HOME={self.home}", "PATH=/usr/bin:/bin",
                           f"XDG_CACHE_HOME={self.home}/cache", *variables, *words)


def works_as_printed(user, result):
    """What the fix printed, each line in its order and as it is, in fresh shells. Returns the line for this shell."""
    [line] = re.findall(r"(?m)^in this shell, first run: (.*)", result.out)
    [for_good] = re.findall(r"(?m)^once, for all new shells: (.*)", result.out)
    first = re.search(r"(?m)^(in this shell|to test it on that GPU)", result.out)
    assert first[1] == "in this shell", f"the line comes after what needs it: {result!r}"
    statement = f"'{user.here.python}' -c 'import torch, {MODULE} as m; print(m.__file__)'"
    told = user.shell("sh", "-c", f"{line} && {statement}").ends(0)
    told.has_line(rf"^{user.home}/\.local/share/scankit/envs/env-[0-9a-f]*/{MODULE}\.abi3\.so")
    user.shell("sh", "-c", f"{line}; case $PYTHONPATH in *:/before) ;; *) exit 1 ;; esac", variables=["PYTHONPATH=/before"]).ends(0)
    user.shell("sh", "-c", for_good).ends(0)
    user.shell("bash", "-ic", statement).ends(0)
    told = user.shell("bash", "-ic", f"'{user.scankit.path}' doctor --python '{user.here.python}'").ends(0)
    assert "WARNING" not in told.out, f"of a copy that this user cannot move: {told!r}"
    return line


def test_no_access(broken, work, as_nobody):
    user = User(broken, work, as_nobody)
    for name in ("home", "theirs"):
        (work / name).mkdir()
        (work / name).chmod(0o777)
    run("chmod", "-R", "a-w", broken.env.folder)
    # What the doctor prints is the command without --target.
    result = user.fix(*PTX).ends(0, f"cannot write to {broken.site}: Permission denied")
    nothing_changed(broken)
    assert not (broken.env.folder / ".scankit").exists()
    line = works_as_printed(user, result)
    result = user.fix(*PTX).ends(0)  # in a shell that knows nothing of it: there is nothing to do
    assert f"in this shell, first run: {line}" in result.text.splitlines(), result
    user.fix(*PTX, "--target", "user").ends(1, "omit --target")
    user.fix("--package", "mamba-ssm", "--yes").ends(1, f"cannot write to {broken.site}")
    user.restore().ends(0)
    assert not list((user.home / ".local").rglob("*.so"))
    user.fix(*PTX, "--target", work / "theirs").ends(0)
    file = run(*as_nobody, "env", f"PYTHONPATH={work}/theirs", broken.python, "-c", f"import torch, {MODULE} as m; print(m.__file__)")
    assert file.startswith(f"{work}/theirs/"), file
    nothing_changed(broken)
    run("chmod", "-R", "u+w", broken.env.folder)
    if os.getuid() == 0:
        as_its_owner(broken, work, user)


def as_its_owner(broken, work, user):
    """As the environment's owner, but with a file in the way that is in somebody else's directory."""
    run("chown", "-R", "65534:65534", broken.env.folder)
    shadow = work / "roots" / f"{MODULE}{broken.env.suffix}"
    shadow.parent.mkdir()
    shadow.write_text(WEB_PAGE)
    result = run_program(*user.as_nobody, "env", f"PYTHONPATH={shadow.parent}", f"HOME={user.home}", user.scankit.path, "fix", "--python",
                         broken.python, *PTX, timeout=900)
    result.ends(1, f"cannot move {shadow} away").ends(1, "move it away yourself")
    nothing_changed(broken)
    user.fix(*PTX).ends(0)
    user.restore().ends(0)
    nothing_changed(broken)
    broken.fix(*PTX).ends(1, "belongs to user 65534")  # root leaves another user's environment alone
