// SPDX-License-Identifier: Apache-2.0
#include "doctor/base/message.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace scankit {
namespace {
using Json = nlohmann::json;

// German, with the words in another order than in English.
class German : public Language {
 public:
  std::optional<std::string_view> sentence(std::string_view english) const override {
    if (english == "{} needs {}") return "{1} wird von {0} gebraucht";
    if (english == "not found") return "nicht gefunden";
    if (english == "{file} is empty") return "{file} ist leer";
    return std::nullopt;
  }
  std::optional<std::string_view> counted(std::string_view, std::size_t n) const override {
    return n == 1 ? "{} Name" : "{} Namen";
  }
  std::string_view code() const override { return "de"; }
};

TEST(Message, IsPutIntoWordsWhereItIsShown) {
  const Message fact = message("{} needs {}", std::string("a.so"), message("not found"));
  const Message names = message_n(2, "{} name", "{} names", 2u);
  const German german;
  const Speaking speaking(&german);
  EXPECT_EQ(fact.tr(), "nicht gefunden wird von a.so gebraucht");
  EXPECT_EQ(fact.english(), "a.so needs not found");
  EXPECT_EQ(names.tr(), "2 Namen");
  EXPECT_EQ(names.english(), "2 names");
  EXPECT_EQ(say("{}: {}", "x", message("not found")), "x: nicht gefunden");
}

TEST(Message, IsTheSameFactInEveryLanguage) {
  const auto make = [] {
    return Json(message("{} needs {}", "a.so", message_n(1, "{} name", "{} names", 1)));
  };
  const Json english = make();
  const German german;
  const Speaking speaking(&german);
  EXPECT_EQ(make().dump(), english.dump());
  EXPECT_EQ(english.dump(),
            R"({"arguments":["a.so",{"arguments":[1],"message":"{} name","n":1,"plural":"{} names"}],)"
            R"("message":"{} needs {}"})");
}

TEST(Message, ComesBackFromJsonUnchanged) {
  for (const Message& one :
       {Message(), Message("text of {another} program"), message("{:.1f} s, {}", 1.25, -3),
        message_n(3, "{} name of {}", "{} names of {}", 3u, "x"), message("{}", message("not found")),
        Message("{file} is empty", "", 0, {{"file", std::string("a.so")}})})
    EXPECT_EQ(Json::parse(Json(one).dump()).get<Message>(), one) << one;
  EXPECT_EQ(Message("{file} is empty", "", 0, {{"file", std::string("a.so")}}).english(), "a.so is empty");
}

TEST(Message, OfAStrangersFileCostsNothingAndThrowsNothing) {
  for (const char* text :
       {R"({"message": "{:999999999}", "arguments": ["x"]})", R"({"message": "{} {}", "arguments": ["x"]})",
        R"({"message": "{:{}}", "arguments": ["x", 999999999]})", R"({"message": "{", "arguments": []})",
        R"({"message": "{:d}", "arguments": ["x"]})", R"({"message": "}", "arguments": ["x"]})"})
    EXPECT_EQ(Json::parse(text).get<Message>().english(), Json::parse(text)["message"]) << text;
}

// Three messages of a thousand places each are 10 kB of JSON, and would be a thousand million texts.
TEST(Message, OfAStrangersFileDoesNotMultiply) {
  std::string repeated;
  for (int i = 0; i < 1000; ++i) repeated += "{0}";
  Json json = "text";
  for (int level = 0; level < 3; ++level) json = {{"message", repeated}, {"arguments", Json::array({json})}};
  EXPECT_LT(json.get<Message>().english().size(), 17u << 20);
}

TEST(Message, OfClausesLeavesOutEmptyOnes) {
  EXPECT_EQ(clauses_of({Message(), message("not found"), "a"}).english(), "not found; a");
  EXPECT_TRUE(clauses_of({}).empty());
}

}  // namespace
}  // namespace scankit
