// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <tuple>

#include "builder/compile/compile.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/checks/snapshot_queries.h"

namespace scankit::compile {
namespace {

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream stream(text);
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

bool contains(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Flags are compared as sets of words; the same set in another order is a change as well.
void add_flags(const InputChange& change, std::vector<std::string>& out) {
  const auto before = words_of(change.before), after = words_of(change.after);
  const std::size_t start = out.size();
  for (const std::string& word : after)
    if (!contains(before, word)) out.push_back(say("flag {} was added", word));
  for (const std::string& word : before)
    if (!contains(after, word)) out.push_back(say("flag {} was removed", word));
  if (out.size() == start) out.push_back(say("the order of the flags changed"));
}

bool is_hash(const std::string& word) {
  return word.size() == 64 && word.find_first_not_of("0123456789abcdef") == std::string::npos;
}

// The value with its hashes cut to 12 digits.
std::string shortened(const std::string& value) {
  std::string text;
  for (const std::string& word : words_of(value))
    text += (text.empty() ? "" : " ") + (is_hash(word) ? word.substr(0, 12) : word);
  return text;
}

// "nvrtc 13.0" of "nvrtc 13.0 HASH".
std::string without_hash(const std::string& value) {
  std::string text;
  for (const std::string& word : words_of(value))
    if (!is_hash(word)) text += (text.empty() ? "" : " ") + word;
  return text;
}

// Hashes mean nothing to people: a changed one becomes "changed", or "has other bytes".
std::string in_words(const InputChange& change) {
  const bool part = change.label.starts_with(kSourcePart) && change.label.find('/') != std::string::npos;
  const std::string name = part ? change.label.substr(std::string(kSourcePart).size()) : change.label;
  if (change.is_new) return say("{} was added", name);
  if (change.is_gone) return say("{} was removed", name);
  if (is_hash(change.before) && is_hash(change.after)) return say("{} changed", name);
  if (without_hash(change.before) == without_hash(change.after))
    return say("the content of {} {} changed", name, without_hash(change.after));
  if (change.label == "compiler")
    return say("{} is {} and was {}", name, without_hash(change.after), without_hash(change.before));
  return say("{} is {} and was {}", name, shortened(change.after), shortened(change.before));
}

// "forward_f32", "forward_f32 and 10 more"
std::string units_of(const std::vector<const Miss*>& misses) {
  if (misses.size() == 1) return misses[0]->unit;
  return say_n(misses.size() - 1, "{} and {} more", "{} and {} more", misses[0]->unit, misses.size() - 1);
}

std::string in_words(const std::vector<const Miss*>& group) {
  const Miss& first = *group[0];
  const std::string units = units_of(group);
  switch (first.kind) {
    case Miss::Kind::NeverBuilt:
      return say("compiled: {} for {}: never built with this cache", units, first.target);
    case Miss::Kind::Changed:
      return say("compiled again: {} for {}: since the last build {}", units, first.target,
                 join(first.changes));
    case Miss::Kind::Gone:
      return say("compiled again: {} for {}: nothing changed, but it is no longer in the cache", units,
                 first.target);
    case Miss::Kind::Damaged:
      break;
  }
  return say("compiled again: {} for {}: the file in the cache was damaged and removed: {}", units,
             first.target, first.entry);
}

}  // namespace

std::vector<std::string> changes_in_words(const Inputs& before, const Inputs& after) {
  std::vector<std::string> words;
  const auto changes = changed_inputs(before, after);
  const bool part = std::any_of(changes.begin(), changes.end(), [](const InputChange& change) {
    return change.label.starts_with(kSourcePart) && change.label.find('/') != std::string::npos;
  });
  for (const InputChange& change : changes) {
    if (change.label == "source" && part) continue;  // its file is named
    if (change.label == "flags")
      add_flags(change, words);
    else
      words.push_back(in_words(change));
  }
  return words;
}

std::vector<std::string> misses_in_words(const std::vector<Miss>& misses) {
  // Misses are few, so that a search for each is cheap; the groups keep the order of their first miss.
  const auto reason = [](const Miss& miss) {
    return std::tie(miss.target, miss.kind, miss.changes, miss.entry);
  };
  std::vector<std::vector<const Miss*>> groups;
  for (const Miss& miss : misses) {
    const auto same = std::find_if(groups.begin(), groups.end(),
                                   [&](const auto& group) { return reason(*group[0]) == reason(miss); });
    if (same == groups.end())
      groups.push_back({&miss});
    else
      same->push_back(&miss);
  }
  std::vector<std::string> lines;
  for (const auto& group : groups) lines.push_back(in_words(group));
  return lines;
}

// What a build depends on, as text and as JSON, and how two builds differ. Inputs that all images share are
// written once, in front of the images.

namespace {

using Json = nlohmann::ordered_json;

// In the order of the first image.
Inputs shared_by_all(const std::vector<ExplainedImage>& images) {
  Inputs shared = images.empty() ? Inputs() : images[0].inputs;
  for (const ExplainedImage& image : images)
    std::erase_if(shared, [&](const auto& input) {
      return std::find(image.inputs.begin(), image.inputs.end(), input) == image.inputs.end();
    });
  return shared;
}

Inputs without(const Inputs& all, const Inputs& shared) {
  Inputs rest = all;
  std::erase_if(rest, [&](const auto& input) {
    return std::find(shared.begin(), shared.end(), input) != shared.end();
  });
  return rest;
}

void append(std::string& text, const Inputs& inputs) {
  for (const auto& [label, value] : inputs)
    text.append("  ").append(label).append(": ").append(value).append("\n");
}

Json json_of(const Inputs& inputs) {
  Json json = Json::object();
  for (const auto& [label, value] : inputs) json[label] = value;
  return json;
}

// The image for the same unit and target; null if there is none.
const ExplainedImage* same_image(const std::vector<ExplainedImage>& images, const ExplainedImage& wanted) {
  const auto at = std::find_if(images.begin(), images.end(), [&](const ExplainedImage& image) {
    return image.unit == wanted.unit && image.target == wanted.target;
  });
  return at == images.end() ? nullptr : &*at;
}

std::string image_name(const ExplainedImage& image) { return image.unit + " " + image.target; }

// Collects the images that have the same change, so that a changed compiler is one line.
class Differences {
 public:
  void add(const std::string& change, const std::string& image) {
    if (images_.count(change) == 0) order_.push_back(change);
    images_[change].push_back(image);
  }

