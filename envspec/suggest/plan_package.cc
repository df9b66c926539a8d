// SPDX-License-Identifier: Apache-2.0
// How the compiled module of one package is got in a set: by a wheel, by a build here, or as scankit's own.
#include <algorithm>

#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/knowledge/cuda_support.h"
#include "envspec/spec/derive.h"
#include "envspec/suggest/candidate.h"

namespace scankit::envspec {
namespace {

constexpr const char* kWheelMachine = "x86_64";  // of all wheels in packages.yaml

// Of one release: which wheel fits, or by what the nearest one does not.
class WheelSearch {
 public:
  WheelSearch(const SuggestRequest& request, const PackageRow& row, const PackageRelease& release,
              const SuggestedSet& set)
      : request_(request), row_(row), release_(release), set_(set) {}

  // Empty where a wheel fits. The facts are asked in the order in which setup.py chooses the file.
  std::vector<Message> why_not() const {
    const std::string name = row_.name + " " + release_.version;
    if (release_.wheels.empty()) return {message("no wheel of {} is known", name)};
    if (request_.machine != kWheelMachine)
      return {message("the wheels of {} are for {}", name, kWheelMachine)};
    if (!request_.release_pages)
      return {message("the wheels of {} are on its release page, not on the package index", name)};
    const auto* found = wheels();
    if (found == nullptr)
      return {message("{} has no wheel for torch {} with CUDA {} and Python {}", name, set_.torch->minor,
                      set_.build->cuda.part(0), set_.python)};
    for (const unsigned gpu : request_.gpus)
      if (!has_code_for(found->archs, gpu))
        return {message("the wheel of {} contains code for {}", name, sms(found->archs)),
                message("that code does not run on {}", sm(gpu))};
    const auto have = Version::parse(request_.glibc), needs = Version::parse(found->glibc);
    if (have && needs && *have < *needs)
      return {message("the wheels of {} need glibc {}", name, found->glibc),
              message("this system has glibc {}", request_.glibc)};
    return {};
  }
  // Of the wheel that setup.py takes: "2.32".
  std::string glibc() const {
    const auto* found = wheels();
    return found == nullptr ? std::string() : found->glibc;
  }

