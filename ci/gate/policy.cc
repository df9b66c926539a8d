// SPDX-License-Identifier: Apache-2.0
#include "ci/gate/policy.h"

#include <algorithm>
#include <charconv>

#include "doctor/base/date.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/report/escape.h"
#include "doctor/report/words.h"
#include "envspec/spec/fields.h"

// Parses scankit-ci.yaml with the YAML reader of specs (doctor/yaml). Anything unknown is an
// error: a gate with a misspelled rule would let everything pass.
namespace scankit::gate {
namespace {

constexpr std::size_t kLongestText = 500;

class Reader {
 public:
  Reader(std::string name, Policy& policy) : name_(std::move(name)), policy_(policy) {}

  Result<void> top(const yaml::YamlNode& root) {
    if (root.kind != yaml::YamlNode::Kind::Map)
      return yaml::wrong_form(name_, root, "", message("expected keys with values, such as causes:"));
    SCANKIT_CHECK(yaml::known_schema(name_, root, kPolicySchema));
    for (std::size_t i = 0; i < root.keys.size(); ++i) {
      const std::string& key = root.keys[i].text;
      if (key == "causes") {
        SCANKIT_CHECK(causes(root.items[i]));
      } else if (key == "steps") {
        SCANKIT_CHECK(steps(root.items[i]));
      } else {
        SCANKIT_CHECK(
            field(root.keys[i], root.items[i], "", policy_fields(), policy_, {"causes", "steps"}, {}));
      }
    }
    if (policy_.record.enabled == true && policy_.records.empty())
      return yaml::wrong_form(name_, root, "steps.record",
                              message("it is enabled, and record names no environment"));
    return {};
  }

 private:
  // One field of a map. `groups` are keys of this map that the table does not have ("causes"), for the
  // message about an unknown key. `options` are those that a field of form Args may contain.
  template <class Owner>
  Result<void> field(const yaml::YamlNode& key, const yaml::YamlNode& value, const std::string& path,
                     const std::vector<PolicyField<Owner>>& fields, Owner& owner,
                     const std::vector<std::string>& groups, const std::vector<std::string>& options) const {
    const auto found = std::ranges::find(fields, std::string_view(key.text), &PolicyField<Owner>::name);
    if (found == fields.end()) {
      std::vector<std::string> known;
      for (const auto& each : fields) known.emplace_back(each.name);
      known.insert(known.end(), groups.begin(), groups.end());
      return yaml::unknown_field(name_, key, path + key.text, known);
    }
    const std::string here = path + key.text;
    if (const auto* number = std::get_if<int Owner::*>(&found->place)) {
      SCANKIT_TRY(owner.*(*number), found->form == PolicyForm::Schema ? yaml::form_of_schema(name_, value)
                                                                      : seconds(value, here));
    } else if (const auto* flag = std::get_if<std::optional<bool> Owner::*>(&found->place)) {
      if (!value.is_bool()) return yaml::wrong_form(name_, value, here, message("expected true or false"));
      owner.*(*flag) = value.text[0] == 't' || value.text[0] == 'T';
    } else if (const auto* list = std::get_if<std::vector<std::string> Owner::*>(&found->place)) {
      SCANKIT_TRY(owner.*(*list),
                  found->form == PolicyForm::Names ? names(value, here) : args(value, here, options));
    } else if (const auto* environments = std::get_if<std::vector<RecordRule> Owner::*>(&found->place)) {
      SCANKIT_TRY(owner.*(*environments), records(value, here));
    } else if (const auto* text = std::get_if<std::string Owner::*>(&found->place)) {
      SCANKIT_TRY(owner.*(*text), words(value, here, found->form, found->words, found->example));
    }
    return {};
  }

  // Only a plain whole number: "1e2" and 0x10 are numbers for YAML, and from_chars() refuses them.
  Result<int> seconds(const yaml::YamlNode& value, const std::string& path) const {
    int number = 0;
    const char* end = value.text.data() + value.text.size();
    const auto parsed = std::from_chars(value.text.data(), end, number);
    if (!value.is_number() || parsed.ec != std::errc() || parsed.ptr != end || number < 1 ||
        number > kLongestTimeout)
      return yaml::wrong_form(name_, value, path,
                              message("expected a whole number of seconds from 1 to {}", kLongestTimeout));
    return number;
  }

