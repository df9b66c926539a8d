// SPDX-License-Identifier: Apache-2.0
// Linked as scankit is, with each archive that scankit is linked with, in seconds instead of minutes: whether a cross
// compiler's linker still takes all of its options. Prints "linked as shipped" if the libraries answer.
#include <lz4.h>
#include <minizip/unzip.h>
#include <re2/re2.h>
#include <yaml-cpp/yaml.h>
#include <zlib.h>
#include <zstd.h>

#include <cstdio>

int main() {
  const bool answered = YAML::Load("[1, 2]").size() == 2 && re2::RE2::FullMatch("sm_90", "sm_[0-9]+") &&
                        LZ4_versionNumber() > 0 && ZSTD_versionNumber() > 0 && zlibVersion() != nullptr &&
                        unzOpen("") == nullptr;
  std::puts(answered ? "linked as shipped" : "a library gives a wrong answer");
  return answered ? 0 : 1;
}
