# SPDX-License-Identifier: Apache-2.0
"""`scankit env suggest` as a person runs it: described machines, stored ones and specs, bad input, and an index on the loopback
that has everything, lacks a release, or is away. No GPU and no network is needed."""
import json
import os
import platform
import tarfile
from pathlib import Path

import pytest

from fixtures import follows_schema
from lock_wheels import wheel
from project import text_of

pytestmark = pytest.mark.ctest(group="envspec.suggest", labels="ci;e2e", timeout=300)

HOPPER = ("--gpu", "sm_90", "--driver", "580.95.05", "--glibc", "2.35", "--python", "3.11")


@pytest.fixture
def suggest(scankit, work):
    """suggest(WORD...): without an index."""
    return lambda *words, **how: scankit("env", "suggest", "--offline", *words, **how)


def best(result):
    return result.json["sets"][0]


def test_described(suggest):
    result = suggest(*HOPPER, "--installer", "uv").ends(0, "these fit together: Python 3.11, torch 2.10.0 with CUDA 12.8")
    lines = result.out.splitlines()
    assert "fit together" in lines[0], "the verdict is not the first sentence"
    assert "    uv venv --python 3.11 .venv" in lines
    assert "    uv pip install --python .venv torch==2.10.0" in lines
    assert result.out.count("Alternative") == 2
    assert "no index was asked" in result.out
    assert "://" not in result.text, "a host is named"


def test_what_no_metadata_states(suggest):
    """torch 2.1 needs NumPy 1 and a transformers before 4.56, mamba-ssm 2.2 one before 5: said once, where torch is installed."""
    result = suggest("--gpu", "sm_80", "--driver", "535.54.03", "--glibc", "2.31", "--python", "3.10", "--index-only", "--installer", "pip",
                     "torch==2.1.*").ends(0)
    result.has_line(r"    .venv/bin/python -m pip install torch==2\.1\.2 'numpy<2' 'transformers<4\.56'$")


def test_json(suggest):
    for words, status, verdict in ((HOPPER, 0, "fits"), (("--gpu", "sm_130"), 4, "unknown"),
                                   ((*HOPPER, "torch==2.8.*", "mamba-ssm==2.3.2.post1"), 1, "nothing-fits")):
        result = suggest("--json", *words).ends(status)
        follows_schema(result.out)
        assert result.json["verdict"] == verdict


def test_nothing_fits(suggest):
    """The conflict is named, and what would be enough."""
    result = suggest("--gpu", "sm_80", "--driver", "535.54.03", "--glibc", "2.17", "--python", "3.14")
    result.ends(1, "no set fits: glibc 2.17 (--glibc), Python 3.14 (--python) exclude each other")
    result.has_line(r"would fit with Python 3\.13: Python 3\.13, torch 2\.6\.0 with CUDA 12\.4")
    result.has_line(r"would fit with glibc 2\.28 or newer: Python 3\.14, torch 2\.10\.0")
    suggest(*HOPPER, "torch==2.8.*", "mamba-ssm==2.3.2.post1").has_line(r'would fit without "torch==2\.8\.\*": Python')
    suggest("--gpu", "sm_130", "--driver", "580.95").ends(4, "sm_130 is in no table of scankit")


def test_ruled_out(suggest):
    suggest("--gpu", "sm_90", "--driver", "535.54.03", "--glibc", "2.35", "--python", "3.11").has_line(
        r"torch 2\.\d+ to 2\.14 with CUDA 13\.0, torch 2\.12 to 2\.15 with CUDA 13\.2: driver 535\.54\.03 supports CUDA up to 12\.2 -> .* -> CUDA 13 needs a driver of 580\.65\.06 or newer")


def test_aarch64(suggest):
    """A server, a DGX Spark, and both Jetsons; the commands are those of any processor, for the GPU that was named."""
    for gpu, driver, glibc in (("sm_90", "580.95.05", "2.35"), ("sm_121", "580.95.05", "2.39"), ("sm_110", "580.00", "2.39")):
        target = ("--machine", "aarch64", "--gpu", gpu, "--driver", driver, "--glibc", glibc, "--python", "3.12")
        result = suggest(*target, "--json", "--installer", "uv").ends(0)
        follows_schema(result.out)
        assert result.json["target"]["machine"] == "aarch64"
        assert (best(result)["torch"], best(result)["cuda"], best(result)["torch_source"]) == ("2.11.0", "13.0", "index")
        assert best(result)["commands"][:2] == ["uv venv --python 3.12 .venv", "uv pip install --python .venv torch==2.11.0"]
        assert all(f"{gpu}" in line for line in best(result)["commands"][2:]), best(result)["commands"]
        pip = best(suggest(*target, "--json", "--installer", "pip").ends(0))["commands"]
        assert pip[:2] == ["python3.12 -m venv .venv", ".venv/bin/python -m pip install torch==2.11.0"]
    result = suggest("--machine", "aarch64", "--gpu", "sm_87", "--driver", "540.4.0", "--glibc", "2.35", "--python", "3.10")
    result.ends(1, "no set fits sm_87 (--gpu)").has_line("sm_87 is the GPU of a Jetson for which the wheels of torch have no code")
    suggest("--machine", "aarch64", "--gpu", "sm_80", "--driver", "580.95.05", "--glibc", "2.26", "--python", "3.11").has_line(
        r"would fit with glibc 2\.28 or newer: Python 3\.11, torch 2\.11\.0 with CUDA 13\.0, mamba-ssm 2\.3\.1")
    suggest("--machine", "ppc64le").refused("ppc64le")


