// SPDX-License-Identifier: Apache-2.0
#include "builder/installer/fetch/simple_index.h"

#include <gtest/gtest.h>

namespace scankit {
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
  ASSERT_TRUE(files) << files.error().message;
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
  ASSERT_TRUE(files) << files.error().message;
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
}  // namespace scankit
