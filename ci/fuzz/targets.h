// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>
#include <string_view>

// Every reader of data that a stranger may have written, as a function of its bytes. Each becomes one
// fuzzer, and the unit tests run each over its corpus.
namespace scankit::fuzz {

struct Target {
  std::string_view name;  // of the folder of its corpus, and of its dictionary
  void (*read)(std::string_view input);
};

std::span<const Target> binary_targets();  // files with offsets and sizes in them
std::span<const Target> text_targets();
const Target* find_target(std::string_view name);

}  // namespace scankit::fuzz
