// SPDX-License-Identifier: Apache-2.0
#include "doctor/elf/symbols.h"

#include <algorithm>

#include "doctor/elf/library.h"
#include "doctor/elf/library_test.h"

namespace scankit::elf {
namespace {

using test::Workshop;

SymbolQuery with_version(std::string_view name, std::string_view version) {
  SymbolQuery query(name);
  query.version = version;
  return query;
}

std::string many_functions(int count) {
  std::string source;
  for (int i = 0; i < count; ++i) source += "int function_" + std::to_string(i) + "(void) { return 1; }\n";
  return source;
}

class SymbolHash : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Styles, SymbolHash, testing::Values("gnu", "sysv", "both"));

TEST_P(SymbolHash, FindsEveryExportAndNothingElse) {
  const Workshop shop;
  const auto host = make_real_host();
  const auto library =
      open_library(*host, shop.shared("many.so", many_functions(700) + "static int hidden_one;\n",
                                      {"-nostdlib", std::string("-Wl,--hash-style=") + GetParam()}));
  ASSERT_TRUE(library) << english(library.error().message);
  const Symbols& symbols = (*library)->symbols;
  for (int i = 0; i < 700; ++i)
    EXPECT_TRUE(symbols.exports(SymbolQuery("function_" + std::to_string(i)))) << i;
  for (int i = 700; i < 1400; ++i)
    EXPECT_FALSE(symbols.exports(SymbolQuery("function_" + std::to_string(i)))) << i;
  EXPECT_FALSE(symbols.exports(SymbolQuery("hidden_one")));
  EXPECT_EQ(symbols.exported_with_prefix({"function_69"}, 100).size(), 11u);  // 69, 690 to 699
}

TEST(Symbols, ListsUndefinedNamesOfALibraryThatExportsNothing) {
  const Workshop shop;
  const auto host = make_real_host();
  const auto library = open_library(
      *host,
      shop.shared("import.so",
                  "extern int a(void), b(void) __attribute__((weak));\n"
                  "__attribute__((visibility(\"hidden\"))) int use(void) { return a() + (b ? b() : 0); }\n"
                  "static void* keep[] __attribute__((used)) = {(void*)use};\n",
                  {"-nostdlib", "-Wl,--hash-style=gnu"}));
  ASSERT_TRUE(library) << english(library.error().message);
  auto undefined = (*library)->symbols.undefined();
  ASSERT_TRUE(undefined);
  std::ranges::sort(*undefined, {}, &UndefinedSymbol::name);
  ASSERT_EQ(undefined->size(), 2u);
  EXPECT_EQ(undefined->at(0).name, "a");
  EXPECT_FALSE(undefined->at(0).weak);
  EXPECT_EQ(undefined->at(1).name, "b");
  EXPECT_TRUE(undefined->at(1).weak);
}

// What a damaged disk or a copy that skipped a block leaves: the tables stand where they did, and hold zeros.
TEST(Symbols, OfOverwrittenTablesAreNoSymbols) {
  const Workshop shop;
  const auto host = make_real_host();
  shop.shared("whole.so",
              "extern int wanted_elsewhere(void);\nint use(void) { return wanted_elsewhere(); }\n");
  const auto undefined_of = [&](const std::string& bytes) {
    const auto library = open_library(*host, shop.write("damaged.so", bytes));
    EXPECT_TRUE(library) << english(library.error().message);
    return (*library)->symbols.undefined();
  };
  const std::string whole = shop.read("whole.so");
  const auto name = whole.find("wanted_elsewhere");  // .dynstr stands before every other string table
  ASSERT_NE(name, std::string::npos);
  ASSERT_TRUE(undefined_of(whole));

  std::string zeroed = whole;
  zeroed.replace(name, 16, std::string(16, '\0'));
  const auto no_name = undefined_of(zeroed);
  ASSERT_FALSE(no_name);
  EXPECT_EQ(no_name.error().code, Errc::Malformed);
  EXPECT_NE(english(no_name.error().message).find("string table"), std::string::npos)
      << english(no_name.error().message);

  std::string noise = whole;
  noise[name + 3] = '\x01';
  EXPECT_FALSE(undefined_of(noise));

  const auto library = open_library(*host, shop.path("whole.so"));
  ASSERT_TRUE(library);
  const std::uint64_t table = (*library)->dynamic.symbols;  // the first segment begins with the file
  std::string blank = whole;
  blank.replace(table + 24, 24, std::string(24, '\0'));
  const auto no_entry = undefined_of(blank);
  ASSERT_FALSE(no_entry);
  EXPECT_NE(english(no_entry.error().message).find("blank"), std::string::npos)
      << english(no_entry.error().message);
}

// The rules of glibc's do_lookup_x, one line each.
TEST(Symbols, VersionsDecideAsInTheLoader) {
  const Workshop shop;
  const auto host = make_real_host();
  const std::string map = shop.write(
      "v.map",
      "V_1 { global: plain; both; }; V_2 { global: both; newer; } V_1; V_3 { global: newest; } V_2;");
  const auto library = open_library(
      *host,
      shop.shared("libv.so.1",
                  "__asm__(\".symver both_old, both@V_1\\n.symver both_new, both@@V_2\");\n"
                  "int plain(void){return 1;} int both_old(void){return 1;} int both_new(void){return 2;}\n"
                  "int newer(void){return 2;} int newest(void){return 3;}\n",
                  {"-nostdlib", "-Wl,-soname,libv.so.1", "-Wl,--version-script=" + map}));
  ASSERT_TRUE(library) << english(library.error().message);
  const Symbols& symbols = (*library)->symbols;
  EXPECT_TRUE(symbols.exports(with_version("plain", "V_1")));
  EXPECT_FALSE(symbols.exports(with_version("plain", "V_2")));
  EXPECT_TRUE(symbols.exports(with_version("both", "V_1")));
  EXPECT_TRUE(symbols.exports(with_version("both", "V_2")));
  EXPECT_FALSE(symbols.exports(with_version("both", "V_3")));
  EXPECT_TRUE(symbols.exports(SymbolQuery("plain")));   // the oldest version serves unversioned references
  EXPECT_TRUE(symbols.exports(SymbolQuery("newest")));  // the only default version does too
  EXPECT_TRUE(symbols.versions().defines("V_2"));
  EXPECT_FALSE(symbols.versions().defines("libv.so.1"));  // the base definition is no version
  EXPECT_EQ(newest_defined_version(*host, shop.path("libv.so.1"), "V_").value(), "3");
}

TEST(Symbols, ReferencesCarryTheVersionTheyWereLinkedWith) {
  const Workshop shop;
  const auto host = make_real_host();
  const auto library =
      open_library(*host, shop.shared("user.so", "#include <stdlib.h>\nint use(void) { return rand(); }\n"));
  ASSERT_TRUE(library) << english(library.error().message);
  const auto undefined = (*library)->symbols.undefined();
  ASSERT_TRUE(undefined);
  const auto rand = std::ranges::find(*undefined, "rand", &UndefinedSymbol::name);
  ASSERT_NE(rand, undefined->end());
  EXPECT_TRUE(rand->version.starts_with("GLIBC_")) << rand->version;
  EXPECT_EQ(rand->version_file, "libc.so.6");
}

TEST(LibraryFacts, ReadsNamesAndBuildId) {
  const Workshop shop;
  const auto host = make_real_host();
  shop.shared("libdep.so.7", "int dep(void) { return 1; }\n", {"-nostdlib", "-Wl,-soname,libdep.so.7"});
  const std::string path = shop.shared(
      "libfacts.so", "extern int dep(void); int facts(void) { return dep(); }\n",
      {"-nostdlib", "-Wl,-soname,libfacts.so.2", "-Wl,--build-id=0x0123abcd", shop.path("libdep.so.7")});
  const auto facts = read_library_facts(*host, path);
  ASSERT_TRUE(facts) << english(facts.error().message);
  EXPECT_EQ(facts->soname, "libfacts.so.2");
  EXPECT_EQ(facts->build_id, "0123abcd");
  EXPECT_EQ(facts->needed, std::vector<std::string>{"libdep.so.7"});
}

TEST(LibraryFacts, TellsTheStringAbiFromErrorsConstructors) {
  const Workshop shop;
  const auto host = make_real_host();
  const std::string source =
      "#include <string>\nnamespace c10 { struct SourceLocation { int x; };\n"
      "struct Error { Error(SourceLocation, std::string); }; Error::Error(SourceLocation, std::string) {} "
      "}\n";
  Message reason;
  for (const auto& [flag, abi] : {std::pair{"0", "old"}, std::pair{"1", "new"}}) {
    const std::string path = shop.shared(std::string("libc10-") + flag + ".so", source,
                                         {std::string("-D_GLIBCXX_USE_CXX11_ABI=") + flag}, "c++");
    EXPECT_EQ(string_abi_of_torch(*host, path, reason), abi);
    EXPECT_NE(english(reason).find("_ZN3c105ErrorC"), std::string::npos) << reason;
  }
  EXPECT_EQ(string_abi_of_torch(*host, shop.path("absent.so"), reason), "unknown");
  EXPECT_EQ(string_abi_of_torch(*host, shop.shared("other.so", "int x;\n"), reason), "unknown");
}

}  // namespace
}  // namespace scankit::elf
