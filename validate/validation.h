// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

// What one run of `scankit validate` saw and concluded, as data: judge.cc decides, report*.cc print.
namespace scankit::validate {

// The policy of KERNELS_MEASURED.md 7; README.md says why these figures. The harness gets them with its job.
struct Tolerance {
  double factor = 4;   // times the error that rounding the exact result to the tensor's dtype makes
  double fp32 = 1e-4;  // plus this: relative to the tensor's norm, and to each element's magnitude
  double half = 1e-3;
  double step =
      0x1p-26;  // the constant is at least this times the length: decays near one all round the same way
};

struct WorstElement {
  std::vector<std::int64_t> index;
  double value = 0, expected = 0, bound = 0;
  double ratio = 0;  // |value - expected| / bound
};
struct TensorResult {
  std::string name, dtype;
  int data = 1;                                // 2: of the case's second data set, in the same tensors
  double error = 0, explained = 0, bound = 0;  // relative to the norm of the exact result
  WorstElement worst;
};

enum class CaseState { Passed, Failed, Crashed, Hung, NotRun };
struct CaseResult {
  std::string id, device;
  CaseState state = CaseState::NotRun;
  std::string error;       // what stopped it, in one line
  std::string error_kind;  // "contract", "arity", "memory", "exception"; "" where it ran to its end
  std::vector<TensorResult> tensors;
  std::vector<std::string> contract;  // what is wrong with the form of the results
  std::vector<std::string> modified;  // "fwd changed u", "bwd changed memory around dz"
  std::vector<std::pair<std::string, double>>
      nondeterministic;  // result, relative difference of two equal calls
  double seconds = 0;
  std::vector<std::string> reasons;  // why it failed, the judge's words; empty where it passed
};

struct Timing {
  std::string device, pass, dtype;  // "cpu", "fwd"
  int batch = 0, dim = 0, length = 0, states = 0, rounds = 0;
  double module_ms = 0, plain_ms = 0;
};

enum class Verdict { Passed, Failed, Inconclusive };
enum class ModuleProblem { None, NotFound, ImportFailed, LacksFunctions };

struct Validation {
  std::string python, python_version, torch_version, gpu;
  std::string module, module_file, mode;  // "quick" | "full"
  std::uint64_t seed = 0;
  bool deterministic = false;  // demanded
  ModuleProblem module_problem = ModuleProblem::None;
  std::string module_message;
  std::vector<CaseResult> cases;
  std::vector<std::pair<std::string, std::string>> refused;  // device, the module's own words
  std::vector<Timing> timings;
  std::size_t left_out = 0;  // cases of functions that the module does not have, and need not
  std::vector<std::string> notes;
  std::string blocked;  // why nothing, or not everything, could be run
  double seconds = 0;
  Verdict verdict = Verdict::Inconclusive;
};

}  // namespace scankit::validate
