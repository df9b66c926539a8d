// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/base/result.h"

// The symbol index file, all numbers little-endian: magic; u32 releases, names, sets; u32 raw and u32 packed
// lengths of the three streams; per release: short text minor, u8 new strings, u8 pybind internals, short
// text Python tags (u8 length, bytes); per set: u64 exact, u64 twin; then three zstd frames, in name order:
// prefix lengths (u8: characters shared with the name before, at most 255), suffixes (NUL-terminated), set
// numbers (all low bytes, then all high bytes; the commonest set is 0). Names and not their hashes: names
// that sort together share their history, so that their set numbers shrink to a third; hashes would save
// nothing and lose the names. Which minor releases of torch export which of its names: made from the wheels
// by tool/, compiled in.
namespace scankit::torch_abi {

inline constexpr std::string_view kSymbolIndexMagic = "SKATLAS1";
inline constexpr std::uint64_t kSymbolIndexLimit = 64u << 20;  // no number in the header is larger

struct IndexedRelease {
  std::string minor;              // "2.11"; patches of one minor cannot be told apart
  bool new_strings = false;       // its wheels use the new std::string
  unsigned pybind_internals = 0;  // of its libtorch_python on Python <= 3.11; 0: not read
  std::string python_tags;        // " cp310 cp311 cp313t ", the Pythons that it has wheels for
};
// Bit i stands for release i. `twin`: releases that export the name with the other std::string.
struct ReleaseSet {
  std::uint64_t exact = 0, twin = 0;
  std::uint64_t api() const { return exact | twin; }
};
struct IndexedName {
  std::string name;
  ReleaseSet set;
};

class SymbolIndex {
 public:
  // Errc::Malformed for anything but a whole index: a lookup never meets a bad length.
  static Result<SymbolIndex> parse(std::string_view bytes);
  // The one that is compiled in; inflated by the first call (some 10 ms and 6 MB).
  static const SymbolIndex& built_in();
  // In the same format the assertions of torch's headers, as names "c10/core/TensorImpl.h:1723".
  static const SymbolIndex& header_lines();

  const std::vector<IndexedRelease>& releases() const { return releases_; }
  std::size_t size() const { return name_count_; }
  // Nothing for a name that no release has.
  std::optional<ReleaseSet> find(std::string_view name) const;
  // Releases that have the name whatever their std::string is; for names that `find` does not know.
  std::uint64_t find_api(const std::string& name) const;
  // The `limit` names that begin with the prefix, in order.
  std::vector<std::string> with_prefix(std::string_view prefix, std::size_t limit) const;

 private:
  struct StringNames;
  struct Cursor;
  struct Mark {  // where every kStride-th name begins
    std::string name;
    std::uint32_t suffix = 0;
  };
  static constexpr std::size_t kStride = 64;
  Result<void> index();
  Cursor first_not_below(std::string_view name) const;
  bool next(Cursor& cursor) const;

  std::vector<IndexedRelease> releases_;
  std::vector<ReleaseSet> sets_;
  std::size_t name_count_ = 0;
  std::string prefixes_, suffixes_, ids_;
  std::vector<Mark> marks_;
  std::shared_ptr<StringNames> string_names_;  // made by the first find_api
};

// The file format's other half, for the tool and the tests. `names` sorted and without repeats.
std::string write_symbol_index(const std::vector<IndexedRelease>& releases,
                               const std::vector<IndexedName>& names);

// Which names can tell one release of torch from another. The maker of the symbol index and infer_release ask
// the same question, so that a name which the symbol index dropped is not taken for one that no torch
// exports. What torch's headers leave in every file that is compiled with them: TORCH_INTERNAL_ASSERT
// (c10/util/Exception.h) makes the text 'isString() INTERNAL ASSERT FAILED at
// "/.../include/ATen/core/ivalue_inl.h":2356, please ...'. Headers grow, so that the places say which
// release's headers they were, down to one or two of them.

// A name that torch owns and that means the same in every build of one release.
bool tells_a_release(std::string_view name, std::string_view version);

// A name of torch's C interface (aoti_torch_*, torch_*), made to outlive releases.
bool is_stable_c_name(std::string_view name);

// The other string ABI may spell the name otherwise. A false yes costs a demangling. The old name of a
// function that returns a string shows nothing; its new one has a tag.
bool differs_with_string_abi(std::string_view name);

inline constexpr std::string_view kAssertionMark = "INTERNAL ASSERT FAILED at \"";

// "ATen/core/ivalue_inl.h:2356" of a text that begins with the mark; "" for a place in other headers.
std::string header_line(std::string_view text);

// The path below the last folder `include`: what is the same
// wherever torch lies. "" for a header that is not torch's.
std::string torch_header(std::string_view path);

// The numbers of all lines that an assertion in a header's text reaches over: compilers differ in which line
// of an invocation they name.
std::set<unsigned> assertion_lines(std::string_view source);

// Releases whose headers have an assertion at each of the places; all of them where there are none. `table`:
// the places as names of a SymbolIndex.
std::uint64_t releases_with_lines(const SymbolIndex& table, const std::vector<std::string>& lines);

}  // namespace scankit::torch_abi
