// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "doctor/elf/process_image.h"
#include "doctor/model/snapshot.h"

// What a missing name or library is, and what there is instead.

namespace scankit::probes {

// What load_torch() must know of this environment.
elf::TorchLoadRequest torch_load_request(const Snapshot& so_far);

// Resolves extensions in the process that this Python would be after `import torch`, which is built once.
class ExtensionResolver {
 public:
  ExtensionResolver(const Host& host, const Snapshot& so_far);

  // "SONAME needed by FILE" for what torch's own closure needs and does not find.
  const std::vector<TorchNeed>& torch_missing() const { return torch_missing_; }
  // Why there is no process; "" where there is one.
  const Message& failure() const { return failure_; }
  // The interpreter's process before any import, and after `import torch`. Only without a failure().
  const elf::ProcessImage& bare() const { return *bare_; }
  const elf::ProcessImage& with_torch() const { return *with_torch_; }
  const Message& torch_note() const { return torch_note_; }
  elf::LibraryCache& libraries() { return libraries_; }
  // What was loaded into `process` and requests an executable stack. Of a process that was started with such a stack, the
  // loader has nothing to ask: none.
  std::vector<std::string> executable_stacks(const elf::ProcessImage& process,
                                             const elf::LoadResult& loaded) const;
  // Fills `resolved` and all that follows from it. The file must have been inspected as a whole library.
  void resolve(Extension& copy);

 private:
  void load_torch_here(const Host& host, const Snapshot& so_far);
  void take_symbols(const elf::ProcessImage& process, const elf::LoadResult& loaded, Extension& copy);
  void take_libraries(const elf::LoadResult& loaded, Extension& copy);
  void take_versions(const elf::ProcessImage& process, const elf::LoadResult& loaded, Extension& copy);
  void take_need_of_torch(const elf::LoadResult& loaded, Extension& copy);

  const Host& host_;
  const Snapshot& so_far_;
  elf::LibraryCache libraries_;
  Message failure_;  // why there is no process
  std::optional<elf::ProcessImage> bare_, with_torch_;
  Message torch_note_;  // why torch could not be loaded
  std::vector<TorchNeed> torch_missing_;
};

// How many names like a missing one are looked through, and how many are told.
inline constexpr std::size_t kCandidateLimit = 4096, kNearLimit = 5;

// Sets demangled, owner, exported_by_torch, flipped_exported_by and near of each.
void explain_missing_symbols(const Extension& copy,
                             const std::vector<std::shared_ptr<const elf::ElfLibrary>>& torch,
                             std::vector<MissingSymbol>& missing);

// Sets found_elsewhere and same_library_other_version.
void look_elsewhere(const Host& host, const Snapshot& so_far, const elf::SearchContext& context,
                    MissingLibrary& missing);

// Libraries that the loader takes although they lack what is wanted of them: another release of a CUDA
// library or of libstdc++ under the same soname. Why it takes them, and whether it would without
// LD_LIBRARY_PATH.

// Of torch's own libraries, as `import torch` binds them.
std::vector<BindingMismatch> mismatches_of_torch(const Host& host, const Snapshot& so_far,
                                                 ExtensionResolver& resolver);
// Of one module and what it brings, behind `import torch`.
std::vector<BindingMismatch> mismatches_of_module(const Host& host, const Snapshot& so_far,
                                                  ExtensionResolver& resolver, const std::string& path);

// What torch's metadata demands of nvidia-* wheels, itself and through the cuda-toolkit package. Implemented
// in doctor/probes/packages/cuda_pins.cc.
std::vector<CudaPin> cuda_pins(const Host& host, const Snapshot& so_far);

}  // namespace scankit::probes
