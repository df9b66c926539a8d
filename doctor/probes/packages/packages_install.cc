// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <set>

#include "doctor/base/files.h"
#include "doctor/base/text.h"
#include "doctor/elf/image.h"
#include "doctor/probes/packages/distributions.h"
#include "doctor/probes/packages/packages.h"
#include "doctor/probes/python/python_text.h"

namespace scankit {
namespace {

constexpr std::uint64_t kMostBinaryBytes = 32u << 20;

// pybind11 keeps "({torch.Tensor}, {Optional[torch.Tensor]}, {bool}) -> torch.Tensor" of each bound function
// as one constant: detail/descr.h and pybind11.h (cpp_function::initialize), 2.2 to 3.0. One pair of braces
// an argument.
void read_signature(std::string_view text, std::set<unsigned>& arguments, bool& open_ended) {
  unsigned count = 0;
  int depth = 0;
  for (std::size_t i = 1; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '{' && depth++ == 0) ++count;
    if (c == '}' && --depth < 0) return;
    if (depth > 0) continue;
    if (c == '*') open_ended = true;
    if (c == ')') {
      if (text.substr(i).starts_with(") -> ")) arguments.insert(count);
      return;
    }
    if (c != '}' && c != ',' && c != ' ' && c != '*' && (c < 'a' || c > 'z')) return;
  }
}

bool plain(char c) { return c >= 0x20 && c < 0x7f; }

// The printable text around data[at], up to a colon on each side: paths in lists are separated by them.
std::string path_around(std::string_view data, std::size_t at) {
  constexpr std::size_t kLongest = 300;
  std::size_t from = at, end = at;
  while (from > 0 && at - from < kLongest && plain(data[from - 1]) && data[from - 1] != ':') --from;
  while (end < data.size() && end - at < kLongest && plain(data[end]) && data[end] != ':') ++end;
  return std::string(data.substr(from, end - from));
}

}  // namespace

BinaryTexts binary_texts(std::string_view data) {
  BinaryTexts texts;
  std::set<unsigned> arguments;
  bool binds_tensors = false;
  for (auto at = data.find(") -> "); at != std::string_view::npos; at = data.find(") -> ", at + 5)) {
    std::size_t from = at;
    while (from > 0 && at - from < 4096 && data[from - 1] != '\0') --from;
    std::size_t end = at;
    while (end < data.size() && end - at < 1024 && data[end] != '\0') ++end;
    const std::string_view text = data.substr(from, end - from);
    if (text.starts_with("({") || text.starts_with("() -> ") || text.starts_with("(*"))
      read_signature(text, arguments, texts.open_ended);
    binds_tensors = binds_tensors || text.find("torch.Tensor") != std::string_view::npos;
  }
  // pybind11's own helpers leave "({object}) -> None" in every file that includes torch's Python headers,
  // also in one that offers its functions by a plain PyMethodDef.
  if (binds_tensors) texts.arguments.assign(arguments.begin(), arguments.end());
  // cast.h: what arg_v says of a default value that it cannot convert. Without arg_v there is no default.
  texts.defaults = data.find("arg(): could not convert default argument") != std::string_view::npos;
  // pip's BuildEnvironment: TMPDIR/pip-build-env-RANDOM/overlay/lib/pythonX.Y/site-packages.
  if (const auto at = data.find("/pip-build-env-"); at != std::string_view::npos)
    texts.build_trace = path_around(data, at);
  return texts;
}

// Strings are in .rodata and, merged by the compiler, in .rodata.str1.1 and its like. Nothing where the file
// is not a whole ELF file, or was stripped of its section headers.
std::optional<BinaryTexts> read_binary_texts(const Host& host, const std::string& path) {
  auto source = host.open(path);
  if (!source) return std::nullopt;
  const std::shared_ptr<const ByteSource> bytes = std::move(*source);
  const auto image = Image::open(bytes);
  if (!image) return std::nullopt;
  std::string data;
  for (const Section& section : image->sections()) {
    if (!section.name.starts_with(".rodata") || data.size() + section.size > kMostBinaryBytes) continue;
    std::string part(section.size, '\0');
    if (!bytes->read(section.offset, part.data(), part.size())) return std::nullopt;
    data += part;
    data += '\0';
  }
  if (data.empty()) return std::nullopt;
  return binary_texts(data);
}

