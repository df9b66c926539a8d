// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string_view>

// What the name of a module, a package or of a part of one says about where it comes from: from an index, from a build
// of the project, from the program itself. A log holds nothing but the name.
namespace scankit::logs {

// Names that programs give to their own files.
bool is_of_a_program(std::string_view name);
// Names that projects give to their compiled modules.
bool looks_compiled(std::string_view module);
bool is_private_module(std::string_view name);

// Packages with CUDA code of their own.
bool is_extension_package(std::string_view name);

// What Python has on Windows only.
bool is_of_windows(std::string_view module);
// What Python has on Unix only (`name` is "" for a module).
bool is_of_unix(std::string_view module, std::string_view name);

bool is_in_a_namespace(std::string_view top, std::string_view name);
bool is_named_like_a_class(std::string_view name);

// Functions that only changed copies of mamba_ssm have, and those that a build without CUDA lacks.
bool is_of_a_fork(std::string_view name);
bool is_of_the_gpu(std::string_view package, std::string_view name);

}  // namespace scankit::logs
