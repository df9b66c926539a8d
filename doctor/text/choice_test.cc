// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>

#include "doctor/text/catalogue.h"

namespace scankit {
namespace {

using Set = std::map<std::string, std::string>;
Variables variables(const Set& set) {
  return [set](std::string_view name) {
    const auto found = set.find(std::string(name));
    return found == set.end() ? std::nullopt : std::optional(found->second);
  };
}
using Names = std::vector<std::string>;

// gettext manual, "Locale Environment Variables" and "The LANGUAGE variable".
TEST(WantedLanguages, FollowTheVariablesInGettextsOrder) {
  EXPECT_EQ(wanted_languages(variables({})), Names());
  EXPECT_EQ(wanted_languages(variables({{"LANG", "de_AT.UTF-8"}})), (Names{"de_AT", "de"}));
  EXPECT_EQ(wanted_languages(variables({{"LANG", "de_AT.utf8@euro"}})),
            (Names{"de_AT@euro", "de_AT", "de@euro", "de"}));
  EXPECT_EQ(wanted_languages(variables({{"LANG", "de_DE.UTF-8"}, {"LC_MESSAGES", "fr_FR.UTF-8"}})),
            (Names{"fr_FR", "fr"}));
  EXPECT_EQ(wanted_languages(variables({{"LC_MESSAGES", "fr_FR.UTF-8"}, {"LC_ALL", "it_IT.UTF-8"}})),
            (Names{"it_IT", "it"}));
  EXPECT_EQ(wanted_languages(variables({{"LC_ALL", ""}, {"LANG", "it_IT.UTF-8"}})), (Names{"it_IT", "it"}));
  EXPECT_EQ(wanted_languages(variables({{"LANG", "de_DE.UTF-8"}, {"LANGUAGE", "sv:pt_BR::sv"}})),
            (Names{"sv", "pt_BR", "pt"}));
}

TEST(WantedLanguages, AreEnglishInTheCLocaleAndWhereTheTextCouldNotBeShown) {
  for (const char* locale : {"C", "POSIX", "C.UTF-8", "de_DE", "de_DE.ISO-8859-1", ""})
    EXPECT_EQ(wanted_languages(variables({{"LANG", locale}, {"LANGUAGE", "de"}})), Names()) << locale;
  EXPECT_EQ(wanted_languages(variables({{"LANG", "en_US.UTF-8"}})), Names());
  EXPECT_EQ(wanted_languages(variables({{"LANG", "de_DE.UTF-8"}, {"LANGUAGE", "en:de"}})), Names());
  EXPECT_EQ(wanted_languages(variables({{"LANG", "de_DE.UTF-8"}, {"LANGUAGE", "sv:en:de"}})), Names{"sv"});
}

TEST(ChooseLanguage, RefusesAWishThatItCannotMeetAndSaysWhichItCan) {
  const auto refused = choose_language("tlh", variables({}));
  ASSERT_FALSE(refused);
  EXPECT_NE(english(refused.error().message).find("tlh"), std::string::npos);
  EXPECT_NE(english(refused.error().hint).find("en"), std::string::npos);
  EXPECT_FALSE(choose_language("/nonexistent/x.mo", variables({})));
  for (const char* english : {"en", "en_GB", "C"}) {
    const auto chosen = choose_language(english, variables({{"LANG", "de_DE.UTF-8"}}));
    ASSERT_TRUE(chosen);
    EXPECT_EQ(*chosen, nullptr);
  }
  const auto untranslated = choose_language("", variables({{"LANG", "tlh_QO.UTF-8"}}));
  ASSERT_TRUE(untranslated);
  EXPECT_EQ(*untranslated, nullptr);
}

TEST(ChooseLanguage, IsEnglishWhereTheTerminalHasAnotherCodeset) {
  EXPECT_EQ(locale_in_the_way("zh_CN", variables({{"LANG", "zh_CN.GBK"}})), "zh_CN.GBK");
  EXPECT_EQ(locale_in_the_way("zh_CN", variables({{"LC_CTYPE", "zh_CN.UTF-8"}, {"LANG", "zh_CN.GBK"}})), "");
  EXPECT_EQ(locale_in_the_way("zh_CN", variables({{"LANG", "C"}})), "");
  EXPECT_EQ(locale_in_the_way("zh_CN", variables({})), "");
  EXPECT_EQ(locale_in_the_way("en", variables({{"LANG", "zh_CN.GBK"}})), "");
  EXPECT_EQ(locale_in_the_way("", variables({{"LANG", "zh_CN.GBK"}})), "");
  const auto chosen = choose_language("tlh", variables({{"LANG", "zh_CN.GBK"}}));
  ASSERT_TRUE(chosen);
  EXPECT_EQ(*chosen, nullptr);
}

TEST(LanguageOption, IsTakenOutWhereverItStands) {
  Names words = {"doctor", "--lang", "de", "--json", "--lang=fr", "--", "--lang", "it"};
  EXPECT_EQ(take_language_option(words), "fr");
  EXPECT_EQ(words, (Names{"doctor", "--json", "--", "--lang", "it"}));
  words = {"--lang"};
  EXPECT_EQ(take_language_option(words), "");
  EXPECT_EQ(words, Names{"--lang"});
}

}  // namespace
}  // namespace scankit
