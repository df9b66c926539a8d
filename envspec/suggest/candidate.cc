// SPDX-License-Identifier: Apache-2.0
#include "envspec/suggest/candidate.h"

#include <algorithm>

#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/knowledge/cuda_support.h"
#include "doctor/matrix/places.h"
#include "envspec/spec/derive.h"

namespace scankit::envspec {
namespace {

// A Python of which only the minor release is known meets a range that some patch of it meets.
bool minor_meets(const VersionRange& range, const std::string& minor) {
  constexpr unsigned kPatches = 40;
  for (unsigned patch = 0; patch < kPatches; ++patch)
    if (range.contains(minor + "." + std::to_string(patch)).value_or(false)) return true;
  return false;
}

std::string sm(unsigned gpu) { return "sm_" + std::to_string(gpu); }

std::string sms(const Archs& archs) {
  std::vector<std::string> names;
  for (const unsigned arch : archs) names.push_back(sm(arch));
  return join(names);
}

// "3.10 to 3.14"
std::string pythons_of(const TorchRelease& torch) {
  std::string first, last;
  for (const std::string& python : known_target_pythons())
    if (matrix::torch_has_wheels_for(torch.minor, python)) {
      if (first.empty()) first = python;
      last = python;
    }
  return say("{} to {}", first, last);
}

// The first drivers that run the build: of its CUDA's major release, and that read how its code is packed.
Version oldest_driver(const TorchBuild& build) {
  Version driver = knowledge::minimum_driver(build.cuda).value_or(Version{});
  if (build.packing == "lz4") return driver;
  const auto unpacks = knowledge::driver_that_unpacks("zstd");
  return unpacks && *unpacks > driver ? *unpacks : driver;
}

// "550.54" is every driver that begins so: only the parts that were given are compared.
bool is_older(const Version& driver, Version needed) {
  if (needed.release.size() > driver.release.size()) needed.release.resize(driver.release.size());
  return driver < needed;
}

Message supported_by_driver(const SuggestRequest& request) {
  const auto supported = knowledge::cuda_of_driver(*request.driver);
  return supported
             ? message("driver {} supports CUDA up to {}", request.driver_text, supported->cuda.major_minor())
             : message("driver {} is older than CUDA 10", request.driver_text);
}

std::string cuda_wish(const SuggestRequest& request) { return say("CUDA {}", request.cuda.text()); }

// Collects what is wrong with one candidate.
class Judge {
 public:
  Judge(const SuggestRequest& request, const std::vector<Wish>& wishes, TorchCandidate& candidate)
      : request_(request), wishes_(wishes), candidate_(candidate), set_(candidate.set) {}

  void all() {
    gpus();
    driver();
    glibc();
    python();
    cuda();
    for (const PackageWish& wish : request_.packages) package(wish);
  }

 private:
  std::size_t wish_of(Wish::Kind kind, const std::string& text = "") const {
    for (std::size_t i = 0; i < wishes_.size(); ++i)
      if (wishes_[i].kind == kind && (text.empty() || wishes_[i].text == text)) return i;
    return wishes_.size();
  }
  void violate(std::size_t wish, std::string group, std::vector<Message> chain,
               std::optional<std::size_t> also = std::nullopt) {
    candidate_.violations.push_back({wish, also, std::move(group), std::move(chain)});
  }
  std::string build_text() const { return set_.torch_version + "+" + set_.build->backend(); }

  void gpus() {
    for (const unsigned gpu : request_.gpus) {
      if (has_code_for(set_.build->archs, gpu)) continue;
      if (has_ptx_for(set_.build->ptx, gpu)) {
        set_.by_ptx = true;
        set_.notes.push_back(
            message("torch has no code for {}: the driver compiles its PTX for compute_{} at first use",
                    sm(gpu), *set_.build->ptx));
        continue;
      }
      violate(wish_of(Wish::Kind::Gpu, sm(gpu)), "gpu:" + sm(gpu) + sms(set_.build->archs),
              {message("torch {} contains code for {}", build_text(), sms(set_.build->archs)),
               message("that code does not run on {}", sm(gpu))});
    }
  }

