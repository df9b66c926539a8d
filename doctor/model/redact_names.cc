// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "doctor/base/text.h"
#include "doctor/model/redact.h"

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

namespace {

bool in_host_name(char c) { return is_alnum(c) || c == '.' || c == '-'; }

bool has_digit(std::string_view text) { return std::ranges::any_of(text, is_digit); }
bool has_letter(std::string_view text) {
  return std::ranges::any_of(text, [](char c) { return is_alnum(c) && !is_digit(c); });
}
bool looks_like_version(std::string_view name) {
  if (name.starts_with('v')) name.remove_prefix(1);
  return std::ranges::all_of(name, [](char c) { return is_digit(c) || c == '.'; });
}

// How sure the words before a name are that it is a host's.
enum class Told { Host, Node, WithColon };
struct HostPhrase {
  std::string_view words;  // in lower case, to be compared without regard to case
  Told told;               // Node: only names with a digit, a dot or a dash; WithColon: only "NAME:"
};
constexpr std::array<HostPhrase, 33> kHostPhrases{{{"srun: error: ", Told::WithColon},
                                                   {"slurmstepd: error: ", Told::WithColon},
                                                   {"resolve host ", Told::Host},
                                                   {"resolve host: ", Told::Host},
                                                   {"resolve hostname ", Told::Host},
                                                   {"resolve host address ", Told::Host},
                                                   {"resolve proxy: ", Told::Host},
                                                   {"unknown host ", Told::Host},
                                                   {"failed to resolve ", Told::Node},
                                                   {"name resolution for ", Told::Node},
                                                   {"connect to host ", Told::Host},
                                                   {"connect to ", Told::Node},
                                                   {"connected to ", Told::Node},
                                                   {"connecting to ", Told::Node},
                                                   {"connection to ", Told::Node},
                                                   {"log in to ", Told::Node},
                                                   {"ssh ", Told::Node},
                                                   {"host=", Told::Host},
                                                   {"hostname=", Told::Host},
                                                   {"hostname: ", Told::Host},
                                                   {"nodename=", Told::Host},
                                                   {"nodename: ", Told::Host},
                                                   {"nodelist=", Told::Host},
                                                   {"node=", Told::Node},
                                                   {"--host ", Told::Host},
                                                   {"--nodelist ", Told::Host},
                                                   {"master_addr=", Told::Host},
                                                   {"master_addr: ", Told::Host},
                                                   {" on node ", Told::Node},
                                                   {" on host ", Told::Node},
                                                   {" from host ", Told::Node},
                                                   {" from node ", Told::Node},
                                                   {"not known: ", Told::Node}}};

bool is_no_host(std::string_view name) {
  constexpr std::array<std::string_view, 10> kNone{
      "localhost", "none",    "true", "false", "null",
      "self",      "address", "name", "task",  "localhost.localdomain"};
  const std::string low = lowered(name);
  return std::ranges::find(kNone, low) != kNone.end() || low.starts_with("slurm");
}

Place name_at(std::string_view text, std::size_t at) {
  Place place{at, end_of_run(text, at, in_host_name)};
  while (place.end > place.start && (text[place.end - 1] == '.' || text[place.end - 1] == '-')) --place.end;
  return place;
}

void add_told(std::string_view text, const std::string& low, std::vector<Place>& hosts) {
  for (const HostPhrase& phrase : kHostPhrases)
    for (auto at = low.find(phrase.words); at != std::string::npos; at = low.find(phrase.words, at + 1)) {
      if (is_word(phrase.words[0]) && is_alnum(char_before(text, at))) continue;
      std::size_t start = at + phrase.words.size();
      while (start < text.size() && (text[start] == '\'' || text[start] == '"' || text[start] == '['))
        ++start;
      const Place place = name_at(text, start);
      const std::string_view name = place.in(text);
      const char behind = char_at(text, place.end);
      if (name.empty() || behind == '_' || behind == '/' || looks_like_version(name) || is_no_host(name))
        continue;
      if (phrase.told == Told::WithColon && behind != ':') continue;
      if (phrase.told == Told::Node && !is_distinct_host(name)) continue;
      if (phrase.told == Told::Host && !has_letter(name)) continue;
      hosts.push_back(place);
    }
}

// "slurmstepd: error: *** STEP 7.0 ON node17 CANCELLED AT ...".
void add_cancelled(std::string_view text, std::vector<Place>& hosts) {
  for (auto at = text.find(" ON "); at != std::string_view::npos; at = text.find(" ON ", at + 1)) {
    const Place place = name_at(text, at + 4);
    if (text.substr(place.end).starts_with(" CANCELLED") && place.end > place.start) hosts.push_back(place);
  }
}

// "[node17:12345] " as Open MPI and glibc's syslog ("Nov 23 13:44:42 node17 sshd[1]:") begin their lines.
void add_line_heads(std::string_view text, std::vector<Place>& hosts) {
  for (auto at = text.find('['); at != std::string_view::npos; at = text.find('[', at + 1)) {
    const Place place = name_at(text, at + 1);
    const std::string_view name = place.in(text);
    const std::size_t end = end_of_run(text, place.end + 1, is_digit);
    const bool process = char_at(text, place.end) == ':' && end > place.end + 1 && char_at(text, end) == ']';
    if (process && is_distinct_host(name) && !looks_like_version(name) && !name.starts_with("rank"))
      hosts.push_back(place);
  }
  for (auto at = text.find(':'); at != std::string_view::npos; at = text.find(':', at + 1)) {
    if (at < 9 || char_at(text, at + 3) != ':' || char_at(text, at + 6) != ' ') continue;
    const std::string_view day = text.substr(at - 6, 4);  // " 23 " of "Nov 23 13:44:42"
    if (day[0] != ' ' || !is_digit(day[2]) || day[3] != ' ' || !has_letter(text.substr(at - 9, 3))) continue;
    const Place place = name_at(text, at + 7);
    const std::size_t program =
        end_of_run(text, place.end + 1, [](char c) { return is_word(c) || c == '-'; });
    const char behind = char_at(text, program);
    if (place.end > place.start && char_at(text, place.end) == ' ' && program > place.end + 1 &&
        (behind == '[' || behind == ':') && !has_digit(text.substr(place.end + 1, 1)))
      hosts.push_back(place);
  }
}

std::size_t count_labels(std::string_view name) {
  return static_cast<std::size_t>(std::ranges::count(name, '.')) + 1;
}

// Modules of Python are dotted too: "torch.nn.functional", "spacy.lang.de", "threading.local".
bool is_fully_qualified(std::string_view name) {
  constexpr std::array<std::string_view, 4> kPublic{"com", "org", "edu", "gov"};
  constexpr std::array<std::string_view, 10> kPrivate{
      "local", "lan", "internal", "corp", "intra", "example", "cluster", "arpa", "localdomain", "hpc"};
  // Not those that end file names: "gz", "py", "so", "cc", "sh".
  constexpr std::array<std::string_view, 28> kCountries{
      "de", "uk", "fr", "ch", "jp", "cn", "kr", "eu", "us", "ca", "au", "nl", "se", "dk",
      "fi", "at", "be", "es", "br", "ru", "il", "sg", "tw", "nz", "cz", "it", "io", "ai"};
  const auto dot = name.rfind('.');
  if (dot == std::string_view::npos || name.find("..") != std::string_view::npos) return false;
  const std::string_view top = name.substr(dot + 1);
  const std::size_t labels = count_labels(name);
  const bool odd = name.find('-') != std::string_view::npos || has_digit(name.substr(0, name.find('.')));
  if (name.starts_with("www.") && labels > 2) return true;
  if (std::ranges::find(kPublic, top) != kPublic.end()) return true;
  if (top == "net" && odd) return true;  // not "models.net" and "self.net", which are networks
  if (std::ranges::find(kPrivate, top) != kPrivate.end())
    return odd || (labels > 2 && top != "local" && top != "internal");
  const bool country = std::ranges::find(kCountries, top) != kCountries.end();
  return country && labels > 2 && odd && !looks_like_version(name.substr(0, name.find('.')));
}

void add_fully_qualified(std::string_view text, std::vector<Place>& hosts) {
  for (std::size_t at = 0; at < text.size();) {
    if (!in_host_name(text[at]) && text[at] != '_') {
      ++at;
      continue;
    }
    const std::size_t end = end_of_run(text, at, [](char c) { return in_host_name(c) || c == '_'; });
    const Place place{at, std::min(name_at(text, at).end, end)};
    const std::string_view name = place.in(text);
    const char before = char_before(text, at), behind = char_at(text, place.end);
    const bool whole = place.end + 1 >= end && name.size() > 3 && name.size() < 254;
    if (whole && before != '/' && before != '@' && behind != '(' && is_alnum(name[0]) &&
        is_fully_qualified(name))
      hosts.push_back(place);
    at = end;
  }
}

}  // namespace

bool is_distinct_host(std::string_view name) {
  return name.size() > 2 && has_letter(name) &&
         (has_digit(name) || name.find_first_of(".-") != std::string_view::npos);
}

std::vector<Place> find_hosts(std::string_view text) {
  std::vector<Place> hosts;
  add_told(text, lowered(text), hosts);
  add_cancelled(text, hosts);
  add_line_heads(text, hosts);
  add_fully_qualified(text, hosts);
  return hosts;
}

}  // namespace scankit::redaction
