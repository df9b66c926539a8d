// SPDX-License-Identifier: Apache-2.0
#include "ci/fleet/node_result.h"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <thread>

#include "ci/fleet/report.h"
#include "doctor/base/files.h"
#include "doctor/base/message.h"
#include "doctor/base/say.h"
#include "doctor/model/json.h"

// A node's file: one line of JSON, {header, "result": the command's own JSON, "sha256": digest of
// everything before}. The header can be read without parsing the result, which may be large, and the
// digest at the end shows that the file is whole.
namespace scankit::fleet {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kSchema = "urn:scankit:fleet-node:";
constexpr std::string_view kResultKey = R"(,"result":)";
constexpr std::string_view kDigestKey = R"(,"sha256":")";
constexpr std::size_t kDigestTail = kDigestKey.size() + 64 + 2;  // and the quote and the brace behind it

Json summary_json(const Summary& summary) {
  Json causes = Json::array(), failures = Json::array(), measures = Json::array();
  for (const Cause& c : summary.causes)
    causes.push_back(
        {{"cause", c.cause}, {"severity", c.severity}, {"subject", c.subject}, {"summary", c.summary}});
  for (const Failure& f : summary.failures) failures.push_back({{"what", f.what}, {"why", f.why}});
  for (const Measure& m : summary.measures)
    measures.push_back({{"name", m.name}, {"unit", m.unit}, {"value", m.value}, {"disturbed", m.disturbed}});
  return {{"verdict", summary.verdict}, {"failed", summary.failed}, {"unknown", summary.unknown},
          {"causes", causes},           {"failures", failures},     {"measures", measures}};
}

Summary summary_of(const Json& json) {
  Summary summary;
  summary.verdict = json.at("verdict").get<std::string>();
  summary.failed = whole_number<std::size_t>(json.at("failed"));
  summary.unknown = json.at("unknown").get<std::vector<std::string>>();
  for (const Json& c : json.at("causes"))
    summary.causes.push_back({c.at("cause").get<std::string>(), c.at("severity").get<std::string>(),
                              c.at("subject").get<std::string>(), c.at("summary").get<std::string>()});
  for (const Json& f : json.at("failures"))
    summary.failures.push_back({f.at("what").get<std::string>(), f.at("why").get<std::string>()});
  for (const Json& m : json.at("measures"))
    summary.measures.push_back({m.at("name").get<std::string>(), m.at("unit").get<std::string>(),
                                m.at("value").get<double>(), m.at("disturbed").get<bool>()});
  return summary;
}

NodeResult node_of(const Json& json) {
  using Words = std::map<std::string, std::string>;
  NodeResult node;
  node.fleet = json.at("fleet").get<std::string>();
  node.node = json.at("node").get<std::string>();
  node.tool_version = json.at("tool_version").get<std::string>();
  node.command = json.at("command").get<std::vector<std::string>>();
  node.command_sha256 = json.at("command_sha256").get<std::string>();
  node.inputs = json.at("inputs").get<Words>();
  node.launched = json.at("launched").get<double>();
  node.started = json.at("started").get<double>();
  node.ended = json.at("ended").get<double>();
  node.end = json.at("end").get<std::string>();
  node.exit_status = whole_number<int>(json.at("exit_status"));
  node.signal = whole_number<int>(json.at("signal"));
  node.said = json.at("said").get<std::string>();
  node.facts = json.at("facts").get<Words>();
  node.facts_problem = json.at("facts_problem").get<std::string>();
  node.summary = summary_of(json.at("summary"));
  return node;
}

// A file that cannot be used, with the reason.
ReadNode not_whole(TextState state, Message why) { return {state, std::move(why), {}}; }

// The number behind "urn:scankit:fleet-node:"; 0 where the text does not begin as such a file does.
int schema_of(std::string_view text) {
  const std::string head = R"({"$schema":")" + std::string(kSchema);
  if (!text.starts_with(head)) return 0;
  int version = 0;
  for (std::size_t i = head.size(); i < text.size() && i < head.size() + 6; ++i) {
    if (std::isdigit(static_cast<unsigned char>(text[i])) == 0) return text[i] == '"' ? version : 0;
    version = 10 * version + (text[i] - '0');
  }
  return 0;
}

}  // namespace

