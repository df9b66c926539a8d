// SPDX-License-Identifier: Apache-2.0
#include "envspec/lock/install_metadata.h"

#include <gtest/gtest.h>

#include <fstream>

#include "doctor/base/files.h"
#include "envspec/index/index.h"
#include "envspec/lock/lock.h"

namespace scankit::envspec {
namespace {

TEST(Records, AUrlLosesItsUserAndItsFragment) {
  EXPECT_EQ(plain_url("https://me:secret@h.example/a/b%2Bc.whl#sha256=1"), "https://h.example/a/b%2Bc.whl");
  EXPECT_EQ(plain_url("https://h.example/a@1/b.whl?x=1"), "https://h.example/a@1/b.whl?x=1");
  EXPECT_EQ(plain_url("file:///home/me/x.whl"), "");
  EXPECT_EQ(plain_url("https://h.example/a b.whl"), "");
  EXPECT_EQ(plain_url("https://h.example/$(id).whl"), "");
  EXPECT_EQ(plain_url("x.whl"), "");
  EXPECT_EQ(file_name_of("https://h.example/torch-2.4.1%2Bcu121-cp311-cp311-linux_x86_64.whl#x"),
            "torch-2.4.1+cu121-cp311-cp311-linux_x86_64.whl");
  EXPECT_EQ(file_name_of("https://h.example/a%2Fb.whl"), "");
  EXPECT_EQ(file_name_of("https://h.example/a%0Ab.whl"), "");
}

TEST(Records, TellsTwoBuildsOfAVersionApartByTheirTags) {
  const std::vector<std::string> tags = {"cp311-cp311-manylinux2014_x86_64",
                                         "cp311-cp311-manylinux_2_17_x86_64"};
  EXPECT_TRUE(has_tags("numpy-1-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl", tags));
  EXPECT_FALSE(has_tags("numpy-1-cp311-cp311-manylinux_2_17_x86_64.whl", tags));
  EXPECT_FALSE(has_tags("numpy-1-cp312-cp312-manylinux_2_17_x86_64.manylinux2014_x86_64.whl", tags));
  EXPECT_FALSE(has_tags("numpy-1.tar.gz", tags));
}

TEST(Records, ReadTheHashOfASourceFromTheRefusal) {
  const IndexQuestion question{"mamba-ssm", "2.3.2.post1"};
  const std::string hash(64, 'a');
  const auto by_pip = read_source_hash(
      "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES\n    mamba-ssm==2.3.2.post1 from "
      "https://h.example/a/mamba_ssm-2.3.2.post1.tar.gz (from -r q.txt (line 1)):\n        Expected sha256 " +
          std::string(64, '0') + "\n             Got        " + hash + "\n",
      question);
  ASSERT_TRUE(by_pip);
  EXPECT_EQ(by_pip->file, "mamba_ssm-2.3.2.post1.tar.gz");
  EXPECT_EQ(by_pip->sha256, hash);
  EXPECT_EQ(by_pip->url, "https://h.example/a/mamba_ssm-2.3.2.post1.tar.gz");
  const auto by_uv =
      read_source_hash("  cause: Hash mismatch\n\n  Expected:\n    sha256:" + std::string(64, '0') +
                           "\n\n  Computed:\n    sha256:" + hash + "\n",
                       question);
  ASSERT_TRUE(by_uv);
  EXPECT_EQ(by_uv->file, "mamba_ssm-2.3.2.post1.tar.gz");
  EXPECT_EQ(by_uv->sha256, hash);
  EXPECT_EQ(by_uv->url, "");
  const auto by_log = read_source_hash(
      "DEBUG No cache entry for: https://h.example/simple/mamba-ssm/\nDEBUG No cache entry for: "
      "https://h.example/a/torch-2.3.2.post1.tar.gz\nDEBUG Found fresh response for: "
      "https://me:secret@h.example/a/Mamba_SSM-2.3.2.post1.zip\n  Computed:\n    sha256:" +
          hash + "\n",
      question);
  ASSERT_TRUE(by_log);
  EXPECT_EQ(by_log->url, "https://h.example/a/Mamba_SSM-2.3.2.post1.zip");
  EXPECT_EQ(by_log->file, "Mamba_SSM-2.3.2.post1.zip");
  for (const char* none : {"", "Computed:", "Got nothing", "Computed:\n  sha256:abc"})
    EXPECT_FALSE(read_source_hash(none, question)) << none;
}

class OnDisk : public testing::Test {
 protected:
  OnDisk() : folder_(*TemporaryDirectory::create("records")), host_(make_real_host()) {}
  void write(const std::string& path, const std::string& text) {
    const std::string file = folder_.path() + "/" + path;
    ASSERT_TRUE(make_directories(path_dirname(file)));
    std::ofstream(file) << text;
  }
  Distribution distribution() const {
    return {.name = "x", .version = "1", .path = folder_.path() + "/x-1.dist-info"};
  }
  // As pip leaves it behind; `more` is appended to RECORD.
  void install(const std::string& more) {
    write("x/a.py", "print()\n");
    write("x-1.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: cp38-abi3-linux_x86_64\n");
    write("x-1.dist-info/RECORD", "x/a.py,,\nx-1.dist-info/RECORD,,\n" + more);
  }
  TemporaryDirectory folder_;
  std::unique_ptr<Host> host_;
};

// maturin writes the compressed set of the file's name into one line.
TEST_F(OnDisk, ReadsACompressedTagAsTheTagsItStandsFor) {
  write("x-1.dist-info/WHEEL",
        "Wheel-Version: 1.0\nTag: cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64\n");
  const auto tags = installed_tags(*host_, distribution());
  EXPECT_EQ(tags, (std::vector<std::string>{"cp311-cp311-manylinux2014_x86_64",
                                            "cp311-cp311-manylinux_2_17_x86_64"}));
  EXPECT_TRUE(has_tags("tokenizers-0.20.3-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl", tags));
}

TEST_F(OnDisk, ReadsBothFormsOfAHash) {
  const std::string hash(64, 'a');
  write("x-1.dist-info/direct_url.json",
        R"({"url": "https://h.example/x-1-py3-none-any.whl", "archive_info": {"hash": "sha256=)" + hash +
            "\"}}");
  EXPECT_EQ(direct_url(*host_, distribution()).sha256, hash);
  write("x-1.dist-info/direct_url.json",
        R"({"url": "file:///w/x-1-py3-none-any.whl", "archive_info": {"hashes": {"sha256": ")" + hash +
            "\"}}}");
  const DirectUrl direct = direct_url(*host_, distribution());
  EXPECT_TRUE(direct.local && direct.archive);
  EXPECT_EQ(direct.sha256, hash);
  EXPECT_EQ(direct.url, "");
  for (const char* broken :
       {"", "[1]", "{\"url\": 3, \"archive_info\": 4}", "{\"archive_info\": {\"hashes\": []}}"}) {
    write("x-1.dist-info/direct_url.json", broken);
    EXPECT_EQ(direct_url(*host_, distribution()).sha256, "");
  }
}

TEST_F(OnDisk, ReadsWhatCondaInstalled) {
  write("conda-meta/numpy-2-py311_0.json",
        R"({"name": "numpy", "version": "2", "build": "py311_0", "subdir": "linux-64",
    "channel": "https://c.example/t/tk-1/conda-forge/linux-64", "url": "https://c.example/t/tk-1/conda-forge/linux-64/numpy.conda",
    "sha256": ")" +
            std::string(64, 'b') + R"(", "md5": "12"})");
  write("conda-meta/history", "");
  write("conda-meta/bad.json", "[");
  const auto packages = conda_packages(*host_, folder_.path());
  ASSERT_EQ(packages.size(), 1U);
  EXPECT_EQ(packages[0].channel, "conda-forge");
  EXPECT_EQ(packages[0].url, "https://c.example/conda-forge/linux-64/numpy.conda");
  EXPECT_EQ(packages[0].sha256, std::string(64, 'b'));
}

TEST_F(OnDisk, NamesAChannelAsAnEnvironmentFileDoes) {
  const std::pair<const char*, const char*> channels[] = {
      {"https://c.example/conda-forge/", "conda-forge"},  // rattler's
      {"https://c.example/conda-forge", "conda-forge"},
      {"https://c.example/conda-forge/label/rc/linux-64", "conda-forge/label/rc"},
      {"https://me:secret@c.example:8443/", "https://c.example:8443"},
      {"https://c.example/linux-64", "https://c.example"},
      {"defaults", "defaults"},
      {"", ""},
  };
  for (const auto& [asked, name] : channels) {
    write("conda-meta/a-1-0.json",
          R"({"name": "a", "version": "1", "build": "0", "subdir": "linux-64", "channel": ")" +
              std::string(asked) + "\"}");
    EXPECT_EQ(conda_packages(*host_, folder_.path()).at(0).channel, name) << asked;
  }
}

