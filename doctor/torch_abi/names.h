// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

// Which names can tell one release of torch from another. The maker of the atlas and the dating ask the same
// question, so that a name which the atlas dropped is not taken for one that no torch exports.
namespace scankit {

// A name that torch owns and that means the same in every build of one release.
bool tells_a_release(std::string_view name, std::string_view version);

// A name of torch's C interface (aoti_torch_*, torch_*), made to outlive releases.
bool is_stable_c_name(std::string_view name);

// The other string ABI may spell the name otherwise. A false yes costs a demangling. The old name of a
// function that returns a string shows nothing; its new one has a tag.
bool differs_with_string_abi(std::string_view name);

}  // namespace scankit
