// SPDX-License-Identifier: Apache-2.0
#include "builder/module/assemble.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "builder/module/image_index.h"
#include "doctor/base/files.h"
#include "doctor/base/process.h"
#include "doctor/elf/fatbin.h"
#include "doctor/elf/library.h"

namespace scankit::module {
namespace {

std::string tiny() { return read_whole_file(SCANKIT_TINY_MODULE).value(); }

compile::BuiltCode image(const std::string& unit, Target target, std::string bytes) {
  std::string hash = sha256_hex(bytes);
  return {unit, std::move(target), std::move(bytes), std::move(hash), false};
}

// Real heads, arbitrary rest: nothing here runs them.
std::vector<compile::BuiltCode> images() {
  std::string cubin("\177ELF\2\1\1\x41\x08", 9);
  cubin.resize(201, '\0');
  cubin[18] = static_cast<char>(190);  // EM_CUDA
  cubin[49] = 90;                      // e_flags of ABI version 8: the architecture is the second byte
  const std::string ptx("//\n\n.version 9.0\n.target sm_75\n\0", 32);
  return {image("forward", {false, 90, ""}, cubin), image("forward", {true, 75, ""}, ptx)};
}

std::string assembled() {
  auto module = assemble_module(tiny(), images(), "{}\n");
  EXPECT_TRUE(module) << english(module.error().message);
  return module ? *module : "";
}

std::string place(const TemporaryDirectory& folder, const std::string& bytes) {
  const std::string path = path_join(folder.path(), "tiny.abi3.so");
  EXPECT_TRUE(write_file_atomically(path, bytes, 0755));
  return path;
}

TEST(Assemble, ChangesNothingThatTheLoaderReads) {
  const std::string before = tiny(), after = assembled();
  ASSERT_GT(after.size(), before.size());
  for (std::size_t i = 0; i < before.size(); ++i) {
    const bool section_fields = (i >= 40 && i < 48) || (i >= 60 && i < 64);  // e_shoff; e_shnum, e_shstrndx
    if (!section_fields) {
      ASSERT_EQ(before[i], after[i]) << "offset " << i;
    }
  }
}

TEST(Assemble, GivesTheSameBytesAgain) { EXPECT_EQ(assembled(), assembled()); }

TEST(Assemble, IsReadBackByTheDoctorsReaders) {
  auto folder = TemporaryDirectory::create("assemble");
  const std::string path = place(*folder, assembled());
  const auto good = assert_module(*make_real_host(), path, {"tiny", images()});
  EXPECT_TRUE(good) << english(good.error().message);
  EXPECT_EQ(section_bytes(assembled(), ".scankit.manifest").value(), "{}\n");
}

// An image is packed where that makes it shorter, and both indices of the module say so.
TEST(Assemble, PacksImages) {
  auto folder = TemporaryDirectory::create("assemble");
  const std::string file = assembled();
  const auto library = elf::open_library(*make_real_host(), place(*folder, file)).value();
  const auto entries = elf::find_device_images(library->image).value();
  const auto index = read_image_index(file).value();
  ASSERT_EQ(entries.size(), 2u);
  ASSERT_EQ(index.size(), 2u);
  EXPECT_EQ(entries[0].compression, "lz4");
  EXPECT_EQ(index[0].full_size, images()[0].bytes.size());
  EXPECT_LT(index[0].size, 100u);
  EXPECT_EQ(entries[1].compression, "none");
  EXPECT_EQ(index[1].full_size, 0u);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(index[i].offset, entries[i].offset);
    EXPECT_EQ(index[i].sha256, sha256_hex(file.substr(index[i].offset, index[i].size)));
    EXPECT_EQ(image_bytes(file, index[i]).value(), images()[i].bytes);
    EXPECT_TRUE(elf::fatbin_payload(library->image.file(), entries[i])->starts_with(images()[i].bytes));
  }
}

// What comes packed from a finished module stays as it is.
TEST(Assemble, PacksNothingTwice) {
  auto again = images();
  again[0].packed = again[0].bytes;
  const std::string file = assemble_module(tiny(), again, "{}\n").value();
  const auto index = read_image_index(file).value();
  EXPECT_EQ(file.substr(index[0].offset, index[0].size), again[0].bytes);
}

TEST(Assemble, LoadsAndHasItsEntryPoint) {
  auto folder = TemporaryDirectory::create("assemble");
  const std::string path = place(*folder, assembled());
  void* module = ::dlopen(path.c_str(), RTLD_NOW);
  ASSERT_NE(module, nullptr) << ::dlerror();
  EXPECT_NE(::dlsym(module, "PyInit_tiny"), nullptr);
  ::dlclose(module);
}

TEST(Assemble, SurvivesStrip) {
  auto folder = TemporaryDirectory::create("assemble");
  const std::string path = place(*folder, assembled());
  ProcessRequest request;
  request.argv = {"strip", "--strip-unneeded", path};
  const auto ran = run_process(request);
  if (!ran) GTEST_SKIP() << "no strip here: " << english(ran.error().message);
  ASSERT_TRUE(ran->ok()) << ran->err;
  const std::string stripped = read_whole_file(path).value();
  const std::string whole = assembled();
  for (const char* name : {".nv_fatbin", ".scankit.images", ".scankit.manifest"})
    EXPECT_EQ(section_bytes(stripped, name).value(), section_bytes(whole, name).value()) << name;
}

TEST(Assemble, RefusesAModuleThatHasImages) {
  const auto twice = assemble_module(assembled(), images(), "{}");
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().code, Errc::Conflict);
}

