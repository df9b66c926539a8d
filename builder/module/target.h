// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "doctor/base/result.h"
#include "doctor/model/snapshot.h"

// What device code is made for.
namespace scankit::module {

// One architecture that device code is made for: sm_90 is a cubin, compute_90 is PTX.
struct Target {
  bool ptx = false;
  unsigned sm = 0;       // 90
  std::string specific;  // "", or "a" and "f": for this architecture, or its family, alone
  std::string name() const { return (ptx ? "compute_" : "sm_") + std::to_string(sm) + specific; }
  bool operator==(const Target&) const = default;
};

// "sm_80, sm_90, compute_75"
std::string names_of(const std::vector<Target>& targets, const std::string& separator);

// What --arch asks for. Default: for the GPUs here, or PTX if there is no GPU. Native: for the GPUs here, or
// an Error. All: every architecture of the compiler, and one PTX. None: no device code, and so no compiler.
struct TargetRequest {
  enum class Kind { Default, Native, All, List, None } kind = Kind::Default;
  std::vector<Target> list;  // of Kind::List
  std::string none_since;    // of Kind::None: why, for people; "" where the user asked for it
  std::string
      cuda;  // the compiler is of this release's major, for a module that is linked with torch; "": any
};
// "native", "all", or "sm_90,sm_80,compute_75" (a bare "90" or "9.0" means sm_90).
Result<TargetRequest> parse_targets(const std::string& text);

struct TargetChoice {
  std::vector<Target> targets;     // no doubles; cubins by number, then PTX
  std::vector<std::string> notes;  // what the user should know: "no GPU here: PTX only"
  bool too_old =
      false;  // second best: PTX since the compiler is older than a GPU, or a driver that may refuse
};
// `supported`: the SM numbers that the compiler targets, in ascending order. Errc::Unsupported if it cannot
// make what is asked.
Result<TargetChoice> choose_targets(const TargetRequest& request, const Probed<std::vector<Gpu>>& gpus,
                                    const std::vector<unsigned>& supported);

}  // namespace scankit::module
