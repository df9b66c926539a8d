// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>

#include "builder/compile/build.h"

// Finished modules that lie beside scankit, as its wheel brings them: ../share/scankit/modules from the
// program. Their device code is for every usual GPU, so that a `fix` needs no compiler, no network and no
// time.
namespace scankit {

// Where they are looked for: by /proc/self/exe, since a link in ~/.local/bin is how uv offers a tool.
std::string prebuilt_folder();

// The module with all device code that lies there for its kernel, where that serves the request: each target
// of --arch, or each GPU here. Nothing where it does not, where none lies there, or where it is of other
// sources than ours. An Error where the file is damaged. The host module is the one embedded here; only
// images are taken from the file, each checked against its hash.
Result<std::optional<BuiltModule>> prebuilt_module(const std::string& folder, const BundledModule& module,
                                                   const TargetRequest& request,
                                                   const Probed<std::vector<Gpu>>& gpus);

}  // namespace scankit
