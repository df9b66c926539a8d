// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <sstream>

#include "doctor/base/say.h"
#include "doctor/torch_abi/infer_release.h"
#include "doctor/torch_abi/symbol_index.h"

namespace scankit::torch_abi {
namespace {

// A fact that is not a name narrows only where something is
// left: it may be true of a build of another channel.
void narrow(Set& fits, Set by, const Message& line, BuiltFor& built_for) {
  if (fits == 0 || (fits & by) == fits) return;
  if ((fits & by) == 0) {
    built_for.evidence.push_back(
        message("{}; no release of the package index has both: built for a torch of another channel", line));
    return;
  }
  fits &= by;
  built_for.evidence.push_back(line);
}

// The releases whose pybind11 has the number of the file's; 0 where it says none. Number 5 is 4 on Python
// 3.12 and later (pybind11 2.x, detail/internals.h).
Set pybind_releases(const SymbolIndex& symbol_index, const BuiltForInput& input) {
  constexpr std::string_view kMark = "__pybind11_internals_v";
  if (!input.pybind_internals.starts_with(kMark)) return 0;
  const unsigned long number = std::strtoul(input.pybind_internals.c_str() + kMark.size(), nullptr, 10);
  return releases_where(symbol_index, [&](const IndexedRelease& r) {
    return r.pybind_internals == (number == 5 ? 4 : number);
  });
}

// torch's cpp_extension gives every extension the number of torch's own build,
// and a wheel of the index with the old strings was built with -fabi-version=11:
// no compiler that takes later headers has that number by itself.
bool is_marked_by_an_old_torch(const BuiltForInput& input) {
  return input.pybind_internals.find("_cxxabi1011_") != std::string::npos;
}

// What Enterprise Linux 7's start files and its Developer Toolsets 7, 9 and 10 leave in .comment; none of
// these builds of gcc exists for a later release. On that system every compiler has the old strings, whatever
// flag it is given (libstdc++ manual, "Dual ABI"), and its glibc is 2.17: no torch of the index with the new
// strings loads there. A static library of the CUDA toolkit may bring such a line to any system, whose own
// are then there too.
bool is_built_on_el7(const BuiltForInput& input) {
  constexpr std::array<std::string_view, 4> kBuilds{"(Red Hat 4.8.5-", "(Red Hat 7.3.1-", "(Red Hat 9.3.1-",
                                                    "(Red Hat 10.2.1-11)"};
  std::istringstream lines(input.compilers);
  bool any = false;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("GCC: ")) continue;
    any = true;
    if (std::ranges::none_of(kBuilds,
                             [&](std::string_view build) { return line.find(build) != std::string::npos; }))
      return false;
  }
  return any;
}

// `old`: the releases of the index whose wheels have the old strings.
void narrow_by_old_strings(const SymbolIndex& symbol_index, const BuiltForInput& input, Set old, Set& fits,
                           BuiltFor& built_for) {
  const std::string range = range_words(symbol_index, old);
  if (is_marked_by_an_old_torch(input))
    return narrow(
        fits, old,
        message("it is built with the old std::string and marked {}, like modules built for torch {} "
                "of the package index",
                input.pybind_internals, range),
        built_for);
  if (is_built_on_el7(input))
    return narrow(
        fits, old,
        message("it is built on Enterprise Linux 7 (manylinux2014 or older), which of the releases in the "
                "package index only torch {} supports",
                range),
        built_for);
  built_for.evidence.push_back(message(
      "it is built with the old std::string: in the package index that is torch {}; for another release it "
      "was built with -D_GLIBCXX_USE_CXX11_ABI=0",
      range));
}

// "cp311" of "cpython-311-x86_64-linux-gnu", "cp313t" of "cpython-313t-...".
std::string python_of(const std::string& tag) {
  constexpr std::string_view kStart = "cpython-";
  if (!tag.starts_with(kStart)) return "";
  const auto end = tag.find('-', kStart.size());
  return "cp" + tag.substr(kStart.size(), end == std::string::npos ? end : end - kStart.size());
}

// Of the lines that rule the release out, the first.
const std::string* line_without(const SymbolIndex& lines, const BuiltForInput& input, std::size_t release) {
  const auto found = std::ranges::find_if(input.header_lines, [&](const std::string& line) {
    const auto known = lines.find(line);
    return known && (known->exact >> release & 1) == 0;
  });
  return found == input.header_lines.end() ? nullptr : &*found;
}