TEST_F(OnDisk, MakesNoWheelOfFilesThatTheirRecordDoesNotVouchFor) {
  install("");
  auto wheel = repack(*host_, distribution());
  ASSERT_FALSE(wheel);
  EXPECT_EQ(english(wheel.error().message),
            "x cannot be repacked as a wheel: x/a.py does not match its RECORD");
  install("../../etc/passwd,,\n");
  write("x-1.dist-info/RECORD", "../../etc/passwd,,\n");
  wheel = repack(*host_, distribution());
  ASSERT_FALSE(wheel);
  EXPECT_EQ(english(wheel.error().message),
            "x cannot be repacked as a wheel: ../../etc/passwd is outside its directory");
}

TEST(UvPylock, ReadsWheelsAndLeavesSourcesOut) {
  const std::string a(64, 'a'), b(64, 'b');
  const auto found = read_uv_pylock(
      "lock-version = \"1.0\" # comment { \"\ncreated-by = \"uv\"\n\n[[packages]]\nname = "
      "\"Alpha_One\"\nversion = \"1\"\n"
      "sdist = { url = \"https://h/alpha-1.tar.gz\", size = 7, hashes = { sha256 = \"" +
      b +
      "\" } }\n"
      "wheels = [\n    { url = \"https://u:p@h/alpha-1-py3-none-any.whl\", upload-time = "
      "2026-01-26T04:13:18Z, size = 65638, "
      "hashes = { sha256 = \"" +
      a +
      "\" } },\n    { url = \"https://h/alpha-1-cp311-cp311-linux_x86_64.whl\", "
      "hashes = { sha256 = \"" +
      b +
      "\" } },\n]\n\n[[packages]]\nname = \"beta\"\nversion = \"2\"\n"
      "wheels = [{ url = \"https://h/beta-2-py3-none-any.whl\", hashes = { md5 = \"x\" } }]\n");
  ASSERT_EQ(found.size(), 1U);
  const auto& wheels = found.at("alpha-one");
  ASSERT_EQ(wheels.size(), 2U);
  EXPECT_EQ(wheels[0].file, "alpha-1-py3-none-any.whl");
  EXPECT_EQ(wheels[0].url, "https://h/alpha-1-py3-none-any.whl");
  EXPECT_EQ(wheels[0].size, 65638U);
  EXPECT_EQ(wheels[0].sha256, a);
  EXPECT_EQ(wheels[1].size, 0U);
  for (const char* broken : {"", "{{{{", "}}}}", "\"", "name = \"", "[[packages]]\nname = \"x\\"})
    EXPECT_TRUE(read_uv_pylock(broken).empty());
}

}  // namespace
}  // namespace scankit::envspec
