// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "doctor/base/files.h"
#include "doctor/base/result.h"
#include "doctor/base/version.h"
#include "doctor/elf/library.h"
#include "doctor/elf/mangling.h"
#include "doctor/torch_abi/symbol_index.h"

namespace scankit::torch_abi {

// What the unpacked part of one torch wheel says: torch/lib, version.py, METADATA, headers; and tags.txt, the
// file names of that release's wheels. A value that the wheel does not give stays empty.
struct TorchWheel {
  std::string version, minor;
  bool new_strings = false;
  unsigned pybind_internals = 0;
  std::vector<std::string> python_tags;                         // "cp310", "cp313t"
  std::vector<std::pair<std::string, std::string>> properties;  // in the order in which they are printed
  std::vector<std::string> names;                               // exported and telling; sorted
  std::vector<std::string> header_lines;  // places of assertions in its headers (symbol_index.h); sorted
};
namespace {

// "" where the file cannot be read: the value it would give stays empty in the table.
std::string text_of(const std::string& path) { return read_whole_file(path).value_or(""); }

std::string first_match(const std::string& text, const std::string& pattern) {
  std::smatch match;
  return std::regex_search(text, match, std::regex(pattern)) ? match[1].str() : "";
}

// Raises the floors to the newest version of each family that the library needs.
void take_newest(const elf::ElfLibrary& library, std::map<std::string, std::string>& floors) {
  for (const elf::VersionNeed& need : library.symbols.versions().needs())
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
    SCANKIT_TRY(const auto library, elf::open_library(host, path_join(folder, entry.name)));
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

// Of a further patch of a minor release: version and headers alone, which now and then differ between patches.
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
  const std::string abi = elf::string_abi_of_torch(*host, path_join(lib, "libc10.so"), reason);
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

// The same as text, so that the libraries of one wheel can go before the next comes: "KEY<tab>VALUE" lines,
// an empty one, then the names (none of a further patch).
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

// scankit_make_symbol_index --read FOLDER FACTS: what one unpacked torch wheel says; --headers: its headers
// alone. scankit_make_symbol_index INDEX.bin HEADERS.bin RELEASES.yaml FACTS...: the symbol index, the places
// of the headers' assertions and the release table, from whole facts of one patch a minor release and the
// headers of others. ci/release/symbol_index.sh gets the wheels and calls this.

namespace {

// Which releases export the same thing with the other string ABI. Every name is demangled: a function that
// returns a string carries a tag in the new ABI only, so its old name shows nothing.
void add_twins(std::map<std::string, ReleaseSet>& sets) {
  struct Form {
    ReleaseSet* set;
    elf::StringAbi abi;
  };
  std::map<std::string, std::vector<Form>> forms;
  for (auto& [name, set] : sets) {
    const std::string demangled = elf::demangle(name);
    forms[elf::without_string_abi(demangled)].push_back({&set, elf::string_abi_in(demangled)});
  }
  for (const auto& [api, same] : forms)
    for (const Form& form : same)
      for (const Form& other : same)
        if ((form.abi == elf::StringAbi::New) != (other.abi == elf::StringAbi::New))
          form.set->twin |= other.set->exact;
}

std::string yaml_of(const std::vector<TorchWheel>& wheels) {
  std::string out =
      "# SPDX-License-Identifier: Apache-2.0\n"
      "# Read from the default Linux x86_64 wheel of one patch a minor release; written by "
      "scankit_make_symbol_index (ci/release/symbol_index.sh),\n"
      "# not by hand. cxx_standard: what ATen.h demands. glibc, glibcxx, cxxabi: the newest version that "
      "torch's own libraries\n"
      "# need. pybind_internals: of libtorch_python for the Python whose wheel was read. A key that is "
      "missing was not found.\n";
  for (const TorchWheel& wheel : wheels) {
    out += "- torch: \"" + wheel.minor + "\"\n";
    for (const auto& [key, value] : wheel.properties)
      if (!value.empty()) out += "  " + key + ": \"" + value + "\"\n";
    if (wheel.python_tags.empty()) continue;
    out += "  python: [";
    for (std::size_t i = 0; i < wheel.python_tags.size(); ++i)
      out += (i == 0 ? "" : ", ") + wheel.python_tags[i];
    out += "]\n";
  }
  return out;
}

std::string absolute(const std::string& path) {
  return path_normalize(path.starts_with("/") ? path : path_join(current_directory(), path));
}

// The libraries of one wheel may be deleted after this: `facts` is all that make() needs.
Result<void> read(const std::string& folder, const std::string& facts, bool headers_alone) {
  const std::string path = absolute(folder);
  SCANKIT_TRY(const TorchWheel wheel, headers_alone ? read_torch_headers(path) : read_torch_wheel(path));
  std::printf("torch %s: %zu names, %zu lines of headers\n", wheel.version.c_str(), wheel.names.size(),
              wheel.header_lines.size());
  return write_file_atomically(facts, wheel_to_text(wheel));
}

// Oldest first.
Result<std::vector<TorchWheel>> read_facts(const std::vector<std::string>& files) {
  std::vector<TorchWheel> wheels;
  for (const std::string& file : files) {
    SCANKIT_TRY(const std::string text, read_whole_file(file));
    auto wheel = wheel_from_text(text);
    if (!wheel) return Error{wheel.error().code, message("{}: {}", file, wheel.error().message), "remove it"};
    wheels.push_back(*std::move(wheel));
  }
  std::ranges::sort(wheels, [](const TorchWheel& a, const TorchWheel& b) {
    return Version::parse(a.version).value_or(Version()) < Version::parse(b.version).value_or(Version());
  });
  return wheels;
}

using Sets = std::map<std::string, ReleaseSet>;

// Patches of a minor share its place: what any of them has, the release has.
Sets sets_of_headers(const std::vector<TorchWheel>& patches, const std::vector<IndexedRelease>& releases) {
  Sets sets;
  for (const TorchWheel& patch : patches) {
    const auto release = std::ranges::find(releases, patch.minor, &IndexedRelease::minor);
    if (release == releases.end()) continue;
    for (const std::string& line : patch.header_lines)
      sets[line].exact |= std::uint64_t{1} << (release - releases.begin());
  }
  return sets;
}

// Parses what it has made before it replaces the file.
Result<void> write(const std::string& file, const std::vector<IndexedRelease>& releases, const Sets& sets) {
  std::vector<IndexedName> names;
  for (const auto& [name, set] : sets) names.push_back({name, set});
  const std::string bytes = write_symbol_index(releases, names);
  SCANKIT_TRY(const SymbolIndex check, SymbolIndex::parse(bytes));
  std::printf("%s: %zu names of %zu releases in %zu bytes\n", file.c_str(), check.size(), releases.size(),
              bytes.size());
  return write_file_atomically(file, bytes);
}

Result<void> make(const std::string& symbol_index_file, const std::string& headers_file,
                  const std::string& table_file, const std::vector<std::string>& facts) {
  SCANKIT_TRY(const std::vector<TorchWheel> patches, read_facts(facts));
  std::vector<TorchWheel> wheels;
  // Facts of --headers have no names: they add places of assertions and do not make a release of their own.
  std::ranges::copy_if(patches, std::back_inserter(wheels),
                       [](const TorchWheel& patch) { return !patch.names.empty(); });
  Sets sets;
  std::vector<IndexedRelease> releases;
  // Bit i is the i-th wheel, oldest first.
  for (std::size_t i = 0; i < wheels.size(); ++i) {
    for (const std::string& name : wheels[i].names) sets[name].exact |= std::uint64_t{1} << i;
    std::string tags = " ";
    for (const std::string& tag : wheels[i].python_tags) tags += tag + " ";
    releases.push_back({wheels[i].minor, wheels[i].new_strings, wheels[i].pybind_internals, tags});
  }
  add_twins(sets);
  SCANKIT_CHECK(write(symbol_index_file, releases, sets));
  SCANKIT_CHECK(write(headers_file, releases, sets_of_headers(patches, releases)));
  return write_file_atomically(table_file, yaml_of(wheels));
}

}  // namespace
}  // namespace scankit::torch_abi

int main(int argc, char** argv) {
  const std::string_view first = argc > 1 ? argv[1] : "";
  const bool reads = first == "--read" || first == "--headers";
  if (argc < (reads ? 4 : 5)) {
    std::fprintf(stderr,
                 "usage: scankit_make_symbol_index --read|--headers FOLDER FACTS | INDEX.bin HEADERS.bin "
                 "RELEASES.yaml "
                 "FACTS...\n");
    return 2;
  }
  const auto made = reads ? scankit::torch_abi::read(argv[2], argv[3], first == "--headers")
                          : scankit::torch_abi::make(argv[1], argv[2], argv[3], {argv + 4, argv + argc});
  if (!made) std::fprintf(stderr, "scankit_make_symbol_index: %s\n", english(made.error().message).c_str());
  return made ? 0 : 3;
}
