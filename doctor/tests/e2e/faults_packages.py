# SPDX-License-Identifier: Apache-2.0
"""A good module below a package that calls it otherwise, siblings that lack what is taken from them, and packages that are
not there. The packages are the index's own, of several releases, without their CUDA build; the module below them is ours."""
import shutil

from fault import Fault, fault
from fixtures import MODULE_SOURCES, TRITON, run, shell

# The call that mamba_ssm's training path makes, on the smallest tensors; 1.x asks for no GPU before it.
CALL_MAMBA = """import torch; from mamba_ssm.ops.selective_scan_interface import mamba_inner_fn as f; t = torch.zeros
f(t(1, 8, 6), t(4, 1, 4), t(4), t(5, 4), t(4, 1), t(3, 4), None, t(4, 2), None, None, t(4))"""
WRONG_CALL = r"TypeError: causal_conv1d_fwd\(\): incompatible function arguments"


def mamba_and_conv(env, mamba, conv, arguments):
    env.link_good()
    env.link_conv(arguments)
    env.install_release("mamba-ssm", mamba)
    env.install_release("causal-conv1d", conv)
    env.install_transformers_4()


@fault(matrix=True, timeout=900)
def signature_mismatch_5_on_7(env):
    mamba_and_conv(env, "1.1.4", "1.4.0", 7)
    return Fault(root="signature_mismatch", error=WRONG_CALL, statement=CALL_MAMBA)


@fault(matrix=True, timeout=900)
def signature_mismatch_7_on_8(env):
    mamba_and_conv(env, "1.2.0.post1", "1.6.0", 8)
    return Fault(root="signature_mismatch", error=WRONG_CALL, statement=CALL_MAMBA)


# Everything that is installed fits; a checkout of an older release in the current folder comes first.
@fault(matrix=True, timeout=900)
def signature_mismatch_current_folder(env):
    mamba_and_conv(env, "1.2.0.post1", "1.4.0", 7)
    run("unzip", "-q", shell("fx_python_wheel", "mamba-ssm", "1.1.4"), "mamba_ssm/*", "-d", env.folder_beside("checkout"))
    return Fault(root="signature_mismatch", error=WRONG_CALL, statement=CALL_MAMBA, starts_in=env.beside("checkout"))


# mamba_ssm hides why causal_conv1d_cuda does not load; the first call says something else.
@fault(matrix=True, timeout=900)
def silent_none_cut_module(env):
    mamba_and_conv(env, "1.2.0.post1", "1.4.0", 7)
    file = env.site / f"causal_conv1d_cuda{env.suffix}"
    file.write_bytes(file.read_bytes()[:100])
    # What it says depends on the release: an attribute of None, or its own words.
    return Fault(root="corrupt_binary", found=("corrupt_binary", "silent_none_causal_conv1d"), log="silent_none_causal_conv1d",
                 error="'NoneType' object has no attribute 'causal_conv1d_fwd'|causal_conv1d_cuda is not available", statement=CALL_MAMBA)


# From 2.2.5 on mamba_ssm takes names from causal_conv1d.cpp_functions, which causal-conv1d has from 1.5.1 on.
@fault(matrix=True, timeout=900)
def silent_none_missing_submodule(env):
    mamba_and_conv(env, "2.3.1", "1.4.0", 7)
    env.install_with(TRITON)
    return Fault(root="silent_none_causal_conv1d", error="AssertionError: causal_conv1d_cuda is not available", statement=CALL_MAMBA)


@fault(matrix=True, timeout=900)
def transformers_incompatible(env):
    env.link_good()
    env.install_release("mamba-ssm", "1.2.0.post1")
    env.install_transformers_4()
    env.install_with("transformers==5.0.0", "huggingface_hub==1.3.4", "httpx", "httpcore", "anyio", "h11", "typer-slim", "click",
                     "shellingham")
    return Fault(root="transformers_incompatible", statement="import mamba_ssm",
                 error="cannot import name 'GreedySearchDecoderOnlyOutput' from 'transformers.generation'")


@fault(matrix=True, timeout=900)
def triton_incompatible_missing(env):
    env.link_good()
    env.install_mamba()
    env.install_transformers_4()
    return Fault(root="triton_incompatible", error="ModuleNotFoundError: No module named 'triton'", statement="import mamba_ssm")


