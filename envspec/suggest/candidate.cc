// SPDX-License-Identifier: Apache-2.0
#include "envspec/suggest/candidate.h"

#include <algorithm>

#include "builder/installer/installer.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/base/version.h"
#include "doctor/checks/gpu_queries.h"
#include "doctor/knowledge/cuda_support.h"
#include "doctor/knowledge/known_packages.h"
#include "doctor/matrix/places.h"
#include "envspec/spec/derive.h"

namespace scankit::envspec {

bool minor_meets(const VersionRange& range, const std::string& minor) {
  constexpr unsigned kPatches = 40;
  for (unsigned patch = 0; patch < kPatches; ++patch)
    if (range.contains(minor + "." + std::to_string(patch)).value_or(false)) return true;
  return false;
}

std::string sms(const Archs& archs) {
  std::vector<std::string> names;
  for (const unsigned arch : archs) names.push_back(sm(arch));
  return join(names);
}

// The numbers of a Jetson's drivers are their own: 540.4 is that of Jetson Linux 36.4. Only their branch is compared.
bool is_for_jetson(const SuggestRequest& request) {
  return std::ranges::any_of(request.gpus, checks::is_tegra);
}

namespace {

// The table has the triton of the newest patch. Another patch of torch requires another patch of the same minor release
// of triton: 2.9.0 requires 3.5.0, 2.9.1 requires 3.5.1.
bool is_patch_of_table(const SuggestedSet& set) { return set.torch_version == set.torch->version; }
std::string triton_minor(const SuggestedSet& set) {
  const auto triton = Version::parse(set.torch->triton);
  return triton ? triton->major_minor() : set.torch->triton;
}

}  // namespace

std::string triton_text(const SuggestedSet& set) {
  return is_patch_of_table(set) ? set.torch->triton : triton_minor(set) + ".*";
}

bool triton_meets(const VersionRange& range, const SuggestedSet& set) {
  return is_patch_of_table(set) ? range.contains(set.torch->triton).value_or(true)
                                : minor_meets(range, triton_minor(set));
}

namespace {

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

// The first driver that knows the GPU. From sm_100 on cubins are written in a way that older drivers refuse, whatever
// CUDA they are of, and a chip that a later CUDA introduced is not in the drivers before it. Nothing for older GPUs,
// which every driver of a supported CUDA knows, and where the tables do not say.
constexpr unsigned kFirstBounded = 100;
std::optional<Version> driver_that_knows(unsigned gpu) {
  constexpr unsigned kCubinAbi = 8;
  const auto of_chip = knowledge::driver_of_first_cuda(gpu);
  const auto of_abi = knowledge::drivers_of_cubin_abi(kCubinAbi, gpu);
  if (gpu < kFirstBounded || !of_chip || !of_abi) return std::nullopt;
  return std::max(*of_chip, of_abi->reads);
}

// "550.54" is every driver that begins so: only the parts that were given are compared.
bool is_older(const Version& driver, Version needed) {
  if (needed.release.size() > driver.release.size()) needed.release.resize(driver.release.size());
  return driver < needed;
}

Version as_compared(const SuggestRequest& request, Version needed) {
  if (is_for_jetson(request)) needed.release.resize(1);
  return needed;
}

Message supported_by_driver(const SuggestRequest& request) {
  if (request.driver_cuda)
    return message("driver {} supports CUDA up to {}", request.driver_text,
                   request.driver_cuda->major_minor());
  if (is_for_jetson(request))  // the table is of other drivers
    return message("driver {} is of branch {}", request.driver_text, request.driver->part(0));
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
      : request_(request),
        wishes_(wishes),
        candidate_(candidate),
        set_(candidate.set),
        jetson_(is_for_jetson(request)) {}

  void all() {
    gpus();
    driver();
    glibc();
    python();
    cuda();
    // torch and triton first: the patch of torch decides about the packages.
    for (const PackageWish& wish : request_.packages)
      if (wish.name == "torch") torch(wish);
    for (const PackageWish& wish : request_.packages)
      if (wish.name == "triton") triton(wish);
    for (const bool first : {true, false})
      for (const PackageWish& wish : request_.packages)
        if (wish.name != "torch" && wish.name != "triton" && has_partners(wish.name) == first) package(wish);
    std::ranges::sort(set_.packages, {}, [&](const PackagePlan& plan) {
      return std::ranges::find(request_.packages, plan.name, &PackageWish::name);
    });
  }

 private:
  // Whose releases limit those of another package: chosen before it.
  static bool has_partners(const std::string& name) {
    const PackageRow* row = package_row(name);
    return row != nullptr && std::ranges::any_of(row->releases, [](const PackageRelease& release) {
             return !release.partners.empty();
           });
  }
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
    const Version oldest = as_compared(request_, oldest_driver(*set_.build)),
                  of_cuda = as_compared(request_, *knowledge::minimum_driver(set_.build->cuda));
    set_.needs_driver = driver_text(as_compared(request_, with_gpus(oldest)));
    if (!request_.driver) return;
    const unsigned major = set_.build->cuda.part(0);
    const auto supports = request_.driver_cuda;
    if (supports ? supports->part(0) < major : is_older(*request_.driver, of_cuda))
      return violate(
          wish_of(Wish::Kind::Driver), "cuda:" + std::to_string(major),
          {supported_by_driver(request_),
           message("torch {} is built with CUDA {}", build_text(), set_.build->cuda_text),
           jetson_ ? message("CUDA {} needs a driver of branch {} or newer, which a Jetson gets only "
                             "with a newer JetPack",
                             major, driver_text(of_cuda))
                   : message("CUDA {} needs a driver of {} or newer", major, driver_text(of_cuda))});
    if (is_older(*request_.driver, oldest))
      return violate(
          wish_of(Wish::Kind::Driver), "packing:" + set_.build->packing,
          {message("driver {} does not read device code that is packed with zstd", request_.driver_text),
           set_.build->packing == "zstd"
               ? message("the code in torch {} is packed with zstd", build_text())
               : message("how the code in torch {} is packed is not known", build_text()),
           jetson_
               ? message(
                     "drivers of branch {} or newer read it, which a Jetson gets only with a newer JetPack",
                     driver_text(oldest))
               : message("drivers of {} or newer read it", driver_text(oldest))});
    for (const unsigned gpu : request_.gpus) driver_knows(gpu);
    if (jetson_) return note_newer_cuda_of_jetson();
    const auto supported = knowledge::cuda_of_driver(*request_.driver);
    if (supported && !supported->or_newer && supported->cuda < set_.build->cuda)
      set_.notes.push_back(
          message("driver {} supports CUDA {}; a build with CUDA {} runs on it by minor-version "
                  "compatibility, which CUDA {} has from driver {} on",
                  request_.driver_text, supported->cuda.major_minor(), set_.build->cuda_text, major,
                  driver_text(of_cuda)));
  }

