// SPDX-License-Identifier: Apache-2.0
#include "builder/compile.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <mutex>
#include <optional>
#include <thread>

#include "doctor/base/files.h"
#include "doctor/base/say.h"

namespace scankit {
namespace {

constexpr auto kCompileTimeout = std::chrono::minutes(10);
constexpr std::uint64_t kMemoryPerJob = 1ull << 30;  // NVRTC peaks at 0.1 to 0.4 GiB on our units
constexpr std::size_t kImageLimit = 128u << 20;

struct Task {
  const Unit* unit;
  const Target* target;
};

std::string join(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

Error failure(const Task& task, const ProcessResult& ran) {
  std::string why = ran.err.substr(0, ran.err.find('\n'));
  std::string rest = ran.err.size() > why.size() ? ran.err.substr(why.size() + 1) : "";
  why = retold(why);
  while (!rest.empty() && rest.back() == '\n') rest.pop_back();
  if (ran.timed_out) why = say("the compiler did not end within 10 minutes");
  if (!ran.timed_out && ran.signal == SIGKILL)
    why = say("the compiler was killed, probably for want of memory");
  if (!ran.timed_out && ran.signal != 0 && ran.signal != SIGKILL)
    why = say("the compiler died of signal {}", ran.signal);
  return {ran.timed_out ? Errc::Timeout : Errc::ToolFailed,
          say("compiling {} for {} failed: {}", task.unit->name, task.target->name(), why), rest};
}

class Compilation {
 public:
  Compilation(const CompileRequest& request, std::string folder)
      : request_(request), folder_(std::move(folder)) {
    for (const Target& target : request.targets)
      for (const Unit& unit : request.units) tasks_.push_back({&unit, &target});
    results_.resize(tasks_.size());
  }

  Result<std::vector<BuiltCode>> run() {
    find_cached();
    if (missing_.empty()) return collect();
    SCANKIT_CHECK(write_file_atomically(source_path(), request_.source));
    const std::size_t threads = std::clamp<std::size_t>(request_.jobs, 1, missing_.size());
    {
      std::vector<std::jthread> workers;
      for (std::size_t i = 0; i < threads; ++i) workers.emplace_back([this] { work(); });
    }
    if (failed_) return *failed_;
    return collect();
  }

 private:
  std::string source_path() const { return path_join(folder_, request_.source_name); }

  void tell(const std::string& line) const {
    if (request_.progress) request_.progress(line);
  }

  void find_cached() {
    for (std::size_t i = 0; i < tasks_.size(); ++i) {
      const Key key = key_of(request_, *tasks_[i].unit, *tasks_[i].target);
      if (auto bytes = request_.cache->find(key))
        results_[i] = BuiltCode{tasks_[i].unit->name, *tasks_[i].target, std::move(*bytes), "", true};
      else
        missing_.push_back(i);
    }
    if (missing_.empty())
      return tell(say_n(tasks_.size(), "the one image is in the cache", "all {} images are in the cache",
                        tasks_.size()));
    const Task& first = tasks_[missing_.front()];
    const auto changed =
        request_.cache->why_missed(key_of(request_, *first.unit, *first.target), slot(first));
    if (!changed.empty()) tell(say("not in the cache: changed {}", join(changed)));
  }

  static std::string slot(const Task& task) { return task.unit->name + " " + task.target->name(); }

  void work() {
    for (;;) {
      const std::size_t next = next_++;
      if (next >= missing_.size() || stop_) return;
      const std::size_t i = missing_[next];
      auto made = compile(tasks_[i], path_join(folder_, "image" + std::to_string(i)));
      const std::lock_guard<std::mutex> guard(mutex_);
      if (!made) {
        // Tasks start in order, so those before this one still end: the first of all that fail is named,
        // always.
        if (!failed_ || next < failed_at_) {
          failed_ = made.error();
          failed_at_ = next;
        }
        stop_ = true;
        return;
      }
      results_[i] = std::move(*made);
      tell("[" + std::to_string(++done_) + "/" + std::to_string(missing_.size()) + "] " + slot(tasks_[i]));
    }
  }

  Result<BuiltCode> compile(const Task& task, const std::string& out) const {
    const DeviceCompiler::Job job{task.unit, task.target, source_path(), out, kCompileTimeout};
    SCANKIT_TRY(const ProcessResult ran, compiler_for(request_, *task.target).compile(job));
    if (!ran.ok()) return failure(task, ran);
    SCANKIT_TRY(std::string bytes, read_whole_file(out, kImageLimit));
    // A full or read-only cache is no reason to fail.
    (void)request_.cache->store(key_of(request_, *task.unit, *task.target), slot(task), bytes);
    return BuiltCode{task.unit->name, *task.target, std::move(bytes), "", false};
  }

  std::vector<BuiltCode> collect() {
    std::vector<BuiltCode> images;
    for (auto& result : results_) {
      result->sha256 = sha256_hex(result->bytes);
      result->compiler = compiler_for(request_, result->target).version();
      images.push_back(std::move(*result));
    }
    return images;
  }

  const CompileRequest& request_;
  std::string folder_;
  std::vector<Task> tasks_;
  std::vector<std::size_t> missing_;
  std::vector<std::optional<BuiltCode>> results_;
  std::atomic<std::size_t> next_{0};
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::optional<Error> failed_;
  std::size_t failed_at_ = 0;
  std::size_t done_ = 0;
};

}  // namespace

const DeviceCompiler& compiler_for(const CompileRequest& request, const Target& target) {
  for (std::size_t i = 0; i < request.compilers.size() && i < request.targets.size(); ++i)
    if (request.targets[i] == target) return *request.compilers[i];
  return *request.compiler;
}

Key key_of(const CompileRequest& request, const Unit& unit, const Target& target) {
  const DeviceCompiler& compiler = compiler_for(request, target);
  Key key;
  key.add("format", "device-image-1");
  key.add("unit", unit.name);
  key.add("target", target.name());
  key.add("flags", join(compiler.common_flags()) + " " + join(unit.flags));
  key.add("source", sha256_hex(request.source));
  key.add("source name", request.source_name);
  key.add("compiler", compiler.kind() + " " + compiler.version() + " " + compiler.sha256());
  compiler.add_inputs(key);
  return key;
}

Result<std::vector<BuiltCode>> compile_units(const CompileRequest& request) {
  SCANKIT_TRY(const auto folder, TemporaryDirectory::create("scankit-build"));
  return Compilation(request, folder.path()).run();
}

unsigned compile_jobs(const Probed<Memory>& memory) {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  unsigned jobs = 1;
  if (::sched_getaffinity(0, sizeof(usable), &usable) == 0) jobs = static_cast<unsigned>(CPU_COUNT(&usable));
  if (memory.present()) {
    std::uint64_t room = memory.value.available;
    if (memory.value.cgroup_limit) room = std::min(room, *memory.value.cgroup_limit);
    jobs = std::min(jobs, static_cast<unsigned>(std::min<std::uint64_t>(room / kMemoryPerJob, 1024)));
  }
  return std::max(jobs, 1u);
}

}  // namespace scankit
