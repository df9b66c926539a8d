// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/torch_abi/symbol_index.h"

// Which names can tell one release of torch from another. The maker of the symbol index and infer_release ask
// the same question, so that a name which the symbol index dropped is not taken for one that no torch
// exports. What torch's headers leave in every file that is compiled with them: TORCH_INTERNAL_ASSERT
// (c10/util/Exception.h) makes the text 'isString() INTERNAL ASSERT FAILED at
// "/.../include/ATen/core/ivalue_inl.h":2356, please ...'. Headers grow, so that the places say which
// release's headers they were, down to one or two of them.

namespace scankit {

// A name that torch owns and that means the same in every build of one release.
bool tells_a_release(std::string_view name, std::string_view version);

// A name of torch's C interface (aoti_torch_*, torch_*), made to outlive releases.
bool is_stable_c_name(std::string_view name);

// The other string ABI may spell the name otherwise. A false yes costs a demangling. The old name of a
// function that returns a string shows nothing; its new one has a tag.
bool differs_with_string_abi(std::string_view name);

inline constexpr std::string_view kAssertionMark = "INTERNAL ASSERT FAILED at \"";

// "ATen/core/ivalue_inl.h:2356" of a text that begins with the mark; "" for a place in other headers.
std::string header_line(std::string_view text);

// The path below the last folder `include`: what is the same
// wherever torch lies. "" for a header that is not torch's.
std::string torch_header(std::string_view path);

// The numbers of all lines that an assertion in a header's text reaches over: compilers differ in which line
// of an invocation they name.
std::set<unsigned> assertion_lines(std::string_view source);

// Releases whose headers have an assertion at each of the places; all of them where there are none. `table`:
// the places as names of a SymbolIndex.
std::uint64_t releases_with_lines(const SymbolIndex& table, const std::vector<std::string>& lines);

}  // namespace scankit
