// SPDX-License-Identifier: Apache-2.0
#include "validate/cli.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>

#include "doctor/base/exit_status.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/host/host.h"
#include "doctor/probes/python.h"
#include "doctor/probes/python_choice.h"
#include "doctor/probes/sys_path.h"
#include "doctor/probes/whose_code.h"
#include "validate/progress.h"
#include "validate/random.h"
#include "validate/report.h"
#include "validate/run.h"

namespace scankit {
namespace {

struct Options {
  std::optional<std::string> python;
  std::string module = "selective_scan_cuda";
  std::string device = "all";
  bool import_foreign = false, quick = false, full = false, json = false, list_cases = false,
       deterministic = false, no_timing = false;
  std::optional<std::uint64_t> seed;
  int timeout = 0;
  std::vector<std::string> only;
};

int complain(const Error& error, int status) {
  std::fprintf(stderr, "scankit validate: %s%s%s\n", retold(error.message).c_str(),
               error.hint.empty() ? "" : "; ", retold(error.hint).c_str());
  return status;
}

// New data each time, unless the user repeats a run. 32 bits: enough, and easy to copy.
std::uint64_t fresh_seed() {
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  return validate::mix(static_cast<std::uint64_t>(now) ^ static_cast<std::uint64_t>(::getpid()) << 40) >> 32;
}

Result<std::vector<validate::Case>> choose_cases(const Options& options, std::uint64_t seed) {
  auto cases = validate::cases_of(options.module, seed, options.full);
  if (options.only.empty()) return cases;
  std::vector<validate::Case> chosen;
  for (const std::string& id : options.only) {
    const auto found = std::find_if(cases.begin(), cases.end(), [&](const auto& c) { return c.id == id; });
    if (found == cases.end())
      return Error{
          Errc::InvalidArgument, say("--case {}: no such case with this seed and list", id),
          say("scankit validate --list-cases names them (add --full and --seed as in the run you repeat)")};
    chosen.push_back(*found);
  }
  return chosen;
}

bool names_a_file(const std::string& module) {
  return module.find('/') != std::string::npos || module.ends_with(".so") || module.ends_with(".py");
}

Result<std::string> choose_module(const std::string& module) {
  if (!names_a_file(module)) return module;
  const std::string path = module.front() == '/' ? module : path_join(current_directory(), module);
  const auto info = make_real_host()->stat(path);
  if (!info) return Error{Errc::InvalidArgument, say("--module {}: {}", module, info.error().message), ""};
  if (info->kind != FileKind::Regular)
    return Error{Errc::InvalidArgument, say("--module {} is not a file", module),
                 say("name the .so file, or the module")};
  return path;
}

// Running somebody else's Python is running their code (DESIGN decision 17).
Result<void> ours_to_run(const Host& host, const std::string& python, const std::string& module) {
  const auto probed = probe_python(host, python);
  auto foreign = foreign_code(host, probed.value);
  for (const std::string& name : {std::string("torch"), module}) {
    if (foreign) break;
    const auto found =
        names_a_file(name) || !probed.present() ? std::nullopt : find_python_module(host, probed.value, name);
    foreign = foreign_to_root(host, found ? found->path : names_a_file(name) ? name : "");
  }
  if (!foreign) return {};
  return Error{Errc::PermissionDenied,
               say("{} belongs to user {}, and validating would run that user's code as root", foreign->path,
                   foreign->uid),
               say("run scankit as that user, or allow it with --import")};
}

int status_of(validate::Verdict verdict) {
  return verdict == validate::Verdict::Passed   ? kExitClean
         : verdict == validate::Verdict::Failed ? kExitValidationFailed
                                                : kExitInconclusive;
}

bool cases_are_timed(const std::string& module) {
  const std::string name = module.substr(module.rfind('/') + 1);
  return name.find("causal_conv1d") == std::string::npos && !name.starts_with("selective_scan_cuda_");
}

validate::ValidateRequest make_request(const Options& options, std::uint64_t seed) {
  validate::ValidateRequest request;
  request.mode = options.full ? "full" : "quick";
  request.seed = seed;
  request.deterministic = options.deterministic;
  // Timed are the calls of the one module that upstream's figures are for.
  request.timing = !options.no_timing && options.only.empty() && cases_are_timed(options.module);
  request.total = std::chrono::seconds(options.timeout > 0 ? options.timeout : options.full ? 7200 : 600);
  request.each_case = std::min(request.each_case, request.total);
  if (options.device != "all") request.devices = {options.device == "cpu" ? "cpu" : "cuda:0"};
  request.require_cuda = options.device == "cuda";
  return request;
}

// What JSON will hold is English; the progress is for people either way.
Result<validate::Validation> validated(validate::ValidateRequest request, bool json) {
  const Language* language = spoken_language();
  validate::ProgressPrinter progress;
  request.progress = [&](const validate::Progress& now) {
    const Speaking to_the_user(language);
    progress.show(now);
  };
  const Speaking facts(json ? nullptr : language);
  return run_validation(request);
}

int validate_command(const Options& options) {
  const std::uint64_t seed = options.seed.value_or(fresh_seed());
  auto cases = choose_cases(options, seed);
  if (!cases) return complain(cases.error(), kExitUsage);
  if (options.list_cases) {
    for (const validate::Case& c : *cases) std::printf("%s\n", validate::case_to_json(c).c_str());
    return kExitClean;
  }
  validate::ValidateRequest request = make_request(options, seed);
  request.cases = std::move(*cases);
  auto module = choose_module(options.module);
  if (!module) return complain(module.error(), kExitUsage);
  request.module = std::move(*module);
  std::vector<std::string> notes;
  auto python = choose_python(*make_real_host(), options.python, notes);
  if (!python) return complain(python.error(), options.python ? kExitUsage : kExitInconclusive);
  request.python = std::move(*python);
  for (const std::string& note : notes) std::fprintf(options.json ? stderr : stdout, "%s\n", note.c_str());
  if (!options.import_foreign)
    if (const auto ours = ours_to_run(*make_real_host(), request.python, request.module); !ours)
      return complain(ours.error(), kExitInconclusive);
  auto result = validated(std::move(request), options.json);
  if (!result) return complain(result.error(), kExitInternal);
  std::fputs((options.json ? validate::json_report(*result) : validate::text_report(*result)).c_str(),
             stdout);
  return status_of(result->verdict);
}

}  // namespace

void add_validate_commands(CLI::App& app, int& exit_status) {
  auto* command = app.add_subcommand(
      "validate",
      say("prove that a selective_scan_cuda computes right: forward and every gradient against fp64"));
  auto options = std::make_shared<Options>();
  command->add_option("--python", options->python, say("the Python whose module is validated"));
  command->add_option("--module", options->module, say("module name, or the path of a module file"))
      ->capture_default_str();
  auto* quick = command->add_flag("--quick", options->quick, say("the short list of cases (default)"));
  command->add_flag("--full", options->full, say("the short list and hundreds of random cases"))
      ->excludes(quick);
  command->add_option("--device", options->device, say("cpu, cuda or all (all that torch sees)"))
      ->check(CLI::IsMember({"cpu", "cuda", "all"}))
      ->capture_default_str();
  command->add_option("--seed", options->seed,
                      say("repeat a run: the data, and with --full the shapes, follow it"));
  command->add_option("--case", options->only, say("only this case (repeatable)"))->allow_extra_args(false);
  command->add_option("--timeout", options->timeout, say("seconds for the whole run (600; with --full 7200)"))
      ->check(CLI::Range(1, 1000000));
  command->add_flag("--deterministic", options->deterministic,
                    say("fail where two equal calls differ in any bit"));
  command->add_flag("--no-timing", options->no_timing, say("leave out the comparison of speed"));
  command->add_flag("--import", options->import_foreign, say("run it even as root on files of another user"));
  command->add_flag("--list-cases", options->list_cases,
                    say("print the cases as JSON lines and run nothing"));
  command->add_flag("--json", options->json, say("the result as JSON on standard output"));
  command->callback([options, &exit_status] { exit_status = validate_command(*options); });
}

}  // namespace scankit