std::string node_text(const NodeResult& node, std::string_view result) {
  const std::string schema = std::string(kSchema) + std::to_string(kNodeSchema);
  const Json json{{"$schema", schema},
                  {"fleet", node.fleet},
                  {"node", node.node},
                  {"tool_version", node.tool_version},
                  {"command", node.command},
                  {"command_sha256", node.command_sha256},
                  {"inputs", node.inputs},
                  {"launched", node.launched},
                  {"started", node.started},
                  {"ended", node.ended},
                  {"end", node.end},
                  {"exit_status", node.exit_status},
                  {"signal", node.signal},
                  {"said", node.said},
                  {"facts", node.facts},
                  {"facts_problem", node.facts_problem},
                  {"summary", summary_json(node.summary)}};
  // ASCII alone: the line may pass through a log.
  std::string text = dump_ascii_json(json);
  const Json whole = parse_json_or_discard<Json>(result);
  text.pop_back();
  text += kResultKey;
  text += whole.is_discarded() ? "null" : dump_ascii_json(whole);
  return with_digest(std::move(text));
}

std::string with_digest(std::string body) {
  const std::string digest = sha256_hex(body);
  return std::move(body).append(kDigestKey) + digest + "\"}\n";
}

// The checks go from the outside to the inside: schema, completeness, digest, header. "result"
// is not parsed.
ReadNode read_node_text(std::string_view text) {
  while (text.ends_with('\n') || text.ends_with('\r')) text.remove_suffix(1);
  const int schema = schema_of(text);
  if (schema == 0) return not_whole(TextState::Foreign, message("it is not the result of a fleet node"));
  if (schema > kNodeSchema)
    return not_whole(
        TextState::Newer,
        message("it was written by a newer scankit (schema {}, this one reads {}): merge with that "
                "one",
                schema, kNodeSchema));
  if (text.size() < kDigestTail || text.substr(text.size() - kDigestTail, kDigestKey.size()) != kDigestKey)
    return not_whole(TextState::Truncated, message("it is truncated after {} bytes", text.size()));
  const std::string_view body = text.substr(0, text.size() - kDigestTail);
  if (text.substr(text.size() - 66, 64) != sha256_hex(body) || !text.ends_with("\"}"))
    return not_whole(TextState::Damaged, message("its checksum does not match (sha256)"));
  // A quote inside a text of the header is written \", so these bytes are the key.
  const auto border = body.find(kResultKey);
  if (border == std::string_view::npos)
    return not_whole(TextState::Damaged, message("it does not match schema {}", schema));
  try {
    return {TextState::Whole, "", node_of(parse_json<Json>(std::string(body.substr(0, border)) + "}"))};
  } catch (const Json::exception&) {
    return not_whole(TextState::Damaged, message("it does not match schema {}", schema));
  }
}

std::string node_file_name(std::string_view node) {
  static constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string name;
  for (const char c : node) {
    const auto byte = static_cast<unsigned char>(c);
    const bool safe =
        byte < 0x80 && (std::isalnum(byte) != 0 || c == '-' || c == '_' || (c == '.' && !name.empty()));
    if (safe)
      name += c;
    else
      (name += '%').append({kHex[byte >> 4], kHex[byte & 15u]});
  }
  // 255 bytes are what a file's name may have; what is longer goes by its digest.
  if (name.size() > 200) name = name.substr(0, 120) + "%" + sha256_hex(node);
  return name + ".json";
}

// Lines between nodes and launcher, the reassembly of files from them, and reading a directory of results.

namespace {
using Json = nlohmann::ordered_json;
constexpr std::string_view kMark = "scankit-fleet ";
}  // namespace

std::string line_text(const Line& line) {
  const Json json{{"event", line.event},
                  {"node", line.node},
                  {"clock", line.clock},
                  {"step", line.step},
                  {"text", line.text}};
  return std::string(kMark) + dump_ascii_json(json) + "\n";
}

