// SPDX-License-Identifier: Apache-2.0
#include "doctor/probes/python/python.h"

#include <unistd.h>

#include <algorithm>

#include "doctor/base/text.h"
#include "doctor/probes/python/python_host_test.h"
#include "doctor/probes/python/python_layout.h"
#include "doctor/probes/python/python_text.h"

namespace scankit::probes {
namespace {

using namespace std::string_view_literals;  // literals that hold NULs

class ProbePython : public PythonTree {
 protected:
  std::string failure(const std::string& requested) {
    const auto probed = probe_python(host_, requested);
    EXPECT_EQ(probed.state, ProbeState::Failed);
    return probed.note.english();
  }
  static bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }
};

TEST_F(ProbePython, DescribesAVenv) {
  const std::string python = install("base");
  make_venv("venv", python);
  write("base/lib/python3.11/_sysconfigdata__linux_x86_64-linux-gnu.py",
        "build_time_vars = {'SO': 1,\n 'SOABI': 'cpython-311-x86_64-linux-gnu',\n 'Py_GIL_DISABLED': 0}\n");
  const auto probed = probe_python(host_, at("venv"));
  ASSERT_TRUE(probed.present()) << probed.note;
  EXPECT_EQ(probed.value.executable, python);
  EXPECT_EQ(probed.value.version, "3.11.7");
  EXPECT_EQ(probed.value.kind, "venv");
  EXPECT_EQ(probed.value.prefix, at("venv"));
  EXPECT_EQ(probed.value.base_prefix, at("base"));
  EXPECT_EQ(probed.value.extension_suffixes,
            (std::vector<std::string>{".cpython-311-x86_64-linux-gnu.so", ".abi3.so", ".so"}));
  EXPECT_FALSE(probed.value.has_pip);
  EXPECT_FALSE(probed.value.free_threaded);
  write("venv/lib/python3.11/site-packages/pip/__init__.py", "");
  EXPECT_TRUE(probe_python(host_, at("venv")).value.has_pip);
}

TEST_F(ProbePython, KnowsTheKinds) {
  install("conda");
  write("conda/conda-meta/history", "");
  EXPECT_EQ(probe_python(host_, at("conda")).value.kind, "conda");
  install("home/.pyenv/versions/3.11.7");
  EXPECT_EQ(probe_python(host_, at("home/.pyenv/versions/3.11.7")).value.kind, "pyenv");
  const std::string base = install("base");
  EXPECT_EQ(probe_python(host_, base).value.kind, "other");
  make_venv("venv", base);
  write("venv/pyvenv.cfg", "home = " + at("base/bin") + "\nuv = 0.5.1\nversion_info = 3.11.7\n");
  EXPECT_EQ(probe_python(host_, at("venv")).value.kind, "uv");
}

TEST_F(ProbePython, KnowsExternallyManagedBases) {
  const std::string python = install("base");
  make_venv("venv", python);
  write("base/lib/python3.11/EXTERNALLY-MANAGED", "[externally-managed]\n");
  EXPECT_TRUE(probe_python(host_, python).value.externally_managed);
  EXPECT_FALSE(probe_python(host_, at("venv")).value.externally_managed);
}

TEST_F(ProbePython, TakesTheVersionFromTheBinaryWhereThereAreNoHeaders) {
  install("base");
  ASSERT_EQ(::unlink(at("base/include/python3.11/patchlevel.h").c_str()), 0);
  write("base/bin/python3.11",
        interpreter_bytes("1.3.1\0"
                          "3.11.0-not\0"
                          "3.11.9+\0"
                          "13.11.4\0"sv),
        0755);
  EXPECT_EQ(probe_python(host_, at("base")).value.version, "3.11.9+");
  // Two answers are none; conda's record is one.
  write("base/bin/python3.11",
        interpreter_bytes("3.11.9\0"
                          "3.11.8\0"sv),
        0755);
  EXPECT_EQ(probe_python(host_, at("base")).value.version, "3.11");
  write("base/conda-meta/python-3.11.6-hab00c5b_0_cpython.json", "{}");
  EXPECT_EQ(probe_python(host_, at("base")).value.version, "3.11.6");
}

TEST_F(ProbePython, FreeThreadedBuildsTakeAbi3OnlyWhereTheirTableHasIt) {
  install("base", "3.13t", "3.13.0");
  const auto plain = probe_python(host_, at("base"));
  ASSERT_TRUE(plain.present()) << plain.note;
  EXPECT_TRUE(plain.value.free_threaded);
  EXPECT_EQ(plain.value.extension_suffixes,
            (std::vector<std::string>{".cpython-313t-x86_64-linux-gnu.so", ".so"}));
  write("base/bin/python3.13t", interpreter_bytes(".abi3.so\0"sv), 0755);
  EXPECT_EQ(probe_python(host_, at("base")).value.extension_suffixes.size(), 3u);
}

TEST_F(ProbePython, AFreeThreadedPythonIsFoundByItsNameWithoutT) {
  install("base", "3.13t", "3.13.0");
  write("base/bin/python3.13", interpreter_bytes(".cpython-313t-x86_64-linux-gnu.so\0"sv), 0755);
  const auto alone = probe_python(host_, at("base/bin/python3.13"));
  ASSERT_TRUE(alone.present()) << alone.note;
  EXPECT_TRUE(alone.value.free_threaded);
  install("base", "3.13", "3.13.0");  // beside one with a GIL, whose program takes the name
  EXPECT_FALSE(probe_python(host_, at("base/bin/python3.13")).value.free_threaded);
  write("base/bin/python3.13", interpreter_bytes(".cpython-313t-x86_64-linux-gnu.so\0"sv), 0755);
  EXPECT_TRUE(probe_python(host_, at("base/bin/python3.13")).value.free_threaded);
}

TEST_F(ProbePython, ACopyCalledPythonSaysItsSeriesByItsVenv) {
  const std::string python = install("base");
  install("base", "3.12", "3.12.1");
  make_venv("venv", python);
  ASSERT_EQ(::unlink(at("venv/bin/python").c_str()), 0);
  write("venv/bin/python", interpreter_bytes(), 0755);
  const auto probed = probe_python(host_, at("venv"));
  ASSERT_TRUE(probed.present()) << probed.note;
  EXPECT_EQ(probed.value.version, "3.11.7");
  EXPECT_EQ(probed.value.base_prefix, at("base"));
}

TEST_F(ProbePython, FailsInOneLineWithTheNextStep) {
  EXPECT_TRUE(has(failure(at("missing")), "no such file; give --python"));
  write("lonely/bin/python3.11", interpreter_bytes(), 0755);
  EXPECT_TRUE(has(failure(at("lonely/bin/python3.11")), "lonely/bin/python3.11"))
      << failure(at("lonely/bin/python3.11"));
  EXPECT_TRUE(has(failure(install("two", "2.7", "2.7.18")),
                  "is Python 2.7.18; scankit supports CPython 3.6 and "
                  "newer"));
  write("pypy/bin/pypy3.10", interpreter_bytes(), 0755);
  EXPECT_TRUE(has(failure(at("pypy/bin/pypy3.10")), "is PyPy"));
}

TEST_F(ProbePython, AVenvOfAnotherBaseThanItsHomeIsStillRead) {
  const std::string python = install("base");
  make_venv("venv", python);
  write("venv/pyvenv.cfg", "home = " + at("moved/bin") + "\n");
  const auto probed = probe_python(host_, at("venv"));
  ASSERT_TRUE(probed.present()) << probed.note;
  EXPECT_EQ(probed.value.base_prefix, at("base"));
}

TEST_F(ProbePython, GarbageInPyvenvCfg) {
  const std::string python = install("base");
  make_venv("venv", python);
  write("venv/pyvenv.cfg",
        "=\n= =\nnot a key\nHOME =" + at("base/bin") + "\r\n  Include-System-Site-Packages\t= TRUE \n");
  auto probed = probe_python(host_, at("venv"));
  ASSERT_TRUE(probed.present()) << probed.note;
  EXPECT_TRUE(probed.value.user_site_enabled);
  write("venv/pyvenv.cfg", "");  // site.py: system packages unless told otherwise
  probed = probe_python(host_, at("venv"));
  ASSERT_TRUE(probed.present()) << probed.note;
  EXPECT_TRUE(probed.value.user_site_enabled);
  write("venv/pyvenv.cfg", "home = \xff\xfe\x01\n");
  EXPECT_TRUE(has(failure(at("venv")), "is not UTF-8 text"));
}

TEST(ExtensionSuffixes, FollowTheTablesOfTheReleases) {
  const BuildConfig plain{"cpython-315-x86_64-linux-gnu", "", false, ""};
  EXPECT_EQ(extension_suffixes(plain, 15, {}),
            (std::vector<std::string>{".cpython-315-x86_64-linux-gnu.so", ".abi3-x86_64-linux-gnu.so",
                                      ".abi3.so", ".abi3t-x86_64-linux-gnu.so", ".abi3t.so", ".so"}));
  const BuildConfig debug{"cpython-310d-x86_64-linux-gnu", "cpython-310-x86_64-linux-gnu", false, ""};
  EXPECT_EQ(extension_suffixes(debug, 10, {}).at(1), ".cpython-310-x86_64-linux-gnu.so");
  const BuildConfig debian{"cpython-313-x86_64-linux-gnu", "", false,
                           ""};  // python3.13 3.13.5-2 of Debian 13
  EXPECT_EQ(extension_suffixes(debian, 13, {.platform = true}),
            (std::vector<std::string>{".cpython-313-x86_64-linux-gnu.so", ".abi3.so",
                                      ".abi3-x86_64-linux-gnu.so", ".so"}));
}

TEST(PythonText, ReadsLiterals) {
  std::size_t at = 2;
  EXPECT_EQ(python_string_literal("x='a\\'b' ", at), "a'b");
  EXPECT_EQ(at, 8u);
  at = 0;
  EXPECT_FALSE(python_string_literal("'open\n'", at));
  EXPECT_EQ(normalized_name("Mamba__SSM.x"), "mamba-ssm-x");
  EXPECT_EQ(printable("a\tb\xc3\xa4\xff"), "a\\x09b\xc3\xa4\\xff");
  EXPECT_FALSE(is_utf8("\xed\xa0\x80"));
  EXPECT_EQ(lines_of("a\r\nb").at(0), "a");
}

}  // namespace
}  // namespace scankit::probes
