// SPDX-License-Identifier: Apache-2.0
#include "doctor/probes/imports/observed.h"

#include <algorithm>
#include <future>
#include <map>
#include <mutex>
#include <optional>

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/host/host.h"
#include "doctor/probes/python/python.h"
#include "doctor/probes/python/sys_path.h"
#include "doctor/probes/snapshot.h"

namespace scankit::probes {
namespace {

constexpr std::size_t kMostTried =
    16;  // each imports torch anew; an environment broken as a whole has hundreds

// A whole library for this Python of which the static pass says that it would fail.
bool is_suspect(const AuditedFile& file) {
  const bool lacks =
      !file.missing_libraries.empty() || !file.missing_symbols.empty() || !file.unmet_versions.empty();
  return file.file_state == "elf" && file.resolved && file.not_for_this_python.empty() && lacks;
}

// The package whose import prepares the file's libraries: the first folder below the site folder; "" for a
// file that lies in the site folder itself.
std::string package_of(const Snapshot& snapshot, const std::string& path) {
  for (const std::string& folder : snapshot.audit.value.folders) {
    if (!path.starts_with(folder + "/")) continue;
    const std::string rest = path.substr(folder.size() + 1);
    const auto slash = rest.find('/');
    if (slash == std::string::npos) return "";
    const std::string name = rest.substr(0, slash);
    const bool is_name = name.find_first_of(".-") == std::string::npos;
    return is_name ? name : "";
  }
  return "";
}

// The time for one child; 0 or less where the deadline has passed.
std::chrono::milliseconds time_for(const ObserveRequest& request) {
  using std::chrono::milliseconds;
  if (!request.deadline) return request.timeout;
  const auto left =
      std::chrono::duration_cast<milliseconds>(*request.deadline - std::chrono::steady_clock::now());
  return std::min(left, request.timeout);
}

// "?" lets the child go on after a failure: the file counts, whatever becomes of torch and the package.
bool loads(const Snapshot& snapshot, const AuditedFile& file, std::chrono::milliseconds timeout) {
  std::vector<std::string> imports;
  if (file.uses_torch) imports.emplace_back("?torch");
  if (const std::string package = package_of(snapshot, file.path); !package.empty())
    imports.push_back("?" + package);
  imports.push_back(file.path);
  const ChildAnswer answer = import_in_child(snapshot.python.value.requested, imports, timeout, {}, true);
  return std::ranges::any_of(answer.imports, [&](const Observation& seen) {
    return seen.module == file.path && seen.outcome == "ok";
  });
}

}  // namespace

void try_suspects(Snapshot& snapshot, const ObserveRequest& request) {
  if (!snapshot.audit.present()) return;
  std::size_t tried = 0;
  for (AuditedFile& file : snapshot.audit.value.files) {
    if (!is_suspect(file)) continue;
    const auto timeout = time_for(request);
    if (timeout <= std::chrono::milliseconds::zero() || tried == kMostTried) return;
    ++tried;
    if (!loads(snapshot, file, timeout)) continue;
    file.missing_libraries.clear();
    file.missing_symbols.clear();
    file.unmet_versions.clear();
    file.settled_by.clear();
    file.resolution_note = message("it was observed to load");
  }
}

namespace {

// A name that nobody chose but the maintainer of an installed package. The user's own command would see the current
// directory for a module that the user has asked for, and for those that scankit knows.
bool only_declared(const Snapshot& snapshot, const std::string& module) {
  for (const auto* chosen : {&snapshot.modules_asked, &kDefaultModules, &kRareModules})
    if (std::ranges::find(*chosen, module) != chosen->end()) return false;
  return std::ranges::any_of(snapshot.declared, [&](const DeclaredPackage& package) {
    return std::ranges::find(package.modules, module) != package.modules.end();
  });
}

// What an import of torch with its CUDA libraries keeps in memory, rounded up (measured: 0.6 GiB
// for 2.11+cu130).
constexpr std::uint64_t kMemoryOfOne = 1u << 30;

struct Task {
  std::vector<std::string> modules;
  bool apart = false;  // from the current directory
  ChildAnswer answer;
};

// Tells what the children import, whenever that changes.
class Running {
 public:
  explicit Running(const ObserveRequest& request) : request_(request) {}

