// SPDX-License-Identifier: Apache-2.0
#include "builder/install/distribution.h"

#include <algorithm>
#include <string_view>

#include "doctor/base/sha256.h"
#include "doctor/base/tool_version.h"

namespace scankit {
namespace {

// RECORD's hash: base64 with the URL alphabet, without padding.
std::string record_hash(std::string_view bytes) {
  Sha256 hash;
  hash.update(bytes.data(), bytes.size());
  unsigned char digest[32];
  hash.finish(digest);
  static constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::string text;
  unsigned bits = 0, count = 0;
  for (unsigned char byte : digest) {
    bits = bits << 8 | byte;
    for (count += 8; count >= 6; count -= 6) text += kAlphabet[bits >> (count - 6) & 63];
  }
  return text + kAlphabet[bits << (6 - count) & 63];
}

std::string record_line(const InstalledFile& file) {
  return file.path + ",sha256=" + record_hash(file.bytes) + "," + std::to_string(file.bytes.size()) + "\n";
}

}  // namespace

std::string module_file(const std::string& module) { return module + ".abi3.so"; }
std::string distribution_stem(const std::string& module) { return "scankit_" + module; }
std::string dist_info_name(const std::string& module) {
  return distribution_stem(module) + "-" + kToolVersion + ".dist-info";
}

static std::vector<InstalledFile> with_record(const std::string& module, const std::string& bytes,
                                              std::vector<InstalledFile> files) {
  std::string record = record_line({module_file(module), bytes});
  for (const InstalledFile& file : files) record += record_line(file);
  const std::string path = dist_info_name(module) + "/RECORD";
  record += path + ",,\n";
  files.push_back({path, record});
  return files;
}

static std::vector<InstalledFile> common_files(const std::string& module, const std::string& manifest) {
  const std::string folder = dist_info_name(module) + "/";
  std::string name = distribution_stem(module);
  std::ranges::replace(name, '_', '-');
  return {{folder + "METADATA", "Metadata-Version: 2.1\nName: " + name + "\nVersion: " + kToolVersion +
                                    "\nSummary: " + module +
                                    " for every CPython and torch, built by scankit\n"
                                    "License: Apache-2.0\nRequires-Python: >=3.8\n"},
          {folder + "WHEEL", std::string("Wheel-Version: 1.0\nGenerator: scankit ") + kToolVersion +
                                 "\nRoot-Is-Purelib: false\nTag: cp38-abi3-manylinux_2_17_x86_64\n"},
          {folder + "top_level.txt", module + "\n"},
          {folder + "scankit.json", manifest}};
}

std::vector<InstalledFile> dist_info_files(const std::string& module, const std::string& bytes,
                                           const std::string& manifest) {
  const std::string folder = dist_info_name(module) + "/";
  auto files = common_files(module, manifest);
  files.push_back({folder + "INSTALLER", "scankit\n"});
  files.push_back({folder + "REQUESTED", ""});
  return with_record(module, bytes, std::move(files));
}

std::vector<InstalledFile> wheel_info_files(const std::string& module, const std::string& bytes,
                                            const std::string& manifest) {
  return with_record(module, bytes, common_files(module, manifest));
}

}  // namespace scankit
