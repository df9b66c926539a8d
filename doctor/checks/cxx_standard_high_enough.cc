// SPDX-License-Identifier: Apache-2.0
#include "doctor/base/say.h"
#include "doctor/checks/build_view.h"
#include "doctor/checks/check.h"
#include "doctor/checks/repairs.h"

namespace scankit {
namespace {

// "98" is older than "11".
bool is_older(const std::string& standard, const std::string& than) {
  return standard < than || standard.starts_with('9');
}

CheckResult cxx_standard_high_enough(const Snapshot& snapshot) {
  const std::vector<SourceFact>& standards = snapshot.sources.value.standards;
  const std::string& demanded = snapshot.torch.value.cxx_standard;
  CheckResult result;
  if (demanded.empty()) {
    if (!standards.empty())
      result.not_checked = {say("which C++ standard torch's headers demand: there are none")};
    return result;
  }
  Finding finding = build_finding(snapshot, Cause::CxxStandardTooLow, "");
  std::vector<std::string> places, edits;
  std::string lowest;
  for (const std::size_t i : in_force(snapshot, standards)) {
    if (!is_older(standards[i].value, demanded)) continue;
    if (lowest.empty() || is_older(standards[i].value, lowest)) lowest = standards[i].value;
    places.push_back(place(standards[i]));
    edits.push_back(edit_command(snapshot.sources.value, standards[i],
                                 "std=\\(c\\|gnu\\)++" + standards[i].value, "std=\\1++" + demanded));
    finding.evidence.push_back(source_evidence("standards", i, standards[i].value));
  }
  if (places.empty()) return result;
  finding.summary = say("the headers of torch {} demand C++{}, and C++{} is asked for at {}",
                        snapshot.torch.value.version, demanded, lowest, join(places));
  finding.evidence.push_back({"/torch/value/cxx_standard", demanded});
  finding.fixes = build_fixes(
      snapshot, shell_advice(say("write -std=c++{} at {}, for the host compiler and for nvcc, then: {}",
                                 demanded, join(places), build_command(snapshot)),
                             join(edits, " && ")));
  result.findings.push_back(std::move(finding));
  return result;
}

}  // namespace

extern const Check kCxxStandardHighEnough{
    .id = "cxx-standard-high-enough",
    .question = "Do the sources ask for the C++ standard of torch's headers?",
    .needs = kSources | kTorch,
    .not_applicable = nullptr,
    .run = cxx_standard_high_enough,
    .asked = sources_are_here};
}  // namespace scankit
