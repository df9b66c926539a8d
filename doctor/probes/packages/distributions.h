// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"
#include "doctor/model/snapshot_variables.h"

// What is installed, by the metadata on disk: .dist-info (PEP 376, PEP 427), .egg-info, eggs and .egg-link.
// pip is never asked, because it may be missing, broken or another environment's.
namespace scankit::probes {

// Every installed distribution on sys.path, in the order in which importlib.metadata would find them; the
// first of a name is the one that counts. Failed where a site-packages folder exists but cannot be read.
Probed<std::vector<Distribution>> probe_distributions(const Host& host, const Python& python);

// What it was installed from, where that was no index (direct_url.json, PEP 610): an absolute path, or the
// URL of a requirement ("git+https://host/repository@COMMIT", "https://host/file.whl"); "" for an index.
std::string source_of(const Host& host, const Distribution& distribution);
// The .so files that the distribution's RECORD lists and that
// exist. Empty where there is no RECORD (apt, conda).
std::vector<std::string> shared_libraries_of(const Host& host, const Distribution& distribution);

// What the installed distributions declare about their modules: the scankit.module.yaml in their .dist-info, in the sources
// of an editable one, or in the directory of the package that has the distribution's name, in this order.
std::vector<DeclaredPackage> probe_declared(const Host& host, const std::vector<Distribution>& distributions);

// "conda", "mamba" or "micromamba" of PATH, else the program that $CONDA_EXE or $MAMBA_EXE names; "" for none.
std::string conda_command(const Host& host);
// With what this user, with this PATH, can change the environment. Of the running system only.
Installers probe_installers(const Host& host, const Python& python);

// The part of pip's configuration that changes what a repair command does: probe_installers() stores the
// answer, so that a printed command can set PIP_USER=0 before it.
// What makes `pip install` of this Python install for the user alone (`--user`): "$PIP_USER" or the path of a
// pip.conf; "" where nothing does. A venv refuses that. pip's own order: the variable, then [install] before
// [global], then the files from PIP_CONFIG_FILE, sys.prefix, the user and the machine.
std::string pip_user_setting(const Host& host, const Python& python);
bool is_yes(std::string_view text);  // as pip's strtobool and uv's variables: 1, true, t, yes, y, on
// The files that pip of this Python reads its settings from, the weakest first: machine, user, sys.prefix,
// PIP_CONFIG_FILE. Not all of them exist.
std::vector<std::string> pip_config_files(const Host& host, const Python& python);

}  // namespace scankit::probes