  void driver() {
    const Version oldest = oldest_driver(*set_.build), of_cuda = *knowledge::minimum_driver(set_.build->cuda);
    set_.needs_driver = driver_text(oldest);
    if (!request_.driver) return;
    const unsigned major = set_.build->cuda.part(0);
    if (is_older(*request_.driver, of_cuda))
      return violate(wish_of(Wish::Kind::Driver), "cuda:" + std::to_string(major),
                     {supported_by_driver(request_),
                      message("torch {} is built with CUDA {}", build_text(), set_.build->cuda_text),
                      message("CUDA {} needs a driver of {} or newer", major, driver_text(of_cuda))});
    if (is_older(*request_.driver, oldest))
      return violate(
          wish_of(Wish::Kind::Driver), "packing:" + set_.build->packing,
          {message("driver {} does not read device code that is packed with zstd", request_.driver_text),
           set_.build->packing == "zstd"
               ? message("the code in torch {} is packed with zstd", build_text())
               : message("how the code in torch {} is packed is not known", build_text()),
           message("drivers of {} or newer read it", driver_text(oldest))});
    for (const unsigned gpu : request_.gpus) driver_knows(gpu);
    const auto supported = knowledge::cuda_of_driver(*request_.driver);
    if (supported && !supported->or_newer && supported->cuda < set_.build->cuda)
      set_.notes.push_back(
          message("driver {} supports CUDA {}; a build with CUDA {} runs on it by minor-version "
                  "compatibility, which CUDA {} has from driver {} on",
                  request_.driver_text, supported->cuda.major_minor(), set_.build->cuda_text, major,
                  driver_text(of_cuda)));
  }

  // From sm_100 on cubins are written in a way that older drivers refuse, whatever CUDA they are of.
  void driver_knows(unsigned gpu) {
    constexpr unsigned kCubinAbi = 8, kFirst = 100;
    const auto drivers = knowledge::drivers_of_cubin_abi(kCubinAbi, gpu);
    if (gpu < kFirst || !drivers || !is_older(*request_.driver, drivers->reads)) return;
    violate(wish_of(Wish::Kind::Driver), "gpu of driver",
            {supported_by_driver(request_),
             message("code for {} needs a driver of {} or newer", sm(gpu), drivers->reads_text)},
            wish_of(Wish::Kind::Gpu, sm(gpu)));
    if (drivers->reads > oldest_driver(*set_.build)) set_.needs_driver = drivers->reads_text;
  }

  void glibc() {
    const auto have = Version::parse(request_.glibc), needs = Version::parse(set_.build->glibc);
    if (!have || !needs || !(*have < *needs)) return;
    violate(wish_of(Wish::Kind::Glibc), "glibc:" + set_.build->glibc,
            {message("the wheels of torch {} need glibc {}", build_text(), set_.build->glibc),
             message("this system has glibc {}", request_.glibc)});
  }

  void python() {
    if (!request_.python || minor_meets(*request_.python, set_.python)) return;
    violate(wish_of(Wish::Kind::Python), "python:" + pythons_of(*set_.torch),
            {message("torch {} has wheels for Python {}", set_.torch->minor, pythons_of(*set_.torch)),
             message("Python {} is required", request_.python_text)});
  }

  void cuda() {
    if (request_.cuda.contains(set_.build->cuda_text).value_or(true)) return;
    violate(wish_of(Wish::Kind::Package, cuda_wish(request_)), "cuda wish",
            {message("torch {} is built with CUDA {}", build_text(), set_.build->cuda_text),
             message("CUDA {} is required", request_.cuda.text())});
  }

  // A patch of this minor release, the newest first, that the range takes.
  void torch(const PackageWish& wish) {
    const auto newest = Version::parse(set_.torch->version);
    for (long patch = newest->part(2); patch >= 0; --patch) {
      const std::string version = set_.torch->minor + "." + std::to_string(patch);
      if (wish.range.contains(version + "+" + set_.build->backend()).value_or(false)) {
        set_.torch_version = version;
        return;
      }
    }
    violate(wish_of(Wish::Kind::Package, wish.text), "torch",
            {message("\"{}\" excludes torch {}", wish.text, build_text())});
  }

