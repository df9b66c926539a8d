// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "doctor/elf/symbols.h"

namespace scankit {
namespace {

constexpr std::uint64_t kScanPiece = 1u << 20;

// The prefixes sorted, so that the one a name begins with is found by bisection. None may be a prefix of
// another.
class PrefixSet {
 public:
  explicit PrefixSet(std::vector<std::string> prefixes) : prefixes_(std::move(prefixes)) {
    std::ranges::sort(prefixes_);
    std::erase_if(prefixes_, [](const std::string& p) { return p.empty(); });
    const auto covered = [](const std::string& shorter, const std::string& longer) {
      return longer.starts_with(shorter);
    };
    prefixes_.erase(std::unique(prefixes_.begin(), prefixes_.end(), covered), prefixes_.end());
  }
  bool empty() const { return prefixes_.empty(); }
  bool begins(std::string_view name) const {
    const auto after = std::ranges::upper_bound(prefixes_, name, std::less<>{});
    return after != prefixes_.begin() && name.starts_with(*std::prev(after));
  }

 private:
  std::vector<std::string> prefixes_;
};

}  // namespace

// The string table holds the undefined names too, so each hit is looked up. A linker may merge a name into
// the tail of a longer one; no mangled name ("_Z...") is the tail of another, and only such prefixes make
// sense here.
std::vector<std::string> Symbols::exported_with_prefix(const std::vector<std::string>& prefixes,
                                                       std::size_t limit) const {
  std::vector<std::string> found;
  const PrefixSet wanted(prefixes);
  if (wanted.empty()) return found;
  std::string carried;  // a name that the end of a piece cut
  for (std::uint64_t at = 0; at < dynamic_.strings.size() && found.size() < limit; at += kScanPiece) {
    const auto piece = dynamic_.strings.piece(at, std::min(kScanPiece, dynamic_.strings.size() - at));
    if (!piece) break;
    std::string_view rest = piece->text();
    while (!rest.empty() && found.size() < limit) {
      const auto end = rest.find('\0');
      if (end == std::string_view::npos) {
        if (carried.size() + rest.size() > kScanPiece) return found;  // no name is that long
        carried += rest;
        break;
      }
      std::string_view name = rest.substr(0, end);
      if (!carried.empty()) {
        carried += name;
        name = carried;
      }
      if (wanted.begins(name) && exports(SymbolQuery(name))) found.emplace_back(name);
      carried.clear();
      rest.remove_prefix(end + 1);
    }
  }
  return found;
}

}  // namespace scankit
