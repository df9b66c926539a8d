// SPDX-License-Identifier: Apache-2.0
#include "doctor/logs/matcher.h"

#include <algorithm>
#include <stdexcept>

namespace scankit {
namespace {

// Python's and compilers' ways to say that something went wrong.
constexpr const char* kError =
    "(?:^|[\\s\\[\\].(])[\\w.]*(?:Error|Exception|Interrupt)\\b\\s*(?::|$)|(?:^|[\\s\\[])(?:ERROR|FATAL|"
    "CRITICAL)\\b|"
    "(?:^|\\W)(?:error|fatal error|fatal|catastrophic "
    "error)\\s*(?:\\[[\\w-]+\\])?\\s*:|\\bFAILED\\b|\\bAborted\\b|"
    "\\bCUDA error\\b|core dumped|^\\s*E {3}";
constexpr const char* kBuild =
    "setup\\.py|get_requires_for_build|build_meta|prepare_metadata_for_build|Getting requirements to build|"
    "bdist_wheel|Building wheel|pip-build-env|cpp_extension|build_ext|Preparing metadata|pip-req-build|"
    "pip-install-";

re2::RE2::Options options() {
  re2::RE2::Options options;
  // Bytes, not characters: patterns and lines are UTF-8 alike, and no line can be malformed.
  options.set_encoding(re2::RE2::Options::EncodingLatin1);
  options.set_log_errors(false);
  options.set_max_mem(64 << 20);
  return options;
}

std::unique_ptr<re2::RE2> compile(const std::string& pattern) {
  auto compiled = std::make_unique<re2::RE2>(pattern, options());
  if (!compiled->ok()) throw std::logic_error("log_rules.yaml: " + pattern + ": " + compiled->error());
  return compiled;
}

}  // namespace

Matcher::Matcher()
    : set_(std::make_unique<re2::RE2::Set>(options(), re2::RE2::UNANCHORED)),
      error_(compile(kError)),
      build_(compile(kBuild)) {
  for (const LogRule& rule : log_rules()) {
    patterns_.push_back(compile(rule.pattern));
    after_.push_back(rule.after.empty() ? nullptr : compile(rule.after));
    set_->Add(rule.pattern, nullptr);
  }
  if (!set_->Compile()) throw std::logic_error("log_rules.yaml: the rules together are too big");
}

std::vector<int> Matcher::match(const std::string& line) const {
  std::vector<int> hits;
  re2::RE2::Set::ErrorInfo error{};
  if (!set_->Match(line, &hits, &error) && error.kind != re2::RE2::Set::kNoError) {
    // The common automaton ran out of its memory; each by itself needs little.
    for (std::size_t i = 0; i < patterns_.size(); ++i)
      if (re2::RE2::PartialMatch(line, *patterns_[i])) hits.push_back(static_cast<int>(i));
  }
  std::ranges::sort(hits);
  return hits;
}

Captures Matcher::captures(int rule, const std::string& line) const {
  const re2::RE2& pattern = *patterns_[static_cast<std::size_t>(rule)];
  std::vector<re2::StringPiece> groups(static_cast<std::size_t>(pattern.NumberOfCapturingGroups()) + 1);
  Captures out;
  if (!pattern.Match(line, 0, line.size(), re2::RE2::UNANCHORED, groups.data(),
                     static_cast<int>(groups.size())))
    return out;
  for (const auto& [index, name] : pattern.CapturingGroupNames()) {
    const re2::StringPiece& group = groups[static_cast<std::size_t>(index)];
    if (!group.empty()) out[name] = std::string(group.data(), group.size());
  }
  return out;
}

bool Matcher::after_matches(int rule, const std::string& line) const {
  const auto& after = after_[static_cast<std::size_t>(rule)];
  return after == nullptr || re2::RE2::PartialMatch(line, *after);
}

const Matcher& matcher() {
  static const Matcher instance;
  return instance;
}

}  // namespace scankit
