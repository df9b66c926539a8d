// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string_view>

// Which releases of a package, or versions of Python, have a module, or a name in a module: python_names.txt, which
// ci/release/python_names.py makes from the files of every minor release, and standard_library.txt, which
// ci/release/standard_library_names.py has interpreters tell.
namespace scankit::knowledge {

// Minor releases as users write them, "2.4". The views live as long as the program.
struct ReleasesOfName {
  std::string_view first;  // the first that has it; "" where the oldest that was read has it
  std::string_view gone;   // the first that no longer has it; "" where the newest that was read has it
};

// `module` is dotted ("torch.library"). Nothing where all releases that were read have it, or none has, or the package
// was not read.
std::optional<ReleasesOfName> releases_of_name(std::string_view module, std::string_view name);
std::optional<ReleasesOfName> releases_of_module(std::string_view module);

// Whether `top` is a module of Python's own at the top level, in any version that was asked: "collections", "imp".
bool is_of_python(std::string_view top);
// Whether the table has rows of the package: "torch".
bool is_package_with_names(std::string_view top);

}  // namespace scankit::knowledge