namespace {

// What one run of pip installs, it writes within minutes: unpacking torch's CUDA libraries takes the longest.
constexpr std::int64_t kOneRun = 900;

// RECORD is written at the end of an installation; the files
// themselves may keep the dates of an installer's cache.
std::int64_t written(const Host& host, const std::string& path) {
  const auto info = host.stat(path);
  return info ? info->mtime_ns / 1'000'000'000 : 0;
}
std::int64_t installed_at(const Host& host, const Distribution& distribution) {
  return written(host, path_join(distribution.path, "RECORD"));
}
// pip leaves this file where its user named the distribution on the command line (PEP 376; pip since 20.2).
bool was_named(const Host& host, const Distribution& distribution) {
  return host.exists(path_join(distribution.path, "REQUESTED"));
}

void read_modules(const Host& host, const Snapshot& snapshot, Packages& packages) {
  for (const Extension& file : snapshot.extensions.value) {
    if (!file.selected || file.file_state != "elf") continue;
    ModuleTexts texts{file.module, file.path, false, {}, false, false, "", 0};
    const Distribution* owner = file.distribution.empty()
                                    ? nullptr
                                    : find_distribution(snapshot.distributions.value, file.distribution);
    if (owner != nullptr) texts.installed = installed_at(host, *owner);
    if (texts.installed == 0) texts.installed = written(host, file.path);
    if (auto read = read_binary_texts(host, file.path)) {
      texts.read = true;
      texts.arguments = std::move(read->arguments);
      texts.defaults = read->defaults;
      texts.open_ended = read->open_ended;
      texts.build_trace = std::move(read->build_trace);
    }
    packages.texts.push_back(std::move(texts));
  }
}

// Requirements are installed before what requires them, so the next named distribution after torch brought
// it. "" where pip did not install torch, where its user named torch, or where nothing else followed in
// that run.
std::string what_brought(const Host& host, const Snapshot& snapshot, const Distribution& torch,
                         std::int64_t torch_installed) {
  if (torch.installer != "pip" || torch_installed == 0 || was_named(host, torch)) return {};
  const Distribution* best = nullptr;
  std::int64_t soonest = std::numeric_limits<std::int64_t>::max();
  for (const Distribution& each : snapshot.distributions.value) {
    const std::int64_t at = &each == &torch ? 0 : installed_at(host, each);
    if (at < torch_installed || at > torch_installed + kOneRun || at >= soonest || !was_named(host, each))
      continue;
    best = &each;
    soonest = at;
  }
  return best == nullptr ? "" : best->name;
}

void read_torch_record(const Host& host, const Snapshot& snapshot, Packages& packages) {
  const Distribution* torch = find_distribution(snapshot.distributions.value, "torch");
  if (torch == nullptr) return;
  packages.torch_record = path_join(torch->path, "RECORD");
  packages.torch_installed = installed_at(host, *torch);
  packages.torch_brought_by = what_brought(host, snapshot, *torch, packages.torch_installed);
  const auto metadata = read_head(host, path_join(torch->path, "METADATA"), 1u << 16);
  if (!metadata) return;
  for (const std::string_view line : lines_of(*metadata)) {
    constexpr std::string_view kField = "Requires-Dist: ", kTriton = "triton";
    if (line.empty()) break;  // the description follows
    if (!line.starts_with(kField) || !line.substr(kField.size()).starts_with(kTriton)) continue;
    const std::string_view requirement = line.substr(kField.size());
    // Not "triton-windows" and its like, whose names only begin in this way.
    const char next = requirement.size() > kTriton.size() ? requirement[kTriton.size()] : ' ';
    if (next == ' ' || next == '=' || next == '<' || next == '>' || next == '(' || next == '~' || next == '!')
      packages.triton_pin = requirement;
  }
}

}  // namespace

void read_installation(const Host& host, const Snapshot& so_far, Packages& packages) {
  read_modules(host, so_far, packages);
  read_torch_record(host, so_far, packages);
}

}  // namespace scankit
