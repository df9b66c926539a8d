// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"

// How the modules and torch came into the environment, and what a module's file says of its functions. The
// texts are leftovers of compilers and pip, not interfaces that anybody promises.
namespace scankit {

struct BinaryTexts {
  std::vector<unsigned> arguments;  // of each function that pybind11 exposes; sorted, each number once
  bool defaults = false, open_ended = false;
  std::string build_trace;  // a path of pip's isolated build, "" for none
};

// The texts of a compiled file's read-only data that tell how it is called and where it was built.
std::optional<BinaryTexts> read_binary_texts(const Host& host, const std::string& path);
// `data`: the read-only sections one after the other, each ended by a NUL.
BinaryTexts binary_texts(std::string_view data);

// How the modules and torch came here: the texts of the modules' files, when each was installed, and what pip
// noted about torch.
void read_installation(const Host& host, const Snapshot& so_far, Packages& packages);

}  // namespace scankit
