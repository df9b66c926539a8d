// SPDX-License-Identifier: Apache-2.0
#include "ci/fleet/roster.h"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <nlohmann/json.hpp>

#include "doctor/base/say.h"
#include "doctor/host/host.h"
#include "doctor/model/json.h"

// First the lists of hosts, then fleet.json and its lock.
namespace scankit::fleet {
namespace {

// More than the largest cluster has; a typing error such as node[1-99999999] must not fill the memory.
constexpr std::size_t kMostHosts = 65536;
constexpr std::size_t kMostDigits = 9;

using Names = std::vector<std::string>;

Error wrong(std::string_view list, Message why) {
  return {Errc::InvalidArgument, message("\"{}\": {}", list, why),
          message("write node[1-4], node[01-16,20], or names separated by commas")};
}

bool is_number(std::string_view text) {
  return !text.empty() && text.size() <= kMostDigits &&
         text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::size_t number(std::string_view digits) {
  std::size_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

// "1-3" or "07". Numbers are padded with zeros to the length of the first one, as Slurm does.
Result<Names> one_range(std::string_view list, std::string_view range) {
  const std::size_t dash = range.find('-');
  const std::string_view low = range.substr(0, dash),
                         high = dash == std::string_view::npos ? low : range.substr(dash + 1);
  if (!is_number(low) || !is_number(high))
    return wrong(list, message("[{}] is not a range of numbers", range));
  const std::size_t from = number(low), to = number(high);
  if (to < from) return wrong(list, message("the range {} is reversed", range));
  if (to - from >= kMostHosts) return wrong(list, message("more than {} names", kMostHosts));
  Names names;
  for (std::size_t at = from; at <= to; ++at) {
    const std::string digits = std::to_string(at);
    names.push_back(std::string(low.size() - std::min(low.size(), digits.size()), '0') + digits);
  }
  return names;
}

// The text between two brackets: "1-3,7".
Result<Names> ranges(std::string_view list, std::string_view inside) {
  Names names;
  for (std::size_t begin = 0; begin <= inside.size();) {
    const std::size_t comma = std::min(inside.find(',', begin), inside.size());
    SCANKIT_TRY(const Names more, one_range(list, inside.substr(begin, comma - begin)));
    names.insert(names.end(), more.begin(), more.end());
    if (names.size() > kMostHosts) return wrong(list, message("more than {} names", kMostHosts));
    begin = comma + 1;
  }
  return names;
}

// One element of the list. With several brackets the result is every combination of them.
Result<Names> one_pattern(std::string_view list, std::string_view pattern) {
  Names names{""};
  while (!pattern.empty()) {
    const std::size_t open = std::min(pattern.find('['), pattern.size());
    for (std::string& name : names) name += pattern.substr(0, open);
    pattern.remove_prefix(open);
    if (pattern.empty()) break;
    const std::size_t close = pattern.find(']');
    if (close == std::string_view::npos) return wrong(list, message("[ without ]"));
    SCANKIT_TRY(const Names middles, ranges(list, pattern.substr(1, close - 1)));
    if (middles.size() * names.size() > kMostHosts)
      return wrong(list, message("more than {} names", kMostHosts));
    Names longer;
    for (const std::string& name : names)
      for (const std::string& middle : middles) longer.push_back(name + middle);
    names = std::move(longer);
    pattern.remove_prefix(close + 1);
  }
  if (names.front().find(']') != std::string::npos) return wrong(list, message("] without ["));
  return names;
}

}  // namespace

Result<std::vector<std::string>> expanded_hosts(std::string_view list) {
  constexpr std::string_view kBetween = ", \t\n";
  Names names;
  for (std::size_t begin = 0; begin < list.size();) {
    // A comma inside of brackets separates numbers, not names.
    std::size_t end = begin;
    for (bool inside = false; end < list.size(); ++end) {
      if (list[end] == '[') inside = true;
      if (list[end] == ']') inside = false;
      if (!inside && kBetween.find(list[end]) != std::string_view::npos) break;
    }
    if (end > begin) {
      SCANKIT_TRY(const Names more, one_pattern(list, list.substr(begin, end - begin)));
      names.insert(names.end(), more.begin(), more.end());
      if (names.size() > kMostHosts) return wrong(list, message("more than {} names", kMostHosts));
    }
    begin = end + 1;
  }
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());  // clang 14 does not read ranges::unique
  return names;
}

namespace {
using Json = nlohmann::ordered_json;

Json asked_json(const AskedNode& node) {
  return {{"asked", node.asked},           {"started", node.started}, {"reported", node.reported},
          {"node_clock", node.node_clock}, {"gave_up", node.gave_up}, {"over", node.over},
          {"problem", node.problem}};
}

AskedNode asked_of(const Json& json) {
  AskedNode node;
  node.asked = json.at("asked").get<double>();
  node.started = json.at("started").get<double>();
  node.reported = json.at("reported").get<double>();
  node.node_clock = json.at("node_clock").get<double>();
  node.gave_up = json.at("gave_up").get<bool>();
  node.over = json.at("over").get<bool>();
  node.problem = json.at("problem").get<std::string>();
  return node;
}

Roster parsed(const Json& json) {
  using Words = std::map<std::string, std::string>;
  Roster roster;
  roster.fleet = json.at("fleet").get<std::string>();
  roster.tool_version = json.at("tool_version").get<std::string>();
  roster.engine = json.at("engine").get<std::string>();
  roster.job = json.at("job").get<std::string>();
  roster.launch = json.at("launch").get<std::string>();
  roster.command = json.at("command").get<std::vector<std::string>>();
  roster.command_sha256 = json.at("command_sha256").get<std::string>();
  roster.inputs = json.at("inputs").get<Words>();
  roster.timeout = json.at("timeout").get<double>();
  for (const auto& [name, node] : json.at("nodes").items()) roster.nodes[name] = asked_of(node);
  roster.absent = json.at("absent").get<Words>();
  roster.said = json.at("said").get<std::vector<std::string>>();
  return roster;
}

}  // namespace

std::string roster_text(const Roster& roster) {
  Json json{{"$schema", kRosterSchema},
            {"fleet", roster.fleet},
            {"tool_version", roster.tool_version},
            {"engine", roster.engine},
            {"job", roster.job},
            {"launch", roster.launch},
            {"command", roster.command},
            {"command_sha256", roster.command_sha256},
            {"inputs", roster.inputs},
            {"timeout", roster.timeout},
            {"nodes", Json::object()},
            {"absent", roster.absent},
            {"said", roster.said}};
  for (const auto& [name, node] : roster.nodes) json["nodes"][name] = asked_json(node);
  return json_document(json, 1);
}

Result<Roster> roster_of(const std::string& text) {
  const Json json = parse_json_or_discard<Json>(text);
  const std::string hint = say("use another directory, or move the file away");
  if (!json.is_object() || !json.contains("$schema") || !json["$schema"].is_string())
    return Error{Errc::Malformed, message("{} is not the list of a fleet's nodes", kRosterFile), hint};
  if (json["$schema"] != kRosterSchema)
    return Error{Errc::Unsupported,
                 message("{} has schema {}, and this scankit reads {}", kRosterFile,
                         json["$schema"].get<std::string>(), kRosterSchema),
                 message("use the scankit that wrote it, or a newer one")};
  try {
    return parsed(json);
  } catch (const Json::exception&) {
    return Error{Errc::Malformed, message("{} is damaged", kRosterFile), hint};
  }
}

Result<Roster> read_roster(const std::string& folder) {
  // Through Host, which never waits for a FIFO: anybody may have written into the directory.
  constexpr std::size_t kMost = 64u << 20;
  SCANKIT_TRY(const std::string text, make_real_host()->read_file(path_join(folder, kRosterFile), kMost));
  return roster_of(text);
}

Result<void> write_roster(const std::string& folder, const Roster& roster) {
  return write_file_atomically(path_join(folder, kRosterFile), roster_text(roster));
}

Result<Descriptor> lock_folder(const std::string& folder) {
  const std::string path = path_join(folder, "fleet.lock");
  Descriptor fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (fd.get() < 0)
    return Error{errno == EACCES || errno == EROFS ? Errc::PermissionDenied : Errc::Io,
                 message("cannot open {}: {}", path, std::strerror(errno)),
                 message("choose a writable directory with --out")};
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return fd;
  // Some network file systems have no locks (Lustre without -o flock): the fleet's id in fleet.json is then
  // what two launchers differ in.
  if (errno != EWOULDBLOCK) return fd;
  return Error{Errc::Conflict, message("another scankit fleet run is writing to {}", folder),
               message("wait until it ends, or choose another directory with --out")};
}

}  // namespace scankit::fleet
