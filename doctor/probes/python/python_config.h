// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "doctor/host/host.h"

// What an environment and a build of CPython say of themselves in files: pyvenv.cfg (PEP 405), and the
// _sysconfigdata module of the standard library, from which the names of extension modules follow.
namespace scankit {

// pyvenv.cfg, read as site.py reads it: a key that is missing has the value that site.py assumes. `file` is
// the configuration, `prefix` the venv's directory, `home` the bin directory of the base ("" where the key
// is missing), `version` what the venv was made with, "3.11.7" or "3.11.7.final.0".
struct VenvConfig {
  std::string file, prefix;
  std::string home, version;
  bool system_site = true;  // site.py: "true" unless the file says otherwise
  bool made_by_uv = false;
};
// Nothing where the interpreter is not a venv's; Errc::Malformed where the file would stop the interpreter.
// `interpreter` is the path as it is started, not resolved: the link in bin/ is what makes it a venv's.
Result<std::optional<VenvConfig>> read_venv_config(const Host& host, const std::string& interpreter);

// How the interpreter was built. `soabi` is "cpython-311-x86_64-linux-gnu", "" where nothing tells it;
// `alt_soabi` the tag of a release build whose modules a debug build loads as well, "" for others.
struct BuildConfig {
  std::string soabi, alt_soabi;
  bool free_threaded = false;
  std::string source;  // the file that said so, or the rule
};
// `tag` is "3.11", with "t" behind it for a free-threaded build; `machine` that of the executable.
BuildConfig read_build_config(const Host& host, const std::string& stdlib, const std::string& dynload,
                              const std::string& tag, const std::string& machine);
// "cpython-313-x86_64-linux-gnu" -> "-x86_64-linux-gnu"; "" where the tag names no platform.
std::string platform_of_tag(const std::string& soabi);

// Which suffixes of the stable ABI (PEP 384) are in the import table of a build.
struct StableAbiSuffixes {
  bool plain = true;  // .abi3.so
  bool platform =
      false;  // .abi3-x86_64-linux-gnu.so, before 3.15: Debian has it from 3.13 on, behind the other
};
// In the order in which import tries them (Python/dynload_shlib.c, _PyImport_DynLoadFiletab).
std::vector<std::string> extension_suffixes(const BuildConfig& config, unsigned minor,
                                            StableAbiSuffixes stable);

}  // namespace scankit
