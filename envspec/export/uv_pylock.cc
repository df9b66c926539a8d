// SPDX-License-Identifier: Apache-2.0
#include <charconv>

#include "doctor/base/text.h"
#include "envspec/index/index_query.h"
#include "envspec/lock/install_metadata.h"
#include "envspec/lock/lock_drift.h"

namespace scankit {
namespace {

// Reads as much TOML as uv writes: basic strings, inline tables, arrays and bare keys. Anything else is
// skipped, and a file without a hash is not reported. A [[packages]] table has the name of a package
// and its files:
//   [[packages]]
//   name = "numpy"
//   wheels = [{ url = "https://...", size = 1, hashes = { sha256 = "..." } }]
// depth_ counts the open inline tables: 0 in the package, 1 in a file, 2 in its hashes. Arrays
// do not count.
class PylockReader {
 public:
  explicit PylockReader(std::string_view text) : text_(text) {}

  std::map<std::string, std::vector<LockedArtifact>> read() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"') {
        value(string());
      } else if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (c == '{' || c == '}') {
        ++at_;
        c == '{' ? open() : close();
      } else if (is_bare(c)) {
        word();
      } else {
        if (depth_ == 0 && c == '[' && text_.substr(at_).starts_with("[[packages]]")) name_.clear();
        ++at_;
      }
    }
    return std::move(found_);
  }

 private:
  static bool is_bare(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  }

  // A basic string never spans lines, so that a missing quotation mark costs one line. Escapes such as \n,
  // which no name or URL contains, come out as their letter.
  std::string string() {
    std::string text;
    for (++at_; at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n'; ++at_) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
      text += text_[at_];
    }
    ++at_;
    return text;
  }

  // A bare word is a key where "=" follows it, else a number.
  void word() {
    const auto begin = at_;
    while (at_ < text_.size() && is_bare(text_[at_])) ++at_;
    const std::string_view word = text_.substr(begin, at_ - begin);
    auto next = text_.find_first_not_of(" \t", at_);
    if (next != std::string_view::npos && text_[next] == '=') {
      key_ = word;
      if (depth_ == 0) part_ = word;
    } else if (key_ == "size" && depth_ == 1) {
      std::from_chars(word.data(), word.data() + word.size(), artifact_.size);
    }
  }

  void value(const std::string& text) {
    if (depth_ == 0 && key_ == "name") name_ = normalized_name(text);
    if (depth_ == 1 && (key_ == "url" || key_ == "path")) {
      artifact_.url = plain_url(text);
      if (artifact_.file.empty()) artifact_.file = file_name_of(text);
    }
    if (depth_ == 1 && key_ == "name") artifact_.file = file_name_of(text);
    if (depth_ == 2 && key_ == "sha256" && is_sha256(text)) artifact_.sha256 = text;
  }

  void open() {
    if (++depth_ == 1) artifact_ = {};
  }
  // Files of "sdist" and "archive" are dropped: only wheels were asked for.
  void close() {
    const bool complete = !artifact_.sha256.empty() && !artifact_.file.empty() && !name_.empty();
    if (depth_ == 1 && part_ == "wheels" && complete) found_[name_].push_back(artifact_);
    if (depth_ > 0) --depth_;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
  // The package, the key that was read last, and the last key of depth 0 ("wheels", "sdist").
  std::string name_, key_, part_;
  LockedArtifact artifact_;
  std::map<std::string, std::vector<LockedArtifact>> found_;
};

}  // namespace

std::map<std::string, std::vector<LockedArtifact>> read_uv_pylock(std::string_view text) {
  return PylockReader(text).read();
}

}  // namespace scankit
