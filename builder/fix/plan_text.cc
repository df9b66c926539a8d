// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "builder/fix/distribution.h"
#include "builder/fix/install_target.h"
#include "builder/fix/plan.h"
#include "builder/fix/transaction.h"
#include "doctor/base/columns.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/model/json.h"
#include "doctor/report/escape.h"
#include "doctor/report/text.h"

namespace scankit::fix {
namespace {

using Json = nlohmann::ordered_json;

std::string backup_of(const FixPlan& plan) { return StateFolder(plan.place.base).root() + "/backup"; }

// The temporary directory of this run, which the commands name: who read the plan would not find it any more. It is called
// WORK, so that such a command is not taken for one to type.
constexpr std::string_view kWork = "WORK";

installer::InstallerCommand in_work(installer::InstallerCommand command, const ChangePackages& packages) {
  if (!packages.work) return command;
  const std::string& folder = packages.work->path();
  for (auto* words : {&command.argv, &command.environment})
    for (std::string& word : *words)
      for (std::size_t at = 0; (at = word.find(folder, at)) != std::string::npos; at += kWork.size())
        word.replace(at, folder.size(), kWork);
  return command;
}

std::vector<installer::InstallerCommand> in_work(const std::vector<installer::InstallerCommand>& commands,
                                                 const ChangePackages& packages) {
  std::vector<installer::InstallerCommand> shown;
  for (const installer::InstallerCommand& command : commands) shown.push_back(in_work(command, packages));
  return shown;
}

// The plan for people. Long directories are replaced by names that a legend explains, except in lines that a
// user may copy into a shell.
class Text {
 public:
  explicit Text(const PlanView& view) : view_(view), plan_(*view.plan) {}

  std::string make() {
    lines_.emplace_back(report::plain(say("Plan for {}", view_.python), false), true);
    for (const RepairStep& step : plan_.steps) {
      line(say("wrong"), step.why);
      std::visit([this](const auto& what) { tell(what); }, step.what);
    }
    if (!plan_.steps.empty() && plan_.steps.back().part > 0)
      line(say("parts"), say("if a step fails it is undone automatically; the other steps remain"));
    if (!view_.project.empty() && !modules_of(plan_).empty())
      line(say("uv"), say("{} gets a source entry for it, so `uv sync` keeps it",
                          path_join(view_.project, "pyproject.toml")));
    if (!plan_.place.why.empty())
      pasted(say("place"), say("{}, so it is installed into {}", plan_.place.why, plan_.place.site));
    if (!plan_.place.how_to_reach.empty()) pasted(say("then"), plan_.place.how_to_reach);
    if (!view_.test.empty())
      pasted(say("test"), say("{}, before and after; undone if it does not pass afterwards", view_.test));
    for (const std::string& part : view_.unproven) line(say("untested"), part);
    if (!view_.unproven.empty()) pasted(say("there"), view_.proof);
    for (const std::string& todo : plan_.advice) pasted(say("left"), say("to do by hand: {}", todo));
    pasted(say("undo"), view_.restore);
    return shortened();
  }

 private:
  void line(const std::string& label, const std::string& text) {
    lines_.emplace_back(report::plain("  " + in_column(label, 9) + text, false), false);
  }

  // A command, or a line for the shell: with the paths as they are.
  void pasted(const std::string& label, const std::string& text) {
    line(label, text);
    lines_.back().second = true;
  }

  std::string shortened() const {
    report::Legend legend = report::legend_of(*view_.snapshot);
    legend.offer("SITE", plan_.place.site);
    std::vector<std::string> texts;
    for (const auto& [text, as_it_is] : lines_)
      if (!as_it_is) texts.push_back(text);
    legend.settle(texts);
    std::string out;
    for (const auto& [text, as_it_is] : lines_) out += (as_it_is ? text : legend.shortened(text)) + "\n";
    for (const auto& [name, directory] : legend.entries()) out += "  " + name + " = " + directory + "\n";
    if (has_work_)
      out.append("  ")
          .append(kWork)
          .append(" = ")
          .append(say("a temporary directory of this run, removed when it ends"))
          .append("\n");
    return out;
  }