  Result<std::string> words(const yaml::YamlNode& value, const std::string& path, PolicyForm form,
                            const std::vector<std::string_view>& known, std::string_view example) const {
    if (form == PolicyForm::Word) return envspec::form_of_word(name_, value, path, known, example);
    if (value.kind != yaml::YamlNode::Kind::Scalar || value.text.empty())
      return yaml::wrong_form(name_, value, path, message("expected one value such as \"{}\"", example));
    if (form == PolicyForm::Date && !is_date(value.text))
      return yaml::wrong_form(name_, value, path,
                              message("expected a date such as {}, and one that exists", example));
    if (value.text.size() > kLongestText)
      return yaml::wrong_form(name_, value, path, message("the text is longer than {} bytes", kLongestText));
    return value.text;
  }

  Result<std::vector<std::string>> names(const yaml::YamlNode& value, const std::string& path) const {
    if (value.kind != yaml::YamlNode::Kind::List)
      return yaml::wrong_form(name_, value, path, message("expected a list of names, such as [torch]"));
    std::vector<std::string> out;
    for (const yaml::YamlNode& item : value.items) {
      if (item.kind != yaml::YamlNode::Kind::Scalar || !is_name(item.text))
        return yaml::wrong_form(name_, item, path, message("expected the name of a module or package"));
      out.push_back(item.text);
    }
    return out;
  }

  // A path that begins with a dash would be an option of the step's command line.
  Result<std::string> path_in(const yaml::YamlNode& node, const std::string& path) const {
    if (node.kind != yaml::YamlNode::Kind::Scalar || node.text.empty() || node.text.front() == '-')
      return yaml::wrong_form(name_, node, path,
                              message("expected the directory of an environment, such as .venv"));
    return node.text;
  }

  Result<std::vector<RecordRule>> records(const yaml::YamlNode& value, const std::string& path) const {
    std::vector<RecordRule> out;
    // An empty list would compare nothing, and pass: it is refused below.
    if (value.kind == yaml::YamlNode::Kind::List && !value.items.empty()) {
      for (const yaml::YamlNode& item : value.items) {
        SCANKIT_TRY(std::string folder, path_in(item, path));
        out.push_back({std::move(folder), ""});
      }
    } else if (value.kind == yaml::YamlNode::Kind::Map && !value.items.empty()) {
      for (std::size_t i = 0; i < value.keys.size(); ++i) {
        RecordRule rule;
        SCANKIT_TRY(rule.folder, path_in(value.keys[i], path));
        if (value.items[i].kind != yaml::YamlNode::Kind::Null) {
          SCANKIT_TRY(rule.lock, path_in(value.items[i], path + "." + rule.folder));
        }
        out.push_back(std::move(rule));
      }
    } else {
      SCANKIT_TRY(std::string folder, path_in(value, path));
      out.push_back({std::move(folder), ""});
    }
    return out;
  }

  // kNamePattern; an option may not pass for a name.
  static bool is_name(const std::string& text) {
    const auto letter = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    };
    return !text.empty() && letter(text.front()) &&
           std::ranges::all_of(text, [&](char c) { return letter(c) || c == '.' || c == '-'; });
  }

  // Options of a step's command. A word without a dash is the value of the option before it, and so
  // cannot come first.
  Result<std::vector<std::string>> args(const yaml::YamlNode& value, const std::string& path,
                                        const std::vector<std::string>& options) const {
    if (value.kind != yaml::YamlNode::Kind::List)
      return yaml::wrong_form(name_, value, path, message("expected a list, such as [{}]", options.front()));
    std::vector<std::string> out;
    for (const yaml::YamlNode& item : value.items) {
      if (item.kind != yaml::YamlNode::Kind::Scalar)
        return yaml::wrong_form(name_, item, path, message("expected an option or its value"));
      const std::string option = item.text.substr(0, item.text.find('='));
      const bool is_option = option.starts_with('-');
      if (is_option ? std::ranges::find(options, option) == options.end() : out.empty()) {
        const auto near = nearest_word(option, options);
        return Error{
            Errc::Malformed,
            message("{}: {}: \"{}\" is not an option that a policy may set", yaml::yaml_place(name_, item),
                    path, report::plain(option, false)),
            near.empty() ? message("valid here: {}", join(options)) : message("did you mean \"{}\"?", near)};
      }
      out.push_back(item.text);
    }
    return out;
  }

