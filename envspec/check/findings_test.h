// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "doctor/base/text.h"
#include "doctor/model/finding.h"

// Findings as text, so that a test compares what was found, how bad it is and what mends it at once.
namespace scankit::test {

inline std::string in_words(const Fix& fix) {
  struct Words {
    std::string operator()(const InstallModule& f) const { return join({"fix", f.module}, " "); }
    std::string operator()(const InstallModelPackage& f) const {
      return join({"fix", "package", f.distribution}, " ");
    }
    std::string operator()(const InstallPackages& f) const {
      return join({f.reinstall ? "reinstall" : "install", f.requirements.at(0)}, " ");
    }
    std::string operator()(const RebuildPackage& f) const {
      return join({"rebuild", f.distribution, f.version}, " ");
    }
    std::string operator()(const BuildProject& f) const { return join({"build", f.folder}, " "); }
    std::string operator()(const KeepOnly& f) const { return join({"keep", f.requirement}, " "); }
    std::string operator()(const RemoveShadow& f) const { return join({"remove", f.module}, " "); }
    std::string operator()(const SetEnvironment& f) const { return f.name + "=" + f.value; }
    std::string operator()(const ImportTorchFirst& f) const {
      return join({"import", "torch", "before", f.module}, " ");
    }
    std::string operator()(const Advice& f) const { return english(f.text); }
  };
  return std::visit(Words(), fix);
}

// "error drift_torch torch [/torch/value/version]: install torch==2.11.*": the places of the evidence in
// brackets, the first fix behind the colon.
inline std::string in_words(const Finding& finding) {
  static const char* const kNames[] = {"note", "warning", "error"};
  std::string text = kNames[static_cast<int>(finding.severity())];
  text += " " + std::string(info(finding.cause).slug) + " " + finding.subject;
  for (const Evidence& each : finding.evidence) text += " [" + each.fact + "]";
  if (!finding.fixes.empty()) text += ": " + in_words(finding.fixes[0]);
  return text;
}

// The findings, else the state: "passed", "unknown", "left out".
inline std::vector<std::string> in_words(const Outcome& outcome) {
  std::vector<std::string> lines;
  for (const Finding& finding : outcome.findings) lines.push_back(in_words(finding));
  if (outcome.could_hide_error) lines.emplace_back("unknown");
  if (outcome.left_out) lines.emplace_back("left out");
  if (lines.empty()) lines.emplace_back(outcome.state == CheckState::Passed ? "passed" : "?");
  return lines;
}

}  // namespace scankit::test
