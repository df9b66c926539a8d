// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "builder/installer/fetch/wheel_fetcher.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/model/json.h"

namespace scankit::installer {
namespace {

// Reads the sources from the strongest to the weakest: add_main() keeps the first main index that it gets,
// and add_more() drops a URL that is known already.
class Reader {
 public:
  explicit Reader(const Host& host) : host_(host) {}

  IndexSettings all() {
    read_variables();
    const std::string home = variable("HOME");
    const std::string config =
        variable("XDG_CONFIG_HOME").empty() ? home + "/.config" : variable("XDG_CONFIG_HOME");
    read_pip(variable("PIP_CONFIG_FILE"));
    for (const char* place : {"VIRTUAL_ENV", "CONDA_PREFIX"})
      if (!variable(place).empty()) read_pip(variable(place) + "/pip.conf");
    read_pip(config + "/pip/pip.conf");
    read_pip(home + "/.pip/pip.conf");
    read_uv(variable("UV_CONFIG_FILE"));
    read_uv(config + "/uv/uv.toml");
    read_pip("/etc/xdg/pip/pip.conf");
    read_pip("/etc/pip.conf");
    read_uv("/etc/uv/uv.toml");
    std::erase_if(settings_.indexes, [&](const IndexSettings::Index& one) { return one.url == main_.url; });
    if (!main_.url.empty()) settings_.indexes.insert(settings_.indexes.begin(), main_);
    return std::move(settings_);
  }

 private:
  std::string variable(const char* name) const { return host_.env(name).value_or(""); }

  void add_main(const std::string& url, const std::string& from) {
    if (main_.url.empty()) main_ = {std::string(trimmed(url)), from};
  }
  // Several URLs are separated by blanks. In UV_INDEX each may be NAME=URL.
  void add_more(const std::string& urls, const std::string& from) {
    std::istringstream words(urls);
    for (std::string word; words >> word;) {
      const auto scheme = word.find("://");
      const auto equals = word.find('=');
      if (equals != std::string::npos && scheme != std::string::npos && equals < scheme)
        word.erase(0, equals + 1);
      const auto same = [&](const IndexSettings::Index& one) { return one.url == word; };
      if (std::ranges::none_of(settings_.indexes, same)) settings_.indexes.push_back({word, from});
    }
  }

  void read_variables() {
    for (const char* name : {"PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL"})
      add_main(variable(name), name);
    for (const char* name : {"PIP_EXTRA_INDEX_URL", "UV_INDEX", "UV_EXTRA_INDEX_URL"})
      add_more(variable(name), name);
    settings_.certificates = variable("PIP_CERT");
  }

  // pip.conf is an INI file, with [global] and one section for each command. '_' and '-' mean the same in a
  // key, and a line that begins with a blank continues the value before it. `key` is "" in the sections that
  // do not concern us.
  void read_pip(const std::string& path) {
    const auto text = path.empty() ? Result<std::string>(Error{}) : host_.read_file(path, 1u << 20);
    std::istringstream lines(text ? *text : "");
    std::string section, key;
    for (std::string line; std::getline(lines, line);) {
      const std::string word(trimmed(line));
      if (word.empty() || word[0] == '#' || word[0] == ';') continue;
      const auto equals = word.find_first_of("=:");
      if (word[0] == '[') {
        section = word;
        key.clear();
      } else if (line[0] == ' ' || line[0] == '\t') {
        take_pip(key, word, path);
      } else if (equals != std::string::npos &&
                 (section == "[global]" || section == "[install]" || section == "[download]")) {
        key = trimmed(word.substr(0, equals));
        std::ranges::replace(key, '_', '-');
        take_pip(key, std::string(trimmed(word.substr(equals + 1))), path);
      } else {
        key.clear();
      }
    }
  }
  // Called for each line of a value, so a multi-line extra-index-url adds one index for each line.
  void take_pip(const std::string& key, const std::string& value, const std::string& path) {
    if (key == "index-url" && !value.empty()) add_main(value, path);
    if (key == "extra-index-url") add_more(value, path);
    if (key == "cert" && settings_.certificates.empty()) settings_.certificates = value;
  }

