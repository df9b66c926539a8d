// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"

namespace scankit {

struct BinaryTexts {
  std::vector<unsigned> arguments;  // of each function that pybind11 exposes; sorted, each number once
  bool defaults = false, open_ended = false;
  std::string build_trace;  // a path of pip's isolated build, "" for none
};

// The texts of a compiled file's read-only data that tell how it is called and where it was built.
std::optional<BinaryTexts> read_binary_texts(const Host& host, const std::string& path);
BinaryTexts binary_texts(std::string_view data);

// How the modules and torch came here: the texts of the modules' files, when each was installed, and what pip
// noted about torch.
void read_installation(const Host& host, const Snapshot& so_far, Packages& packages);

}  // namespace scankit
