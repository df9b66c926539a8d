// SPDX-License-Identifier: Apache-2.0
#include "doctor/logs/known_names.h"

#include <algorithm>
#include <array>
#include <string>

namespace scankit::logs {
namespace {

// Words between blanks, so that a list reads as one.
constexpr std::string_view kNewer =
    " HIP_HOME ROCM_HOME IS_HIP_EXTENSION _get_cxx11_abi custom_op register_fake "
    "register_kernel triton_op wrap_triton flex_attention create_block_mask sdpa_kernel "
    "init_device_mesh fully_shard custom_fwd custom_bwd parametrizations is_compiling "
    "opaque_object infer_schema register_autograd py_sym_types SDPBackend StateDictType "
    "bfloat16 ";
constexpr std::string_view kRemoved =
    " symeig eig lstsq solve matrix_rank ffi reduce_op _unwrap_optional _DataLoaderIter ";
// Public packages: of private ones, as torch._inductor, names also go.
constexpr std::array<std::string_view, 17> kYoung{"torch.linalg",
                                                  "torch.fft",
                                                  "torch.special",
                                                  "torch.func",
                                                  "torch.library",
                                                  "torch.nn.attention",
                                                  "torch.compiler",
                                                  "torch.amp",
                                                  "torch.export",
                                                  "torch.distributed.tensor",
                                                  "torch.distributed.device_mesh",
                                                  "torch.distributed.fsdp",
                                                  "torch.distributed.checkpoint",
                                                  "torch.distributed.pipelining",
                                                  "torch.nn.utils.parametrize",
                                                  "torch.nn.utils.parametrizations",
                                                  "torch.accelerator"};

// What every torch has: without it, what was imported is no torch.
constexpr std::string_view kOfEveryTorch =
    " Tensor tensor nn cuda device float32 float16 long zeros ones cat utils __version__ "
    "manual_seed no_grad load save from_numpy optim autograd distributed version jit ";

bool is_part_of(std::string_view name, std::string_view package) {
  return name.starts_with(package) && (name.size() == package.size() || name[package.size()] == '.');
}

bool holds(std::string_view list, std::string_view name) {
  return list.find(' ' + std::string(name) + ' ') != std::string_view::npos;
}

}  // namespace

bool came_with_newer_torch(std::string_view name) { return holds(kNewer, name); }
bool is_removed_from_torch(std::string_view name) { return holds(kRemoved, name); }
bool is_of_every_torch(std::string_view name) { return holds(kOfEveryTorch, name); }
bool is_young_part_of_torch(std::string_view package) {
  return std::ranges::any_of(kYoung, [&](std::string_view one) { return is_part_of(package, one); });
}

}  // namespace scankit::logs
