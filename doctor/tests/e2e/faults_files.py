# SPDX-License-Identifier: Apache-2.0
"""Module files that are damaged, missing, of another system or name, hidden by another copy, or that crash when loaded."""
import re
import shutil
import zipfile

from environment import MODULE, module_text, shared_library
from fault import Fault, fault
from fixtures import MODULE_SOURCES, Failed, SkipTest, run, shell

NO_MODULE = f"ModuleNotFoundError: No module named '{MODULE}'"
NO_INIT = "dynamic module does not define module export function"


@fault()
def module_not_built(env):
    env.install_mamba()
    return Fault(root="module_not_built", error=NO_MODULE)


# The package swallows the failure: `import mamba_ssm` says nothing, the first call does.
@fault(matrix=True)
def module_not_built_masked(env):
    env.install_mamba()
    file = env.site / "mamba_ssm/ops/selective_scan_interface.py"
    masked, count = re.subn(rf"(?m)^import {MODULE}$", f"try:\n    import {MODULE}\nexcept ImportError:\n    {MODULE} = None",
                            file.read_text())
    assert count, "mamba_ssm imports its module in another way"
    file.write_text(masked)
    return Fault(root="module_not_built", error=NO_MODULE)


# What mamba-ssm's sources do since July 2026 (commit f577286d): the wheel is pure Python unless MAMBA_KEEP_CUDA_BUILD says
# TRUE, `import mamba_ssm` works, and the first call of a Mamba-1 layer does not.
@fault()
def module_not_in_release(env):
    module_not_built_masked(env)
    with open(env.site / "mamba_ssm/ops/selective_scan_interface.py", "a") as file:
        file.write('\n\ndef need_module():\n    raise RuntimeError("set MAMBA_KEEP_CUDA_BUILD=TRUE and build again")\n')
    return Fault(root="module_not_in_release", error=NO_MODULE, log="module_not_built", says="scankit fix --python ")


# A checkout in the manner of VMamba: it tries its own variant first, and calls it whatever became of that. Only mamba's
# module is installed.
@fault()
def project_module_missing(env):
    env.link_good()
    project = env.folder_beside("project")
    (project / "models").mkdir()
    (project / "main.py").write_text("import torch\nfrom models.scan import Scan\n\nScan().forward(torch.zeros(1))\n")
    (project / "models/scan.py").write_text(f"""\
try:
    import {MODULE}_oflex
except ImportError:
    pass
try:
    import {MODULE}
except ImportError:
    pass


class Scan:
    def forward(self, u):
        out = {MODULE}_oflex.fwd(u)
        return out
""")
    return Fault(root="project_module_missing", error=f"NameError: name '{MODULE}_oflex' is not defined", log="variant_name_mismatch",
                 statement='import runpy; runpy.run_path("main.py")', starts_in=project, says=rf"models/scan\.py:2 imports {MODULE}_oflex")


# A wheel was unpacked without its compiled file: RECORD lists it, and it is not there.
@fault(matrix=True)
def module_not_built_interrupted(env):
    env.install_mamba()
    [info] = env.site.glob("mamba_ssm-*.dist-info")
    with open(info / "RECORD", "a") as record:
        record.write(f"{MODULE}.cpython-311-x86_64-linux-gnu.so,,\n")
    return Fault(root="module_not_built", error=NO_MODULE)


# A checkout whose build was never run, put on the path by a .pth line as `pip install -e` does.
@fault(matrix=True)
def module_not_built_editable(env):
    run("unzip", "-q", shell("fx_mamba_wheel"), "mamba_ssm/*", "-d", env.folder_beside("checkout"))
    (env.site / "__editable__.mamba_ssm.pth").write_text(f"{env.beside('checkout')}\n")
    return Fault(root="module_not_built", error=NO_MODULE, options=["--module", MODULE])


