# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
# A step of the pipelines that `scankit ci init` writes: $ENVIRONMENT_PYTHON becomes the Python to check.
ENVIRONMENT_PYTHON=$(command -v python)
conda_file=
for file in environment.yaml environment.yml; do [ ! -f "$file" ] || conda_file=$file; done
if [ -f uv.lock ]; then
  python -m pip install uv
  python -m uv sync --locked
  ENVIRONMENT_PYTHON=$PWD/.venv/bin/python
elif [ -n "$conda_file" ]; then
  conda=$(command -v conda || command -v "${CONDA:-}/bin/conda") ||
    { echo "$conda_file needs conda, which was not found: use an image that has it" >&2 && exit 1; }
  "$conda" env create --prefix "$PWD/.conda-env" --file "$conda_file"
  ENVIRONMENT_PYTHON=$PWD/.conda-env/bin/python
elif [ -f requirements.txt ]; then
  python -m pip install -r requirements.txt
elif ls requirements*.txt >/dev/null 2>&1; then
  for file in requirements*.txt; do set -- "$@" -r "$file"; done
  python -m pip install "$@"
elif [ -f pyproject.toml ] || [ -f setup.py ]; then
  python -m pip install .
else
  echo "no uv.lock, environment.yml, requirements*.txt, pyproject.toml or setup.py found: write here how your environment is installed" >&2
  exit 1
fi
export ENVIRONMENT_PYTHON
