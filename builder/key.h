// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace scankit {

// What a result depends on: a list of labelled values. The digest goes over labels, values and their lengths,
// so that
// ("flags", "-I -O2") and ("flags", "-I-O2") differ; the text is what `--explain` prints and two people can
// diff.
class Key {
 public:
  void add(std::string label, std::string value) { inputs_.emplace_back(std::move(label), std::move(value)); }
  std::string digest() const;  // 64 hex digits
  std::string text() const;    // "label: value" lines
  const std::vector<std::pair<std::string, std::string>>& inputs() const { return inputs_; }

 private:
  std::vector<std::pair<std::string, std::string>> inputs_;
};

// The labels whose values differ between two texts of Key::text(), in the new one's order.
std::vector<std::string> changed_labels(const std::string& before, const std::string& after);

}  // namespace scankit
