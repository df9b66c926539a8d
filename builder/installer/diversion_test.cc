// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <ostream>

#include "builder/installer/installer.h"
#include "doctor/probes/python/python_host_test.h"

namespace scankit::installer {
namespace {

constexpr Installer::Kind kPip = Installer::Kind::Pip, kUv = Installer::Kind::Uv;

// Files of a tree in which the user is in project/inner. pip.conf is what PIP_CONFIG_FILE names.
struct Case {
  const char* name;
  Installer::Kind kind;
  std::vector<std::pair<std::string, std::string>> files;  // and their texts
  std::string said;                                        // a part of the refusal; "" where there is none
  std::vector<std::pair<std::string, std::string>> variables = {};
  std::string denied = "";  // a file that this user may not read
  friend std::ostream& operator<<(std::ostream& out, const Case& one) { return out << one.name; }
};

class Settings : public probes::PythonTree, public ::testing::WithParamInterface<Case> {
 protected:
  void TearDown() override { std::filesystem::current_path(before_); }
  std::filesystem::path before_ = std::filesystem::current_path();
};

TEST_P(Settings, AreRefusedWhereTheyNameAPlace) {
  const Case& one = GetParam();
  std::filesystem::current_path(folder("project/inner"));
  host_.variables["HOME"] = at("home");
  host_.variables["XDG_CONFIG_DIRS"] = at("nowhere") + ":" + at("xdg");
  host_.variables["PIP_CONFIG_FILE"] = at("pip.conf");
  for (const auto& [name, value] : one.variables) host_.variables[name] = value;
  for (const auto& [file, text] : one.files) write(file, text);
  if (!one.denied.empty()) host_.denied.insert(at(one.denied));
  const auto checked = check_not_diverted(host_, {}, {.kind = one.kind});
  const std::string said = checked ? "" : checked.error().message.english();
  EXPECT_EQ(said.empty(), one.said.empty()) << said;
  EXPECT_NE(said.find(one.said), std::string::npos) << said;
}

Case pip(const char* name, const std::string& text, const std::string& said) {
  return {name, kPip, {{"pip.conf", text}}, said};
}
Case uv(const char* name, const std::string& text, const std::string& said) {
  return {name, kUv, {{"project/inner/pyproject.toml", text}}, said};
}
// A nearer file that says something of uv, or seems to.
Case behind(const char* name, const std::string& nearer) {
  return {name,
          kUv,
          {{"project/inner/pyproject.toml", nearer},
           {"project/pyproject.toml", "[tool.uv.pip]\ntarget = \"x\"\n"}},
          "[tool.uv.pip] target of "};
}
const std::string kTarget = "[tool.uv.pip] target of ";
const std::string kUnread = "cannot be checked for settings";

std::string name_of_case(const ::testing::TestParamInfo<Case>& one) { return one.param.name; }

INSTANTIATE_TEST_SUITE_P(
    OfPip, Settings,
    ::testing::Values(pip("Option", "[install]\n--target = /x\n", "[install] target of "),
                      pip("NextLine", "[install]\ntarget =\n\n  # a comment\n    /x\n",
                          "[install] target of "),
                      pip("OtherPython", "[global]\nPython: /x/bin/python\n", "[global] python of "),
                      pip("EverySection", "[DEFAULT]\nroot = /x\n[install]\n", "[DEFAULT] root of "),
                      pip("Long", "[global]\n" + std::string(1u << 20, '#') + "\ntarget = /x\n", kUnread),
                      Case{"Unreadable", kPip, {{"pip.conf", ""}}, kUnread, {}, "pip.conf"},
                      pip("ValueOfManyLines", "[install]\nfind-links =\n  /a\n  [global]\nprefix = /x\n",
                          "[install] prefix of "),
                      pip("NoValue", "[install]\ntarget =\n[global]\nindex-url = https://mine/simple\n", ""),
                      pip("InAValue", "[install]\nfind-links = /a\n  target = /x\n", ""),
                      Case{"NoFile", kPip, {}, "", {{"PIP_CONFIG_FILE", "/dev/null"}}}),
    name_of_case);

INSTANTIATE_TEST_SUITE_P(
    OfUv, Settings,
    ::testing::Values(
        uv("QuotedKey", "[tool.uv.pip]\n\"target\" = \"x\"\n", kTarget),
        uv("QuotedTable", "[tool.\"uv\" . 'pip']\ntarget = \"x\"\n", kTarget),
        uv("SplitTable", "[tool]\nuv.pip.target = \"x\"\n", kTarget),
        uv("TablesInALine", "tool = { uv = { index-url = '}', pip = { prefix = 'x' } } }\n",
           "[tool.uv.pip] prefix of "),
        uv("Escape", "[tool.uv.pip]\n\"t\\u0061rget\" = \"x\"\n", kTarget),
        uv("AfterLinesOfText",
           "[tool.uv.pip]\na = \"\"\"\n[b]\n\\\"\"\"\n\"\"\"\nc = [\n  1, # ]\n  {d = 2}]\ntarget = 'x'\n",
           kTarget),
        uv("InText",
           "[tool.uv]\na = '''\n[tool.uv.pip]\ntarget = 1\n'''\n# [tool.uv.pip]\n[b]\ntarget = 'x'\n", ""),
        uv("Nested", "[tool.uv]\na = " + std::string(100'000, '[') + "\n", ""),
        uv("Long", std::string((1u << 20) + 1, '#'), kUnread),
        Case{"Unreadable", kUv, {{"project/uv.toml", ""}}, kUnread, {}, "project/uv.toml"},
        behind("BehindAComment", "# tool.uv\n"), behind("BehindAnotherTool", "[tool.uvicorn]\n"),
        behind("BehindAMember", "[tool.uv.sources]\nshared = { workspace = true }\n"),
        Case{"OfTheMachine", kUv, {{"xdg/uv/uv.toml", "pip.target = 'x'\n"}}, "[pip] target of "},
        Case{"NoConfigIsOff",
             kUv,
             {{"project/uv.toml", "[pip]\ntarget = 'x'\n"}},
             "[pip] target of ",
             {{"UV_NO_CONFIG", "0"}}},
        Case{"NoConfig", kUv, {{"project/uv.toml", "[pip]\ntarget = 'x'\n"}}, "", {{"UV_NO_CONFIG", "true"}}},
        Case{"NoFile",
             kUv,
             {{"project/uv.toml", "[pip]\ntarget = 'x'\n"}},
             "",
             {{"UV_CONFIG_FILE", "/dev/null"}}}),
    name_of_case);

}  // namespace
}  // namespace scankit::installer
