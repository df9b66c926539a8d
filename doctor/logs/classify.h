// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <string>
#include <vector>

#include "doctor/model/failure.h"

// What a symbol, a library, a module or a wheel that a log names says about its cause.
namespace scankit {

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
  bool frames = false;           // there are frames of a traceback before the error
};

Judged judge_symbol(const Captures& captures);
Judged judge_library(const Captures& captures, const Surroundings& around);
Judged judge_version(const Captures& captures);
Judged judge_module(const Captures& captures, const Surroundings& around);
Judged judge_name(const Captures& captures);
Judged judge_call(const Captures& captures, const Surroundings& around);
Judged judge_wheel(const Captures& captures);
Judged judge_header(const Captures& captures);
Judged judge_xformers(const Captures& captures);
// Calls the classifier that a rule names (`LogRule::classify`). Returns an empty Judged for
// an unknown kind.
Judged judge(const std::string& kind, const Captures& captures, const Surroundings& around);

std::string capture(const Captures& captures, const std::string& name);
// "selective_scan_cuda" of ".../selective_scan_cuda.cpython-310-x86_64-linux-gnu.so".
std::string module_of(const std::string& file);

}  // namespace scankit
