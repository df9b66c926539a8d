// SPDX-License-Identifier: Apache-2.0
#include "envspec/suggest/index_check.h"

#include <algorithm>
#include <map>

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/model/snapshot_variables.h"
#include "envspec/index/index.h"

namespace scankit::envspec {
namespace {

using Words = std::vector<std::string>;
using Clock = std::chrono::steady_clock;

// "manylinux_2_28" of glibc 2.28, as uv names platforms; it knows those from 2.17 to 2.41.
std::string platform_of(const SuggestAnswer& answer, const SuggestedSet& set) {
  const std::string& wished = answer.target.request.glibc;
  std::string glibc = wished.empty() ? set.build->glibc : wished;
  const auto parsed = Version::parse(glibc);
  constexpr unsigned kOldest = 17, kNewest = 40;
  const unsigned minor = std::clamp(parsed ? parsed->part(1) : 28, kOldest, kNewest);
  return "x86_64-manylinux_2_" + std::to_string(minor);
}

// uv resolves for a Python and a platform that are not those of this machine. Dependencies are resolved as well: what
// they exclude is an answer of the index, too.
Words uv_words(const installer::Installer& uv, const SuggestAnswer& answer, const SuggestedSet& set,
               const std::string& folder) {
  Words argv = uv.program;
  for (const std::string& word :
       {std::string("pip"), std::string("compile"), std::string("--no-progress"),
        std::string("--only-binary"), std::string(":all:"), std::string("--python-version"), set.python,
        std::string("--python-platform"), platform_of(answer, set), std::string("--output-file"),
        folder + "/answer.txt"})
    argv.push_back(word);
  if (!set.build->on_index) argv.push_back("--torch-backend=" + set.build->backend());
  argv.push_back(folder + "/questions.in");
  return argv;
}

// `pip install --dry-run` before 25.3 downloads whole wheels, gigabytes of torch. `pip index versions` downloads none, but
// knows no dependencies. It lists what fits the Python, without yanked releases.
Words pip_words(const installer::Installer& pip, const std::string& name, const SuggestedSet& set) {
  Words argv = pip.program;
  for (const std::string& word :
       {std::string("--disable-pip-version-check"), std::string("--no-input"), std::string("index"),
        std::string("versions"), name, std::string("--python-version"), set.python, std::string("--retries"),
        std::string("1")})
    argv.push_back(word);
  return argv;
}

bool says_any(const std::string& said, std::initializer_list<const char*> words) {
  return std::ranges::any_of(words, [&](const char* word) { return said.find(word) != std::string::npos; });
}

// The network's failures, as pip and uv word them; anything else that fails is the index's answer.
bool is_unreachable(const std::string& said) {
  return says_any(
      said, {"error sending request", "dns error", "Connection refused", "Request failed after",
             "network connectivity is disabled", "Retrying (Retry(", "Connection to ", "Max retries exceeded",
             "Network is unreachable", "Read timed out", "no such option", "unexpected argument"});
}

// The installer's sentence about what it lacks, in one line of at most some hundred characters.
std::string reason_in(const std::string& said) {
  std::string reason;
  for (const std::string_view line : lines_of(said)) {
    const std::string_view text = trimmed(line);
    if (text.starts_with("WARNING") || text.starts_with("warning") || text.empty()) continue;
    reason += (reason.empty() ? "" : " ") + std::string(text);
  }
  constexpr std::size_t kReasonLength = 300;
  if (reason.size() > kReasonLength) reason = reason.substr(0, kReasonLength) + "...";
  return printable(reason);
}

class SetAsker {
 public:
  SetAsker(const IndexCheck& check, const SuggestAnswer& answer)
      : check_(check), answer_(answer), end_(Clock::now() + check.deadline) {}

  IndexAnswer ask(const SuggestedSet& set) {
    if (!set.build->on_index && check_.installer.kind != installer::Installer::Kind::Uv)
      return {IndexAnswer::State::NotAsked,
              message("torch {}+{} is in PyTorch's archive, of which only uv can be asked", set.torch_version,
                      set.build->backend()),
              {}};
    if (check_.installer.kind == installer::Installer::Kind::Pip) return ask_pip_for(set);
    IndexAnswer wheels = resolve(set);
    if (wheels.state != IndexAnswer::State::Confirmed) return wheels;
    for (const PackagePlan& plan : set.packages)
      if (plan.how != PackagePlan::How::Index && !has_source(plan)) {
        if (left().count() <= 0) return out_of_time();
        return {IndexAnswer::State::Refused,
                message("the index has no source archive of {} {}", plan.name, plan.version),
                {}};
      }
    return wheels;
  }

 private:
  std::chrono::milliseconds left() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(end_ - Clock::now());
  }
  static IndexAnswer out_of_time() {
    return {IndexAnswer::State::NoAnswer,
            message("the index did not answer in time; --timeout gives it more"),
            {}};
  }

