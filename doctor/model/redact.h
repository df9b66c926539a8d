// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cctype>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "doctor/base/result.h"
#include "doctor/base/text.h"
#include "doctor/model/finding.h"
#include "doctor/model/snapshot.h"

// What the finders of redaction share. Each finder reads a text once, from the front: a hostile text of 400
// kB may not take seconds.
// Finds in a text what tells of a person or a machine. What each form promises: doctor/model/README.md.

namespace scankit::redaction {

inline bool is_alnum(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }
inline bool is_word(char c) { return is_alnum(c) || c == '_'; }
inline bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
inline char char_at(std::string_view text, std::size_t at) { return at < text.size() ? text[at] : '\0'; }
// '\0' in front of the text.
inline char char_before(std::string_view text, std::size_t at) { return at == 0 ? '\0' : text[at - 1]; }

template <class Wanted>
std::size_t end_of_run(std::string_view text, std::size_t at, const Wanted& wanted) {
  while (at < text.size() && wanted(text[at])) ++at;
  return at;
}

// A piece of a text: [start, end).
struct Place {
  std::size_t start = 0, end = 0;
  std::string_view in(std::string_view text) const { return text.substr(start, end - start); }
};
struct Edit {
  Place place;
  std::string by;
};

// The text with all edits done at once: replacing one after the other would move the tail for each. Where two
// overlap, all that either names goes.
inline std::string edited(std::string_view text, std::vector<Edit> edits) {
  std::ranges::stable_sort(edits, {}, [](const Edit& edit) { return edit.place.start; });
  std::string out;
  std::size_t at = 0;
  for (const Edit& edit : edits) {
    if (edit.place.start >= at) {
      out += text.substr(at, edit.place.start - at);
      out += edit.by;
    }
    at = std::max(at, edit.place.end);
  }
  return out += text.substr(std::min(at, text.size()));
}

// The names in home folders, "/home/NAME", "C:\Users\NAME", "~NAME", "/tmp/pip-NAME-build".
std::vector<Place> find_home_names(std::string_view text);

struct Url {
  Place authority, host;      // user:password@host:port; the host without its port
  std::vector<Place> tokens;  // parts of the path that look like credentials
};
// scheme://..., and "user:password@host" without a scheme.
std::vector<Url> find_urls(std::string_view text);

struct Login {
  Place user, host;
  bool prompt = false;  // "user@host:~/x$", "[user@host x]$": both names are certain; else a mail address
};
std::vector<Login> find_logins(std::string_view text);

// Hosts that the words around them show to be hosts ("srun: error: node17:"), and fully qualified names.
std::vector<Place> find_hosts(std::string_view text);
// Whether a name may be replaced wherever it stands. "login" is a word of many sentences, "login03" is not.
bool is_distinct_host(std::string_view name);

struct Address {
  Place place;
  bool mac = false;
};
// IPv4, IPv6 and MAC addresses. `is_fact` knows the versions and packages that the facts name: "12.4.5.8" is
// cuBLAS. Loopback says nothing and is left out.
std::vector<Address> find_addresses(std::string_view text,
                                    const std::function<bool(std::string_view)>& is_fact);
bool is_ipv4(std::string_view text);

// Values of passwords, tokens, signatures and keys, by the name before them or by their own form.
std::vector<Place> find_secrets(std::string_view text);

}  // namespace scankit::redaction

namespace scankit {

// Replaces what tells whose machine a text is from; doctor/model/README.md has what is promised and what is
// not. Two users, hosts, addresses or GPUs stay two: the names that stand for them are numbered in the order
// in which they are learnt. Time and memory grow with the text, not with the number of names.
class TextRedactor {
 public:
  void learn_user(const std::string& name);
  void learn_home(const std::string& path);
  void learn_host(const std::string& name);
  // A word that is a fact, were it also somebody's name or
  // address: a package called as its author, a version.
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

// What is known of the person and the machine beside what the facts say.
struct Owner {
  std::vector<std::string> users, homes, hosts;
};
// Of who runs this process: $USER, $LOGNAME, $HOME, $HOSTNAME, uname, and the people in /etc/passwd.
Owner own_names();
// Adds the accounts of people in the text of /etc/passwd, and the one with `own_uid`.
void add_accounts(std::string_view passwd, unsigned own_uid, Owner& owner);

// The same facts without whose they are: README.md says what is replaced, in every string of the snapshot.
// Paths stay distinct and keep their shape, so that a diagnosis of the redacted snapshot is the same.
Snapshot redacted(const Snapshot& snapshot, const Owner& owner = {});
// An answer that had to be found with the real names, since files were read to find it.
Report redacted(Report report, const Owner& owner = {});

// Why nothing could be examined.
Error redacted(Error error, const Owner& owner);

// The help of --redact: what is replaced, and what is not.
std::string redact_help();

void learn(TextRedactor& redactor, const Owner& owner);

}  // namespace scankit
