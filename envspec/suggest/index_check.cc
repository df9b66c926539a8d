// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "builder/installer/installer.h"
#include "doctor/base/files.h"
#include "doctor/base/machine.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/model/snapshot_variables.h"
#include "envspec/index/index.h"
#include "envspec/suggest/suggest.h"

namespace scankit::envspec {
namespace {

using Words = std::vector<std::string>;
using Clock = std::chrono::steady_clock;

// Between that of manylinux2014, the oldest that any torch here needs, and far beyond today's: each becomes a word.
unsigned glibc_minor(const SuggestAnswer& answer, const SuggestedSet& set) {
  constexpr unsigned kOldest = 17, kUsual = 28, kNewest = 99;
  const std::string& wished = answer.target.request.glibc;
  const auto parsed = Version::parse(wished.empty() ? set.needs_glibc : wished);
  if (!parsed) return kUsual;
  if (parsed->part(0) != 2) return parsed->part(0) < 2 ? kOldest : kNewest;
  return std::clamp(static_cast<unsigned>(parsed->part(1)), kOldest, kNewest);
}

// "x86_64-manylinux_2_28" for glibc 2.28 to 2.30, as uv names platforms: it knows 2.17, 2.28 and those from 2.31 to 2.40.
std::string platform_of(const SuggestAnswer& answer, const SuggestedSet& set) {
  const unsigned have = glibc_minor(answer, set);
  constexpr unsigned kOldest = 17, kMiddle = 28, kLater = 31, kNewest = 40;
  const unsigned minor = have >= kLater ? std::min(have, kNewest) : have >= kMiddle ? kMiddle : kOldest;
  return answer.target.request.machine + "-manylinux_2_" + std::to_string(minor);
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
Words pip_words(const installer::Installer& pip, const std::string& name, const SuggestAnswer& answer,
                const SuggestedSet& set) {
  Words argv = pip.program;
  for (const std::string& word :
       {std::string("-vv"), std::string("--disable-pip-version-check"), std::string("--no-input"),
        std::string("index"), std::string("versions"), name, std::string("--python-version"), set.python,
        std::string("--retries"), std::string("1")})
    argv.push_back(word);
  // pip wants each tag by name: that of glibc 2.35 does not include that of 2.34, nor the older names of some.
  const std::string& machine = answer.target.request.machine;
  constexpr unsigned kOldest = 17;
  Words tags;
  for (unsigned minor = glibc_minor(answer, set); minor >= kOldest; --minor)
    tags.push_back("manylinux_2_" + std::to_string(minor));
  tags.insert(tags.end(), {"manylinux2014", "linux"});
  if (machine == "x86_64")
    tags.insert(tags.end() - 1, {"manylinux_2_12", "manylinux2010", "manylinux_2_5", "manylinux1"});
  for (const std::string& tag : tags) {
    argv.emplace_back("--platform");
    argv.push_back(tag + "_" + machine);
  }
  return argv;
}

// "Could not fetch URL ADDRESS: 403 Client Error: ..." of pip, with an address that nobody needs; "" where every page
// was read or is not there. The line comes with -vv only, and without it pip says that there is no such package.
std::string unread_page_in(const std::string& out) {
  for (const std::string_view line : lines_of(out))
    if (line.find("Could not fetch URL ") != std::string_view::npos &&
        line.find("404 Client Error") == std::string_view::npos)
      return std::string(line);
  return "";
}

// The network's failures, as pip and uv word them.
bool is_unreachable(const std::string& said) {
  return says_one_of(
      said, {"error sending request", "dns error", "Connection refused", "Request failed after",
             "network connectivity is disabled", "network was disabled", "Retrying (Retry(", "Connection to ",
             "Max retries exceeded", "Network is unreachable", "Read timed out"});
}

// uv reads what a source archive requires by building it, which would run its code.
bool would_build(const std::string& said) { return says_one_of(said, {"building from source is disabled"}); }

// The installer's sentence about what it lacks, in one line of at most some hundred characters.
std::string reason_of_resolver(const std::string& said) {
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
      if (auto lacks = source_of(plan)) return *std::move(lacks);
    return wheels;
  }
  // Whether asking for another set is of no use.
  bool gone() const { return gone_; }

 private:
  std::chrono::milliseconds left() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(end_ - Clock::now());
  }
  IndexAnswer out_of_time() {
    gone_ = true;
    return {IndexAnswer::State::NoAnswer,
            message("the index did not answer in time; --timeout gives it more"),
            {}};
  }

