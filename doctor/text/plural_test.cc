// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "doctor/text/catalogue.h"

namespace scankit {
namespace {

std::string forms(const std::string& rule, std::initializer_list<std::size_t> numbers) {
  std::string out;
  for (const std::size_t n : numbers) {
    const auto form = plural_form("Content-Type: text/plain\nPlural-Forms: " + rule + "\n", n);
    out += form ? std::to_string(*form) : "-";
  }
  return out;
}

// Rules of the gettext manual, "Plural forms".
TEST(PluralForm, FollowsTheRulesOfRealLanguages) {
  EXPECT_EQ(forms("nplurals=1; plural=0;", {0, 1, 2, 100}), "0000");
  EXPECT_EQ(forms("nplurals=2; plural=n != 1;", {0, 1, 2, 21}), "1011");
  EXPECT_EQ(forms("nplurals=2; plural=n>1;", {0, 1, 2}), "001");
  EXPECT_EQ(forms("nplurals=3; plural=n%10==1 && n%100!=11 ? 0 : "
                  "n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2;",
                  {1, 2, 5, 11, 12, 21, 22, 100}),
            "01222012");
  EXPECT_EQ(forms("nplurals=4; plural=n%100==1 ? 0 : n%100==2 ? 1 : n%100==3 || n%100==4 ? 2 : 3;",
                  {1, 2, 3, 4, 5, 101}),
            "012230");
  EXPECT_EQ(forms("nplurals=2; plural=!(n==1);", {0, 1}), "10");
}

TEST(PluralForm, AssumesTheCommonRuleWhereTheHeaderHasNone) {
  EXPECT_EQ(plural_form("Language: xx\n", 1), 0u);
  EXPECT_EQ(plural_form("", 2), 1u);
}

TEST(PluralForm, RefusesWhatItCannotRead) {
  for (const std::string& rule :
       {std::string("nplurals=2; plural=n/0;"), std::string("nplurals=2; plural=(n;"),
        std::string("nplurals=2; plural=7;"), std::string("nplurals=2; plural=n n;"),
        std::string("plural=0;"), std::string("nplurals=2; plural=;"), std::string("nplurals=2; plural=n?1;"),
        "nplurals=2; plural=" + std::string(100000, '(') + "n;",
        "nplurals=2; plural=" + std::string(100000, '!') + "n;"})
    EXPECT_EQ(forms(rule, {3}), "-") << rule.substr(0, 40);
}

}  // namespace
}  // namespace scankit
