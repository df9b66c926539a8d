// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>

#include "doctor/host/host.h"
#include "doctor/probes/python/python_config.h"

namespace scankit {

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

}  // namespace scankit
