// SPDX-License-Identifier: Apache-2.0
#include "envspec/create/nvcc_wrapper.h"

#include <fmt/core.h>
#include <unistd.h>

#include "doctor/base/files.h"
#include "doctor/base/text.h"

namespace scankit::envspec {
namespace {

constexpr const char* kWrapper = "nvcc-without-lineinfo";

// ptxas takes both names too, in a list with commas; an emptied list goes with its option, for nvcc gives "" to ptxas as
// the name of a file. Any other word stays as it is.
constexpr const char* kLeaveOut = R"(#!/bin/sh
# Written by scankit for one build: nvcc without -lineinfo, which writes the directory of the build into device code.
kept_of() {
  case ",$1," in
    *,-lineinfo,* | *,--generate-line-info,*) : > "$0.used" ;;
    *) kept=$1; return ;;
  esac
  kept= rest=$1,
  while [ -n "$rest" ]; do
    one=${rest%%,*} rest=${rest#*,}
    case $one in
      -lineinfo | --generate-line-info) ;;
      *) kept=${kept:+$kept,}$one ;;
    esac
  done
}
left=$#
while [ "$left" -gt 0 ]; do
  word=$1 left=$((left - 1))
  shift
  case $word in
    -lineinfo | --generate-line-info) : > "$0.used"; continue ;;
    -Xptxas | --ptxas-options)
      [ "$left" -gt 0 ] || { set -- "$@" "$word"; break; }
      kept_of "$1"
      left=$((left - 1))
      shift
      [ -n "$kept" ] || continue
      set -- "$@" "$word" "$kept"
      continue ;;
    -Xptxas=* | --ptxas-options=*)
      kept_of "${word#*=}"
      [ -n "$kept" ] || continue
      word=${word%%=*}=$kept ;;
  esac
  set -- "$@" "$word"
done
)";

// In the order of torch's cpp_extension.
constexpr const char* kTorchsNvcc = R"(home=${CUDA_HOME:-$CUDA_PATH}
if [ -n "$home" ]; then
  nvcc=$home/bin/nvcc
else
  nvcc=$(command -v nvcc) || nvcc=/usr/local/cuda/bin/nvcc
fi
exec "$nvcc" "$@"
)";

}  // namespace

// The user's PYTORCH_NVCC is part of a shell's command for torch, "ccache nvcc", and so it is here.
Result<std::pair<std::string, std::string>> write_nvcc_wrapper(const Host& host, const std::string& folder) {
  const std::string users(trimmed(host.env("PYTORCH_NVCC").value_or("")));
  const std::string file = path_join(folder, kWrapper);
  const std::string call = users.empty() ? kTorchsNvcc : fmt::format("exec {} \"$@\"\n", users);
  SCANKIT_CHECK(write_file_atomically(file, kLeaveOut + call, 0755));
  return std::pair<std::string, std::string>{"PYTORCH_NVCC", file};
}

std::optional<Message> line_info_note(const std::string& folder, const std::string& package) {
  if (::access((path_join(folder, kWrapper) + ".used").c_str(), F_OK) != 0) return std::nullopt;
  return message(
      "{} was compiled without -lineinfo, so that two builds are the same bytes: profilers show no source "
      "lines of its kernels",
      package);
}

}  // namespace scankit::envspec
