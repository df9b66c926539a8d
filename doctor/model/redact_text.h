// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>

namespace scankit {

// Replaces what tells whose machine a text is from; doctor/model/README.md has what is promised and what is
// not. Two users, hosts, addresses or GPUs stay two: the names that stand for them are numbered in the order
// in which they are learnt. Time and memory grow with the text, not with the number of names.
class TextRedactor {
 public:
  void learn_user(const std::string& name);
  void learn_home(const std::string& path);
  void learn_host(const std::string& name);
  // A word that is a fact, were it also somebody's name or address: a package called as its author, a
  // version.
  void learn_fact(const std::string& word) { facts_.insert(word); }
  // Finds names, hosts, addresses and serials in a text, before anything is replaced.
  void learn_from(std::string_view text);

  std::string clean(std::string text) const;
  // A value of which nothing may stay: a token, a serial.
  static std::string hidden() { return "[redacted]"; }

  // "GPU-0123...": the same replacement wherever it stands, also where it is cut short, as
  // CUDA_VISIBLE_DEVICES may have it.
  void learn_serial(const std::string& serial);

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  template <class Value>
  using Table = std::unordered_map<std::string, Value, Hash, std::equal_to<>>;

  void add_word(const std::string& word, const std::string& alias);
  void learn_address(const std::string& address, bool mac);
  std::string host_alias(std::string_view host) const;
  bool is_fact(std::string_view word) const { return facts_.contains(word); }
  std::string without_urls_and_secrets(const std::string& text) const;
  std::string without_places(const std::string& text) const;
  std::string without_words(const std::string& text) const;
  std::string without_home_names(const std::string& text) const;
  std::string without_serials(const std::string& text) const;

  std::set<std::string, std::less<>> facts_;
  std::map<std::string, std::string> serials_;
  Table<std::string> users_, hosts_, addresses_;
  std::size_t homes_ = 0, macs_ = 0;
  Table<std::string> words_;      // what is replaced wherever it stands; a folder without its first '/'
  Table<std::size_t> first_run_;  // of letters and digits of a word: the most runs that a word has behind it
  std::set<std::string, std::less<>> folders_;  // those of words_ that are folders
};

// Whether a variable of that name holds a credential: "HF_TOKEN", "PIP_PASSWORD".
bool names_a_secret(std::string_view variable);

}  // namespace scankit
