// SPDX-License-Identifier: Apache-2.0
#include "doctor/probes/packages/requirements.h"

#include <algorithm>

#include "doctor/probes/packages/distributions.h"
#include "doctor/probes/python/python.h"
#include "doctor/probes/python/python_test_host.h"

namespace scankit {
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
}  // namespace scankit
