// SPDX-License-Identifier: Apache-2.0
#include "doctor/model/redact.h"

#include <algorithm>
#include <map>

#include "doctor/model/snapshot_json.h"

namespace scankit {
namespace {

// "/home/alice", "/Users/alice", "/root": the folder of one user at `at`, or "".
std::string home_at(const std::string& text, std::size_t at) {
  constexpr std::string_view kEnd = "/\"\\:;, ";
  for (const std::string_view parent : {"/home/", "/Users/", "/data/home/"}) {
    if (text.compare(at, parent.size(), parent) != 0) continue;
    const auto end = text.find_first_of(kEnd, at + parent.size());
    if (end == at + parent.size()) return "";
    return text.substr(at, (end == std::string::npos ? text.size() : end) - at);
  }
  if (text.compare(at, 5, "/root") != 0) return "";
  return at + 5 == text.size() || kEnd.find(text[at + 5]) != std::string_view::npos ? "/root" : "";
}

}  // namespace

Snapshot redacted(const Snapshot& snapshot) {
  const std::string text = snapshot_to_json(snapshot);
  std::map<std::string, std::string> names;  // two users stay two
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const bool path_start =
        text[at] == '/' && (at == 0 || !std::isalnum(static_cast<unsigned char>(text[at - 1])));
    const std::string home = path_start ? home_at(text, at) : "";
    if (home.empty()) {
      out += text[at++];
      continue;
    }
    const std::string next = names.empty() ? "/home/user" : "/home/user" + std::to_string(names.size() + 1);
    out += names.emplace(home, next).first->second;
    at += home.size();
  }
  auto facts = snapshot_from_json(out);
  Snapshot clean = facts ? *std::move(facts) : Snapshot{};
  if (clean.gpus.present())
    for (Gpu& gpu : clean.gpus.value) gpu.uuid.clear();
  return clean;
}

}  // namespace scankit