  IndexAnswer resolve(const SuggestedSet& set) {
    const auto folder = TemporaryDirectory::create("scankit-suggest");
    if (!folder) return {IndexAnswer::State::NoAnswer, folder.error().message, {}};
    std::string lines;
    for (const std::string& one : requirements_of(set)) lines += one + "\n";
    if (auto written = write_file_atomically(folder->path() + "/questions.in", lines); !written)
      return {IndexAnswer::State::NoAnswer, written.error().message, {}};
    if (left().count() <= 0) return out_of_time();
    const IndexRun run = run_installer(uv_words(check_.installer, answer_, set, folder->path()),
                                       check_.installer.project, left());
    if (run.timed_out) return out_of_time();
    if (!run.ok && is_unreachable(run.said))
      return {IndexAnswer::State::NoAnswer, message("the index could not be reached"), {}};
    if (!run.ok) return {IndexAnswer::State::Refused, reason_in(run.said), {}};
    IndexAnswer confirmed{IndexAnswer::State::Confirmed, {}, {}};
    // A pin takes a yanked release, and both installers warn of it.
    for (const std::string_view line : lines_of(run.said))
      if (line.find("yanked") != std::string_view::npos)
        confirmed.notes.push_back(message("yanked: {}", printable(trimmed(line))));
    return confirmed;
  }

  // Each name is asked for once: whether one of the listed versions meets the requirement.
  IndexAnswer ask_pip_for(const SuggestedSet& set) {
    Words requirements = requirements_of(set);
    for (const PackagePlan& plan : set.packages)
      if (plan.how != PackagePlan::How::Index) requirements.push_back(plan.requirement());
    for (const std::string& requirement : requirements) {
      const auto wish = parse_package_wish(requirement);
      if (!wish) continue;
      const std::string key = wish->name + " " + set.python;
      if (!listed_.contains(key)) {
        if (left().count() <= 0) return out_of_time();
        const IndexRun run = run_installer(pip_words(check_.installer, wish->name, set), "", left());
        if (run.timed_out) return out_of_time();
        if (!run.ok && is_unreachable(run.said))
          return {IndexAnswer::State::NoAnswer, message("the index could not be reached"), {}};
        listed_[key] = run.ok ? listed_versions(run.out) : Words();
      }
      const auto meets = [&](const std::string& version) {
        return wish->range.contains(version).value_or(false);
      };
      if (std::ranges::none_of(listed_[key], meets))
        return {
            IndexAnswer::State::Refused,
            message(
                "the index lists no release of {} that meets {} for Python {}; a yanked one is not listed",
                wish->name, requirement, set.python),
            {}};
    }
    return {IndexAnswer::State::Confirmed,
            {},
            {message("pip was not asked whether the dependencies fit together")}};
  }

  // "Available versions: 2.15.0, 2.14.1"
  static Words listed_versions(const std::string& out) {
    const std::string mark = "Available versions: ";
    for (const std::string_view line : lines_of(out))
      if (line.starts_with(mark)) return split_nonempty(line.substr(mark.size()), ", ");
    return {};
  }

  // Asked once for each release: the archive is downloaded for its hash.
  bool has_source(const PackagePlan& plan) {
    const std::string key = plan.requirement();
    const auto known = sources_.find(key);
    if (known != sources_.end()) return known->second;
    if (left().count() <= 0) return false;
    const bool found = ask_source(check_.installer, {plan.name, plan.version}, left()).has_value();
    sources_[key] = found;
    return found;
  }

  const IndexCheck& check_;
  const SuggestAnswer& answer_;
  Clock::time_point end_;
  std::map<std::string, bool> sources_;
  std::map<std::string, Words> listed_;  // by name and Python
};

}  // namespace

installer::Installer index_installer_for(const Host& host, const Snapshot& machine) {
  const std::string uv = installers_of(machine).uv;
  if (uv.empty() || pip_has_its_own_index(host, machine.python.value))
    return installer::downloader_of(host, machine);
  return {.kind = installer::Installer::Kind::Uv, .program = {uv}, .why = say("uv is on PATH")};
}

std::vector<std::string> requirements_of(const SuggestedSet& set) {
  std::vector<std::string> requirements{"torch==" + set.torch_version};
  for (const PackagePlan& plan : set.packages) {
    if (plan.how == PackagePlan::How::Index) {
      requirements.push_back(plan.requirement());
      continue;
    }
    if (!plan.release->triton.empty()) requirements.push_back("triton" + plan.release->triton);
    requirements.insert(requirements.end(), plan.release->pins.begin(), plan.release->pins.end());
  }
  return requirements;
}

void check_index(const IndexCheck& check, std::size_t wanted, SuggestAnswer& answer) {
  SetAsker asker(check, answer);
  std::vector<SuggestedSet> kept;
  std::size_t confirmed = 0;
  bool silent = false;
  for (const SuggestedSet& set : answer.suggestion.sets) {
    IndexAnswer said;
    if (silent || confirmed >= wanted)
      said.why = silent ? message("the index did not answer")
                        : message("the index was only asked about the first sets");
    else
      said = asker.ask(set);
    silent = silent || said.state == IndexAnswer::State::NoAnswer;
    confirmed += said.state == IndexAnswer::State::Confirmed ? 1 : 0;
    if (said.state == IndexAnswer::State::Refused) {
      answer.refused_by_index.push_back(say("torch {} with CUDA {}, Python {}: {}", set.torch_version,
                                            set.build->cuda_text, set.python, said.why));
      continue;
    }
    kept.push_back(set);
    answer.index.push_back(std::move(said));
  }
  answer.suggestion.sets = std::move(kept);
}

}  // namespace scankit::envspec
