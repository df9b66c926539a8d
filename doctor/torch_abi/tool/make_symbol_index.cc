// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <map>

#include "doctor/base/files.h"
#include "doctor/base/version.h"
#include "doctor/elf/mangling.h"
#include "doctor/torch_abi/symbol_index.h"
#include "doctor/torch_abi/tool/release.h"

// scankit_make_symbol_index --read FOLDER FACTS: what one unpacked torch wheel says; --headers: its headers
// alone. scankit_make_symbol_index INDEX.bin HEADERS.bin RELEASES.yaml FACTS...: the symbol index, the places
// of the headers' assertions and the release table, from whole facts of one patch a minor release and the
// headers of others. ci/scripts/release/symbol_index.sh gets the wheels and calls this.
namespace scankit {
namespace {

// Which releases export the same thing with the other string ABI. Every name is demangled: a function that
// returns a string carries a tag in the new ABI only, so its old name shows nothing.
void add_twins(std::map<std::string, ReleaseSet>& sets) {
  struct Form {
    ReleaseSet* set;
    StringAbi abi;
  };
  std::map<std::string, std::vector<Form>> forms;
  for (auto& [name, set] : sets) {
    const std::string demangled = demangle(name);
    forms[without_string_abi(demangled)].push_back({&set, string_abi_in(demangled)});
  }
  for (const auto& [api, same] : forms)
    for (const Form& form : same)
      for (const Form& other : same)
        if ((form.abi == StringAbi::New) != (other.abi == StringAbi::New)) form.set->twin |= other.set->exact;
}

std::string yaml_of(const std::vector<TorchWheel>& wheels) {
  std::string out =
      "# SPDX-License-Identifier: Apache-2.0\n"
      "# Read from the default Linux x86_64 wheel of one patch a minor release; written by "
      "scankit_make_symbol_index (ci/scripts/release/symbol_index.sh),\n"
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
}  // namespace scankit

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
  const auto made = reads ? scankit::read(argv[2], argv[3], first == "--headers")
                          : scankit::make(argv[1], argv[2], argv[3], {argv + 4, argv + argc});
  if (!made) std::fprintf(stderr, "scankit_make_symbol_index: %s\n", english(made.error().message).c_str());
  return made ? 0 : 3;
}
