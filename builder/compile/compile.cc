// SPDX-License-Identifier: Apache-2.0
#include "builder/compile/compile.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/checks/snapshot_queries.h"
#include "doctor/elf/fatbin.h"
#include "doctor/report/progress.h"

namespace scankit::compile {
namespace {

constexpr std::uint64_t kMemoryPerJob = 1ull << 30;  // NVRTC peaks at 0.15 GiB on our units, nvcc at 0.2
constexpr std::size_t kImageLimit = 128u << 20;

struct Task {
  const toolchain::Unit* unit;
  const module::Target* target;
};

// A compiler's success is checked in its output: an image of the right kind, for the right architecture.
bool is_image(const std::string& bytes, const module::Target& target) {
  if (!target.ptx) {
    const auto facts = elf::cubin_facts(bytes);
    return facts && facts->sm == target.sm;
  }
  const auto facts = elf::ptx_facts(bytes);
  return facts && facts->sm == target.sm;
}

// The text of each file in the device source, so that a miss can name the file that changed. The amalgamation
// (kernels/common/amalgamate.cmake) puts a line "// kernels/PATH" before the first line of each file.
std::map<std::string, std::string> source_parts(std::string_view source) {
  std::map<std::string, std::string> parts;
  std::string name;
  while (!source.empty()) {
    const std::string_view line = source.substr(0, source.find('\n'));
    if (line.starts_with("// kernels/") && line.find(' ', 3) == std::string_view::npos)
      name = line.substr(3);
    else if (!name.empty())
      parts[name].append(line).append("\n");
    source.remove_prefix(std::min(source.size(), line.size() + 1));
  }
  return parts;
}

// One compile_units() call. `tasks_` has each target with all its units, and `results_` has the same
// indices. Workers take tasks from `missing_` through `next_`; `mutex_` guards `running_`, `results_`,
// `failed_` and `done_`.
class Compilation {
 public:
  Compilation(const CompileRequest& request, std::string folder)
      : request_(request), keys_(request), folder_(std::move(folder)) {
    for (const module::Target& target : request.targets)
      for (const toolchain::Unit& unit : request.units) tasks_.push_back({&unit, &target});
    results_.resize(tasks_.size());
  }

  Result<std::vector<BuiltCode>> run() {
    find_cached();
    if (missing_.empty()) return collect();
    if (request_.before) SCANKIT_CHECK(request_.before());
    SCANKIT_CHECK(write_file_atomically(source_path(), request_.source));
    report::Progress progress;
    progress_ = &progress;
    progress.count(0, missing_.size());
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
    std::vector<Miss> misses;
    // Unit by unit instead of target by target: units.def has the longest units first, and with the short
    // ones at the end no processor is idle for long.
    for (std::size_t unit = 0; unit < request_.units.size(); ++unit)
      for (std::size_t i = unit; i < tasks_.size(); i += request_.units.size()) {
        const Task& task = tasks_[i];
        const Key key = keys_.key(*task.unit, *task.target);
        auto known = request_.cache->look_up(key);
        if (!known.bytes) {
          missing_.push_back(i);
          misses.push_back(why_missed(task, key, known.damage));
          continue;
        }
        results_[i] = BuiltCode{task.unit->name, *task.target, std::move(*known.bytes), "", true};
        request_.cache->remember(key, keys_.slot(*task.unit, *task.target));
      }
    if (missing_.empty())
      return tell(say_n(tasks_.size(), "the one image is in the cache", "all {} images are in the cache",
                        tasks_.size()));
    for (const std::string& line : misses_in_words(misses)) tell(line);
  }

  // Compares with the inputs of the last build of the same slot; without one, nothing was ever built.
  Miss why_missed(const Task& task, const Key& key, const std::string& damage) const {
    Miss miss{task.unit->name, task.target->name(), Miss::Kind::Damaged, {}, damage};
    if (!damage.empty()) return miss;
    const auto before = request_.cache->last_inputs(keys_.slot(*task.unit, *task.target));
    miss.kind = before ? Miss::Kind::Changed : Miss::Kind::NeverBuilt;
    if (before) miss.changes = changes_in_words(parse_inputs(*before), key.inputs());
    if (before && miss.changes.empty()) miss.kind = Miss::Kind::Gone;
    return miss;
  }

