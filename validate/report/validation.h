// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

// What one run of `scankit validate` saw and concluded, as data: judge.cc decides, report*.cc print.
namespace scankit::validate {

// The error bounds; README.md says why these figures. The harness gets them with its job.
struct Tolerance {
  double factor = 4;   // times the error that rounding the exact result to the tensor's dtype makes
  double fp32 = 1e-4;  // plus this: relative to the tensor's norm, and to each element's magnitude
  double half = 1e-3;
  double step =
      0x1p-26;  // the constant is at least this times the length: decays near one all round the same way
};

// The element that used most of its own bound.
struct WorstElement {
  std::vector<std::int64_t> index;
  double value = 0, expected = 0, bound = 0;
  double ratio = 0;                                    // |value - expected| / bound
  std::vector<std::pair<std::string, double>> inputs;  // the inputs at the element's place
};
// How far one result of a case is from the exact one.
struct TensorResult {
  std::string name, dtype;
  int data = 1;                                // 2: of the case's second data set, in the same tensors
  double error = 0, explained = 0, bound = 0;  // relative to the norm of the exact result
  WorstElement worst;
};

enum class CaseState { Passed, Failed, Crashed, Hung, NotRun };
// One case on one device. What the child measured comes first; judge.cc adds `state` and `reasons`.
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

// One pass on one shape, every sample of it in ms: the sides took turns, so the i-th of one and of another
// belong together.
struct Timing {
  std::string device, pass, dtype;  // "cpu", "fwd"
  int batch = 0, dim = 0, length = 0, states = 0;
  std::string cache;  // "cold", "warm", or "host": what the caller of a tiny one waits for
  std::map<std::string, std::vector<double>> ms;  // "module", "against", "plain"
  std::optional<double> peak;                     // bytes that a call takes in addition to its inputs
  std::map<std::string, double> state;            // what NVML said of the GPU right behind it
  double wall_ms = 0;      // of all rounds, with what stands around the calls; 0: not told
  double in_a_row_ms = 0;  // of one among calls with nothing between them; 0: only warm ones are
};

// What a device can do at most, measured in the same run; a second.
struct Limits {
  double copy = 0, fma = 0, exp = 0;  // bytes, multiply-adds, exponentials
  // Of a CPU, whose caches are not emptied: what lies in them is copied faster.
  double cached_copy = 0, cache_bytes = 0;
};

// A kernel that a timed pass launches on this GPU: what its cubin says it takes, and how the driver fits it.
struct KernelUse {
  std::string unit, name, of;  // "forward_bf16", "scankit_forward_4x4", "fwd B8 D2048 L2048 N16 bf16"
  unsigned registers = 0, stack_bytes = 0;  // a thread's; local arrays and what was spilled
  unsigned static_shared_bytes = 0, dynamic_shared_bytes = 0;  // a block's
  unsigned threads = 0, blocks = 0;                            // of a block, of the launch
  unsigned blocks_per_multiprocessor = 0;                      // the driver's; 0: it was not asked
  // Wavefronts of shared memory beyond the least, as a share of it, as ncu measured them.
  std::optional<double> bank_conflicts;
};

// A pass that has become slower than in the run before, or has not.
struct AgainstBaseline {
  std::size_t timing = 0;  // which
  double before_ms = 0;
  double low = 0, high = 0;  // of now / before
  bool regressed = false;
};

// Inconclusive: nothing failed, but not everything ran.
enum class Verdict { Passed, Failed, Inconclusive };
enum class ModuleProblem { None, NotFound, ImportFailed, LacksFunctions };

struct Validation {
  std::string python, python_version, torch_version;
  std::string gpu;                          // the name of the first GPU that was asked for and can be used
  std::map<std::string, std::string> gpus;  // device ("cuda:1"), its name; those that can be used
  std::string module, module_file, mode;    // "quick" | "full"
  std::uint64_t seed = 0;
  bool deterministic = false;  // demanded
  ModuleProblem module_problem = ModuleProblem::None;
  std::string module_message;
  std::vector<CaseResult> cases;
  std::vector<std::pair<std::string, std::string>> refused;  // device, the module's own words
  std::string gpu_problem;                                   // torch sees one, and it cannot be used
  std::string cpu;                                           // its name
  bool gpu_shared = false;                                   // takes more than one process at a time
  std::string against, against_file;                         // the module that it is compared with
  std::string against_problem;                               // why it is not
  std::vector<CaseResult> against_cases;  // what that one gets right and wrong; no part of the verdict
  std::vector<Timing> timings;
  std::map<std::string, Limits> limits;    // by device
  std::map<std::string, int> gpu_facts;    // of the GPU that was timed (harness/kernels.py); empty: none was
  std::vector<KernelUse> kernels;          // of our own module alone: of others nobody knows the launches
  std::string baseline, baseline_problem;  // its file, and why it says nothing here
  std::vector<AgainstBaseline> compared;
  std::size_t left_out = 0;  // cases of functions that the module does not have, and need not
  std::vector<std::string> notes;
  std::string blocked;               // why nothing, or not everything, could be run
  bool torch_import_failed = false;  // its import does
  double seconds = 0;
  Verdict verdict = Verdict::Inconclusive;
};

}  // namespace scankit::validate
