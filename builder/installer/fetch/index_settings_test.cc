// SPDX-License-Identifier: Apache-2.0
#include "builder/installer/fetch/index_settings.h"

#include <gtest/gtest.h>

#include <map>

namespace scankit {
namespace {

// A machine of variables and files alone.
class Configured : public Host {
 public:
  std::map<std::string, std::string> variables{{"HOME", "/home/u"}}, files;

  Result<std::string> read_file(const std::string& path, std::size_t) const override {
    const auto found = files.find(path);
    if (found == files.end()) return Error{Errc::NotFound, path, ""};
    return found->second;
  }
  std::optional<std::string> env(std::string_view name) const override {
    const auto found = variables.find(std::string(name));
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  }
  Result<std::unique_ptr<ByteSource>> open(const std::string&) const override { return Error{}; }
  Result<std::vector<DirEntry>> list(const std::string&) const override { return Error{}; }
  Result<FileInfo> stat(const std::string&) const override { return Error{}; }
  Result<FileInfo> lstat(const std::string&) const override { return Error{}; }
  Result<std::string> readlink(const std::string&) const override { return Error{}; }
  Result<std::string> realpath(const std::string&) const override { return Error{}; }
  bool is_live() const override { return false; }

  std::string asked() const {
    std::string text;
    for (const auto& index : index_settings(*this).indexes) text += index.url + " (" + index.from + ")\n";
    return text;
  }
};

TEST(IndexSettings, NobodyNamesOne) { EXPECT_EQ(Configured().asked(), ""); }

TEST(IndexSettings, AVariableBeatsTheFiles) {
  Configured host;
  host.files["/etc/pip.conf"] = "[global]\nindex-url = https://site/simple\n";
  EXPECT_EQ(host.asked(), "https://site/simple (/etc/pip.conf)\n");
  host.variables["PIP_INDEX_URL"] = "https://mine/simple";
  EXPECT_EQ(host.asked(), "https://mine/simple (PIP_INDEX_URL)\n");
}

TEST(IndexSettings, TheUsersFileBeatsTheSystems) {
  Configured host;
  host.files["/etc/pip.conf"] = "[global]\nindex-url = https://site/simple\ncert = /site.pem\n";
  host.files["/home/u/.config/pip/pip.conf"] =
      "# ours\n[install]\nindex_url: https://mine/simple\nextra-index-url =\n    https://a/simple\n"
      "    https://b/simple https://mine/simple\n[list]\nindex-url = https://no/simple\n";
  EXPECT_EQ(host.asked(),
            "https://mine/simple (/home/u/.config/pip/pip.conf)\n"
            "https://a/simple (/home/u/.config/pip/pip.conf)\n"
            "https://b/simple (/home/u/.config/pip/pip.conf)\n");
  EXPECT_EQ(index_settings(host).certificates, "/site.pem");
}

TEST(IndexSettings, ReadsUvsToml) {
  Configured host;
  host.files["/home/u/.config/uv/uv.toml"] =
      "extra-index-url = [\"https://a/simple\", 'https://b/simple'] # both\n\n"
      "[[index]]\nname = \"x\"\nurl = \"https://c/simple\"\n\n"
      "[[index]]\nurl = \"https://main/simple\"\ndefault = true\n[tool]\nindex-url = \"https://no/simple\"\n";
  EXPECT_EQ(host.asked(),
            "https://main/simple (/home/u/.config/uv/uv.toml)\n"
            "https://a/simple (/home/u/.config/uv/uv.toml)\n"
            "https://b/simple (/home/u/.config/uv/uv.toml)\n"
            "https://c/simple (/home/u/.config/uv/uv.toml)\n");
  host.files["/home/u/.config/uv/uv.toml"] = "index-url = \"https://old/simple\"\n";
  EXPECT_EQ(host.asked(), "https://old/simple (/home/u/.config/uv/uv.toml)\n");
  host.variables["UV_DEFAULT_INDEX"] = "https://new/simple";
  host.variables["UV_INDEX"] = "lab=https://lab/simple https://other/simple?a=b";
  EXPECT_EQ(host.asked(),
            "https://new/simple (UV_DEFAULT_INDEX)\nhttps://lab/simple (UV_INDEX)\n"
            "https://other/simple?a=b (UV_INDEX)\n");
}

TEST(IndexSettings, HalfWrittenFilesAreNoTrouble) {
  Configured host;
  host.files["/etc/pip.conf"] = "[global\nindex-url\n= x\n   dangling\n[global]\nindex-url =\n";
  host.files["/etc/uv/uv.toml"] = "[[index]]\nurl = \"https://open\n[[index]]\nurl = 3\nindex-url = [\n";
  EXPECT_EQ(host.asked(), "");
}

}  // namespace
}  // namespace scankit
