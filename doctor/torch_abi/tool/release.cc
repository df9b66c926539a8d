// SPDX-License-Identifier: Apache-2.0
#include "doctor/torch_abi/tool/release.h"

#include <algorithm>
#include <filesystem>
#include <regex>
#include <set>
#include <sstream>

#include "doctor/base/files.h"
#include "doctor/base/version.h"
#include "doctor/elf/library.h"
#include "doctor/torch_abi/symbol_index.h"

namespace scankit {
namespace {

// "" where the file cannot be read: the value it would give stays empty in the table.
std::string text_of(const std::string& path) { return read_whole_file(path).value_or(""); }

std::string first_match(const std::string& text, const std::string& pattern) {
  std::smatch match;
  return std::regex_search(text, match, std::regex(pattern)) ? match[1].str() : "";
}

// Raises the floors to the newest version of each family that the library needs.
void take_newest(const ElfLibrary& library, std::map<std::string, std::string>& floors) {
  for (const VersionNeed& need : library.symbols.versions().needs())
    for (const std::string family : {"GLIBC_", "GLIBCXX_", "CXXABI_"}) {
      if (!need.name.starts_with(family)) continue;
      const auto version = Version::parse(need.name.substr(family.size()));
      const auto known = Version::parse(floors[family]);
      if (version && (!known || *version > *known)) floors[family] = need.name.substr(family.size());
    }
}

// The names and the version needs of every library in torch/lib. One that cannot be opened is an error: an
// index without its names would call them unknown in every release.
Result<void> read_libraries(const Host& host, const std::string& folder, TorchWheel& wheel,
                            std::map<std::string, std::string>& floors) {
  std::set<std::string> names;
  SCANKIT_TRY(const auto entries, host.list(folder));
  for (const DirEntry& entry : entries) {
    if (entry.name.find(".so") == std::string::npos) continue;
    SCANKIT_TRY(const auto library, open_library(host, path_join(folder, entry.name)));
    take_newest(*library, floors);
    SCANKIT_TRY(const auto exported, library->symbols.exported());
    for (const std::string& name : exported)
      if (tells_a_release(name, "")) names.insert(name);
  }
  wheel.names.assign(names.begin(), names.end());
  if (wheel.names.empty()) return Error{Errc::NotFound, folder + " holds no library of torch", ""};
  return {};
}

// The number in the text "__pybind11_internals_v4_gcc_...", which names the shared data of all
// pybind11 modules.
unsigned pybind_internals(const Host& host, const std::string& library) {
  const auto bytes = host.read_file(library, 256u << 20);
  if (!bytes) return 0;
  constexpr std::string_view kMark = "__pybind11_internals_v";
  const auto at = bytes->find(kMark);
  return at == std::string::npos
             ? 0
             : static_cast<unsigned>(std::strtoul(bytes->c_str() + at + kMark.size(), nullptr, 10));
}

// From the file names of the release's wheels: "-cp310-cp310-", "-cp37-cp37m-", "-cp313-cp313t-". Shorter
// tags come first, so that cp39 precedes cp310.
std::vector<std::string> python_tags(const std::string& list) {
  std::set<std::string> tags;
  const std::regex tag("-(cp[0-9]+)-(cp[0-9]+t?)m?u?-");
  for (std::sregex_iterator it(list.begin(), list.end(), tag), end; it != end; ++it) {
    const std::string abi = (*it)[2];
    tags.insert(abi.ends_with("t") ? abi : (*it)[1].str());
  }
  std::vector<std::string> sorted(tags.begin(), tags.end());
  std::ranges::stable_sort(sorted, {}, [](const std::string& t) { return t.size(); });
  return sorted;
}

// The pins of METADATA; from torch 2.11 on CUDA is one meta-package, "cuda-toolkit[...]==13.0.2".
void add_pins(const std::string& metadata, TorchWheel& wheel) {
  const auto pin = [&](const std::string& project) {
    return first_match(metadata, "Requires-Dist: " + project + " *\\(?[=~]=([^;) \n]+)");
  };
  wheel.properties.push_back({"cudnn", pin("nvidia-cudnn-cu[0-9]+")});
  wheel.properties.push_back({"nccl", pin("nvidia-nccl-cu[0-9]+")});
  wheel.properties.push_back({"cuda_toolkit", pin("cuda-toolkit\\[[^\\]]*\\]")});
  wheel.properties.push_back({"triton", pin("triton")});
  wheel.properties.push_back({"requires_python", first_match(metadata, "Requires-Python: ([^\n]+)")});
}

Result<void> read_version(const std::string& version_py, TorchWheel& wheel) {
  wheel.version = first_match(version_py, "__version__ = '([0-9.]+)");
  wheel.minor = first_match(wheel.version, "^([0-9]+\\.[0-9]+)");
  if (wheel.minor.empty()) return Error{Errc::NotFound, "no torch/version.py", ""};
  return {};
}

// "HEADER:LINE" for every line that an assertion covers. The path is built so that torch_header() sees the
// same as in the text of a compiled file.
Result<void> read_headers(const std::string& include, TorchWheel& wheel) {
  std::set<std::string> lines;
  std::error_code failed;
  for (std::filesystem::recursive_directory_iterator entry(include, failed), end; entry != end; ++entry) {
    const std::string extension = entry->path().extension();
    if (!entry->is_regular_file() || (extension != ".h" && extension != ".cuh" && extension != ".hpp"))
      continue;
    const std::string header =
        torch_header(path_join("/include", entry->path().string().substr(include.size() + 1)));
    if (header.empty()) continue;
    for (const unsigned line : assertion_lines(text_of(entry->path())))
      lines.insert(header + ":" + std::to_string(line));
  }
  wheel.header_lines.assign(lines.begin(), lines.end());
  if (lines.empty()) return Error{Errc::NotFound, include + " holds no assertion of torch's headers", ""};
  return {};
}

}  // namespace

Result<TorchWheel> read_torch_headers(const std::string& folder) {
  TorchWheel wheel;
  SCANKIT_CHECK(read_version(text_of(path_join(folder, "torch/version.py")), wheel));
  SCANKIT_CHECK(read_headers(path_join(folder, "torch/include"), wheel));
  return wheel;
}

Result<TorchWheel> read_torch_wheel(const std::string& folder) {
  const auto host = make_real_host();
  SCANKIT_TRY(TorchWheel wheel, read_torch_headers(folder));
  const std::string torch = path_join(folder, "torch"), lib = path_join(torch, "lib");
  const std::string version_py = text_of(path_join(torch, "version.py"));
  std::map<std::string, std::string> floors;
  SCANKIT_CHECK(read_libraries(*host, lib, wheel, floors));
  Message reason;
  const std::string abi = string_abi_of_torch(*host, path_join(lib, "libc10.so"), reason);
  if (abi == "unknown") return Error{Errc::Unsupported, reason, ""};
  wheel.new_strings = abi == "new";
  wheel.pybind_internals = pybind_internals(*host, path_join(lib, "libtorch_python.so"));
  wheel.python_tags = python_tags(text_of(path_join(folder, "tags.txt")));
  wheel.properties = {
      {"version", wheel.version},
      {"cuda", first_match(version_py, "cuda[^=\n]*= '([0-9.]+)'")},
      {"git", first_match(version_py, "git_version = '([0-9a-f]{8})")},
      {"string_abi", abi},
      {"cxx_standard",
       first_match(text_of(path_join(torch, "include/ATen/ATen.h")), "C\\+\\+([0-9]+) or later")},
      {"glibc", floors["GLIBC_"]},
      {"glibcxx", floors["GLIBCXX_"]},
      {"cxxabi", floors["CXXABI_"]},
      {"pybind_internals", wheel.pybind_internals == 0 ? "" : std::to_string(wheel.pybind_internals)}};
  SCANKIT_TRY(const auto entries, host->list(folder));
  for (const DirEntry& entry : entries)
    if (entry.name.ends_with(".dist-info"))
      add_pins(text_of(path_join(path_join(folder, entry.name), "METADATA")), wheel);
  return wheel;
}

std::string wheel_to_text(const TorchWheel& wheel) {
  std::string text = "minor\t" + wheel.minor + "\nversion\t" + wheel.version + "\n";
  for (const std::string& tag : wheel.python_tags) text += "python\t" + tag + "\n";
  for (const auto& [key, value] : wheel.properties) text += "property " + key + "\t" + value + "\n";
  for (const std::string& line : wheel.header_lines) text += "line\t" + line + "\n";
  text += "\n";
  for (const std::string& name : wheel.names) text += name + "\n";
  return text;
}

Result<TorchWheel> wheel_from_text(const std::string& text) {
  TorchWheel wheel;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line) && !line.empty();) {
    const auto tab = line.find('\t');
    if (tab == std::string::npos) return Error{Errc::Malformed, "no fact: " + line, ""};
    const std::string key = line.substr(0, tab), value = line.substr(tab + 1);
    if (key == "minor") wheel.minor = value;
    if (key == "python") wheel.python_tags.push_back(value);
    if (key == "line") wheel.header_lines.push_back(value);
    if (key == "version") wheel.version = value;
    if (!key.starts_with("property ")) continue;
    wheel.properties.push_back({key.substr(9), value});
    if (key == "property string_abi") wheel.new_strings = value == "new";
    if (key == "property pybind_internals")
      wheel.pybind_internals = static_cast<unsigned>(std::strtoul(value.c_str(), nullptr, 10));
  }
  for (std::string line; std::getline(lines, line);) wheel.names.push_back(line);
  if (wheel.minor.empty() || wheel.header_lines.empty())
    return Error{Errc::Malformed, "no release or no headers in it", ""};
  return wheel;
}

}  // namespace scankit
