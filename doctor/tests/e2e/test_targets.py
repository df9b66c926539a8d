# SPDX-License-Identifier: Apache-2.0
"""What is not installed, or is not here at all: --so, --root, --gpu."""
import glob
import json
import os
import shutil
import zipfile

import pytest

from environment import MODULE
from fixtures import TORCH, run, shell_or_skip

pytestmark = pytest.mark.ctest(group="targets", fixtures="torch_env;modules")
TORCH_MINOR = TORCH.rpartition(".")[0]


@pytest.fixture
def env(environment):
    return environment()


@pytest.fixture
def file(env, work):
    """A good module that is not installed."""
    path = work / "built" / env.module_file.name
    env.link_good(path)
    return path


@pytest.fixture
def examine(scankit, env):
    return lambda *words, **how: scankit.doctor("--python", env.python, *words, **how)


def make_wheel(name, member, file):
    """Of one file and the least metadata."""
    os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
    with zipfile.ZipFile(name, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("m-1.dist-info/WHEEL", "Wheel-Version: 1.0\n")
        archive.write(file, member)
    return name


def test_good_file(examine, file):
    examine("--so", file).diagnosis("healthy").built_for(file.name, TORCH_MINOR, "new")


def test_good_folder(examine, file):
    examine("--so", file.parent).diagnosis("healthy").built_for(file.parent, TORCH_MINOR, "new")


# A real wheel of the package index, built for another torch than the one that is installed. Its libraries are no Python
# modules (torch.ops loads them), so that there is no verdict on an import: what is told is for which torch they were built.
def test_dating_of_a_real_wheel(examine, scankit, env):
    wheel = shell_or_skip("fx_extension_wheel")
    result = examine("--so", wheel).built_for(wheel, "2.6", "old").built_for("torchvision/_C.so", "2.6", "old")
    of_wheel = [entry for entry in result.json["built_for"] if entry["file"].endswith(".whl")]
    assert any(entry["glibc_min"] is not None and entry["stable_abi"] is False for entry in of_wheel), f"the wheel's own facts: {of_wheel}"
    text = scankit.report("--python", env.python, "--so", wheel)
    text.has_line(r"files together: built for torch 2\.[0-9]+.*pre-CXX11 ABI; 2\.11 is installed$")


def test_broken_file(examine, file):
    cut = file.with_name("cut.so")
    cut.write_bytes(file.read_bytes()[:5000])
    examine("--so", cut).diagnosis("broken", "corrupt_binary")


def test_foreign_tag(examine, file):
    file.rename(file.with_name(f"{MODULE}.cpython-36m-x86_64-linux-gnu.so"))
    examine("--so", file.parent).diagnosis("broken", "python_abi_tag_mismatch")


def test_good_wheel(examine, file, work):
    wheel = make_wheel("m-1-py3-none-linux_x86_64.whl", file.name, file)
    (work / "tmp").mkdir()
    examine("--so", wheel, variables={"TMPDIR": work / "tmp"}).diagnosis("healthy")
    assert not os.listdir(work / "tmp"), "the unpacked wheel was left behind"


# As auditwheel leaves it: only the extension has an RPATH, which the loader inherits to what that brings (ld.so(8)). The facts
# are a stored snapshot's, by which the files are resolved without looking at this machine.
@pytest.mark.parametrize("brought", ["both", "outer"])
def test_wheel_whose_libraries_have_no_rpath(scankit, env, work, brought):
    libraries, module = work / "m.libs", work / env.module_file.name
    libraries.mkdir()
    run("gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", libraries / "libinner.so", "-Wl,-soname,libinner.so",
        stdin="int inner(void);\nint inner(void) { return 1; }\n")
    run("gcc", "-shared", "-fPIC", "-x", "c", "-", "-x", "none", libraries / "libinner.so", "-o", libraries / "libouter.so",
        "-Wl,-soname,libouter.so", stdin="int inner(void);\nint outer(void);\nint outer(void) { return inner(); }\n")
    env.link_module(module, *env.objects("binding", "scan"), "-Wl,--no-as-needed", libraries / "libouter.so",
                    "-Wl,--disable-new-dtags,-rpath,$ORIGIN/m.libs", f"-Wl,-rpath-link,{libraries}")
    wheel = make_wheel("m-1-py3-none-linux_x86_64.whl", module.name, module)
    with zipfile.ZipFile(wheel, "a") as archive:
        for library in ["libouter.so", "libinner.so"] if brought == "both" else ["libouter.so"]:
            archive.write(libraries / library, f"m.libs/{library}")
    scankit.doctor("--python", env.python, "--snapshot", work / "machine.json")
    found = scankit.doctor("--so", wheel, "--from", work / "machine.json").json["findings"]
    missing = [finding["summary"] for finding in found if finding["cause"] == "system_library_missing"]
    assert missing == [] if brought == "both" else "libouter.so needs libinner.so" in missing[0], missing


def test_wheel_of_another_python(examine, file):
    examine("--so", make_wheel("m-1-cp36-cp36m-linux_x86_64.whl", file.name, file)).diagnosis("broken", "python_abi_tag_mismatch")


def test_folder_of_wheels(examine, file):
    make_wheel("dist/m-1-py3-none-linux_x86_64.whl", file.name, file)
    examine("--so", "dist").diagnosis("healthy")
    make_wheel("dist/of/3.6/m-1-cp36-cp36m-linux_x86_64.whl", file.name, file)
    examine("--so", "dist").diagnosis("broken", "python_abi_tag_mismatch")


def test_folder_without_either(examine, work):
    (work / "nothing").mkdir()
    (work / "nothing/README").touch()
    examine("--so", "nothing").refused("no shared library or wheel found in it")


def test_wheel_that_leads_out(examine, file):
    examine("--so", make_wheel("m-1-py3-none-linux_x86_64.whl", "../../evil.so", file)).refused("evil.so")


def test_no_such_file(examine, work):
    examine("--so", work / "none.so").refused("none.so")


def test_no_root(examine, work):
    (work / "empty").mkdir()
    examine("--root", work / "empty").refused("empty")


def copied_root(env, root):
    """The environment copied below `root` as /srv/env, as an unpacked image holds it: its links are absolute, as they were
    made in it."""
    interpreter = env.folder.with_name(env.folder.name + ".python").read_text().strip()
    base = os.path.dirname(os.path.dirname(interpreter))
    run("sh", "-ec", """
root=$1 base=$2 env=$3 interpreter=$4
mkdir -p "$root/srv/env/bin" "$root$base" "$root/etc" "$root/lib/x86_64-linux-gnu" "$root/lib64"
cp -a "$base/bin" "$base/include" "$root$base/" 2>/dev/null || cp -a "$base/bin" "$root$base/"
mkdir -p "$root$base/lib"
cp -al "$base"/lib/libpython* "$root$base/lib/" 2>/dev/null || cp -a "$base"/lib/libpython* "$root$base/lib/" 2>/dev/null || true
# Of the standard library what tells where it is; all of it is half a gigabyte with its tests.
for library in "$base"/lib/python3*; do
  [ -e "$library/os.py" ] || continue
  mkdir -p "$root$library/site-packages"
  cp -a "$library"/os.py "$library"/_sysconfigdata* "$library"/lib-dynload "$root$library/"
done
cp -a "$env/pyvenv.cfg" "$env/lib" "$root/srv/env/"
ln -s "$interpreter" "$root/srv/env/bin/python"
for name in c m dl pthread rt util stdc++ gcc_s; do
  cp -aL /lib/x86_64-linux-gnu/lib$name.so.* "$root/lib/x86_64-linux-gnu/" 2>/dev/null || true
done
cp -aL /lib64/ld-linux-x86-64.so.2 "$root/lib64/"
""", "-", root, base, env.folder, interpreter)
    (root / "etc/os-release").write_text('ID=made\nVERSION_ID=1\nPRETTY_NAME="made"\n')
    return root


@pytest.fixture
def image(work):
    """Where an image may be unpacked: a copied interpreter is half a gigabyte."""
    yield work / "image"
    shutil.rmtree(work / "image", ignore_errors=True)


def look_into(scankit, root, *words):
    return scankit.doctor("--root", root, "--python", "/srv/env/bin/python", *words)


def test_root_with_a_broken_module(scankit, env, image):
    env.module_file.touch()
    result = look_into(scankit, copied_root(env, image)).diagnosis("broken", "corrupt_binary")
    subjects = [finding["subject"] for finding in result.json["findings"]]
    assert all(subject.startswith("/srv/env/") for subject in subjects), f"a path is told as this machine sees it: {subjects}"


# A link means what it means inside the root: never a file of this machine. The empty file tells which was read.
def test_root_links_stay_inside(scankit, env, image, work):
    up = "../" * 11 + ".."
    copied_root(env, image)
    file = glob.glob(f"{image}/srv/env/lib/python3.*/site-packages")[0] + "/" + env.module_file.name
    (image / "srv/empty.so").touch()
    (work / "empty.so").touch()
    for target, is_read in (("/srv/empty.so", True), (f"{up}/srv/empty.so", True),
                            (f"{work}/empty.so", False), (f"{up}{work}/empty.so", False)):
        if os.path.lexists(file):
            os.unlink(file)
        os.symlink(target, file)
        found = look_into(scankit, image, "--module", MODULE).findings(cause="corrupt_binary")
        assert bool(found) == is_read, f"a link to {target}: the empty file was read: {bool(found)}, should be {is_read}"


def test_root_without_that_python(scankit, image):
    for folder in ("etc", "usr/lib", "lib"):
        (image / folder).mkdir(parents=True)
    (image / "etc/os-release").write_text("ID=made\n")
    result = scankit.doctor("--root", image, "--python", "/no/such/python")
    assert result.status == 2 and "/no/such/python" in result.err, result


def test_gpu_none(examine, env):
    env.link_good()
    examine("--no-import", "--gpu", "none").diagnosis("healthy")


# torch of CUDA 13 on a driver of CUDA 12.
def test_driver_of_the_old_major(examine, env):
    env.link_good()
    examine("--no-import", "--gpu", "sm_90", "--driver", "525.60").diagnosis("broken", "driver_too_old")
    examine("--no-import", "--gpu", "sm_120", "--driver", "580.65.06").diagnosis("healthy")


def test_options_that_exclude_each_other(scankit):
    for words in ("--from x.json --root /", "--from x.json --python p", "--from x.json --all", "--from x.json --import",
                  "--root / --import", "--no-import --import", "--so x.so --import", "--so x.so --module m", "--log x --so x.so",
                  "--log x --root /", "--gpu sm_90a", "--gpu 90", "--gpu sm_9", "--driver r570", "--driver 570", "--driver 570.86.15.1", "--gpu", "--driver"):
        result = scankit.doctor(*words.split())
        result.refused(words.split()[0])
        assert len(result.err.strip().splitlines()) <= 3, f"not a short answer: {result!r}"


# The matrix: nothing of an environment is looked at, so that a real module built for the shared environment's torch must work
# for that release and Python, and one built with another release's headers must not.
def test_matrix_of_a_good_file(scankit, file, env, work):
    python = ".".join(run(env.python, "-c", "import sys; print(*sys.version_info[:2])").split())
    wheel = make_wheel(f"m-1-cp{python.replace('.', '')}-cp{python.replace('.', '')}-linux_x86_64.whl", file.name, file)
    result = scankit("doctor", "--so", wheel, "--torch", TORCH_MINOR, "--json").ends(0)
    assert [(cell["torch"], cell["python"], cell["fit"]) for cell in result.json["groups"][0]["cells"]] == [(TORCH_MINOR, python, "works")]
    both = scankit("doctor", "--so", wheel, "--torch", f"2.4,{TORCH_MINOR}", "--python", python, "--glibc", "2.5", "--json").ends(1).json
    assert both["groups"][0]["cells"][0]["cause"] in ("torch_version_mismatch", "abi_cxx11_mismatch"), both
    assert both["groups"][0]["glibc"][0]["cause"] == "glibc_too_old", both
    scankit("doctor", "--so", wheel, "--torch", TORCH_MINOR, "--python", "3.12" if python == "3.13" else "3.13").ends(1, "no file is for this Python")
    scankit("doctor", "--so", wheel, "--torch", TORCH_MINOR, "--python", "3.8..3.9").ends(4, "torch has no wheels for this Python")


# Without --glibc the table does not depend on it; with it the release that refuses the stack is told from those that grant it.
def test_matrix_of_an_executable_stack(scankit, env, work):
    module = work / env.module_file.name
    env.link_module(module, *env.objects("binding", "scan"), "-Wl,-z,execstack")
    python = ".".join(run(env.python, "-c", "import sys; print(*sys.version_info[:2])").split())
    asked = ("doctor", "--so", module, "--torch", TORCH_MINOR, "--python", python)
    scankit(*asked).ends(0, f"an executable stack requested by {module.name}, which glibc 2.41 and newer refuse")
    group = scankit(*asked, "--glibc", "2.40,2.41", "--json").ends(1).json["groups"][0]
    assert [cell["fit"] for cell in group["cells"]] == ["works"], group
    assert group["executable_stack"] == [module.name], group
    assert [(one["value"], one["fit"], one["cause"]) for one in group["glibc"]] == [
        ("2.40", "works", None), ("2.41", "fails", "executable_stack")], group


def test_matrix_of_a_stale_file(scankit, env, work):
    stale = work / "built" / env.module_file.name
    env.link_stale(stale)
    result = scankit("doctor", "--so", stale, "--torch", f"2.10..{TORCH_MINOR}", "--json").ends(1)
    fits = {cell["torch"]: cell["cause"] for cell in result.json["groups"][0]["cells"]}
    assert fits[TORCH_MINOR] == "torch_version_mismatch", fits


# A real wheel: torchvision 0.21 is for torch 2.6 and CUDA 12, and holds PTX for GPUs to come.
def test_matrix_of_a_real_wheel(scankit):
    wheel = shell_or_skip("fx_extension_wheel")
    result = scankit("doctor", "--so", wheel, "--torch", "all", "--cuda", "11.8,12.6,13.0", "--gpu", "sm_80..sm_120", "--json").ends(1)
    group = result.json["groups"][0]
    assert {cell["torch"] for cell in group["cells"] if cell["fit"] == "works"} == {"2.6"}, group
    assert {cell["value"]: cell["fit"] for cell in group["cuda"]} == {"11.8": "fails", "12.6": "works", "13.0": "fails"}
    assert {cell["fit"] for cell in group["gpu"]} == {"works"}
    assert "PTX" in group["gpu"][-1]["reason"] and group["gpu"][0]["reason"] is None


# Without --torch a range of GPUs is the GPUs in it.
def test_gpu_range(scankit, examine, file):
    described = examine("--so", file, "--gpu", "sm_86..sm_89", "--snapshot", "range.json").json
    assert described["verdict"] in ("healthy", "broken"), described
    with open("range.json") as stored:
        gpus = json.load(stored)["gpus"]["value"]
    assert [gpu["sm"] for gpu in gpus] == ["86", "87", "88", "89"]
    scankit("doctor", "--so", file, "--gpu", "sm_1..").refused("sm_1")
    scankit("doctor", "--so", file, "--gpu", "sm_90..sm_80").refused("sm_80..sm_90")


def test_matrix_refuses(scankit, file):
    scankit("doctor", "--torch", "2.6").refused("--so")
    scankit("doctor", "--so", file, "--cuda", "12.4").refused("--torch")
    scankit("doctor", "--so", file, "--torch", "2.6", "--from", "x.json").refused("--from")
    for words, named in ((["--torch", "9.9"], "9.9"), (["--torch", "2.6", "--python", "/usr/bin/python3"], "/usr/bin/python3"),
                         (["--torch", "2.6", "--gpu", "sm_90..sm_80"], "sm_80..sm_90"), (["--torch", "2.6", "--glibc", "3.1"], "3.1")):
        scankit("doctor", "--so", file, *words).refused(named)
