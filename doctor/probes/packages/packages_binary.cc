// SPDX-License-Identifier: Apache-2.0
#include "doctor/probes/packages/packages_binary.h"

#include <algorithm>
#include <set>

#include "doctor/elf/image.h"

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

}  // namespace scankit
