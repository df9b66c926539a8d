// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "doctor/base/result.h"

// For tests: what may stand in a text untranslated, once
// everything that is said is said in the invented language.
namespace scankit {

// Values of the facts, and what a test adds: names, commands, options.
class PseudoData {
 public:
  explicit PseudoData(const nlohmann::json& facts);  // which must outlive it
  void add_whole(const std::string& text);
  void add_words(const std::string& text);

  // The first word of the part that is no data; "" where there is none.
  std::string stranger(std::string part) const;

 private:
  struct LongestFirst {
    bool operator()(const std::string& a, const std::string& b) const {
      return a.size() != b.size() ? a.size() > b.size() : a < b;
    }
  };
  void collect(const nlohmann::json& value, const std::string& key);
  bool is_pointer(const std::string& text) const;
  // A piece of a fact that is itself a sentence, such as what the interpreter printed.
  bool is_quoted(const std::string& part) const;
  bool is_line_of_python(const std::string& part) const;
  bool is_data(const std::string& word) const;

  const nlohmann::json& facts_;
  std::set<std::string> words_;
  std::set<std::string, LongestFirst> whole_;
};

// A line for each part of the text that is neither translated nor data, and one where a sentence was cut.
std::vector<std::string> untranslated(const std::string& text, const PseudoData& data);

// The text with the paths that the legend below a report
// stands for: what a fact quotes is looked for as a whole.
std::string without_legend(std::string text);

// The catalogue `pot` in the invented language, compiled into `folder`; its path.
Result<std::string> make_pseudo_mo(const std::string& pot, const std::string& folder);

}  // namespace scankit
