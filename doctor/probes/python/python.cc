// SPDX-License-Identifier: Apache-2.0
#include "doctor/probes/python/python.h"

#include <algorithm>
#include <array>

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/probes/python/python_layout.h"
#include "doctor/probes/python/python_text.h"
#include "doctor/probes/python/sys_path.h"

namespace scankit::probes {
namespace {

constexpr std::size_t kPiece = 1u << 18;
constexpr std::size_t kOverlap = 64;        // longer than any text that is looked for
constexpr std::uint64_t kMost = 96u << 20;  // conda's static interpreter with its symbols has 30 MB

// Calls `look` with overlapping pieces from the start of the file until it says true. The overlap is there
// because a text may cross the border of two pieces. False also where the file cannot be read.
bool scan(const Host& host, const std::string& path, const std::function<bool(std::string_view)>& look) {
  const auto source = host.open(path);
  if (!source) return false;
  const std::uint64_t size = std::min((*source)->size(), kMost);
  std::string piece;
  for (std::uint64_t at = 0; at < size;) {
    const std::size_t kept = std::min(piece.size(), kOverlap);
    piece.erase(0, piece.size() - kept);
    const auto length = static_cast<std::size_t>(std::min<std::uint64_t>(kPiece, size - at));
    piece.resize(kept + length);
    if (!(*source)->read(at, piece.data() + kept, length)) return false;
    if (look(piece)) return true;
    at += length;
  }
  return false;
}

// `text` between two NULs. Looked for without them: a binary
// is full of NULs, at each of which a search would stop.
bool whole_string_in(std::string_view piece, std::string_view text) {
  for (auto at = piece.find(text); at != std::string_view::npos; at = piece.find(text, at + 1)) {
    const std::size_t end = at + text.size();
    if (at > 0 && piece[at - 1] == '\0' && end < piece.size() && piece[end] == '\0') return true;
  }
  return false;
}

// "7", "0rc2", "2+" (Debian's own patches): the rest of a PY_VERSION behind "3.11.".
bool is_patch_level(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size() && is_digit(text[at])) ++at;
  if (at == 0 || at > 3) return false;
  for (const std::string_view stage : {"rc", "a", "b"}) {
    if (!text.substr(at).starts_with(stage)) continue;
    at += stage.size();
    const std::size_t from = at;
    while (at < text.size() && is_digit(text[at])) ++at;
    if (at == from) return false;
    break;
  }
  if (at < text.size() && text[at] == '+') ++at;
  return at == text.size();
}

// e_machine of the ELF header (gABI, "ELF Header"), as the platform part of SOABI spells it.
std::string machine_name(unsigned number) {
  static constexpr std::array<std::pair<unsigned, const char*>, 5> kNames{
      {{62, "x86_64"}, {183, "aarch64"}, {21, "ppc64le"}, {243, "riscv64"}, {22, "s390x"}}};
  for (const auto& [machine, name] : kNames)
    if (machine == number) return name;
  return {};
}

}  // namespace

Result<PythonBinary> read_python_binary(const Host& host, const std::string& path) {
  SCANKIT_TRY(const auto source, host.open(path));
  PythonBinary facts;
  std::array<unsigned char, 20> head{};
  if (source->size() < 64 || !source->read(0, head.data(), head.size())) return facts;
  facts.elf = head[0] == 0x7F && head[1] == 'E' && head[2] == 'L' && head[3] == 'F';
  if (!facts.elf) return facts;
  // EI_DATA is byte 5, 2 for big-endian; e_machine is at offset 18.
  facts.machine = machine_name(head[5] == 2 ? head[18] * 256u + head[19] : head[19] * 256u + head[18]);
  // The entry points that Programs/python.c calls, undefined or exported (3.8+, 3.7, before, embedded); a
  // fully static interpreter has no dynamic names, but its help text.
  facts.python = scan(host, path, [](std::string_view piece) {
    for (const std::string_view name : {"Py_BytesMain", "_Py_UnixMain", "Py_RunMain", "PYTHONNOUSERSITE"})
      if (piece.find(name) != std::string_view::npos) return true;
    return whole_string_in(piece, "Py_Main");
  });
  return facts;
}

std::vector<std::string> release_strings(const Host& host, const std::string& path, std::string_view series) {
  std::vector<std::string> found;
  const std::string start = std::string(series) + ".";
  scan(host, path, [&](std::string_view piece) {
    for (auto at = piece.find(start); at != std::string_view::npos; at = piece.find(start, at + 1)) {
      const auto end = piece.find('\0', at);
      if (end == std::string_view::npos) break;  // comes again, whole, with the next piece
      if (at == 0 || piece[at - 1] != '\0') continue;
      const std::string_view text = piece.substr(at, end - at);
      if (!is_patch_level(text.substr(start.size()))) continue;
      if (std::ranges::find(found, text) == found.end()) found.emplace_back(text);
    }
    return false;
  });
  return found;
}

bool holds_string(const Host& host, const std::string& path, std::string_view text) {
  return scan(host, path, [&](std::string_view piece) { return whole_string_in(piece, text); });
}

namespace {

Probed<Python> failed(const Error& error, Python python = {}) {
  auto probed = Probed<Python>::failed(clauses_of({error.message, error.hint}));
  probed.value = std::move(python);
  return probed;
}

// What made the environment, as reports and repairs name it: "venv", "uv", "conda", "pyenv", "system" or
// "other". A venv on top of conda is a venv.
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

// Fills `python` from the layout. find_python_module() needs the suffixes and sys.path, so it comes last.
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

// A CPython 3 with its standard library. PyPy is recognised by the name of its executable.
Result<PythonLayout> supported_layout(const Host& host, const std::string& interpreter) {
  if (path_basename(host.realpath(interpreter).value_or(interpreter)).starts_with("pypy"))
    return Error{Errc::Unsupported, message("{} is PyPy, for which no torch exists", printable(interpreter)),
                 message("choose a CPython 3")};
  SCANKIT_TRY(PythonLayout layout, read_python_layout(host, interpreter));
  if (layout.major != 3 || layout.minor < 6)
    return Error{Errc::Unsupported,
                 message("{} is Python {}; scankit supports CPython 3.6 and newer", printable(interpreter),
                         layout.release),
                 message("choose another with --python")};
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

}  // namespace scankit::probes
