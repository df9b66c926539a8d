// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

#include "doctor/base/say.h"
#include "validate/cases/data.h"
#include "validate/run/children.h"
#include "validate/run/run.h"

// Runs a few small cases under NVIDIA's compute-sanitizer. Its tools find accesses outside of allocations,
// races in shared memory, reads of memory that nobody wrote, and barriers that not all threads reach. Only
// their findings count here; the results of the cases were judged in the main run.
namespace scankit::validate {
namespace {

constexpr int kFoundErrors = 86;  // none of Python's nor of the harness's
constexpr std::size_t kCases = 4;
constexpr std::int64_t kSmall =
    20000;  // states over all steps: its tools make a kernel a thousand times slower
constexpr std::size_t kLinesShown = 6;

std::vector<Task> small_tasks(const ValidateRequest& request) {
  std::vector<Task> tasks;
  for (const Case& c : request.cases) {
    const std::int64_t states = std::int64_t{c.batch} * c.dim * c.length * c.states;
    if (c.width == 0 && !c.stateful && states > 0 && states <= kSmall && tasks.size() < kCases)
      tasks.push_back({&c, first_gpu(request.devices)});
  }
  return tasks;
}

// Where the sanitizer may be. The bare name comes first: run_process() searches PATH for it.
std::vector<std::string> places() {
  std::vector<std::string> found{"compute-sanitizer"};
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* folder = std::getenv(variable))
      found.push_back(std::string(folder) + "/bin/compute-sanitizer");
  found.emplace_back("/usr/local/cuda/bin/compute-sanitizer");
  return found;
}

Result<ProcessResult> run_under(const std::string& sanitizer, const char* tool,
                                const ValidateRequest& request, const std::string& script) {
  ProcessRequest process = python_request(request.python, {script}, std::chrono::minutes(5));
  // torch's cache cuts tensors out of large blocks, and the sanitizer only knows the ends of the blocks.
  process.environment->emplace_back("PYTORCH_NO_CUDA_MEMORY_CACHING=1");
  process.argv.insert(process.argv.begin(), {sanitizer, "--tool", tool, "--error-exitcode",
                                             std::to_string(kFoundErrors), "--print-limit", "5"});
  Job job;
  job.module = request.module;
  job.case_seconds = 250;
  job.tasks = small_tasks(request);
  process.standard_input = job_text(job);
  return run_process(process);
}

// The sanitizer starts each of its lines with "========= ".
std::vector<std::string> sanitizer_lines(const ProcessResult& result) {
  std::vector<std::string> lines;
  const std::string text = result.out + result.err;
  for (std::size_t at = 0; at < text.size() && lines.size() < kLinesShown;) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    if (line.starts_with("========= ") && line.find("COMPUTE-SANITIZER") == std::string::npos)
      lines.push_back(line.substr(10, 300));
  }
  return lines;
}

CaseResult judged(const char* tool, const std::string& device, const ProcessResult& result) {
  CaseResult c;
  c.id = std::string("compute-sanitizer-") + tool;
  c.device = device;
  c.seconds = static_cast<double>(result.duration.count()) / 1000;
  ChildStory story;
  Validation heard;  // its results are those of the other run; here only that it came to its end counts
  take_lines(result.channel, heard, story);
  if (result.exit_code == kFoundErrors && !result.timed_out && result.signal == 0) {
    c.state = CaseState::Failed;
    c.reasons = sanitizer_lines(result);
  } else if (result.ok() && story.ended) {
    c.state = CaseState::Passed;
  } else {
    c.state = CaseState::NotRun;
    c.reasons = {describe_end(result)};
  }
  return c;
}

}  // namespace

void run_sanitizer(const ValidateRequest& request, const std::string& script, Validation& seen) {
  if (small_tasks(request).empty()) return;
  for (const std::string& place : places()) {
    bool here = false;
    for (const char* tool : {"memcheck", "racecheck", "initcheck", "synccheck"}) {
      const auto result = run_under(place, tool, request, script);
      if (!result) break;
      here = true;
      seen.cases.push_back(judged(tool, first_gpu(request.devices), *result));
    }
    if (here) return;
  }
  seen.notes.push_back(say("compute-sanitizer was not found: memory errors inside kernels were not checked"));
}

}  // namespace scankit::validate
