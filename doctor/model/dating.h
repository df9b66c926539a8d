// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace scankit {

// Which releases of torch a file was made for, as far as the names that it needs tell. Minors only: patches
// of one minor export the same names.
struct Dating {
  std::string file;                   // or the wheel, folder or distribution
  unsigned together = 0;              // of how many files that use torch it is the answer; 0: of this one
  bool dated = false;                 // some release was ruled out
  std::vector<std::string> releases;  // known minors that export every name it needs; oldest first
  // Unset: open-ended on that side, or not dated. Where `between_known_releases`, releases is empty, and the
  // file was made for something between these two that is none of the known ones.
  std::optional<std::string> torch_min, torch_max;
  bool between_known_releases = false;
  bool stable_abi = false;  // needs only names of torch's stable C interface
  std::string string_abi, glibc_min, cuda_major, python_tag;  // "" where the file does not say
  unsigned torch_names = 0, unknown_names = 0;
  std::string why_not_narrower;       // one line; "" where one minor is left
  std::vector<std::string> evidence;  // one line each
};

// "torch 2.3 to 2.6", "torch 2.9 or newer"; "" where no release was ruled out. For use within a sentence.
std::string torch_words(const Dating& dating);

// "2.11" of "2.11.0+cu130"; "" for what is no version.
std::string torch_minor(const std::string& version);

// One line: "built for torch 2.3 to 2.6, old string ABI; 2.11 is installed". `installed`: torch's version, ""
// for none. "" where the file was not dated at all.
std::string dating_sentence(const Dating& dating, const std::string& installed);

}  // namespace scankit
