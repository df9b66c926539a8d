// SPDX-License-Identifier: Apache-2.0
#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/yaml/yaml.h"

// A tree built from the events of yaml-cpp's parser. yaml-cpp's own YAML::Node expands aliases and
// silently keeps the last of two equal keys, so that it is not used.
namespace scankit::yaml {
namespace {

std::string place(const std::string& name, std::size_t line, std::size_t column) {
  return name + ":" + std::to_string(line) + ":" + std::to_string(column);
}

// Thrown out of the event handlers: the parser has no other way to be stopped. It
// never leaves parse_yaml().
struct Refused {
  Error error;
};

// The nodes that are still open are in levels_, the outermost first; a finished node is added to
// the one above it. Lists and maps do not enforce their own limits: node() counts every value,
// open() the depth.
class TreeBuilder : public YAML::EventHandler {
 public:
  explicit TreeBuilder(const std::string& name) : name_(name) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override { add(node(mark, YamlNode::Kind::Null)); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    refuse(mark, say("aliases (*name) are not supported"), say("write the value itself"));
  }
  void OnAnchor(const YAML::Mark& mark, const std::string&) override {
    refuse(mark, say("anchors (&name) are not supported"), say("remove the anchor"));
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                const std::string& value) override {
    check_tag(mark, tag);
    YamlNode scalar = node(mark, YamlNode::Kind::Scalar);
    scalar.text = value;
    scalar.quoted = tag == "!";  // yaml-cpp's "!" for quoted, "?" for plain
    add(std::move(scalar));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    check_tag(mark, tag);
    open(node(mark, YamlNode::Kind::List), mark);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {
    check_tag(mark, tag);
    open(node(mark, YamlNode::Kind::Map), mark);
  }
  void OnMapEnd() override { close(); }

  YamlNode take() { return std::move(root_); }

 private:
  struct Level {
    YamlNode node;
    bool key_is_next = true;                  // of a map
    std::map<std::string, unsigned> lines{};  // of its keys
  };

  [[noreturn]] void refuse(const YAML::Mark& mark, const std::string& what, const std::string& hint) const {
    throw Refused{
        {Errc::Malformed,
         place(name_, static_cast<std::size_t>(mark.line) + 1, static_cast<std::size_t>(mark.column) + 1) +
             ": " + what,
         hint}};
  }
  void check_tag(const YAML::Mark& mark, const std::string& tag) const {
    if (!tag.empty() && tag != "?" && tag != "!")
      refuse(mark, say("tags (!name) are not supported"), say("remove the tag"));
  }
  YamlNode node(const YAML::Mark& mark, YamlNode::Kind kind) {
    if (++count_ > kYamlNodes)
      refuse(mark, say("the file has more than {} values", kYamlNodes),
             say("such a file needs only a few dozen"));
    YamlNode made;
    made.kind = kind;
    made.line = static_cast<unsigned>(mark.line) + 1;
    made.column = static_cast<unsigned>(mark.column) + 1;
    return made;
  }
  // A list or a map that comes where a key is expected ("? [a, b] : c") is refused before it is built.
  void open(YamlNode made, const YAML::Mark& mark) {
    if (levels_.size() >= kYamlDepth)
      refuse(mark, say("values are nested more than {} deep", kYamlDepth),
             say("such a file needs only three levels"));
    if (!levels_.empty() && levels_.back().node.kind == YamlNode::Kind::Map && levels_.back().key_is_next)
      refuse(mark, say("a key must be a word"), "");
    levels_.push_back({std::move(made)});
  }
  void close() {
    YamlNode done = std::move(levels_.back().node);
    levels_.pop_back();
    add(std::move(done));
  }
  // In a map, keys and values arrive in turn.
  void add(YamlNode made) {
    if (levels_.empty()) {
      root_ = std::move(made);
      return;
    }
    Level& level = levels_.back();
    if (level.node.kind != YamlNode::Kind::Map) {
      level.node.items.push_back(std::move(made));
      return;
    }
    if (level.key_is_next) check_key(level, made);
    (level.key_is_next ? level.node.keys : level.node.items).push_back(std::move(made));
    level.key_is_next = !level.key_is_next;
  }
  void check_key(Level& level, const YamlNode& key) const {
    YAML::Mark mark;
    mark.line = static_cast<int>(key.line) - 1;
    mark.column = static_cast<int>(key.column) - 1;
    if (key.kind != YamlNode::Kind::Scalar) refuse(mark, say("a key must be a word"), "");
    const auto [known, added] = level.lines.emplace(key.text, key.line);
    if (!added)
      refuse(mark,
             say("\"{}\" occurs a second time; the first is on line {}", printable(key.text), known->second),
             say("remove one of the two"));
  }

  const std::string& name_;
  std::vector<Level> levels_;
  YamlNode root_;
  std::size_t count_ = 0;
};

Error no_yaml(const std::string& name, const YAML::Exception& problem) {
  // The hint names the most frequent mistake, an unquoted operator: ">=2.11" opens a folded block in
  // YAML. A null mark has the line -1.
  const auto line = static_cast<std::size_t>(std::max(problem.mark.line, 0)) + 1;
  const auto column = static_cast<std::size_t>(std::max(problem.mark.column, 0)) + 1;
  return {Errc::Malformed, message("{}: this is not YAML: {}", place(name, line, column), problem.msg),
          message("values that start with one of > < = ! * & % @ need quotes")};
}

// Before the parser sees the text: yaml-cpp would replace malformed UTF-8 and detect UTF-16, and
// control bytes would reach the terminal in messages. Columns count bytes.
Result<void> check_bytes(std::string_view text, const std::string& name) {
  if (text.size() > kYamlBytes)
    return Error{Errc::Unsupported, message("{} is longer than {} KiB", name, kYamlBytes >> 10),
                 message("such a file has a few KiB: is this the right one?")};
  std::size_t line = 1, start = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_sequence_length(text, at);
    const auto byte = static_cast<unsigned char>(text[at]);
    const bool control = (byte < 0x20 && byte != '\n' && byte != '\r' && byte != '\t') || byte == 0x7F;
    if (length == 0 || control)
      return Error{Errc::Malformed,
                   control ? message("{}: this is a control byte", place(name, line, at - start + 1))
                           : message("{}: this is not UTF-8", place(name, line, at - start + 1)),
                   message("save the file as UTF-8 text")};
    if (byte == '\n') {
      ++line;
      start = at + 1;
    }
    at += length;
  }
  return {};
}

bool one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, text) != words.end();
}

}  // namespace

