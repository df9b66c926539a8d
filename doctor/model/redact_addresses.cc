// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <optional>

#include "doctor/base/text.h"
#include "doctor/model/redact.h"

namespace scankit::redaction {
namespace {

bool is_hex(char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; }

struct Quad {
  Place place;
  std::array<unsigned, 4> octets{};
};

std::optional<Quad> quad_at(std::string_view text, std::size_t start) {
  Quad quad{{start, start}, {}};
  for (std::size_t i = 0; i < 4; ++i) {
    std::size_t& at = quad.place.end;
    if (i > 0 && char_at(text, at++) != '.') return std::nullopt;
    const std::size_t end = end_of_run(text.substr(0, at + 4), at, is_digit);
    if (end == at || end > at + 3 || (end > at + 1 && text[at] == '0')) return std::nullopt;
    unsigned value = 0;
    for (; at < end; ++at) value = value * 10 + static_cast<unsigned>(text[at] - '0');
    if (value > 255) return std::nullopt;
    quad.octets[i] = value;
  }
  return quad;
}

// The word before `at`: "cudnn" of "cudnn == 9.1.0.70" and "cudnn (9.1.0.70)".
std::string_view word_before(std::string_view text, std::size_t at) {
  const std::size_t first = at - std::min<std::size_t>(at, 64);
  std::size_t end = at;
  while (end > first && (is_space(text[end - 1]) ||
                         std::string_view("'\"`([:=,").find(text[end - 1]) != std::string_view::npos))
    --end;
  std::size_t start = end;
  while (start > first && (is_word(text[start - 1]) || text[start - 1] == '-' || text[start - 1] == '.'))
    --start;
  return text.substr(start, end - start);
}

bool speaks_of_versions(std::string_view word) {
  const std::string low = lowered(word);
  for (const std::string_view part :
       {"version",   "release", "cuda",   "cudnn", "nccl",   "cublas",  "cufft", "curand", "cusolver",
        "cusparse",  "nvidia",  "driver", "torch", "python", "toolkit", "cupti", "nvrtc",  "cudart",
        "nvjitlink", "cufile",  "nvtx",   "npp",   "nvjpeg", "mkl",     "-cu1",  "lib"})
    if (low.find(part) != std::string::npos) return true;
  constexpr std::array<std::string_view, 16> kWords{
      "v",   "requires", "needs", "wants",   "installed", "has",     "have",  "than",
      "pkg", "wheel",    "built", "package", "uninstall", "upgrade", "found", "got"};
  return std::ranges::find(kWords, low) != kWords.end();
}

bool is_reserved(const Quad& quad) {
  const auto& o = quad.octets;
  return (o[0] == 192 && o[1] == 168) || (o[0] == 172 && o[1] >= 16 && o[1] < 32) ||
         (o[0] == 169 && o[1] == 254) || (o[0] == 100 && o[1] >= 64 && o[1] < 128);
}

enum class Reading { Address, Version, Doubtful };

// "10.3.5.147" is cuRAND, or a host: what stands around it tells.
Reading reading_of(std::string_view text, const Quad& quad) {
  const std::size_t start = quad.place.start, end = quad.place.end;
  const char before = char_before(text, start), behind = char_at(text, end), next = char_at(text, end + 1);
  const char second = char_before(text, start == 0 ? 0 : start - 1);
  if (quad.octets[0] == 0 || quad.octets[0] == 127 || quad.octets[0] == 255) return Reading::Version;
  if (is_word(before) || before == '.' || before == '+' || is_word(behind) || behind == '+')
    return Reading::Version;
  if ((behind == '.' || behind == '-') && is_alnum(next) && !is_digit(next)) return Reading::Version;
  if (behind == '-' && is_digit(next) && !quad_at(text, end + 1))
    return Reading::Version;  // Debian's revision
  if (behind == '.' && is_digit(next)) return Reading::Version;
  if (before == '-' && is_alnum(second)) return Reading::Version;
  if (before == '=' && std::string_view("=<>~!").find(second) != std::string_view::npos && second != '\0')
    return Reading::Version;
  if (before == '<' || before == '>') return Reading::Version;
  if (before == '@' || before == '/' || is_reserved(quad)) return Reading::Address;
  if ((behind == ':' || behind == '/') && is_digit(next)) return Reading::Address;
  return Reading::Doubtful;
}

void add_quads(std::string_view text, const std::function<bool(std::string_view)>& is_fact,
               std::vector<Address>& found) {
  std::size_t last_end = 0;
  bool last_address = true;
  for (std::size_t at = 0; at < text.size();) {
    if (!is_digit(text[at])) {
      ++at;
      continue;
    }
    const auto quad = quad_at(text, at);
    if (!quad) {
      at = end_of_run(text, at, is_digit);
      continue;
    }
    Reading reading = reading_of(text, *quad);
    if (reading != Reading::Version && is_fact(quad->place.in(text))) reading = Reading::Version;
    const bool listed =
        last_end > 0 && at - last_end <= 5 &&
        text.substr(last_end, at - last_end).find_first_not_of(" ,;-and") == std::string_view::npos;
    if (listed && char_before(text, at) == '-') reading = Reading::Doubtful;
    if (reading == Reading::Doubtful && listed) reading = last_address ? Reading::Address : Reading::Version;
    if (reading == Reading::Doubtful) {
      const std::string_view word = word_before(text, at);
      reading = speaks_of_versions(word) || is_fact(word) ? Reading::Version : Reading::Address;
    }
    if (reading == Reading::Address) found.push_back({quad->place, false});
    last_end = quad->place.end;
    last_address = reading == Reading::Address;
    at = end_of_run(text, quad->place.end, [](char c) { return is_digit(c) || c == '.'; });
  }
}

struct Groups {
  std::size_t count = 0, empty = 0, pairs = 0, digits = 0;  // groups; "::"; of two digits; with a decimal one
};

Groups groups_of(std::string_view run) {
  Groups groups;
  for (std::size_t at = 0; at <= run.size();) {
    const std::size_t end = std::min(run.find(':', at), run.size());
    const std::string_view group = run.substr(at, end - at);
    if (group.size() > 4) return {};
    if (group.empty()) {
      groups.empty += at > 0 && end < run.size() ? 1 : 0;
    } else {
      ++groups.count;
      groups.pairs += group.size() == 2 ? 1 : 0;
      groups.digits += std::ranges::any_of(group, is_digit) ? 1 : 0;
    }
    at = end + 1;
  }
  if (run.starts_with("::") || run.ends_with("::"))
    groups.empty = run.find("::", 1) == std::string_view::npos || run.size() < 4 ? 1 : 2;
  return groups;
}

// "c10::add" is of hexadecimal digits too, and "12:34:56" of groups. Loopback ("::1") stays.
bool is_ipv6(std::string_view run, const Groups& groups) {
  if (groups.empty == 0) return groups.count == 8 && groups.digits > 0;
  if (groups.empty != 1 || groups.count > 7 || groups.digits == 0) return false;
  const std::string first = lowered(run.substr(0, run.find(':')));
  const bool routed =
      first.size() == 4 && (first[0] == '2' || first[0] == '3' || first.starts_with("fe8") ||
                            first.starts_with("fc") || first.starts_with("fd") || first.starts_with("ff"));
  return routed || (groups.count >= 4 && groups.digits >= 2);
}

void add_colons(std::string_view text, std::vector<Address>& found) {
  for (std::size_t at = 0; at < text.size();) {
    if (!is_hex(text[at]) && text[at] != ':') {
      at = is_word(text[at]) ? end_of_run(text, at, is_word) : at + 1;
      continue;
    }
    std::size_t end = end_of_run(text, at, [](char c) { return is_hex(c) || c == ':'; });
    const std::size_t whole = end;
    if (end - at > 2 && text[end - 1] == ':' && text[end - 2] != ':') --end;
    const std::string_view run = text.substr(at, end - at);
    const char behind = char_at(text, end);
    if (run.size() >= 4 && run.size() <= 64 && !is_word(behind)) {
      const Groups groups = groups_of(run);
      if (groups.empty == 0 && groups.count >= 6 && groups.count == groups.pairs && groups.count != 7)
        found.push_back({{at, end}, true});
      else if (is_ipv6(run, groups))
        found.push_back({{at, end}, false});
    }
    at = end_of_run(text, whole, is_word);
  }
}

// 00-1A-2B-3C-4D-5E; of digits alone it is a time.
void add_dashed(std::string_view text, std::vector<Address>& found) {
  const auto in_run = [](char c) { return is_word(c) || c == '-'; };
  for (std::size_t at = 0; at < text.size();) {
    if (!in_run(text[at])) {
      ++at;
      continue;
    }
    const std::size_t end = end_of_run(text, at, in_run);
    const std::string_view run = text.substr(at, end - at);
    bool mac = run.size() == 17 && !std::ranges::all_of(run, [](char c) { return is_digit(c) || c == '-'; });
    for (std::size_t i = 0; mac && i < run.size(); ++i) mac = i % 3 == 2 ? run[i] == '-' : is_hex(run[i]);
    if (mac) found.push_back({{at, end}, true});
    at = end;
  }
}

}  // namespace

bool is_ipv4(std::string_view text) {
  const auto quad = quad_at(text, 0);
  return quad && quad->place.end == text.size();
}

std::vector<Address> find_addresses(std::string_view text,
                                    const std::function<bool(std::string_view)>& is_fact) {
  std::vector<Address> found;
  add_quads(text, is_fact, found);
  add_colons(text, found);
  add_dashed(text, found);
  return found;
}

}  // namespace scankit::redaction
