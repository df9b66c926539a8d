// SPDX-License-Identifier: Apache-2.0
#include "doctor/probes/packages/requirements.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "doctor/elf/library_test.h"
#include "doctor/probes/packages/distributions.h"
#include "doctor/probes/python/python.h"
#include "doctor/probes/python/python_host_test.h"

namespace scankit::probes {
namespace {

class Requirements : public PythonTree {
 protected:
  Requirements() {
    make_venv("venv", install("base"));
    host_.variables["PYTHONSAFEPATH"] = "1";  // the tests' own current folder stays out of it
  }
  void distribution(const std::string& name, const std::string& version, const std::string& requires_lines) {
    write(site_ + name + "-" + version + ".dist-info/METADATA",
          "Metadata-Version: 2.1\nName: " + name + "\nVersion: " + version + "\n" + requires_lines + "\n");
  }
  std::vector<MissingRequirement> missing() {
    Snapshot taken;
    taken.python = probe_python(host_, at("venv"));
    taken.distributions = probe_distributions(host_, taken.python.value);
    taken.packages.state = ProbeState::Present;
    taken.packages.value.found = {{"mamba_ssm", "2.3.1", at(site_ + "mamba_ssm"), false}};
    const auto found = probe_requirements(host_, taken);
    EXPECT_TRUE(found.present()) << found.note;
    return found.value;
  }
  const std::string site_ = "venv/lib/python3.11/site-packages/";
};

const MissingRequirement* named(const std::vector<MissingRequirement>& all, const std::string& name) {
  const auto found = std::ranges::find(all, name, &MissingRequirement::name);
  return found == all.end() ? nullptr : &*found;
}

TEST_F(Requirements, AreFollowedThroughWhatIsInstalled) {
  distribution(
      "mamba_ssm", "2.3.1",
      "Requires-Dist: transformers\nRequires-Dist: ninja\nRequires-Dist: triton\nRequires-Dist: torch\n"
      "Requires-Dist: pytest; extra == 'dev'\nRequires-Dist: winreg; sys_platform == 'win32'\n");
  distribution("transformers", "4.45.2", "Requires-Dist: tqdm>=4.27\nRequires-Dist: PyYAML>=5.1\n");
  write(site_ + "yaml/__init__.py", "");  // without a record, as Debian's may be
  write(site_ + "mamba_ssm/__init__.py", "import torch\nfrom .models import hf\n");
  write(site_ + "mamba_ssm/models/__init__.py", "");
  write(site_ + "mamba_ssm/models/hf.py", "from transformers.utils import x\n");
  write(site_ + "transformers/__init__.py", "");
  write(site_ + "transformers/utils/__init__.py", "from .logging import tqdm\n");
  write(site_ + "transformers/utils/logging.py", "import os\nfrom tqdm import auto as tqdm\n");
  const auto found = missing();
  ASSERT_EQ(found.size(), 2u);
  const MissingRequirement *tqdm = named(found, "tqdm"), *ninja = named(found, "ninja");
  ASSERT_TRUE(tqdm != nullptr && ninja != nullptr);
  EXPECT_EQ(tqdm->distribution, "transformers");
  EXPECT_EQ(tqdm->root, "mamba_ssm");
  EXPECT_EQ(tqdm->requirement, "tqdm>=4.27");
  EXPECT_EQ(tqdm->file, at(site_ + "transformers/utils/logging.py"));
  EXPECT_EQ(tqdm->line, 2u);
  EXPECT_EQ(ninja->file, "");
}

TEST_F(Requirements, ThatAnImportComesToOnlyByAGuardOrACallAreNotReached) {
  distribution("mamba_ssm", "2.3.1", "Requires-Dist: einops\nRequires-Dist: tqdm\nRequires-Dist: regex\n");
  write(site_ + "mamba_ssm/__init__.py",
        "try:\n    import einops\nexcept ImportError:\n    einops = None\ndef f():\n    import tqdm\n"
        "if False:\n    import regex\n");
  const auto found = missing();
  ASSERT_EQ(found.size(), 3u);
  for (const MissingRequirement& one : found) EXPECT_EQ(one.file, "") << one.name;
}

TEST_F(Requirements, OfNothingThatIsInstalledAreNone) {
  write(site_ + "mamba_ssm/__init__.py", "import einops\n");
  EXPECT_TRUE(missing().empty());
}

}  // namespace

namespace {

Python python311() {
  Python python;
  python.version = "3.11.7";
  python.implementation = "cpython";
  return python;
}

std::optional<bool> holds(std::string_view marker, const std::vector<std::string>& extras = {}) {
  return marker_holds(marker, python311(), "x86_64", extras);
}

TEST(RequirementLine, IsTakenApart) {
  const auto line = parse_requirement(" tokenizers[testing, dev] (>=0.20,<0.21) ; extra == 'torch'");
  ASSERT_TRUE(line);
  EXPECT_EQ(line->name, "tokenizers");
  EXPECT_EQ(line->extras, (std::vector<std::string>{"testing", "dev"}));
  EXPECT_EQ(line->text(), "tokenizers>=0.20,<0.21");
  EXPECT_EQ(line->marker, "extra == 'torch'");
  EXPECT_EQ(parse_requirement("einops")->text(), "einops");
  EXPECT_EQ(parse_requirement("own @ https://example.org/own.whl")->text(), "own");
  EXPECT_FALSE(parse_requirement("=="));
  EXPECT_FALSE(parse_requirement("name[never closed"));
}

TEST(RequirementLine, MarkersAreEvaluated) {
  EXPECT_EQ(holds(""), true);
  EXPECT_EQ(holds("python_version < '3.11'"), false);
  EXPECT_EQ(holds("python_version >= \"3.10\""), true);  // 3.11 is newer than 3.9 and than 3.10, as a number
  EXPECT_EQ(holds("python_full_version < '3.11.8'"), true);
  EXPECT_EQ(holds("sys_platform == 'win32'"), false);
  EXPECT_EQ(holds("platform_system == \"Linux\" and platform_machine == 'x86_64'"), true);
  EXPECT_EQ(
      holds("platform_machine == 'aarch64' or (os_name == 'posix' and implementation_name == 'cpython')"),
      true);
  EXPECT_EQ(holds("'linux' in sys_platform"), true);
  EXPECT_EQ(holds("platform_machine not in 'x86_64 AMD64'"), false);
  EXPECT_EQ(holds("python_version == '3.11.*'"), true);
}

TEST(RequirementLine, ExtrasCountOnlyWhereTheyAreAskedFor) {
  EXPECT_EQ(holds("extra == 'dev'"), false);
  EXPECT_EQ(holds("extra == 'dev'", {"dev"}), true);
  EXPECT_EQ(holds("extra == 'causal-conv1d'", {"causal_conv1d"}), true);
  EXPECT_EQ(holds("sys_platform == 'linux' and extra == 'opt'"), false);
}

TEST(RequirementLine, WhatIsNotKnownIsNoAnswer) {
  EXPECT_EQ(holds("platform_release > '5'"), std::nullopt);
  EXPECT_EQ(holds("platform_release > '5' and sys_platform == 'win32'"), false);
  EXPECT_EQ(holds("platform_release > '5' or sys_platform == 'linux'"), true);
  EXPECT_EQ(holds("python_version >="), std::nullopt);
  EXPECT_EQ(holds("python_version ~= '3.8'"), std::nullopt);
  EXPECT_EQ(holds("'never closed"), std::nullopt);
  EXPECT_EQ(holds(std::string(100000, '(')), std::nullopt);
  EXPECT_EQ(holds("sys_platform == 'linux' trailing"), std::nullopt);
}

TEST(RequirementLine, EndWhereTheDescriptionBegins) {
  const auto lines = requirement_lines(
      "Metadata-Version: 2.1\nName: mamba-ssm\nLicense: first line\n        \n        third\nRequires-Dist: "
      "torch\nRequires-Dist: einops\n\n"
      "Requires-Dist: from-the-description\n");
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[1].name, "einops");
}

TEST(ImportNames, AreThoseOfTheTableElseTheDistributions) {
  EXPECT_EQ(import_name_of("PyYAML").package, "yaml");
  EXPECT_FALSE(import_name_of("PyYAML").guessed);
  EXPECT_EQ(import_name_of("huggingface-hub").package, "huggingface_hub");
  EXPECT_TRUE(import_name_of("huggingface-hub").guessed);
}

}  // namespace

