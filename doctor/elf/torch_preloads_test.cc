// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "doctor/elf/process_image.h"

namespace scankit::elf {
namespace {

using Patterns = std::vector<TorchPreloads::Pattern>;

// torch 2.11: one list, loaded whenever a CUDA runtime is there.
TEST(TorchPreloads, ReadsTheListOfPairs) {
  const TorchPreloads found = parse_torch_preloads(R"(
def _preload_cuda_deps(err: OSError | None = None) -> None:
    cuda_libs: list[tuple[str, str]] = [
        ("cublas", "libcublasLt.so.*[0-9]"),
        ("cublas", "libcublas.so.*[0-9]"),
    ]
    for lib_folder, lib_name in cuda_libs:
        _preload_cuda_lib(lib_folder, lib_name)

    # libnvToolsExt is Optional Dependency
    _preload_cuda_lib("nvtx", "libnvToolsExt.so.*[0-9]", required=False)


# See Note [Global dependencies]
def _load_global_deps() -> None:
    try:
        ctypes.CDLL(global_deps_lib_path, mode=ctypes.RTLD_GLOBAL)
        try:
            if "libcudart.so" not in _maps:
                return
            _preload_cuda_deps()
        except Exception:
            pass

    except OSError as err:
        _preload_cuda_deps(err)
        ctypes.CDLL(global_deps_lib_path, mode=ctypes.RTLD_GLOBAL)


if USE_RTLD_GLOBAL_WITH_LIBTORCH:
    pass
)");
  const Patterns list = {{"cublas", "libcublasLt.so.*[0-9]"}, {"cublas", "libcublas.so.*[0-9]"}};
  EXPECT_EQ(found.condition, "libcudart.so");
  EXPECT_EQ(found.after, list);
  EXPECT_EQ(found.on_failure, list);
}

// torch 2.4 to 2.8: two libraries by name after, a dictionary on failure.
TEST(TorchPreloads, ReadsTheDictionaryOfOlderReleases) {
  const TorchPreloads found = parse_torch_preloads(R"(
def _preload_cuda_deps(lib_folder: str, lib_name: str) -> None:
    nvidia_path = os.path.join(path, "nvidia")


def _load_global_deps() -> None:
    try:
        ctypes.CDLL(global_deps_lib_path, mode=ctypes.RTLD_GLOBAL)
        try:
            if "nvidia/cuda_runtime/lib/libcudart.so" not in _maps:
                return
            _preload_cuda_deps("cuda_nvrtc", "libnvrtc.so.*[0-9]")
            _preload_cuda_deps("nvjitlink", "libnvJitLink.so.*[0-9]")
        except Exception:
            pass

    except OSError as err:
        cuda_libs: Dict[str, str] = {
            "cublas": "libcublas.so.*[0-9]",
            "cudnn": "libcudnn.so.*[0-9]",
        }
        for lib_folder, lib_name in cuda_libs.items():
            _preload_cuda_deps(lib_folder, lib_name)
)");
  EXPECT_EQ(found.condition, "nvidia/cuda_runtime/lib/libcudart.so");
  EXPECT_EQ(found.after,
            (Patterns{{"cuda_nvrtc", "libnvrtc.so.*[0-9]"}, {"nvjitlink", "libnvJitLink.so.*[0-9]"}}));
  EXPECT_EQ(found.on_failure, (Patterns{{"cublas", "libcublas.so.*[0-9]"}, {"cudnn", "libcudnn.so.*[0-9]"}}));
}

TEST(TorchPreloads, FindsNothingInAFileWithoutThem) {
  for (const char* text : {"", "import os\n", "\ndef _load_global_deps() -> None:\n    pass\n"}) {
    const TorchPreloads found = parse_torch_preloads(text);
    EXPECT_TRUE(found.after.empty() && found.on_failure.empty() && found.condition.empty()) << text;
  }
}

}  // namespace
}  // namespace scankit::elf
