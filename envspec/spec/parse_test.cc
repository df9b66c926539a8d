// SPDX-License-Identifier: Apache-2.0
// What strangers write into a spec.
#include <gtest/gtest.h>

#include <chrono>
#include <random>

#include "doctor/base/mutate_test.h"
#include "envspec/spec/spec.h"
#include "envspec/spec/yaml_tree.h"

namespace scankit {
namespace {

const std::string kGood = R"(schema: 1
driver: ">=580.65.06"
gpus: [sm_90, sm_100]
python:
  implementation: cpython
  version: "3.11.*"
torch: {version: ">=2.11,<2.12", cuda: "13.0", string_abi: new}
extensions:
  selective_scan_cuda:
    torch_abi: none
    code:
      - sm_90
      - compute_75
  torchvision._C:
)";

Spec parsed(const std::string& text) {
  auto spec = parse_spec(text, "s.yaml");
  EXPECT_TRUE(spec) << spec.error().message;
  return spec ? *spec : Spec();
}

// "message | hint"
std::string refused(const std::string& text) {
  const auto spec = parse_spec(text, "s.yaml");
  if (spec) return "taken";
  EXPECT_EQ(spec.error().message.find('\n'), std::string::npos) << spec.error().message;
  return spec.error().message + " | " + spec.error().hint;
}

void expect_refused(const std::string& text, const std::string& said) {
  EXPECT_NE(refused(text).find(said), std::string::npos) << text.substr(0, 200) << "\n" << refused(text);
}

TEST(Spec, HoldsWhatTheFileSays) {
  const Spec spec = parsed(kGood);
  EXPECT_EQ(spec.driver.text(), ">=580.65.06");
  EXPECT_EQ(spec.gpus, (std::vector<std::string>{"sm_90", "sm_100"}));
  EXPECT_EQ(spec.implementation, "cpython");
  EXPECT_TRUE(spec.torch.contains(std::string_view("2.11.1+cu130")).value_or(false));
  EXPECT_EQ(spec.string_abi, "new");
  ASSERT_EQ(spec.extensions.size(), 2U);
  EXPECT_EQ(spec.extensions[0].code, (std::vector<std::string>{"sm_90", "compute_75"}));
  EXPECT_EQ(spec.extensions[1].module, "torchvision._C");
  EXPECT_EQ(spec.line_of("torch.cuda"), 7U);
  EXPECT_EQ(spec.line_of("extensions.selective_scan_cuda.code"), 11U);
  EXPECT_EQ(spec.line_of("host_compiler"), 0U);
}

TEST(Spec, NamesAnUnknownKeyAndTheNearestKnownOne) {
  expect_refused("schema: 1\ntocrh:\n  version: \"2\"\n",
                 "s.yaml:2:1: unknown field \"tocrh\" | did you mean \"torch\"?");
  expect_refused("schema: 1\ntorch:\n  verison: \"2\"\n",
                 "s.yaml:3:3: unknown field \"torch.verison\" | did you mean \"version\"?");
  expect_refused("schema: 1\nextensions:\n  m:\n    archs: [sm_90]\n",
                 "s.yaml:4:5: unknown field \"extensions.m.archs\" | valid here: ");
  expect_refused("schema: 1\nrun: rm -rf /\n", "unknown field \"run\"");
  expect_refused("schema: 1\n<<: {driver: \"1\"}\n", "unknown field \"<<\"");
}

TEST(Spec, SaysWhereATypeIsWrong) {
  expect_refused("schema: 1\ntorch: 2\n", "s.yaml:2:8: torch: expected keys with values");
  expect_refused("schema: 1\ndriver: [580]\n", "s.yaml:2:9: driver: expected one value such as");
  expect_refused("schema: 1\ngpus: sm_90\n", "s.yaml:2:7: gpus: expected a list");
  expect_refused("schema: 1\ngpus: [sm_90, 9.0]\n", "s.yaml:2:15: gpus: 9.0 is a number");
  expect_refused("schema: 1\ngpus: [hopper]\n", "\"hopper\" is not a GPU");
  expect_refused("schema: 1\ngpus: [sm_90a]\n", "\"sm_90a\" is not a GPU");
  expect_refused("schema: 1\ngpus: [sm_90, sm_90]\n", "twice");
  expect_refused(
      "schema: 1\npython:\n  version: 3.10\n",
      "s.yaml:3:12: python.version: 3.10 is a number, which YAML may shorten by a zero; write \"3.10\"");
  expect_refused("schema: 1\npython:\n  version:\n", "python.version: expected a value such as \"3.11.*\"");
  expect_refused("schema: 1\npython:\n  version: newest\n",
                 "python.version: \"newest\" is not a version range");
  expect_refused("schema: 1\ntorch:\n  string_abi: cxx11\n", "\"cxx11\" is not one of: new, old");
  expect_refused("schema: 1\ntorch:\n  string_abi: true\n", "true is true or false");
  expect_refused("schema: 1\nextensions: [m]\n", "extensions: expected names of modules");
  expect_refused("schema: 1\nextensions:\n  ../m: {}\n", "the name by which Python imports");
  expect_refused("schema: 1\nextensions:\n  m:\n    distribution: ../../etc/passwd\n",
                 "is not a name such as");
  expect_refused("- schema: 1\n", "s.yaml:1:1: expected keys with values");
  expect_refused("just text", "expected keys with values");
}

TEST(Spec, RefusesDoubles) {
  expect_refused("schema: 1\ndriver: \"1\"\ndriver: \"2\"\n",
                 "s.yaml:3:1: \"driver\" occurs a second time; the first is on line 2");
  expect_refused("schema: 1\ntorch: {version: \"1\", version: \"2\"}\n", "a second time");
  expect_refused("schema: 1\n---\nschema: 1\n", "more than one document");
}

TEST(Spec, SaysWhatIsNoYaml) {
  expect_refused("schema: 1\ndriver: >=580\n", "s.yaml:2:");
  expect_refused("schema: 1\ndriver: >=580\n", "need quotes");
  expect_refused("schema: [1\n", "this is not YAML:");
  expect_refused("", "empty");
  expect_refused("# nothing\n", "empty");
  expect_refused(std::string("schema: 1\nx: \xff\xfe\n"), "s.yaml:2:4: this is not UTF-8");
  expect_refused(std::string("schema: 1\n\x1b[31m\n"), "s.yaml:2:1: this is a control byte");
  expect_refused(std::string("\xff\xfes\0c\0", 6), "this is not UTF-8");
  EXPECT_NE(refused("\xEF\xBB\xBFschema: 1\n"), "");  // a byte order mark is Windows' way of saying UTF-8
  EXPECT_EQ(refused("\xEF\xBB\xBFschema: 1\n"), "taken");
}

TEST(Spec, KnowsItsSchema) {
  expect_refused("driver: \"1\"\n", "does not say which schema it has | write \"schema: 1\"");
  expect_refused("schema: 2\nfuture: {}\n",
                 "s.yaml:1:9: this is schema 2, and this scankit supports up to 1 | use a newer scankit");
  EXPECT_EQ(parse_spec("schema: 2\n", "s").error().code, Errc::Unsupported);
  expect_refused("schema: one\n", "expected a whole number");
  expect_refused("schema: \"1\"\n", "expected a whole number");
  expect_refused("schema: -1\n", "expected a whole number");
  expect_refused("schema: 99999999999999999999\n", "expected a whole number");
}

TEST(Spec, RefusesBombsQuickly) {
  std::string laughs = "a: &a [x,x,x,x,x,x,x,x,x]\n";
  for (char c = 'b'; c < 'k'; ++c) {
    laughs += std::string(1, c) + ": &" + c + " [";
    for (int i = 0; i < 9; ++i) laughs += std::string(i == 0 ? "*" : ",*") + static_cast<char>(c - 1);
    laughs += "]\n";
  }
  const auto repeated = [](const std::string& text, std::size_t n) {
    std::string out;
    while (n-- > 0) out += text;
    return out;
  };
  std::string keys = "schema: 1\n";
  for (int i = 0; keys.size() < kYamlBytes - 20; ++i) keys += "k" + std::to_string(i) + ": 1\n";
  std::string million = keys;
  while (million.size() < (16u << 20)) million += keys;
  const auto start = std::chrono::steady_clock::now();
  expect_refused(laughs, "anchors (&name) are not supported");
  expect_refused("schema: 1\ndriver: *x\n", "s.yaml:2:");
  expect_refused("schema: !!python/object/apply:os.system [ls]\n", "tags (!name) are not supported");
  expect_refused(keys, "more than 10000 values");
  expect_refused(million, "is longer than 256 KiB");
  const std::size_t most = kYamlBytes - 64;
  for (const char* deep :
       {"[", "{", "- ", "? ", "a: {", "[[", "{a: ", "!a [", "&a ", "\t[", "-\n ", "\"", "'", "%", "|", "#"})
    EXPECT_NE(refused("schema: 1\nx: " + repeated(deep, most / std::string(deep).size())), "taken") << deep;
  for (const char* deep : {"[", "- ", "? ", "a:\n", "%TAG ! x\n", "--- "})
    EXPECT_NE(refused(repeated(deep, most / std::string(deep).size())), "taken") << deep;
  std::string stairs;
  for (std::size_t i = 0; stairs.size() < most / 2; ++i) stairs += std::string(i, ' ') + "a:\n";
  expect_refused(stairs, "nested more than 8 deep");
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  EXPECT_LT(took.count(), 5.0);  // of all forty together; they take tenths
}

// Any change of a good file is taken or refused in one line, and nothing else happens.
TEST(Spec, SurvivesMutations) {
  std::mt19937 random(8);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same files in every run
  std::size_t taken = 0;
  for (int round = 0; round < 4000; ++round) {
    const std::string text = test::mutated(kGood, random);
    if (refused(text) == "taken") ++taken;
  }
  EXPECT_GT(taken, 0U);
  EXPECT_LT(taken, 4000U);
}

}  // namespace
}  // namespace scankit
