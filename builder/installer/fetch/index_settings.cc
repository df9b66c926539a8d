// SPDX-License-Identifier: Apache-2.0
#include "builder/installer/fetch/index_settings.h"

#include <algorithm>
#include <sstream>

#include "doctor/base/say.h"
#include "doctor/base/text.h"

namespace scankit {
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

}  // namespace scankit
