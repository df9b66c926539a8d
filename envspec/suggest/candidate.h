// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "envspec/suggest/solve.h"

namespace scankit::envspec {

// Why a candidate is none. `group`: violations of one group have one reason, and are told once.
struct Violation {
  std::size_t wish = 0;             // which of the wishes it contradicts
  std::optional<std::size_t> also;  // and only together with this one
  std::string group;
  std::vector<Message> chain;
};

// One build of torch with one Python, and everything that is wrong with it.
struct TorchCandidate {
  SuggestedSet set;
  std::vector<Violation> violations;
};

// A version of which only the minor release is known meets a range that some patch of it meets.
bool minor_meets(const VersionRange& range, const std::string& minor);
// The triton that the set's torch requires: "3.5.1", or "3.5.*" of a patch that is not in the table; and whether it is
// in a range, where only the minor release is known whether any patch is.
std::string triton_text(const SuggestedSet& set);
bool triton_meets(const VersionRange& range, const SuggestedSet& set);
std::string sms(const Archs& archs);  // "sm_80, sm_90"

// What must be met, in this order: GPUs, driver, glibc, Python, packages.
std::vector<Wish> wishes_of(const SuggestRequest& request);

// Every build with every Python for which torch has wheels, or that is wished.
std::vector<TorchCandidate> candidates_of(const SuggestRequest& request, const std::vector<Wish>& wishes);

// Whether the project itself builds wheels of the release for this torch: what it builds, it tests.
bool has_wheel_for(const PackageRelease& release, const std::string& torch);
// Whether a wish leaves the release.
bool is_wished(const PackageRow& row, const PackageRelease& release, const PackageWish& wish);

// The package's newest release that has a wheel for the set, else its newest one by another way. A release that
// a wish, the Python or torch's triton excludes does not count. An empty plan (release and row null, How::Wheel)
// means that none is left; `chain` then says why.
PackagePlan plan_package(const SuggestRequest& request, const PackageWish& wish, const SuggestedSet& set);

}  // namespace scankit::envspec
