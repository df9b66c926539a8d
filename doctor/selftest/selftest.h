// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "doctor/base/process.h"
#include "doctor/base/result.h"
#include "doctor/model/snapshot.h"
#include "doctor/report/document.h"

// `scankit selftest`: plants each fault, asks the interpreter and the doctor, and judges the answer.
namespace scankit::selftest {

// Python extension modules made byte by byte: what selftest plants must not need a compiler.

// The description of one module; the defaults make one that works.
struct HandmadeModule {
  struct Name {
    // The loader must find it while it loads the file: the relocation is not lazy.
    std::string symbol;            // left undefined, and wanted while the file is loaded
    std::string library, version;  // "libc.so.6", "GLIBC_2.99"; both "" for a name without version
  };
  enum class Start : std::uint8_t { Works, Crashes, Hangs };  // what PyInit_ does

  std::string module;               // exports PyInit_MODULE
  std::vector<std::string> needed;  // DT_NEEDED
  std::vector<Name> names;
  Start start = Start::Works;
  std::uint16_t machine = 62;  // EM_X86_64
};

// The bytes of a whole x86-64 shared library that CPython (not the free-threaded one) imports, where the
// loader finds what it needs.
std::string module_bytes(const HandmadeModule& file);

// What selftest plants: real faults, each in a small virtual environment of its own, which is made
// without running anything.

inline constexpr const char* kSelftestModule = "scankit_selftest";

// The virtual environment in which a fault is planted.
struct Scratch {
  // The paths are absolute; `site` is its site-packages, `suffix` the file name suffix of an extension
  // module of this Python: ".cpython-311-x86_64-linux-gnu.so".
  std::string folder, python, site, suffix;  // suffix: ".cpython-311-x86_64-linux-gnu.so"
  unsigned minor = 0;                        // of Python 3
  std::string string_abi;                    // of torch: "old", "new"; "" without torch
};

struct SelftestFault {
  std::string name;
  std::string planted;  // how, one sentence
  std::string cause;    // slug that must be the root; "" where nothing is wrong and nothing may be named
  bool needs_torch = false;
  bool hides = false;  // the program that imports it sees no error: a package swallows it
  // The statement that the interpreter runs to show that the fault is real.
  std::string import = std::string("import ") + kSelftestModule;
  // Added to the doctor's command line.
  std::vector<std::string> doctor_options;
  // Writes the files of the fault. It runs no program and changes nothing outside the Scratch.
  Result<void> (*plant)(const Scratch&) = nullptr;
};
const std::vector<SelftestFault>& selftest_faults();

// Why this fault cannot be planted for this Python, as a sentence; "" if it can.
std::string cannot_plant(const SelftestFault& fault, const Snapshot& facts);

// Makes a virtual environment of the interpreter that `facts` describe. With `torch`, it can import the
// torch of that interpreter.
Result<Scratch> make_scratch(const Snapshot& facts, const std::string& folder, bool torch);

enum class Judgement : std::uint8_t {
  Named,       // the doctor named the planted cause, or rightly none
  Missed,      // it named another one, or none, or an alarm where nothing is wrong
  NotPlanted,  // the interpreter does not stumble over it: selftest itself is wrong here
  Failed,      // the doctor gave no answer
  Skipped      // could not be planted for this Python
};
std::string_view judgement_word(
    Judgement judgement);  // "named", "missed", "not-planted", "failed", "skipped"

struct Trial {
  std::string fault, planted, expected;  // expected: slug, "" where nothing is wrong
  Judgement judgement = Judgement::Skipped;
  std::string named;               // the doctor's root cause, else its verdict
  std::string why;                 // Skipped, Failed, NotPlanted
  std::string import_line;         // the interpreter's last line, "" where it was not asked
  std::vector<std::string> again;  // the doctor's command
};

// Judges one fault by the doctor's `--json` output and exit status. If the interpreter was asked
// (`imported`), it must agree that there is a fault.
Trial judge(const SelftestFault& fault, const std::optional<ProcessResult>& imported,
            const Result<ProcessResult>& doctor);

// 0: all named. 1: something was missed. 3: a fault was not planted, the doctor failed, or nothing was tried.
int exit_status_of(const std::vector<Trial>& trials);

// `folder` is empty at the start and stays for the caller to remove.
struct SelftestRequest {
  Snapshot facts;      // of the Python that the faults are planted for
  std::string folder;  // where; empty, and ours
  std::string self;    // the scankit under test
  bool import = true;  // also ask the interpreter, so that each fault is seen to be one
  std::function<void(const std::string& phase)> progress;  // may be empty
  std::function<bool()> stop;                              // asked between faults; may be empty
};

// Runs a command line. Unit tests pass a function that answers wrongly in its place.
using RunCommand = std::function<Result<ProcessResult>(const ProcessRequest&)>;

// Plants every fault in turn and asks the doctor about each. An Error means that the directory cannot be
// written or a program cannot be started; a wrong answer is a Trial.
Result<std::vector<Trial>> run_selftest(const SelftestRequest& request, const RunCommand& run = run_process);

// The table for people, and the same as JSON (doctor/report/schema/selftest-1.json).
std::string selftest_text(const SelftestRequest& request, const std::vector<Trial>& trials);
std::string selftest_json(const SelftestRequest& request, const std::vector<Trial>& trials);
// For every other format. Both arguments must outlive the views.
report::Document selftest_document(const SelftestRequest& request, const std::vector<Trial>& trials);
report::Views selftest_views(const SelftestRequest& request, const std::vector<Trial>& trials);

}  // namespace scankit::selftest
