// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "builder/module/target.h"
#include "builder/toolchain/toolchain.h"
#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"

// Which compiler makes the device code (ARCHITECTURE.md, decision 12): an NVRTC that is here, torch's first;
// one that was fetched before; an nvcc that is here; with consent, an NVRTC wheel.
namespace scankit {

// What the user asked for, and what they agreed to.
struct ToolchainRequest {
  std::string asked;          // --toolchain: "", "nvrtc", "nvrtc-wheel", "nvcc", "nvcc-wheel", or a path
  bool may_download = false;  // the user said so, or will be asked before anything is done
  bool release = false;       // the shipped module: each architecture from the compiler that serves it best
  std::function<void(const std::string&)> progress;
  WheelFetcher fetch;  // where there is neither uv nor pip
};
// Errc::InvalidArgument for a --toolchain that is neither a kind nor a path.
Result<void> check_request(const std::string& asked);  // before anything is looked for

// A compiler that is here, or that could be fetched. Only the member of its kind is meaningful.
struct Candidate {
  enum class Kind { Nvrtc, Nvcc, Wheel } kind = Kind::Nvrtc;
  Nvrtc nvrtc;
  Nvcc nvcc;
  const WheelToolchain* wheel = nullptr;  // of Kind::Wheel: not here yet
  std::string title() const;              // "NVRTC 13.0: /usr/local/..."
  const std::vector<unsigned>& archs() const;
  std::string release() const;  // "13.0", "13.0.88"; "" where it is not known
};
// Every compiler that the request admits, in the order in which they are tried. Files only: nothing is
// started and no version is known yet, except for wheels.
Result<std::vector<Candidate>> find_candidates(const Host& host, const Snapshot& snapshot,
                                               const ToolchainRequest& wish, const Cache& cache);
// Asks a compiler for its version and architectures. An Error means that it cannot be used at all.
Result<void> identify(const Host& host, const Cache& cache, Candidate& candidate);
// Identifies the candidate and says what it would make of the request.
Result<TargetChoice> judge(const Host& host, const Snapshot& snapshot, const TargetRequest& request,
                           const Cache& cache, Candidate& candidate);

// The compilers of a build, and which of them makes which target.
struct Toolchain {
  TargetChoice choice;
  std::vector<Candidate> compilers;  // those that are used
  std::vector<std::size_t> made_by;  // of choice.targets, in their order: which of `compilers`
  std::vector<const WheelToolchain*> missing() const;  // those of them that must be fetched first
  std::string said() const;  // "NVRTC 13.0 (toolkit /usr/local/cuda)"; of several, all
};
// The first compiler that can make what is asked, or several that can together. The Error says what was
// looked for and what each one lacked. Downloads nothing: with may_download, missing() says what to fetch.
Result<Toolchain> choose_toolchain(const Host& host, const Snapshot& snapshot, const TargetRequest& request,
                                   const Cache& cache, const ToolchainRequest& wish = {});
// The commands that complete_toolchain() would run.
std::vector<std::string> shown_fetches(const Host& host, const Snapshot& snapshot, const Cache& cache,
                                       const Toolchain& toolchain);
// Fetches what is missing and chooses again. Does nothing if nothing is missing.
Result<void> complete_toolchain(const Host& host, const Snapshot& snapshot, const TargetRequest& request,
                                const Cache& cache, const ToolchainRequest& wish, Toolchain& toolchain);

// "no compiler here": where was looked, and how to get one.
Error no_toolchain(const Snapshot& snapshot);

std::unique_ptr<DeviceCompiler> make_compiler(const Candidate& candidate);

}  // namespace scankit
