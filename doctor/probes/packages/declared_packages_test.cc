// SPDX-License-Identifier: Apache-2.0
#include "doctor/base/say.h"
#include "doctor/probes/packages/distributions.h"
#include "doctor/probes/python/python.h"
#include "doctor/probes/python/python_host_test.h"

namespace scankit::probes {
namespace {

const std::string kFile =
    "schema: 1\ndistribution: my-ext\nmodules: [{name: my_ext._C}, {name: my_ext._fused}]\n"
    "build: {torch: '2.4', isolation: true, variables: {MY_EXT_FORCE_BUILD: 'TRUE'}}\n";

class DeclaredPackages : public PythonTree {
 protected:
  DeclaredPackages() {
    make_venv("venv", install("base"));
    site_ = "venv/lib/python3.11/site-packages/";
    write(site_ + "my_ext-1.0.dist-info/METADATA", "Name: my-ext\nVersion: 1.0\n");
    write(site_ + "other-1.0.dist-info/METADATA", "Name: other\nVersion: 1.0\n");
  }
  std::vector<DeclaredPackage> probe() {
    const auto python = probe_python(host_, at("venv"));
    EXPECT_TRUE(python.present()) << python.note;
    return probe_declared(host_, probe_distributions(host_, python.value).value);
  }
  std::string site_;
};

TEST_F(DeclaredPackages, AreReadFromEachPlace) {
  EXPECT_TRUE(probe().empty());
  write("src/scankit.module.yaml", kFile);
  write(site_ + "my_ext-1.0.dist-info/direct_url.json",
        R"({"dir_info": {"editable": true}, "url": "file://)" + at("src") + R"("})");
  const std::vector<std::string> places = {site_ + "my_ext/scankit.module.yaml", "src/scankit.module.yaml",
                                           site_ + "my_ext-1.0.dist-info/scankit.module.yaml"};
  for (const std::string& place : places) {
    write(place, kFile);
    const auto found = probe();
    ASSERT_EQ(found.size(), 1U) << place;
    EXPECT_EQ(found[0].distribution, "my-ext");
    EXPECT_EQ(found[0].modules, (std::vector<std::string>{"my_ext._C", "my_ext._fused"}));
    EXPECT_EQ(found[0].variables, std::vector<std::string>{"MY_EXT_FORCE_BUILD=TRUE"});
    EXPECT_EQ(found[0].least_torch, "2.4");
    EXPECT_TRUE(found[0].isolated);
    EXPECT_EQ(tr(found[0].problem), "");
  }
  EXPECT_EQ(probe()[0].file, at(places.back())) << "the installed metadata comes first";
}

// Nothing is taken from a file with a slip in it, or of somebody else.
TEST_F(DeclaredPackages, SayWhyNothingWasTaken) {
  const auto problem = [&](const std::string& text) {
    write(site_ + "my_ext/scankit.module.yaml", text);
    const auto found = probe();
    EXPECT_EQ(found.size(), 1U);
    EXPECT_TRUE(found[0].modules.empty() && found[0].variables.empty());
    return tr(found[0].problem);
  };
  EXPECT_EQ(problem("schema: 1\ndistribution: torch\nmodules: [{name: torch._C}]\n"),
            at(site_ + "my_ext/scankit.module.yaml") + " describes torch");
  EXPECT_NE(problem("schema: 1\ndistribution: my-ext\nmodule: []\n").find("unknown field"),
            std::string::npos);
  EXPECT_NE(problem("").find("is empty"), std::string::npos);
}

}  // namespace
}  // namespace scankit::probes