  void note_newer_cuda_of_jetson() {
    if (request_.driver_cuda && *request_.driver_cuda < set_.build->cuda)
      set_.notes.push_back(message(
          "driver {} supports CUDA {}; whether a build with CUDA {} runs on it is not known for a Jetson",
          request_.driver_text, request_.driver_cuda->major_minor(), set_.build->cuda_text));
  }

  // The GPUs raise the bound of the build, also where nothing is known of the driver.
  Version with_gpus(Version driver) {
    for (const unsigned gpu : request_.gpus) {
      const auto knows = driver_that_knows(gpu);
      if (knows) driver = std::max(driver, *knows);
      if (!knows && gpu >= kFirstBounded)
        set_.notes.push_back(message("which driver is the first for {} is not known", sm(gpu)));
    }
    return driver;
  }

  void driver_knows(unsigned gpu) {
    const auto knows = driver_that_knows(gpu);
    if (!knows || request_.driver_cuda || !is_older(*request_.driver, as_compared(request_, *knows))) return;
    violate(wish_of(Wish::Kind::Driver), "gpu of driver",
            {supported_by_driver(request_),
             jetson_ ? message("code for {} needs a driver of branch {} or newer, which a Jetson gets only "
                               "with a newer JetPack",
                               sm(gpu), driver_text(as_compared(request_, *knows)))
                     : message("code for {} needs a driver of {} or newer", sm(gpu), driver_text(*knows))},
            wish_of(Wish::Kind::Gpu, sm(gpu)));
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
    if (set_.torch->triton.empty() || triton_meets(wish.range, set_)) return;
    // Another patch of torch may require what the wish takes.
    const auto patch = Version::parse(set_.torch_version)->part(2);
    const bool other = patch > 0 && minor_meets(wish.range, triton_minor(set_));
    const auto pinned = std::ranges::find(request_.packages, "torch", &PackageWish::name);
    const bool free = pinned == request_.packages.end();
    if (other && free) {
      set_.torch_version = set_.torch->minor + "." + std::to_string(patch - 1);
      return;
    }
    const std::string triton = triton_text(set_);
    violate(wish_of(Wish::Kind::Package, wish.text), "triton:" + triton,
            {message("torch {} requires triton {}", set_.torch_version, triton),
             message("\"{}\" excludes it", wish.text)},
            other ? std::optional(wish_of(Wish::Kind::Package, pinned->text)) : std::nullopt);
  }

