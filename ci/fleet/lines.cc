// SPDX-License-Identifier: Apache-2.0
#include "ci/fleet/lines.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <thread>

#include "ci/fleet/report.h"
#include "doctor/base/say.h"

// Lines between nodes and launcher, the reassembly of files from them, and reading a directory of results.
namespace scankit::fleet {
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
  return std::string(kMark) + json.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n";
}

// A prefix is allowed: srun --label and kubectl --prefix put the node's name in front.
std::optional<Line> line_of(std::string_view text) {
  const auto at = text.find(kMark);
  if (at == std::string_view::npos) return std::nullopt;
  const Json json = Json::parse(text.substr(at + kMark.size()), nullptr, false);
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
            : Message(roster.error().message);
  for (Files& files : read_all(folder, names)) std::ranges::move(files, std::back_inserter(collected.files));
  return collected;
}

}  // namespace scankit::fleet
