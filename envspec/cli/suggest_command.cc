// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <set>

#include "builder/compile/cache.h"
#include "builder/toolchain/toolchain.h"
#include "doctor/base/exit_status.h"
#include "doctor/base/files.h"
#include "doctor/base/machine.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/cli/commands.h"
#include "doctor/command_line/command_line.h"
#include "doctor/probes/packages/distributions.h"
#include "doctor/probes/target/target.h"
#include "doctor/report/progress.h"
#include "doctor/report/words.h"
#include "envspec/cli/commands.h"
#include "envspec/suggest/suggest.h"

// `scankit env suggest`.
namespace scankit::envspec {
namespace {

constexpr std::size_t kConfirmed = 3;  // as many sets as people are shown

// "3.11" and ">=3.10,<3.13" are versions, anything else is the path of an interpreter.
bool is_python_version(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789.*,<>=!~ ") == std::string::npos;
}

// What --for names, and the machine for everything that neither it nor an option describes.
struct Origin {
  Subject subject;
  std::string where;
  std::optional<Spec> spec;
};

// A snapshot is JSON, a spec is not.
Result<Origin> origin_of(const EnvSuggestOptions& options, DescribedTarget& described) {
  Origin origin;
  origin.where = say("this machine");
  SubjectOptions asked;
  asked.needs_python = false;  // the answer says which one, and what to do where none is here
  if (!described.from.empty()) {
    constexpr std::size_t kLimit = 64u << 20;
    SCANKIT_TRY(const std::string text, read_whole_file(described.from, kLimit));
    if (trimmed(text).starts_with('{')) {
      asked.from = described.from;
      origin.where = described.from;
    } else {
      SCANKIT_TRY(origin.spec, parse_spec(text, described.from));
    }
  }
  if (described.python.ends_with('t') &&
      is_python_version(described.python.substr(0, described.python.size() - 1)))
    return Error{
        Errc::Unsupported,
        message("--python {}: the sets are for Pythons with a GIL; mamba-ssm and causal-conv1d publish no "
                "wheels for free-threaded ones",
                printable(described.python)),
        message("install torch with the pip of that Python, then run scankit fix --python PATH")};
  if (!described.python.empty() && !is_python_version(described.python)) {
    if (!asked.from.empty())
      return Error{Errc::InvalidArgument,
                   message("--python {}: a stored snapshot has its own Python", options.target.python),
                   message("give a version, such as --python 3.11")};
    asked.python = described.python;
    described.python.clear();
  }
  auto subject = look_at(asked);
  // A broken environment is a reason to ask for a new one: with another Python the machine's facts are there.
  if (!subject && asked.python.empty() && asked.from.empty()) {
    asked.python = "python3";
    subject = look_at(asked);
  }
  SCANKIT_TRY(origin.subject, std::move(subject));
  return origin;
}

// An option outranks the spec.
void take_from_spec(const Spec& spec, DescribedTarget& described) {
  if (described.gpus.empty()) described.gpus = spec.gpus;
  if (described.driver.empty() && probes::driver_version_problem(spec.driver.least()).empty())
    described.driver = spec.driver.least();
  if (described.python.empty() && !spec.python.empty()) described.python = spec.python.text();
}

// CUDA majors of an nvcc that, with its host compiler, builds here. It is started, so only where one was found.
std::vector<unsigned> nvcc_majors(const Subject& subject) {
  std::vector<unsigned> majors;
  if (subject.host == nullptr || !subject.host->is_live() || !subject.snapshot.toolkits.present())
    return majors;
  const auto folder = compile::usable_cache_folder("");
  if (!folder) return majors;
  const compile::Cache cache(*folder, 0);
  std::set<unsigned> found;
  for (const Toolkit& toolkit : subject.snapshot.toolkits.value)
    if (const auto version = Version::parse(toolkit.version); version && !toolkit.nvcc.empty())
      found.insert(version->part(0));
  for (const unsigned major : found)
    if (toolchain::nvcc_of_major(*subject.host, subject.snapshot, cache, std::to_string(major)))
      majors.push_back(major);
  return majors;
}

Result<SuggestInstaller> chosen_installer(const EnvSuggestOptions& options, const Subject& subject) {
  SuggestInstaller found;
  const auto host = make_real_host();
  found = installer_for(*host, subject.host == nullptr ? Snapshot() : subject.snapshot);
  const std::string conda = probes::conda_command(*host);
  if (options.installer == "uv")
    return found.kind == SuggestInstaller::Kind::Uv ? found
                                                    : SuggestInstaller{SuggestInstaller::Kind::Uv, "uv"};
  if (options.installer == "conda")
    return found.kind == SuggestInstaller::Kind::Conda
               ? found
               : SuggestInstaller{SuggestInstaller::Kind::Conda, conda.empty() ? "conda" : conda};
  if (options.installer == "pip") return SuggestInstaller{SuggestInstaller::Kind::Pip, ""};
  return found;
}

// The first free one of ".venv", "scankit-env", "scankit-env-2", ...: a command must not change an environment that is
// there.
std::string directory_for(const EnvSuggestOptions& options) {
  if (!options.directory.empty()) return options.directory;
  const auto host = make_real_host();
  const auto taken = [&](const std::string& name) {
    return host->lstat(path_join(current_directory(), name)).has_value();
  };
  std::string name = ".venv";
  for (unsigned number = 1; taken(name); ++number)
    name = number == 1 ? "scankit-env" : "scankit-env-" + std::to_string(number);
  return name;
}

// Every installer would put its files among those that are there, or in their place.
Result<void> may_become_environment(const std::string& directory) {
  if (directory.empty()) return {};
  const auto host = make_real_host();
  const std::string path = path_join(current_directory(), directory);
  if (!host->lstat(path)) return {};
  const auto entries = host->list(path);
  if (entries && entries->empty()) return {};
  return Error{Errc::InvalidArgument,
               message("--directory {}: there is something already, which the commands would change",
                       printable(directory)),
               message("name a directory that does not exist yet, or an empty one")};
}

// What the user wishes, in addition to what the machine and the spec demand. mamba-ssm and causal-conv1d where only
// torch is restricted, or nothing.
Result<void> add_packages(const std::vector<std::string>& packages, SuggestRequest& request) {
  for (const std::string& text : packages) {
    SCANKIT_TRY(PackageWish wish, parse_package_wish(text));
    request.packages.push_back(std::move(wish));
  }
  const auto is_restriction = [](const PackageWish& wish) {
    return wish.name == "torch" || wish.name == "triton";
  };
  if (std::ranges::all_of(request.packages, is_restriction))
    for (const char* name : {"mamba-ssm", "causal-conv1d"}) request.packages.push_back({name, {}, name});
  return {};
}

// GPUs that are not those of this machine are named in the commands.
Result<CommandRequest> command_request(const EnvSuggestOptions& options, const Origin& origin,
                                       const SuggestTarget& target) {
  CommandRequest commands;
  SCANKIT_TRY(commands.installer, chosen_installer(options, origin.subject));
  commands.directory = directory_for(options);
  commands.scankit = report::scankit_program();
  std::vector<std::string> archs;
  for (const unsigned gpu : target.request.gpus) archs.push_back(sm(gpu));
  const bool elsewhere = origin.subject.host == nullptr || target.request.machine != kMachine;
  if (target.described_gpus || elsewhere) commands.archs = join(archs, ",");
  for (const PackageWish& wish : target.request.packages)
    if (wish.name == "triton") commands.extra.push_back(wish.text);
  return commands;
}

// A venv is made by a Python of its own minor release; uv and conda bring theirs.
void note_missing_python(SuggestAnswer& answer) {
  if (answer.suggestion.sets.empty() || answer.commands.installer.kind != SuggestInstaller::Kind::Pip) return;
  const auto host = make_real_host();
  const std::string program = "python" + answer.suggestion.sets.front().python;
  for (const std::string& folder : split_nonempty(host->env("PATH").value_or(""), ":"))
    if (host->is_program(path_join(folder, program))) return;
  answer.target.notes.push_back(
      message("{} was not found on PATH: install it, or use --installer uv, which brings it", program));
}

Result<SuggestAnswer> suggest_for(const EnvSuggestOptions& options) {
  DescribedTarget described = options.target;
  SCANKIT_TRY(Origin origin, origin_of(options, described));
  if (origin.spec) take_from_spec(*origin.spec, described);
  SuggestAnswer answer;
  const Snapshot& machine = origin.subject.snapshot;
  SCANKIT_TRY(answer.target, target_of(described, machine, origin.where));
  SuggestRequest& request = answer.target.request;
  if (origin.spec) add_spec(*origin.spec, answer.target);
  SCANKIT_CHECK(add_packages(options.packages, request));
  request.release_pages = !options.index_only;
  if (!answer.target.described_gpus && request.machine == kMachine)
    request.nvcc_majors = nvcc_majors(origin.subject);
  answer.suggestion = suggest(request);
  SCANKIT_TRY(answer.commands, command_request(options, origin, answer.target));
  answer.offline = options.offline;
  note_missing_python(answer);
  if (options.offline || answer.suggestion.sets.empty()) return answer;
  const IndexCheck check{
      index_installer_for(*make_real_host(), origin.subject.host == nullptr ? Snapshot() : machine),
      std::chrono::seconds(options.timeout)};
  answer.offline = check.installer.kind == installer::Installer::Kind::None;
  if (answer.offline) return answer;
  report::Progress progress(say("asking {} what the index has", installer::name_of(check.installer.kind)));
  check_index(check, kConfirmed, answer);
  return answer;
}

}  // namespace

int run_env_suggest(const EnvSuggestOptions& options) {
  if (!options.spec.empty())
    if (const auto may = may_write_spec(options.spec, options.force); !may) {
      cli::report_error(may.error());
      return kExitUsage;
    }
  if (const auto may = may_become_environment(options.directory); !may) {
    cli::report_error(may.error());
    return kExitUsage;
  }
  const auto answer = suggest_for(options);
  if (!answer) {
    cli::report_error(answer.error());
    if (answer.error().code == Errc::Unsupported) return kExitInconclusive;
    return answer.error().code == Errc::ToolFailed ? kExitFindings : kExitUsage;
  }
  const int shown = cli::show(suggest_views(*answer), options.show);
  if (!options.spec.empty() && !answer->suggestion.sets.empty()) {
    const auto written = write_spec(spec_of(*answer, answer->suggestion.sets.front()), options.spec);
    if (!written) {
      cli::report_error(written.error());
      return cli::exit_status_of(written.error());
    }
    report::progress_note(say("wrote {}", options.spec));
  }
  return cli::first_that_counts({shown, exit_status_of(*answer)});
}

namespace {

void add_target(CLI::App& command, DescribedTarget& target) {
  command
      .add_option("--gpu", target.gpus,
                  say("suggest for these GPUs instead of the installed ones: sm_90,sm_80, or none"))
      ->type_name("ARCH")
      ->delimiter(',')
      ->check(CLI::Validator(probes::gpu_name_problem, ""));
  command
      .add_option("--machine", target.machine,
                  say("suggest for this processor instead of this machine's: x86_64 or aarch64"))
      ->type_name("PROCESSOR")
      ->check(CLI::IsMember({"x86_64", "aarch64"}));
  command
      .add_option("--driver", target.driver,
                  say("suggest for this driver version instead of the installed one, such as 550.54"))
      ->type_name("VERSION")
      ->check(CLI::Validator(probes::driver_version_problem, ""));
  command
      .add_option("--glibc", target.glibc,
                  say("suggest for this glibc instead of this system's, such as 2.28"))
      ->type_name("VERSION");
  command
      .add_option("--python", target.python,
                  say("version or range such as 3.11, or an interpreter [default: that of this environment]"))
      ->type_name("VERSION|PATH");
  command
      .add_option("--for", target.from,
                  say("suggest for the machine of a stored snapshot, or for what a scankit.yaml requires"))
      ->type_name("SNAPSHOT|SPEC");
}

}  // namespace

void add_suggest_command(CLI::App& env, int& exit_status) {
  const auto options = std::make_shared<EnvSuggestOptions>();
  CLI::App* command = env.add_subcommand(
      "suggest", say("say which Python, torch, CUDA and packages fit together, and print the commands"));
  note(*command,
       {.examples = {"scankit env suggest", "scankit env suggest \"mamba-ssm>=2.3\" \"torch==2.8.*\"",
                     "scankit env suggest --gpu sm_90 --driver 550.54 --glibc 2.28 --python 3.11",
                     "scankit env suggest --machine aarch64 --gpu sm_121 --driver 580.95 --glibc 2.39",
                     "scankit env suggest --for machine.json --json --offline"},
        .statuses = {{kExitClean, say("a set fits")},
                     {kExitFindings, say("nothing fits")},
                     {kExitUsage, say("usage error")},
                     {kExitInconclusive, say("inconclusive")}},
        .trailing = {}});
  command
      ->add_option("package", options->packages,
                   say("packages with versions, also torch and triton [default: mamba-ssm causal-conv1d]"))
      ->type_name("PACKAGE");
  begin_group(*command, group_of_input());
  add_target(*command, options->target);
  command
      ->add_option("--installer", options->installer,
                   say("print commands for this installer [default: the one that is found]"))
      ->check(CLI::IsMember({"uv", "pip", "conda"}));
  command
      ->add_option("--directory", options->directory,
                   say("directory of the new environment [default: .venv, or a name that is free]"))
      ->type_name("DIR");
  command->add_flag("--index-only", options->index_only,
                    say("do not count wheels on release pages, which only setup.py can download"));
  command->add_flag("--offline", options->offline, say("do not query an index; use scankit's tables only"));
  constexpr unsigned kLongest = 86400;  // one day, so that it fits every clock
  command->add_option("--timeout", options->timeout, say("time limit of the index [default: 20]"))
      ->type_name("SECONDS")
      ->check(CLI::Range(1u, kLongest));
  begin_group(*command, group_of_output());
  command->add_option("--spec", options->spec, say("also write the best set as a scankit.yaml"))
      ->type_name("FILE");
  command->add_flag("--force", options->force, say("overwrite an existing spec"));
  command->add_flag("--json", options->show.json, say("print JSON on standard output"));
  cli::add_look_options(*command, options->show);
  command->callback([options, &exit_status] {
    cli::check_show_options(options->show);
    exit_status = run_env_suggest(*options);
  });
}

}  // namespace scankit::envspec
