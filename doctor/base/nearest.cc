// SPDX-License-Identifier: Apache-2.0
#include "doctor/base/nearest.h"

#include <algorithm>
#include <cctype>

namespace scankit {
namespace {

constexpr std::size_t kLongest = 64;  // the time is the product of the lengths

std::string folded(std::string_view word) {
  std::string out;
  for (const char c : word)
    out += c == '-' || c == ' ' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

// Optimal string alignment: Levenshtein's distance with swaps.
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) cost[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) cost[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i)
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  return cost[a.size()][b.size()];
}

}  // namespace

std::string nearest_word(std::string_view word, const std::vector<std::string>& known) {
  if (word.empty() || word.size() > kLongest) return "";
  const std::string wanted = folded(word);
  std::size_t least = wanted.size() / 3 + 1;
  std::string best;
  for (const std::string& candidate : known) {
    if (candidate.size() > kLongest) continue;
    const std::size_t found = distance(wanted, folded(candidate));
    if (found > least || (found == least && !best.empty())) continue;
    least = found;
    best = candidate;
  }
  return best;
}

}  // namespace scankit