TEST(Assemble, RefusesEveryCutFile) {
  const std::string whole = tiny();
  for (std::size_t length = 0; length < whole.size(); ++length)
    EXPECT_FALSE(assemble_module(std::string_view(whole).substr(0, length), images(), "{}")) << length;
}

TEST(Assemble, RefusesImagesThatAreNone) {
  EXPECT_FALSE(assemble_module(tiny(), {image("forward", {false, 90, ""}, "<html>")}, "{}"));
  EXPECT_FALSE(assemble_module(tiny(), {image("forward", {true, 90, ""}, "no PTX")}, "{}"));
}

TEST(Assertions, NameWhatIsBroken) {
  auto folder = TemporaryDirectory::create("assemble");
  std::string bytes = assembled();
  const IndexedImage first = read_image_index(bytes).value().front();
  bytes[first.offset + first.size - 1] ^= 1;  // a literal: LZ4 ends with five of them
  const auto flipped = assert_module(*make_real_host(), place(*folder, bytes), {"tiny", images()});
  ASSERT_FALSE(flipped);
  EXPECT_NE(english(flipped.error().message).find("forward for sm_90 differs"), std::string::npos)
      << english(flipped.error().message);
  const auto misnamed = assert_module(*make_real_host(), place(*folder, assembled()), {"other", images()});
  ASSERT_FALSE(misnamed);
  EXPECT_NE(english(misnamed.error().message).find("exports PyInit_tiny"), std::string::npos);
}

// Up to the end of the first name, any changed byte of the index is seen.
TEST(Assertions, RefuseAnIndexThatLies) {
  auto folder = TemporaryDirectory::create("assemble");
  const std::string whole = assembled();
  const std::size_t at = whole.find("SKIMAGE1");
  for (std::size_t i = 0; i < 16 + 64 + sizeof("forward"); ++i) {
    if (i >= 16 + 12 && i < 16 + 16) continue;  // where .nv_fatbin was: only what moves it changes that
    std::string bytes = whole;
    bytes[at + i] = static_cast<char>(bytes[at + i] ^ 0x41);
    EXPECT_FALSE(assert_module(*make_real_host(), place(*folder, bytes), {"tiny", images()})) << i;
  }
}

TEST(Assertions, RefuseAFileWithForeignNeeds) {
  const auto libstdcxx =
      assert_module(*make_real_host(), "/usr/lib/x86_64-linux-gnu/libstdc++.so.6", {"tiny", {}});
  EXPECT_FALSE(libstdcxx);
}

}  // namespace
}  // namespace scankit::module
