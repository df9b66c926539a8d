// SPDX-License-Identifier: Apache-2.0
#include "doctor/model/redact_text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <functional>
#include <utility>
#include <vector>

namespace scankit {
namespace {

bool is_alnum(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }
bool is_word(char c) { return is_alnum(c) || c == '_'; }

constexpr std::array<std::string_view, 5> kHomes{"/home/", "/Users/", "/homes/", "/users/", "\\Users\\"};
constexpr std::string_view kEndOfName = "/\"'\\:;, \t\r\n)]}>";

// Accounts that say nothing about a person, and words that facts consist of.
bool is_generic(std::string_view user) {
  constexpr std::array<std::string_view, 14> kGeneric{"root",   "user",  "python", "ubuntu", "debian",
                                                      "centos", "torch", "cuda",   "conda",  "home",
                                                      "linux",  "admin", "nvidia", "jovyan"};
  return user.size() < 3 || std::ranges::find(kGeneric, user) != kGeneric.end();
}

std::string numbered(std::string_view stem, std::size_t n) {
  return n == 0 ? std::string(stem) : std::string(stem) + std::to_string(n + 1);
}

// Calls use(start, length) of the user's name in every /home/NAME of the text.
template <class Use>
void for_each_home(std::string_view text, const Use& use) {
  for (const std::string_view parent : kHomes)
    for (auto at = text.find(parent); at != std::string_view::npos; at = text.find(parent, at + 1)) {
      const std::size_t start = at + parent.size();
      const std::size_t end = std::min(text.find_first_of(kEndOfName, start), text.size());
      // A package may hold a folder "users"; homes lie in one of the root alone.
      if (parent == "/users/" && at > 0 && (is_word(text[at - 1]) || text[at - 1] == '/')) continue;
      if (end > start) use(start, end - start);
    }
}

struct Authority {
  std::size_t start = 0, host = 0, end = 0;  // of user:password@host
};

// Calls use(authority) of every scheme://authority of the text.
template <class Use>
void for_each_url(std::string_view text, const Use& use) {
  for (auto at = text.find("://"); at != std::string_view::npos; at = text.find("://", at + 3)) {
    Authority url;
    url.start = url.host = at + 3;
    url.end = std::min(text.find_first_of("/?# \t\r\n\"'<>", url.start), text.size());
    const auto at_sign = text.substr(url.start, url.end - url.start).rfind('@');
    if (at_sign != std::string_view::npos) url.host = url.start + at_sign + 1;
    if (url.end > url.start) use(url);
  }
}

struct Login {
  std::size_t start = 0, host = 0, end = 0;  // of user@host
  bool prompt = false;                       // "user@host:~/x$": both names are certain; else a mail address
};

// Calls use(login) for every mail address and shell prompt. "gcc@12.2" and "memcpy@GLIBC_2.14" are neither.
template <class Use>
void for_each_login(std::string_view text, const Use& use) {
  const auto in_name = [](char c) { return is_word(c) || c == '.' || c == '-' || c == '+'; };
  const auto in_host = [](char c) { return is_alnum(c) || c == '.' || c == '-'; };
  for (auto at = text.find('@'); at != std::string_view::npos; at = text.find('@', at + 1)) {
    Login login{at, at + 1, at + 1};
    while (login.start > 0 && in_name(text[login.start - 1])) --login.start;
    while (login.end < text.size() && in_host(text[login.end])) ++login.end;
    if (login.start == at || login.end == login.host) continue;
    const std::string_view rest = text.substr(login.end, 2);
    login.prompt = rest == ":~" || rest == ":/";
    const std::string_view host = text.substr(login.host, login.end - login.host);
    const auto dot = host.rfind('.');
    const bool mail = dot != std::string_view::npos && dot + 2 < host.size() &&
                      std::all_of(host.begin() + static_cast<std::ptrdiff_t>(dot) + 1, host.end(),
                                  [](unsigned char c) { return std::isalpha(c) != 0; });
    if (login.prompt || mail) use(login);
  }
}

std::string without_port(std::string_view host) { return std::string(host.substr(0, host.find(':'))); }

// Forms that the issuers publish, so that leaked ones are found: how they start, and how long the rest is.
struct TokenForm {
  std::string_view start;
  std::size_t rest;
};
constexpr std::array<TokenForm, 17> kTokens{{{"ghp_", 16},
                                             {"gho_", 16},
                                             {"ghs_", 16},
                                             {"ghu_", 16},
                                             {"ghr_", 16},
                                             {"github_pat_", 16},
                                             {"glpat-", 16},
                                             {"hf_", 24},
                                             {"pypi-", 32},
                                             {"npm_", 24},
                                             {"sk-", 20},
                                             {"xoxb-", 16},
                                             {"xoxp-", 16},
                                             {"AKIA", 16},
                                             {"ASIA", 16},
                                             {"AIza", 30},
                                             {"eyJ", 30}}};

std::string without_tokens(std::string text) {
  for (const TokenForm& form : kTokens)
    for (auto at = text.find(form.start); at != std::string::npos; at = text.find(form.start, at + 1)) {
      if (at > 0 && is_word(text[at - 1])) continue;
      std::size_t end = at + form.start.size();
      while (end < text.size() && (is_word(text[end]) || text[end] == '-' || text[end] == '.')) ++end;
      if (end - at - form.start.size() >= form.rest) text.replace(at, end - at, TextRedactor::hidden());
    }
  return text;
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

// Where the value behind a name of a secret starts: `NAME=value`, `NAME: value`, `"NAME": "value"`, `--NAME
// value`; npos where none does.
std::size_t value_start(std::string_view text, std::size_t name, std::size_t end) {
  const auto skip = [&](std::size_t at, std::string_view what) {
    return std::min(text.find_first_not_of(what, at), text.size());
  };
  std::size_t start = name;  // of the whole word: "--hub-token"
  while (start > 0 && (is_word(text[start - 1]) || text[start - 1] == '-')) --start;
  const bool flag = text.substr(start, 2) == "--";
  std::size_t at = skip(end, "\"'");
  const std::size_t sign = skip(at, " ");
  if (sign < text.size() && (text[sign] == '=' || text[sign] == ':'))
    at = skip(sign + 1, " ");
  else if (flag && sign > at)
    at = sign;
  else
    return std::string_view::npos;
  return skip(at, "\"'");
}

// As logs, command lines, variables and query strings have them.
std::string without_named_secrets(std::string text) {
  for (const std::string_view name :
       {"password", "passwd", "passphrase", "secret", "token", "api_key", "api-key", "apikey", "access_key",
        "access-key", "bearer", "authorization: basic"}) {
    std::string low = lower(text);
    for (auto at = low.find(name); at != std::string::npos; at = low.find(name, at + 1)) {
      const std::size_t behind = at + name.size();
      const bool scheme = name == "bearer" || name.ends_with("basic");
      std::size_t start = value_start(text, at, behind);
      if (scheme) start = behind < text.size() && text[behind] == ' ' ? behind + 1 : std::string::npos;
      if (start >= text.size()) continue;
      const std::size_t end = std::min(text.find_first_of("&;, \t\r\n\"'", start), text.size());
      if (end == start) continue;
      text.replace(start, end - start, TextRedactor::hidden());
      low.replace(start, end - start, TextRedactor::hidden());
    }
  }
  return text;
}

std::string without_addresses(std::string text) {
  std::vector<Login> logins;
  for_each_login(text, [&](const Login& login) { logins.push_back(login); });
  for (auto login = logins.rbegin(); login != logins.rend(); ++login)
    if (!login->prompt) text.replace(login->start, login->end - login->start, "user@host");
  return text;
}

// Whole words only: "ann" is not a part of "annotations".
std::string replaced_words(const std::string& text, const std::string& word, const std::string& by) {
  std::string out;
  std::size_t from = 0;
  for (auto at = text.find(word); at != std::string::npos; at = text.find(word, from)) {
    const bool starts = at == 0 || !is_alnum(text[at - 1]);
    const bool ends = at + word.size() == text.size() || !is_alnum(text[at + word.size()]);
    out += text.substr(from, at - from) + (starts && ends ? by : word);
    from = at + word.size();
  }
  return out + text.substr(from);
}

constexpr std::size_t kWholeSerial = 40;  // "GPU-" and a UUID

bool is_serial_start(std::string_view text, std::size_t at) {
  return text.compare(at, 4, "GPU-") == 0 || text.compare(at, 4, "MIG-") == 0;
}

std::size_t serial_length(std::string_view text, std::size_t at) {
  std::size_t end = at + 4;
  while (end < text.size() && (std::isxdigit(static_cast<unsigned char>(text[end])) != 0 || text[end] == '-'))
    ++end;
  return end - at;
}

}  // namespace

void TextRedactor::learn_user(const std::string& name) {
  if (name.size() < 2 || name == "root" || name == "user") return;
  users_.emplace(name, numbered("user", users_.size()));
}

void TextRedactor::learn_home(const std::string& path) {
  if (path.size() < 3 || path[0] != '/') return;
  bool known = path == "/root";  // says nothing about a person
  for_each_home(path, [&](std::size_t start, std::size_t length) {
    known = known || start + length == path.size();
    learn_user(path.substr(start, length));
  });
  if (!known) homes_.emplace(path, numbered("/home/owner", homes_.size()));
}

void TextRedactor::learn_host(const std::string& name) {
  if (name.size() < 3 || name == "localhost" || name.starts_with("host") || name == "127.0.0.1") return;
  const std::string alias = numbered("host", hosts_.size());
  if (!hosts_.emplace(name, alias).second) return;
  // A node is named by its first label alone as well.
  const bool numeric = std::isdigit(static_cast<unsigned char>(name[0])) != 0;
  const auto dot = name.find('.');
  if (dot != std::string::npos && dot > 2 && !numeric && name.find('.', dot + 1) != std::string::npos &&
      !name.starts_with("www."))
    hosts_.emplace(name.substr(0, dot), alias);
}

void TextRedactor::learn_serial(const std::string& serial) {
  if (serial.empty()) return;
  for (const auto& [known, alias] : serials_)
    if (known.starts_with(serial)) return;
  std::string digits = std::to_string(serials_.size());
  digits.insert(0, 12 - std::min<std::size_t>(digits.size(), 12), '0');
  serials_.emplace(serial, (serial.starts_with("MIG-") ? "MIG" : "GPU") +
                               std::string("-00000000-0000-0000-0000-") + digits);
}

void TextRedactor::learn_from(std::string_view text) {
  for_each_home(text, [&](std::size_t start, std::size_t length) {
    learn_user(std::string(text.substr(start, length)));
  });
  for_each_login(text, [&](const Login& login) {
    if (!login.prompt) return;
    learn_user(std::string(text.substr(login.start, login.host - 1 - login.start)));
    learn_host(std::string(text.substr(login.host, login.end - login.host)));
  });
  for (std::size_t at = 0; at + 4 < text.size(); ++at)
    if (is_serial_start(text, at) && serial_length(text, at) == kWholeSerial)
      learn_serial(std::string(text.substr(at, serial_length(text, at))));
}

std::string TextRedactor::words(const std::string& text) const {
  std::string out = text;
  for (const auto& [path, alias] : homes_) out = replaced_words(out, path, alias);
  // The longer name first: "node7.cluster.example" before "node7".
  for (auto host = hosts_.rbegin(); host != hosts_.rend(); ++host)
    out = replaced_words(out, host->first, host->second);
  for (const auto& [name, alias] : users_)
    if (!is_generic(name) && !facts_.contains(name)) out = replaced_words(out, name, alias);
  return out;
}

std::string TextRedactor::clean(std::string text) const {
  // From the end, so that positions stay true.
  std::vector<std::pair<Authority, std::string>> urls;
  for_each_url(text, [&](const Authority& url) {
    const std::string host = without_port(std::string_view(text).substr(url.host, url.end - url.host));
    const auto known = hosts_.find(host);
    urls.emplace_back(url, known == hosts_.end() ? "host" : known->second);
  });
  for (auto url = urls.rbegin(); url != urls.rend(); ++url)
    text.replace(url->first.start, url->first.end - url->first.start, url->second);
  text = without_addresses(without_tokens(without_named_secrets(std::move(text))));
  std::vector<std::pair<std::size_t, std::size_t>> homes;
  for_each_home(text, [&](std::size_t start, std::size_t length) { homes.emplace_back(start, length); });
  std::ranges::sort(homes, std::greater<>());
  homes.erase(std::unique(homes.begin(), homes.end()), homes.end());
  for (const auto& [start, length] : homes)
    if (const auto user = users_.find(text.substr(start, length)); user != users_.end())
      text.replace(start, length, user->second);
  for (auto serial = serials_.rbegin(); serial != serials_.rend(); ++serial)
    text = replaced_words(text, serial->first, serial->second);
  for (std::size_t at = 0; at + 4 < text.size(); ++at) {  // cut short
    if (!is_serial_start(text, at) || (at > 0 && is_alnum(text[at - 1]))) continue;
    const std::string cut = text.substr(at, serial_length(text, at));
    for (const auto& [full, alias] : serials_)
      if (cut.size() > 4 && cut != full && full.starts_with(cut)) text.replace(at, cut.size(), alias);
  }
  return words(text);
}

bool names_a_secret(std::string_view variable) {
  // Variables alone: fields of the model are lower case.
  if (std::ranges::any_of(variable, [](char c) { return c >= 'a' && c <= 'z'; })) return false;
  const std::string name = lower(variable);
  for (const std::string_view part :
       {"token", "secret", "passw", "api_key", "apikey", "access_key", "credential", "auth"})
    if (name.find(part) != std::string::npos) return true;
  return false;
}

}  // namespace scankit