  void package(const PackageWish& wish) {
    PackagePlan plan = plan_package(request_, wish, set_);
    const bool none = plan.how != PackagePlan::How::Index && plan.release == nullptr;
    const auto glibc = Version::parse(plan.needs_glibc), torch = Version::parse(set_.needs_glibc);
    if (glibc && torch && *torch < *glibc) set_.needs_glibc = plan.needs_glibc;
    const std::size_t also = plan.also ? wish_of(plan.also->kind, plan.also->text) : wishes_.size();
    if (none)
      violate(wish_of(Wish::Kind::Package, wish.text), wish.name, std::move(plan.chain),
              also < wishes_.size() ? std::optional(also) : std::nullopt);
    else
      set_.packages.push_back(std::move(plan));
  }

  const SuggestRequest& request_;
  const std::vector<Wish>& wishes_;
  TorchCandidate& candidate_;
  SuggestedSet& set_;
  bool jetson_;
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
        if (build.machine != request.machine || !matrix::torch_has_wheels_for(torch.minor, python)) continue;
        TorchCandidate candidate;
        candidate.set.python = python;
        candidate.set.torch = &torch;
        candidate.set.build = &build;
        candidate.set.torch_version = torch.version;
        candidate.set.numpy = torch.numpy;
        candidate.set.needs_glibc = build.glibc;
        Judge(request, wishes, candidate).all();
        candidates.push_back(std::move(candidate));
      }
  return candidates;
}

namespace {

// "transformers<5" and "<4.56" together. The lower of two upper limits says both.
std::string narrowed(const std::string& requirement, const std::string& specifier) {
  const std::string has = requirement.substr(installer::required_name(requirement).size());
  const auto limit = [](const std::string& one) {
    return one.starts_with('<') && one.find_first_of(",=") == std::string::npos
               ? Version::parse(one.substr(1))
               : std::nullopt;
  };
  const auto a = limit(has), b = limit(specifier);
  if (!a || !b) return has == specifier ? requirement : requirement + "," + specifier;
  return installer::required_name(requirement) + (*b < *a ? specifier : has);
}

}  // namespace

std::vector<std::string> needed_beside(const SuggestedSet& set) {
  std::vector<std::string> all;
  if (!set.numpy.empty()) all.push_back(set.numpy);
  const auto add = [&](const std::string& requirement) {
    const std::string name = installer::required_name(requirement);
    const auto same = std::ranges::find(all, name, installer::required_name);
    if (same == all.end())
      all.push_back(requirement);
    else
      *same = narrowed(*same, requirement.substr(name.size()));
  };
  for (const PackagePlan& plan : set.packages) {
    if (plan.row == nullptr) continue;
    if (!plan.is_range()) std::ranges::for_each(knowledge::limits_beside(plan.name, plan.version), add);
    for (const std::string& package : plan.row->imports)
      if (const std::string limit = knowledge::limit_for_torch(package, set.torch_version); !limit.empty())
        add(limit);
  }
  return all;
}

}  // namespace scankit::envspec