Message header_evidence(const SymbolIndex& symbol_index, const SymbolIndex& lines, const std::string& line) {
  const auto known = lines.find(line);
  return message("{}: the headers of torch {} have an assertion there, and the file contains it", line,
                 runs_in_words(symbol_index, known ? known->exact : 0));
}

}  // namespace

// A file holds assertions of the headers that it was compiled with, whatever channel they came from.
void narrow_by_headers(const SymbolIndex& symbol_index, const SymbolIndex& header_lines,
                       const BuiltForInput& input, Set& fits, BuiltFor& built_for) {
  const Set by = releases_with_lines(header_lines, input.header_lines) & all_releases(symbol_index);
  if (by == 0) {
    built_for.evidence.push_back(
        message("its assertions are on lines of torch's headers that no known release has together: it was "
                "compiled with the headers of a nightly, vendor or modified torch"));
    return;
  }
  const Set left = fits & by;
  if (left == fits) return;
  if (left == 0) {
    built_for.evidence.push_back(message(
        "it was compiled with the headers of torch {}, which does not export all the symbols that it needs: "
        "modified headers, or several libraries in one file",
        runs_in_words(symbol_index, by)));
    return;
  }
  const std::string* told = nullptr;
  const auto tell = [&](std::size_t release) {
    const std::string* line = line_without(header_lines, input, release);
    if (line != nullptr && line != told)
      built_for.evidence.push_back(header_evidence(symbol_index, header_lines, *line));
    if (line != nullptr) told = line;
  };
  if (oldest(left) > oldest(fits)) tell(oldest(left) - 1);
  if (newest(left) < newest(fits)) tell(newest(left) + 1);
  fits = left;
}

// The headers of a torch know no Python of later years. Other channels built for a new one up to one release
// before the index did, and for old ones long after it: only the lower end narrows.
void narrow_by_python(const SymbolIndex& symbol_index, const BuiltForInput& input, Set& fits,
                      BuiltFor& built_for) {
  const std::string python = python_of(input.tag);
  if (python.empty()) return;
  const Set with_wheels = releases_where(symbol_index, [&](const IndexedRelease& r) {
    return r.python_tags.find(" " + python + " ") != std::string::npos;
  });
  if (with_wheels == 0 || oldest(with_wheels) == 0) return;
  const std::size_t first = oldest(with_wheels);
  narrow(fits, all_releases(symbol_index) & ~((Set{1} << (first - 1)) - 1),
         message("torch {} is the first in the package index with wheels for {}",
                 symbol_index.releases()[first].minor, python),
         built_for);
}

// The index's wheels had the old std::string up to one release and have the new one since. Neither rules a
// release out: conda, vendors and torch's own archive have had the new one all along, and a flag in a set-up
// script (-D_GLIBCXX_USE_CXX11_ABI=0) gives the old one with the headers of any torch.
void narrow_by_strings(const SymbolIndex& symbol_index, const BuiltForInput& input, Set& fits,
                       BuiltFor& built_for) {
  const Set old = releases_where(symbol_index, [](const IndexedRelease& r) { return !r.new_strings; });
  if (old == 0 || old == all_releases(symbol_index)) return;
  const Set modern = all_releases(symbol_index) & ~old;
  if ((input.string_abi == "old" || (input.string_abi != "new" && is_built_on_el7(input))) &&
      (fits & modern) != 0)
    return narrow_by_old_strings(symbol_index, input, old, fits, built_for);
  if (input.string_abi == "new" && (fits & old) != 0)
    built_for.evidence.push_back(
        message("it is built with the new std::string: in the package index that is torch {}, in conda and "
                "other channels every release",
                range_words(symbol_index, modern)));
}

// Told and not used: a module may be built with a pybind11 of its own, and some are (fairseq2n).
void tell_pybind(const SymbolIndex& symbol_index, const BuiltForInput& input, Set fits, BuiltFor& built_for) {
  const Set by = pybind_releases(symbol_index, input);
  if (by != 0 && (fits & by) != fits)
    built_for.evidence.push_back(message(
        "its pybind11 internals are {}: torch {} contains a pybind11 with that number, but a module may use "
        "its own",
        input.pybind_internals, range_words(symbol_index, by)));
}

}  // namespace scankit::torch_abi