  // `all`: how many images there are, to say "all images" instead of a long list.
  std::vector<std::string> lines(std::size_t all) const {
    std::vector<std::string> out;
    for (const std::string& change : order_) {
      const auto& images = images_.at(change);
      out.push_back(images.size() == all && all > 1 ? say("all images: {}", change)
                                                    : say("{}: {}", join(images), change));
    }
    return out;
  }

 private:
  std::vector<std::string> order_;
  std::map<std::string, std::vector<std::string>> images_;
};

}  // namespace

std::string explanation_text(const Explanation& explanation) {
  std::string text;
  text.append("module ").append(explanation.module).append("\n");
  append(text, explanation.inputs);
  const Inputs shared = shared_by_all(explanation.images);
  if (!explanation.images.empty()) text.append("every image\n");
  append(text, shared);
  for (const ExplainedImage& image : explanation.images) {
    text.append("image ").append(image_name(image)).append("\n  key: ").append(image.key).append("\n");
    append(text, without(image.inputs, shared));
  }
  return text;
}

void add_explanation(Json& json, const Explanation& explanation) {
  json["module"] = explanation.module;
  json["inputs"] = json_of(explanation.inputs);
  const Inputs shared = shared_by_all(explanation.images);
  json["image_inputs"] = json_of(shared);
  json["images"] = Json::array();
  for (const ExplainedImage& image : explanation.images) {
    Json entry = {{"unit", image.unit}, {"target", image.target}, {"key", image.key}};
    entry["inputs"] = json_of(without(image.inputs, shared));
    if (!image.sha256.empty()) entry["sha256"] = image.sha256;
    json["images"].push_back(std::move(entry));
  }
}

std::vector<std::string> compare_explanations(const std::string& other_name, const Explanation& other,
                                              const Explanation& here) {
  std::vector<std::string> lines;
  if (other.module != here.module)
    lines.push_back(say("the module is {} here and {} in {}", here.module, other.module, other_name));
  for (const std::string& change : changes_in_words(other.inputs, here.inputs))
    lines.push_back(say("the module: {}", change));
  Differences differences;
  std::vector<std::string> added, gone;
  for (const ExplainedImage& image : here.images) {
    const ExplainedImage* before = same_image(other.images, image);
    if (before == nullptr) {
      added.push_back(image_name(image));
      continue;
    }
    const auto changes = changes_in_words(before->inputs, image.inputs);
    for (const std::string& change : changes) differences.add(change, image_name(image));
    if (changes.empty() && !before->sha256.empty() && !image.sha256.empty() && before->sha256 != image.sha256)
      differences.add(say("the same inputs gave different output"), image_name(image));
  }
  for (const ExplainedImage& image : other.images)
    if (same_image(here.images, image) == nullptr) gone.push_back(image_name(image));
  for (const std::string& line : differences.lines(here.images.size())) lines.push_back(line);
  if (!added.empty()) lines.push_back(say("only here: {}", join(added)));
  if (!gone.empty()) lines.push_back(say("only in {}: {}", other_name, join(gone)));
  return lines;
}

}  // namespace scankit::compile
