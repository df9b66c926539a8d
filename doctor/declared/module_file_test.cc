// SPDX-License-Identifier: Apache-2.0
#include "doctor/declared/module_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"

namespace scankit::declared {
namespace {

const std::string kLeast = "schema: 1\ndistribution: my-ext\nmodules: [{name: my_ext._C}]\n";

// The message and the hint, or "taken".
std::string answer(const std::string& text) {
  const auto file = parse_module_file(text, "m.yaml");
  return file ? "taken" : tr(file.error().message) + "; " + tr(file.error().hint);
}

void expect_refused(const std::string& text, const std::string& why) {
  const std::string said = answer(text);
  EXPECT_NE(said.find(why), std::string::npos) << said;
  EXPECT_EQ(said.find('\n'), std::string::npos) << said;
}

TEST(ModuleFile, GoldenFile) {
  const std::string golden = std::string(SCANKIT_SOURCE_DIR) + "/ci/tests/formats/1/module.yaml";
  const auto file = parse_module_file(read_whole_file(golden).value(), "module.yaml");
  ASSERT_TRUE(file) << tr(file.error().message);
  EXPECT_EQ(file->distribution, "my-ext");
  EXPECT_EQ(file->documentation, "https://my-ext.example/install");
  EXPECT_EQ(file->least_torch, "2.4");
  EXPECT_EQ(file->isolation, std::optional(false));
  EXPECT_EQ(file->test_file, "tests/smoke.py");
  const std::vector<std::pair<std::string, std::string>> variables = {
      {"MY_EXT_FORCE_BUILD", "TRUE"}, {"TORCH_CUDA_ARCH_LIST", "8.0;9.0+PTX"}};
  EXPECT_EQ(file->variables, variables);
  EXPECT_EQ(imports_of(*file),
            (std::vector<std::string>{"my_ext._C", "my_ext.ops", "my_ext._fused", "my_ext"}));
}

TEST(ModuleFile, LeastAndMissing) {
  EXPECT_EQ(answer(kLeast), "taken");
  expect_refused("", "m.yaml is empty");
  expect_refused("- a\n", "m.yaml:1:1: expected keys");
  expect_refused("distribution: my-ext\n", "does not say which schema it has");
  expect_refused("schema: 2\nfuture: [1]\n", "this is schema 2, and this scankit supports up to 1");
  expect_refused("schema: 1\nmodules: [{name: a}]\n", "distribution: it is required");
  expect_refused("schema: 1\ndistribution: a\n",
                 "modules: it is required: a list such as [{name: my_ext._C}]");
  expect_refused("schema: 1\ndistribution: a\nmodules: []\n", "m.yaml:3:10: modules: expected a list");
}

TEST(ModuleFile, WrongTypes) {
  expect_refused("schema: 1\ndistribution: [a]\n", "m.yaml:2:15: distribution: expected one value");
  expect_refused("schema: 1\ndistribution: ../a\n", "is not of the form \"my-ext\"");
  expect_refused("schema: 1\nmodules: my_ext\n", "modules: expected a list");
  expect_refused("schema: 1\nmodules: [my_ext]\n", "modules: expected a module as {name: my_ext._C}");
  expect_refused("schema: 1\nmodules: [{name: \"a; import os\"}]\n",
                 "modules.name: \"a; import os\" is not of the form");
  expect_refused("schema: 1\nmodules: [{imports: [a]}]\n", "modules.name: it is required");
  expect_refused("schema: 1\nmodules: [{name: a}, {name: a}]\n", "\"a\" is in the list twice");
  expect_refused("schema: 1\nmodules: [{name: a, imports: [b, 3]}]\n", "3 is a number");
  expect_refused("schema: 1\nmodules: [{name: a, import: [b]}]\n", "did you mean \"imports\"?");
  expect_refused(kLeast + "build: yes please\n", "build: expected keys");
  expect_refused(kLeast + "build: {isolation: \"false\"}\n", "build.isolation: expected true or false");
  expect_refused(kLeast + "build: {torch: 2.4}\n", "2.4 is a number");
  expect_refused(kLeast + "build: {torch: newest}\n", "build.torch: \"newest\" is not of the form \"2.4\"");
  expect_refused(kLeast + "build: {command: make}\n", "unknown field \"build.command\"");
  expect_refused(kLeast + "documentation: \"javascript:alert(1)\"\n", "documentation: ");
  expect_refused(kLeast + "test: smoke.py\n", "test: expected file: or imports:");
  expect_refused(kLeast + "test: {}\n", "test: expected file: or imports:");
}

TEST(ModuleFile, VariablesThatDivert) {
  for (const char* name : {"PATH",
                           "HOME",
                           "LD_PRELOAD",
                           "PYTHONPATH",
                           "PIP_INDEX_URL",
                           "CC",
                           "CXX",
                           "NVCC_APPEND_FLAGS",
                           "CUDA_HOME",
                           "UV_CACHE_DIR",
                           "TMPDIR",
                           "PIP_FORCE_BUILD",
                           "LD_FORCE_BUILD",
                           "PYTHON_CUDA_ARCH",
                           "_FORCE_BUILD",
                           "force_cuda",
                           "A B_FORCE_BUILD",
                           "1_FORCE_BUILD",
                           "CXXFLAGS",
                           "MAKEFLAGS",
                           "DIST_EXTRA_CONFIG",
                           "GIT_SSH_FORCE_BUILD"}) {
    EXPECT_FALSE(is_build_switch(name)) << name;
    expect_refused(kLeast + "build: {variables: {\"" + name + "\": \"1\"}}\n",
                   "a file may not set this variable");
  }
  for (const char* name : {"MAX_JOBS", "TORCH_CUDA_ARCH_LIST", "FORCE_CUDA", "MAMBA_FORCE_BUILD",
                           "FLASH_ATTENTION_SKIP_CUDA_BUILD", "MAMBA_KEEP_CUDA_BUILD", "NATTEN_CUDA_ARCH",
                           "MMCV_WITH_OPS", "DS_BUILD_OPS", "TCNN_CUDA_ARCHITECTURES"})
    EXPECT_TRUE(is_build_switch(name)) << name;
  EXPECT_FALSE(is_build_switch(std::string(61, 'A') + "_FORCE_BUILD"));
  for (const char* value :
       {"$(id)", "/tmp/evil", "..\\x", "`id`", "a'b", "a\\nb", "~", "a|b", "a&b", "a>b"}) {
    EXPECT_FALSE(is_switch_value(value)) << value;
    expect_refused(kLeast + "build: {variables: {FORCE_CUDA: '" +
                       (std::string(value) == "a'b" ? "a''b" : value) + "'}}\n",
                   "a path is not allowed");
  }
  EXPECT_FALSE(is_switch_value("a\nb"));
  EXPECT_FALSE(is_switch_value(std::string(201, 'a')));
  expect_refused(kLeast + "build: {variables: {MAX_JOBS: 4}}\n", "write \"4\" in quotes");
}

TEST(ModuleFile, PathsThatLeaveTheProject) {
  for (const char* path : {"../smoke.py", "/tmp/smoke.py", "tests/../../smoke.py", "./smoke.py",
                           "tests//smoke.py", "smoke.sh", "tests/", "a\\tb.py", "~/smoke.py/.."})
    expect_refused(kLeast + "test: {file: \"" + path + "\"}\n", "test.file: ");
}

TEST(ModuleFile, HugeAndHostileText) {
  expect_refused(kLeast + "# " + std::string(300u << 10, 'x'), "is longer than 256 KiB");
  expect_refused(kLeast + "test: {imports: \xff}\n", "m.yaml:4:17: this is not UTF-8");
  expect_refused(kLeast + "\x1b[2J", "this is a control byte");
  expect_refused("schema: 1\na: &a [x, x]\nb: &b [*a, *a]\n",
                 "m.yaml:2:4: anchors (&name) are not supported");
  expect_refused("schema: 1\ndistribution: !!python/object:os.system a\n", "tags (!name) are not supported");
  expect_refused("schema: 1\na: " + std::string(9, '[') + std::string(9, ']'), "nested more than 8 deep");
  expect_refused("schema: 1\nschema: 1\n", "occurs a second time");
  expect_refused(kLeast + "---\nschema: 1\n", "more than one document");
  std::string many = "schema: 1\ndistribution: a\nmodules:\n";
  for (int i = 0; i < 65; ++i) many += "  - {name: m" + std::to_string(i) + "}\n";
  expect_refused(many, "more than 64 modules");
}

TEST(ModuleFile, OfADirectory) {
  auto scratch = TemporaryDirectory::create("scankit-declared");
  ASSERT_TRUE(scratch);
  const std::string project = scratch->path() + "/project", file = project + "/" + kModuleFile;
  std::filesystem::create_directories(project + "/tests");
  const auto host = make_real_host();
  const auto said = [&] {
    const auto read = read_module_file(*host, project);
    return read ? std::string(*read ? "read" : "none") : tr(read.error().message);
  };
  EXPECT_EQ(said(), "none");
  ASSERT_TRUE(write_file_atomically(file, kLeast + "test: {file: tests/smoke.py}\n"));
  EXPECT_NE(said().find("tests/smoke.py"), std::string::npos) << said();
  ASSERT_TRUE(write_file_atomically(scratch->path() + "/outside.py", ""));
  std::filesystem::create_symlink(scratch->path() + "/outside.py", project + "/tests/smoke.py");
  EXPECT_NE(said().find("leads out of"), std::string::npos) << said();
  std::filesystem::remove(project + "/tests/smoke.py");
  std::filesystem::create_directory(project + "/tests/smoke.py");
  EXPECT_NE(said().find("is not a file"), std::string::npos) << said();
  std::filesystem::remove(project + "/tests/smoke.py");
  ASSERT_TRUE(write_file_atomically(project + "/tests/smoke.py", ""));
  EXPECT_EQ(said(), "read");
  // The file itself as a link: what it leads to is not read, and so not quoted in a message.
  std::filesystem::rename(file, scratch->path() + "/elsewhere.yaml");
  std::filesystem::create_symlink(scratch->path() + "/elsewhere.yaml", file);
  EXPECT_NE(said().find("leads out of"), std::string::npos) << said();
}

// The fields that the reader takes, as its message about an unknown one lists them, are those of the schema.
TEST(ModuleFile, SchemaHasTheSameFields) {
  const std::string path = std::string(SCANKIT_SOURCE_DIR) + "/doctor/declared/schema/module-1.json";
  const auto schema = nlohmann::json::parse(read_whole_file(path).value());
  const auto& top = schema["properties"];
  const auto names = [](const nlohmann::json& properties) {
    std::vector<std::string> all;
    for (const auto& [name, value] : properties.items()) all.push_back(name);
    return all;
  };
  const auto taken = [](const std::string& text) {
    const std::string said = answer(text), before = "valid here: ";
    auto all = split_nonempty(said.substr(said.find(before) + before.size()), ", ");
    std::ranges::sort(all);
    return all;
  };
  EXPECT_EQ(taken("schema: 1\nzzzzzzzzzzzzzz: 1\n"), names(top));
  EXPECT_EQ(taken("schema: 1\nmodules: [{zzzzzzzzzz: 1}]\n"), names(top["modules"]["items"]["properties"]));
  EXPECT_EQ(taken("schema: 1\nbuild: {zzzzzzzzzz: 1}\n"), names(top["build"]["properties"]));
  EXPECT_EQ(taken("schema: 1\ntest: {zzzzzzzzzz: 1}\n"), names(top["test"]["properties"]));
}

}  // namespace
}  // namespace scankit::declared
