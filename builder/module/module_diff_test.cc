// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <link.h>

#include <algorithm>

#include "builder/module/assemble.h"
#include "doctor/base/files.h"

namespace scankit::module {
namespace {

using Lines = std::vector<std::string>;

std::string tiny() { return read_whole_file(SCANKIT_TINY_MODULE).value(); }

// Where the file holds the first byte of PyInit_tiny, as the loader says.
std::size_t offset_of_init() {
  void* library = ::dlopen(SCANKIT_TINY_MODULE, RTLD_NOW);
  EXPECT_NE(library, nullptr);
  struct link_map* map = nullptr;
  ::dlinfo(library, RTLD_DI_LINKMAP, &map);
  const auto address = reinterpret_cast<std::uintptr_t>(::dlsym(library, "PyInit_tiny")) - map->l_addr;
  const std::string code(reinterpret_cast<const char*>(address + map->l_addr), 8);
  ::dlclose(library);
  return tiny().find(code);
}

compile::BuiltCode image(const std::string& unit, Target target, std::string bytes) {
  std::string hash = sha256_hex(bytes);
  return {unit, std::move(target), std::move(bytes), std::move(hash), false, ""};
}

// A real ELF file with sections, and with the head of a cubin.
std::string cubin() {
  std::string bytes = tiny();
  bytes[7] = 0x41;
  bytes[8] = 8;
  bytes[18] = static_cast<char>(190);  // EM_CUDA
  bytes[49] = 90;
  return bytes;
}
std::string ptx(const std::string& line) {
  return "//\n.version 9.0\n.target sm_75\n" + line + "\n" + std::string(1, '\0');
}

std::string module_of(const std::string& cubin, const std::string& ptx,
                      const std::string& manifest = "{}\n") {
  const auto made = assemble_module(
      tiny(), {image("fwd", {false, 90, ""}, cubin), image("fwd", {true, 75, ""}, ptx)}, manifest);
  EXPECT_TRUE(made) << english(made.error().message);
  return made ? *made : "";
}

TEST(ElfDifferences, NamesSectionAndSymbol) {
  std::string other = tiny();
  const std::size_t at = offset_of_init();
  ASSERT_LT(at, other.size());
  other[at] = static_cast<char>(other[at] ^ 1);
  const auto lines = elf_differences("x", tiny(), other);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_TRUE(lines[0].starts_with("x: section .text differs from byte 0x")) << lines[0];
  EXPECT_TRUE(lines[0].ends_with("in symbol PyInit_tiny")) << lines[0];
}

TEST(ElfDifferences, NamesSectionsOfOneBuildOnly) {
  std::vector<std::uint64_t> offsets;
  const std::string more = append_sections(tiny(), {{".extra", "x", 8}}, offsets).value();
  const auto lines = elf_differences("x", more, tiny());
  EXPECT_NE(std::find(lines.begin(), lines.end(), "x: section .extra is in the first build only"),
            lines.end());
  const auto turned = elf_differences("x", tiny(), more);
  EXPECT_NE(std::find(turned.begin(), turned.end(), "x: section .extra is in the second build only"),
            turned.end());
}

TEST(ElfDifferences, ComparesAnythingElseAsBytes) {
  EXPECT_EQ(elf_differences("x", "abc", "abd"), Lines{"x: differs from byte 0x2 on (3 and 3 bytes)"});
  EXPECT_TRUE(elf_differences("x", "abc", "abc").empty());
  const std::string whole = tiny();
  for (const std::size_t length : {4u, 63u, 64u, 100u, 1000u})
    EXPECT_FALSE(elf_differences("x", whole, whole.substr(0, length)).empty()) << length;
}

TEST(ModuleDifferences, NamesTheImageAndWhatIsInIt) {
  const std::string whole = module_of(cubin(), ptx("one"));
  EXPECT_TRUE(module_differences(whole, module_of(cubin(), ptx("one"))).empty());
  EXPECT_EQ(
      module_differences(whole, module_of(cubin(), ptx("two"))),
      Lines{"image fwd for compute_75: line 4 is \"one\" in the first build and \"two\" in the second"});
  std::string other = cubin();
  other[offset_of_init()] ^= 1;
  const auto lines = module_differences(whole, module_of(other, ptx("one")));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_TRUE(lines[0].starts_with("image fwd for sm_90: section .text ")) << lines[0];
}

TEST(ModuleDifferences, NamesTheLineOfTheManifest) {
  const auto lines =
      module_differences(module_of(cubin(), ptx("p"), "{\n1}\n"), module_of(cubin(), ptx("p"), "{\n2}\n"));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0], "the manifest: line 2 is \"1}\" in the first build and \"2}\" in the second");
}

}  // namespace
}  // namespace scankit::module
