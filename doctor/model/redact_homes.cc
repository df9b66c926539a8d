// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "doctor/model/redact_text.h"

namespace scankit::redaction {
namespace {

constexpr std::string_view kEndOfName = "$`|<&/\"'\\:;, \t\r\n)]}>";

struct HomeParent {
  std::string_view folder;
  int depth;  // folders that may stand before it; -1 for any number
};
// A package may have a folder "users" or "u"; homes are near the root.
constexpr std::array<HomeParent, 9> kParents{{{"/home/", -1},
                                              {"/Users/", -1},
                                              {"/homes/", -1},
                                              {"/users/", 0},
                                              {"\\Users\\", -1},
                                              {"/people/", 2},
                                              {"/u/", 0},
                                              {"/staff/", 1},
                                              {"/students/", 2}}};

// Whether at most `most` folders stand before `at` in the path that it is in.
bool is_near_root(std::string_view text, std::size_t at, int most) {
  int folders = 0;
  for (std::size_t back = at; back > 0 && at - back < 64; --back) {
    const char c = text[back - 1];
    if (c == '/')
      ++folders;
    else if (!is_word(c) && c != '-' && c != '.')
      return folders <= most && (folders > 0 || back == at);
  }
  return at < 64 && folders <= most && (folders > 0 || at == 0);
}

// "Some User" in C:/Users/Some User/x. Behind a path that ends here, words go on as a name with capitals.
std::size_t end_of_windows_name(std::string_view text, std::size_t start) {
  std::size_t end = std::min(text.find_first_of(kEndOfName, start), text.size());
  for (int words = 0; words < 3 && char_at(text, end) == ' '; ++words) {
    const std::size_t next = std::min(text.find_first_of(kEndOfName, end + 1), text.size());
    const char first = char_at(text, end + 1), behind = char_at(text, next);
    if (next == end + 1 || !((first >= 'A' && first <= 'Z') || behind == '/' || behind == '\\')) break;
    end = next;
  }
  return end;
}

void add_below_parents(std::string_view text, std::vector<Place>& names) {
  for (const HomeParent& parent : kParents)
    for (auto at = text.find(parent.folder); at != std::string_view::npos;
         at = text.find(parent.folder, at + 1)) {
      const std::size_t start = at + parent.folder.size();
      if (parent.depth >= 0 && !is_near_root(text, at, parent.depth)) continue;
      const bool windows =
          at >= 2 && text[at - 1] == ':' && std::isalpha(static_cast<unsigned char>(text[at - 2])) != 0;
      const std::size_t end = windows ? end_of_windows_name(text, start)
                                      : std::min(text.find_first_of(kEndOfName, start), text.size());
      if (end > start) names.push_back({start, end});
    }
}

bool in_account(char c) { return is_word(c) || c == '-'; }

// "~NAME/x"; not "~2", "~Class()" and "~=".
void add_behind_tildes(std::string_view text, std::vector<Place>& names) {
  for (auto at = text.find('~'); at != std::string_view::npos; at = text.find('~', at + 1)) {
    const char before = char_before(text, at), first = char_at(text, at + 1);
    const bool starts = before == '\0' || is_space(before) || before == '"' || before == '\'' ||
                        before == '=' || (before == ':' && char_before(text, at - 1) != ':');
    if (!starts || !((first >= 'a' && first <= 'z') || first == '_')) continue;
    const std::size_t end = end_of_run(text, at + 1, in_account);
    const char behind = char_at(text, end);
    if (end - at > 3 && (behind == '\0' || behind == '/' || behind == ':' || behind == '"' ||
                         behind == '\'' || is_space(behind)))
      names.push_back({at + 1, end});
  }
}

// Folders for temporary files that programs name after who runs them.
void add_temporary(std::string_view text, std::vector<Place>& names) {
  for (const std::string_view stem : {"/pip-", "/pytest-of-", "/torchinductor_", "/tmux-of-"})
    for (auto at = text.find(stem); at != std::string_view::npos; at = text.find(stem, at + 1)) {
      const std::size_t start = at + stem.size();
      std::size_t end = end_of_run(text, start, in_account);
      if (stem == "/pip-") {
        const std::string_view name = text.substr(start, end - start);
        if (!name.ends_with("-build") || name == "req-build") continue;
        end -= 6;
      }
      if (end > start) names.push_back({start, end});
    }
}

}  // namespace

std::vector<Place> find_home_names(std::string_view text) {
  std::vector<Place> names;
  add_below_parents(text, names);
  add_behind_tildes(text, names);
  add_temporary(text, names);
  return names;
}

}  // namespace scankit::redaction
