// SPDX-License-Identifier: Apache-2.0
#include "doctor/probes/target/wheel.h"

#include <minizip/unzip.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/declared/module_file.h"

namespace scankit::probes {
namespace {

constexpr std::uint64_t kManyMembers = 100'000, kLongName = 1024, kTextLimit = 16u << 20;
constexpr std::size_t kLongPart = 255;  // of a path, in every file system of Linux
// deflate packs at most 1032:1, a shared library some 10:1. A wheel may unpack to kAlwaysAllowed bytes, or
// to kExpansion times its own size if that is more.
constexpr std::uint64_t kAlwaysAllowed = 256u << 20, kExpansion = 64;

struct Member {
  std::string name;
  std::uint64_t size = 0;
  unz64_file_pos position{};
  bool executable = false;
};

struct Closer {
  void operator()(void* zip) const { unzClose(zip); }
};
using Zip = std::unique_ptr<void, Closer>;

Error refused(const std::string& path, const Message& why) {
  return {Errc::Malformed, message("{} is not a wheel that can be examined: {}", printable(path), why),
          message("download it again, or rebuild it")};
}

// Members use '/' alone (APPNOTE 4.4.17). A backslash or a drive letter would be a path of its own
// on Windows.
Message name_problem(const std::string& name) {
  if (name.empty() || name[0] == '/' || name.find('\\') != std::string::npos || name.find(':') == 1)
    return message("an absolute or foreign path");
  for (std::size_t at = 0; at <= name.size();) {
    const auto end = std::min(name.find('/', at), name.size());
    const std::string part = name.substr(at, end - at);
    const bool folder_end = end == name.size() && part.empty() && at > 0;
    if (part.size() > kLongPart) return message("a name of an unusable length");
    if (part == ".." || part == "." || (part.empty() && !folder_end))
      return message("a path that leads outside the archive");
    at = end + 1;
  }
  return "";
}

// Why a record of the central directory forbids the whole archive; "" where it does not. The upper byte of
// `version` is 3 for archives made on Unix; the upper 16 bits of external_fa are then an st_mode.
Message member_problem(const unz_file_info64& info, const std::string& name) {
  if (info.size_filename > kLongName || name.size() != info.size_filename)
    return message("a name of an unusable length");
  if (const Message problem = name_problem(name); !problem.empty()) return problem;
  if ((info.flag & 1) != 0) return message("encrypted");
  const bool unix_made = (info.version >> 8) == 3;
  const auto kind = static_cast<unsigned>(info.external_fa >> 16) & S_IFMT;
  if (unix_made && kind != 0 && kind != S_IFREG && kind != S_IFDIR)
    return kind == S_IFLNK ? message("a symbolic link") : message("neither a file nor a directory");
  return "";
}

Result<std::vector<Member>> list_members(void* zip, const std::string& path) {
  unz_global_info64 all{};
  if (unzGetGlobalInfo64(zip, &all) != UNZ_OK)
    return refused(path, message("its zip directory cannot be read"));
  if (all.number_entry > kManyMembers) return refused(path, message("it lists more than 100000 members"));
  std::vector<Member> members;
  std::set<std::string> seen;
  int status = unzGoToFirstFile(zip);
  for (; status == UNZ_OK; status = unzGoToNextFile(zip)) {
    unz_file_info64 info{};
    std::array<char, kLongName + 1> name{};
    if (unzGetCurrentFileInfo64(zip, &info, name.data(), name.size(), nullptr, 0, nullptr, 0) != UNZ_OK)
      return refused(path, message("its zip directory is damaged"));
    // minizip ends a name with NUL only where it is shorter than the room for it.
    const std::size_t length = strnlen(name.data(), name.size());
    Member member{std::string(name.data(), length),
                  info.uncompressed_size,
                  {},
                  (info.external_fa >> 16 & S_IXUSR) != 0};
    if (const Message problem = member_problem(info, member.name); !problem.empty())
      return refused(path, message("its member \"{}\" is {}", printable(member.name), problem));
    if (!seen.insert(member.name).second)
      return refused(path, message("its member \"{}\" exists twice", printable(member.name)));
    unzGetFilePos64(zip, &member.position);
    members.push_back(std::move(member));
  }
  // The list has to end where the end record says.
  if (status != UNZ_END_OF_LIST_OF_FILE || members.size() != all.number_entry)
    return refused(path, message("its zip directory is damaged"));
  return members;
}

// Calls `take(bytes, count)` for each piece. minizip compares local and central record, and the checksum.
template <class Take>
Result<void> read_member(void* zip, const std::string& path, const Member& member, const Take& take) {
  const std::string name = printable(member.name);
  if (unzGoToFilePos64(zip, &member.position) != UNZ_OK || unzOpenCurrentFile(zip) != UNZ_OK)
    return refused(
        path,
        message("its member \"{}\" cannot be opened: its two headers differ, or its compression is unknown",
                name));
  std::array<char, 1u << 16> buffer{};
  std::uint64_t total = 0;
  int got = 0;
  while ((got = unzReadCurrentFile(zip, buffer.data(), buffer.size())) > 0) {
    // More data than promised ends the loop, and the comparison below refuses the member.
    total += static_cast<std::uint64_t>(got);
    if (total > member.size) break;
    if (auto taken = take(buffer.data(), static_cast<std::size_t>(got)); !taken) {
      unzCloseCurrentFile(zip);
      return taken;
    }
  }
  const int closed = unzCloseCurrentFile(zip);
  if (got < 0)
    return refused(path,
                   message("its member \"{}\" cannot be unpacked: its data is damaged or truncated", name));
  if (total != member.size)
    return refused(path, message("the size of its member \"{}\" differs from its header", name));
  if (closed != UNZ_OK)
    return refused(path, message("the checksum of its member \"{}\" differs from its header", name));
  return {};
}

Result<std::string> read_text(void* zip, const std::string& path, const Member& member) {
  if (member.size > kTextLimit)
    return refused(path, message("its member \"{}\" is too long", printable(member.name)));
  std::string text;
  SCANKIT_CHECK(read_member(zip, path, member, [&](const char* bytes, std::size_t count) {
    text.append(bytes, count);
    return Result<void>();
  }));
  return text;
}

// RECORD (PEP 376): "path,sha256=URLSAFE-BASE64-WITHOUT-PADDING,size"; here path -> lower-case hex. Six bits
// come in and four go out, so `bits` never has more than twelve. A path in quotes (CSV) is left with them,
// and is then not found by its member's name.
std::map<std::string, std::string> hashes_of(const std::string& record) {
  constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  constexpr std::string_view kHex = "0123456789abcdef", kMark = ",sha256=";
  std::map<std::string, std::string> hashes;
  for (const std::string_view line : lines_of(record)) {
    const auto mark = line.rfind(kMark);
    if (mark == std::string_view::npos) continue;
    const auto from = mark + kMark.size();
    std::string hex;
    unsigned bits = 0, held = 0;
    for (const char c : line.substr(from, line.find(',', from) - from)) {
      const auto value = kAlphabet.find(c);
      if (value == std::string_view::npos) break;
      bits = (bits << 6 | static_cast<unsigned>(value)) & 0xfff;
      held += 6;
      for (; held >= 4; held -= 4) hex += kHex[bits >> (held - 4) & 15];
    }
    hashes[std::string(line.substr(0, mark))] = hex.substr(0, 64);
  }
  return hashes;
}

// "x.so" and "libx.so.1.2".
bool is_library(const std::string& name) {
  const std::string base = path_basename(name);
  const auto so = base.rfind(".so");
  return so != std::string::npos && so > 0 &&
         base.find_first_not_of("0123456789.", so + 3) == std::string::npos;
}

// NAME-VERSION.data/platlib/x lies in site-packages as x (PEP 427).
std::string installed_name(const std::string& name) {
  for (const char* kind : {".data/platlib/", ".data/purelib/"}) {
    const auto at = name.find(kind);
    if (at != std::string::npos && name.find('/') == at + 5) return name.substr(at + 14);
  }
  return name;
}

// Overwrites a file of that name; unpack_wheel() refuses two members for one file when all are written.
Result<void> unpack_member(void* zip, const std::string& path, const Member& member, const std::string& to) {
  SCANKIT_CHECK(make_directories(path_dirname(to)));
  std::ofstream out(to, std::ios::binary | std::ios::trunc);
  const Error full{Errc::Io, message("cannot write {}: not enough space for the unpacked wheel?", to),
                   message("set TMPDIR to a directory with more space")};
  SCANKIT_CHECK(read_member(zip, path, member, [&](const char* bytes, std::size_t count) -> Result<void> {
    out.write(bytes, static_cast<std::streamsize>(count));
    return out ? Result<void>() : Result<void>(full);
  }));
  out.close();
  return out ? Result<void>() : Result<void>(full);
}

// NAME-VERSION.dist-info/FILE of the archive's top level.
const Member* find_info(const std::vector<Member>& members, const std::string& file) {
  for (const Member& member : members)
    if (member.name.ends_with(".dist-info/" + file) && member.name.find('/') == member.name.rfind('/'))
      return &member;
  return nullptr;
}

struct Archive {
  Zip zip;
  std::vector<Member> members;
  std::uint64_t size = 0;
};

// Of all members, also of those that are not read here: an installer unpacks every one. The bound on one member keeps
// `total` from wrapping.
Result<void> check_sizes(const Archive& archive, const std::string& path) {
  const std::uint64_t most = std::max(kAlwaysAllowed, archive.size * kExpansion);
  std::uint64_t total = 0;
  for (const Member& member : archive.members)
    if (member.size > (1ull << 40) || (total += member.size) > most)
      return refused(path, message("it unpacks to far more than a wheel of {} bytes should", archive.size));
  return {};
}

Result<Archive> open_archive(const std::string& path) {
  struct ::stat st {};
  if (::stat(path.c_str(), &st) != 0 || !S_ISREG(st.st_mode))
    return refused(path, message("not a regular file"));
  Archive archive;
  archive.size = static_cast<std::uint64_t>(st.st_size);
  archive.zip.reset(unzOpen64(path.c_str()));
  if (!archive.zip) return refused(path, message("not a zip archive, or truncated"));
  SCANKIT_TRY(archive.members, list_members(archive.zip.get(), path));
  SCANKIT_CHECK(check_sizes(archive, path));
  // minizip lists the members; archive_ambiguity() reads the same file again by itself.
  SCANKIT_TRY(auto source, make_real_host()->open(std::filesystem::absolute(path)));
  std::vector<std::string> names;
  for (const Member& member : archive.members) names.push_back(member.name);
  const elf::FileBytes file{std::shared_ptr<const ByteSource>(std::move(source))};
  if (const Message problem = archive_ambiguity(file, names); !problem.empty()) return refused(path, problem);
  return archive;
}

Result<std::map<std::string, std::string>> recorded_hashes(const Archive& archive, const std::string& path) {
  const Member* record = find_info(archive.members, "RECORD");
  if (record == nullptr) return std::map<std::string, std::string>();  // nothing to compare with
  SCANKIT_TRY(const std::string lines, read_text(archive.zip.get(), path, *record));
  return hashes_of(lines);
}

// A member that RECORD does not list is not compared: RECORD itself and its signatures are such members.
Result<void> check_hash(const std::map<std::string, std::string>& hashes, const std::string& path,
                        const Member& member, const std::string& unpacked) {
  const auto told = hashes.find(member.name);
  if (told == hashes.end()) return {};
  SCANKIT_TRY(const std::string hash, sha256_file(unpacked));
  if (hash == told->second) return {};
  return refused(path, message("the hash of its member \"{}\" differs from RECORD", printable(member.name)));
}

}  // namespace

Result<UnpackedWheel> unpack_wheel(const std::string& path, const std::string& folder) {
  SCANKIT_TRY(Archive archive, open_archive(path));
  const Zip& zip = archive.zip;
  const std::vector<Member>& members = archive.members;
  UnpackedWheel unpacked;
  Wheel& wheel = unpacked.wheel;
  wheel.path = path;
  wheel.members = members.size();
  const Member* about = find_info(members, "WHEEL");
  if (about == nullptr) return refused(path, message("it contains no .dist-info/WHEEL"));
  SCANKIT_TRY(const std::string text, read_text(zip.get(), path, *about));
  // Installers go by the file name; WHEEL decides only for a file that was renamed.
  if (!read_wheel_name(path_basename(path), wheel) && !take_tags(text, wheel))
    return refused(path,
                   message("its member \"{}\" lists more than {} tags", printable(about->name), kMostTags));
  SCANKIT_TRY(const auto hashes, recorded_hashes(archive, path));
  for (const Member& member : members) {
    if (!is_library(member.name)) continue;
    const std::string name = installed_name(member.name), to = path_join(folder, name);
    SCANKIT_CHECK(unpack_member(zip.get(), path, member, to));
    SCANKIT_CHECK(check_hash(hashes, path, member, to));
    unpacked.libraries.push_back(name);
  }
  std::ranges::sort(unpacked.libraries);
  // Such as x and NAME.data/platlib/x.
  if (std::ranges::adjacent_find(unpacked.libraries) != unpacked.libraries.end())
    return refused(path, message("two of its members have the same path"));
  return unpacked;
}

Result<std::optional<WheelText>> module_file_of_wheel(const std::string& path) {
  SCANKIT_TRY(Archive archive, open_archive(path));
  const Member* found = find_info(archive.members, declared::kModuleFile);
  for (const Member& member : archive.members) {
    if (found != nullptr) break;
    const auto slash = member.name.find('/');
    if (slash != std::string::npos && member.name.substr(slash + 1) == declared::kModuleFile) found = &member;
  }
  if (found == nullptr) return std::optional<WheelText>();
  SCANKIT_TRY(std::string text, read_text(archive.zip.get(), path, *found));
  return std::optional(WheelText{found->name, std::move(text)});
}

Result<std::optional<WheelText>> file_of_wheel(const std::string& path,
                                               const std::vector<std::string>& names) {
  SCANKIT_TRY(Archive archive, open_archive(path));
  for (const std::string& name : names)
    for (const Member& member : archive.members) {
      if (installed_name(member.name) != name) continue;
      SCANKIT_TRY(std::string text, read_text(archive.zip.get(), path, member));
      return std::optional(WheelText{name, std::move(text)});
    }
  return std::optional<WheelText>();
}

Result<std::string> record_of_wheel(const std::string& path) {
  SCANKIT_TRY(Archive archive, open_archive(path));
  const Member* record = find_info(archive.members, "RECORD");
  if (record == nullptr) return refused(path, message("it contains no .dist-info/RECORD"));
  return read_text(archive.zip.get(), path, *record);
}

Message module_file_problem(const Wheel& wheel) {
  const auto member = module_file_of_wheel(wheel.path);
  if (!member || !*member) return "";  // an archive that cannot be read is told by those who unpack it
  const auto file =
      declared::parse_module_file((*member)->text, path_join(wheel.path, printable((*member)->name)));
  if (!file) return message("{}; {}", file.error().message, file.error().hint);
  if (!wheel.name.empty() && normalized_name(file->distribution) != normalized_name(wheel.name))
    return message("{} describes {}, and the wheel is of {}", file->file, file->distribution, wheel.name);
  return "";
}

Result<void> unpack_whole_wheel(const std::string& path, const std::string& folder) {
  SCANKIT_TRY(Archive archive, open_archive(path));
  SCANKIT_TRY(const auto hashes, recorded_hashes(archive, path));
  for (const Member& member : archive.members) {
    if (member.name.ends_with('/')) continue;
    const std::string to = path_join(folder, member.name);
    SCANKIT_CHECK(unpack_member(archive.zip.get(), path, member, to));
    SCANKIT_CHECK(check_hash(hashes, path, member, to));
    if (member.executable) ::chmod(to.c_str(), 0755);
  }
  return {};
}

}  // namespace scankit::probes