  // As much TOML as these keys need: KEY = "text" or ["text", ...] on one line, [[index]] and [pip]. An
  // [[index]] is complete at the next section only, since "default" may come after "url".
  void read_uv(const std::string& path) {
    const auto text = path.empty() ? Result<std::string>(Error{}) : host_.read_file(path, 1u << 20);
    std::istringstream lines(text ? *text : "");
    std::string section, url;
    bool is_main = false;
    const auto end_index = [&] {
      if (section == "[[index]]" && !url.empty()) {
        if (is_main) add_main(url, path);
        if (!is_main) add_more(url, path);
      }
      url.clear();
      is_main = false;
    };
    for (std::string line; std::getline(lines, line);) {
      const std::string word(trimmed(line));
      const auto equals = word.find('=');
      if (word.starts_with("[")) {
        end_index();
        section = trimmed(word.substr(0, word.find('#')));
      } else if (equals != std::string::npos && word[0] != '#') {
        const std::string key(trimmed(word.substr(0, equals))), value = word.substr(equals + 1);
        if (section == "[[index]]" && key == "url") url = quoted(value);
        if (section == "[[index]]" && key == "default") is_main = trimmed(value).starts_with("true");
        if ((section.empty() || section == "[pip]") && key == "index-url") add_main(quoted(value), path);
        if ((section.empty() || section == "[pip]") && key == "extra-index-url")
          add_more(quoted(value), path);
      }
    }
    end_index();
  }
  // Every text in quotes, with a blank between them.
  static std::string quoted(const std::string& value) {
    std::string texts;
    for (std::size_t at = value.find_first_of("\"'#"); at < value.size() && value[at] != '#';) {
      const auto end = value.find(value[at], at + 1);
      if (end == std::string::npos) break;
      texts += (texts.empty() ? "" : " ") + value.substr(at + 1, end - at - 1);
      at = value.find_first_of("\"'#", end + 1);
    }
    return texts;
  }

