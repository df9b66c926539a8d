// SPDX-License-Identifier: Apache-2.0
#include "doctor/probes/packages/distributions.h"

#include "doctor/probes/python/python.h"
#include "doctor/probes/python/python_host_test.h"

namespace scankit::probes {
namespace {

class Distributions : public PythonTree {
 protected:
  Distributions() {
    make_venv("venv", install("base"));
    site_ = "venv/lib/python3.11/site-packages/";
  }
  Probed<std::vector<Distribution>> probe(const std::string& prefix = "venv") {
    const auto python = probe_python(host_, at(prefix));
    EXPECT_TRUE(python.present()) << python.note;
    return probe_distributions(host_, python.value);
  }
  Distribution one(const std::string& name, const std::string& prefix = "venv") {
    const auto probed = probe(prefix);
    const Distribution* found = find_distribution(probed.value, name);
    EXPECT_NE(found, nullptr) << name;
    return found == nullptr ? Distribution{} : *found;
  }
  std::string site_;
};

TEST_F(Distributions, ReadsMetadataInstallerAndOrigin) {
  write(site_ + "mamba_ssm-2.2.4.dist-info/METADATA",
        "Metadata-Version: 2.1\nName: mamba-ssm\nVersion: 2.2.4+local\n\nVersion: 9\n");
  write(site_ + "mamba_ssm-2.2.4.dist-info/INSTALLER", "uv\n");
  write(site_ + "mamba_ssm-2.2.4.dist-info/direct_url.json",
        R"({"dir_info": {"editable": true}, "url": "file:///src/my%20mamba%C3%A4%zz"})");
  const Distribution found = one("Mamba_SSM");
  EXPECT_EQ(found.name, "mamba-ssm");
  EXPECT_EQ(found.version, "2.2.4+local");
  EXPECT_EQ(found.installer, "uv");
  EXPECT_TRUE(found.editable);
  EXPECT_EQ(found.project, "/src/my mamba\xc3\xa4%zz");
}

TEST_F(Distributions, SaysWhatWasInstalledFromNoIndex) {
  const auto installed = [&](const std::string& name, const std::string& direct_url) {
    write(site_ + name + "-1.0.dist-info/METADATA", "Name: " + name + "\nVersion: 1.0\n");
    if (!direct_url.empty()) write(site_ + name + "-1.0.dist-info/direct_url.json", direct_url);
  };
  installed("wheel", R"({"url": "file:///src/my%20wheels/wheel-1.0.whl", "archive_info": {}})");
  installed("folder", R"({"url": "file:///src/folder", "dir_info": {}})");
  installed("clone",
            R"({"url": "https://me:secret@host/clone.git", "vcs_info": {"vcs": "git", "commit_id": "abc"},
                      "subdirectory": "py"})");
  installed("ssh", R"({"url": "ssh://git@host/a.git", "vcs_info": {"vcs": "git", "commit_id": "d"}})");
  installed("web", R"({"url": "https://host/web-1.0.whl", "archive_info": {}})");
  installed("index", "");
  EXPECT_EQ(source_of(host_, one("wheel")), "/src/my wheels/wheel-1.0.whl");
  EXPECT_EQ(source_of(host_, one("folder")), "/src/folder");
  EXPECT_FALSE(one("folder").editable);
  EXPECT_EQ(source_of(host_, one("clone")), "git+https://host/clone.git@abc#subdirectory=py");
  EXPECT_EQ(source_of(host_, one("ssh")), "git+ssh://git@host/a.git@d");
  EXPECT_EQ(source_of(host_, one("web")), "https://host/web-1.0.whl");
  EXPECT_EQ(source_of(host_, one("index")), "");
}

TEST_F(Distributions, ToleratesBrokenOnes) {
  folder(site_ + "empty-1.0.dist-info");
  folder(site_ + "nameless.dist-info");
  write(site_ + "binary-2.0.dist-info/METADATA", std::string(100000, '\xff'));
  write(site_ + "json-3.0.dist-info/direct_url.json", "[{");
  write(site_ + "types-3.0.dist-info/direct_url.json", R"({"dir_info": 7, "url": []})");
  write(site_ + "afile-4.0.dist-info", "not a directory");
  write(site_ + "dangling-5.0.dist-info/x", "");
  link(at("nowhere"), site_ + "dangling-5.0.dist-info/METADATA");
  const auto probed = probe();
  ASSERT_TRUE(probed.present()) << probed.note;
  EXPECT_EQ(probed.value.size(), 7u);
  EXPECT_EQ(one("empty").version, "1.0");
  EXPECT_EQ(one("binary").version, "2.0");
  EXPECT_EQ(one("nameless").version, "");
  EXPECT_EQ(one("dangling").version, "5.0");
}

TEST_F(Distributions, ReadsEggsInAllTheirForms) {
  write(site_ + "single-1.1.egg-info", "Metadata-Version: 1.0\nName: single\nVersion: 1.2\n");
  write(site_ + "folder-2.0-py3.11.egg-info/PKG-INFO", "Name: folder\nVersion: 2.1\n");
  write(site_ + "vm-0.1-py3.11-linux-x86_64.egg/EGG-INFO/PKG-INFO", "Name: vm\nVersion: 0.1\n");
  write(site_ + "zipped-0.2-py3.11.egg", "PK");
  write(site_ + "easy-install.pth",
        "./vm-0.1-py3.11-linux-x86_64.egg\n./zipped-0.2-py3.11.egg\n" + at("project") + "\n");
  write(site_ + "dev-thing.egg-link", at("project") + "\n../\n");
  write("project/dev_thing.egg-info/PKG-INFO", "Name: dev-thing\nVersion: 1.2\n");
  write(site_ + "lost.egg-link", at("gone") + "\n.\n");
  EXPECT_EQ(one("single").version, "1.2");
  EXPECT_EQ(one("folder").version, "2.1");
  EXPECT_EQ(one("vm").version, "0.1");
  EXPECT_EQ(one("zipped").version, "0.2");
  EXPECT_EQ(one("dev_thing").project, at("project"));
  EXPECT_TRUE(one("dev_thing").editable);
  EXPECT_TRUE(one("lost").editable);
}

TEST_F(Distributions, NamesTheCondaChannel) {
  install("conda");
  const std::string meta = "conda/conda-meta/";
  write("conda/lib/python3.11/site-packages/torch-2.5.1.dist-info/METADATA", "Name: torch\nVersion: 2.5.1\n");
  write("conda/lib/python3.11/site-packages/numpy-2.0.0.dist-info/METADATA", "Name: numpy\nVersion: 2.0.0\n");
  write("conda/lib/python3.11/site-packages/numpy-2.0.0.dist-info/INSTALLER", "conda");
  write("conda/lib/python3.11/site-packages/six-1.0.dist-info/INSTALLER", "pip");
  write(meta + "pytorch-2.5.1-cuda126_0.json",
        R"({"build": "x", "channel": "https://conda.example/conda-forge/linux-64"})");
  write(meta + "numpy-2.0.0-py311_0.json",
        "{\"a\": \"" + std::string(10000, 'x') + "\", \"channel\": \"defaults\"}");
  write(meta + "six-1.0-0.json", R"({"channel": "defaults"})");
  EXPECT_EQ(one("torch", "conda").conda_channel, "https://conda.example/conda-forge/linux-64");
  EXPECT_EQ(one("numpy", "conda").conda_channel, "defaults");
  EXPECT_EQ(one("six", "conda").conda_channel, "");  // pip put it over conda's
}

TEST_F(Distributions, UnreadableSitePackagesAreAFailure) {
  host_.denied = {at("venv/lib/python3.11/site-packages")};
  const auto probed = probe();
  EXPECT_EQ(probed.state, ProbeState::Failed);
  EXPECT_NE(probed.note.english().find("Permission denied; run as"), std::string::npos) << probed.note;
}

TEST_F(Distributions, ListsTheLibrariesOfARecord) {
  write(site_ + "nvidia/x/lib/libx.so.12", "");
  write(site_ + "nvidia/x/lib/liby.so", "");
  write(site_ + "nvidia_x-1.dist-info/RECORD",
        "nvidia/x/lib/libx.so.12,sha256=a,1\nnvidia/x/lib/liby.so,,\nnvidia/x/lib/libgone.so.3,,\nnvidia/x/"
        "a.sources,,\n"
        "nvidia/x/last.so");
  const auto libraries = shared_libraries_of(host_, one("nvidia-x"));
  EXPECT_EQ(libraries, (std::vector<std::string>{at(site_ + "nvidia/x/lib/libx.so.12"),
                                                 at(site_ + "nvidia/x/lib/liby.so")}));
}

}  // namespace
}  // namespace scankit::probes
