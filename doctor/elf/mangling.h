// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

// Answers questions about mangled C++ names without a full parser: who owns a name, which function it is,
// which string ABI it uses. Only demangle() interprets a whole name.
namespace scankit::elf {

// The readable form; the name itself where it is no mangled C++ name, or one made to exhaust us.
std::string demangle(const std::string& name);

// What stands for whose name it is: the outermost namespace or class of a mangled name ("c10", "at", "std"),
// never a template argument or parameter. Empty for a C name and for a function of the global namespace.
std::string outermost_scope(std::string_view name);

// "torch", "python", "cuda", "libc", "libstdc++" or "own": whose code should define the name. `version` is
// the symbol version it is wanted with ("GLIBC_2.38"), which decides where there is one.
std::string symbol_owner(std::string_view name, std::string_view version);

// The part of a mangled name that every overload of the function shares: "_ZN3c104cuda9SetDevice" of
// "_ZN3c104cuda9SetDeviceEi". Ends before template arguments, ABI tags and parameters. Empty for other names.
std::string overload_prefix(std::string_view name);

// "c10::cuda::SetDevice" of the demangled "c10::cuda::SetDevice(int)":
// without parameters, result and cv-qualifiers.
std::string qualified_name(const std::string& demangled);

// std::string of the old or of the new ABI in a demangled name; Neither where it names no string.
enum class StringAbi { Neither, Old, New };
StringAbi string_abi_in(const std::string& demangled);
// A demangled name with every string written the old way and no ABI tags.
std::string without_string_abi(std::string demangled);
// Two demangled names that are one but for the ABI of their strings.
bool differ_only_in_string_abi(const std::string& a, const std::string& b);

}  // namespace scankit::elf
