// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "doctor/base/message.h"
#include "doctor/model/examined_files.h"
#include "doctor/model/failure.h"

// What a symbol, a library, a module or a wheel that a log names says about its cause.
namespace scankit::logs {

// The named groups of a rule that matched, and the facts that were derived from them.
using Captures = std::map<std::string, std::string>;

// What a classifier says; the fields are those of LogHit.
struct Judged {
  std::string cause, sure;
  Message meaning, settles;
  std::vector<std::string> alternatives;
  Captures more;  // facts beside the captures
};

// What the lines just before the error show.
struct Surroundings {
  bool building = false;         // a set-up script, a build back end or a compiler is at work
  bool program = false;          // the innermost frame is a file of the user's, and nothing is being built
  bool importing_torch = false;  // the innermost frame is torch's own __init__
  std::string caller;            // the file of the innermost frame that is not of torch's modules
  std::string script;            // "tensorrt" of the last command "python tensorrt.py"; "" if none is shown
  bool lazy_import = false;      // transformers or diffusers tells of an import that failed within it
  bool frames = false;           // there are frames of a traceback before the error
  std::string python;  // "3.11" of the last path before the error that contains ".../python3.11/..."
};

Judged judge_symbol(const Captures& captures);
Judged judge_library(const Captures& captures, const Surroundings& around);
Judged judge_version(const Captures& captures);
Judged judge_module(const Captures& captures, const Surroundings& around);
Judged judge_name(const Captures& captures, const Surroundings& around);
Judged judge_tokenizer(const Captures& captures);
Judged judge_call(const Captures& captures, const Surroundings& around);
Judged judge_wheel(const Captures& captures);
Judged judge_header(const Captures& captures);
Judged judge_xformers(const Captures& captures);
// A module of Python's own that it does not find (`name` is ""), or a name that the module lacks.
Judged judge_part_of_python(const std::string& module, const std::string& name, const Surroundings& around);
Judged judge_hidden(const Captures& captures, const Surroundings& around);
// The file of the program that Python found as the module `name`, which is another's; "" where none is known to be one.
// `place` is where Python found it, "" where the log does not say it.
std::string hiding_file(const std::string& name, const std::string& place);
Judged hidden_by(const std::string& file, const std::string& name);
// Calls the classifier that a rule names (`LogRule::classify`). Returns an empty Judged for
// an unknown kind.
Judged judge(const std::string& kind, const Captures& captures, const Surroundings& around);

std::string capture(const Captures& captures, const std::string& name);
// "selective_scan_cuda" of ".../selective_scan_cuda.cpython-310-x86_64-linux-gnu.so".
std::string module_of(const std::string& file);

// What the classifiers of this directory share.
inline bool starts_with_any(std::string_view text, std::initializer_list<std::string_view> starts) {
  return std::ranges::any_of(starts, [&](std::string_view start) { return text.starts_with(start); });
}
inline bool ends_with_any(std::string_view text, std::initializer_list<std::string_view> ends) {
  return std::ranges::any_of(ends, [&](std::string_view end) { return text.ends_with(end); });
}

// The innermost frame is a file of an installed package, and nothing is being built.
inline bool is_called_by_a_package(const Surroundings& around) {
  return around.lazy_import || (!around.building && around.caller.find("-packages/") != std::string::npos);
}

// Shortens the judgements below. `sure` is "certain", "likely" or "possible"; `settles` is what to look
// at to be certain, "" if nothing is left to doubt.
inline Judged verdict(std::string cause, std::string sure, Message meaning, Message settles = {},
                      std::vector<std::string> alternatives = {}) {
  return {std::move(cause),   std::move(sure),         std::move(meaning),
          std::move(settles), std::move(alternatives), {}};
}

// Whether some release of torch exports this very name, and none exports the name that differs from it
// only in the string ABI. Such a name shows a release that does not fit; its string ABI shows nothing.
bool is_of_one_spelling(const std::string& symbol);

// Whether no release of the index exports the name in either string ABI: one that is older than all of them does.
bool is_of_no_known_release(const std::string& symbol);

// Adds to `judged` which releases of torch export this name, exactly and with the other string ABI.
void add_exporters(const std::string& symbol, Judged& judged);

// The torch names that files of the log miss, by file; together they tell for which torch a file was
// built. A loader stops at the first one, a linker names them all.
class NamesOfLog {
 public:
  void take(const std::string& file, const std::string& symbol);
  std::vector<BuiltFor> built_for() const;

 private:
  std::map<std::string, std::vector<std::string>> by_file_;
};

}  // namespace scankit::logs