  // The body of each worker thread. A worker ends at the first failure of any of them; compilers that are
  // already running end by themselves.
  void work() {
    for (;;) {
      const std::size_t next = next_++;
      if (next >= missing_.size() || stop_) return;
      const std::size_t i = missing_[next];
      begin(i);
      auto made = compile(tasks_[i], path_join(folder_, "image" + std::to_string(i)));
      const std::lock_guard<std::mutex> guard(mutex_);
      running_.erase(i);
      if (!made) {
        // Tasks start in order, and those before this one still end. So the first of all failing tasks is the
        // one that is reported, whatever the timing.
        if (!failed_ || next < failed_at_) {
          failed_ = made.error();
          failed_at_ = next;
        }
        stop_ = true;
        return;
      }
      results_[i] = std::move(*made);
      progress_->count(++done_, missing_.size());
      show_running();
    }
  }

  void begin(std::size_t task) {
    const std::lock_guard<std::mutex> guard(mutex_);
    running_[task] = report::Progress::Clock::now();
    show_running();
  }

  // Shows the compiler that has run for longest, since a build that makes no progress waits for that one. The
  // caller has locked `mutex_`.
  void show_running() const {
    const auto longest = std::ranges::min_element(running_, {}, [](const auto& one) { return one.second; });
    if (longest == running_.end()) return;
    const Task& task = tasks_[longest->first];
    progress_->now(say("compiling {} for {}", task.unit->name, task.target->name()), request_.timeout,
                   longest->second);
  }

  // Runs one compiler. Stores the image at once, so that an interrupted build goes on from there.
  Result<BuiltCode> compile(const Task& task, const std::string& out) const {
    const toolchain::DeviceCompiler::Job job{task.unit, task.target, source_path(), out, request_.timeout};
    const KillCount before = count_kills();
    SCANKIT_TRY(const ProcessResult ran, compiler_for(request_, *task.target).compile(job));
    if (!ran.ok()) return compile_failure(job, ran, before);
    auto bytes = read_whole_file(out, kImageLimit);
    if (!bytes || !is_image(*bytes, *task.target)) return no_image(job, ran);
    request_.cache->store(keys_.key(*task.unit, *task.target), keys_.slot(*task.unit, *task.target), *bytes);
    return BuiltCode{task.unit->name, *task.target, std::move(*bytes), "", false};
  }

  // Adds the hash and the compiler's version to each image, also to those from the cache.
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
  KeyMaker keys_;
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
  report::Progress* progress_ = nullptr;
  std::map<std::size_t, report::Progress::Clock::time_point> running_;  // tasks, since when
};

}  // namespace

const toolchain::DeviceCompiler& compiler_for(const CompileRequest& request, const module::Target& target) {
  for (std::size_t i = 0; i < request.compilers.size() && i < request.targets.size(); ++i)
    if (request.targets[i] == target) return *request.compilers[i];
  return *request.compiler;
}

KeyMaker::KeyMaker(const CompileRequest& request) : request_(request) {
  // A change of this text makes every image in every cache a miss.
  common_.add("format", "device-image-2");
  common_.add("source name", request.source_name);
  common_.add("source", sha256_hex(request.source));
  for (const auto& [name, text] : source_parts(request.source))
    common_.add(kSourcePart + name, sha256_hex(text));
}

Key KeyMaker::key(const toolchain::Unit& unit, const module::Target& target) const {
  const toolchain::DeviceCompiler& compiler = compiler_for(request_, target);
  Key key = common_;
  key.add("compiler", compiler.kind() + " " + compiler.version() + " " + compiler.sha256());
  compiler.add_inputs(key);
  key.add("unit", unit.name);
  key.add("target", target.name());
  key.add("flags", join(compiler.common_flags(), " ") + " " + join(unit.flags, " "));
  return key;
}

std::string KeyMaker::slot(const toolchain::Unit& unit, const module::Target& target) const {
  return request_.source_name + " " + unit.name + " " + target.name();
}

Result<std::vector<BuiltCode>> compile_units(const CompileRequest& request) {
  if (request.targets.empty()) return std::vector<BuiltCode>();
  SCANKIT_TRY(const auto folder, TemporaryDirectory::create("scankit-build"));
  auto images = Compilation(request, folder.path()).run();
  request.cache->trim();
  return images;
}

// sched_getaffinity counts the processors that this process may use, which can be fewer than the machine has.
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

}  // namespace scankit::compile
