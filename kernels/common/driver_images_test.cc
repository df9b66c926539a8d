// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <lz4.h>
#include <lz4hc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <random>

#include "doctor/base/files.h"
#include "kernels/common/driver_context.h"
#include "kernels/common/image_file_test.h"

namespace scankit::device {
namespace {

const std::vector<TestImage> kImages = {
    {kImageCubin, 80, "forward_f32", "cubin for 80"}, {kImageCubin, 90, "forward_f32", "cubin for 90"},
    {kImagePtx, 75, "forward_f32", "ptx for 75"},     {kImagePtx, 90, "forward_f32", "ptx for 90"},
    {kImageCubin, 90, "reduce", "the reduction"},
};

// A file of these bytes, in memory.
class OpenFile {
 public:
  explicit OpenFile(const std::string& bytes) : fd_(memfd_create("driver-images-test", MFD_CLOEXEC)) {
    EXPECT_EQ(write(fd_.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }
  int fd() const { return fd_.get(); }

 private:
  Descriptor fd_;
};

std::string payload_of(const ImageEntry* entry) {
  for (const TestImage& image : kImages)
    if (entry != nullptr && entry->kind == image.kind && entry->sm == image.sm && image.unit == entry->unit)
      return image.bytes;
  return "none";
}

TEST(DriverImages, ExactMajorCubinThenNewestPtx) {
  const OpenFile file(image_file(kImages));
  ImageIndex index;
  Message message;
  ASSERT_TRUE(read_image_index(file.fd(), &index, &message)) << message.text;
  EXPECT_EQ(index.count, kImages.size());
  const auto pick = [&](int capability, int rank) {
    return payload_of(select_image(index, "forward_f32", capability, rank));
  };
  EXPECT_EQ(pick(90, 0), "cubin for 90");
  EXPECT_EQ(pick(90, 1), "ptx for 90");
  EXPECT_EQ(pick(90, 2), "ptx for 75");
  EXPECT_EQ(pick(90, 3), "none");
  EXPECT_EQ(pick(89, 0), "cubin for 80");
  EXPECT_EQ(pick(89, 1), "ptx for 75");
  EXPECT_EQ(pick(120, 0), "ptx for 90");  // another major version: no cubin
  EXPECT_EQ(pick(75, 0), "ptx for 75");
  EXPECT_EQ(pick(70, 0), "none");
  EXPECT_EQ(payload_of(select_image(index, "no such unit", 90, 0)), "none");
  EXPECT_FALSE(no_image(index, "forward_f32", 70, &message));
  EXPECT_STREQ(
      message.text,
      "no device image of forward_f32 for this GPU (sm_70); the module contains sm_80, sm_90, PTX for "
      "compute_75, "
      "PTX for compute_90: run scankit build --arch sm_70");
  release_index(&index);
}

TEST(DriverImages, PayloadsAreFollowedWhereStripOrPatchelfMovedThem) {
  const OpenFile file(image_file(kImages, 4096));
  ImageIndex index;
  Message message;
  ASSERT_TRUE(read_image_index(file.fd(), &index, &message)) << message.text;
  for (uint32_t i = 0; i < index.count; ++i) {
    auto* image = static_cast<char*>(read_image(file.fd(), index.entries[i], &message));
    ASSERT_NE(image, nullptr) << message.text;
    EXPECT_EQ(image, kImages[i].bytes);
    free(image);
  }
  release_index(&index);
}

TEST(DriverImages, PayloadIsTerminatedAndChecked) {
  std::string bytes = image_file(kImages);
  Message message;
  ImageIndex index;
  const OpenFile file(bytes);
  ASSERT_TRUE(read_image_index(file.fd(), &index, &message));
  const ImageEntry* entry = select_image(index, "reduce", 90, 0);
  ASSERT_NE(entry, nullptr);
  auto* image = static_cast<char*>(read_image(file.fd(), *entry, &message));
  ASSERT_NE(image, nullptr) << message.text;
  EXPECT_STREQ(image, "the reduction");
  free(image);
  bytes[entry->offset] = 'T';
  const OpenFile changed(bytes);
  EXPECT_EQ(read_image(changed.fd(), *entry, &message), nullptr);
  EXPECT_NE(strstr(message.text, "hash"), nullptr) << message.text;
  const OpenFile cut(bytes.substr(0, entry->offset + 3));
  EXPECT_EQ(read_image(cut.fd(), *entry, &message), nullptr);
  EXPECT_NE(strstr(message.text, "cut"), nullptr) << message.text;
  release_index(&index);
}

// The image that a module with this one packed payload gives; "refused" with the message where it gives none.
std::string unpacked(const std::string& payload, std::size_t full_size) {
  const OpenFile file(image_file({{kImageCubin, 90, "unit", payload, full_size}}));
  ImageIndex index;
  Message message = {};
  if (!read_image_index(file.fd(), &index, &message)) return std::string("refused: ") + message.text;
  auto* image = static_cast<char*>(read_image(file.fd(), index.entries[0], &message));
  release_index(&index);
  if (image == nullptr) return std::string("refused: ") + message.text;
  EXPECT_EQ(image[full_size], '\0');
  std::string bytes(image, full_size);
  free(image);
  return bytes;
}

std::string lz4(const std::string& bytes, int level) {
  const int size = static_cast<int>(bytes.size());
  std::string packed(static_cast<std::size_t>(LZ4_compressBound(size)), '\0');
  const int capacity = static_cast<int>(packed.size());
  const int length = level == 0 ? LZ4_compress_default(bytes.data(), packed.data(), size, capacity)
                                : LZ4_compress_HC(bytes.data(), packed.data(), size, capacity, level);
  packed.resize(static_cast<std::size_t>(length));
  return packed;
}

// Runs, repetitions at every distance and bytes without any, in random order: short and long lengths of both
// kinds, and matches that overlap what they make.
std::string drawn(std::mt19937& draw) {
  std::string bytes;
  const std::size_t size = draw() % 20000;
  while (bytes.size() < size) {
    const std::size_t length = draw() % (draw() % 4 == 0 ? 2000 : 20);
    const std::size_t distance = bytes.empty() ? 0 : 1 + draw() % std::min<std::size_t>(bytes.size(), 70000);
    const bool fresh = distance == 0 || draw() % 2 == 0;
    for (std::size_t i = 0; i < length; ++i)
      bytes += fresh ? static_cast<char>(draw()) : bytes[bytes.size() - distance];
  }
  return bytes + "end";
}

TEST(DriverImages, PackedImagesAreUnpacked) {
  std::mt19937 draw(28);
  for (int i = 0; i < 300; ++i) {
    const std::string bytes = drawn(draw);
    const std::string packed = lz4(bytes, i % 2 == 0 ? 9 : 0);
    ASSERT_EQ(unpacked(packed, bytes.size()), bytes) << "case " << i;
    const std::string refused = unpacked(packed, bytes.size() + 1);
    EXPECT_NE(refused.find("refused: the module's own file is damaged"), std::string::npos) << refused;
    EXPECT_TRUE(unpacked(packed, bytes.size() - 1).starts_with("refused: "));
  }
  EXPECT_EQ(unpacked(lz4(std::string(100000, 'a'), 9), 100000), std::string(100000, 'a'));
}

// What has the right hash and is no LZ4 block, or a cut one, neither reads nor writes outside (under the
// sanitizers) and gives no image that liblz4 would not give.
TEST(DriverImages, HostileBlocksAreRefused) {
  std::mt19937 draw(29);
  for (int i = 0; i < 3000; ++i) {
    const std::string bytes = drawn(draw).substr(0, 300);
    std::string packed = lz4(bytes, 9);
    if (i % 3 == 0)
      packed.resize(1 + draw() % packed.size());
    else
      for (auto flips = 1 + draw() % 3; flips > 0; --flips)
        packed[draw() % packed.size()] = static_cast<char>(draw());
    const std::string ours = unpacked(packed, bytes.size());
    std::string theirs(bytes.size(), '\0');
    const int got = LZ4_decompress_safe(packed.data(), theirs.data(), static_cast<int>(packed.size()),
                                        static_cast<int>(theirs.size()));
    // liblz4 also asks that a block ends with five literals; a block that does not is no harm.
    if (got == static_cast<int>(bytes.size())) {
      EXPECT_EQ(ours, theirs) << "case " << i;
    } else if (!ours.starts_with("refused: ")) {
      EXPECT_EQ(ours.size(), bytes.size());
    }
  }
  // Literals, a length or a distance that the block does not have; a match at distance 0, and before the start;
  // a length without an end.
  const std::vector<std::string> blocks = {{'\x10'},
                                           {'\xf0'},
                                           {'\x10', 'a', '\1'},
                                           {'\x10', 'a', '\0', '\0'},
                                           {'\x10', 'a', '\2', '\0'},
                                           {'\x1f', 'a', '\1', '\0', '\xff', '\xff'}};
  for (const std::string& block : blocks) EXPECT_TRUE(unpacked(block, 50).starts_with("refused: "));
}

TEST(DriverImages, EveryTruncationIsRefused) {
  const std::string whole = image_file(kImages);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const OpenFile file(whole.substr(0, length));
    ImageIndex index;
    Message message;
    EXPECT_FALSE(read_image_index(file.fd(), &index, &message)) << length;
    EXPECT_NE(message.text[0], '\0');
    EXPECT_EQ(index.entries, nullptr);
  }
}

// No byte of the headers or the index, changed to its extremes, may lead outside the file.
TEST(DriverImages, HostileNumbersStayInside) {
  const std::string whole = image_file(kImages);
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const char value : {'\0', '\x7f', '\xff'}) {
      std::string bytes = whole;
      bytes[at] = value;
      const OpenFile file(bytes);
      ImageIndex index;
      Message message;
      if (!read_image_index(file.fd(), &index, &message)) continue;
      for (uint32_t i = 0; i < index.count; ++i) {
        EXPECT_LE(index.entries[i].offset + index.entries[i].size, whole.size());
        free(read_image(file.fd(), index.entries[i], &message));
      }
      release_index(&index);
    }
  }
}

TEST(DriverImages, ModuleWithoutImagesIsSoundButEmpty) {
  Elf64_Ehdr header = {};
  memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  const OpenFile file(std::string(reinterpret_cast<const char*>(&header), sizeof header));
  ImageIndex index;
  Message message;
  ASSERT_TRUE(read_image_index(file.fd(), &index, &message)) << message.text;
  EXPECT_EQ(index.count, 0u);
  no_image(index, "forward_f32", 90, &message);
  EXPECT_NE(strstr(message.text, "contains none"), nullptr) << message.text;
  release_index(&index);
  EXPECT_FALSE(read_image_index(-1, &index, &message));
}

// Code that was built for an older GPU than 9.0 has no waiting in it, so its launches must not overlap, whatever
// GPU runs it.
TEST(DriverOverlap, NeedsTheFunctionTheDriverAndImagesThatWait) {
  EXPECT_TRUE(may_overlap(true, 12030, 90));
  EXPECT_TRUE(may_overlap(true, 13000, 120));
  EXPECT_FALSE(may_overlap(false, 13000, 90));
  EXPECT_FALSE(may_overlap(true, 12020, 90));
  EXPECT_FALSE(may_overlap(true, 0, 90));
  EXPECT_FALSE(may_overlap(true, 13000, 89));
  EXPECT_FALSE(may_overlap(true, 13000, 0));
}

}  // namespace
}  // namespace scankit::device