  void triton(const PackageWish& wish) {
    if (set_.torch->triton.empty() || wish.range.contains(set_.torch->triton).value_or(true)) return;
    violate(wish_of(Wish::Kind::Package, wish.text), "triton:" + set_.torch->triton,
            {message("torch {} requires triton {}", set_.torch_version, set_.torch->triton),
             message("\"{}\" excludes it", wish.text)});
  }

  void package(const PackageWish& wish) {
    if (wish.name == "torch") return torch(wish);
    if (wish.name == "triton") return triton(wish);
    PackagePlan plan = plan_package(request_, wish, set_);
    const bool none = plan.how != PackagePlan::How::Index && plan.release == nullptr;
    if (none)
      violate(wish_of(Wish::Kind::Package, wish.text), wish.name, std::move(plan.chain),
              plan.gpu_decides && !request_.gpus.empty() ? std::optional(wish_of(Wish::Kind::Gpu))
                                                         : std::nullopt);
    else
      set_.packages.push_back(std::move(plan));
  }

  const SuggestRequest& request_;
  const std::vector<Wish>& wishes_;
  TorchCandidate& candidate_;
  SuggestedSet& set_;
};

}  // namespace

std::vector<Wish> wishes_of(const SuggestRequest& request) {
  std::vector<Wish> wishes;
  const auto origin = [&](std::size_t place) {
    return place < request.origins.size() ? request.origins[place] : std::string();
  };
  for (const unsigned gpu : request.gpus) wishes.push_back({Wish::Kind::Gpu, sm(gpu), origin(0)});
  if (request.driver) wishes.push_back({Wish::Kind::Driver, request.driver_text, origin(1)});
  if (!request.glibc.empty()) wishes.push_back({Wish::Kind::Glibc, request.glibc, origin(2)});
  if (request.python) wishes.push_back({Wish::Kind::Python, request.python_text, origin(3)});
  if (!request.cuda.empty()) wishes.push_back({Wish::Kind::Package, cuda_wish(request), say("requested")});
  for (const PackageWish& wish : request.packages)
    wishes.push_back({Wish::Kind::Package, wish.text, say("requested")});
  return wishes;
}

std::vector<TorchCandidate> candidates_of(const SuggestRequest& request, const std::vector<Wish>& wishes) {
  std::vector<TorchCandidate> candidates;
  for (const TorchRelease& torch : torch_releases())
    for (const TorchBuild& build : torch.builds)
      for (const std::string& python : known_target_pythons()) {
        if (!matrix::torch_has_wheels_for(torch.minor, python)) continue;
        TorchCandidate candidate;
        candidate.set.python = python;
        candidate.set.torch = &torch;
        candidate.set.build = &build;
        candidate.set.torch_version = torch.version;
        candidate.set.numpy = torch.numpy;
        Judge(request, wishes, candidate).all();
        candidates.push_back(std::move(candidate));
      }
  return candidates;
}

namespace {

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
    if (!request_.release_pages)
      return {message("the wheels of {} are on its release page, not on the package index", name)};
    const unsigned cuda = set_.build->cuda.part(0);
    const auto found = std::ranges::find_if(release_.wheels, [&](const PublishedWheels& wheels) {
      return wheels.cuda == cuda && has(wheels.torch, set_.torch->minor) && has(wheels.pythons, set_.python);
    });
    if (found == release_.wheels.end())
      return {message("{} has no wheel for torch {} with CUDA {} and Python {}", name, set_.torch->minor,
                      cuda, set_.python)};
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

