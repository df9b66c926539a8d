# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Packages of the index for a scratch environment, by way of the cache. For tests here and of the builder (environment.py).
# shellcheck source=ci/fixtures.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../../ci/fixtures.sh"

# shellcheck disable=SC2034  # fixtures.py reads it
FX_TRITON=triton==3.6.0 # what FX_TORCH pins

# install_with ENV REQUIREMENT...: with metadata, as its user would have done.
install_with() {
  local env=$1 folder
  shift
  folder=$(fx_packages "$@") || return 1
  "$(fx_torch_env)/bin/python" -m pip --disable-pip-version-check -q --python "$env/bin/python" install --no-deps \
    --no-index --no-compile --find-links "$folder" "$@"
}

# What `import transformers.generation` of a 4.x needs beside the shared environment's packages.
install_transformers_4() {
  install_with "$1" transformers==4.57.6 huggingface_hub==0.36.2 tokenizers==0.22.2 safetensors==0.8.0 regex requests tqdm \
    filelock pyyaml fsspec urllib3 idna certifi charset-normalizer sympy mpmath networkx jinja2 markupsafe
}

# numpy 1's headers are the same for every Python; the newest have no wheel of it, and pip would compile one.
fx_make_numpy_1() {
  mkdir -p "$1" "$1.download" && fx_fetch "$1.download" --no-deps --only-binary :all: --python-version 3.12 numpy==1.26.4 &&
    unzip -q "$1.download"/numpy-*.whl -d "$1" && rm -rf "$1.download"
}
numpy_1() { fx_once "$SCANKIT_CACHE/numpy-1.26.4" fx_make_numpy_1; }

# NVIDIA's lister of device code, from its wheel: a folder with the program in it.
fx_make_cuobjdump() { mkdir -p "$1" && fx_download "$1" nvidia-cuda-cuobjdump && (cd "$1" && unzip -qo ./*.whl); }
cuobjdump() { fx_once "$SCANKIT_CACHE/cuobjdump" fx_make_cuobjdump; }

# An environment of some 480 extensions (8 GB), for test_audit_truth.py.
make_many_packages() {
  "$(fx_python)" -m venv "$1"
  "$1/bin/python" -m pip --disable-pip-version-check -q install numpy scipy pandas pyarrow scikit-learn torch torchvision torchaudio \
    opencv-python-headless xgboost lightgbm matplotlib pillow h5py numba polars lxml cryptography psutil grpcio zstandard tokenizers \
    safetensors orjson sentencepiece scikit-image statsmodels shapely pydantic aiohttp regex
}
many_packages() { fx_once "$SCANKIT_CACHE/envs/many" make_many_packages; }