  void tell(const InstallBundled& ours) {
    const ModuleSource& source = view_.sources.at(ours.module);
    const std::string &file = ours.file, targets = module::names_of(source.targets, " ");
    for (const std::string& command : source.fetches) pasted(say("fetch"), command);
    if (source.targets.empty())
      line(say("install"), say("{}, without device code: it computes on the CPU", file));
    else if (source.prebuilt)
      line(say("install"), say("{} for {} ({})", file, targets, source.compiler));
    else
      line(say("build"), say("{} for {}, with {}", file, targets, source.compiler));
    for (const std::string& note : source.notes) line(say("note"), note);
    line(say("write"), plan_.place.site + "/" + ours.file);
    line("", plan_.place.site + "/" + dist_info_name(ours.module));
    for (const FileMove& move : hiding_copies(*view_.snapshot, ours, plan_.place))
      line(say("move"), move.owner.empty()
                            ? say("{} into {}", move.path, backup_of(plan_))
                            : say("{} into {} (it belongs to {})", move.path, backup_of(plan_), move.owner));
  }

  void tell(const MoveAway& away) { line(say("move"), say("{} into {}", away.path, backup_of(plan_))); }

  void tell(const ChangePackages& packages) {
    if (packages.build) {
      for (const installer::InstallerCommand& command : in_work(packages.build->commands, packages))
        pasted(say("build"), installer::shown(command));
      line(say("then"), say("the wheel that it makes is examined, and installed by {}",
                            installer::name_of(packages.installer.kind)));
    }
    for (const installer::InstallerCommand& command : in_work(packages.commands, packages))
      pasted(say("run"), installer::shown(command));
    has_work_ = has_work_ || packages.work != nullptr;
    for (const auto& [name, version] : packages.before)
      line(say("now"), version.empty() ? say("{} is not installed", name) : say("{} {}", name, version));
    line(say("by"), packages.installer.why);
    line(say("restore"),
         say("scankit restore restores every file that it changes, but not packages and caches "
             "outside {}",
             plan_.place.base));
    if (!installer::kept_by_sync(packages.installer, packages.change))
      line(say("note"), say("the next `uv sync` of {} undoes this: the change is not in its lock",
                            packages.installer.project));
    for (const std::string& statement : packages.statements) pasted(say("prove"), statement);
    if (!packages.modules.empty()) pasted(say("prove"), import_of(packages.modules));
    if (packages.declared) tell(*packages.declared);
    if (packages.test && view_.test.empty())
      pasted(say("test"),
             say("{} of the wheel, once it is installed; undone if it does not pass", packages.test->file));
    else if (!packages.test && packages.declared && !packages.build && !packages.declared->test_file.empty())
      line(say("note"), say("its smoke test {} is not in the wheel, and is not run; --test names one that is",
                            packages.declared->test_file));
  }

  // The variables are those of the file; where the user has set one, the command above shows which counts.
  void tell(const declared::ModuleFile& file) {
    line(say("read"), file.file);
    for (const auto& [name, value] : file.variables)
      line("", say("it asks for {}={} in the build", name, value));
    pasted(say("prove"), import_of(file));
  }

  void tell(const SetVariable& variable) {
    if (variable.file.empty()) return pasted(say("run"), say("in your shell: {}", shell_line(variable)));
    pasted(say("set"), say("{} at the end of {}", shell_line(variable), variable.file));
    pasted(say("then"), say("in shells that are already open: {}", shell_line(variable)));
  }

