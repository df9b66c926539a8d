// SPDX-License-Identifier: Apache-2.0
// What a build depends on, as text and as JSON, and how two builds differ. Inputs that all images share are
// written once, in front of the images.
#include "builder/compile/explain.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "builder/toolchain/reasons.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/checks/snapshot_queries.h"

namespace scankit {
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
  text.append("every image\n");
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

}  // namespace scankit
