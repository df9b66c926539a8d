// SPDX-License-Identifier: Apache-2.0
#include "envspec/spec/spec.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <random>
#include <regex>

#include "doctor/base/files.h"
#include "doctor/base/mutate_test.h"
#include "envspec/spec/derive.h"
#include "envspec/spec/fields.h"

namespace scankit::envspec {
namespace {

EnvironmentFacts some_facts() {
  EnvironmentFacts facts;
  facts.driver = Probed<std::string>::absent("no driver");
  facts.gpus = Probed<std::vector<std::string>>::of({"sm_90"});
  facts.python = Probed<std::string>::of("3.11.7");
  facts.implementation = Probed<std::string>::of("cpython");
  facts.torch = Probed<std::string>::of("2.11.0+cu130");
  facts.cuda = Probed<std::string>::of("13.0");
  facts.string_abi = Probed<std::string>::of("new");
  facts.compilers = Probed<std::vector<Compiler>>::of({{"/usr/bin/g++", "gcc", "12.2.0"}});
  ExtensionFacts ours;
  ours.module = "selective_scan_cuda";
  ours.file_state = "elf";
  ours.distribution = "scankit-selective-scan-cuda";
  ours.version = "0.1.0";
  ours.torch_abi = "none";
  ours.python_tag = "abi3";
  ours.code = {"sm_90", "compute_90"};
  ExtensionFacts upstream;
  upstream.module = "causal_conv1d_cuda";
  upstream.file_state = "elf";
  upstream.distribution = "bad name\n  evil: 1";
  upstream.torch_abi = "full";
  upstream.torch_min = "2.10";
  upstream.torch_max = "2.11";
  upstream.string_abi = "new";
  upstream.cuda_major = "13";
  facts.extensions = Probed<std::vector<ExtensionFacts>>::of({ours, upstream});
  return facts;
}

std::string written(const EnvironmentFacts& facts) {
  const DerivedSpec derived = derive_spec(facts);
  return spec_to_yaml(derived.spec, derived.notes, "scankit.schema.json");
}

// The resolver must never be asked for the name of scankit's package: an index does not have it, or has
// somebody else's.
TEST(DerivedSpec, SaysThatAModuleIsScankitsOwn) {
  const DerivedSpec derived = derive_spec(some_facts());
  EXPECT_EQ(derived.spec.extensions[0].from, "scankit");
  EXPECT_EQ(derived.spec.extensions[1].from, "");
  EXPECT_NE(written(some_facts()).find("\n    from: scankit"), std::string::npos) << written(some_facts());
}

TEST(DerivedSpec, IsReadBackAsItWasWritten) {
  const DerivedSpec derived = derive_spec(some_facts());
  const std::string text = spec_to_yaml(derived.spec, derived.notes, "scankit.schema.json");
  const auto back = parse_spec(text, "s.yaml");
  ASSERT_TRUE(back) << english(back.error().message) << "\n" << text;
  EXPECT_EQ(spec_to_yaml(*back, derived.notes, "scankit.schema.json"), text);
  EXPECT_EQ(back->driver.text(), ">=580.65.06");
  EXPECT_EQ(back->torch.text(), "2.11.*");
  ASSERT_EQ(back->extensions.size(), 2U);
  EXPECT_EQ(back->extensions[0].code, (std::vector<std::string>{"sm_90", "compute_90"}));
  EXPECT_EQ(back->extensions[1].torch.text(), ">=2.10,<=2.11");
  EXPECT_EQ(back->extensions[1].distribution, "");
}

TEST(DerivedSpec, HasACommentForEveryLine) {
  const std::string text = written(some_facts());
  EXPECT_TRUE(text.starts_with("# yaml-language-server: $schema=scankit.schema.json\n")) << text;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    const bool opens = line.ends_with(":");  // a group, whose lines say it
    EXPECT_TRUE(line.empty() || opens || line.find("# ") != std::string::npos) << line;
  }
}

TEST(DerivedSpec, SaysWhyAFieldIsLeftOut) {
  EnvironmentFacts facts = some_facts();
  facts.gpus = Probed<std::vector<std::string>>::absent("no GPU found");
  facts.torch = Probed<std::string>::absent("no torch");
  facts.cuda = facts.string_abi = facts.torch;
  facts.compilers = Probed<std::vector<Compiler>>::absent("");
  const std::string text = written(facts);
  EXPECT_NE(text.find("# gpus: [sm_90]"), std::string::npos) << text;
  EXPECT_NE(text.find("no GPU found, so give them yourself"), std::string::npos) << text;
  EXPECT_NE(text.find("# torch:\n#   version: \"2.11.*\""), std::string::npos) << text;
  const auto back = parse_spec(text, "s.yaml");
  ASSERT_TRUE(back) << english(back.error().message) << "\n" << text;
  EXPECT_TRUE(back->gpus.empty());
  EXPECT_TRUE(back->torch.empty());
}

// What the parser takes and refuses as a range is in range_test.cc, with the pattern beside it.
template <class Owner>
void expect_example(const Field<Owner>& field) {
  const std::string pattern(form_pattern(field.form));
  if (pattern.empty()) return;
  EXPECT_TRUE(std::regex_match(std::string(field.example), std::regex(pattern))) << field.path;
  for (const char* bad : {"", "a b", "../x"})
    EXPECT_FALSE(std::regex_match(bad, std::regex(pattern))) << field.path << " takes " << bad;
}

TEST(SpecFields, HaveExamplesThatTheSchemasPatternsTake) {
  for (const auto& field : spec_fields()) expect_example(field);
  for (const auto& field : extension_fields()) expect_example(field);
  const std::regex gpu{std::string(form_pattern(FieldForm::Gpus))};
  for (const char* bad : {"sm_9", "sm_090", "sm_90a", "compute_90"})
    EXPECT_FALSE(std::regex_match(bad, gpu)) << bad;
}

// What the repository and the README hold is what the table says. SCANKIT_UPDATE_GOLDEN=1 writes them.
TEST(SpecFields, AreWhatThePublishedSchemaAndTheReadmeSay) {
  const std::string folder = SCANKIT_SOURCE_DIR "/envspec/";
  if (std::getenv("SCANKIT_UPDATE_GOLDEN") != nullptr) {
    ASSERT_TRUE(write_file_atomically(folder + "schema/spec-1.json", spec_schema()));
  }
  EXPECT_EQ(read_whole_file(folder + "schema/spec-1.json").value_or(""), spec_schema());
  EXPECT_NE(read_whole_file(folder + "README.md").value_or("").find(spec_fields_markdown()),
            std::string::npos)
      << "envspec/README.md should hold\n"
      << spec_fields_markdown();
  const auto schema = nlohmann::json::parse(spec_schema());
  EXPECT_EQ(schema["properties"]["torch"]["properties"]["string_abi"]["enum"],
            nlohmann::json({"new", "old"}));
}

}  // namespace

// What strangers write into a spec.

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
  EXPECT_TRUE(spec) << english(spec.error().message);
  return spec ? *spec : Spec();
}

// "message | hint"
std::string refused(const std::string& text) {
  const auto spec = parse_spec(text, "s.yaml");
  if (spec) return "taken";
  EXPECT_EQ(english(spec.error().message).find('\n'), std::string::npos) << english(spec.error().message);
  return english(spec.error().message) + " | " + english(spec.error().hint);
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
      "s.yaml:3:12: python.version: 3.10 is a number, whose last zero YAML may drop; write \"3.10\"");
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

}  // namespace scankit::envspec