 private:
  static bool has(const std::vector<std::string>& values, const std::string& value) {
    return std::ranges::find(values, value) != values.end();
  }
  const SuggestRequest& request_;
  const PackageRow& row_;
  const PackageRelease& release_;
  const SuggestedSet& set_;
};

// The version that a row stands for under this wish; "" where the wish excludes it. Releases that are newer than
// the table are meant only where a range names one and takes no row.
std::string version_in(const PackageRow& row, const PackageRelease& release, const VersionRange& range) {
  if (!release.after_the_table)
    return range.contains(release.version).value_or(false) ? release.version : std::string();
  const auto newest = Version::parse(row.releases[1].version), named = Version::parse(range.least());
  const bool newer = newest && named && std::is_gt(pep440_order(*named, *newest));
  return newer && range.contains(*named) ? range.least() : std::string();
}

// Why a release cannot be installed in this set at all; empty where it can.
std::vector<Message> why_excluded(const PackageRow& row, const PackageRelease& release,
                                  const SuggestedSet& set) {
  const std::string name = row.name + " " + release.version;
  const auto range = [](const std::string& text) {
    return VersionRange::parse(text).value_or(VersionRange());
  };
  if (!release.python.empty() && !minor_meets(range(release.python), set.python))
    return {message("{} requires Python {}", name, release.python), message("Python is {}", set.python)};
  if (release.triton.empty()) return {};
  if (set.torch->triton.empty())
    return {message("{} requires triton {}", name, release.triton),
            message("torch {} comes without triton", set.torch_version)};
  if (!range(release.triton).contains(set.torch->triton).value_or(false))
    return {message("{} requires triton {}", name, release.triton),
            message("torch {} requires triton {}", set.torch_version, set.torch->triton)};
  return {};
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

}  // namespace

namespace {

// Whether the project itself builds wheels of the release for this torch: what it builds, it tests.
bool is_built_for(const PackageRelease& release, const std::string& torch) {
  return std::ranges::any_of(release.wheels, [&](const PublishedWheels& wheels) {
    return std::ranges::find(wheels.torch, torch) != wheels.torch.end();
  });
}

// Releases that can be installed in the set, newest first, each with its version; why the newest other cannot.
struct Eligible {
  std::vector<std::pair<const PackageRelease*, std::string>> releases;
  std::vector<Message> excluded;
};

Eligible eligible_of(const PackageRow& row, const PackageWish& wish, const SuggestedSet& set) {
  Eligible eligible;
  for (const PackageRelease& release : row.releases) {
    const std::string version = version_in(row, release, wish.range);
    if (version.empty()) continue;
    std::vector<Message> why = why_excluded(row, release, set);
    if (why.empty())
      eligible.releases.emplace_back(&release, version);
    else if (eligible.excluded.empty())
      eligible.excluded = std::move(why);
  }
  return eligible;
}

// Without a wheel: the newest release that is built for this torch. Of a torch that is newer than all of those, the
// newest release; of an older one, the oldest: metadata names no limits, and code does not work with every torch.
std::size_t best_without_wheel(const Eligible& eligible, const TorchRelease& torch) {
  const auto& releases = eligible.releases;
  for (std::size_t i = 0; i < releases.size(); ++i)
    if (is_built_for(*releases[i].first, torch.minor)) return i;
  const bool older = std::ranges::any_of(torch_releases(), [&](const TorchRelease& other) {
    return &other < &torch && std::ranges::any_of(releases, [&](const auto& release) {
      return is_built_for(*release.first, other.minor);
    });
  });
  return older && std::ranges::none_of(torch_releases(),
                                       [&](const TorchRelease& other) {
                                         return &other > &torch &&
                                                std::ranges::any_of(releases, [&](const auto& release) {
                                                  return is_built_for(*release.first, other.minor);
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
  plan.how = wheel ? PackagePlan::How::Wheel : PackagePlan::How::Own;
}

}  // namespace

PackagePlan plan_package(const SuggestRequest& request, const PackageWish& wish, const SuggestedSet& set) {
  PackagePlan plan{.name = wish.name, .version = wish.range.text()};
  plan.row = package_row(wish.name);
  if (plan.row == nullptr) {
    plan.why = message("not in scankit's tables: the installer decides");
    return plan;
  }
  plan.how = PackagePlan::How::Wheel;
  plan.module = plan.row->module;
  Eligible eligible = eligible_of(*plan.row, wish, set);
  if (eligible.releases.empty()) {
    plan.chain = eligible.excluded.empty()
                     ? std::vector<Message>{message("no release in scankit's tables meets \"{}\"", wish.text)}
                     : std::move(eligible.excluded);
    return plan;
  }
  choose_release(request, eligible, set, plan);
  if (plan.how == PackagePlan::How::Wheel || made_here(request, set, plan)) return plan;
  plan.how = PackagePlan::How::Wheel;
  plan.chain.push_back(message("no compiler that scankit uses makes code for this GPU"));
  plan.release = nullptr;
  plan.gpu_decides = true;
  return plan;
}

}  // namespace scankit::envspec