bool YamlNode::is_bool() const {
  return kind == Kind::Scalar && !quoted && one_of(text, {"true", "True", "TRUE", "false", "False", "FALSE"});
}

// [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?, 0o17, 0x1f, .inf and .nan: YAML 1.2, 10.3.2.
bool YamlNode::is_number() const {
  if (kind != Kind::Scalar || quoted || text.empty()) return false;
  if (text.starts_with("0x") || text.starts_with("0o")) return text.size() > 2;
  std::string_view rest = text;
  if (rest.front() == '-' || rest.front() == '+') rest.remove_prefix(1);
  if (one_of(rest, {".inf", ".Inf", ".INF", ".nan", ".NaN", ".NAN"})) return true;
  const auto digits = [&rest] {
    const auto end = std::min(rest.find_first_not_of("0123456789"), rest.size());
    rest.remove_prefix(end);
    return end;
  };
  std::size_t seen = digits();
  if (!rest.empty() && rest.front() == '.') {
    rest.remove_prefix(1);
    seen += digits();
  }
  if (seen == 0) return false;
  if (rest.empty()) return true;
  if (rest.front() != 'e' && rest.front() != 'E') return false;
  rest.remove_prefix(1);
  if (!rest.empty() && (rest.front() == '-' || rest.front() == '+')) rest.remove_prefix(1);
  return digits() > 0 && rest.empty();
}

std::string yaml_place(const std::string& name, const YamlNode& node) {
  return place(name, node.line, node.column);
}

Result<YamlNode> parse_yaml(std::string_view text, const std::string& name) {
  SCANKIT_CHECK(check_bytes(text, name));
  std::istringstream in{std::string(text)};
  TreeBuilder tree(name);
  try {
    YAML::Parser parser(in);
    if (!parser.HandleNextDocument(tree))
      return Error{Errc::Malformed, message("{} is empty", name),
                   message("write \"schema: 1\" as its first line")};
    YamlNode root = tree.take();
    TreeBuilder second(name);
    if (parser.HandleNextDocument(second))
      return Error{Errc::Malformed, message("{} contains more than one document (---)", name),
                   message("keep one of them in a file of its own")};
    return root;
  } catch (const Refused& refused) {
    return refused.error;
  } catch (const YAML::Exception& problem) {
    return no_yaml(name, problem);
  }
}

}  // namespace scankit::yaml