def test_bad_input(suggest):
    for words, names in ((("--gpu", "h100"), "h100"), (("--driver", "x"), "x"), (("--glibc", "musl"), "--glibc"),
                         (("--python", ">=x"), ">=x"), (("mamba-ssm[dev]",), "mamba-ssm[dev]"), (("mamba-ssm>=",), "mamba-ssm>="),
                         (("--for", "none.json"), "none.json"), (("--installer", "poetry"), "poetry"), (("--timeout", "0"), "0")):
        suggest(*words).refused(names)
    Path("broken.json").write_text("{")
    suggest("--for", "broken.json").refused("broken.json")
    Path("broken.yaml").write_text("schema: 1\nrun: me\n")
    suggest("--for", "broken.yaml").refused("broken.yaml")


def test_for_spec(suggest):
    Path("wish.yaml").write_text('schema: 1\ndriver: ">=550.54.14"\ngpus: [sm_80, sm_90]\npython:\n  version: "3.12.*"\n'
                                 'torch:\n  version: "2.8.*"\n')
    result = suggest("--for", "wish.yaml", "--glibc", "2.35", "--json").ends(0)
    assert (best(result)["python"], best(result)["torch"], best(result)["cuda"]) == ("3.12", "2.8.0", "12.8")
    assert result.json["target"]["gpus"] == ["sm_80", "sm_90"]
    assert any("--arch sm_80,sm_90" in line or "--gpu sm_80,sm_90" in line for line in best(result)["commands"])


def test_for_snapshot(suggest, scankit):
    scankit("doctor", "--gpu", "sm_90", "--driver", "550.54.14", "--snapshot", "machine.json")
    result = suggest("--for", "machine.json", "--python", "3.11", "--json").ends(0)
    assert result.json["target"]["machine"] == platform.machine()
    facts = json.loads(text_of("machine.json"))
    facts["os"]["value"]["machine"] = "aarch64"
    Path("arm.json").write_text(json.dumps(facts))
    arm = suggest("--for", "arm.json", "--driver", "580.95.05", "--glibc", "2.35", "--python", "3.11", "--json").ends(0)
    assert (arm.json["target"]["machine"], best(arm)["torch"]) == ("aarch64", "2.11.0")
    assert result.json["target"]["gpus"] == ["sm_90"] and result.json["target"]["driver"] == "550.54.14"


def test_spec(suggest, scankit):
    """The best set as a spec: read back by `env check`'s parser, never written over."""
    suggest(*HOPPER, "--spec", "scankit.yaml").ends(0, "wrote scankit.yaml")
    spec = text_of("scankit.yaml")
    assert 'version: "2.10.0"' in spec and "gpus: [sm_90]" in spec and "mamba-ssm" in spec, spec
    suggest(*HOPPER, "--spec", "scankit.yaml").ends(2, "already exists")
    assert text_of("scankit.yaml") == spec
    suggest(*HOPPER, "--spec", "scankit.yaml", "--force").ends(0)
    assert text_of("scankit.yaml") == spec, "the same request gives another file"
    again = suggest("--for", "scankit.yaml", "--glibc", "2.35", "--json").ends(0)
    assert best(again)["torch"] == "2.10.0"


def test_no_python_here(suggest, work):
    """A machine without a Python is no error: the answer says which one is wanted."""
    (work / "bin").mkdir()
    result = suggest("--gpu", "sm_90", "--driver", "580.95", variables={"PATH": str(work / "bin")}).ends(0, "no Python was found: any will do")
    assert not result.err, result


