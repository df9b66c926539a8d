// SPDX-License-Identifier: Apache-2.0
#include "doctor/probes/python/python.h"

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/probes/python/python_binary.h"
#include "doctor/probes/python/python_layout.h"
#include "doctor/probes/python/python_shim.h"
#include "doctor/probes/python/python_text.h"
#include "doctor/probes/python/sys_path.h"

namespace scankit {
namespace {

Probed<Python> failed(const Error& error, Python python = {}) {
  auto probed =
      Probed<Python>::failed(error.hint.empty() ? error.message : error.message + "; " + error.hint);
  probed.value = std::move(python);
  return probed;
}

std::string environment_kind(const Host& host, const PythonLayout& layout) {
  if (layout.venv) return layout.venv->made_by_uv ? "uv" : "venv";
  if (host.is_directory(path_join(layout.base_prefix, "conda-meta"))) return "conda";
  const std::string root = host.env("PYENV_ROOT").value_or("");
  const bool below_root = !root.empty() && layout.executable.starts_with(root + "/versions/");
  if (below_root || layout.executable.find("/.pyenv/versions/") != std::string::npos) return "pyenv";
  return layout.base_prefix == "/usr" || layout.base_prefix == "/" ? "system" : "other";
}

// 3.13 and 3.14 read no .abi3.so in a free-threaded build, and Debian's read one more name: the table itself
// lies in the binary, so ask that. Only where it matters, since the binary has megabytes.
StableAbiSuffixes stable_abi_suffixes(const Host& host, const PythonLayout& layout,
                                      const BuildConfig& build) {
  const bool of_the_system = layout.base_prefix == "/usr" && layout.minor >= 13;
  if (layout.minor >= 15) return {.plain = !build.free_threaded};
  const std::string library =
      path_join(layout.base_prefix, layout.library_folder + "/libpython" + layout.tag() + ".so.1.0");
  const auto holds = [&](const std::string& suffix) {
    return holds_string(host, layout.executable, suffix) || holds_string(host, library, suffix);
  };
  return {.plain = !build.free_threaded || holds(".abi3.so"),
          .platform = of_the_system && holds(".abi3" + platform_of_tag(build.soabi) + ".so")};
}

void describe(const Host& host, const PythonLayout& layout, Python& python) {
  python.executable = layout.executable;
  python.version = layout.release;
  python.implementation = "cpython";
  python.prefix = layout.prefix();
  python.base_prefix = layout.base_prefix;
  python.kind = environment_kind(host, layout);
  const BuildConfig build =
      read_build_config(host, layout.stdlib, layout.dynload, layout.tag(), layout.machine);
  python.soabi = build.soabi;
  python.free_threaded = build.free_threaded;
  python.extension_suffixes =
      extension_suffixes(build, layout.minor, stable_abi_suffixes(host, layout, build));
  compute_sys_path(host, layout, python);
  const auto pip = find_python_module(host, python, "pip");
  python.has_pip = pip && !pip->leftover;
  // PEP 668: the marker of the base counts outside of venvs only.
  python.externally_managed =
      !layout.venv && is_regular_file(host, path_join(layout.stdlib, "EXTERNALLY-MANAGED"));
}

// A CPython 3 with its standard library.
Result<PythonLayout> supported_layout(const Host& host, const std::string& interpreter) {
  if (path_basename(host.realpath(interpreter).value_or(interpreter)).starts_with("pypy"))
    return Error{Errc::Unsupported, say("{} is PyPy, for which there is no torch", printable(interpreter)),
                 say("name a CPython 3")};
  SCANKIT_TRY(PythonLayout layout, read_python_layout(host, interpreter));
  if (layout.major != 3 || layout.minor < 6)
    return Error{
        Errc::Unsupported,
        say("{} is Python {}; scankit reads CPython 3.6 and newer", printable(interpreter), layout.release),
        say("name another with --python")};
  return layout;
}

}  // namespace

Result<Interpreter> find_usable_interpreter(const Host& host, const std::string& requested) {
  SCANKIT_TRY(Interpreter found, find_interpreter(host, requested));
  SCANKIT_CHECK(supported_layout(host, found.path));
  return found;
}

Probed<Python> probe_python(const Host& host, const std::string& requested) {
  Python python;
  python.requested = requested;
  const auto found = find_interpreter(host, requested);
  if (!found) return failed(found.error(), python);
  const auto layout = supported_layout(host, found->path);
  if (!layout) return failed(layout.error(), python);
  describe(host, *layout, python);
  return Probed<Python>::of(std::move(python));
}

}  // namespace scankit
