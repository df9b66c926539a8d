// SPDX-License-Identifier: Apache-2.0
#include "doctor/matrix/matrix.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "doctor/base/files.h"
#include "doctor/base/version.h"
#include "doctor/checks/check.h"
#include "doctor/checks/gpu_queries.h"
#include "doctor/elf/library.h"
#include "doctor/matrix/places.h"
#include "doctor/model/loader_rules.h"
#include "doctor/probes/target/target.h"
#include "doctor/probes/target/target_resolve.h"

// One wheel is unpacked and opened once, and judged at every place by the checks: the snapshot of the place, with the wheel's
// files as the modules under diagnosis. The axes beside torch and Python are independent of both, so that each of their values is
// judged once, and only by the checks that ask about it.
namespace scankit::matrix {
namespace {

const std::string kAnyGlibc = "2.99";  // above every release there is

using CheckIds = std::vector<std::string_view>;
const CheckIds kCudaChecks{"cuda-runtime-found"},
    kGlibcChecks{"glibc-new-enough", "wheel-fits", "stack-accepted"},
    kGpuChecks{"gpu-arch-covered", "ptx-loadable", "driver-new-enough"};

// Files that are judged together: one wheel, or all files that are in none.
struct Candidate {
  std::string file;  // the wheel
  probes::NamedFiles named;
};

struct Group {
  FileGroup told;
  std::vector<Candidate> candidates;
};

Snapshot examined(Candidate& candidate, const Place& place) {
  Snapshot snapshot = described_machine(place);
  // What a newer glibc refuses is the axis's to say, as what an older one lacks is.
  if (place.glibc == kAnyGlibc) snapshot.environment["GLIBC_TUNABLES"] = kExecutableStackTunable;
  probes::probe_named_files_on_target(candidate.named, snapshot);
  snapshot.named_files = {candidate.file};
  return snapshot;
}

bool is_for_another_python(const Report& report) {
  return std::ranges::any_of(report.findings, [](const Finding& finding) {
    return finding.cause == Cause::PythonAbiTagMismatch && finding.severity() == Severity::Error;
  });
}

// A file for another Python is no failure, whatever else is wrong with it there: it is not offered.
Cell cell_of(const Report& report, const std::string& file) {
  Cell cell{.fit = Fit::Works, .cause = {}, .reason = {}, .file = file};
  if (is_for_another_python(report)) {
    cell.fit = Fit::NotOffered;
    return cell;
  }
  if (const Finding* finding = root(report); finding != nullptr && finding->severity() == Severity::Error) {
    cell.fit = Fit::Fails;
    cell.cause = info(finding->cause).slug;
    cell.reason = finding->summary;
    return cell;
  }
  for (const Outcome& outcome : report.outcomes)
    if ((outcome.state == CheckState::Unknown && outcome.could_hide_error) ||
        outcome.state == CheckState::Crashed) {
      cell.fit = Fit::Unknown;
      cell.reason = outcome.why;
      return cell;
    }
  return cell;
}

// Of the outcomes of these checks alone. A milder finding leaves the fit and is the reason.
Cell cell_of_checks(const Report& report, const CheckIds& checks, const std::string& file) {
  Cell cell{.fit = Fit::Works, .cause = {}, .reason = {}, .file = file};
  for (const Outcome& outcome : report.outcomes) {
    if (std::ranges::find(checks, outcome.check) == checks.end()) continue;
    for (const Finding& finding : outcome.findings) {
      const bool fails = finding.severity() == Severity::Error;
      if (cell.fit == Fit::Fails || (!fails && !cell.reason.empty())) continue;
      if (fails) cell.fit = Fit::Fails;
      if (fails) cell.cause = info(finding.cause).slug;
      cell.reason = finding.summary;
    }
    const bool open = outcome.state == CheckState::Unknown || outcome.state == CheckState::Crashed;
    if (!open || cell.fit == Fit::Fails) continue;
    cell.fit = Fit::Unknown;
    cell.reason = outcome.why;
  }
  return cell;
}

// A wheel that works speaks for the group; else what can be said of the last that is for this Python.
Cell judge_place(Group& group, const Place& place) {
  Cell best{.fit = Fit::NotOffered,
            .cause = {},
            .reason = message("none of the given files is for Python {}", place.python),
            .file = {}};
  for (Candidate& candidate : group.candidates) {
    const Cell cell = cell_of(checks::diagnose(examined(candidate, place)), candidate.file);
    if (cell.fit == Fit::Works) return cell;
    if (cell.fit != Fit::NotOffered) best = cell;
  }
  return best;
}

// "sm_80" for a cubin, "compute_90" for PTX; the smallest numbers first, cubins before PTX.
std::vector<std::string> device_code_of(const std::vector<Extension>& files) {
  std::set<std::pair<bool, unsigned>> found;
  std::map<std::pair<bool, unsigned>, std::string> suffix;
  for (const Extension& file : files)
    for (const DeviceImage& image : file.images) {
      const std::pair key{image.kind != "cubin", image.sm};
      found.insert(key);
      suffix[key] = image.specific;
    }
  std::vector<std::string> names;
  for (const auto& key : found)
    names.push_back((key.first ? "compute_" : "sm_") + std::to_string(key.second) + suffix[key]);
  return names;
}

// Sonames that the libraries of the closures need, other than one another and what an axis decides.
void take_system_libraries(const Host& host, const std::vector<Extension>& files,
                           std::set<std::string>& found) {
  elf::LibraryCache cache(host);
  std::set<std::string> own, needed;
  for (const Extension& file : files)
    for (const std::string& path : file.closure) {
      own.insert(path_basename(path));
      if (!path.starts_with('/')) continue;  // of the described machine: a soname
      if (const auto library = cache.open(path))
        needed.insert((*library)->dynamic.needed.begin(), (*library)->dynamic.needed.end());
    }
  for (const std::string& soname : needed)
    if (!own.contains(soname) && !depends_on_an_axis(soname) && !probes::is_glibc_library(soname))
      found.insert(soname);
}

// The files as they say themselves what they are: on a machine of their own kind, which has nothing that they could need.
std::vector<Extension> files_of(Candidate& candidate) {
  Place place{.torch = "2.6",
              .python = "3.11",
              .cuda = {},
              .machine = "x86_64",
              .glibc = kAnyGlibc,
              .gpu = {},
              .driver = {},
              .system_libraries = {}};
  std::vector<Extension> files = examined(candidate, place).extensions.value;
  if (files.empty() || files.front().machine.empty() || files.front().machine == place.machine) return files;
  place.machine = files.front().machine;
  return examined(candidate, place).extensions.value;
}

// What the files of all wheels of the group need, and what they hold.
void describe(Group& group) {
  std::vector<Extension> all;
  std::set<std::string> system_libraries, executable_stack;
  for (Candidate& candidate : group.candidates) {
    const std::vector<Extension> files = files_of(candidate);
    take_system_libraries(*candidate.named.host, files, system_libraries);
    all.insert(all.end(), files.begin(), files.end());
  }
  FileGroup& told = group.told;
  told.libraries = all.size();
  told.system_libraries = {system_libraries.begin(), system_libraries.end()};
  for (const Extension& file : all) {
    for (const std::string& path : file.executable_stack) executable_stack.insert(path_basename(path));
    if (told.machine.empty()) told.machine = file.machine;
    if (told.cuda_major.empty()) told.cuda_major = file.cuda_major;
    const auto have = Version::parse(told.glibc_min), want = Version::parse(file.glibc_min);
    if (want && (!have || *have < *want)) told.glibc_min = file.glibc_min;
  }
  told.executable_stack = {executable_stack.begin(), executable_stack.end()};
  told.device_code = device_code_of(all);
}

// A CUDA release of the major that the files are linked to. Files that are linked to none fit a build of torch with any.
std::string usual_cuda(const FileGroup& told) {
  for (const auto& [major, release] :
       {std::pair{"10", "10.2"}, {"11", "11.8"}, {"12", "12.6"}, {"13", "13.0"}})
    if (told.cuda_major == major) return release;
  return "12.6";
}

void judge_torch_and_python(const MatrixRequest& request, const Place& usual, Group& group) {
  const bool all = request.pythons.empty();
  for (const std::string& torch : request.torch)
    for (const std::string& python : all ? known_pythons() : request.pythons) {
      Place place = usual;
      place.torch = torch;
      place.python = python;
      Cell cell{.fit = Fit::NoTorch,
                .cause = {},
                .reason = message("torch {} has no wheels for Python {}", torch, python),
                .file = {}};
      if (torch_has_wheels_for(torch, python)) cell = judge_place(group, place);
      group.told.cells.push_back({torch, python, std::move(cell)});
    }
  if (!all) return;
  std::set<std::string> offered;
  for (const MatrixCell& one : group.told.cells)
    if (one.cell.fit != Fit::NoTorch && one.cell.fit != Fit::NotOffered) offered.insert(one.python);
  std::erase_if(group.told.cells, [&](const MatrixCell& one) { return !offered.contains(one.python); });
}

// The place by which the other axes are judged: the newest that works, else the newest for which a file is offered.
Place place_for_axes(const MatrixRequest& request, const Place& usual, const FileGroup& told) {
  Place place = usual;
  place.torch = request.torch.back();
  place.python = told.cells.empty() ? "3.11" : told.cells.back().python;
  for (const Fit wanted : {Fit::Fails, Fit::Unknown, Fit::Works})
    for (const MatrixCell& cell : told.cells)
      if (cell.cell.fit == wanted) place.torch = cell.torch, place.python = cell.python;
  return place;
}

// Every wheel that is for this Python, or the files in none: an axis value works where one of them does.
Cell judge_axis(Group& group, const Place& place, const CheckIds& checks) {
  Cell last{.fit = Fit::NotOffered,
            .cause = {},
            .reason = message("none of the given files is for Python {}", place.python),
            .file = {}};
  for (Candidate& candidate : group.candidates) {
    const Report report = checks::diagnose(examined(candidate, place));
    if (is_for_another_python(report)) continue;
    last = cell_of_checks(report, checks, candidate.file);
    if (last.fit == Fit::Works) break;
  }
  return last;
}

// Where no cubin is for the GPU the driver has to compile the PTX: it works, slower at first.
void tell_ptx(const FileGroup& told, std::vector<AxisCell>& gpus) {
  for (AxisCell& gpu : gpus) {
    const auto wanted = Version::parse(gpu.value.substr(3));
    const bool native = std::ranges::any_of(told.device_code, [&](const std::string& code) {
      if (!code.starts_with("sm_")) return false;
      DeviceImage image{.kind = "cubin", .sm = static_cast<unsigned>(std::stoul(code.substr(3)))};
      return wanted && checks::runs_on(image, static_cast<unsigned>(wanted->part(0)));
    });
    if (gpu.cell.fit == Fit::Works && !native && !told.device_code.empty() && gpu.cell.reason.empty())
      gpu.cell.reason = message("by its PTX, which the driver compiles at the first call");
  }
}

void judge_axes(const MatrixRequest& request, const Place& usual, Group& group) {
  const Place place = place_for_axes(request, usual, group.told);
  const auto judge = [&](const std::vector<std::string>& values, std::string Place::*field,
                         const CheckIds& checks, std::vector<AxisCell>& cells) {
    for (const std::string& value : values) {
      Place other = place;
      other.*field = value;
      cells.push_back({value, judge_axis(group, other, checks)});
    }
  };
  judge(request.cudas, &Place::cuda, kCudaChecks, group.told.cudas);
  judge(request.glibcs, &Place::glibc, kGlibcChecks, group.told.glibcs);
  judge(request.gpus, &Place::gpu, kGpuChecks, group.told.gpus);
  tell_ptx(group.told, group.told.gpus);
}

// Each wheel by itself; everything that is in none as one candidate.
Result<std::vector<Group>> groups_of(const std::vector<std::string>& names, std::vector<Message>& notes) {
  SCANKIT_TRY(const probes::NamedFiles all, probes::open_named_files_alone(names));
  notes = probes::module_file_problems(*make_real_host(), all);
  std::map<std::string, Group> groups;
  for (const Wheel& wheel : all.wheels) {
    SCANKIT_TRY(probes::NamedFiles named, probes::open_named_files_alone({wheel.path}));
    const std::string name =
        wheel.name.empty() ? path_basename(wheel.path) : wheel.name + " " + wheel.version;
    Group& group = groups[name];
    group.told.name = name;
    group.told.files.push_back(wheel.path);
    group.candidates.push_back({wheel.path, std::move(named)});
  }
  std::vector<std::string> others;
  for (const probes::NamedFile& file : all.files)
    if (std::ranges::find(all.wheels, file.folder, &Wheel::path) == all.wheels.end())
      others.push_back(file.path);
  if (!others.empty()) {
    SCANKIT_TRY(probes::NamedFiles named, probes::open_named_files_alone(names));
    std::erase_if(named.files, [&](const probes::NamedFile& file) {
      return std::ranges::find(others, file.path) == others.end();
    });
    named.wheels.clear();
    Group& group = groups["files"];
    group.told.name = "files";
    group.told.files = others;
    group.candidates.push_back({"", std::move(named)});
  }
  std::vector<Group> list;
  for (auto& [name, group] : groups) list.push_back(std::move(group));
  return list;
}

}  // namespace

std::string_view fit_word(Fit fit) {
  constexpr std::array<std::string_view, 5> kWords{"works", "fails", "unknown", "not-offered", "no-torch"};
  return kWords[static_cast<std::size_t>(fit)];
}

Result<Matrix> matrix_of(const MatrixRequest& request) {
  Matrix matrix;
  SCANKIT_TRY(std::vector<Group> groups, groups_of(request.files, matrix.notes));
  for (Group& group : groups) {
    describe(group);
    if (group.told.libraries == 0) continue;
    const Place usual{.torch = {},
                      .python = {},
                      .cuda = usual_cuda(group.told),
                      .machine = group.told.machine.empty() ? "x86_64" : group.told.machine,
                      .glibc = kAnyGlibc,
                      .gpu = {},
                      .driver = request.driver,
                      .system_libraries = group.told.system_libraries};
    judge_torch_and_python(request, usual, group);
    judge_axes(request, usual, group);
    matrix.groups.push_back(std::move(group.told));
  }
  if (matrix.groups.empty())
    return Error{Errc::InvalidArgument, message("none of the given files contains a compiled module"),
                 message("give a shared library, a wheel with one, or a directory of them")};
  return matrix;
}

Fit overall(const Matrix& matrix) {
  bool unknown = false, fails = false, works = false;
  const auto take = [&](const Cell& cell) {
    works = works || cell.fit == Fit::Works;
    unknown = unknown || cell.fit == Fit::Unknown;
    fails = fails || cell.fit == Fit::Fails || cell.fit == Fit::NotOffered;
  };
  for (const FileGroup& group : matrix.groups) {
    for (const MatrixCell& cell : group.cells) take(cell.cell);
    for (const auto* axis : {&group.cudas, &group.glibcs, &group.gpus})
      for (const AxisCell& cell : *axis) take(cell.cell);
  }
  if (fails) return Fit::Fails;
  return unknown || !works ? Fit::Unknown : Fit::Works;
}

}  // namespace scankit::matrix
