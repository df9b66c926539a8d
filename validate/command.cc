// SPDX-License-Identifier: Apache-2.0
#include "validate/command.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "doctor/base/exit_status.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/cli/reports.h"
#include "doctor/command_line/command_line.h"
#include "doctor/declared/own_test.h"
#include "doctor/host/host.h"
#include "doctor/probes/python/python.h"
#include "doctor/probes/python/sys_path.h"
#include "doctor/report/progress.h"
#include "doctor/report/words.h"
#include "validate/cases/random.h"
#include "validate/judge/judge.h"
#include "validate/report/report.h"
#include "validate/run/run.h"

namespace scankit::validate {
namespace {

// Ids for --case that are not in the list of cases: the Mamba block around the module, scankit's
// own and mamba_ssm's.
constexpr const char *kModelBlock = "model-block", *kModelOfMamba = "model-mamba_ssm";

int report_error(const Error& error, int status) {
  std::fprintf(stderr, "scankit validate: %s\n", clauses({tr(error.message), tr(error.hint)}).c_str());
  return status;
}

// New data in each run that has no --seed. 32 bits are enough, and easy to copy.
std::uint64_t fresh_seed() {
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  return mix(static_cast<std::uint64_t>(now) ^ static_cast<std::uint64_t>(::getpid()) << 40) >> 32;
}

// All cases of the module, or those of --case in the order of the command line.
Result<std::vector<Case>> choose_cases(const Options& options, std::uint64_t seed) {
  auto cases = cases_of(options.module, seed, options.full);
  if (options.only.empty()) return cases;
  std::vector<Case> chosen;
  for (const std::string& id : options.only) {
    if (id == kModelBlock || id == kModelOfMamba) continue;
    const auto found = std::find_if(cases.begin(), cases.end(), [&](const auto& c) { return c.id == id; });
    if (found == cases.end())
      return Error{
          Errc::InvalidArgument, message("--case {}: no such case with this seed and list", id),
          message(
              "scankit validate --list-cases lists them (add --full and --seed as in the run you repeat)")};
    chosen.push_back(*found);
  }
  return chosen;
}

// The rule for --module and --against. A dotted name such as "package.module" is a module.
bool names_a_file(const std::string& module) {
  return module.find('/') != std::string::npos || module.ends_with(".so") || module.ends_with(".py");
}

// A module name must be one that there are cases for. A file may have any name: what it contains shows
// when it is loaded.
Result<void> check_module_name(const std::string& module) {
  if (names_a_file(module)) return {};
  const auto& known = validated_modules();
  const std::string name = module.substr(module.rfind('.') + 1);  // "package.selective_scan_cuda"
  if (std::ranges::find(known, name) != known.end()) return {};
  const std::string like = nearest_word(name, known);
  return Error{
      Errc::InvalidArgument,
      message("--module {}: cannot be validated; validate has cases only for {}", module, join(known)),
      like.empty() ? message("to validate one of these under another name, give its file")
                   : message("did you mean {}?", like)};
}

// A name as it is, or the absolute path of a file: children run in another directory.
Result<std::string> choose_module(const char* option, const std::string& module) {
  if (!names_a_file(module)) return module;
  const std::string path = module.front() == '/' ? module : path_join(current_directory(), module);
  const auto info = make_real_host()->stat(path);
  if (!info)
    return Error{Errc::InvalidArgument, message("{} {}: {}", option, module, info.error().message), ""};
  if (info->kind != FileKind::Regular)
    return Error{Errc::InvalidArgument, message("{} {} is not a file", option, module),
                 message("give the .so file, or the module")};
  return path;
}

// As root, refuses to import files of another user, since importing them runs that user's code
// (ARCHITECTURE.md, decision 17). Looks at the interpreter, torch and the module.
Result<void> ours_to_run(const Host& host, const std::string& python, const std::string& module) {
  const auto probed = probes::probe_python(host, python);
  auto foreign = probes::foreign_code(host, probed.value);
  for (const std::string& name : {std::string("torch"), module}) {
    if (foreign) break;
    const auto found = names_a_file(name) || !probed.present()
                           ? std::nullopt
                           : probes::find_python_module(host, probed.value, name);
    foreign = probes::foreign_to_root(host, found ? found->path : names_a_file(name) ? name : "");
  }
  if (!foreign) return {};
  return Error{Errc::PermissionDenied,
               message("{} belongs to user {}, and validating would run that user's code as root",
                       foreign->path, foreign->uid),
               message("run scankit as that user, or allow it with --import")};
}

int status_of(Verdict verdict) {
  return verdict == Verdict::Passed   ? kExitClean
         : verdict == Verdict::Failed ? kExitValidationFailed
                                      : kExitInconclusive;
}

// Only for modules with mamba-ssm's contract: the convolution and VMamba's modules have other functions,
// and no timed shapes.
bool cases_are_timed(const std::string& module) {
  const std::string name =
      "." + module.substr(module.rfind('/') + 1);  // a file's, or a dotted one: "vmamba.x"
  return name.find("causal_conv1d") == std::string::npos &&
         name.find(".selective_scan_cuda_") == std::string::npos;
}

ValidateRequest make_request(const Options& options, std::uint64_t seed) {
  ValidateRequest request;
  request.mode = options.full ? "full" : "quick";
  request.seed = seed;
  request.deterministic = options.deterministic;
  // Timed are the calls of the one module that upstream's figures are for.
  const bool compared = !options.against.empty() || !options.baseline.empty();
  request.timing =
      !options.no_timing && (options.only.empty() || compared) && cases_are_timed(options.module);
  const auto& only = options.only;
  const auto asked = [&](const char* id) { return std::find(only.begin(), only.end(), id) != only.end(); };
  request.upstream_model = options.full || asked(kModelOfMamba);
  request.model =
      (only.empty() || asked(kModelBlock) || asked(kModelOfMamba)) && cases_are_timed(options.module);
  request.total = std::chrono::seconds(options.timeout > 0 ? options.timeout : options.full ? 7200 : 600);
  request.each_case = std::min(request.each_case, request.total);
  request.devices = {options.device};
  if (options.device == "all") request.devices = {"cpu", "cuda"};
  request.require_cuda = options.device.starts_with("cuda");
  return request;
}

// The harness's phases for people; anything else is the id of a case.
std::string in_words(const std::string& what, const std::string& module) {
  if (what == "import torch") return say("importing torch");
  if (what == "import module") return say("importing {}", path_basename(module));
  return what == "timing" ? say("timing it") : what;
}

// Sentences that end up in JSON are English, while the progress speaks the user's language: both are
// produced during the run, so that the language changes for each of them.
Result<Validation> validated(ValidateRequest request, bool json, bool quiet) {
  const Language* language = spoken_language();
  const Speaking facts(json ? nullptr : language);
  if (quiet) return run_validation(request);
  report::Progress all(say("validating {}", path_basename(request.module))), one;
  std::string running;
  request.progress = [&](const Progress& now) {
    all.count(now.done, now.total);
    if (now.what != running) one.now(in_words(now.what, request.module), now.limit);
    running = now.what;
    if (now.warning.empty()) return;
    const Speaking to_the_user(language);
    report::progress_note(now.warning);
  };
  return run_validation(request);
}

// The files that the user named: the modules, upstream's tests and the baseline. A baseline is parsed
// here, since an unusable one should not be reported after minutes of work.
Result<void> choose_files(const Options& options, ValidateRequest& request) {
  SCANKIT_TRY(request.module, choose_module("--module", options.module));
  if (!options.against.empty()) {
    SCANKIT_TRY(request.against, choose_module("--against", options.against));
  }
  if (!options.upstream_tests.empty()) {
    request.commented_parameters = options.commented_parameters;
    SCANKIT_TRY(request.upstream_tests, choose_module("--upstream-tests", options.upstream_tests));
    if (!names_a_file(options.upstream_tests))
      return Error{Errc::InvalidArgument,
                   message("--upstream-tests {} is not a file", options.upstream_tests),
                   message("give mamba_ssm's tests/ops/test_selective_scan.py")};
  }
  if (options.baseline.empty()) return {};
  request.baseline = options.baseline;
  const auto text = make_real_host()->read_file(options.baseline, 64u << 20);
  if (!text)
    return Error{Errc::InvalidArgument, message("--baseline {}: {}", options.baseline, text.error().message),
                 message("give the output of an earlier run with --json or --report json=FILE")};
  request.baseline_text = *text;
  if (const std::string why = baseline_form_problem(*text); !why.empty())
    return Error{Errc::InvalidArgument, message("--baseline {}: {}", options.baseline, why),
                 message("give the output of an earlier run with --json or --report json=FILE")};
  return {};
}

// Prints and writes what was asked for.
int tell(const Options& options, const Validation& result) {
  const int status = status_of(result.verdict);
  const int shown = cli::show(validation_views(result, status), options.show);
  return shown != kExitClean ? shown : status;
}

// The interpreter, or nothing and the exit status. A Python that was named and does not work is a usage error; one that
// was only found makes the answer inconclusive.
std::optional<std::string> python_of(const Options& options, int& status) {
  std::vector<Message> notes;
  auto python = probes::choose_python(*make_real_host(), options.python, notes);
  if (!python) {
    const bool broken = python.error().code == Errc::ToolFailed;
    status = report_error(python.error(), options.python ? kExitUsage
                                          : broken       ? kExitFindings
                                                         : kExitInconclusive);
    return std::nullopt;
  }
  if (!options.show.quiet)
    for (const Message& note : notes)
      std::fprintf(options.show.json ? stderr : stdout, "%s\n", tr(note).c_str());
  return std::move(*python);
}

// As root, refuses a test of another user, like a module (ours_to_run()).
Result<void> test_is_ours_to_run(const Host& host, const std::string& python, const std::string& test) {
  SCANKIT_CHECK(ours_to_run(host, python, test));
  return ours_to_run(host, python, path_dirname(test) + "/");
}

// --test: that one file, and no case of scankit's.
int validate_test(const Options& options) {
  const auto host = make_real_host();
  const auto file = declared::own_test_file(*host, "--test", options.test);
  if (!file) return report_error(file.error(), kExitUsage);
  int status = kExitClean;
  const auto python = python_of(options, status);
  if (!python) return status;
  if (!options.import_foreign)
    if (const auto ours = test_is_ours_to_run(*host, *python, *file); !ours)
      return report_error(ours.error(), kExitInconclusive);
  const Speaking facts(options.show.json ? nullptr : spoken_language());
  const std::chrono::seconds limit(options.timeout > 0 ? options.timeout : 600);
  return tell(options, run_test_file(*python, *file, limit, !options.show.quiet));
}

}  // namespace

// The steps of the command in order, each with the exit status of its failure.
int validate_command(const Options& options) {
  if (const std::string clash = cli::report_clash(options.show.reports, options.show.json); !clash.empty())
    return report_error({Errc::InvalidArgument, clash, ""}, kExitUsage);
  if (!options.test.empty()) return validate_test(options);
  const std::uint64_t seed = options.seed.value_or(fresh_seed());
  if (const auto known = check_module_name(options.module); !known)
    return report_error(known.error(), kExitUsage);
  auto cases = choose_cases(options, seed);
  if (!cases) return report_error(cases.error(), kExitUsage);
  if (options.list_cases) {
    for (const Case& c : *cases) std::printf("%s\n", case_to_json(c).c_str());
    return kExitClean;
  }
  ValidateRequest request = make_request(options, seed);
  request.cases = std::move(*cases);
  if (const auto chosen = choose_files(options, request); !chosen)
    return report_error(chosen.error(), kExitUsage);
  int status = kExitClean;
  auto python = python_of(options, status);
  if (!python) return status;
  request.python = std::move(*python);
  if (!options.import_foreign)
    if (const auto ours = ours_to_run(*make_real_host(), request.python, request.module); !ours)
      return report_error(ours.error(), kExitInconclusive);
  auto result = validated(std::move(request), options.show.json, options.show.quiet);
  if (!result) return report_error(result.error(), kExitInternal);
  return tell(options, *result);
}

}  // namespace scankit::validate
