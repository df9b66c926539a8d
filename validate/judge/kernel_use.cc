// SPDX-License-Identifier: Apache-2.0
#include "validate/judge/kernel_use.h"

#include <fcntl.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <tuple>

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/elf/fatbin.h"
#include "kernels/common/driver_context.h"
#include "kernels/selective_scan/cuda/launch.h"
#include "validate/cases/data.h"
#include "validate/run/children.h"
#include "validate/run/run.h"

// What the kernels of scankit's own module take on a GPU. Three sources are put together: the
// module's planner says what is launched, the cubin says what a kernel needs, and the driver says how
// many blocks fit.
namespace scankit::validate {
namespace {

// The last one is of no kernel: an array has at least one element.
constexpr BankRow kBankRows[] = {
#define BANK_CONFLICTS(capability, dtype, symbol, wavefronts, least) \
  {capability, selective_scan::DType::dtype, symbol, wavefronts, least},
#include "kernels/selective_scan/cuda/bank_conflicts.def"
#undef BANK_CONFLICTS
    {0, selective_scan::DType::F32, "", 0, 0}};

}  // namespace

std::span<const BankRow> recorded_bank_rows() { return std::span(kBankRows).first(std::size(kBankRows) - 1); }

std::optional<double> bank_conflicts_in(std::span<const BankRow> rows, int capability,
                                        selective_scan::DType dtype, std::string_view symbol) {
  for (const BankRow& row : rows)
    if (row.capability == capability && row.dtype == dtype && row.symbol == symbol && row.least > 0)
      return row.wavefronts / row.least - 1;
  return std::nullopt;
}

namespace {

namespace scan = selective_scan;

// The arguments are as harness/timing.py makes them: contiguous, with z, D, delta_bias and softplus. The
// planner only asks whether a pointer is null and how it is aligned, so that one address serves for all;
// nothing is ever read.
alignas(256) float somewhere[64];

scan::DType dtype_of(const Timing& t) {
  return t.dtype == "fp16" ? scan::DType::F16 : t.dtype == "bf16" ? scan::DType::BF16 : scan::DType::F32;
}

// Strides are those of contiguous tensors.
scan::Common common_of(const Timing& t) {
  const scan::Index row = t.length, channels = scan::Index{t.dim} * t.length;
  scan::Common c = {};
  c.batch = t.batch, c.dim = t.dim, c.length = t.length, c.states = t.states, c.groups = 1;
  c.dtype = dtype_of(t);
  c.softplus = true;
  c.u = c.delta = c.z = {somewhere, channels, row};
  c.A = c.D = c.delta_bias = somewhere;
  c.A_dim_stride = t.states, c.A_state_stride = 1;
  c.B = c.C = {somewhere, t.states * row, t.states * row, row};
  return c;
}

bool plan_of(const Timing& t, const device::DeviceFacts& facts, device::Plan* plan) {
  device::Message message;
  const scan::Common c = common_of(t);
  const scan::SequenceOut result{somewhere, c.u.batch_stride, c.u.dim_stride};
  const scan::Index channel = (scan::chunk_count(t.length) + 1) * t.states;
  const scan::SavedStates x{somewhere, t.dim * channel, channel, t.states};
  if (t.pass == "fwd") {
    scan::Forward forward = {};
    forward.common = c;
    forward.out = forward.out_z = result;
    forward.x = x;
    return plan_forward(forward, facts, plan, &message);
  }
  scan::Backward backward = {};
  backward.common = c;
  backward.dout = backward.out = c.u;
  backward.x = x;
  backward.du = backward.ddelta = backward.dz = result;
  backward.dA = backward.dB = backward.dC = backward.dD = backward.ddelta_bias = somewhere;
  return plan_backward(backward, facts, plan, &message);
}

int fact(const Validation& seen, const char* name) {
  const auto found = seen.gpu_facts.find(name);
  return found == seen.gpu_facts.end() ? 0 : found->second;
}

int capability(const Validation& seen) {
  return 10 * fact(seen, "capability_major") + fact(seen, "capability_minor");
}

std::string label(const Timing& t) {
  return t.pass + " B" + std::to_string(t.batch) + " D" + std::to_string(t.dim) + " L" +
         std::to_string(t.length) + " N" + std::to_string(t.states) + " " + t.dtype;
}

struct ReleaseIndex {
  void operator()(device::ImageIndex* index) const {
    device::release_index(index);
    delete index;
  }
};

// The module's cubin of `unit` for this GPU; "" where the module has none and the driver compiled its PTX.
std::string cubin_of(int fd, const device::ImageIndex& index, const std::string& unit, int sm) {
  const device::ImageEntry* entry = device::select_image(index, unit.c_str(), sm, 0);
  device::Message message;
  if (!entry || entry->kind != device::kImageCubin) return "";
  const std::unique_ptr<void, decltype(&std::free)> image(device::read_image(fd, *entry, &message),
                                                          &std::free);
  return image ? std::string(static_cast<const char*>(image.get()), device::image_size(*entry)) : "";
}

// Adds to each use what its cubin says, and writes the cubin to `folder` for the child. Uses without a
// cubin are dropped. The questions are in the order of the remaining uses.
Result<std::vector<KernelQuestion>> read_cubins(const std::string& module, const std::string& folder, int sm,
                                                std::vector<KernelUse>& uses) {
  const Descriptor file(::open(module.c_str(), O_RDONLY | O_CLOEXEC));
  auto index = std::unique_ptr<device::ImageIndex, ReleaseIndex>(new device::ImageIndex);
  device::Message message;
  std::vector<KernelUse> known;
  std::vector<KernelQuestion> questions;
  if (file.get() >= 0 && device::read_image_index(file.get(), index.get(), &message)) {
    for (KernelUse& use : uses) {
      const std::string cubin = cubin_of(file.get(), *index, use.unit, sm);
      if (cubin.empty()) continue;
      SCANKIT_TRY(const auto kernels, elf::cubin_kernels(cubin));
      const auto kernel = std::find_if(kernels.begin(), kernels.end(),
                                       [&](const elf::CubinKernel& k) { return k.name == use.name; });
      if (kernel == kernels.end()) continue;  // another release's module
      use.registers = kernel->registers;
      use.stack_bytes = kernel->stack_bytes;
      use.static_shared_bytes = kernel->static_shared_bytes;
      const std::string path = path_join(folder, use.unit + ".cubin");
      SCANKIT_CHECK(write_file_atomically(path, cubin));
      questions.push_back({path, use.name, use.threads, use.dynamic_shared_bytes});
      known.push_back(std::move(use));
    }
  }
  uses = std::move(known);
  return questions;
}

}  // namespace

std::vector<KernelUse> launched_kernels(const Validation& seen) {
  std::vector<KernelUse> uses;
  if (fact(seen, "multiprocessors") == 0) return uses;
  const device::DeviceFacts facts{capability(seen), fact(seen, "multiprocessors"),
                                  fact(seen, "shared_per_block"), fact(seen, "shared_per_multiprocessor")};
  for (const Timing& t : seen.timings) {
    device::Plan plan;
    if (!t.device.starts_with("cuda") || t.cache == "host" || !plan_of(t, facts, &plan)) continue;
    for (int i = 0; i < plan.launch_count; ++i) {
      const device::Launch& launch = plan.launches[i];
      const device::KernelName& kernel = scan::kCudaKernels[launch.kernel];
      KernelUse use{kernel.unit, kernel.symbol, label(t)};
      use.threads = launch.block_x;
      use.blocks = launch.grid_x * launch.grid_y;
      use.dynamic_shared_bytes = launch.shared_bytes;
      use.bank_conflicts = bank_conflicts_in(recorded_bank_rows(), capability(seen), dtype_of(t), use.name);
      const auto key = [](const KernelUse& k) {
        return std::tie(k.unit, k.name, k.threads, k.blocks, k.dynamic_shared_bytes);
      };
      if (std::none_of(uses.begin(), uses.end(), [&](const KernelUse& k) { return key(k) == key(use); }))
        uses.push_back(std::move(use));
    }
  }
  return uses;
}

void look_at_kernels(const ValidateRequest& request, const Harness& harness, Validation& seen) {
  std::vector<KernelUse> uses = launched_kernels(seen);
  if (uses.empty() || seen.module_file.empty()) return;
  Job job;
  job.mode = "kernels";
  job.device = first_gpu(request.devices);
  auto questions = read_cubins(seen.module_file, path_dirname(harness.script), capability(seen), uses);
  if (!questions) {
    seen.notes.push_back(say("the resources of the kernels were not read: {}", questions.error().message));
    return;
  }
  if (questions->empty()) return;
  job.kernels = std::move(*questions);
  ProcessRequest process = python_request(request.python, {harness.script}, std::chrono::minutes(2));
  process.standard_input = job_text(job);
  const auto result = run_process(process);
  ChildStory story;
  Validation heard;
  if (result) take_lines(result->channel, heard, story);
  if (!story.ended || story.kernels.size() != uses.size()) {
    seen.notes.push_back(say("the driver could not report the occupancy of the kernels: {}",
                             result ? describe_end(*result) : result.error().message));
  } else {
    for (std::size_t i = 0; i < uses.size(); ++i)
      uses[i].blocks_per_multiprocessor = story.kernels[i].blocks_per_multiprocessor;
  }
  seen.kernels = std::move(uses);
}

}  // namespace scankit::validate
