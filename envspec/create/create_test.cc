// SPDX-License-Identifier: Apache-2.0
#include "envspec/create/create.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

namespace scankit::envspec {
namespace {

void put(const std::string& path, const std::string& text, unsigned mode = 0644) {
  ASSERT_TRUE(make_directories(path_dirname(path)));
  ASSERT_TRUE(write_file_atomically(path, text, mode));
}

std::string text_of(const std::string& path) { return read_whole_file(path).value_or("(missing)"); }

class CreateTest : public testing::Test {
 protected:
  CreateTest() : work_(TemporaryDirectory::create("scankit-create-test").value()) {}
  std::string at(const std::string& inner) const { return path_join(work_.path(), inner); }

  const TemporaryDirectory work_;
};

TEST_F(CreateTest, WhatInstallersWriteIsMoved) {
  const std::string made = at("aside/env"), site = made + "/lib/python3.11/site-packages/";
  put(made + "/bin/tool", "#!" + made + "/bin/python\nprint('x')\n", 0755);
  put(made + "/bin/activate", "VIRTUAL_ENV='" + made + "'\n");
  put(made + "/pyvenv.cfg", "command = python -m venv " + made + "\n");
  put(site + "tool.py", "print('x')\n");
  put(site + "__pycache__/tool.cpython-311.pyc", "byte code of " + site + "tool.py");
  put(site + "tool-1.0.dist-info/RECORD", "../../../bin/tool,sha256=old,1\ntool.py,sha256=kept,11\n");
  std::filesystem::create_symlink(made + "/lib", made + "/lib64");

  const auto rewritten = relocate(made, made, "/srv/new");
  ASSERT_TRUE(rewritten) << rewritten.error().message;
  EXPECT_EQ(rewritten->size(), 3u);
  EXPECT_EQ(text_of(made + "/bin/tool"), "#!/srv/new/bin/python\nprint('x')\n");
  EXPECT_EQ(make_real_host()->stat(made + "/bin/tool")->mode & 0111, 0111u);
  EXPECT_EQ(text_of(made + "/bin/activate"), "VIRTUAL_ENV='/srv/new'\n");
  EXPECT_EQ(std::filesystem::read_symlink(made + "/lib64"), "/srv/new/lib");
  EXPECT_FALSE(std::filesystem::exists(site + "__pycache__"));
  const std::string record = text_of(site + "tool-1.0.dist-info/RECORD");
  EXPECT_NE(record.find("../../../bin/tool,sha256="), std::string::npos);
  EXPECT_NE(record.find(",33\n"), std::string::npos) << record;
  EXPECT_NE(record.find("tool.py,sha256=kept,11\n"), std::string::npos) << record;
}

TEST_F(CreateTest, AnyOtherFileThatNamesThePathIsReported) {
  const std::string made = at("aside/env"), file = "lib/python3.11/site-packages/built.so";
  put(path_join(made, file), std::string("\x7f"
                                         "ELF\0",
                                         5) +
                                 made + "/share");
  const auto rewritten = relocate(made, made, "/srv/new");
  ASSERT_FALSE(rewritten);
  EXPECT_EQ(rewritten.error().message.english().find(file), 0u) << rewritten.error().message;
}

TEST_F(CreateTest, ARecordTellsWhatChangedAndWasNotEdited) {
  put(at("env/site/a.so"), "1234");
  EnvironmentRecord record;
  record.lock_sha256 = sha256_hex("lock");
  record.site = "site";
  record.content["a"] = sha256_hex("content");
  record.proof = {{"doctor", "not_verified", scankit::message("no GPU found"), 1}};
  const auto info = make_real_host()->stat(at("env/site/a.so"));
  record.libraries = {{"a.so", sha256_hex("1234"), info->size, info->mtime_ns}};
  put(path_join(at("env"), kRecordFile), record_to_json(record));

  const auto read = read_record(at("env"));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->signature(), record.signature());
  EXPECT_EQ(read->proof.front().detail.english(), "no GPU found");
  EXPECT_TRUE(changed_since(at("env"), *read).empty());
  put(at("env/site/a.so"), "12345");
  EXPECT_EQ(changed_since(at("env"), *read), std::vector<std::string>{"a.so"});

  std::string edited = record_to_json(record);
  edited.replace(edited.find(record.content["a"]), 4, "0000");
  put(path_join(at("env"), kRecordFile), edited);
  EXPECT_EQ(read_record(at("env")).error().code, Errc::Malformed);
  record.libraries[0].path = "../../../etc/passwd";
  put(path_join(at("env"), kRecordFile), record_to_json(record));
  EXPECT_EQ(read_record(at("env")).error().code, Errc::Malformed);
  for (const char* text : {"", "[]", "{}", "{\"schema\": 1, \"content\": 3, \"libraries\": [1, null]}"}) {
    put(path_join(at("env"), kRecordFile), text);
    EXPECT_EQ(read_record(at("env")).error().code, Errc::Malformed) << text;
  }
}

TEST_F(CreateTest, OnlyAnEmptyPlaceIsTaken) {
  put(at("taken/file"), "");
  EXPECT_EQ(check_new_folder(at("taken")).error().code, Errc::InvalidArgument);
  EXPECT_EQ(check_new_folder(at("taken/file")).error().code, Errc::InvalidArgument);
  EXPECT_EQ(check_new_folder(at("no/where")).error().code, Errc::InvalidArgument);
  std::filesystem::create_symlink("nowhere", at("link"));
  EXPECT_EQ(check_new_folder(at("link")).error().code, Errc::InvalidArgument);
  ASSERT_TRUE(make_directories(at("empty")));
  std::vector<std::string> removed;
  const auto aside = Aside::begin(at("empty"), removed);
  ASSERT_TRUE(aside) << aside.error().message;
  put(path_join(aside->environment(), "pyvenv.cfg"), "new\n");
  put(at("empty/theirs"), "");  // in the meantime
  EXPECT_EQ(aside->move().error().code, Errc::Conflict);
  std::filesystem::remove(at("empty/theirs"));
  ASSERT_TRUE(aside->move());
  EXPECT_EQ(text_of(at("empty/pyvenv.cfg")), "new\n");
}

TEST(CreateSizes, AreReadable) {
  EXPECT_EQ(size_in_words(1'340'000'000), "1.3 GB");
  EXPECT_EQ(size_in_words(12'400'000), "12 MB");
  EXPECT_EQ(size_in_words(900), "1 kB");
}

}  // namespace
}  // namespace scankit::envspec
