// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace scankit {

// Label and value, in the order in which they were added.
using Inputs = std::vector<std::pair<std::string, std::string>>;

// What a result depends on: a list of labelled values. The digest goes over labels, values and their lengths,
// so that
// ("flags", "-I -O2") and ("flags", "-I-O2") differ; the text is what `--explain` prints and two people can
// diff.
class Key {
 public:
  void add(std::string label, std::string value) { inputs_.emplace_back(std::move(label), std::move(value)); }
  std::string digest() const;  // 64 hex digits
  std::string text() const;    // "label: value" lines
  const Inputs& inputs() const { return inputs_; }

 private:
  Inputs inputs_;
};

// The inputs of a Key::text().
Inputs parse_inputs(const std::string& text);

struct InputChange {
  std::string label, before, after;
  bool is_new = false, is_gone = false;
};
// What differs, in the order of `after`; what is gone comes last.
std::vector<InputChange> changed_inputs(const Inputs& before, const Inputs& after);

}  // namespace scankit
