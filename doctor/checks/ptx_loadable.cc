// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "doctor/base/say.h"
#include "doctor/checks/check.h"
#include "doctor/checks/gpu_view.h"
#include "doctor/knowledge/drivers.h"

namespace scankit {
namespace {

// Machine code of the GPU's own needs no compiler.
bool has_machine_code(const DeviceCode& code, unsigned sm) {
  return std::ranges::any_of(
      *code.images, [&](const DeviceImage& image) { return image.kind == "cubin" && runs_on(image, sm); });
}

std::vector<std::size_t> ptx_for(const DeviceCode& code, unsigned sm) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < code.images->size(); ++i)
    if ((*code.images)[i].kind == "ptx" && runs_on((*code.images)[i], sm)) found.push_back(i);
  return found;
}

bool only_ptx(const DeviceCode& code, const SeenGpu& gpu) {
  return gpu.sm != 0 && gpu.visibility != Visibility::Hidden && !has_machine_code(code, gpu.sm) &&
         !ptx_for(code, gpu.sm).empty();
}

std::string ptx_not_applicable(const Snapshot& snapshot) {
  if (snapshot.driver.state == ProbeState::Absent) return say("driver: {}", why_missing(snapshot.driver));
  for (const DeviceCode& code : device_code(snapshot))
    for (const SeenGpu& gpu : seen_gpus(snapshot))
      if (only_ptx(code, gpu)) return "";
  return say("nothing here rests on PTX alone");
}

void judge_ptx(const Snapshot& snapshot, const DeviceCode& code, const SeenGpu& gpu, CheckResult& result) {
  const std::vector<std::size_t> ptx = ptx_for(code, gpu.sm);
  const auto supported = supported_cuda(snapshot);
  std::size_t too_new = 0;
  for (const std::size_t i : ptx) {
    const auto needed = cuda_of_ptx((*code.images)[i].isa);
    if (!supported || !needed || (*needed > supported->cuda && supported->or_newer)) {
      result.unknown.push_back(
          say("{} serves {} by PTX {} alone; whether this driver compiles it is not known", code.subject,
              gpu.name(), (*code.images)[i].isa));
      return;
    }
    too_new += *needed > supported->cuda ? 1 : 0;
  }
  if (too_new == 0) return;
  const DeviceImage& image = (*code.images)[ptx.front()];
  if (too_new < ptx.size() || gpu.visibility == Visibility::Unclear) {
    result.unknown.push_back(say("{} serves {} by PTX alone, a part of which this driver cannot compile",
                                 code.subject, gpu.name()));
    return;
  }
  const std::string needed = cuda_of_ptx(image.isa)->major_minor();
  std::vector<Fix> fixes = {Advice{say("update the NVIDIA driver to one that supports CUDA {}", needed)}};
  if (code.module != "torch") {
    const auto more =
        rebuild_for(snapshot, code, gpu, say("or rebuild {} for sm_{}", code.module, gpu.gpu->sm));
    fixes.insert(fixes.end(), more.begin(), more.end());
  }
  result.findings.push_back(
      {.cause = Cause::PtxToolchain,
       .subject = code.subject,
       .module = code.module,
       .summary = say(
           "for {} it holds only PTX {}, which a driver of CUDA {} compiles; this one supports CUDA up to "
           "{}",
           gpu.name(), image.isa, needed, supported->cuda.major_minor()),
       .evidence = {{code.pointer + "/" + std::to_string(ptx.front()) + "/isa", image.isa},
                    {gpu.pointer() + "/sm", gpu.gpu->sm},
                    supported->evidence},
       .fixes = std::move(fixes)});
}

CheckResult ptx_loadable(const Snapshot& snapshot) {
  CheckResult result;
  for (const DeviceCode& code : device_code(snapshot))
    for (const SeenGpu& gpu : seen_gpus(snapshot))
      if (only_ptx(code, gpu)) judge_ptx(snapshot, code, gpu, result);
  return result;
}

}  // namespace

extern const Check kPtxLoadable{
    .id = "ptx-loadable",
    .question = "Can the driver compile the PTX, where nothing else serves a GPU?",
    .needs = kGpus | kExtensions,
    .settled_by_import = false,
    .not_applicable = ptx_not_applicable,
    .run = ptx_loadable};
}  // namespace scankit
