// SPDX-License-Identifier: Apache-2.0
#include "envspec/spec/spec.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <regex>

#include "doctor/base/files.h"
#include "envspec/spec/derive.h"
#include "envspec/spec/fields.h"

namespace scankit {
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

TEST(DerivedSpec, IsReadBackAsItWasWritten) {
  const DerivedSpec derived = derive_spec(some_facts());
  const std::string text = spec_to_yaml(derived.spec, derived.notes, "scankit.schema.json");
  const auto back = parse_spec(text, "s.yaml");
  ASSERT_TRUE(back) << back.error().message << "\n" << text;
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
  ASSERT_TRUE(back) << back.error().message << "\n" << text;
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
}  // namespace scankit