 private:
  const PublishedWheels* wheels() const {
    const auto found = std::ranges::find_if(release_.wheels, [&](const PublishedWheels& one) {
      return one.cuda == set_.build->cuda.part(0) && has(one.torch, set_.torch->minor) &&
             has(one.pythons, set_.python);
    });
    return found == release_.wheels.end() ? nullptr : &*found;
  }
  static bool has(const std::vector<std::string>& values, const std::string& value) {
    return std::ranges::find(values, value) != values.end();
  }
  const SuggestRequest& request_;
  const PackageRow& row_;
  const PackageRelease& release_;
  const SuggestedSet& set_;
};

// The version that a row stands for under this wish; "" where the wish excludes it. Releases that are newer than
// the table are meant only where a range names one and takes no row; what they are called, nobody knows yet, so that
// the range itself stands for them.
std::string version_in(const PackageRow& row, const PackageRelease& release, const VersionRange& range) {
  if (!release.after_the_table)
    return range.contains(release.version).value_or(false) ? release.version : std::string();
  const auto newest = Version::parse(row.releases[1].version), named = Version::parse(range.least());
  const bool newer = newest && named && std::is_gt(pep440_order(*named, *newest));
  return newer && range.contains(*named) ? range.text() : std::string();
}

// Each with the version that it stands for, newest first.
using Releases = std::vector<std::pair<const PackageRelease*, std::string>>;

// What a wish leaves of what is allowed. An old release counts only where no other is left.
template <class Allowed>
Releases left_by(const PackageRow& row, const VersionRange& wished, const Allowed& allowed) {
  Releases left;
  for (const PackageRelease& release : row.releases)
    if (const std::string version = version_in(row, release, wished); !version.empty() && allowed(version))
      left.emplace_back(&release, version);
  const auto is_old = [](const auto& one) { return one.first->old; };
  if (!std::ranges::all_of(left, is_old)) std::erase_if(left, is_old);
  return left;
}

// Why a release cannot be installed in this set at all; empty where it can. `also`: the other wish that it is for.
struct Exclusion {
  std::vector<Message> why;
  std::optional<Wish> also;
  std::string glibc;
};

// The pin whose wheels this system's glibc does not run. Its source archive would be built with a toolchain of its own.
Exclusion excluded_by_pins(const SuggestRequest& request, const std::string& name,
                           const PackageRelease& release) {
  const auto have = Version::parse(request.glibc);
  for (const PinWheels& pin : release.pin_wheels) {
    const auto needs = Version::parse(pin.glibc);
    if (pin.machine != request.machine || !have || !needs || !(*have < *needs)) continue;
    return {{message("{} requires {}", name, pin.pin),
             message("the wheels of {} for {} need glibc {}", pin.pin, pin.machine, pin.glibc),
             message("this system has glibc {}", request.glibc)},
            Wish{Wish::Kind::Glibc, "", ""},
            pin.glibc};
  }
  return {};
}

std::string glibc_of_pins(const SuggestRequest& request, const PackageRelease& release) {
  for (const PinWheels& pin : release.pin_wheels)
    if (pin.machine == request.machine) return pin.glibc;
  return "";
}

// By the metadata and the code of the release itself, whatever else is installed.
Exclusion excluded_by_itself(const SuggestRequest& request, const PackageRow& row,
                             const PackageRelease& release, const SuggestedSet& set) {
  const std::string name = row.name + " " + release.version;
  const auto range = [](const std::string& text) {
    return VersionRange::parse(text).value_or(VersionRange());
  };
  if (!release.python.empty() && !minor_meets(range(release.python), set.python))
    return {{message("{} requires Python {}", name, release.python), message("Python is {}", set.python)},
            {},
            ""};
  if (!release.triton.empty() && set.torch->triton.empty())
    return {{message("{} requires triton {}", name, release.triton),
             message("torch {} comes without triton", set.torch_version)},
            {},
            ""};
  if (!release.triton.empty() && !triton_meets(range(release.triton), set))
    return {{message("{} requires triton {}", name, release.triton),
             message("torch {} requires triton {}", set.torch_version, triton_text(set))},
            {},
            ""};
  return excluded_by_pins(request, name, release);
}

// Of the releases of a partner that the wishes leave, one that this release works with and that can be installed.
Exclusion excluded_by_partner(const SuggestRequest& request, const std::string& name, const Partner& partner,
                              const SuggestedSet& set) {
  const auto wish = std::ranges::find(request.packages, partner.name, &PackageWish::name);
  const PackageRow* row = package_row(partner.name);
  if (wish == request.packages.end() || row == nullptr) return {};
  const Releases left = left_by(*row, wish->range, [&](const std::string& version) {
    return partner.range.contains(version).value_or(false);
  });
  if (left.empty()) {
    // Where the partner's own wish leaves nothing at all, that is told.
    if (left_by(*row, wish->range, [](const std::string&) { return true; }).empty()) return {};
    return {{message("{} works with {}", name, partner.text), message("\"{}\" excludes it", wish->text)},
            Wish{Wish::Kind::Package, wish->text, ""},
            ""};
  }
  Exclusion newest;
  for (const auto& [release, version] : left) {
    Exclusion excluded = excluded_by_itself(request, *row, *release, set);
    if (excluded.why.empty()) return {};
    if (newest.why.empty()) newest = std::move(excluded);
  }
  newest.why.insert(newest.why.begin(), message("{} works with {}", name, partner.text));
  return newest;
}

// What an already chosen package of the set says of this one: "mamba-ssm 2.2.4 works with causal-conv1d>=1.4,<1.5.1".
Message limit_of(const std::string& name, const std::string& version, const SuggestedSet& set) {
  for (const PackagePlan& plan : set.packages) {
    if (plan.release == nullptr) continue;
    for (const Partner& partner : plan.release->partners)
      if (partner.name == name && !partner.range.contains(version).value_or(true))
        return message("{} works with {}",
                       plan.is_range() ? plan.requirement() : plan.name + " " + plan.version, partner.text);
  }
  return {};
}

Exclusion why_excluded(const SuggestRequest& request, const PackageRow& row, const PackageRelease& release,
                       const SuggestedSet& set) {
  Exclusion excluded = excluded_by_itself(request, row, release, set);
  for (const Partner& partner : release.partners)
    if (excluded.why.empty())
      excluded = excluded_by_partner(request, row.name + " " + release.version, partner, set);
  return excluded;
}

// scankit compiles its module with the NVRTC of CUDA 12.9 or of torch, whichever knows the GPU.
bool scankit_compiles_for(const SuggestRequest& request, const TorchBuild& build) {
  return std::ranges::all_of(request.gpus, [&](unsigned gpu) {
    const std::string arch = std::to_string(gpu);
    return knowledge::nvcc_knows_arch("12.9", arch).value_or(false) ||
           (build.cuda.part(0) >= 13 && knowledge::nvcc_knows_arch(build.cuda_text, arch).value_or(false));
  });
}

bool nvcc_builds(const SuggestRequest& request, const PackageRelease& release, const TorchBuild& build) {
  const unsigned major = build.cuda.part(0);
  if (std::ranges::find(request.nvcc_majors, major) == request.nvcc_majors.end()) return false;
  Archs archs = release.built_for;
  if (major < 13) archs.insert(archs.end(), release.built_before_13.begin(), release.built_before_13.end());
  return std::ranges::all_of(request.gpus, [&](unsigned gpu) { return has_code_for(archs, gpu); });
}

// Sets `how` and `why`; false where the module cannot be made.
bool made_here(const SuggestRequest& request, const SuggestedSet& set, PackagePlan& plan) {
  if (scankit_compiles_for(request, *set.build)) {
    plan.how = PackagePlan::How::Own;
    plan.why =
        message("scankit's own {} works with every torch from 1.13 on and needs no compiler", plan.module);
    return true;
  }
  if (!nvcc_builds(request, *plan.release, *set.build)) return false;
  plan.how = PackagePlan::How::Build;
  plan.why = message("the nvcc that was found builds it for this GPU");
  return true;
}

// Releases that can be installed in the set, newest first, each with its version; why the newest other cannot.
struct Eligible {
  Releases releases;
  Exclusion excluded;
  std::string newest;  // that the wish leaves, excluded or not
};

Eligible eligible_of(const SuggestRequest& request, const PackageRow& row, const PackageWish& wish,
                     const SuggestedSet& set) {
  const Releases wished = left_by(row, wish.range, [](const std::string&) { return true; });
  const Releases left = left_by(
      row, wish.range, [&](const std::string& version) { return limit_of(row.name, version, set).empty(); });
  Eligible eligible;
  if (!wished.empty()) eligible.newest = wished.front().second;
  if (left.empty() && !wished.empty()) eligible.excluded.why = {limit_of(row.name, eligible.newest, set)};
  for (const auto& [release, version] : left) {
    Exclusion exclusion = why_excluded(request, row, *release, set);
    if (exclusion.why.empty())
      eligible.releases.emplace_back(release, version);
    else if (eligible.excluded.why.empty())
      eligible.excluded = std::move(exclusion);
  }
  return eligible;
}

// Without a wheel: the newest release that is built for this torch. Of a torch that is newer than all of those, the
// newest release; of an older one, the oldest: metadata names no limits, and code does not work with every torch.
std::size_t best_without_wheel(const Eligible& eligible, const TorchRelease& torch) {
  const auto& releases = eligible.releases;
  for (std::size_t i = 0; i < releases.size(); ++i)
    if (has_wheel_for(*releases[i].first, torch.minor)) return i;
  const bool older = std::ranges::any_of(torch_releases(), [&](const TorchRelease& other) {
    return &other < &torch && std::ranges::any_of(releases, [&](const auto& release) {
      return has_wheel_for(*release.first, other.minor);
    });
  });
  return older && std::ranges::none_of(torch_releases(),
                                       [&](const TorchRelease& other) {
                                         return &other > &torch &&
                                                std::ranges::any_of(releases, [&](const auto& release) {
                                                  return has_wheel_for(*release.first, other.minor);
                                                });
                                       })
             ? releases.size() - 1
             : 0;
}

void choose_release(const SuggestRequest& request, const Eligible& eligible, const SuggestedSet& set,
                    PackagePlan& plan) {
  const auto why_not = [&](std::size_t i) {
    return WheelSearch(request, *plan.row, *eligible.releases[i].first, set).why_not();
  };
  std::size_t chosen = eligible.releases.size();
  for (std::size_t i = 0; i < eligible.releases.size() && chosen == eligible.releases.size(); ++i)
    if (why_not(i).empty()) chosen = i;
  const bool wheel = chosen < eligible.releases.size();
  if (!wheel) chosen = best_without_wheel(eligible, *set.torch);
  plan.release = eligible.releases[chosen].first;
  plan.version = eligible.releases[chosen].second;
  plan.chain = why_not(wheel ? 0 : chosen);
  if (wheel) plan.why = message("a wheel of its release page fits");
  if (wheel) plan.needs_glibc = WheelSearch(request, *plan.row, *plan.release, set).glibc();
  plan.how = wheel ? PackagePlan::How::Wheel : PackagePlan::How::Own;
}

}  // namespace

bool has_wheel_for(const PackageRelease& release, const std::string& torch) {
  return std::ranges::any_of(release.wheels, [&](const PublishedWheels& wheels) {
    return std::ranges::find(wheels.torch, torch) != wheels.torch.end();
  });
}

bool is_wished(const PackageRow& row, const PackageRelease& release, const PackageWish& wish) {
  return !version_in(row, release, wish.range).empty();
}

PackagePlan plan_package(const SuggestRequest& request, const PackageWish& wish, const SuggestedSet& set) {
  PackagePlan plan{.name = wish.name, .version = wish.range.text()};
  plan.row = package_row(wish.name);
  if (plan.row == nullptr) {
    plan.why = message("not in scankit's tables: the installer decides");
    return plan;
  }
  plan.how = PackagePlan::How::Wheel;
  plan.module = plan.row->module;
  Eligible eligible = eligible_of(request, *plan.row, wish, set);
  if (eligible.releases.empty()) {
    Exclusion& excluded = eligible.excluded;
    plan.also = excluded.also;
    plan.needs_glibc = excluded.glibc;
    plan.chain = excluded.why.empty()
                     ? std::vector<Message>{message("no release in scankit's tables meets \"{}\"", wish.text)}
                     : std::move(excluded.why);
    return plan;
  }
  choose_release(request, eligible, set, plan);
  if (!plan.is_range() && !eligible.newest.empty()) plan.limit = limit_of(plan.name, eligible.newest, set);
  const std::string of_pins = glibc_of_pins(request, *plan.release);
  const auto pins = Version::parse(of_pins), wheel = Version::parse(plan.needs_glibc);
  if (!wheel || (pins && *wheel < *pins)) plan.needs_glibc = of_pins;
  if (plan.how == PackagePlan::How::Wheel || made_here(request, set, plan)) return plan;
  plan.how = PackagePlan::How::Wheel;
  plan.chain.push_back(message("no compiler that scankit uses makes code for this GPU"));
  plan.release = nullptr;
  plan.also = Wish{Wish::Kind::Gpu, "", ""};
  return plan;
}

}  // namespace scankit::envspec