# triton 3 took log1p out of triton.language.math, which mamba_ssm 1.2's decoding kernel uses. The kernel is compiled
# here for a GPU that is not there: that part of triton needs none.
@fault(matrix=True, timeout=900)
def triton_incompatible_log1p(env):
    env.link_good()
    env.install_release("mamba-ssm", "1.2.0.post1")
    env.install_transformers_4()
    env.install_with(TRITON)
    return Fault(root="triton_incompatible", statement=(MODULE_SOURCES / "compile_kernel.py").read_text().rstrip("\n"),
                 error=r"""AttributeError\("module 'triton.language.math' has no attribute 'log1p'"\)|has no attribute 'log1p'""")


# Packages that are not there: what a package requires, and the package itself ----------------------------------------------

def without(env, package):
    """The shared environment's own files, as links, without one of its packages: a .pth line would bring it back."""
    shutil.rmtree(env.site / package)
    for info in env.site.glob(f"{package}-*.dist-info"):
        shutil.rmtree(info)


@fault(files="plain")
def missing_dependency_einops(env):
    without(env, "einops")
    env.link_good()
    env.install_mamba()
    return Fault(root="missing_python_dependency", error="ModuleNotFoundError: No module named 'einops'", statement="import mamba_ssm",
                 says="pip install .*einops")


# Three lines of mamba_ssm fail by it, each at another place of transformers.
@fault(matrix=True, files="plain")
def missing_dependency_tqdm(env):
    env.link_good()
    env.install_release("mamba-ssm", "1.2.0.post1")
    env.install_transformers_4()
    without(env, "tqdm")
    return Fault(root="missing_python_dependency", error="No module named 'tqdm'|'tqdm.*' distribution was not found",
                 statement="import mamba_ssm", says="pip install .*tqdm")


# torch itself does not start without it.
@fault(matrix=True, files="plain")
def missing_dependency_of_torch(env):
    (env.site / "typing_extensions.py").unlink()
    for info in env.site.glob("typing_extensions-*.dist-info"):
        shutil.rmtree(info)
    env.link_good()
    return Fault(root="missing_python_dependency", error="ModuleNotFoundError: No module named 'typing_extensions'",
                 says="pip install .*typing.extensions")


# The user's program wants the package, and nobody installed it.
@fault()
def package_not_installed(env):
    (env.folder_beside("project") / "train.py").write_text("import torch\nfrom mamba_ssm import Mamba\n")
    return Fault(root="package_not_installed", error="ModuleNotFoundError: No module named 'mamba_ssm'", statement="import train",
                 starts_in=env.beside("project"), says="scankit fix --python .* --package mamba-ssm$")


# The releases that mamba-ssm's metadata lets an installer choose: tilelang 0.1.8 does not work with apache-tvm-ffi 0.1.12.
@fault(matrix=True, timeout=900)
def package_releases_differ_tilelang(env):
    env.link_good()
    env.install_release("mamba-ssm", "2.3.2.post1")
    env.install_transformers_4()
    env.install_with(TRITON, "tilelang==0.1.8", "apache-tvm-ffi==0.1.12", "torch-c-dlpack-ext", "cloudpickle", "ml-dtypes", "psutil",
                     "z3-solver==4.15.4.0")
    return Fault(root="package_releases_differ", statement="import mamba_ssm", log=None, only_observed=True,
                 error="attribute '__dict__' of 'type' objects is not writable", says="apache-tvm-ffi 0.1.12, called by tilelang 0.1.8")


# The pytorch-triton of the index is a placeholder: one file, which raises, in place of triton's own.
@fault(matrix=True, timeout=900)
def package_overwritten_triton(env):
    env.link_good()
    env.install_release("mamba-ssm", "2.3.1")
    env.install_transformers_4()
    env.install_with(TRITON)
    env.install_with("pytorch-triton==0.0.1")
    return Fault(root="package_overwritten", found=("package_overwritten",), statement="import mamba_ssm",
                 error="RuntimeError: Should never be installed", log=None,
                 says="uninstall pytorch-triton, then install triton==3.6.0 again")