  void begin(std::size_t child, const std::string& module, std::chrono::milliseconds limit) {
    const std::lock_guard guard(lock_);
    const auto [known, is_new] = children_.try_emplace(child);
    known->second.module = module;
    known->second.limit = limit;
    if (is_new) known->second.since = Clock::now();
    tell();
  }
  void end(std::size_t child) {
    const std::lock_guard guard(lock_);
    children_.erase(child);
    tell();
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct Child {
    std::string module;
    Clock::time_point since;
    std::chrono::milliseconds limit{0};
  };

  // The child that began first, and how many others there are. Called with the lock held.
  void tell() const {
    if (!request_.running || children_.empty()) return;
    const Child& first =
        std::ranges::min_element(children_, {}, [](const auto& one) { return one.second.since; })->second;
    const std::size_t more = children_.size() - 1;
    request_.running(more == 0 ? message("importing {}", first.module)
                               : message_n(more, "importing {} and {} other module",
                                           "importing {} and {} other modules", first.module, more),
                     first.since, first.limit);
  }

  const ObserveRequest& request_;
  std::mutex lock_;
  std::map<std::size_t, Child> children_;
};

// How many children at a time: as many as memory and cores allow, and four at most. One where either
// is unknown.
std::size_t at_once(const Snapshot& snapshot) {
  const std::uint64_t memory = snapshot.memory.present() ? snapshot.memory.value.available / kMemoryOfOne : 1;
  const std::uint64_t cores = snapshot.cpu.present() ? snapshot.cpu.value.logical : 1;
  return static_cast<std::size_t>(std::clamp<std::uint64_t>(std::min(memory, cores), 1, 4));
}

std::chrono::milliseconds time_left(const ObserveRequest& request) {
  using std::chrono::milliseconds;
  if (!request.deadline) return milliseconds::max();
  return std::chrono::duration_cast<milliseconds>(*request.deadline - std::chrono::steady_clock::now());
}

// An import that the budget cut short hangs no more than one that was not begun: what was seen is no answer.
bool out_of_time(const ObserveRequest& request) {
  return time_left(request) <= std::chrono::milliseconds::zero();
}

Probed<std::vector<Observation>> no_time() {
  return Probed<std::vector<Observation>>::failed(
      message("the imports did not end within the time limit of --budget"));
}

// In groups of `width`; a group ends with its slowest child. A task with torch and more gets twice the time.
// A task for which the deadline leaves no time keeps an empty answer.
void run_all(const std::string& python, std::vector<Task>& tasks, std::size_t width,
             const ObserveRequest& request) {
  Running imports(request);
  for (std::size_t first = 0; first < tasks.size(); first += width) {
    const auto left = time_left(request);
    if (left <= std::chrono::milliseconds::zero()) return;
    std::vector<std::future<ChildAnswer>> running;
    for (std::size_t i = first; i < std::min(tasks.size(), first + width); ++i)
      running.push_back(std::async(std::launch::async, [&, i] {
        const auto& modules = tasks[i].modules;
        const auto limit = std::min(left, (modules.size() > 2 ? 2 : 1) * request.timeout);
        imports.begin(i, bare_name(modules.front()), limit);
        auto answer = import_in_child(
            python, modules, limit, [&](const std::string& module) { imports.begin(i, module, limit); },
            tasks[i].apart);
        imports.end(i);
        return answer;
      }));
    for (std::size_t i = 0; i < running.size(); ++i) tasks[first + i].answer = running[i].get();
  }
}

// Why no import may be tried; "" where it may.
Message forbidden(const Host& host, const Snapshot& snapshot, const ObserveRequest& request) {
  if (!host.is_live() || !snapshot.target_root.empty())
    return message("the examined system is not the one that runs");
  if (!snapshot.python.present()) return message("no Python to import with");
  if (request.policy == ImportPolicy::Never) return "--no-import";
  if (request.policy == ImportPolicy::Always) return "";
  const auto foreign = foreign_code(host, snapshot);
  if (!foreign) return "";
  return request.can_be_asked_for
             ? message(
                   "{} belongs to user {}, and scankit runs as root: an import would run that user's code as "
                   "root (run scankit as that user, or allow it with --import)",
                   foreign->path, foreign->uid)
             : message(
                   "{} belongs to user {}, and scankit runs as root: an import would run that user's code as "
                   "root (run scankit as that user)",
                   foreign->path, foreign->uid);
}

// The module itself is not installed, as against one that it imports.
bool no_such_module(const Observation& seen) {
  return seen.outcome == "error" && seen.exception == "ModuleNotFoundError" &&
         seen.message.english().find("'" + seen.module + "'") != std::string::npos;
}

// torch's extensions fail by themselves, for want of torch's libraries. One that works needs no second trial,
// and one that hangs would hang again.
bool torch_may_help(const Observation& seen) {
  return (seen.outcome == "error" && !no_such_module(seen)) || seen.outcome == "crashed";
}

Observation not_run(const std::string& module, const std::string& variant, const Message& why) {
  return {.module = module, .variant = variant, .outcome = "not-run", .why_not_run = why};
}

// The interpreter itself hangs, dies or leaves before any import: a fact about it, and all there is to see.
// Failed where it could not even be asked.
Probed<std::vector<Observation>> no_interpreter(const ChildAnswer& answer) {
  using Seen = Probed<std::vector<Observation>>;
  if (answer.outcome.empty()) return Seen::failed(answer.why_not);
  return Seen::of({{.module = "python",
                    .variant = "start",
                    .outcome = answer.outcome,
                    .exception = answer.outcome == "error" ? "exit" : "",
                    .message = answer.why_not,
                    .signal = answer.signal,
                    .duration_ms = answer.duration_ms}});
}

// A member of an archive (an egg, a zip on sys.path) is no file of its own.
bool lies_in_a_file(const Host& host, std::string path) {
  for (; path.size() > 1; path = path_dirname(path))
    if (const auto info = host.stat(path)) return info->kind == FileKind::Regular;
  return false;
}

// "a.b" from ".../b.abi3.so" or ".../b/__init__.py".
bool has_name_of(const std::string& file, const std::string& module) {
  const std::string last = module.substr(module.rfind('.') + 1);
  std::string name = path_basename(file);
  if (name.starts_with("__init__.")) name = path_basename(path_dirname(file)) + ".";
  return name.starts_with(last + ".");
}

// Why a module cannot have come from where its interpreter says; "" where it can.
Message unbacked(const Host& host, const Python& python, const Observation& seen) {
  if (seen.file.empty()) {
    // A module may make others without a file (torch.ops); one that stands alone has to come from somewhere.
    const bool found =
        find_python_module(host, python, seen.module.substr(0, seen.module.find('.'))).has_value();
    return found ? Message()
                 : message(
                       "the interpreter reports that it imported {} without a file, and no file was found "
                       "on its path",
                       seen.module);
  }
  // What the child could not write as UTF-8 does not name the file any more.
  if (seen.file.find("\\udc") != std::string::npos) return "";
  const std::string file = path_join(current_directory(), seen.file);
  if (!lies_in_a_file(host, file))
    return message("the interpreter reports that it imported {} from {}, but that file does not exist",
                   seen.module, file);
  if (!has_name_of(file, seen.module))
    return message("the interpreter reports that it imported {} from {}, but that file has another name",
                   seen.module, file);
  return "";
}

// sitecustomize.py and the lines of .pth files run before our program and have its channel: they can say
// anything. Code of the user's cannot be kept from lying about itself, but a file is there or is not.
void disbelieve_unbacked(const Host& host, const Python& python, std::vector<Observation>& all) {
  for (Observation& seen : all) {
    if (seen.outcome != "ok") continue;
    if (const Message why = unbacked(host, python, seen); !why.empty())
      seen = not_run(seen.module, seen.variant, why);
  }
}

// `torch, module` in one child: what became of torch, and of the module after it.
void take_torch_first(const Task& task, bool& torch_seen, std::vector<Observation>& seen) {
  const auto& imports = task.answer.imports;
  if (!torch_seen && !imports.empty()) {
    torch_seen = true;
    seen.push_back(imports[0]);
    seen.back().variant = "torch-only";
  }
  if (task.modules.size() < 2) return;
  if (imports.size() < 2) {
    seen.push_back(
        not_run(bare_name(task.modules[1]), "torch-first", message("`import torch` before it failed")));
    return;
  }
  seen.push_back(imports[1]);
  seen.back().variant = "torch-first";
}

}  // namespace

std::vector<Message> namesakes_here(const Host& host, const Snapshot& snapshot) {
  std::vector<Message> notes;
  const auto& path = snapshot.python.value.sys_path;
  if (path.empty() || path.front().origin != "cwd") return notes;
  const std::string& here = path.front().path;
  // An editable installation of the sources here is imported from here.
  if (std::ranges::count(path, here, &PathEntry::path) > 1) return notes;
  for (const std::string& module : snapshot.modules) {
    const std::string top = path_join(here, module.substr(0, module.find('.')));
    const std::string file = host.exists(top + "/__init__.py") ? top : top + ".py";
    if (only_declared(snapshot, module) && host.exists(file))
      notes.push_back(message(
          "a program that is started in this directory imports {} instead of the installed {}; scankit "
          "imported the installed one (--module {} imports what such a program would)",
          file, module, module));
  }
  return notes;
}

Probed<std::vector<Observation>> observe_imports(const Host& host, const Snapshot& so_far,
                                                 const ObserveRequest& request) {
  using Seen = Probed<std::vector<Observation>>;
  if (const Message why = forbidden(host, so_far, request); !why.empty())
    return {ProbeState::NotRun, why, {}};
  const std::string& python = so_far.python.value.requested;
  const std::size_t width = at_once(so_far);

  // As the user does it: plain, in a fresh interpreter. Only what fails so is tried again after torch.
  std::vector<Task> bare, after_torch;
  for (const std::string& module : so_far.modules)
    bare.push_back({.modules = {with_called_names(so_far, module)}, .apart = only_declared(so_far, module)});
  run_all(python, bare, std::max<std::size_t>(width, 2), request);
  if (out_of_time(request)) return no_time();
  std::vector<Observation> seen;
  for (const Task& task : bare) {
    if (task.answer.imports.empty()) return no_interpreter(task.answer);
    seen.push_back(task.answer.imports.front());
    seen.back().variant = "bare";
    if (torch_may_help(seen.back()))
      after_torch.push_back(
          {.modules = {"torch", with_called_names(so_far, seen.back().module)}, .apart = task.apart});
  }
  const bool torch = so_far.torch.state != ProbeState::Absent;
  if (torch && after_torch.empty()) after_torch.push_back({.modules = {"torch"}});
  if (!torch) after_torch.clear();
  // The first tasks are modules, the rest are packages: their answers are read differently.
  const std::size_t of_modules = after_torch.size();
  for (auto& modules : package_imports(so_far, torch)) after_torch.push_back({.modules = std::move(modules)});
  run_all(python, after_torch, width, request);
  if (out_of_time(request)) return no_time();
  bool torch_seen = false;
  for (std::size_t i = 0; i < after_torch.size(); ++i) {
    const Task& task = after_torch[i];
    if (task.answer.imports.empty()) return no_interpreter(task.answer);
    if (i < of_modules)
      take_torch_first(task, torch_seen, seen);
    else
      take_package(bare_name(task.modules.front()), task.answer.imports, seen);
  }
  disbelieve_unbacked(host, so_far.python.value, seen);
  return Seen::of(std::move(seen));
}

}  // namespace scankit::probes