// A prefix is allowed: srun --label and kubectl --prefix put the node's name in front.
std::optional<Line> line_of(std::string_view text) {
  const auto at = text.find(kMark);
  if (at == std::string_view::npos) return std::nullopt;
  const Json json = parse_json_or_discard<Json>(text.substr(at + kMark.size()));
  try {
    return Line{json.at("event").get<std::string>(), json.at("node").get<std::string>(),
                json.at("clock").get<double>(), json.at("step").get<std::string>(),
                json.at("text").get<std::string>()};
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

std::string as_parts(const std::string& node, std::string_view text) {
  constexpr std::size_t kPart = 400;  // every byte of it may need a second one as JSON
  std::string lines;
  for (std::size_t at = 0; at < text.size(); at += kPart)
    lines += line_text({"part", node, static_cast<double>(at), "", std::string(text.substr(at, kPart))});
  return lines;
}

// Part 0 starts a new text, since a restarted container sends its file again. Lines of one node
// arrive in order.
std::optional<std::string> Assembler::add(const Line& line) {
  if (line.event == "started") texts_.erase(line.node);
  if (line.event == "part") {
    std::string& text = texts_[line.node];
    if (line.clock == 0) text.clear();
    text += line.text;
  }
  const auto found = texts_.find(line.node);
  if (line.event != "done" || found == texts_.end()) return std::nullopt;
  std::string text = std::move(found->second);
  texts_.erase(found);
  return text;
}

std::chrono::seconds facts_limit(int timeout) { return std::chrono::seconds(std::min(timeout, 30)); }

std::chrono::seconds node_deadline(int timeout) {
  // and ten seconds to start, to write and to be heard
  return std::chrono::seconds(timeout) + facts_limit(timeout) + std::chrono::seconds(10);
}

namespace {

// A node's file is some hundred kilobytes; a log holds those of all nodes.
constexpr std::size_t kLargestFile = 64u << 20, kLargestLog = 1u << 30;

using Files = std::vector<Collected::File>;

Collected::File problem(const std::string& name, Message why) {
  return {name, {TextState::Foreign, std::move(why), {}}};
}

// A log, such as that of `kubectl logs --prefix` or srun's own output, which contains the lines of many
// nodes among other text. A file without its end is read as well, and then reported as truncated.
void take_log(const std::string& name, const std::string& text, Files& files) {
  Assembler assembler;
  LineCutter cutter;
  std::size_t number = 0, told = 0;
  const auto take = [&](std::string_view line_text) {
    ++number;
    const auto line = line_of(line_text);
    if (!line) return;
    ++told;
    if (const auto whole = assembler.add(*line))
      files.push_back({name + ":" + std::to_string(number), read_node_text(*whole)});
  };
  cutter.add(text, take);
  for (const auto& [node, part] : assembler.unfinished())
    files.push_back({name + ":" + node, read_node_text(part)});
  if (told == 0) files.push_back(problem(name, message("it is not the result of a fleet node")));
}

// write_file_atomically() writes to NAME.XXXXXX and renames it when it is complete.
bool left_by_a_killed_write(const std::string& name) {
  return name.size() > 12 && name.substr(name.size() - 12).starts_with(".json.");
}

void take_file(const std::string& folder, const std::string& name, bool regular, Files& files) {
  if (name == kRosterFile || name == "fleet.lock") return;
  if (!regular) {
    files.push_back(problem(name, message("it is not a regular file")));
    return;
  }
  if (left_by_a_killed_write(name)) {
    files.push_back(
        {name,
         {TextState::Truncated, message("it is from a process that was killed while it wrote it"), {}}});
    return;
  }
  const bool node_file = name.ends_with(".json");
  auto text = read_whole_file(path_join(folder, name), node_file ? kLargestFile : kLargestLog);
  if (!text)
    files.push_back(problem(name, text.error().message));
  else if (node_file)
    files.push_back({name, read_node_text(*text)});
  else
    take_log(name, *text, files);
}

using ListedNames = std::vector<std::pair<std::string, bool>>;  // and whether it is a regular file

// Reads all files with several threads, since hashing is most of the work.
std::vector<Files> read_all(const std::string& folder, const ListedNames& names) {
  std::vector<Files> all(names.size());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < names.size(); i = next++)
      take_file(folder, names[i].first, names[i].second, all[i]);
  };
  std::vector<std::thread> helpers;
  const std::size_t most = std::min<std::size_t>(names.size() / 16, std::thread::hardware_concurrency());
  for (std::size_t i = 1; i < std::min<std::size_t>(most, 8); ++i) helpers.emplace_back(work);
  work();
  for (std::thread& helper : helpers) helper.join();
  return all;
}

}  // namespace

// Every file is collected, also what does not belong there: it is reported, not ignored. A missing roster
// is only a problem if the user does not name the nodes.
Result<Collected> collect(const std::string& folder) {
  Collected collected;
  collected.folder = folder;
  std::error_code code;
  ListedNames names;
  for (std::filesystem::directory_iterator entry(folder, code), end; !code && entry != end;
       entry.increment(code))
    names.emplace_back(entry->path().filename().string(), entry->is_regular_file());
  if (code)
    return Error{Errc::NotFound, message("cannot read the directory {}: {}", folder, code.message()),
                 message("give the directory that scankit fleet run --out wrote to")};
  std::ranges::sort(names);
  if (auto roster = read_roster(folder))
    collected.roster = std::move(*roster);
  else
    collected.roster_problem =
        roster.error().code == Errc::NotFound
            ? message("{} not found in {}: the expected nodes are not known; list them with --expect",
                      kRosterFile, folder)
            : clauses_of({roster.error().message, roster.error().hint});
  for (Files& files : read_all(folder, names)) std::ranges::move(files, std::back_inserter(collected.files));
  return collected;
}

}  // namespace scankit::fleet
