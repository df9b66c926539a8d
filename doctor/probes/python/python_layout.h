// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "doctor/host/host.h"

// What an environment and a build of CPython say of themselves in files: pyvenv.cfg (PEP 405), and the
// _sysconfigdata module of the standard library, from which the names of extension modules follow.

namespace scankit::probes {

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

// What releases of CPython do differently with .pth files; from 3.13 on both. Patched older releases do it
// too, so that the text of site.py decides, not the version.
struct PthRules {
  bool skips_hidden = true;  // ".name.pth"
  bool drops_mark = true;  // a byte order mark at the file's beginning: before, it was part of the first path
};

// Where an interpreter finds itself: the answer of CPython's getpath (Modules/getpath.py, getpath.c before
// 3.11). sys_path.h goes on from here with what site.py does.
struct PythonLayout {
  std::string interpreter;  // as it is started: a venv's bin/python
  std::string executable;   // with all links resolved
  std::string machine;      // of the executable
  unsigned major = 0, minor = 0;
  std::string thread;          // "t" for a free-threaded build
  std::string release;         // "3.11.7"
  std::string release_source;  // the file that says so
  std::optional<VenvConfig> venv;
  // exec_prefix has lib-dynload and differs from base_prefix only in builds that split the two.
  std::string base_prefix, exec_prefix;
  std::string library_folder;   // "lib" or "lib64": sys.platlibdir
  std::string stdlib, dynload;  // absolute
  std::string site_source;      // the text of the standard library's site.py
  std::string series() const { return std::to_string(major) + "." + std::to_string(minor); }
  std::string tag() const { return series() + thread; }  // "3.13t"
  std::string prefix() const { return venv ? venv->prefix : base_prefix; }
  // Debian patches site.py: packages lie in dist-packages.
  bool debian() const { return site_source.find("dist-packages") != std::string::npos; }
  PthRules pth_rules() const {
    return {.skips_hidden = site_source.find("not name.startswith(\".\")") != std::string::npos,
            .drops_mark = site_source.find("utf-8-sig") != std::string::npos};
  }
};

// `interpreter` is a CPython's file (find_interpreter). Fails where it could not start.
Result<PythonLayout> read_python_layout(const Host& host, const std::string& interpreter);

}  // namespace scankit::probes
