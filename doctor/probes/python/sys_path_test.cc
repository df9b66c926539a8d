// SPDX-License-Identifier: Apache-2.0
#include "doctor/probes/python/sys_path.h"

#include <algorithm>

#include "doctor/probes/python/python.h"
#include "doctor/probes/python/python_host_test.h"

namespace scankit::probes {
namespace {

using namespace std::string_view_literals;  // literals that hold NULs

class SysPathOf : public PythonTree {
 protected:
  SysPathOf() {
    make_venv("venv", install("base"));
    site_ = "venv/lib/python3.11/site-packages";
  }
  Python probe() {
    auto probed = probe_python(host_, at("venv"));
    EXPECT_TRUE(probed.present()) << probed.note;
    return std::move(probed.value);
  }
  static int index_of(const Python& python, const std::string& path) {
    const auto found = std::ranges::find(python.sys_path, path, &PathEntry::path);
    return found == python.sys_path.end() ? -1 : static_cast<int>(found - python.sys_path.begin());
  }
  std::string site_;
};

TEST_F(SysPathOf, NamesTheOriginOfEachEntry) {
  folder("extra");
  write(site_ + "/x.pth", at("extra") + "\n");
  host_.variables["PYTHONPATH"] = at("mine");
  const Python python = probe();
  std::vector<std::string> origins;
  for (const PathEntry& entry : python.sys_path) origins.push_back(entry.origin);
  EXPECT_EQ(origins, (std::vector<std::string>{"cwd", "pythonpath", "stdlib", "stdlib", "lib-dynload", "site",
                                               "pth:" + at(site_ + "/x.pth")}));
  EXPECT_FALSE(python.sys_path[1].exists);
}

TEST_F(SysPathOf, DebianIsKnownByItsSitePy) {
  write("base/lib/python3.11/site.py", "  'dist-packages')\n");
  const std::string local = folder("base/local/lib/python3.11/dist-packages");
  const std::string shared = folder("base/lib/python3/dist-packages");
  const Python base = probe_python(host_, at("base")).value;
  EXPECT_EQ(index_of(base, shared), index_of(base, local) + 1);
  EXPECT_EQ(index_of(base, at("base/lib/python3.11/site-packages")), -1);
  EXPECT_GE(index_of(probe(), at(site_)), 0);
}

TEST_F(SysPathOf, ReadsSetuptoolsFinders) {
  write(site_ + "/__editable__.thing-1.0.pth",
        "import __editable___thing_1_0_finder; __editable___thing_1_0_finder.install()");
  write(site_ + "/__editable___thing_1_0_finder.py",
        "from __future__ import annotations\n# MAPPING = {'no': '/no'}\n"
        "MAPPING: dict[str, str] = {'thing': '" +
            at("src/thing") + "', 'single': '" + at("src/single") +
            "'}\n"
            "NAMESPACES: dict[str, list[str]] = {}\n");
  write("src/thing/__init__.py", "");
  write("src/single.py", "");
  const Python python = probe();
  EXPECT_EQ(python.editable_finders.size(), 2u);
  EXPECT_EQ(python.pth_code_lines.size(), 1u);
  const auto thing = find_python_module(host_, python, "thing");
  ASSERT_TRUE(thing);
  EXPECT_EQ(thing->path, at("src/thing"));
  EXPECT_TRUE(thing->package);
  EXPECT_EQ(find_python_module(host_, python, "single")->path, at("src/single.py"));
  EXPECT_FALSE(find_python_module(host_, python, "no"));
}

// The finder of sys.path is asked first, and PEP 420 lets it take a directory without __init__.
TEST_F(SysPathOf, ANamespacePackageComesBeforeAnEditableFinder) {
  write(site_ + "/__editable__.thing-1.0.pth",
        "import __editable___thing_1_0_finder; __editable___thing_1_0_finder.install()");
  write(site_ + "/__editable___thing_1_0_finder.py", "MAPPING = {'thing': '" + at("src/thing") + "'}\n");
  write("src/thing/__init__.py", "");
  write(site_ + "/thing/data.txt", "");
  const auto thing = find_python_module(host_, probe(), "thing");
  ASSERT_TRUE(thing);
  EXPECT_EQ(thing->path, at(site_ + "/thing"));
  EXPECT_TRUE(thing->leftover);
}

TEST_F(SysPathOf, ReadsTheFindersOfOtherBuildBackends) {
  const auto mappings = mappings_of_finder(
      "F.map_module('thing', '/src/thing/__init__.py')\nF.map_module(\"b\", \"/src/b.py\")\n", "f.py");
  ASSERT_EQ(mappings.size(), 2u);
  EXPECT_EQ(to_text(mappings[0]), "f.py: thing -> /src/thing");
  EXPECT_EQ(editable_mapping(to_text(mappings[1]))->folder, "/src/b.py");
  EXPECT_TRUE(mappings_of_finder("MAPPING = {'a': compute()}\nMAPPING = {'b'", "f.py").empty());
}

TEST_F(SysPathOf, EarlierEntriesAndPackagesWin) {
  write(site_ + "/thing.py", "");
  write(site_ + "/thing/__init__.py", "");
  write(site_ + "/only/data.txt", "");
  host_.variables["PYTHONPATH"] = folder("mine");
  folder("mine/thing");  // no __init__: a later regular package beats it
  Python python = probe();
  EXPECT_EQ(find_python_module(host_, python, "thing")->path, at(site_ + "/thing"));
  EXPECT_TRUE(find_python_module(host_, python, "only")->leftover);
  write("mine/thing.cpython-310-x86_64-linux-gnu.so", "");
  EXPECT_EQ(find_python_module(host_, python, "thing")->path, at(site_ + "/thing"));
  write("mine/thing.abi3.so", "");
  EXPECT_EQ(find_python_module(host_, python, "thing")->path, at("mine/thing.abi3.so"));
}

TEST_F(SysPathOf, GiganticAndBrokenPthFiles) {
  std::string many;
  for (int i = 0; i < 3000; ++i) many += "missing" + std::to_string(i) + "\n";
  write(site_ + "/a.pth", many + at("outside") + "\n");
  folder("outside");
  write(site_ + "/b.pth", std::string(3u << 20, 'x'));
  write(site_ + "/c.pth",
        std::string("\xef\xbb\xbf") + at("bom") + "\n" + std::string("a\0b\n"sv) + at("after") + "\n");
  folder("bom");
  folder("after");
  link(at("nowhere"), site_ + "/d.pth");
  write(site_ + "/e.pth", at("b\xff"
                             "d") +
                              "\n");
  folder(
      "b\xff"
      "d");
  write(site_ + "/f.pth", "import x\x1b[31m\xff; " + std::string(1u << 16, 'y') + "\n");
  const Python python = probe();
  EXPECT_GE(index_of(python, at("outside")), 0);
  EXPECT_EQ(index_of(python, at("bom")), -1);  // CPython before 3.13 takes the mark for a part of the path
  EXPECT_GE(index_of(python, at("b\xff"
                                "d")),
            0);
  EXPECT_EQ(index_of(python, at("after")), -1);  // os.stat refuses the NUL, and site.py leaves the rest
  ASSERT_EQ(python.pth_code_lines.size(), 2u);
  EXPECT_NE(python.pth_code_lines[0].find("b.pth: not read: "), std::string::npos)
      << python.pth_code_lines[0];
  EXPECT_LT(python.pth_code_lines[1].size(), 800u);
  EXPECT_EQ(python.pth_code_lines[1].find('\x1b'), std::string::npos);
  write("base/lib/python3.11/site.py", "decode(\"utf-8-sig\")\n");
  EXPECT_GE(index_of(probe(), at("bom")), 0);
}

TEST_F(SysPathOf, TellsWhichSiteFolderCannotBeRead) {
  host_.denied = {at(site_)};
  const Python python = probe();
  const auto unreadable = unreadable_site_folders(host_, python);
  ASSERT_EQ(unreadable.size(), 1u);
  EXPECT_NE(english(unreadable[0]).find(at(site_)), std::string::npos);
}

}  // namespace
}  // namespace scankit::probes
