// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "doctor/base/message.h"
#include "doctor/checks/check.h"
#include "doctor/checks/gpu_queries.h"
#include "doctor/knowledge/cuda_support.h"

namespace scankit::checks {
namespace {

// Modules of ours without any device code, beside a torch with CUDA: made with --arch none, or beside a torch of the CPU
// that has been replaced since. Of others' modules only what they contain is judged: one may find its code elsewhere.
std::vector<Copy> ours_without_code(const Snapshot& snapshot) {
  std::vector<Copy> found;
  if (snapshot.torch.value.cuda.empty()) return found;
  for (const Copy& copy : whole_copies(snapshot))
    if (copy->images.empty() && copy->file_detail.empty() && copy->distribution.starts_with("scankit-"))
      found.push_back(copy);
  return found;
}

Message no_device_code(const Snapshot& snapshot) {
  const bool none = device_code(snapshot).empty() && ours_without_code(snapshot).empty();
  return none ? message("neither torch nor a checked module contains device code") : "";
}

// What to tell if there is no GPU here although there is device code. A user who describes a machine
// without a GPU wants no such hint.
Message gpus_left_out(const Snapshot& snapshot) {
  const bool none_here = snapshot.gpus.state == ProbeState::Absent && snapshot.described.empty();
  return none_here && !device_code(snapshot).empty()
             ? message("GPU code: no GPU found (use --gpu sm_90 to check against one)")
             : "";
}

std::vector<Fix> fixes_for_gpu(const Snapshot& snapshot, const DeviceCode& code, const SeenGpu& gpu) {
  if (code.module == "torch")
    return {
        Advice{message("install a torch release whose CUDA build includes sm_{} in "
                       "torch.cuda.get_arch_list()",
                       gpu.gpu->sm)}};
  return rebuild_for(snapshot, code, gpu, message("rebuild {} for sm_{}", code.module, gpu.gpu->sm));
}

// None of the images runs on the GPU.
Finding no_image(const Snapshot& snapshot, const DeviceCode& code, const SeenGpu& gpu) {
  const bool ptx = std::ranges::any_of(*code.images, [](const auto& image) { return image.kind == "ptx"; });
  return {.cause = Cause::NoKernelImage,
          .subject = code.subject,
          .module = code.module,
          .summary =
              ptx ? message("it contains device code for {}; {} is sm_{}", image_list(*code.images),
                            gpu.name(), gpu.gpu->sm)
                  : message("it contains device code for {} and no PTX that the driver could compile; {} is "
                            "sm_{}",
                            image_list(*code.images), gpu.name(), gpu.gpu->sm),
          .evidence = {{gpu.pointer() + "/sm", gpu.gpu->sm},
                       {code.pointer + "/0/sm", std::to_string(code.images->front().sm)}},
          .fixes = fixes_for_gpu(snapshot, code, gpu)};
}

// An image fits, but the driver cannot unpack it. The finding is a symptom of an old driver.
Finding unreadable_images(const Snapshot& snapshot, const DeviceCode& code, const SeenGpu& gpu,
                          std::size_t image) {
  const Driver& driver = snapshot.driver.value;
  // A stub libcuda has no driver's version.
  const bool library = !driver.libcuda_version.empty() && driver.libcuda_kind != "stub";
  const std::string& version = library ? driver.libcuda_version : driver.version;
  const std::string& packing = (*code.images)[image].compression;
  const auto needed = knowledge::driver_that_unpacks(packing);
  std::string floor;
  for (const unsigned part : needed->release) floor += (floor.empty() ? "" : ".") + std::to_string(part);
  std::vector<Fix> fixes = {Advice{message("update the NVIDIA driver to {} or newer", floor)}};
  if (code.module != "torch") {
    const auto more = module_fixes(
        snapshot, code.module, message("or rebuild {} with nvcc -Xfatbin -compress-mode=speed", code.module));
    fixes.insert(fixes.end(), more.begin(), more.end());
  }
  return {
      .cause = Cause::NoKernelImage,
      .subject = code.subject,
      .module = code.module,
      .summary = message("device code for {} is {}-compressed and needs driver {} or newer (installed: {})",
                         gpu.name(), packing, floor, version),
      .evidence = {{code.pointer + "/" + std::to_string(image) + "/compression", packing},
                   library ? Evidence{"/driver/value/libcuda_version", version}
                           : Evidence{"/driver/value/version", version}},
      .fixes = std::move(fixes),
      .circumstances = {Circumstance::DriverCannotUnpack}};
}

// The version of the driver half that unpacks and reads images, which is libcuda's, as evidence.
Evidence user_driver_fact(const Snapshot& snapshot) {
  const Driver& driver = snapshot.driver.value;
  const bool library = !driver.libcuda_version.empty() && driver.libcuda_kind != "stub";
  return library ? Evidence{"/driver/value/libcuda_version", driver.libcuda_version}
                 : Evidence{"/driver/value/version", driver.version};
}

// An image fits, but the driver does not read its cubin ABI. CUDA 13 writes a newer one than CUDA 12.
Finding unread_cubin_abi(const Snapshot& snapshot, const DeviceCode& code, const SeenGpu& gpu,
                         std::size_t image) {
  const DeviceImage& cubin = (*code.images)[image];
  const auto drivers = knowledge::drivers_of_cubin_abi(cubin.elf_abi, cubin.sm);
  const Evidence driver = user_driver_fact(snapshot);
  const std::string floor = drivers->reads_text;
  std::vector<Fix> fixes = {Advice{message("update the NVIDIA driver to {} or newer", floor)}};
  if (code.module != "torch") {
    const auto more = rebuild_for(snapshot, code, gpu, message("or rebuild {} with CUDA 12", code.module));
    fixes.insert(fixes.end(), more.begin(), more.end());
  }
  return {
      .cause = Cause::NoKernelImage,
      .subject = code.subject,
      .module = code.module,
      .summary =
          message("its code for {} has the format of CUDA 13 (cubin ABI {}), which needs driver {} or newer "
                  "(installed: {})",
                  gpu.name(), cubin.elf_abi, floor, driver.value),
      .evidence = {{code.pointer + "/" + std::to_string(image) + "/elf_abi", std::to_string(cubin.elf_abi)},
                   driver},
      .fixes = std::move(fixes)};
}

// The sentence for a cubin ABI that is unknown, or that this driver may or may not read.
Message unclear_cubin_abi(const Snapshot& snapshot, const DeviceCode& code, std::size_t image) {
  const DeviceImage& cubin = (*code.images)[image];
  const auto drivers = knowledge::drivers_of_cubin_abi(cubin.elf_abi, cubin.sm);
  const std::string driver = user_driver_fact(snapshot).value;
  if (!drivers)
    return message(
        "the code of {} has an unknown format (cubin ABI {}): whether driver {} supports it is not known",
        code.subject, cubin.elf_abi, driver);
  return message(
      "the code of {} has the format of CUDA 13 (cubin ABI {}): it is guaranteed to work with drivers from "
      "{} on; whether {} supports it is not known",
      code.subject, cubin.elf_abi, drivers->reads_text, driver);
}

// Judges one file's images for one GPU. One image that fits and that the driver can read is enough.
// Otherwise the best explanation is reported: no image at all, an image that may be readable, one that is
// not, one that cannot be unpacked.
void judge_device_code(const Snapshot& snapshot, const DeviceCode& code, const SeenGpu& gpu,
                       CheckResult& result) {
  std::optional<std::size_t> packed, refused, open;
  bool fits = false, unclear = false;
  for (std::size_t i = 0; i < code.images->size(); ++i) {
    if (!runs_on((*code.images)[i], gpu.sm)) continue;
    fits = true;
    const auto readable = driver_unpacks(snapshot, (*code.images)[i]);
    // Without a driver, or with one of unknown version, whether it could unpack the image is another
    // check's matter.
    const CubinAbi cubin_abi = driver_reads_cubin_abi(snapshot, (*code.images)[i]);
    if (cubin_abi == CubinAbi::Read && (!readable || *readable)) return;
    (cubin_abi == CubinAbi::Unknown ? open : cubin_abi == CubinAbi::Refused ? refused : packed) = i;
    unclear = gpu.visibility == Visibility::Unclear;
  }
  if (gpu.visibility == Visibility::Unclear || unclear) {
    result.unknown.push_back(message(
        "{} does not support {}, and CUDA_VISIBLE_DEVICES may or may not hide it", code.subject, gpu.name()));
    return;
  }
  if (!fits)
    result.findings.push_back(no_image(snapshot, code, gpu));
  else if (open)
    result.unknown.push_back(unclear_cubin_abi(snapshot, code, *open));
  else
    result.findings.push_back(refused ? unread_cubin_abi(snapshot, code, gpu, *refused)
                                      : unreadable_images(snapshot, code, gpu, *packed));
}

// Dao-AILab/causal-conv1d issues 105 and 106: the sm_103 code that nvcc 13 makes of its kernels computes
// wrong numbers, the code for sm_100 the right ones on the same card. Nothing is known about other
// kernels.
void note_miscompiled(const DeviceCode& code, const SeenGpu& gpu, CheckResult& result) {
  for (std::size_t i = 0; gpu.sm == 103 && i < code.images->size(); ++i) {
    const DeviceImage& image = (*code.images)[i];
    if (image.kind != "cubin" || image.sm != 103 || !image.toolkit.starts_with("13.")) continue;
    result.findings.push_back(
        {.cause = Cause::NumArchMiscompile,
         .subject = code.subject,
         .module = code.module,
         .summary = message(
             "it contains sm_103 code built by nvcc {}, which {} prefers; such code of causal_conv1d is "
             "known to compute wrong results",
             image.toolkit, gpu.name()),
         .evidence = {{code.pointer + "/" + std::to_string(i) + "/toolkit", image.toolkit},
                      {gpu.pointer() + "/sm", gpu.gpu->sm}},
         .fixes = {Advice{
             message("compare its results with a reference on that GPU, or rebuild for sm_100 only")}},
         .circumstances = {Circumstance::KnownOfOtherKernels}});
    return;
  }
}

void judge_without_code(const Snapshot& snapshot, const SeenGpu& gpu, CheckResult& result) {
  if (gpu.visibility != Visibility::Visible) return;
  for (const Copy& copy : ours_without_code(snapshot)) {
    const DeviceCode none{copy->path, copy->module, copy.pointer + "/images", &copy->images};
    result.findings.push_back(
        {.cause = Cause::NoKernelImage,
         .subject = copy->path,
         .module = copy->module,
         .summary = message("it contains no device code, only that for the CPU; {} is sm_{}", gpu.name(),
                            gpu.gpu->sm),
         .evidence = {{gpu.pointer() + "/sm", gpu.gpu->sm}, copy.at("distribution", copy->distribution)},
         .fixes = fixes_for_gpu(snapshot, none, gpu)});
  }
}

CheckResult gpu_arch_covered(const Snapshot& snapshot) {
  CheckResult result;
  for (const SeenGpu& gpu : seen_gpus(snapshot)) {
    if (gpu.visibility == Visibility::Hidden) {
      result.not_checked.push_back(message("{} is hidden by CUDA_VISIBLE_DEVICES", gpu.name()));
      continue;
    }
    if (gpu.sm == 0) {
      result.unknown.push_back(message("the compute capability of {} is not known", gpu.name()));
      continue;
    }
    for (const DeviceCode& code : device_code(snapshot)) {
      judge_device_code(snapshot, code, gpu, result);
      note_miscompiled(code, gpu, result);
    }
    judge_without_code(snapshot, gpu, result);
  }
  return result;
}

}  // namespace

extern const Check kGpuArchCovered{
    .id = "gpu-arch-covered",
    .question = "Do torch and each module contain code that every GPU here can run?",
    .needs = kGpus | kExtensions | kImages,
    .confirmed_by_import = false,
    .not_applicable = no_device_code,
    .run = gpu_arch_covered,
    .left_out = gpus_left_out};

namespace {

// Machine code for the GPU makes PTX and its compiler irrelevant.
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

// The driver must compile PTX at load time, which it can only do for PTX that is not newer than itself.
bool only_ptx(const DeviceCode& code, const SeenGpu& gpu) {
  return gpu.sm != 0 && gpu.visibility != Visibility::Hidden && !has_machine_code(code, gpu.sm) &&
         !ptx_for(code, gpu.sm).empty();
}

Message ptx_not_applicable(const Snapshot& snapshot) {
  if (snapshot.driver.state == ProbeState::Absent) return message("driver: {}", why_missing(snapshot.driver));
  for (const DeviceCode& code : device_code(snapshot))
    for (const SeenGpu& gpu : seen_gpus(snapshot))
      if (only_ptx(code, gpu)) return "";
  return message("nothing depends only on PTX");
}

// Whether the driver compiles the PTX. It is certain only if every fitting PTX is too new, because the
// choice is the driver's.
void judge_ptx(const Snapshot& snapshot, const DeviceCode& code, const SeenGpu& gpu, CheckResult& result) {
  const std::vector<std::size_t> ptx = ptx_for(code, gpu.sm);
  const auto supported = supported_cuda(snapshot);
  std::size_t too_new = 0;
  for (const std::size_t i : ptx) {
    const auto needed = knowledge::cuda_of_ptx((*code.images)[i].isa);
    if (!supported || !needed || (*needed > supported->cuda && supported->or_newer)) {
      result.unknown.push_back(
          message("{} supports {} with PTX {} only; whether this driver compiles it is not known",
                  code.subject, gpu.name(), (*code.images)[i].isa));
      return;
    }
    too_new += *needed > supported->cuda ? 1 : 0;
  }
  if (too_new == 0) return;
  const DeviceImage& image = (*code.images)[ptx.front()];
  if (too_new < ptx.size() || gpu.visibility == Visibility::Unclear) {
    result.unknown.push_back(message("{} supports {} with PTX only, part of which this driver cannot compile",
                                     code.subject, gpu.name()));
    return;
  }
  const std::string needed = knowledge::cuda_of_ptx(image.isa)->major_minor();
  std::vector<Fix> fixes = {Advice{message("update the NVIDIA driver to one that supports CUDA {}", needed)}};
  if (code.module != "torch") {
    const auto more =
        rebuild_for(snapshot, code, gpu, message("or rebuild {} for sm_{}", code.module, gpu.gpu->sm));
    fixes.insert(fixes.end(), more.begin(), more.end());
  }
  result.findings.push_back(
      {.cause = Cause::PtxToolchain,
       .subject = code.subject,
       .module = code.module,
       .summary = message(
           "for {} it contains only PTX {}, which needs a driver with CUDA {}; this one supports CUDA up to "
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

extern const Check kPtxLoadable{.id = "ptx-loadable",
                                .question = "Can the driver compile the PTX that a GPU depends on?",
                                .needs = kGpus | kExtensions,
                                .confirmed_by_import = false,
                                .not_applicable = ptx_not_applicable,
                                .run = ptx_loadable};

}  // namespace scankit::checks
