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
    "init_device_mesh DeviceMesh fully_shard custom_fwd custom_bwd parametrizations "
    "is_compiling opaque_object infer_schema register_autograd py_sym_types SDPBackend "
    "StateDictType compile vmap func inference_mode linalg special float8_e4m3fn float8_e5m2 "
    "uint16 uint32 uint64 nan_to_num concat concatenate amax amin aminmax true_divide "
    "bucketize searchsorted isin tile moveaxis movedim maximum minimum hstack vstack quantile "
    "nansum view_as_complex view_as_real get_default_device set_default_device RMSNorm SiLU "
    "Mish LazyLinear silu mish scaled_dot_product_attention use_deterministic_algorithms "
    "set_float32_matmul_precision is_autocast_cache_enabled get_autocast_dtype "
    "get_autocast_gpu_dtype GradScaler mps xpu accelerator channels_last_3d bfloat16 _dynamo "
    "export ";
constexpr std::string_view kRemoved =
    " _six symeig eig lstsq solve gels rfft irfft gesv matrix_rank potrf btrifact ffi reduce_op "
    "_unwrap_optional _DataLoaderIter ";
constexpr std::string_view kNewerInTransformers =
    " Cache DynamicCache EncoderDecoderCache HybridCache StaticCache QuantizedCache SlidingWindowCache "
    "BitsAndBytesConfig AwqConfig HqqConfig TorchAoConfig AutoModelForImageTextToText "
    "AutoImageProcessor AutoVideoProcessor GenerationConfig ";
constexpr std::string_view kRemovedFromPython =
    " imp asyncore asynchat smtpd cgi cgitb crypt pipes telnetlib audioop lib2to3 binhex "
    "imghdr sndhdr nntplib ";
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

// Packages whose parts come and go: that one is missing as a whole says that torch is older.
constexpr std::array<std::string_view, 13> kYoungModules{"torch._dynamo",
                                                         "torch._inductor",
                                                         "torch.ao",
                                                         "torch.fx",
                                                         "torch.profiler",
                                                         "torch.distributed.run",
                                                         "torch.distributed.elastic",
                                                         "torch._prims",
                                                         "torch._refs",
                                                         "torch._higher_order_ops",
                                                         "torch.utils._pytree",
                                                         "torch.package",
                                                         "torch._subclasses"};
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
bool came_with_newer_transformers(std::string_view name) { return holds(kNewerInTransformers, name); }
bool is_removed_from_python(std::string_view module) { return holds(kRemovedFromPython, module); }
bool is_of_every_torch(std::string_view name) { return holds(kOfEveryTorch, name); }
bool is_young_part_of_torch(std::string_view package) {
  return std::ranges::any_of(kYoung, [&](std::string_view one) { return is_part_of(package, one); });
}
bool is_young_module_of_torch(std::string_view module) {
  return is_young_part_of_torch(module) || std::ranges::find(kYoungModules, module) != kYoungModules.end();
}

}  // namespace scankit::logs
