// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <set>

#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/probes/target/wheel.h"

// APPNOTE.TXT of PKWARE, 4.3 and 4.5. Numbers added to a position below are offsets of fields in its
// records, in bytes. wheel.cc unpacks with minizip; this file makes sure that every other reader sees the
// same archive.

namespace scankit::probes {

// A '-' separates parts and occurs in none: PEP 427 writes it as '_' inside a name or a version.
bool read_wheel_name(const std::string& file_name, Wheel& wheel) {
  if (!file_name.ends_with(".whl")) return false;
  const std::string name = file_name.substr(0, file_name.size() - 4);
  const std::vector<std::string> parts = split(name, "-");
  if (parts.size() != 5 && parts.size() != 6) return false;
  if (std::ranges::any_of(parts, [](const std::string& part) { return part.empty(); })) return false;
  if (parts.size() == 6 && (parts[2][0] < '0' || parts[2][0] > '9'))
    return false;  // a build begins with a digit
  wheel.name = parts[0];
  wheel.version = parts[1];
  wheel.python_tags = split(parts[parts.size() - 3], ".");
  wheel.abi_tags = split(parts[parts.size() - 2], ".");
  wheel.platform_tags = split(parts.back(), ".");
  wheel.tags_from = "file name";
  return true;
}

std::vector<Wheel> tag_lines(const std::string& text) {
  constexpr std::string_view kTag = "Tag:";
  std::vector<Wheel> lines;
  for (const std::string_view line : lines_of(text)) {
    if (lines.size() > kMostTags) break;
    // A tag line has the form of the last three parts of a file name, so the same reader takes it.
    Wheel one;
    if (line.starts_with(kTag) &&
        read_wheel_name("n-0-" + std::string(trimmed(line.substr(kTag.size()))) + ".whl", one))
      lines.push_back(std::move(one));
  }
  return lines;
}

std::vector<std::string> expanded_tags(const Wheel& wheel) {
  std::vector<std::string> tags;
  for (const std::string& python : wheel.python_tags)
    for (const std::string& abi : wheel.abi_tags)
      for (const std::string& platform : wheel.platform_tags)
        if (tags.size() < kMostTags) tags.push_back(python + "-" + abi + "-" + platform);
  return tags;
}

bool take_tags(const std::string& text, Wheel& wheel) {
  std::set<std::string> seen;
  const auto add = [&](const char* kind, const std::vector<std::string>& from, std::vector<std::string>& to) {
    for (const std::string& tag : from)
      if (seen.size() <= kMostTags && seen.insert(kind + tag).second) to.push_back(tag);
  };
  const std::vector<Wheel> lines = tag_lines(text);
  for (const Wheel& one : lines) {
    add("python ", one.python_tags, wheel.python_tags);
    add("abi ", one.abi_tags, wheel.abi_tags);
    add("platform ", one.platform_tags, wheel.platform_tags);
    wheel.tags_from = "WHEEL";
  }
  return lines.size() <= kMostTags && seen.size() <= kMostTags;
}

namespace {

constexpr std::uint32_t kLocalMark = 0x04034b50, kCentralMark = 0x02014b50, kEndMark = 0x06054b50,
                        kEnd64Mark = 0x06064b50, kLocator64Mark = 0x07064b50, kDescriptorMark = 0x08074b50;
constexpr std::uint64_t kLocalSize = 30, kCentralSize = 46, kEndSize = 22, kEnd64Size = 56,
                        kLocator64Size = 20;
constexpr std::uint64_t kLongComment = 0xffff;  // the longest comment behind an end record
constexpr std::uint32_t kIn64 = 0xffffffff;     // the number is in a 64-bit record
constexpr std::uint16_t kHasDescriptor = 8;

struct Directory {
  std::uint64_t start = 0, size = 0, end = 0, entries = 0;  // `end`: where the end records begin
};

struct ZipMember {
  std::string name;
  std::uint64_t start = 0, packed = 0, size = 0;
  std::uint32_t checksum = 0;
  std::uint16_t flags = 0, method = 0;
};

// Where the archive's end record is; nothing where none ends with the file. It is searched from the front to
// see every candidate: readers that search from the end take the last one.
std::optional<std::uint64_t> find_end(const elf::FileBytes& file, Message& problem) {
  const std::uint64_t tail = std::min(file.size(), kEndSize + kLongComment);
  const auto bytes = file.slice(file.size() - tail, tail);
  if (!bytes) return std::nullopt;
  std::optional<std::uint64_t> found;
  for (std::uint64_t at = 0; at + kEndSize <= tail; ++at) {
    if (bytes->read<std::uint32_t>(at) != kEndMark) continue;
    if (at + kEndSize + *bytes->read<std::uint16_t>(at + 20) != tail) continue;
    if (found) problem = message("it has two end records: programs differ in which archive they read");
    found = file.size() - tail + at;
  }
  if (!found) problem = message("bytes follow the archive, so programs differ in what they read");
  return found;
}

// With 64-bit records, these have to stand right before the end record, in their shortest form (4.3.14,
// 4.3.15). A number that both records have must be the same in both.
std::optional<Directory> find_directory(const elf::FileBytes& file, std::uint64_t end) {
  const auto entries = file.read<std::uint16_t>(end + 10), on_disk = file.read<std::uint16_t>(end + 8);
  const auto size = file.read<std::uint32_t>(end + 12), start = file.read<std::uint32_t>(end + 16);
  if (!entries || !on_disk || !size || !start) return std::nullopt;
  Directory directory{*start, *size, end, *entries};
  if (*entries != 0xffff && *size != kIn64 && *start != kIn64)
    return *on_disk == *entries ? std::optional(directory) : std::nullopt;  // an archive of one disk
  if (end < kLocator64Size + kEnd64Size) return std::nullopt;
  directory.end = end - kLocator64Size - kEnd64Size;
  const auto locator = file.read<std::uint32_t>(end - kLocator64Size),
             mark = file.read<std::uint32_t>(directory.end);
  const auto told = file.read<std::uint64_t>(end - kLocator64Size + 8);
  const auto entries64 = file.read<std::uint64_t>(directory.end + 32);
  const auto size64 = file.read<std::uint64_t>(directory.end + 40),
             start64 = file.read<std::uint64_t>(directory.end + 48);
  if (!locator || !mark || !told || !entries64 || !size64 || !start64) return std::nullopt;
  if (*locator != kLocator64Mark || *mark != kEnd64Mark || *told != directory.end) return std::nullopt;
  if ((*entries != 0xffff && *entries != *entries64) || (*size != kIn64 && *size != *size64) ||
      (*start != kIn64 && *start != *start64))
    return std::nullopt;
  return Directory{*start64, *size64, directory.end, *entries64};
}

// The 64-bit numbers of a header's extra field (id 1), in the order of those that are not in the header.
bool read_extra64(const elf::Bytes& extra, const std::vector<std::uint64_t*>& wanted) {
  for (std::uint64_t at = 0; at + 4 <= extra.size();) {
    const std::uint16_t id = *extra.read<std::uint16_t>(at), size = *extra.read<std::uint16_t>(at + 2);
    if (id == 1) {
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        const auto value = extra.read<std::uint64_t>(at + 4 + i * 8);
        if (!value || (i + 1) * 8 > size) return false;
        *wanted[i] = *value;
      }
      return true;
    }
    at += 4u + size;
  }
  return wanted.empty();
}

// Reads the record at `at` and moves `at` behind it; nothing where the record is damaged.
std::optional<ZipMember> central_record(const elf::Bytes& bytes, std::uint64_t& at) {
  if (bytes.read<std::uint32_t>(at) != kCentralMark || at + kCentralSize > bytes.size()) return std::nullopt;
  ZipMember member;
  member.flags = *bytes.read<std::uint16_t>(at + 8);
  member.method = *bytes.read<std::uint16_t>(at + 10);
  member.checksum = *bytes.read<std::uint32_t>(at + 16);
  member.packed = *bytes.read<std::uint32_t>(at + 20);
  member.size = *bytes.read<std::uint32_t>(at + 24);
  member.start = *bytes.read<std::uint32_t>(at + 42);
  const std::uint64_t name = *bytes.read<std::uint16_t>(at + 28), extra = *bytes.read<std::uint16_t>(at + 30);
  const auto name_bytes = bytes.slice(at + kCentralSize, name),
             extra_bytes = bytes.slice(at + kCentralSize + name, extra);
  const std::uint64_t comment = *bytes.read<std::uint16_t>(at + 32);
  // The last record's comment may not reach into the end records.
  if (!name_bytes || !extra_bytes || !bytes.slice(at + kCentralSize + name + extra, comment))
    return std::nullopt;
  member.name = name_bytes->text();
  std::vector<std::uint64_t*> wanted;
  for (std::uint64_t* field : {&member.size, &member.packed, &member.start})
    if (*field == kIn64) wanted.push_back(field);
  if (!read_extra64(*extra_bytes, wanted)) return std::nullopt;
  at += kCentralSize + name + extra + comment;
  return member;
}

// Compression methods by their number (4.4.5).
std::string method_name(std::uint16_t method) {
  constexpr std::array<std::pair<std::uint16_t, const char*>, 4> kNames{
      {{9, "Deflate64"}, {12, "BZIP2"}, {14, "LZMA"}, {93, "Zstandard"}}};
  for (const auto& [number, name] : kNames)
    if (number == method) return name;
  return std::to_string(method);
}

// How the member's own header differs from the directory, in one sentence; "" where both agree. `end` is set
// behind its data and its descriptor.
Message local_problem(const elf::FileBytes& file, const ZipMember& member, std::uint64_t& end) {
  const std::string name = printable(member.name);
  const auto header = file.slice(member.start, kLocalSize);
  if (!header || *header->read<std::uint32_t>(0) != kLocalMark)
    return message("its directory refers to its member \"{}\" where no member begins", name);
  const std::uint64_t name_size = *header->read<std::uint16_t>(26),
                      extra_size = *header->read<std::uint16_t>(28);
  const auto own_name = file.slice(member.start + kLocalSize, name_size);
  if (!own_name || own_name->text() != member.name)
    return message("its member \"{}\" is called \"{}\" in its own header", name,
                   own_name ? printable(own_name->text()) : "");
  const std::uint16_t flags = *header->read<std::uint16_t>(6);
  // Bit 3: the sizes follow the data, and those of the header may be 0.
  const bool described = (flags & kHasDescriptor) != 0;
  std::uint64_t packed = *header->read<std::uint32_t>(18), size = *header->read<std::uint32_t>(22);
  std::vector<std::uint64_t*> wanted;
  for (std::uint64_t* field : {&size, &packed})
    if (*field == kIn64) wanted.push_back(field);
  const auto extra = file.slice(member.start + kLocalSize + name_size, extra_size);
  if (!extra || (!read_extra64(*extra, wanted) && !described))
    return message("the header of its member \"{}\" is damaged", name);
  const bool same = *header->read<std::uint16_t>(8) == member.method && flags == member.flags &&
                    (described || (*header->read<std::uint32_t>(14) == member.checksum &&
                                   packed == member.packed && size == member.size));
  if (!same)
    return message("its member \"{}\" has other sizes or flags in its own header than in the directory",
                   name);
  if (member.method != 0 && member.method != 8)
    return message("its member \"{}\" is compressed with {}, which scankit does not support", name,
                   method_name(member.method));
  const auto data = elf::checked_add(member.start + kLocalSize + name_size + extra_size, member.packed);
  if (!data || *data > file.size()) return message("its member \"{}\" extends beyond the file", name);
  end = *data;
  if (described) {  // with or without a mark, with numbers of 32 or 64 bits
    const bool mark = file.read<std::uint32_t>(end).value_or(0) == kDescriptorMark;
    const std::uint64_t from = end + (mark ? 4 : 0);
    const bool wide = file.read<std::uint64_t>(from + 4).value_or(0) == member.packed &&
                      file.read<std::uint64_t>(from + 12).value_or(0) == member.size && member.size != 0;
    end = from + (wide ? 20 : 12);
  }
  return "";
}

// Members by their place in the file: each has to begin where the one before ended, the first at 0 and the
// directory behind the last.
Message layout_problem(const elf::FileBytes& file, std::vector<ZipMember> members, std::uint64_t directory) {
  std::ranges::sort(members, {}, &ZipMember::start);
  std::uint64_t at = 0;
  const ZipMember* before = nullptr;
  for (const ZipMember& member : members) {
    if (member.start < at && before != nullptr)
      return message("its members \"{}\" and \"{}\" overlap", printable(before->name),
                     printable(member.name));
    if (member.start > at && before == nullptr)
      return message("{} bytes precede its first member", member.start);
    if (member.start > at)
      return message("{} bytes before its member \"{}\" belong to no member", member.start - at,
                     printable(member.name));
    if (Message problem = local_problem(file, member, at); !problem.empty()) return problem;
    before = &member;
  }
  if (at > directory)
    return message("its member \"{}\" overlaps the directory",
                   before == nullptr ? "" : printable(before->name));
  if (at < directory) return message("{} bytes before its directory belong to no member", directory - at);
  return "";
}

}  // namespace

Message archive_ambiguity(const elf::FileBytes& file, const std::vector<std::string>& names) {
  Message problem;
  const auto end = find_end(file, problem);
  if (!problem.empty() || !end) return problem;
  const auto directory = find_directory(file, *end);
  if (!directory) return message("its end record is damaged");
  const auto behind = elf::checked_add(directory->start, directory->size);
  if (!behind || *behind > directory->end) return message("its end record is damaged");
  if (*behind < directory->end)
    return message(
        "{} bytes precede the archive or follow its directory, so programs differ in what they read",
        directory->end - *behind);
  const auto bytes = file.slice(directory->start, directory->size);
  if (!bytes) return message("its directory is longer than any wheel's");
  std::vector<ZipMember> members;
  for (std::uint64_t at = 0; at < bytes->size();) {
    auto member = central_record(*bytes, at);
    if (!member) return message("its zip directory is damaged");
    members.push_back(*std::move(member));
  }
  // `names` comes from minizip, which read the same directory in its own way.
  if (members.size() != directory->entries || !std::ranges::equal(members, names, {}, &ZipMember::name))
    return message("it has two directories: programs differ in which members they see");
  return layout_problem(file, std::move(members), directory->start);
}

}  // namespace scankit::probes
