// SPDX-License-Identifier: Apache-2.0
#include "ci/fleet/lines.h"

#include <algorithm>
#include <nlohmann/json.hpp>

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

std::chrono::seconds patience(int timeout) {
  // and ten seconds to start, to write and to be heard
  return std::chrono::seconds(timeout) + facts_limit(timeout) + std::chrono::seconds(10);
}

}  // namespace scankit::fleet
