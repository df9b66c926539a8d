// SPDX-License-Identifier: Apache-2.0
// Whatever a reader is given, twice as much of it may take twice the time and memory, not four times: an
// input of some hundred kilobytes must not hold up whoever examines it. A reader may also refuse.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <fstream>

#include "doctor/base/files.h"
#include "doctor/elf/process_image.h"
#include "doctor/host/host.h"
#include "doctor/logs/explainer.h"
#include "doctor/model/redact.h"
#include "doctor/model/snapshot.h"
#include "doctor/probes/imports/importers.h"
#include "doctor/probes/packages/distributions.h"
#include "doctor/probes/packages/packages.h"
#include "doctor/probes/packages/requirements.h"
#include "doctor/probes/python/sys_path.h"
#include "doctor/probes/target/wheel.h"
#include "doctor/probes/target/zip_test.h"
#include "doctor/tests/growth/hostile_elf.h"
#include "doctor/tests/growth/measure.h"

namespace scankit {
namespace {
using growth::Family;
using growth::numbered;
using growth::repeated;
using growth::texts;

class Growth : public testing::Test {
 protected:
  void expect_linear(const std::vector<Family>& families) {
    for (const Family& family : families) EXPECT_EQ(growth::growth_problem(family), "");
  }
  std::string write(const std::string& name, const std::string& bytes) const {
    const std::string path = path_join(scratch_.path(), name);
    EXPECT_TRUE(make_directories(path_dirname(path)));
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  // A reader of a file below the scratch folder.
  Family file(const std::string& reader, const std::string& input, std::size_t largest,
              const std::string& name, const std::function<std::string(std::size_t)>& bytes,
              const std::function<void(const std::string&)>& read) const {
    return {reader, input, 64, largest, [this, name, bytes, read](std::size_t n) {
              return [path = write(name, bytes(n)), read] { read(path); };
            }};
  }
  TemporaryDirectory scratch_ = std::move(TemporaryDirectory::create("scankit-growth")).value();
  std::unique_ptr<Host> host_ = make_real_host();
};

Snapshot with_text(const std::string& text) {
  Snapshot snapshot;
  snapshot.environment["NOTE"] = text;
  return snapshot;
}

// Without this, a table of which no line grows would say nothing.
TEST(GrowthItself, IsSeenOfAReaderThatComparesEachWithEach) {
  const auto compares = [](const std::string& text) {
    std::size_t equal = 0;
    for (const char& a : text)
      for (const char& b : text) equal += static_cast<std::size_t>(a == b && &a != &b);
    EXPECT_GT(equal, 0u);
  };
  for (const Family& family : texts("each with each", {"ab"}, 60'000, compares))
    EXPECT_NE(growth::growth_problem(family), "");
}

TEST_F(Growth, OfRedaction) {
  const Owner owner{.users = {"zelda"}, .homes = {"/data/people/zelda"}, .hosts = {"node17.corp.example"}};
  expect_linear(texts("redaction",
                      {"token",
                       "token=",
                       "password ",
                       "password='",
                       "a-token-",
                       "a://b:x/",
                       "://",
                       "http://a:b/?k@",
                       "u#:p@h#.a ",
                       "a@",
                       "a@b:~",
                       "/home/",
                       "/home/u# ",
                       "C:/Users/A B ",
                       "~a#/",
                       "/pip-a",
                       "1.2.3.4 ",
                       "1.2.3.4.",
                       "a:b:",
                       "::",
                       "00-",
                       "GPU-",
                       "-----BEGIN PRIVATE KEY",
                       "eyJ-",
                       "srun: error: n#:",
                       "node-#.corp.example ",
                       "zelda-",
                       "data/people/",
                       "Cookie: ",
                       "machine a login b ",
                       "[a#:1]",
                       "\\\"",
                       "12:34:56 a b["},
                      200'000, [owner](const std::string& text) { (void)redacted(with_text(text), owner); }));
  expect_linear({{"redaction", "many variables that name homes", 64, 16'000, [owner](std::size_t n) {
                    Snapshot snapshot;
                    for (std::size_t i = 0; i < n; ++i)
                      snapshot.environment["V" + std::to_string(i)] =
                          "/home/user-" + std::to_string(i) + "x/y";
                    return [snapshot, owner] { (void)redacted(snapshot, owner); };
                  }}});
}

TEST_F(Growth, OfSnapshots) {
  const auto read = [](const std::string& text) { (void)snapshot_from_json(text); };
  std::vector<Family> families = texts("snapshot", {"[", "{\"a\":", "\"", "1"}, 8u << 20, read);
  const auto list = [&](const std::string& what, const std::string& head, const std::string& piece,
                        std::size_t most = 200'000) {
    families.push_back({"snapshot", what, 64, most, [=](std::size_t n) {
                          return
                              [text = head + repeated(piece, n) + piece.substr(0, piece.size() - 1) + "]}}",
                               read] { read(text); };
                        }});
  };
  list("objects", R"({"schema":1,"x":{"value":[)", "{},");
  list("texts", R"({"schema":1,"x":{"value":[)", "\"\",");
  list(
      "extensions", R"({"schema":1,"extensions":{"state":"present","value":[)", "{},",
      // 1.7 KiB each: a block above 32 MiB comes from mmap(2) anew each time, and its page faults are no growth.
      4096);
  list("same keys", R"({"schema":1,"x":{"value":[)", "{\"a\":{\"a\":1}},");
  expect_linear(families);
}

TEST_F(Growth, OfLogs) {
  expect_linear(texts("log",
                      {"x", "RuntimeError: CUDA error: no kernel image is available\n",
                       "ImportError: x.so: undefined symbol: _Z#v\n", "Traceback (most recent call last):\n",
                       "  File \"/a/torch/__init__.py\", line #\n", "a@b:~/x$ ls\n", "\x1b[31m", "\r",
                       "error: command 'gcc' failed with exit code 1\n"},
                      200'000, [](const std::string& text) { (void)logs::explain_text(text); }));
}

TEST_F(Growth, OfPackageSources) {
  expect_linear(texts("package source",
                      {"import a\n", "import a#\n", "from . import a#\n", "import a; a.b(a)\n", "a(", "(",
                       "a.", "if a:\n ", "a = ", "def f#(a, b=1):\n  return f#\n", "\"\"\"", "\\\n",
                       "try: import a#\nexcept: a# = None\n", "lambda a:", "import a as b\nif b: b()\n"},
                      120'000, [](const std::string& text) {
                        (void)probes::scan_package_file("import a\n" + text, "p.q", true);
                      }));
}

TEST_F(Growth, OfImportLines) {
  expect_linear(texts("import lines",
                      {"import a\n", "if b:\n import a\n", " import a\n", "try:\n import a\n",
                       "except E:\n a = None\n", "def f():\n"},
                      60'000,
                      [](const std::string& text) { (void)probes::scan_imports("try:\n" + text, {"a"}); }));
}

// The text before makes every use one that something asks before, so that none of them ends the search.
TEST_F(Growth, OfUsesOfAnImport) {
  const std::string head = "import a\ndef t():\n  raise E\ndef f():\n  t()\n";
  expect_linear(texts("uses of an import",
                      {"  a.b()\n", "  t()\n", "  f()\n", "def g#():\n  t()\n  a.b()\n", "import a\n",
                       "def g#():\n", "  g#()\n  a.b()\n"},
                      60'000,
                      [head](const std::string& text) { (void)probes::unguarded_uses(head + text, {"a"}); }));
}

TEST_F(Growth, OfWheels) {
  const auto unpack = [this](const std::string& path) {
    (void)probes::unpack_wheel(path, scratch_.path() + "/out");
  };
  const test::Entry about{"m-1.dist-info/WHEEL", "Tag: py3-none-any\n"};
  expect_linear(
      {file(
           "wheel", "tags", 20'000, "x.whl",
           [](std::size_t n) {
             return test::zip_of({{"m-1.dist-info/WHEEL", numbered("Tag: cp#-a#-p#\n", n)}});
           },
           unpack),
       file(
           "wheel", "one line of tags", 20'000, "x.whl",
           [](std::size_t n) {
             return test::zip_of({{"m-1.dist-info/WHEEL", "Tag: a-b-c" + numbered(".p#", n) + "\n"}});
           },
           unpack),
       file(
           "wheel", "members", 8'000, "m-1-py3-none-any.whl",
           [about](std::size_t n) {
             std::vector<test::Entry> entries{about};
             for (std::size_t i = 0; i < n; ++i) entries.push_back({"a" + std::to_string(i), ""});
             return test::zip_of(entries);
           },
           unpack),
       file(
           "wheel", "RECORD", 50'000, "m-1-py3-none-any.whl",
           [about](std::size_t n) {
             return test::zip_of({about, {"m-1.dist-info/RECORD", numbered("a#,sha256=AAAA,1\n", n)}});
           },
           unpack)});
}

TEST_F(Growth, OfInstalledFiles) {
  Python python;
  python.sys_path = {{scratch_.path() + "/site", "site", true}};
  const auto distributions = [this, python](const std::string&) {
    EXPECT_EQ(probes::probe_distributions(*host_, python).value.size(), 1u);
  };
  const auto libraries = [this](const std::string& path) {
    (void)probes::shared_libraries_of(*host_, {.path = path_dirname(path)});
  };
  const auto pth = [this](const std::string& path) {
    (void)probes::PthReader(*host_, {}).read_folder(path_dirname(path));
  };
  expect_linear(
      {file(
           "METADATA", "requirements", 50'000, "site/m-1.dist-info/METADATA",
           [](std::size_t n) { return "Name: m\nVersion: 1\n" + numbered("Requires-Dist: a#>=1\n", n); },
           distributions),
       file(
           "METADATA", "one long line", 500'000, "site/m-1.dist-info/METADATA",
           [](std::size_t n) { return "Name: " + repeated("m", n) + "\nVersion: 1\n"; }, distributions),
       file(
           "RECORD", "lines", 20'000, "r-1.dist-info/RECORD",
           [](std::size_t n) { return numbered("a#.so,sha256=AA,1\n", n); }, libraries),
       file(
           "RECORD", "quotes", 100'000, "r-1.dist-info/RECORD",
           [](std::size_t n) { return repeated("\"", n); }, libraries),
       file(
           ".pth", "paths", 5'000, "pth/a.pth", [](std::size_t n) { return numbered("/nowhere/#\n", n); },
           pth),
       file(
           ".pth", "imports", 20'000, "pth/a.pth", [](std::size_t n) { return numbered("import a#\n", n); },
           pth)});
  expect_linear(texts(
      "METADATA", {"Requires-Dist: a#>=1\n", "Requires-Dist: a[", "Requires-Dist: a (", "Requires-Dist: a;"},
      200'000, [](const std::string& text) { (void)probes::requirement_lines("Name: m\n" + text); }));
  expect_linear(
      texts("marker", {"(", "extra == 'a' or ", "extra == ", "not ", "'"}, 200'000,
            [python](const std::string& text) { (void)probes::marker_holds(text, python, "x86_64", {}); }));
  expect_linear(texts(
      "editable finder",
      {"MAPPING: dict[str, str] = {'a#': '/b#'}\n", "'a#': '/b#', ", "F.map_module('a#', '/b#')\n", "("},
      200'000,
      [](const std::string& text) { (void)probes::mappings_of_finder("MAPPING = {" + text, "f.py"); }));
}

// In a process of the program `true`, which needs the C library alone.
void load_into_process(const Host& host, const std::string& path) {
  elf::LibraryCache libraries(host);
  auto process = elf::ProcessImage::start(libraries, "/bin/true");
  ASSERT_TRUE(process) << english(process.error().message);
  const elf::LoadResult loaded = process->load(path, 0, false);
  if (loaded.object >= 0) (void)process->resolve(loaded.object, loaded.list);  // else refused
}

TEST_F(Growth, OfLibraries) {
  const auto load = [this](const std::string& path) { load_into_process(*host_, path); };
  const auto both = [](std::size_t n) { return growth::elf_bytes({.folders = n, .needed = n}); };
  const auto there = [](std::size_t n) {
    return growth::elf_bytes({.folders = n, .needed = n, .folder = "/usr/lib/../lib/./../lib#/../"});
  };
  expect_linear({file(
                     "ELF", "RUNPATH", 4'000, "a.so",
                     [](std::size_t n) { return growth::elf_bytes({.folders = n, .needed = 1}); }, load),
                 file(
                     "ELF", "DT_NEEDED", 1'000, "a.so",
                     [](std::size_t n) { return growth::elf_bytes({.folders = 1, .needed = n}); }, load),
                 file("ELF", "RUNPATH x DT_NEEDED", 1'000, "a.so", both, load),
                 file("ELF", "RUNPATH x DT_NEEDED, odd paths", 1'000, "a.so", there, load),
                 file(
                     "ELF", "undefined symbols", 30'000, "a.so",
                     [](std::size_t n) { return growth::elf_bytes({.undefined = n}); }, load)});
}

// The sizes of which the reviewers found that they took minutes or gigabytes.
TEST_F(Growth, StaysWithinBoundsAtTheWorstSizes) {
  const auto expect_cost = [](const std::string& what, double seconds, std::size_t mebibytes,
                              const std::function<void()>& work) {
    const growth::Cost cost = growth::cost_of(work);
    fmt::print("  {:<53} {:>9}  {:>8.1f} ms {:>7.1f} MiB\n", what, "", cost.milliseconds,
               static_cast<double>(cost.peak) / 0x1p20);
    EXPECT_LT(cost.milliseconds, seconds * 1000) << what;
    EXPECT_LT(cost.peak >> 20, mebibytes) << what;
  };
  const std::string symbols = write("s.so", growth::elf_bytes({.undefined = 1'000'000}));
  expect_cost("ELF of 1,000,000 undefined symbols", 5, 512, [&] { load_into_process(*host_, symbols); });
  const std::string product = write("p.so", growth::elf_bytes({.folders = 2'000, .needed = 3'000}));
  expect_cost("ELF of 2,000 folders and 3,000 needs", 5, 256, [&] { load_into_process(*host_, product); });
  const std::string nested = repeated("[", 60u << 20), objects = "[" + repeated("{},", 20u << 20) + "{}]";
  expect_cost("snapshot of 60 MiB of [", 5, 64, [&] { EXPECT_FALSE(snapshot_from_json(nested)); });
  expect_cost("snapshot of 20 Mi objects", 5, 64, [&] { EXPECT_FALSE(snapshot_from_json(objects)); });
  const std::string imports = repeated("import a\n", 100'000);
  expect_cost("package source of 100,000 imports", 5, 256,
              [&] { (void)probes::scan_package_file(imports, "m", true); });
  const Snapshot tokens = with_text(repeated("token", 80'000)),
                 homes = with_text(numbered("/home/u#:", 30'000));
  expect_cost("redaction of 80,000 tokens", 5, 256, [&] { (void)redacted(tokens); });
  expect_cost("redaction of 30,000 homes", 5, 256, [&] { (void)redacted(homes); });
}

}  // namespace
}  // namespace scankit
