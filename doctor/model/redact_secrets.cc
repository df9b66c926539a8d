// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <optional>

#include "doctor/base/text.h"
#include "doctor/model/redact.h"

namespace scankit::redaction {
namespace {

template <std::size_t N>
bool is_one_of(std::string_view text, const std::array<std::string_view, N>& list) {
  return std::ranges::find(list, text) != list.end();
}

// Forms that the issuers publish, so that leaked ones are found: how they start, and how long the rest is.
struct TokenForm {
  std::string_view start;
  std::size_t rest;
};
constexpr std::array<TokenForm, 30> kTokens{
    {{"ghp_", 16},     {"gho_", 16},     {"ghs_", 16},  {"ghu_", 16},  {"ghr_", 16},   {"github_pat_", 16},
     {"glpat-", 16},   {"glptt-", 16},   {"hf_", 24},   {"pypi-", 32}, {"npm_", 24},   {"sk-", 20},
     {"sk_live_", 16}, {"rk_live_", 16}, {"xoxb-", 16}, {"xoxp-", 16}, {"xoxa-", 16},  {"xapp-", 16},
     {"AKIA", 16},     {"ASIA", 16},     {"AIza", 30},  {"eyJ", 30},   {"nvapi-", 20}, {"dckr_pat_", 16},
     {"dop_v1_", 16},  {"hvs.", 20},     {"ya29.", 20}, {"glsa_", 20}, {"AKCp", 40},   {"cmVmd", 40}}};

void add_tokens(std::string_view text, std::vector<Place>& secrets) {
  const auto in_token = [](char c) { return is_word(c) || c == '-' || c == '.'; };
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (!is_alnum(text[at]) || is_word(char_before(text, at))) continue;
    for (const TokenForm& form : kTokens) {
      if (!text.substr(at).starts_with(form.start)) continue;
      const std::size_t rest = at + form.start.size(), end = end_of_run(text, rest, in_token);
      if (end - rest < form.rest) continue;
      secrets.push_back({at, end});
      at = end - 1;
      break;
    }
  }
}

// From the first line of a key to its last, or to the end of what there is of it.
void add_private_keys(std::string_view text, std::vector<Place>& secrets) {
  for (auto at = text.find("-----BEGIN "); at != std::string_view::npos;
       at = text.find("-----BEGIN ", at + 1)) {
    if (text.substr(at, 48).find("PRIVATE KEY") == std::string_view::npos) continue;
    const auto last = text.find("-----END ", at),
               close = last == std::string_view::npos ? last : text.find("-----", last + 9);
    const std::size_t end = close == std::string_view::npos ? text.size() : close + 5;
    secrets.push_back({at, end});
    at = end - 1;
  }
}

// What a name says of the value behind it.
enum class NamedAs {
  Nothing,
  Secret,    // NAME=value, NAME: value, --NAME value
  Header,    // NAME: value to the end of the line, behind the name of a scheme
  Assigned,  // NAME=value alone: "pass: 3" counts tests
  KeyLike,   // NAME=value where the value has letters and digits
  Folder,    // a secret unless the value is a path: $PWD
};

NamedAs meaning_of(const std::string& name, bool in_query) {
  constexpr std::array<std::string_view, 7> kHeaders{
      "authorization", "proxy-authorization", "cookie", "set-cookie", "x-jfrog-art-api", "x-auth", "x-vault"};
  constexpr std::array<std::string_view, 9> kPlain{"pad_token",  "eos_token",  "bos_token",
                                                   "unk_token",  "sep_token",  "cls_token",
                                                   "mask_token", "next_token", "image_token"};
  constexpr std::array<std::string_view, 9> kInQuery{"sig",
                                                     "signature",
                                                     "x-amz-signature",
                                                     "x-amz-credential",
                                                     "x-goog-signature",
                                                     "x-goog-credential",
                                                     "key-pair-id",
                                                     "code",
                                                     "key"};
  constexpr std::array<std::string_view, 18> kEnds{
      "password",    "passwd",      "passphrase",  "passwort",   "secret",      "token",
      "api_key",     "api-key",     "apikey",      "access_key", "access-key",  "accesskey",
      "accesskeyid", "private_key", "private-key", "credential", "credentials", "secret_key"};
  if (is_one_of(name, kHeaders)) return NamedAs::Header;
  if (is_one_of(name, kPlain)) return NamedAs::Nothing;
  if (in_query && is_one_of(name, kInQuery)) return NamedAs::Secret;
  for (const std::string_view end : kEnds)
    if (name.ends_with(end)) return NamedAs::Secret;
  if (name == "auth" || name == "_auth" || name == "pw" || name == "psk" || name.ends_with("_pw"))
    return NamedAs::Secret;
  if (name == "pwd" || name.ends_with("_pwd")) return NamedAs::Folder;
  if (name == "pass" || name.ends_with("_pass")) return NamedAs::Assigned;
  if (name == "key" || name == "accountkey" || name == "sharedaccesskey") return NamedAs::KeyLike;
  return NamedAs::Nothing;
}

constexpr std::string_view kQuotes = "\"'\\";

struct Value {
  std::size_t start = 0;
  char quote = '\0';
  bool assigned = false;  // by '='
};

// `NAME=value`, `NAME: value`, `"NAME": "value"`, `NAME => value`, `--NAME value`.
std::optional<Value> value_behind(std::string_view text, std::size_t end, bool spaced) {
  const auto in = [](std::string_view set) {
    return [set](char c) { return set.find(c) != std::string_view::npos; };
  };
  std::size_t at = end_of_run(text, end, in(kQuotes));
  const std::size_t sign = end_of_run(text, at, in(" "));
  Value value;
  if (char_at(text, sign) == ':' && char_at(text, sign + 1) == ':') return std::nullopt;  // C++
  if (char_at(text, sign) == '=' || char_at(text, sign) == ':') {
    value.assigned = text[sign] == '=';
    at = end_of_run(text, end_of_run(text, sign + 1, in("=>")), in(" "));
  } else if (spaced && sign > at) {
    at = sign;
  } else {
    return std::nullopt;
  }
  value.start = end_of_run(text, at, in(kQuotes));
  if (value.start > at) value.quote = text[value.start - 1];
  return value.start < text.size() ? std::optional(value) : std::nullopt;
}

bool ends_word(char c) {
  return c == '\0' || is_space(c) || std::string_view(",;:)}]>\"'\\").find(c) != std::string_view::npos;
}

// A quoted value may have spaces, an unquoted one quotes and commas; a header's goes to the end of its line.
std::size_t value_end(std::string_view text, const Value& value, bool whole_line) {
  std::size_t at = value.start;
  if (text.substr(at).starts_with(TextRedactor::hidden())) return at;
  for (; at < text.size() && text[at] != '\n' && text[at] != '\r'; ++at) {
    const char c = text[at];
    if (value.quote != '\0') {
      if (c == value.quote && text[at - 1] != '\\') return at;
      if (c == '\\' && char_at(text, at + 1) == value.quote && ends_word(char_at(text, at + 2))) return at;
      continue;
    }
    const bool quote = c == '"' || c == '\'' || c == '`';
    if (quote && ends_word(char_at(text, at + 1))) return at;
    if (whole_line) continue;
    if (is_space(c) || c == '&') return at;
    if ((c == ',' || c == ';' || c == ')' || c == '}' || c == ']') && ends_word(char_at(text, at + 1)))
      return at;
  }
  return at;
}

bool is_no_secret(std::string_view value) {
  constexpr std::array<std::string_view, 9> kPlain{"none",  "null", "true", "false",     "undefined",
                                                   "unset", "***",  "****", "[redacted]"};
  return is_one_of(lowered(value), kPlain) || value.starts_with('<') || value.starts_with("%s");
}

bool has_letters_and_digits(std::string_view value, std::size_t least) {
  const auto digits = static_cast<std::size_t>(std::ranges::count_if(value, is_digit));
  return value.size() >= least && digits > 0 && digits < value.size() &&
         value.find_first_of(".(/ ") == std::string_view::npos;
}

bool is_path(std::string_view value) {
  return value.find_first_of("/~.$") == 0 ||
         (value.size() > 2 && value[1] == ':' && (value[2] == '\\' || value[2] == '/'));
}

// "Authorization: Token X": the scheme stays.
std::size_t behind_scheme(std::string_view text, std::size_t start) {
  constexpr std::array<std::string_view, 6> kSchemes{"basic",  "bearer", "token",
                                                     "digest", "apikey", "negotiate"};
  const std::size_t end = end_of_run(text, start, is_alnum);
  return char_at(text, end) == ' ' && is_one_of(lowered(text.substr(start, end - start)), kSchemes) ? end + 1
                                                                                                    : start;
}

struct SecretWord {
  Place place;
  std::string name;  // lower case, without the dashes of an option
  bool option = false, upper = false, mixed = false, in_query = false;
};

SecretWord word_at(std::string_view text, Place place) {
  SecretWord word{place, {}};
  std::string_view name = place.in(text);
  const auto dashes = std::min(name.find_first_not_of('-'), name.size());
  word.option = dashes == 2;
  word.upper = std::ranges::none_of(name, [](char c) { return c >= 'a' && c <= 'z'; });
  word.mixed = !word.upper && std::ranges::any_of(name, [](char c) { return c >= 'A' && c <= 'Z'; });
  const char before = char_before(text, place.start);
  word.in_query = before == '?' || before == '&' || before == ';';
  name.remove_prefix(dashes);
  word.name = lowered(name.substr(name.size() - std::min<std::size_t>(name.size(), 64)));
  return word;
}

std::optional<Place> secret_behind(std::string_view text, const SecretWord& word, std::string_view before) {
  const NamedAs meaning = word.upper && names_a_secret(word.place.in(text))
                              ? NamedAs::Secret
                              : meaning_of(word.name, word.in_query);
  if (word.name == "pw" && word.mixed) return std::nullopt;  // "pW = padding[2]": a width
  if (meaning == NamedAs::Nothing) return std::nullopt;
  const bool variable = word.upper && word.name.size() > 5;
  const auto value = value_behind(text, word.place.end, word.option || variable);
  if (!value) return std::nullopt;
  if (word.name == "token" && (before == "unexpected" || before == "invalid" || before == "before"))
    return std::nullopt;
  Value found = *value;
  const bool header = meaning == NamedAs::Header && !found.assigned;
  if (header || word.name.starts_with("auth")) found.start = behind_scheme(text, found.start);
  const Place place{found.start, value_end(text, found, header)};
  const std::string_view secret = place.in(text);
  const bool spaced =
      !word.option &&
      text.substr(word.place.end, place.start - word.place.end).find_first_of("=:") == std::string_view::npos;
  if (secret.empty() || is_no_secret(secret)) return std::nullopt;
  if (spaced && !has_letters_and_digits(secret, 8)) return std::nullopt;  // "HF_TOKEN is not set"
  if (meaning == NamedAs::Assigned && (!found.assigned || std::ranges::all_of(secret, is_digit)))
    return std::nullopt;
  if (meaning == NamedAs::KeyLike && (!found.assigned || !has_letters_and_digits(secret, 6)))
    return std::nullopt;
  if (meaning == NamedAs::Folder && is_path(secret)) return std::nullopt;
  return place;
}

// `curl -u user:password`; not `docker run -u 1000:1000` or `-u a::b`.
std::optional<Place> user_option(std::string_view text, const SecretWord& word) {
  const std::string_view option = word.place.in(text);
  if (option != "-u" && option != "--user" && option != "-U" && option != "--proxy-user") return std::nullopt;
  if (char_at(text, word.place.end) != ' ' && char_at(text, word.place.end) != '=') return std::nullopt;
  const char quote = char_at(text, word.place.end + 1);
  const bool quoted = quote == '"' || quote == '\'';
  const Value value{word.place.end + (quoted ? 2u : 1u), quoted ? quote : '\0', false};
  const Place place{value.start, value_end(text, value, false)};
  const std::string_view pair = place.in(text);
  const auto colon = pair.find(':');
  if (colon == 0 || colon == std::string_view::npos || colon + 1 == pair.size() || pair[colon + 1] == ':')
    return std::nullopt;
  if (std::ranges::all_of(pair, [](char c) { return is_digit(c) || c == ':'; })) return std::nullopt;
  return place;
}

// "machine h login NAME password VALUE", as ~/.netrc has it; "Bearer VALUE".
std::optional<Place> spaced_value(std::string_view text, const SecretWord& word, bool netrc) {
  const bool told = word.name == "bearer" ||
                    (netrc && (word.name == "login" || word.name == "password" || word.name == "account"));
  if (!told || char_at(text, word.place.end) != ' ') return std::nullopt;
  const Place place{word.place.end + 1, value_end(text, {word.place.end + 1, '\0', false}, false)};
  return place.end > place.start ? std::optional(place) : std::nullopt;
}

void add_named(std::string_view text, std::vector<Place>& secrets) {
  const auto in_name = [](char c) { return is_word(c) || c == '-'; };
  const bool netrc =
      text.find("machine ") != std::string_view::npos && text.find(" login ") != std::string_view::npos;
  std::string before;
  for (std::size_t at = 0; at < text.size();) {
    if (!in_name(text[at])) {
      ++at;
      continue;
    }
    const SecretWord word = word_at(text, {at, end_of_run(text, at, in_name)});
    at = word.place.end;
    std::optional<Place> secret = secret_behind(text, word, before);
    if (!secret) secret = user_option(text, word);
    if (!secret) secret = spaced_value(text, word, netrc);
    before = word.name;
    if (!secret) continue;
    secrets.push_back(*secret);
    at = std::max(at, secret->end);
  }
}

}  // namespace

std::vector<Place> find_secrets(std::string_view text) {
  std::vector<Place> secrets;
  add_private_keys(text, secrets);
  add_tokens(text, secrets);
  add_named(text, secrets);
  return secrets;
}

}  // namespace scankit::redaction