  const Host& host_;
  IndexSettings settings_;
  IndexSettings::Index main_;
};

}  // namespace

IndexSettings index_settings(const Host& host) { return Reader(host).all(); }

std::string how_to_name_an_index() {
  return say(
      "configure the package index of your site: PIP_INDEX_URL, or index-url in ~/.config/pip/pip.conf or "
      "~/.config/uv/uv.toml; or install pip or uv");
}

// Pages come from somebody else's server. Any cut or hostile page must end the loops here and read nothing
// outside the text; ci/fuzz/text_targets.cc and the tests send such pages through parse_index_page().

namespace {

struct UrlParts {
  std::string scheme, user, host, path;  // "https", "name:secret@", "host:8080", "/simple/x?y"
};

// All parts are empty if the URL has no "://". The path includes query and fragment.
UrlParts url_parts(const std::string& url) {
  UrlParts parts;
  const auto colon = url.find("://");
  if (colon == std::string::npos) return parts;
  parts.scheme = url.substr(0, colon);
  const auto end = std::min(url.find_first_of("/?#", colon + 3), url.size());
  const std::string authority = url.substr(colon + 3, end - colon - 3);
  const auto at = authority.rfind('@');
  if (at != std::string::npos) parts.user = authority.substr(0, at + 1);
  parts.host = at == std::string::npos ? authority : authority.substr(at + 1);
  parts.path = url.substr(end);
  return parts;
}

// RFC 3986, 4.2: a colon in the first segment makes the reference absolute.
bool has_scheme(const std::string& reference) {
  const auto colon = reference.find(':');
  return colon != std::string::npos && colon > 0 && reference.find_first_of("/?#") > colon;
}

// Replaces &amp; &lt; &gt; &quot; &apos; and numeric references to ASCII, which is what index pages write.
// Anything else stays, "&" included: a query may have a bare one.
std::string decoded(std::string_view text) {
  static const std::map<std::string, char, std::less<>> kNames = {
      {"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}};
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto end = text[at] == '&' ? text.find(';', at) : std::string_view::npos;
    if (end == std::string_view::npos || end - at > 8) {
      out += text[at];
      continue;
    }
    const std::string name(text.substr(at + 1, end - at - 1));
    const auto known = kNames.find(name);
    unsigned long code = 0;
    if (name.size() > 1 && name[0] == '#')
      code = name[1] == 'x' || name[1] == 'X' ? std::strtoul(name.c_str() + 2, nullptr, 16)
                                              : std::strtoul(name.c_str() + 1, nullptr, 10);
    if (known == kNames.end() && (code == 0 || code > 126)) {
      out += text[at];
      continue;
    }
    out += known != kNames.end() ? known->second : static_cast<char>(code);
    at = end;
  }
  return out;
}

bool same_letters(std::string_view one, std::string_view other) {
  return std::ranges::equal(one, other, [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
  });
}

// Name -> value of what is between "<a" and ">", names in lower case. Values may be in either kind of quotes
// or in none; an attribute without a value has "".
std::map<std::string, std::string> attributes(std::string_view tag) {
  std::map<std::string, std::string> all;
  std::size_t at = 0;
  while ((at = tag.find_first_not_of(" \t\r\n/", at)) != std::string_view::npos) {
    const auto end = std::min(tag.find_first_of(" \t\r\n=/", at), tag.size());
    const std::string name = lowered(tag.substr(at, end - at));
    at = tag.find_first_not_of(" \t\r\n", end);
    if (at == std::string_view::npos || tag[at] != '=') {
      all[name] = "";
      if (end == at) ++at;  // never the same place twice
      continue;
    }
    at = tag.find_first_not_of(" \t\r\n", at + 1);
    if (at == std::string_view::npos) break;
    const bool quote = tag[at] == '"' || tag[at] == '\'';
    const auto stop =
        std::min(quote ? tag.find(tag[at], at + 1) : tag.find_first_of(" \t\r\n", at), tag.size());
    all[name] = decoded(tag.substr(at + (quote ? 1 : 0), stop - at - (quote ? 1 : 0)));
    at = std::min(stop + 1, tag.size());
  }
  return all;
}

// Where a tag ends: '>' outside quotes.
std::size_t tag_end(std::string_view page, std::size_t at) {
  char quote = 0;
  for (; at < page.size(); ++at) {
    if (quote == 0 && page[at] == '>') return at;
    if (quote == 0 && (page[at] == '"' || page[at] == '\'')) {
      quote = page[at];
    } else if (page[at] == quote) {
      quote = 0;
    }
  }
  return std::string_view::npos;
}

// PEP 503 has the hash in the URL's fragment: "#sha256=HEX". The file's name is the last part of the path.
IndexFile index_file_of(const std::string& url, const std::string& base) {
  IndexFile file;
  file.url = resolve_url(base, url);
  const auto hash = file.url.find('#');
  if (hash != std::string::npos) {
    const std::string mark = "sha256=";
    const auto at = file.url.find(mark, hash);
    if (at != std::string::npos) file.sha256 = file.url.substr(at + mark.size(), 64);
    file.url.erase(hash);
  }
  file.name = path_basename(file.url.substr(0, file.url.find('?')));
  return file;
}

// Reads <a href> and <base href> and skips every other tag: PEP 503 defines nothing more. Not a parser of
// HTML, so that a page with errors still gives its links.
std::vector<IndexFile> parse_html(std::string_view page, const std::string& url) {
  std::vector<IndexFile> files;
  std::string base = url;
  for (std::size_t at = 0; (at = page.find('<', at)) != std::string_view::npos;) {
    const auto name = page.substr(at + 1, 5);
    const bool is_link = name.size() > 1 && (name[0] == 'a' || name[0] == 'A') &&
                         std::isspace(static_cast<unsigned char>(name[1])) != 0;
    const bool is_base = same_letters(name.substr(0, 4), "base");
    const auto end = tag_end(page, ++at);
    if (end == std::string_view::npos) break;
    if (!is_link && !is_base) continue;
    const auto given = attributes(page.substr(at + (is_link ? 1 : 4), end - at - (is_link ? 1 : 4)));
    at = end;
    const auto href = given.find("href");
    if (href == given.end()) continue;
    if (is_base) {
      base = resolve_url(url, href->second);
      continue;
    }
    files.push_back(index_file_of(href->second, base));
    files.back().yanked = given.contains("data-yanked");
  }
  return files;
}

// PEP 691: "yanked" is a boolean or the reason as a text. An entry without a URL is skipped.
Result<std::vector<IndexFile>> parse_json(std::string_view page, const std::string& url) {
  const auto json = parse_json_or_discard<nlohmann::json>(page);
  if (!json.is_object() || !json.contains("files") || !json["files"].is_array())
    return Error{Errc::Malformed, message("{} is not a page of a package index (PEP 691)", url), ""};
  std::vector<IndexFile> files;
  for (const auto& one : json["files"]) {
    if (json_text(one, "url").empty()) continue;
    IndexFile file = index_file_of(json_text(one, "url"), url);
    if (const std::string name = json_text(one, "filename"); !name.empty()) file.name = name;
    if (one.contains("hashes"))
      if (const std::string hash = json_text(one["hashes"], "sha256"); !hash.empty()) file.sha256 = hash;
    const auto yanked = one.find("yanked");
    file.yanked =
        yanked != one.end() && (yanked->is_string() || (yanked->is_boolean() && yanked->get<bool>()));
    files.push_back(std::move(file));
  }
  return files;
}

}  // namespace

const char* const kIndexTypes =
    "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1";

// The cases of RFC 3986, 5.2.2: absolute, "//host/path", "/path", and relative to the base's directory.
std::string resolve_url(const std::string& base, const std::string& reference) {
  const UrlParts from = url_parts(base);
  std::string absolute = reference;
  if (has_scheme(reference)) {
    const UrlParts to = url_parts(reference);
    if (to.user.empty() && to.host == from.host && to.scheme == from.scheme)
      absolute = to.scheme + "://" + from.user + to.host + to.path;
    return absolute;
  }
  const std::string root = from.scheme + "://";
  if (reference.starts_with("//")) return from.scheme + ":" + reference;
  std::string folder = from.path.substr(0, from.path.find_first_of("?#"));
  folder = folder.empty() ? "/" : folder.substr(0, folder.rfind('/') + 1);
  const auto tail = std::min(reference.find_first_of("?#"), reference.size());
  std::string path =
      reference.starts_with("/") ? reference.substr(0, tail) : folder + reference.substr(0, tail);
  const bool is_folder = path.ends_with('/');
  path = path_normalize(path);
  if (is_folder && !path.ends_with('/')) path += '/';
  return root + from.user + from.host + path + reference.substr(tail);
}

std::string project_url(const std::string& index, const std::string& normalised_name) {
  std::string url = index.substr(0, index.find_first_of("?#"));
  while (url.ends_with('/')) url.pop_back();
  return url + "/" + normalised_name + "/";
}

Result<std::vector<IndexFile>> parse_index_page(std::string_view page, const std::string& url) {
  const auto begin = page.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return Error{Errc::Malformed, message("{} is an empty page", url), ""};
  if (page[begin] == '{') return parse_json(page, url);
  if (page[begin] != '<')
    return Error{Errc::Malformed, message("{} is not a page of a package index (PEP 503)", url), ""};
  return parse_html(page, url);
}

}  // namespace scankit::installer
