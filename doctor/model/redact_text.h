// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace scankit {

// Replaces what tells whose machine a text is from. Two users, hosts or GPUs stay two: the names that stand
// for them are numbered in the order in which they are learnt.
class TextRedactor {
 public:
  void learn_user(const std::string& name);
  void learn_home(const std::string& path);
  void learn_host(const std::string& name);
  // A word that is a fact, were it also somebody's name: a package called as its author.
  void learn_fact(const std::string& word) { facts_.insert(word); }
  // Finds the users of /home/NAME and /Users/NAME and the serials in a text, before anything is replaced.
  void learn_from(std::string_view text);

  std::string clean(std::string text) const;
  // A value of which nothing may stay: a token, a serial.
  static std::string hidden() { return "[redacted]"; }

  // "GPU-0123...": the same replacement wherever it stands, also where it is cut short, as
  // CUDA_VISIBLE_DEVICES may have it.
  void learn_serial(const std::string& serial);

 private:
  std::string words(const std::string& text) const;
  std::set<std::string> facts_;
  std::map<std::string, std::string> users_, homes_, hosts_, serials_;
};

// Whether a variable of that name holds a credential: "HF_TOKEN", "PIP_PASSWORD".
bool names_a_secret(std::string_view variable);

}  // namespace scankit
