// SPDX-License-Identifier: Apache-2.0
#include "builder/fix/distribution.h"

#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "doctor/base/machine.h"
#include "doctor/base/sha256.h"
#include "doctor/base/tool_version.h"

// The ZIP archive is written by hand: minizip writes to a named file only and stamps fields that the caller
// cannot set. The formats are in APPNOTE.TXT, 4.3.7 (local header), 4.3.12 (central directory) and 4.3.16
// (its end). A wheel has no comments and stays below 4 GB, so ZIP64 is not needed.
namespace scankit::fix {
namespace {

// Appends the lowest `bytes` bytes of the value, little-endian.
void put(std::string& to, std::uint32_t value, unsigned bytes) {
  for (unsigned i = 0; i < bytes; ++i) to += static_cast<char>(value >> (8 * i) & 0xff);
}

// The fields that a local header and a central one have in common, from the version needed to the length of
// the extra field.
std::string common(const InstalledFile& file) {
  std::string out;
  const auto size = static_cast<std::uint32_t>(file.bytes.size());
  put(out, 20, 2);    // version 2.0
  put(out, 0, 2);     // flags
  put(out, 0, 2);     // stored
  put(out, 0, 2);     // midnight
  put(out, 0x21, 2);  // 1 January 1980
  put(out, static_cast<std::uint32_t>(::crc32(0, reinterpret_cast<const Bytef*>(file.bytes.data()), size)),
      4);
  put(out, size, 4);
  put(out, size, 4);
  put(out, static_cast<std::uint32_t>(file.path.size()), 2);
  put(out, 0, 2);
  return out;
}

}  // namespace

std::string stored_zip(const std::vector<InstalledFile>& files) {
  std::string out, central;
  for (const InstalledFile& file : files) {
    const std::string header = common(file);
    const auto at = static_cast<std::uint32_t>(out.size());
    put(out, 0x04034b50, 4);
    out += header + file.path + file.bytes;
    put(central, 0x02014b50, 4);
    put(central, 0x0314, 2);  // made by Unix: the mode below counts
    central += header;
    put(central, 0, 2);  // no comment
    put(central, 0, 2);  // disk
    put(central, 0, 2);
    put(central, 0100644u << 16, 4);
    put(central, at, 4);
    central += file.path;
  }
  const auto at = static_cast<std::uint32_t>(out.size());
  out += central;
  put(out, 0x06054b50, 4);
  put(out, 0, 4);
  put(out, static_cast<std::uint32_t>(files.size()), 2);
  put(out, static_cast<std::uint32_t>(files.size()), 2);
  put(out, static_cast<std::uint32_t>(central.size()), 4);
  put(out, at, 4);
  put(out, 0, 2);
  return out;
}

namespace {

// The hash as RECORD has it: base64 with the URL alphabet, without padding (PEP 427).
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

}  // namespace

std::string record_line(const InstalledFile& file) {
  return file.path + ",sha256=" + record_hash(file.bytes) + "," + std::to_string(file.bytes.size()) + "\n";
}

std::string module_file(const std::string& module) { return module + ".abi3.so"; }
std::string module_file(const std::string& module, const Python& python) {
  return python.free_threaded && !python.extension_suffixes.empty()
             ? module + python.extension_suffixes.front()
             : module_file(module);
}
std::string distribution_stem(const std::string& module) { return "scankit_" + module; }
std::string dist_info_name(const std::string& module) {
  return distribution_stem(module) + "-" + kToolVersion + ".dist-info";
}

// "314t" of ".cpython-314t-x86_64-linux-gnu.so"; "" of ".abi3.so".
static std::string python_of(const compile::BuiltModule& built) {
  constexpr std::string_view kBefore = ".cpython-";
  const auto at = built.file.find(kBefore);
  if (at == std::string::npos) return "";
  const std::string rest = built.file.substr(at + kBefore.size());
  return rest.substr(0, rest.find('-'));
}

std::string wheel_tag(const compile::BuiltModule& built) {
  const std::string abi = python_of(built);
  const std::string series = abi.substr(0, abi.find_first_not_of("0123456789"));
  const std::string_view platform =
      built.flavor == compile::Flavor::Universal ? "-manylinux_2_17_" : "-linux_";
  return (abi.empty() ? "cp38-abi3" : "cp" + series + "-cp" + abi) + std::string(platform) +
         std::string(kMachine);
}

// Adds RECORD, which lists the module, every file and itself. Its own line has no hash and no size.
static std::vector<InstalledFile> with_record(const compile::BuiltModule& built,
                                              std::vector<InstalledFile> files) {
  std::string record = record_line({built.file, built.bytes});
  for (const InstalledFile& file : files) record += record_line(file);
  const std::string path = dist_info_name(built.module) + "/RECORD";
  record += path + ",,\n";
  files.push_back({path, record});
  return files;
}

// The files that an installed distribution and a wheel both have.
static std::vector<InstalledFile> common_files(const compile::BuiltModule& built) {
  const std::string folder = dist_info_name(built.module) + "/", python = python_of(built);
  std::string name = distribution_stem(built.module), needs(">=3.8");
  std::ranges::replace(name, '_', '-');
  if (!python.empty()) needs = "==" + python.substr(0, 1) + "." + python.substr(1) + ".*";
  const std::string summary = python.empty() ? built.module + " for every CPython and torch, built by scankit"
                                             : built.module + " " + built.made_for + ", built by scankit";
  return {{folder + "METADATA", "Metadata-Version: 2.1\nName: " + name + "\nVersion: " + kToolVersion +
                                    "\nSummary: " + summary +
                                    "\nLicense: Apache-2.0\nRequires-Python: " + needs + "\n"},
          {folder + "WHEEL", std::string("Wheel-Version: 1.0\nGenerator: scankit ") + kToolVersion +
                                 "\nRoot-Is-Purelib: false\nTag: " + wheel_tag(built) + "\n"},
          {folder + "top_level.txt", built.module + "\n"},
          {folder + "scankit.json", built.manifest}};
}

std::vector<InstalledFile> dist_info_files(const compile::BuiltModule& built) {
  const std::string folder = dist_info_name(built.module) + "/";
  auto files = common_files(built);
  files.push_back({folder + "INSTALLER", "scankit\n"});
  files.push_back({folder + "REQUESTED", ""});
  return with_record(built, std::move(files));
}

std::vector<InstalledFile> wheel_info_files(const compile::BuiltModule& built) {
  return with_record(built, common_files(built));
}

}  // namespace scankit::fix