# Python imports sources from a zip file and never a compiled module (zipimport's documentation).
@fault(matrix=True)
def module_in_a_zipped_egg(env):
    egg = "selective_scan-1.0-py3.11-linux-x86_64.egg"
    file = env.folder_beside("file") / (MODULE + env.suffix)
    env.link_good(file)
    with zipfile.ZipFile(env.site / egg, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(file, file.name)
    shutil.rmtree(file.parent)
    (env.site / "easy-install.pth").write_text(f"./{egg}\n")
    env.install_mamba()
    return Fault(root="module_not_built", error=NO_MODULE)


# Linked into a checkout that was removed since: import asks whether it is a file, and goes on.
@fault(matrix=True)
def module_link_to_nowhere(env):
    env.install_mamba()
    env.module_file.symlink_to(f"/nowhere/build/{MODULE}.so")
    return Fault(root="module_not_built", error=NO_MODULE)


@fault(matrix=True)
def corrupt_binary_truncated(env):
    env.cut_module(None)
    return Fault(root="corrupt_binary")  # a cut file ends in an ImportError or in a bus error, by where it is cut


# VMamba's modules are looked for as well where one lies on the path.
@fault(matrix=True)
def corrupt_binary_of_vmamba(env):
    env.link_good(env.beside("good.so"))
    (env.site / f"{MODULE}_oflex{env.suffix}").write_bytes(env.beside("good.so").read_bytes()[:100])
    env.beside("good.so").unlink()
    return Fault(root="corrupt_binary", error="ImportError.*(file too short|invalid|cannot)", statement=f"import torch, {MODULE}_oflex")


@fault(matrix=True)
def corrupt_binary_header_only(env):
    env.cut_module(100)
    return Fault(root="corrupt_binary", error="ImportError.*(file too short|invalid|cannot)")


@fault(matrix=True)
def corrupt_binary_empty(env):
    env.module_file.touch()
    return Fault(root="corrupt_binary", error="file too short")


@fault()
def corrupt_binary_html(env):
    words = " ".join(map(str, range(1, 2001)))
    env.module_file.write_text(f"<!DOCTYPE html>\n<html><head><title>404: Not Found</title></head>\n<body>{words}</body></html>\n")
    return Fault(root="corrupt_binary", error="invalid ELF header")


@fault(matrix=True)
def corrupt_binary_git_lfs(env):
    env.module_file.write_text(f"version https://git-lfs.github.com/spec/v1\noid sha256:{7:064d}\nsize 41600000\n")
    return Fault(root="corrupt_binary", error="ImportError.*(file too short|invalid ELF header)")


@fault(matrix=True)
def corrupt_binary_zip(env):
    with zipfile.ZipFile(env.module_file, "w") as archive:
        archive.writestr(f"{MODULE}.so", bytes(20000))
    return Fault(root="corrupt_binary", error="invalid ELF header")


@fault(matrix=True)
def corrupt_binary_macos(env):
    env.module_file.write_bytes(b"\xcf\xfa\xed\xfe\x07\0\0\x01" + bytes(9000))
    return Fault(root="corrupt_binary", error="invalid ELF header")


# A disk that was full: the file has its length, and zeros where the copy stopped.
@fault(matrix=True)
def corrupt_binary_zeros(env):
    env.link_good()
    with open(env.module_file, "r+b") as file:
        file.write(bytes(8 * 4096))
    return Fault(root="corrupt_binary", error="invalid ELF header")


@fault()
def windows(env):
    env.module_file.write_bytes(b"MZ\x90\0\3\0\0\0" + bytes(4000) + b"PE\0\0d\x86" + bytes(4000))
    return Fault(root="windows", error="invalid ELF header", log="corrupt_binary")


@fault(matrix=True)
def windows_pyd(env):
    (env.site / f"{MODULE}.cp311-win_amd64.pyd").write_bytes(b"MZ\x90\0\3\0\0\0" + bytes(8000))
    env.install_mamba()
    return Fault(root="windows", error=NO_MODULE, log="module_not_built")


@fault()
def wrong_machine_arch(env):
    # Debian's Python.h includes MACHINE/pythonX.Y/pyconfig.h; both machines have the same sizes.
    foreign = env.folder_beside("include") / "aarch64-linux-gnu"
    foreign.mkdir()
    (foreign / env.include.name).symlink_to(f"/usr/include/x86_64-linux-gnu/{env.include.name}")
    run("aarch64-linux-gnu-gcc", "-shared", "-fPIC", f"-I{env.include}", f"-I{env.beside('include')}", MODULE_SOURCES / "plain.c", "-o",
        env.module_file)
    return Fault(root="wrong_machine_arch", error="ImportError.*(cannot open shared object file|wrong ELF|invalid ELF)")


@fault(matrix=True)
def wrong_machine_32_bit(env):
    try:
        shared_library(env.module_file, f"int PyInit_{MODULE}(void) {{ return 0; }}\n", None, "-m32", "-nostdlib")
    except Failed:
        raise SkipTest("gcc makes no 32-bit files here") from None
    return Fault(root="wrong_machine_arch", error="wrong ELF class: ELFCLASS32")


# VMamba's variants: one build, copied to the name that another program asks for.
@fault()
def variant_name_mismatch(env):
    env.plain_module(env.module_file, text=module_text(old=MODULE, new=f"{MODULE}_oflex"))
    return Fault(root="variant_name_mismatch", error=rf"{NO_INIT} \(PyInit_{MODULE}\)")


# A library of torch operators, which torch.ops.load_library loads and import cannot.
@fault(matrix=True)
def variant_name_no_module(env):
    env.link_module(env.module_file, *env.objects("scan"))
    return Fault(root="variant_name_mismatch", error=NO_INIT, options=["--module", MODULE])


STALE_FIRST = dict(root="several_copies", found=("several_copies", "torch_version_mismatch"),
                   log="torch_version_mismatch|abi_cxx11_mismatch")


# A good copy is installed; an older one that comes earlier is taken.
@fault(printed="matrix")
def several_copies_pythonpath(env):
    env.link_good()
    env.link_stale(env.beside("checkout") / env.module_file.name)
    return Fault(**STALE_FIRST, error=f"ImportError: {re.escape(str(env.beside('checkout')))}/.*undefined symbol",
                 variables={"PYTHONPATH": str(env.beside("checkout"))})


@fault(matrix=True)
def several_copies_same_folder(env):
    env.link_good(env.site / f"{MODULE}.abi3.so")
    env.link_stale()
    return Fault(**STALE_FIRST, error="undefined symbol")


@fault(matrix=True)
def several_copies_current_folder(env):
    env.link_good()
    env.link_stale(env.beside("checkout") / env.module_file.name)
    return Fault(**STALE_FIRST, error="ImportError: .*undefined symbol", starts_in=env.beside("checkout"))


def module_that(env, body, include):
    """A module whose init function runs `body` first."""
    env.plain_module(env.module_file, text=f"""
#include <Python.h>
#include <{include}>
static struct PyModuleDef definition = {{PyModuleDef_HEAD_INIT, "{MODULE}", 0, -1, 0}};
PyMODINIT_FUNC PyInit_{MODULE}(void) {{
  {body}
  return PyModule_Create(&definition);
}}
""")


@fault()
def import_crash(env):
    module_that(env, "*(volatile int*)8 = 1;", "signal.h")
    return Fault(root="import_crash", only_observed=True)


# What a stale lock or a dead mount does to the process: it sleeps in the kernel.
@fault()
def import_hang(env):
    module_that(env, "for (;;) pause();", "unistd.h")
    return Fault(root="import_hang", error=r"Timeout \(0:00:04\)!", only_observed=True, options=["--timeout", "5"],
                 statement=f"import faulthandler; faulthandler.dump_traceback_later(4, exit=True); import {MODULE}")


# A program of the user's own in the current folder needs the module as it starts.
@fault(matrix=True)
def module_needed_by_a_program(env):
    (env.work / "train.py").write_text(f"import torch, {MODULE}\n")
    return Fault(root="module_not_built", error=f"No module named '{MODULE}'", statement='import runpy; runpy.run_path("train.py")')
