// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"

// A setup.py as text: its statements without comments, its string literals, the conditions around them.
// Lines are counted from 1, as messages print them, and vectors of lines from 0: line N is at [N - 1].
// Columns are those of the code, which is shorter than the file by the insides of its literals.

namespace scankit::preflight {

struct PythonLiteral {
  std::string value;
  unsigned line = 0;
  std::size_t column = 0;  // of its opening quote in the code line
  bool formatted = false;  // an f-string, or followed by % or .format
};
struct PythonText {
  std::vector<std::string> code;        // line by line, comments and the insides of literals left out
  std::vector<PythonLiteral> literals;  // without docstrings
  std::vector<unsigned> statement;      // of each line: the line (1-based) where its statement starts
};
PythonText read_python_text(std::string_view text);

// The conditions under which a line (1-based) runs, outermost first: "A", "not (A)" in the branch of an else,
// "try", "except", "class", "def NAME" in such blocks, "inline" where its own statement decides. `lines` are
// those of the file as written, because conditions compare with literals.
std::vector<std::string> conditions_around(const PythonText& parsed,
                                           const std::vector<std::string_view>& lines, unsigned line);
// The code of the statement that holds `line` (1-based), its lines joined by '\n'.
std::string statement_code(const PythonText& parsed, unsigned line);

// The position of `word` as a whole identifier from `from` on, or npos.
std::size_t find_word(std::string_view text, std::string_view word, std::size_t from = 0);

// A directory of sources that builds a torch extension: what its build files and sources say, and the tools
// that the build would take. Everything is read as text, and nothing of the directory is run.
// probe_sources() and probe_build_tools() are the entries; the other functions are shared by the files
// behind them and the tests.

// Whether a program is ours to start: an absolute path, not of the folder that is examined, and not another
// user's where we are root.
bool may_ask(const Host& host, const std::string& folder, const std::string& program);
// Its standard output, "" where it was not asked or did not answer.
std::string answer_of(const Host& host, const std::string& folder, const std::string& program,
                      const std::string& question);

std::string release_in(std::string_view nvcc_version);                  // "13.0"
void read_limits(std::string_view host_config, BuildTools& tools);      // nvcc's crt/host_config.h
void read_gcc_floor(std::string_view cxx17_header, BuildTools& tools);  // torch's c10/util/C++17.h
// torch/utils/cpp_extension.py: its own bounds for nvcc's host
// compiler, its architectures. Of tools.nvcc_version.
void read_cpp_extension(std::string_view text, BuildTools& tools);

// The folder that the user named, or where it is "" the current one of a running system. Absent where it
// builds no torch extension; Failed where the user named it and it cannot be read or builds none.
Probed<SourceTree> probe_sources(const Host& host, const std::string& folder, const Probed<Torch>& torch);
// What torch's cpp_extension, setuptools and nvcc would take for building it.
Probed<BuildTools> probe_build_tools(const Host& host, const Snapshot& snapshot);
// Where that build writes to; empty for a system that is not running.
std::vector<BuildPlace> build_places(const Host& host, const Snapshot& snapshot);

// For probe_sources: what setup.py and CMakeLists.txt say, given as text.
// The readers add to `tree`, whose build_file has to be set: it is the file that their facts name.
void read_setup_py(std::string_view text, SourceTree& tree);
// The first part of each import: "setuptools", "torch", "" for a relative one.
std::vector<std::string> imported_names(std::string_view setup_py);
void read_cmake_lists(std::string_view text, SourceTree& tree);
bool finds_torch(std::string_view cmake_lists);
void read_pyproject(std::string_view text, SourceTree& tree);
// What the compiled files include and call, against the headers of `torch`. `files` are relative to the
// folder; headers of the folder are followed among `all_files`.
void read_native_sources(const Host& host, const std::vector<std::string>& files,
                         const std::vector<std::string>& all_files, const Probed<Torch>& torch,
                         SourceTree& tree);

// "compute_90a,sm_80" -> "90", "80".
std::vector<std::string> architectures_in(std::string_view flags);
// "-std=c++17", "--std=gnu++2a" -> "17", "20".
std::vector<std::string> standards_in(std::string_view flags);

}  // namespace scankit::preflight
