// SPDX-License-Identifier: Apache-2.0
#include "doctor/matrix/matrix.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "doctor/base/exit_status.h"
#include "doctor/matrix/places.h"

namespace scankit::matrix {
namespace {

using Values = std::vector<std::string>;
const Values kKnown{"2.3", "2.4", "2.5", "2.10"};

TEST(Axes, AreValuesAndRangesInAscendingOrder) {
  const auto values = [](const std::string& text) {
    return values_of_axis("--torch", text, kKnown).value_or(Values{"none"});
  };
  EXPECT_EQ(values("2.4"), Values{"2.4"});
  EXPECT_EQ(values("2.4.1"), Values{"2.4"}) << "a patch release has the names of its minor";
  EXPECT_EQ(values("2.10,2.3"), (Values{"2.3", "2.10"}));
  EXPECT_EQ(values("2.4..2.10"), (Values{"2.4", "2.5", "2.10"}));
  EXPECT_EQ(values("2.5.."), (Values{"2.5", "2.10"}));
  EXPECT_EQ(values("..2.4"), (Values{"2.3", "2.4"}));
  EXPECT_EQ(values("all"), kKnown);
}

TEST(Axes, SayWhatIsWrongWithAValue) {
  for (const char* text : {"", ",", "..", "2.9", "2.4..2.9", "torch", "2.4...2.5", "2.4-2.5"}) {
    const auto values = values_of_axis("--torch", text, kKnown);
    ASSERT_FALSE(values) << text;
    EXPECT_NE(english(values.error().message).find("--torch"), std::string::npos);
    EXPECT_NE(english(values.error().hint).find("2.3, 2.4, 2.5, 2.10; a range is written 2.3..2.10"),
              std::string::npos);
  }
  const auto exchanged = values_of_axis("--torch", "2.5..2.3", kKnown);
  ASSERT_FALSE(exchanged);
  EXPECT_EQ(english(exchanged.error().hint), "write 2.3..2.5");
}

TEST(Axes, TellVersionsOfPythonFromAnInterpreter) {
  for (const char* text : {"3.11", "3.9..3.13", "3.9,3.11", "all"}) EXPECT_TRUE(is_python_axis(text)) << text;
  for (const char* text : {"python3.11", "/usr/bin/python3", ".venv", "..", "./3.11"})
    EXPECT_FALSE(is_python_axis(text)) << text;
}

TEST(Axes, KnowTheReleasesOfTheSymbolIndex) {
  EXPECT_EQ(known_torch_releases().front(), "1.11");
  EXPECT_GE(known_torch_releases().size(), 19u);
  EXPECT_EQ(known_pythons().front(), "3.7");
  EXPECT_TRUE(torch_has_wheels_for("2.6", "3.13"));
  EXPECT_FALSE(torch_has_wheels_for("2.6", "3.14"));
  EXPECT_FALSE(torch_has_wheels_for("9.9", "3.11"));
}

TEST(DescribedMachine, HasWhatThePlaceSays) {
  const Snapshot machine = described_machine({.torch = "2.6",
                                              .python = "3.11",
                                              .cuda = "12.4",
                                              .machine = "aarch64",
                                              .glibc = "2.28",
                                              .gpu = "sm_90",
                                              .driver = {}});
  EXPECT_EQ(machine.torch.value.string_abi, "old");
  EXPECT_EQ(machine.python.value.soabi, "cpython-311-aarch64-linux-gnu");
  EXPECT_EQ(machine.gpus.value.at(0).sm, "90");
  EXPECT_EQ(machine.libc.value.version, "2.28");
  const auto lacks = [&](const std::string& soname) {
    const auto& brought = machine.torch.value.libraries.at(0).needed;
    return std::ranges::find(brought, soname) == brought.end();
  };
  EXPECT_TRUE(lacks("libcudart.so.11.0") && lacks("libcudart.so.13"));
  EXPECT_FALSE(lacks("libcudart.so.12") || lacks("libcurand.so.10"));
  EXPECT_TRUE(depends_on_an_axis("libcudart.so.13") && depends_on_an_axis("libtorch_cuda.so"));
  EXPECT_FALSE(depends_on_an_axis("libsox.so") || depends_on_an_axis("libtorchaudio.so"));
}

Matrix one_group() {
  FileGroup group;
  group.name = "scan 1.0";
  group.files = {"/w/scan-1.0-cp311-cp311-linux_x86_64.whl"};
  group.libraries = 1;
  group.machine = "x86_64";
  group.glibc_min = "2.28";
  const Cell works{.fit = Fit::Works, .cause = {}, .reason = {}, .file = group.files[0]};
  const Cell fails{.fit = Fit::Fails,
                   .cause = "torch_version_mismatch",
                   .reason = message("it needs 1 symbol"),
                   .file = group.files[0]};
  const Cell none{.fit = Fit::NoTorch,
                  .cause = {},
                  .reason = message("torch 2.4 has no wheels for Python 3.13"),
                  .file = {}};
  group.cells = {
      {"2.4", "3.11", works}, {"2.4", "3.13", none}, {"2.5", "3.11", fails}, {"2.5", "3.13", works}};
  return {{group}};
}

TEST(MatrixReport, SaysWhereItFailsAndWhy) {
  const Matrix matrix = one_group();
  const std::string text = matrix_text(matrix, {});
  EXPECT_NE(text.find("  torch   3.11  3.13    (columns: Python)\n  2.4     yes   .\n  2.5     no    yes\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("torch 2.5 with Python 3.11: it needs 1 symbol (torch_version_mismatch)"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("the files work at 2 of 3 places only"), std::string::npos) << text;
  EXPECT_EQ(exit_status_of(matrix), kExitFindings);
  const auto json = nlohmann::json::parse(matrix_json(matrix));
  EXPECT_EQ(json["verdict"], "fails");
  EXPECT_EQ(json["groups"][0]["cells"][1]["fit"], "no-torch");
  const report::Document document = matrix_document(matrix);
  EXPECT_EQ(document.suites.at(0).tests.at(2).state, report::TestState::Failed);
  EXPECT_EQ(document.suites.at(0).tests.at(1).state, report::TestState::Skipped);
  EXPECT_EQ(document.problems.size(), 1u);
}

// What was not decided is never green, and a failure outranks it.
TEST(MatrixReport, IsUnknownWhereACellIs) {
  Matrix matrix = one_group();
  matrix.groups[0].cells[2].cell = {
      .fit = Fit::Unknown, .cause = {}, .reason = message("nobody knows"), .file = {}};
  EXPECT_EQ(overall(matrix), Fit::Unknown);
  EXPECT_EQ(exit_status_of(matrix), kExitInconclusive);
  matrix.groups[0].gpus = {
      {"sm_120", {.fit = Fit::Fails, .cause = "no_kernel_image", .reason = message("no code"), .file = {}}}};
  EXPECT_EQ(overall(matrix), Fit::Fails);
  matrix.groups[0].gpus = {{"sm_120", {.fit = Fit::Works, .cause = {}, .reason = {}, .file = {}}}};
  matrix.groups[0].cells[2].cell.fit = Fit::Works;
  EXPECT_EQ(exit_status_of(matrix), kExitClean);
  for (MatrixCell& cell : matrix.groups[0].cells) cell.cell.fit = Fit::NoTorch;
  matrix.groups[0].gpus.clear();
  EXPECT_EQ(exit_status_of(matrix), kExitInconclusive) << "nothing was judged";
}

TEST(Matrix, NamesAFileThatIsNotThere) {
  const auto matrix = matrix_of({.files = {"/nowhere/x.whl"},
                                 .torch = {"2.6"},
                                 .pythons = {},
                                 .cudas = {},
                                 .glibcs = {},
                                 .gpus = {},
                                 .driver = {}});
  ASSERT_FALSE(matrix);
  EXPECT_NE(english(matrix.error().message).find("/nowhere/x.whl"), std::string::npos);
}

}  // namespace
}  // namespace scankit::matrix