  // `causes: {SLUG: null}` is a rule with the default severity, error. An allowance and its reason
  // need each other.
  Result<void> causes(const yaml::YamlNode& node) {
    if (node.kind != yaml::YamlNode::Kind::Map)
      return yaml::wrong_form(name_, node, "causes", message("expected causes with their fields below it"));
    for (std::size_t i = 0; i < node.keys.size(); ++i) {
      const yaml::YamlNode &key = node.keys[i], &value = node.items[i];
      const auto cause = cause_from_slug(key.text);
      if (!cause) return unknown_cause(key);
      const std::string path = "causes." + key.text;
      CauseRule rule{.cause = *cause, .line = key.line};
      if (value.kind != yaml::YamlNode::Kind::Null && value.kind != yaml::YamlNode::Kind::Map)
        return yaml::wrong_form(name_, value, path, message("expected keys with values below it"));
      for (std::size_t j = 0; j < value.keys.size(); ++j)
        SCANKIT_CHECK(field(value.keys[j], value.items[j], path + ".", cause_fields(), rule, {}, {}));
      if (rule.allowed_until.empty() != rule.reason.empty())
        return yaml::wrong_form(name_, key, path,
                                rule.reason.empty()
                                    ? message("allowed_until needs a reason as well")
                                    : message("reason belongs to allowed_until, which is missing"));
      policy_.causes.push_back(std::move(rule));
    }
    return {};
  }

  Error unknown_cause(const yaml::YamlNode& key) const {
    std::vector<std::string> known;
    for (const CauseInfo& cause : all_causes()) known.emplace_back(cause.slug);
    const auto near = nearest_word(key.text, known);
    return {
        Errc::Malformed,
        message("{}: unknown cause \"{}\"", yaml::yaml_place(name_, key), report::plain(key.text, false)),
        near.empty() ? message("scankit explain --list lists all") : message("did you mean \"{}\"?", near)};
  }

  Result<void> steps(const yaml::YamlNode& node) {
    if (node.kind != yaml::YamlNode::Kind::Map)
      return yaml::wrong_form(name_, node, "steps", message("expected keys with values below it"));
    for (std::size_t i = 0; i < node.keys.size(); ++i) {
      const yaml::YamlNode &key = node.keys[i], &value = node.items[i];
      const auto step = std::ranges::find(policy_steps(), std::string_view(key.text), &PolicyStep::name);
      if (step == policy_steps().end()) {
        std::vector<std::string> known;
        for (const PolicyStep& each : policy_steps()) known.emplace_back(each.name);
        return yaml::unknown_field(name_, key, "steps." + key.text, known);
      }
      const std::string path = "steps." + key.text;
      if (value.kind != yaml::YamlNode::Kind::Map)
        return yaml::wrong_form(name_, value, path, message("expected keys with values below it"));
      for (std::size_t j = 0; j < value.keys.size(); ++j)
        SCANKIT_CHECK(field(value.keys[j], value.items[j], path + ".", step_fields(), policy_.*(step->place),
                            {}, step->options));
    }
    return {};
  }

  std::string name_;
  Policy& policy_;
};

}  // namespace

Result<Policy> parse_policy(std::string_view text, const std::string& name) {
  auto root = yaml::parse_yaml(text, name);
  if (!root) {
    Error error = root.error();
    // The YAML reader's hint is about specs.
    if (error.message == message("{} is empty", name))
      error.hint = message("scankit ci init policy writes one");
    return error;
  }
  Policy policy;
  policy.file = name;
  SCANKIT_CHECK(Reader(name, policy).top(*root));
  return policy;
}

Result<Policy> read_policy(const std::string& path) {
  auto text = read_whole_file(path, yaml::kYamlBytes, Accept::FilesAndPipes);
  if (!text && text.error().code == Errc::Unsupported)
    return Error{Errc::Unsupported, message("{} is longer than {} KiB", path, yaml::kYamlBytes >> 10),
                 message("a policy has a few KiB: is this the right file?")};
  if (!text) return text.error();
  return parse_policy(*text, path);
}

}  // namespace scankit::gate
