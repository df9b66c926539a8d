// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <vector>

#include "doctor/model/redact.h"

namespace scankit {
namespace {
using redaction::Edit;
using redaction::Place;

// Accounts that say nothing about a person, and words that facts consist of.
bool is_generic_name(std::string_view user) {
  constexpr std::array<std::string_view, 76> kGeneric{
      "root",      "user",      "python",      "ubuntu", "debian", "centos", "torch",   "cuda",     "conda",
      "home",      "linux",     "admin",       "nvidia", "jovyan", "nobody", "daemon",  "test",     "tests",
      "build",     "data",      "app",         "dev",    "runner", "docker", "vagrant", "guest",    "service",
      "github",    "jenkins",   "gitlab",      "lib",    "lib64",  "bin",    "src",     "opt",      "local",
      "share",     "site",      "module",      "import", "pip",    "system", "default", "none",     "true",
      "false",     "error",     "warning",     "file",   "line",   "from",   "name",    "path",     "version",
      "work",      "worker",    "node",        "host",   "mamba",  "triton", "include", "packages", "wheel",
      "symbol",    "undefined", "usr",         "tmp",    "etc",    "var",    "proc",    "not",      "found",
      "Traceback", "Error",     "ImportError", "module_"};
  return user.size() < 3 || std::ranges::find(kGeneric, user) != kGeneric.end();
}

std::string numbered(std::string_view stem, std::size_t n) {
  return n == 0 ? std::string(stem) : std::string(stem) + std::to_string(n + 1);
}

// "host2" and "user3" are what we write: a text that is cleaned twice stays as it is.
bool is_alias(std::string_view name, std::string_view stem) {
  return name.starts_with(stem) && name.size() <= stem.size() + 3 &&
         std::ranges::all_of(name.substr(stem.size()), is_digit);
}

bool in_name_run(char c) { return redaction::is_alnum(c) || static_cast<unsigned char>(c) >= 0x80; }

constexpr std::size_t kMostRuns = 16, kLongestName = 255, kWidestGap = 3;

// The end of the next run of letters and digits behind `end`; 0 where the gap is too wide for one name.
std::size_t next_run_end(std::string_view text, std::size_t end) {
  std::size_t at = end;
  while (at < text.size() && at - end < kWidestGap && !in_name_run(text[at])) ++at;
  return at < text.size() && in_name_run(text[at]) ? redaction::end_of_run(text, at, in_name_run) : 0;
}

constexpr std::size_t kWholeSerial = 40;  // "GPU-" and a UUID

bool is_serial_start(std::string_view text, std::size_t at) {
  return text.compare(at, 4, "GPU-") == 0 || text.compare(at, 4, "MIG-") == 0;
}

std::size_t serial_length(std::string_view text, std::size_t at) {
  return redaction::end_of_run(
             text, at + 4,
             [](char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0 || c == '-'; }) -
         at;
}

}  // namespace

void TextRedactor::add_word(const std::string& word, const std::string& alias) {
  if (word.size() > kLongestName || word.empty() || !in_name_run(word.front()) || !in_name_run(word.back()))
    return;
  if (!words_.emplace(word, alias).second) return;
  const std::size_t first = redaction::end_of_run(word, 0, in_name_run);
  std::size_t runs = 1;
  for (std::size_t end = first; end != 0 && end < word.size(); ++runs) end = next_run_end(word, end);
  std::size_t& most = first_run_[word.substr(0, first)];
  most = std::max(most, std::min(runs, kMostRuns));
}

void TextRedactor::learn_user(const std::string& name) {
  if (name.size() < 2 || name == "root" || is_alias(name, "user") || is_alias(name, "owner")) return;
  const auto [at, fresh] = users_.emplace(name, numbered("user", users_.size()));
  if (fresh && !is_generic_name(name)) add_word(name, at->second);
}

void TextRedactor::learn_home(const std::string& path) {
  if (path.size() < 3 || path[0] != '/' || path == "/root") return;  // root says nothing about a person
  bool usual = false;
  for (const std::string_view parent : {"/home/", "/Users/", "/homes/", "/users/"})
    usual = usual || (path.starts_with(parent) && path.find('/', parent.size()) == std::string::npos);
  if (usual) return learn_user(path.substr(path.rfind('/') + 1));
  constexpr std::array<std::string_view, 9> kServices{"/tmp", "/nonexistent", "/var", "/usr", "/opt",
                                                      "/bin", "/dev",         "/srv", "/home"};
  if (std::ranges::find(kServices, path) != kServices.end()) return;
  const std::string folder = path.substr(1);
  if (!folders_.insert(folder).second) return;
  add_word(folder, numbered("/home/owner", homes_++));
}

void TextRedactor::learn_host(const std::string& name) {
  if (name.size() < 3 || name == "localhost" || is_alias(name, "host") || is_fact(name)) return;
  if (redaction::is_ipv4(name)) return learn_address(name, false);
  const std::string alias = numbered("host", hosts_.size());
  if (!hosts_.emplace(name, alias).second) return;
  if (redaction::is_distinct_host(name) || !is_generic_name(name)) add_word(name, alias);
  // A node is named by its first label alone as well.
  const auto dot = name.find('.');
  if (dot != std::string::npos && dot > 2 && name.find('.', dot + 1) != std::string::npos &&
      redaction::is_distinct_host(name.substr(0, dot)))
    hosts_.emplace(name.substr(0, dot), alias), add_word(name.substr(0, dot), alias);
}

void TextRedactor::learn_address(const std::string& address, bool mac) {
  if (addresses_.contains(address) || is_fact(address) || address.starts_with("127.")) return;
  const std::size_t before = mac ? macs_ : addresses_.size() - macs_;
  addresses_.emplace(address, numbered(mac ? "mac-address" : "ip-address", before));
  macs_ += mac ? 1 : 0;
}

void TextRedactor::learn_serial(const std::string& serial) {
  if (serial.empty()) return;
  if (const auto known = serials_.lower_bound(serial);
      known != serials_.end() && known->first.starts_with(serial))
    return;
  std::string digits = std::to_string(serials_.size());
  digits.insert(0, 12 - std::min<std::size_t>(digits.size(), 12), '0');
  const std::string alias =
      (serial.starts_with("MIG-") ? "MIG" : "GPU") + std::string("-00000000-0000-0000-0000-") + digits;
  serials_.emplace(serial, alias);
  add_word(serial, alias);
}

void TextRedactor::learn_from(std::string_view text) {
  for (const Place& name : redaction::find_home_names(text)) learn_user(std::string(name.in(text)));
  for (const redaction::Login& login : redaction::find_logins(text)) {
    if (!login.prompt) continue;
    learn_user(std::string(login.user.in(text)));
    learn_host(std::string(login.host.in(text)));
  }
  for (const redaction::Url& url : redaction::find_urls(text)) {
    const std::string host(url.host.in(text));
    if (host == "localhost" || host.empty() || redaction::is_ipv4(host)) continue;
    // The name of a site is no word of its own: "download" of download.example.org.
    if (hosts_.emplace(host, numbered("host", hosts_.size())).second && host.find('.') != std::string::npos)
      add_word(host, hosts_.find(host)->second);
  }
  for (const Place& host : redaction::find_hosts(text)) learn_host(std::string(host.in(text)));
  for (const redaction::Address& address :
       redaction::find_addresses(text, [&](auto word) { return is_fact(word); }))
    learn_address(std::string(address.place.in(text)), address.mac);
  for (std::size_t at = 0; at + 4 < text.size(); ++at)
    if (is_serial_start(text, at) && serial_length(text, at) == kWholeSerial)
      learn_serial(std::string(text.substr(at, kWholeSerial)));
}

std::string TextRedactor::host_alias(std::string_view host) const {
  if (host == "localhost" || host.starts_with("127.") || host == "[::1]") return std::string(host);
  if (const auto known = addresses_.find(host); known != addresses_.end()) return known->second;
  if (is_alias(host, "host") || is_alias(host, "ip-address")) return std::string(host);
  const auto known = hosts_.find(host);
  return known == hosts_.end() ? "host" : known->second;
}

std::string TextRedactor::without_urls_and_secrets(const std::string& text) const {
  std::vector<Edit> edits;
  for (const redaction::Url& url : redaction::find_urls(text)) {
    const std::string host(url.host.in(text)), alias = host_alias(host);
    const bool stays = alias == host;  // and its port
    edits.push_back({{url.authority.start, stays ? url.host.start : url.authority.end}, stays ? "" : alias});
    for (const Place& token : url.tokens) edits.push_back({token, hidden()});
  }
  for (const Place& secret : redaction::find_secrets(text)) edits.push_back({secret, hidden()});
  return redaction::edited(text, std::move(edits));
}

// Mail addresses, addresses of machines, hosts where the words around them tell.
std::string TextRedactor::without_places(const std::string& text) const {
  std::vector<Edit> edits;
  for (const redaction::Login& login : redaction::find_logins(text))
    if (!login.prompt) edits.push_back({{login.user.start, login.host.end}, "user@host"});
  for (const redaction::Address& address :
       redaction::find_addresses(text, [&](auto word) { return is_fact(word); })) {
    const auto known = addresses_.find(address.place.in(text));
    edits.push_back({address.place, known != addresses_.end() ? known->second
                                    : address.mac             ? "mac-address"
                                                              : "ip-address"});
  }
  for (const Place& host : redaction::find_hosts(text))
    if (!is_fact(host.in(text))) edits.push_back({host, host_alias(host.in(text))});
  return redaction::edited(text, std::move(edits));
}

// Whole words only: "ann" is not a part of "annotations". At each word the longest name that is known:
// "node7.cluster.example" before "node7".
std::string TextRedactor::without_words(const std::string& text) const {
  std::vector<Edit> edits;
  for (std::size_t at = 0; at < text.size();) {
    if (!in_name_run(text[at])) {
      ++at;
      continue;
    }
    std::size_t end = redaction::end_of_run(text, at, in_name_run), best = 0;
    const std::size_t first_end = end;
    const std::string* alias = nullptr;
    bool folder = false;
    const auto first = first_run_.find(std::string_view(text).substr(at, end - at));
    for (std::size_t runs = first == first_run_.end() ? 0 : first->second;
         runs > 0 && end != 0 && end - at <= kLongestName; --runs) {
      const std::string_view piece = std::string_view(text).substr(at, end - at);
      const auto known = words_.find(piece);
      const bool is_folder = known != words_.end() && folders_.contains(piece);
      if (known != words_.end() && !is_fact(piece) &&
          (!is_folder || redaction::char_before(text, at) == '/')) {
        best = end;
        alias = &known->second;
        folder = is_folder;
      }
      end = next_run_end(text, end);
    }
    if (alias != nullptr) edits.push_back({{at - (folder ? 1u : 0u), best}, *alias});
    at = std::max(first_end, best);
  }
  return redaction::edited(text, std::move(edits));
}

// Also those that are words of facts: the "torch" of /home/torch.
std::string TextRedactor::without_home_names(const std::string& text) const {
  std::vector<Edit> edits;
  for (const Place& name : redaction::find_home_names(text))
    if (const auto user = users_.find(name.in(text)); user != users_.end())
      edits.push_back({name, user->second});
  return redaction::edited(text, std::move(edits));
}

std::string TextRedactor::without_serials(const std::string& text) const {
  std::vector<Edit> edits;
  for (std::size_t at = 0; at + 4 < text.size(); ++at) {
    if (!is_serial_start(text, at) || redaction::is_alnum(redaction::char_before(text, at))) continue;
    const std::size_t length = serial_length(text, at);
    const std::string cut = text.substr(at, length);
    const auto known = serials_.lower_bound(cut);
    if (length > 4 && known != serials_.end() && known->first.starts_with(cut))
      edits.push_back({{at, at + length}, known->second});
    at += length - 1;
  }
  return redaction::edited(text, std::move(edits));
}

std::string TextRedactor::clean(std::string text) const {
  text = without_urls_and_secrets(text);
  text = without_places(text);
  text = without_words(text);
  text = without_home_names(text);
  return without_serials(text);
}

bool names_a_secret(std::string_view variable) {
  // Variables alone: fields of the model are lower case.
  if (std::ranges::any_of(variable, [](char c) { return c >= 'a' && c <= 'z'; })) return false;
  const std::string name = lowered(variable);
  for (const std::string_view part : {"passw", "passphrase", "api_key", "apikey", "access_key", "accesskey",
                                      "secret", "private_key", "credential", "cookie"})
    if (name.find(part) != std::string::npos) return true;
  // TOKENIZERS_PARALLELISM and XAUTHORITY hold no secret.
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t end = std::min(name.find('_', at), name.size());
    const std::string_view part = std::string_view(name).substr(at, end - at);
    if (part == "token" || part == "tokens" || part == "auth" || part == "pw") return true;
    at = end + 1;
  }
  return false;
}

}  // namespace scankit
