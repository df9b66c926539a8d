// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "builder/compile/compile.h"
#include "builder/module/target.h"

// What scankit carries inside itself, so that the one file can do everything.

namespace scankit::compile {
struct BuiltModule;
}

namespace scankit::module {

// One of the files that builder/CMakeLists.txt embeds: "causal_conv1d_cuda.abi3.so", "libtorch.cc". The first call
// unpacks all of them, 4 MB.
std::string_view carried_file(std::string_view name);

// One part of a `--release` build: the targets that one compiler makes. The targets of each part are sorted,
// and no target is in two parts.
struct ReleasePart {
  std::string toolchain;  // the id of a WheelToolchain
  std::vector<Target> targets;
};
// Every architecture from sm_60 to the newest that any of the pinned compilers knows.
const std::vector<ReleasePart>& release_parts();

// One module that scankit can build. The views are into strings that live as long as the program.
struct BundledModule {
  std::string name;                    // "selective_scan_cuda"
  std::string_view host_module;        // NAME.abi3.so without device images
  std::string source_name;             // "selective_scan.cu", in the compiler's messages
  std::string_view device_source;      // one text without any #include
  std::vector<toolchain::Unit> units;  // kernels/*/cuda/units.def
};

// The first is what every command means that names no module.
const std::vector<BundledModule>& bundled_modules();
// By its name, "" for the first. Errc::InvalidArgument names those that there are.
Result<const BundledModule*> bundled_module(const std::string& name);

// Finished modules that lie beside scankit, as its wheel brings them: ../share/scankit/modules from the
// program. Their device code is for every usual GPU, so that a `fix` needs no compiler, no network and no
// time.

// Where they are looked for: by /proc/self/exe, since a link in ~/.local/bin is how uv offers a tool.
std::string prebuilt_folder();

// The module with all device code that lies there for its kernel, where that serves the request: each target
// of --arch, or each GPU here. Nothing where it does not, where none lies there, or where it is of other
// sources than ours. An Error where the file is damaged. The host module is the one embedded here; only
// images are taken from the file, each checked against its hash.
Result<std::optional<compile::BuiltModule>> prebuilt_module(const std::string& folder,
                                                            const BundledModule& module,
                                                            const TargetRequest& request,
                                                            const Probed<std::vector<Gpu>>& gpus);

}  // namespace scankit::module
