// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>

#include "builder/installer/fetch/wheel_fetcher.h"

namespace scankit::installer {
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

namespace {

const std::string kHash(64, 'a');

TEST(SimpleIndex, ResolvesReferences) {
  const std::string base = "https://u:p@host:8/simple/x/?q=1";
  EXPECT_EQ(resolve_url(base, "x-1.whl"), "https://u:p@host:8/simple/x/x-1.whl");
  EXPECT_EQ(resolve_url(base, "../../files/x-1.whl#sha256=1"), "https://u:p@host:8/files/x-1.whl#sha256=1");
  EXPECT_EQ(resolve_url(base, "/files/x.whl?t=1"), "https://u:p@host:8/files/x.whl?t=1");
  EXPECT_EQ(resolve_url(base, "//other/x.whl"), "https://other/x.whl");
  EXPECT_EQ(resolve_url(base, "https://host:8/x.whl"), "https://u:p@host:8/x.whl");
  // Another host, another scheme: the password stays here.
  EXPECT_EQ(resolve_url(base, "https://files/x.whl"), "https://files/x.whl");
  EXPECT_EQ(resolve_url(base, "http://host:8/x.whl"), "http://host:8/x.whl");
  EXPECT_EQ(resolve_url(base, "../../../../x.whl"), "https://u:p@host:8/x.whl");
  EXPECT_EQ(project_url("https://host/simple/", "a-b"), "https://host/simple/a-b/");
}

TEST(SimpleIndex, ReadsHtml) {
  const std::string page =
      "<!DOCTYPE html><html><body>\n<a href=\"../../f/x-1-py3-none-any.whl#sha256=" + kHash +
      "\" data-requires-python=\"&gt;=3.8\">x</a><br/>\n<A HREF='https://h/y%201.whl?a=1&amp;b=2'>y</A>"
      "<a\n data-yanked=\"broken\"  href = z.tar.gz >z</a><abbr href=no>n</abbr><a name=x></a></body>";
  const auto files = parse_index_page(page, "https://i/simple/x/");
  ASSERT_TRUE(files) << english(files.error().message);
  ASSERT_EQ(files->size(), 3u);
  EXPECT_EQ((*files)[0].url, "https://i/f/x-1-py3-none-any.whl");
  EXPECT_EQ((*files)[0].name, "x-1-py3-none-any.whl");
  EXPECT_EQ((*files)[0].sha256, kHash);
  EXPECT_EQ((*files)[1].url, "https://h/y%201.whl?a=1&b=2");
  EXPECT_EQ((*files)[1].sha256, "");
  EXPECT_FALSE((*files)[1].yanked);
  EXPECT_EQ((*files)[2].url, "https://i/simple/x/z.tar.gz");
  EXPECT_TRUE((*files)[2].yanked);
}

TEST(SimpleIndex, FollowsABase) {
  const auto files =
      parse_index_page("<base href=\"/other/\"><a href=\"a.whl\">a</a>", "https://i/simple/x/");
  ASSERT_TRUE(files && files->size() == 1u);
  EXPECT_EQ(files->front().url, "https://i/other/a.whl");
}

TEST(SimpleIndex, ReadsJson) {
  const std::string page = R"({"meta": {"api-version": "1.1"}, "files": [
    {"filename": "x-1.whl", "url": "../f/abc", "hashes": {"sha256": ")" +
                           kHash + R"("}, "yanked": false},
    {"filename": "x-2.whl", "url": "https://h/x-2.whl", "hashes": {}, "yanked": "why"},
    {"filename": 3, "url": 4}, 5]})";
  const auto files = parse_index_page(page, "https://i/simple/x/");
  ASSERT_TRUE(files) << english(files.error().message);
  ASSERT_EQ(files->size(), 2u);
  EXPECT_EQ((*files)[0].name, "x-1.whl");
  EXPECT_EQ((*files)[0].url, "https://i/simple/f/abc");
  EXPECT_EQ((*files)[0].sha256, kHash);
  EXPECT_FALSE((*files)[0].yanked);
  EXPECT_TRUE((*files)[1].yanked);
}

TEST(SimpleIndex, OtherPagesAreErrors) {
  for (const char* page : {"", "  \n", "{\"files\": 3}", "{", "plain text", "\x1f\x8b"})
    EXPECT_FALSE(parse_index_page(page, "https://i/")) << page;
}

// Any cut of a page ends, and reads nothing outside it.
TEST(SimpleIndex, CutPagesAreNoTrouble) {
  const std::string page = "<a href=\"x-1.whl#sha256=1\" data-yanked>&amp;<a href='y'><base href=/z/ x = \"";
  for (std::size_t length = 1; length <= page.size(); ++length)
    EXPECT_TRUE(parse_index_page(page.substr(0, length), "https://i/")) << length;
}

}  // namespace

}  // namespace scankit::installer
