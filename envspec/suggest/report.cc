// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>

#include "doctor/base/exit_status.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/base/tool_version.h"
#include "doctor/model/json.h"
#include "doctor/report/doctor_document.h"
#include "doctor/report/text.h"
#include "envspec/suggest/suggest.h"

namespace scankit::envspec {
namespace {

using SuggestJson = nlohmann::ordered_json;
using How = PackagePlan::How;

constexpr std::size_t kShown = 3;  // the best set and two more

// "Python 3.11, torch 2.10.0 with CUDA 12.8, mamba-ssm 2.3.2.post1, causal-conv1d 1.6.2.post1", without what the tables
// know nothing of.
std::string title_of(const SuggestedSet& set) {
  std::vector<std::string> parts = {
      say("Python {}, torch {} with CUDA {}", set.python, set.torch_version, set.build->cuda_text)};
  for (const PackagePlan& plan : set.packages)
    if (plan.how != How::Index)
      parts.push_back(plan.is_range() ? plan.requirement() : plan.name + " " + plan.version);
  return said_list(parts);
}

// "a -> b -> c"
std::string chain_text(const std::vector<Message>& chain) {
  std::string text;
  for (const Message& fact : chain) text += (text.empty() ? "" : " -> ") + tr(fact);
  return text;
}

std::string how_text(const PackagePlan& plan) {
  switch (plan.how) {
    case How::Wheel:
      return say("{}: a wheel of its release page, which setup.py downloads (--index-only does without)",
                 plan.module);
    case How::Own:
      return say("{}: scankit's own, by scankit fix", plan.module);
    case How::Build:
      return say("{}: built here with nvcc", plan.module);
    case How::Index:
      break;
  }
  return say("{}: not in scankit's tables; the installer decides", plan.name);
}

// "driver 580.95 (--driver)"
std::string fact_text(const std::string& name, const std::string& value) {
  if (name == "processor") return say("processor {}", value);
  return name == "driver" ? say("driver {}", value) : name + " " + value;
}

std::string wish_text(const Wish& wish) {
  if (wish.kind == Wish::Kind::Driver) return say("driver {}", wish.text);
  if (wish.kind == Wish::Kind::Glibc) return say("glibc {}", wish.text);
  if (wish.kind == Wish::Kind::Python) return say("Python {}", wish.text);
  return wish.text;
}

std::string verdict_line(const SuggestAnswer& answer) {
  const Suggestion& found = answer.suggestion;
  if (!found.unknown_gpus.empty())
    return say("nothing can be said: {} is in no table of scankit", join(found.unknown_gpus));
  if (found.sets.empty()) {
    std::vector<std::string> wishes;
    for (const Wish& wish : found.conflict) wishes.push_back(say("{} ({})", wish_text(wish), wish.origin));
    if (wishes.empty()) return say("the index has none of the sets that fit");
    return wishes.size() == 1 ? say("no set fits {}", wishes.front())
                              : say("no set fits: {} exclude each other", join(wishes));
  }
  return say("these fit together: {}", title_of(found.sets.front()));
}

const report::Mark& mark_of(const SuggestAnswer& answer) {
  if (exit_status_of(answer) == kExitClean) return report::kGood;
  return exit_status_of(answer) == kExitFindings ? report::kError : report::kUnknown;
}

void print_one_set(report::Page& page, const SuggestAnswer& answer, std::size_t place) {
  const SuggestedSet& set = answer.suggestion.sets[place];
  for (const PackagePlan& plan : set.packages) {
    page.line(2, how_text(plan));
    if (!plan.limit.empty()) page.line(4, say("no newer release: {}", tr(plan.limit)));
    if (plan.chain.empty()) continue;
    page.line(4, plan.how == How::Wheel ? say("no newer release: {}", chain_text(plan.chain))
                                        : say("no wheel: {}", chain_text(plan.chain)));
  }
  for (const Message& note : set.notes) page.line(2, tr(note));
  if (!answer.target.request.driver)
    page.line(2, is_for_jetson(answer.target.request)
                     ? say("needs a JetPack with a driver of branch {} or newer", set.needs_driver)
                     : say("needs a driver of {} or newer", set.needs_driver));
  if (place < answer.index.size()) {
    const IndexAnswer& index = answer.index[place];
    if (index.state == IndexAnswer::State::Confirmed)
      page.line(2, say("the index has everything that is installed from it"));
    else if (!index.why.empty())
      page.line(2, say("not confirmed: {}", tr(index.why)));
    for (const Message& note : index.notes) page.line(2, tr(note));
  }
  page.gap();
  for (const std::string& command : commands_of(set, answer.commands)) page.verbatim(4, command);
}

void print_changes(report::Page& page, const SuggestAnswer& answer) {
  for (const SmallestChange& change : answer.suggestion.changes)
    page.line(2, change.kind == Wish::Kind::Package  // "without ..."
                     ? say("would fit {}: {}", tr(change.text), title_of(change.set))
                     : say("would fit with {}: {}", tr(change.text), title_of(change.set)));
  if (answer.suggestion.changes.empty() && answer.suggestion.unknown_gpus.empty() &&
      !answer.suggestion.conflict.empty())
    page.line(2, say("no single change is enough: change two of them"));
}

std::string suggest_text(const SuggestAnswer& answer, const report::TextStyle& style) {
  report::Page page(style);
  const Suggestion& found = answer.suggestion;
  page.marked(0, mark_of(answer), "", verdict_line(answer));
  print_changes(page, answer);
  std::vector<std::string> target;
  for (const auto& [name, value] : answer.target.facts) target.push_back(fact_text(name, value));
  if (!target.empty()) page.line(2, say("for {}", said_list(target)));
  for (const Message& note : answer.target.notes) page.line(2, tr(note));
  for (std::size_t place = 0; place < found.sets.size() && place < kShown; ++place) {
    if (style.quiet && place > 0) break;
    page.gap();
    page.line(0, place == 0 ? say("Best set: {}", title_of(found.sets[place]))
                            : say("Alternative {}: {}", place, title_of(found.sets[place])));
    print_one_set(page, answer, place);
  }
  const bool any = !found.ruled_out.empty() || !answer.refused_by_index.empty();
  if (any && !style.quiet) {
    page.gap();
    page.line(0, say("Ruled out"));
    for (const RuledOut& entry : found.ruled_out)
      page.line(2, say("{}: {}", entry.what, chain_text(entry.chain)));
    for (const std::string& sentence : answer.refused_by_index) page.line(2, sentence);
  }
  if (answer.offline && !style.quiet) {
    page.gap();
    page.line(0, say("From scankit's tables only: no index was asked."));
  }
  return page.take();
}

// JSON ------------------------------------------------------------------------------------------------------

SuggestJson chain_json(const std::vector<Message>& chain) {
  SuggestJson list = SuggestJson::array();
  for (const Message& fact : chain) list.push_back(english(fact));
  return list;
}

SuggestJson package_json(const PackagePlan& plan) {
  return {{"name", plan.name},
          {"version", report::or_null(plan.version)},
          {"module", report::or_null(plan.module)},
          {"how", how_word(plan.how)},
          {"why", english(plan.why)},
          {"no_wheel", chain_json(plan.chain)}};
}

std::string_view state_word(IndexAnswer::State state) {
  constexpr std::string_view kWords[] = {"not-asked", "confirmed", "refused", "no-answer"};
  return kWords[static_cast<std::size_t>(state)];
}

SuggestJson set_json(const SuggestAnswer& answer, const SuggestedSet& set, const IndexAnswer* index) {
  SuggestJson packages = SuggestJson::array();
  for (const PackagePlan& plan : set.packages) packages.push_back(package_json(plan));
  return {{"python", set.python},
          {"torch", set.torch_version},
          {"cuda", set.build->cuda_text},
          {"torch_source", set.build->on_index ? "index" : "torch-backend"},
          {"gpu_code", set.by_ptx ? "ptx" : "cubin"},
          {"needs_driver", set.needs_driver},
          {"needs_glibc", set.needs_glibc},
          {"packages", std::move(packages)},
          {"notes", chain_json(set.notes)},
          {"index",
           {{"state", state_word(index == nullptr ? IndexAnswer::State::NotAsked : index->state)},
            {"why", report::or_null(index == nullptr ? std::string() : english(index->why))},
            {"notes", index == nullptr ? SuggestJson::array() : chain_json(index->notes)}}},
          {"commands", commands_of(set, answer.commands)}};
}

std::string_view kind_word(Wish::Kind kind) {
  constexpr std::string_view kWords[] = {"gpu", "driver", "glibc", "python", "package"};
  return kWords[static_cast<std::size_t>(kind)];
}

std::string_view verdict_word(const SuggestAnswer& answer) {
  if (!answer.suggestion.unknown_gpus.empty()) return "unknown";
  return answer.suggestion.sets.empty() ? "nothing-fits" : "fits";
}

SuggestJson target_json(const SuggestTarget& target) {
  SuggestJson gpus = SuggestJson::array();
  for (const unsigned gpu : target.request.gpus) gpus.push_back(sm(gpu));
  SuggestJson packages = SuggestJson::array();
  for (const PackageWish& wish : target.request.packages) packages.push_back(wish.text);
  return {{"machine", target.request.machine},
          {"gpus", std::move(gpus)},
          {"driver", report::or_null(target.request.driver_text)},
          {"glibc", report::or_null(target.request.glibc)},
          {"python", report::or_null(target.request.python_text)},
          {"packages", std::move(packages)},
          {"notes", chain_json(target.notes)}};
}

std::string suggest_json(const SuggestAnswer& answer) {
  const Suggestion& found = answer.suggestion;
  SuggestJson sets = SuggestJson::array(), ruled_out = SuggestJson::array(), conflict = SuggestJson::array(),
              changes = SuggestJson::array();
  for (std::size_t i = 0; i < found.sets.size(); ++i)
    sets.push_back(set_json(answer, found.sets[i], i < answer.index.size() ? &answer.index[i] : nullptr));
  for (const RuledOut& entry : found.ruled_out)
    ruled_out.push_back({{"what", entry.what}, {"chain", chain_json(entry.chain)}});
  for (const Wish& wish : found.conflict)
    conflict.push_back({{"kind", kind_word(wish.kind)}, {"value", wish.text}, {"origin", wish.origin}});
  for (const SmallestChange& change : found.changes)
    changes.push_back({{"kind", kind_word(change.kind)},
                       {"text", english(change.text)},
                       {"set", set_json(answer, change.set, nullptr)}});
  return json_document(SuggestJson{{"$schema", "urn:scankit:env-suggest:1"},
                                   {"tool_version", kToolVersion},
                                   {"verdict", verdict_word(answer)},
                                   {"offline", answer.offline},
                                   {"installer", installer_word(answer.commands.installer.kind)},
                                   {"target", target_json(answer.target)},
                                   {"sets", std::move(sets)},
                                   {"ruled_out", std::move(ruled_out)},
                                   {"refused_by_index", answer.refused_by_index},
                                   {"conflict", std::move(conflict)},
                                   {"changes", std::move(changes)},
                                   {"unknown_gpus", found.unknown_gpus}});
}

VersionRange range_of(const std::string& text) { return VersionRange::parse(text).value_or(VersionRange()); }

}  // namespace

// A set is an answer even where no GPU was found; one that rests on a fact that could not be read is not.
int exit_status_of(const SuggestAnswer& answer) {
  if (!answer.suggestion.unknown_gpus.empty()) return kExitInconclusive;
  if (answer.suggestion.sets.empty()) return kExitFindings;
  return answer.target.unknown ? kExitInconclusive : kExitClean;
}

report::Views suggest_views(const SuggestAnswer& answer) {
  return {.text = [&answer](const report::TextStyle& style) { return suggest_text(answer, style); },
          .json = [&answer] { return suggest_json(answer); },
          .document =
              [&answer] {
                return report::Document{.command = "env suggest",
                                        .verdict_word = std::string(verdict_word(answer)),
                                        .verdict = verdict_line(answer),
                                        .exit_status = exit_status_of(answer),
                                        .tool_version = kToolVersion};
              }};
}

DerivedSpec spec_of(const SuggestAnswer& answer, const SuggestedSet& set) {
  DerivedSpec derived;
  Spec& spec = derived.spec;
  SpecNotes& notes = derived.notes;
  spec.driver = range_of(">=" + set.needs_driver);
  for (const unsigned gpu : answer.target.request.gpus) spec.gpus.push_back(sm(gpu));
  if (spec.gpus.empty()) notes["gpus"] = english(message("no GPU was considered"));
  spec.cuda = range_of(set.build->cuda_text + ".*");
  spec.implementation = "cpython";
  spec.python = range_of(set.python + ".*");
  spec.torch = range_of(set.torch_version);
  for (const PackagePlan& plan : set.packages) {
    if (plan.how == How::Index) continue;
    ExtensionSpec extension;
    extension.module = plan.module;
    // scankit's own module belongs to a package of scankit's, and uses no symbol of torch.
    if (plan.how == How::Own) {
      extension.torch_abi = "none";
      extension.from = "scankit";
      extension.package = plan.name;
      extension.package_version = range_of(plan.version);
      notes["extensions." + plan.module + ".package"] = english(message(
          "in an environment that is there: scankit fix --package {}", shell_quoted(plan.requirement())));
    } else {
      extension.distribution = plan.name;
      extension.version = range_of(plan.version);
      notes["extensions." + plan.module + ".distribution"] = english(plan.why);
    }
    spec.extensions.push_back(std::move(extension));
  }
  return derived;
}

}  // namespace scankit::envspec
