// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "doctor/base/text.h"
#include "doctor/model/redact.h"

namespace scankit::redaction {
namespace {

constexpr std::string_view kEndOfUrl = " \t\r\n\"<>";
constexpr std::size_t kOddUserInfo = 512;  // how far a password with '/', '#' or a quote in it is looked for

bool all_digits(std::string_view text) { return std::ranges::all_of(text, is_digit); }

// The last '@' before `end` that ends user:password; npos for none. RFC 3986 ends an authority at the first
// '/', '?' or '#', but passwords are pasted into URLs as they are.
std::size_t end_of_user_info(std::string_view text, std::size_t start, std::size_t strict, std::size_t end) {
  const std::string_view authority = text.substr(start, strict - start);
  if (const auto at = authority.rfind('@'); at != std::string_view::npos) return start + at;
  const auto colon = authority.find(':');
  if (colon == std::string_view::npos || authority.starts_with('[')) return std::string_view::npos;
  const std::string_view odd = text.substr(strict, std::min(end - strict, kOddUserInfo));
  const auto last = odd.rfind('@');
  if (last == std::string_view::npos) return std::string_view::npos;
  const std::size_t at = strict + last;
  // "https://host:80/@scope/x" and "git+https://host:80/x@v1.0" have a port, and no password.
  const bool port = all_digits(authority.substr(colon + 1));
  const char next = char_at(text, at + 1);
  const bool path = odd.find('/', last) != std::string_view::npos;
  if (port && (text[at - 1] == '/' || !is_alnum(next) || !path)) return std::string_view::npos;
  return at;
}

bool is_index_word(std::string_view part) {
  constexpr std::array<std::string_view, 22> kWords{
      "simple",   "pypi",   "whl",   "nightly", "test",   "api",     "artifactory", "repository",
      "packages", "python", "index", "cpu",     "stable", "groups",  "group",       "root",
      "dev",      "org",    "conda", "wheels",  "pip",    "projects"};
  const auto letters = part.substr(0, part.find_first_of("0123456789"));
  return std::ranges::find(kWords, part) != kWords.end() || letters == "cu" || letters == "rocm" ||
         letters == "py" || letters == "v" || all_digits(part);
}

// A run of letters and digits that nobody would choose as a name.
bool looks_random(std::string_view part, std::size_t least) {
  for (std::size_t at = 0; at < part.size();) {
    const std::size_t end = end_of_run(part, at, is_alnum);
    const std::string_view run = part.substr(at, end - at);
    const bool digit = std::ranges::any_of(run, is_digit), letter = !all_digits(run);
    const auto upper = std::ranges::count_if(run, [](char c) { return c >= 'A' && c <= 'Z'; });
    if (run.size() >= least && letter && (digit || (run.size() >= 20 && upper > 3))) return true;
    at = end + 1;
  }
  return false;
}

// "/packages/<hash>/x.whl" and "/commit/<hash>" are public; any other hash may be somebody's key.
bool is_public_hash(std::string_view path, std::string_view before, std::string_view part) {
  if (!std::ranges::all_of(part, [](char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; }))
    return false;
  for (const std::string_view kind : {"commit", "tree", "blob", "raw", "commits"})
    if (before == kind) return true;
  for (const std::string_view file : {".whl", ".gz", ".zip", ".conda", ".bz2", ".metadata"})
    if (path.ends_with(file)) return true;
  return false;
}

// https://pypi.corp/TOKEN/simple: what stands in the path of a package index is its name or a credential.
void add_path_tokens(std::string_view text, const Place& path, std::string_view announced,
                     std::vector<Place>& tokens) {
  const std::string_view whole = path.in(text);
  const auto simple = whole.find("/simple");
  bool index = simple != std::string_view::npos && (simple + 7 == whole.size() || whole[simple + 7] == '/');
  const std::string words = lowered(announced);
  for (const std::string_view word :
       {"index-url", "index_url", "index =", "indexes:", "find-links", "find_links"})
    index = index || words.find(word) != std::string::npos;
  std::string_view before;
  for (std::size_t at = path.start + 1; at < path.end;) {
    const Place part{at, std::min(text.find('/', at), path.end)};
    const std::string_view name = part.in(text);
    at = part.end + 1;
    const bool project = simple != std::string_view::npos && part.start > path.start + simple + 6;
    const bool file =
        name.find(".whl") != std::string_view::npos || name.find(".tar") != std::string_view::npos;
    if (!name.empty() && !file && !is_index_word(name) && !is_public_hash(whole, before, name) &&
        ((index && !project) || looks_random(name, 16)))
      tokens.push_back(part);
    before = name;
  }
}

// user:password@host without a scheme, as http_proxy may have
// it. Not "image:tag@sha256:..." and not "libx.so:name@VERSION".
void add_bare_user_info(std::string_view text, const Place& token, std::vector<Url>& urls) {
  const std::string_view word = token.in(text);
  const auto at = word.rfind('@'), colon = word.find(':');
  if (at == std::string_view::npos || colon == std::string_view::npos || colon + 1 >= at) return;
  if (word[at - 1] == '@' || word[colon + 1] == ':' || word.find("://") != std::string_view::npos) return;
  const auto mark = word.substr(0, colon).find_last_of("='(,;[{`");
  const std::size_t user = mark == std::string_view::npos ? 0 : mark + 1;
  const std::string_view name = word.substr(user, colon - user);
  if (name.empty() || name.find_first_of("/\\@*") != std::string_view::npos || name.ends_with(".so")) return;
  const std::size_t end =
      end_of_run(word, at + 1, [](char c) { return is_alnum(c) || c == '.' || c == '-'; });
  const std::string_view host = word.substr(at + 1, end - at - 1);
  const bool lower = std::ranges::any_of(host, [](char c) { return c >= 'a' && c <= 'z'; });
  if (host.empty() || host.starts_with("sha") || char_at(word, end) == '_' || (!lower && !is_ipv4(host)))
    return;
  const std::size_t port = end_of_run(word, char_at(word, end) == ':' ? end + 1 : end, is_digit);
  urls.push_back({{token.start + user, token.start + port}, {token.start + at + 1, token.start + end}, {}});
}

}  // namespace

std::vector<Url> find_urls(std::string_view text) {
  std::vector<Url> urls;
  std::size_t token_end = 0;
  for (auto at = text.find("://"); at != std::string_view::npos;) {
    const std::size_t start = at + 3;
    if (token_end < start) token_end = std::min(text.find_first_of(kEndOfUrl, start), text.size());
    const std::size_t strict = std::min(text.find_first_of("/?#'", start), token_end);
    const auto user = end_of_user_info(text, start, strict, token_end);
    const std::size_t host = user == std::string_view::npos ? start : user + 1;
    Url url;
    url.authority = {start, host <= strict ? strict : std::min(text.find_first_of("/?#'", host), token_end)};
    const std::string_view name = text.substr(host, url.authority.end - host);
    const auto bracket = name.starts_with('[') ? name.find(']') : std::string_view::npos;
    const auto port = name.find(':', bracket == std::string_view::npos ? 0 : bracket);
    url.host = {
        host, std::min(port == std::string_view::npos ? url.authority.end : host + port, url.authority.end)};
    const auto next = text.find("://", url.authority.end);
    const std::string_view rest = text.substr(0, std::min(token_end, next));  // a URL may be part of another
    const std::size_t path_end = std::min(rest.find_first_of("?#'", url.authority.end), rest.size());
    const std::size_t before = at - std::min<std::size_t>(at, 40);
    if (char_at(text, url.authority.end) == '/' && path_end > url.authority.end)
      add_path_tokens(text, {url.authority.end, path_end}, text.substr(before, at - before), url.tokens);
    if (url.authority.end > start) urls.push_back(std::move(url));
    at = next;
  }
  if (text.find('@') == std::string_view::npos) return urls;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find_first_of(kEndOfUrl, at), text.size());
    if (end > at) add_bare_user_info(text, {at, end}, urls);
    at = end + 1;
  }
  return urls;
}