def test_unknown_package(suggest):
    result = suggest(*HOPPER, "mamba-ssm", "einops>=0.8", "--json", "--installer", "pip").ends(0)
    assert [one["how"] for one in best(result)["packages"]] == ["wheel", "index"]
    commands = best(result)["commands"]
    assert ".venv/bin/python -m pip install torch==2.10.0" in commands
    assert ".venv/bin/python -m pip install --no-build-isolation 'einops>=0.8' torch==2.10.0" in commands, "torch may move, or be hidden from setup.py"


def test_directory(suggest):
    """A command must not change an environment that exists."""
    def named(*words):
        return [line for line in best(suggest(*HOPPER, "--json", "--installer", "conda", *words).ends(0))["commands"]][0]
    assert "--prefix ./.venv " in named() and "--yes" not in named()
    os.mkdir(".venv")
    assert "--prefix ./scankit-env " in named()
    os.mkdir("scankit-env")
    assert "--prefix ./scankit-env-2 " in named()
    os.symlink("nowhere", "scankit-env-2")
    assert "--prefix ./scankit-env-3 " in named()
    assert "--prefix ./scankit-env " in named("--directory", "scankit-env"), "an empty directory is refused"
    assert "--prefix ./-x " in named("--directory=-x")
    Path("scankit-env/pyvenv.cfg").write_text("")
    for taken in ("scankit-env", "scankit-env/pyvenv.cfg", str(Path("scankit-env").resolve())):
        suggest(*HOPPER, "--directory", taken).refused(f"--directory {taken}: there is something already")


@pytest.fixture
def asks(bare_project, scankit):
    """asks(RELEASE...): asks an index on the loopback that has wheels of these releases of torch and all that mamba-ssm needs."""
    def asks(*releases, words=()):
        served = bare_project.index.served
        for name, version in [("torch", release) for release in releases] + [
                ("triton", "3.5.1"), ("tilelang", "0.1.8"), ("apache_tvm_ffi", "0.1.9"), ("quack_kernels", "0.6.5")]:
            wheel(served, name, version, "py3-none-any", {name + ".py": b""})
        for name, version in (("mamba_ssm", "2.3.2.post1"), ("mamba_ssm", "2.3.1"), ("causal_conv1d", "1.6.2.post1"),
                              ("causal_conv1d", "1.7.0"), ("no_wheel", "1.0")):
            folder = bare_project.work / f"{name}-{version}"
            folder.mkdir(exist_ok=True)
            (folder / "setup.py").write_text("raise SystemExit('code of an index was run')\n")
            with tarfile.open(served / f"{name}-{version}.tar.gz", "w:gz") as archive:
                archive.add(folder, f"{name}-{version}")
        bare_project.index.stop()
        bare_project.index.serve()
        path = f"{bare_project.installers}:{os.environ['PATH']}"
        return scankit("env", "suggest", *HOPPER, "--json", *words, variables={"PATH": path}, timeout=120)
    return asks


def states(result):
    return [(one["torch"], one["index"]["state"]) for one in result.json["sets"]]


@pytest.mark.ctest(labels="matrix;e2e")
def test_index(asks):
    result = asks("2.10.0", "2.15.0", "2.9.1").ends(0)
    assert states(result)[:3] == [("2.10.0", "confirmed"), ("2.15.0", "confirmed"), ("2.9.1", "confirmed")], repr(result)


@pytest.mark.ctest(labels="matrix;e2e")
def test_index_lacks_the_best(asks):
    """A mirror without that release: the next set is the best one, and the answer says so."""
    result = asks("2.9.1", "2.15.0").ends(0)
    assert "2.10.0" not in [torch for torch, _ in states(result)]
    assert any("torch 2.10.0" in sentence for sentence in result.json["refused_by_index"]), repr(result)


@pytest.mark.ctest(labels="matrix;e2e")
def test_index_has_only_a_source(asks):
    """The printed command builds it, and scankit runs none of its code: the index refuses nothing, and confirms nothing."""
    result = asks("2.10.0", "2.15.0", "2.9.1", words=("mamba-ssm", "no-wheel")).ends(0)
    assert states(result) == [("2.10.0", "no-answer"), ("2.15.0", "no-answer"), ("2.9.1", "no-answer")], repr(result)
    assert "only a source archive" in best(result)["index"]["why"]
    assert not any("torch 2.10.0" in sentence for sentence in result.json["refused_by_index"])


@pytest.mark.ctest(labels="matrix;e2e")
def test_index_is_away(bare_project, scankit):
    bare_project.index.use("http://127.0.0.1:9")
    path = f"{bare_project.installers}:{os.environ['PATH']}"
    result = scankit("env", "suggest", *HOPPER, "--json", variables={"PATH": path}, timeout=120).ends(0)
    assert states(result)[0] == ("2.10.0", "no-answer"), "a set is dropped, or confirmed by nobody"
    assert not result.json["refused_by_index"]
