// SPDX-License-Identifier: Apache-2.0
#include "ci/fleet/node_result.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "doctor/base/files.h"
#include "doctor/base/message.h"
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
  std::string text = json.dump(-1, ' ', true, Json::error_handler_t::replace);
  const Json whole = Json::parse(result, nullptr, false);
  text.pop_back();
  text += kResultKey;
  text += whole.is_discarded() ? "null" : whole.dump(-1, ' ', true, Json::error_handler_t::replace);
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
    return {TextState::Whole, "", node_of(Json::parse(std::string(body.substr(0, border)) + "}"))};
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

}  // namespace scankit::fleet