  // Of a run that failed: what the resolver says is the index's answer, everything else is none.
  IndexAnswer answer_of(const std::string& said) {
    if (is_refusal(said)) return {IndexAnswer::State::Refused, reason_of_resolver(said), {}};
    gone_ = !would_build(said);
    if (!gone_)
      return {
          IndexAnswer::State::NoAnswer,
          message("a package has only a source archive there, which uv would have to build to read what it "
                  "requires"),
          {}};
    if (is_access_refused(said))
      return {IndexAnswer::State::NoAnswer, message("the index refused access: check its credentials"), {}};
    if (is_unreachable(said))
      return {IndexAnswer::State::NoAnswer, message("the index could not be reached"), {}};
    return {IndexAnswer::State::NoAnswer,
            message("{} failed: {}", installer::name_of(check_.installer.kind), reason_of_resolver(said)),
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
    if (!run.ok) return answer_of(run.said);
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
      const std::string key = wish->name + " " + set.python + " " + std::to_string(glibc_minor(answer_, set));
      if (!listed_.contains(key)) {
        if (left().count() <= 0) return out_of_time();
        const IndexRun run = run_installer(pip_words(check_.installer, wish->name, answer_, set),
                                           installer::folder_of(check_.installer), left());
        if (run.timed_out) return out_of_time();
        if (const std::string page = unread_page_in(run.out); !run.ok && !page.empty())
          return answer_of(is_access_refused(page) ? page : "Max retries exceeded");
        if (!run.ok && !is_refusal(run.said)) return answer_of(run.said);
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

  // Nothing where the index has the archive, or where no release is named. An answer is asked for once, because the
  // archive is downloaded for its hash; a failure is asked again.
  std::optional<IndexAnswer> source_of(const PackagePlan& plan) {
    if (plan.is_range()) return std::nullopt;
    const std::string key = plan.requirement();
    if (!sources_.contains(key)) {
      if (left().count() <= 0) return out_of_time();
      const SourceReply reply = ask_source(check_.installer, {plan.name, plan.version}, left());
      if (!reply.archive && !reply.refused) {
        if (left().count() <= 0) return out_of_time();
        return IndexAnswer{IndexAnswer::State::NoAnswer,
                           message("whether the index has a source archive of {} {} is not known: {}",
                                   plan.name, plan.version, reason_of_resolver(reply.said)),
                           {}};
      }
      sources_[key] = reply.archive.has_value();
    }
    if (sources_[key]) return std::nullopt;
    return IndexAnswer{IndexAnswer::State::Refused,
                       message("the index has no source archive of {} {}", plan.name, plan.version),
                       {}};
  }

  const IndexCheck& check_;
  const SuggestAnswer& answer_;
  Clock::time_point end_;
  bool gone_ = false;
  std::map<std::string, bool> sources_;
  std::map<std::string, Words> listed_;  // by name, Python and glibc
};

}  // namespace

installer::Installer index_installer_for(const Host& host, const Snapshot& machine) {
  const std::string uv = installers_of(machine).uv;
  if (uv.empty() || installer::pip_has_its_own_index(host, machine.python.value))
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
  const std::vector<std::string> beside = needed_beside(set);
  requirements.insert(requirements.end(), beside.begin(), beside.end());
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
    silent = silent || asker.gone();
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