  const PlanView& view_;
  const FixPlan& plan_;
  std::vector<std::pair<std::string, bool>> lines_;  // and whether the legend leaves it as it is
  bool has_work_ = false;                            // a command names the directory of this run
};

Json commands_of(const std::vector<installer::InstallerCommand>& commands) {
  Json json = Json::array();
  for (const installer::InstallerCommand& command : commands)
    json.push_back({{"argv", command.argv},
                    {"environment", command.environment},
                    {"folder", command.folder},
                    {"constraints", command.constraints},
                    {"shell", installer::shown(command)}});
  return json;
}

Json declared_json(const declared::ModuleFile& file) {
  Json json{{"file", file.file}, {"distribution", file.distribution}};
  json["documentation"] = file.documentation.empty() ? Json() : Json(file.documentation);
  json["imports"] = declared::imports_of(file);
  json["variables"] = Json::object();
  for (const auto& [name, value] : file.variables) json["variables"][name] = value;
  return json;
}

// One step of `scankit fix --json`; what is not there is null.
struct StepJson {
  const PlanView& view;
  Json operator()(const InstallBundled& ours) const {
    Json json{{"kind", "install_module"}, {"module", ours.module}};
    json["file"] = view.plan->place.site + "/" + ours.file;
    const auto known = view.sources.find(ours.module);
    const ModuleSource source = known == view.sources.end() ? ModuleSource{} : known->second;
    json["prebuilt"] = source.prebuilt;
    json["targets"] = Json::array();
    for (const module::Target& target : source.targets) json["targets"].push_back(target.name());
    json["compiler"] = source.compiler;
    json["fetches"] = source.fetches;
    json["moves"] = Json::array();
    for (const FileMove& move : hiding_copies(*view.snapshot, ours, view.plan->place))
      json["moves"].push_back(
          {{"path", move.path}, {"owner", move.owner.empty() ? Json() : Json(move.owner)}});
    return json;
  }
  Json operator()(const MoveAway& away) const {
    return {{"kind", "remove_shadow"}, {"path", away.path}, {"backup", backup_of(*view.plan)}};
  }
  Json operator()(const ChangePackages& packages) const {
    Json json{{"kind", "change_packages"}, {"installer", installer::name_of(packages.installer.kind)}};
    json["requirements"] = packages.change.requirements;
    json["local"] = packages.local.empty() ? Json() : Json(packages.local);
    json["build"] = packages.build ? commands_of(in_work(packages.build->commands, packages)) : Json();
    json["commands"] = commands_of(in_work(packages.commands, packages));
    json["before"] = Json::array();
    for (const auto& [name, version] : packages.before)
      json["before"].push_back({{"name", name}, {"version", version.empty() ? Json() : Json(version)}});
    json["kept_by_sync"] = installer::kept_by_sync(packages.installer, packages.change);
    json["statements"] = packages.statements;
    json["modules"] = Json::array();
    for (const WheelModule& module : packages.modules) json["modules"].push_back(module.module);
    json["declared"] = packages.declared ? declared_json(*packages.declared) : Json();
    return json;
  }
  Json operator()(const SetVariable& variable) const {
    return {{"kind", "set_environment"},
            {"name", variable.name},
            {"value", variable.value},
            {"file", variable.file.empty() ? Json() : Json(variable.file)},
            {"command", shell_line(variable)}};
  }
};

Json test_json(const declared::TestRun& run) {
  Json json{{"state", declared::word_of(run.state)}, {"by", run.by.empty() ? Json() : Json(run.by)}};
  json["seconds"] = run.seconds;
  json["why"] = run.why.empty() ? Json() : Json(english(run.why));
  json["lines"] = run.lines;
  return json;
}

}  // namespace

std::string plan_text(const PlanView& view) { return Text(view).make(); }

std::string plan_json(const PlanView& view, const FixOutcome& outcome) {
  const FixPlan& plan = *view.plan;
  Json json{{"$schema", "urn:scankit:fix:1"},
            {"python", view.python},
            {"state", outcome.state},
            {"message", outcome.message},
            {"notes", outcome.notes}};
  json["steps"] = Json::array();
  for (const RepairStep& step : plan.steps) {
    Json one = std::visit(StepJson{view}, step.what);
    one["why"] = step.why;
    one["cause"] = step.cause.empty() ? Json() : Json(step.cause);
    one["about"] = step.about;
    one["part"] = step.part;
    one["kept"] = step.part < outcome.kept.size() ? Json(bool(outcome.kept[step.part])) : Json();
    json["steps"].push_back(std::move(one));
  }
  json["test"] = Json();
  if (outcome.test)
    json["test"] = {{"file", outcome.test->file},
                    {"before", test_json(outcome.test->before)},
                    {"after", outcome.test->after ? test_json(*outcome.test->after) : Json()}};
  json["untested"] = Json::array();
  for (const auto& [part, one] : outcome.untested)
    json["untested"].push_back({{"part", part}, {"statement", one.statement}, {"why", english(one.why)}});
  json["advice"] = plan.advice;
  json["site"] = plan.place.site;
  json["still_broken"] = outcome.still_broken.empty() ? plan.unrepaired : outcome.still_broken;
  json["how_to_reach"] = plan.place.how_to_reach.empty() ? Json() : Json(plan.place.how_to_reach);
  json["for_good"] = plan.place.for_good.empty() ? Json() : Json(plan.place.for_good);
  json["project"] = view.project.empty() ? Json() : Json(view.project);
  json["unproven"] = view.unproven;
  json["proof"] = view.unproven.empty() ? Json() : Json(view.proof);
  json["restore"] = view.restore;
  return json_document(json);
}

}  // namespace scankit::fix
