// SPDX-License-Identifier: Apache-2.0
#include "doctor/text/catalogue.h"

#include <gtest/gtest.h>

#include "doctor/base/files.h"

namespace scankit {
namespace {

Variables environment(const std::string& locale) {
  return [locale](std::string_view name) { return name == "LANG" ? std::optional(locale) : std::nullopt; };
}

class Translated : public ::testing::Test {
 protected:
  std::unique_ptr<Language> language_ = compiled_language("pl");
};

TEST_F(Translated, IsCompiledIntoThisTest) {
  EXPECT_EQ(compiled_languages(), std::vector<std::string>{"pl"});
  ASSERT_NE(language_, nullptr);
  EXPECT_EQ(language_->code(), "pl");
  for (const char* locale : {"pl_PL.UTF-8", "pl.UTF-8"}) {
    const auto chosen = choose_language("", environment(locale));
    ASSERT_TRUE(chosen);
    EXPECT_NE(*chosen, nullptr) << locale;
  }
  EXPECT_TRUE(choose_language("pl_PL", environment("C")));
}

TEST_F(Translated, SaysWholeSentencesInItsOwnOrder) {
  EXPECT_EQ(say("{} needs {}", "a", "b"), "a needs b");
  const Speaking speaking(language_.get());
  EXPECT_EQ(say("{} needs {}", "a", "b"), "biblioteki b wymaga plik a");
  EXPECT_EQ(said("a table's text"), "tekst z tabeli");
  EXPECT_EQ(said("{NAME} is not installed"), "brak pakietu {NAME}");
  {
    const Speaking english(nullptr);
    EXPECT_EQ(said("a table's text"), "a table's text");
  }
  EXPECT_EQ(said("a table's text"), "tekst z tabeli");
}

TEST_F(Translated, PicksTheFormForTheNumber) {
  const auto names = [](std::size_t n) { return say_n(n, "{} name of {}", "{} names of {}", n, "x"); };
  EXPECT_EQ(names(1) + "|" + names(2), "1 name of x|2 names of x");
  const Speaking speaking(language_.get());
  EXPECT_EQ(names(1), "1 nazwa z x");
  EXPECT_EQ(names(2), "z x: 2 nazwy");
  EXPECT_EQ(names(7), "7 nazw z x");
}

TEST_F(Translated, SaysInEnglishWhatIsNotTranslatedOrTranslatedBadly) {
  const Speaking speaking(language_.get());
  EXPECT_EQ(say("{} has no translation", 1), "1 has no translation");
  EXPECT_EQ(say_n(2, "{} thing", "{} things", 2), "2 things");
  EXPECT_EQ(say("{} lacks {}", "a", "b"), "a lacks b");  // a place is lost
  EXPECT_EQ(say("{} is {}", "a", "b"), "a is b");        // a brace is open
  EXPECT_EQ(said("{OTHER} is not installed"), "{OTHER} is not installed");
  EXPECT_EQ(said(""), "");
}

TEST_F(Translated, IsCheckedForItsPlaces) {
  const auto bytes = read_whole_file(SCANKIT_BINARY_DIR "/doctor/text/scankit_text_of_pl.languages/pl.mo");
  ASSERT_TRUE(bytes);
  EXPECT_EQ(*misplaced_sentences(*bytes, "pl"),
            (std::vector<std::string>{"{OTHER} is not installed", "{} is {}", "{} lacks {}"}));
  EXPECT_FALSE(misplaced_sentences("", "xx"));
}

TEST(SamePlaces, CompareWhatStandsInTheBraces) {
  EXPECT_TRUE(same_places("{} a {}", "{1} b {0}"));
  EXPECT_TRUE(same_places("{:.1f} s", "{0:.1f} Sek."));
  EXPECT_TRUE(same_places("no {{braces}}", "keine {{Klammern}}"));
  EXPECT_FALSE(same_places("{} a {}", "{} b"));
  EXPECT_FALSE(same_places("{} a {}", "{0} b {}"));
  EXPECT_FALSE(same_places("{} a", "{} b {}"));
  EXPECT_FALSE(same_places("{} a", "{} } b"));
  EXPECT_FALSE(same_places("{} a", "{:x} b"));
  EXPECT_FALSE(same_places("a", "{"));
}

// The smallest catalogue that there is, to be broken in every place.
std::string small_catalogue() {
  const std::string key = "k", value = "v";
  std::string bytes;
  const auto word = [&](std::uint32_t n) {
    for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(n >> shift);
  };
  for (const std::uint32_t n : {0x950412deu, 0u, 1u, 28u, 36u, 0u, 44u}) word(n);
  for (const std::uint32_t n : {1u, 44u, 1u, 46u}) word(n);
  return bytes + key + std::string(1, '\0') + value + std::string(1, '\0');
}

TEST(Catalogue, OfBrokenBytesIsAnErrorInOneLine) {
  const std::string whole = small_catalogue();
  ASSERT_TRUE(read_catalogue(whole, "x.mo"));
  EXPECT_EQ((*read_catalogue(whole, "x.mo"))->sentence("k"), "v");
  for (std::size_t size = 0; size < whole.size() - 1; ++size)
    EXPECT_FALSE(read_catalogue(whole.substr(0, size), "x.mo")) << size;
  for (std::size_t at = 0; at < 44; ++at)
    for (const char bad : {'\x7f', '\xff', '\x01'}) {
      std::string broken = whole;
      broken[at] = bad;
      const auto read = read_catalogue(broken, "x.mo");  // never crashes
      if (read)
        (void)(*read)->sentence("k");
      else
        EXPECT_EQ(english(read.error().message).find("x.mo"), 0u) << at;
    }
  EXPECT_FALSE(read_catalogue(std::string(1000, '<'), "x.mo"));
}

}  // namespace
}  // namespace scankit