namespace {

std::vector<std::string> paths_of(const std::string& site, const std::vector<std::string>& asked,
                                  const std::vector<Extension>& compiled = {}) {
  Snapshot snapshot;
  snapshot.python = Probed<Python>::of({});
  snapshot.python.value.sys_path = {{site, "site", true}};
  snapshot.python.value.extension_suffixes = {".abi3.so"};
  snapshot.modules_asked = asked;
  snapshot.extensions = Probed<std::vector<Extension>>::of(compiled);
  std::vector<std::string> paths;
  for (const AskedPackage& package : find_asked_packages(*make_real_host(), snapshot))
    paths.push_back(package.name + " " + package.path.substr(site.size()));
  return paths;
}

TEST(AskedPackages, ArePackagesAndFilesOfPython) {
  test::Workshop shop;
  shop.write("site/pack/__init__.py", "");
  shop.write("site/pack/inner/__init__.py", "");
  shop.write("site/pack/tool.py", "");
  shop.write("site/one.py", "");
  shop.write("site/left/over.txt", "");  // what an incomplete uninstall leaves
  EXPECT_EQ(
      paths_of(shop.path("site"), {"pack", "pack.inner", "pack.tool", "one", "left", "gone", "pack.gone"}),
      (std::vector<std::string>{"pack /pack", "pack.inner /pack/inner", "pack.tool /pack/tool.py",
                                "one /one.py"}));
}

TEST(AskedPackages, ANameOfWhichImportTakesACompiledFileIsNone) {
  test::Workshop shop;
  shop.write("site/pack/__init__.py", "");
  Extension copy;
  copy.module = "pack";
  copy.selected = true;
  EXPECT_TRUE(paths_of(shop.path("site"), {"pack"}, {copy}).empty());
}

}  // namespace

}  // namespace scankit::probes
