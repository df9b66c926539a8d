// SPDX-License-Identifier: Apache-2.0
#include "doctor/elf/ld_cache.h"

#include <elf.h>

#include <algorithm>

#include "doctor/elf/test_library.h"

namespace scankit {
namespace {

// A cache of our own by the real ldconfig, so that the test does not depend on this machine's.
std::string make_cache(const test::Workshop& shop) {
  shop.shared("libs/libone.so.1", "int one(void) { return 1; }\n", {"-Wl,-soname,libone.so.1"});
  shop.shared("libs/glibc-hwcaps/x86-64-v3/libone.so.1", "int one(void) { return 3; }\n",
              {"-Wl,-soname,libone.so.1"});
  shop.write("ld.so.conf", shop.path("libs") + "\n");
  const auto run =
      run_process({.argv = {"/sbin/ldconfig", "-X", "-C", shop.path("cache"), "-f", shop.path("ld.so.conf")},
                   .environment = {},
                   .working_directory = {},
                   .standard_input = {}});
  EXPECT_TRUE(run && run->ok()) << (run ? run->err : run.error().message);
  return shop.read("cache");
}

#ifdef __x86_64__
TEST(LdCache, ChoosesByHwcapsAsTheLoaderDoes) {
  const test::Workshop shop;
  const LdCache cache = LdCache::parse(make_cache(shop), EM_X86_64);
  EXPECT_EQ(cache.note(), "");
  const std::string plain = shop.path("libs/libone.so.1"),
                    v3 = shop.path("libs/glibc-hwcaps/x86-64-v3/libone.so.1");
  EXPECT_EQ(cache.lookup("libone.so.1", {}), std::vector<std::string>{plain});
  EXPECT_EQ(cache.lookup("libone.so.1", {"x86-64-v2"}), std::vector<std::string>{plain});
  EXPECT_EQ(cache.lookup("libone.so.1", {"x86-64-v4", "x86-64-v3", "x86-64-v2"}),
            std::vector<std::string>{v3});
  EXPECT_TRUE(cache.lookup("libtwo.so", {}).empty());
}

TEST(LdCache, HoldsNothingForOtherMachines) {
  const test::Workshop shop;
  EXPECT_TRUE(LdCache::parse(make_cache(shop), EM_AARCH64).lookup("libone.so.1", {}).empty());
}
#endif

TEST(LdCache, SurvivesEveryTruncation) {
  const test::Workshop shop;
  const std::string whole = make_cache(shop);
  const std::size_t step =
      std::max<std::size_t>(1, whole.size() / 4000);  // the default folders are in it too
  for (std::size_t length = 0; length < whole.size(); length += step)
    (void)LdCache::parse(whole.substr(0, length), EM_X86_64).lookup("libone.so.1", {"x86-64-v3"});
}

TEST(LdCache, SurvivesHostileNumbers) {
  const test::Workshop shop;
  const std::string whole = make_cache(shop);
  for (std::size_t at = 20; at < std::min<std::size_t>(whole.size(), 400); at += 4) {
    std::string bad = whole;
    bad.replace(at, 4, "\xff\xff\xff\x7f");
    (void)LdCache::parse(bad, EM_X86_64).lookup("libone.so.1", {"x86-64-v3"});
  }
  EXPECT_FALSE(LdCache::parse("something else", EM_X86_64).note().empty());
}

}  // namespace
}  // namespace scankit
