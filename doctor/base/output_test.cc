// SPDX-License-Identifier: Apache-2.0
// What the user names is written as it is: files, links,
// devices, FIFOs, descriptors; and read without waiting.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <future>

#include "doctor/base/files.h"

namespace scankit {
namespace {

class Output : public testing::Test {
 protected:
  Output() : folder_(*TemporaryDirectory::create("scankit-output-test")) {}
  std::string at(const std::string& name) const { return path_join(folder_.path(), name); }
  static struct ::stat look(const std::string& path) {
    struct ::stat info {};
    EXPECT_EQ(::lstat(path.c_str(), &info), 0) << path;
    return info;
  }
  std::size_t files_there() const {
    using std::filesystem::directory_iterator;
    return static_cast<std::size_t>(std::distance(directory_iterator(folder_.path()), directory_iterator()));
  }

 private:
  TemporaryDirectory folder_;
};

class Umask {
 public:
  explicit Umask(mode_t mask) : before_(::umask(mask)) {}
  Umask(const Umask&) = delete;
  Umask& operator=(const Umask&) = delete;
  ~Umask() { ::umask(before_); }

 private:
  mode_t before_;
};

TEST_F(Output, ADeviceStaysADevice) {
  const std::string null = at("null");
  if (::mknod(null.c_str(), S_IFCHR | 0666, makedev(1, 3)) != 0) GTEST_SKIP() << "only root makes devices";
  EXPECT_TRUE(write_output(null, "lost"));
  EXPECT_TRUE(S_ISCHR(look(null).st_mode));
  const std::string link = at("link");
  ASSERT_EQ(::symlink("null", link.c_str()), 0);
  EXPECT_TRUE(write_output(link, "lost"));
  EXPECT_TRUE(S_ISLNK(look(link).st_mode));
  EXPECT_TRUE(S_ISCHR(look(null).st_mode));
  EXPECT_EQ(files_there(), 2u);
}

TEST_F(Output, AFullDeviceIsAFailedWrite) {
  const auto written = write_output("/dev/full", "one");
  ASSERT_FALSE(written);
  EXPECT_EQ(english(written.error().message), "cannot write /dev/full: No space left on device");
  EXPECT_TRUE(S_ISCHR(look("/dev/full").st_mode));
}

TEST_F(Output, ALinkIsFollowedAndItsFileReplaced) {
  ASSERT_TRUE(make_directories(at("there")));
  ASSERT_TRUE(write_file_atomically(at("there/file"), "old", 0600));
  ASSERT_EQ(::symlink("there/file", at("one").c_str()), 0);
  ASSERT_EQ(::symlink("one", at("two").c_str()), 0);
  ASSERT_TRUE(write_output(at("two"), "new"));
  EXPECT_TRUE(S_ISLNK(look(at("two")).st_mode));
  EXPECT_TRUE(S_ISLNK(look(at("one")).st_mode));
  EXPECT_EQ(read_whole_file(at("there/file")).value_or("?"), "new");
  EXPECT_EQ(look(at("there/file")).st_mode & 0777, 0600u) << "the mode that its owner chose";
  ASSERT_EQ(::symlink("there/none", at("three").c_str()), 0);
  ASSERT_TRUE(write_output(at("three"), "made"));
  EXPECT_EQ(read_whole_file(at("there/none")).value_or("?"), "made");
  ASSERT_EQ(::symlink("loop", at("loop").c_str()), 0);
  EXPECT_FALSE(write_output(at("loop"), ""));
}

// It was written in place where no file could be put aside: on
// a full disk that left neither the old nor the new.
TEST_F(Output, WhatDoesNotFitLeavesTheOldBytes) {
  const std::string path = at("report.json"), old = "old";
  ASSERT_TRUE(write_output(path, old));
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const struct rlimit small { 1024, before.rlim_max };
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto written = write_output(path, std::string(4096, 'n'));
  ::setrlimit(RLIMIT_FSIZE, &before);
  (void)std::signal(SIGXFSZ, handler);
  EXPECT_FALSE(written);
  EXPECT_EQ(read_whole_file(path).value_or(""), old);
  EXPECT_EQ(files_there(), 1u);
}

TEST_F(Output, ALinkOfSomebodyElseInASharedFolderIsNotFollowed) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root makes links of somebody else";
  const std::string shared = at("shared"), link = at("shared/report.html"), precious = at("precious");
  ASSERT_TRUE(make_directories(shared));
  ASSERT_EQ(::chmod(shared.c_str(), 01777), 0);
  ASSERT_TRUE(write_file_atomically(precious, "keys"));
  ASSERT_EQ(::symlink(precious.c_str(), link.c_str()), 0);
  ASSERT_EQ(::lchown(link.c_str(), 12345, 12345), 0);
  const auto written = write_output(link, "report");
  ASSERT_FALSE(written);
  EXPECT_NE(english(written.error().message).find("a link of user 12345"), std::string::npos)
      << english(written.error().message);
  EXPECT_EQ(read_whole_file(precious).value_or("?"), "keys");
}

TEST_F(Output, AFifoGetsTheBytes) {
  const std::string fifo = at("fifo");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(english(write_output(fifo, "x").error().message),
            "cannot write " + fifo + ": no process is reading from it");
  const Descriptor reader(::open(fifo.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  EXPECT_TRUE(write_output(fifo, "report"));
  char got[16] = "";
  EXPECT_EQ(::read(reader.get(), got, sizeof got), 6);
  EXPECT_STREQ(got, "report");
  EXPECT_TRUE(S_ISFIFO(look(fifo).st_mode));
}

// Behind what was written to it before, also where it is a file: a second open would begin at its start.
TEST_F(Output, ADescriptorIsWrittenIntoAndNotReplaced) {
  const Descriptor file(::open(at("log").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(::write(file.get(), "before ", 7), 7);
  ASSERT_TRUE(write_output("/proc/self/fd/" + std::to_string(file.get()), "report"));
  ASSERT_TRUE(write_output("/dev/fd/" + std::to_string(file.get()), " twice"));
  ASSERT_EQ(::symlink(("/proc/self/fd/" + std::to_string(file.get())).c_str(), at("link").c_str()), 0);
  ASSERT_TRUE(write_output(at("link"), ", by a link"));
  EXPECT_EQ(read_whole_file(at("log")).value_or("?"), "before report twice, by a link");
}

TEST_F(Output, NewFilesAndFoldersAreTheOwnersWhateverTheUmask) {
  for (const mode_t mask : {0U, 002U, 022U, 077U}) {
    const Umask here(mask);
    const std::string name = std::to_string(mask), file = at(name + "/deep/file");
    ASSERT_TRUE(make_directories(at(name + "/deep")));
    ASSERT_TRUE(write_output(file, ""));
    for (const std::string& path : {at(name), at(name + "/deep"), file}) {
      EXPECT_EQ(look(path).st_mode & 022U, 0u) << path;
      EXPECT_EQ(look(path).st_mode & mask, 0u) << path;
    }
  }
}

TEST_F(Output, OnlyAFileTakesAModule) {
  EXPECT_EQ(regular_output(at("new.so")).value_or("?"), at("new.so"));
  ASSERT_EQ(::symlink("new.so", at("link.so").c_str()), 0);
  EXPECT_EQ(regular_output(at("link.so")).value_or("?"), at("new.so"));
  for (const char* wrong : {"/dev/null", "/dev/stdout", "/"})
    EXPECT_EQ(regular_output(wrong).error().code, Errc::InvalidArgument) << wrong;
}

// Each would keep a plain open(2) or read(2) for ever.
TEST_F(Output, ReadingNeverWaitsForWhatIsNoFile) {
  ASSERT_EQ(::mkfifo(at("fifo").c_str(), 0600), 0);
  const Descriptor listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, at("socket").c_str(), sizeof(address.sun_path) - 1);
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  auto all = std::async(std::launch::async, [&] {
    for (const std::string& path : {at("fifo"), at("socket"), std::string("/dev/zero"), std::string("/")}) {
      EXPECT_FALSE(read_whole_file(path)) << path;
      EXPECT_FALSE(read_whole_file(path, 100, Accept::FilesAndPipes)) << path;
      EXPECT_FALSE(sha256_file(path)) << path;
    }
  });
  ASSERT_EQ(all.wait_for(std::chrono::seconds(20)), std::future_status::ready) << "it hangs";
  EXPECT_EQ(english(read_whole_file(at("fifo")).error().message),
            "cannot read " + at("fifo") + ": it is a FIFO and not a file");
  EXPECT_EQ(read_whole_file("/dev/null").value_or("?"), "");
}

// bash makes a pipe of `<(command)`.
TEST_F(Output, AShellsPipeIsReadWhereTheUserNamesIt) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const Descriptor from(ends[0]);
  ASSERT_EQ(::write(ends[1], "facts", 5), 5);
  ::close(ends[1]);
  const std::string name = "/dev/fd/" + std::to_string(from.get());
  EXPECT_FALSE(read_whole_file(name));
  EXPECT_EQ(read_whole_file(name, 100, Accept::FilesAndPipes).value_or("?"), "facts");
}

}  // namespace
}  // namespace scankit