std::vector<Login> find_logins(std::string_view text) {
  const auto in_name = [](char c) { return is_word(c) || c == '.' || c == '-' || c == '+'; };
  const auto in_host = [](char c) { return is_alnum(c) || c == '.' || c == '-'; };
  std::vector<Login> logins;
  for (auto at = text.find('@'); at != std::string_view::npos; at = text.find('@', at + 1)) {
    std::size_t start = at;
    while (start > 0 && in_name(text[start - 1])) --start;
    const std::size_t end = end_of_run(text, at + 1, in_host);
    if (start == at || end == at + 1) continue;
    const std::string_view rest = text.substr(end, 2), host = text.substr(at + 1, end - at - 1);
    const bool bracket = char_before(text, start) == '[' && rest.starts_with(' ') &&
                         text.substr(end, 64).find("]$") != std::string_view::npos;
    const bool prompt = rest == ":~" || rest == ":/" || bracket;
    const auto dot = host.rfind('.');
    const bool mail =
        dot != std::string_view::npos && dot + 2 < host.size() &&
        std::ranges::all_of(host.substr(dot + 1), [](unsigned char c) { return std::isalpha(c) != 0; });
    if (prompt || mail) logins.push_back({{start, at}, {at + 1, end}, prompt});
  }
  return logins;
}

}  // namespace scankit::redaction
