// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "doctor/base/columns.h"
#include "doctor/base/exit_status.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/base/tool_version.h"
#include "doctor/matrix/matrix.h"
#include "doctor/model/json.h"
#include "doctor/report/doctor_document.h"
#include "doctor/report/escape.h"
#include "doctor/report/text.h"

namespace scankit::matrix {
namespace {

using Json = nlohmann::ordered_json;

// What stands in a cell. NotOffered and NoTorch are explained below the table.
std::string short_word(Fit fit) {
  switch (fit) {
    case Fit::Works:
      return say("yes");
    case Fit::Fails:
      return say("no");
    case Fit::Unknown:
      return "?";
    case Fit::NotOffered:
      return "-";
    case Fit::NoTorch:
      return ".";
  }
  return "";
}

report::Tone tone_of(Fit fit) {
  if (fit == Fit::Works) return report::Tone::Good;
  return fit == Fit::Fails || fit == Fit::NotOffered ? report::Tone::Error : report::Tone::Unknown;
}

const report::Mark& mark_of(Fit fit) {
  if (fit == Fit::Works) return report::kGood;
  return fit == Fit::Unknown ? report::kUnknown : report::kError;
}

// In their order, each once.
std::vector<std::string> values(const FileGroup& group, std::string MatrixCell::*field) {
  std::vector<std::string> found;
  for (const MatrixCell& cell : group.cells)
    if (std::ranges::find(found, cell.*field) == found.end()) found.push_back(cell.*field);
  return found;
}

Fit fit_at(const FileGroup& group, const std::string& torch, const std::string& python) {
  for (const MatrixCell& cell : group.cells)
    if (cell.torch == torch && cell.python == python) return cell.cell.fit;
  return Fit::Unknown;
}

// "2.4-2.6, 2.9" of the values that are chosen; runs as they follow one another in `all`.
std::string runs(const std::vector<std::string>& all, const std::set<std::string>& chosen) {
  std::string words;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!chosen.contains(all[i])) continue;
    const std::size_t first = i;
    while (i + 1 < all.size() && chosen.contains(all[i + 1])) ++i;
    words += (words.empty() ? "" : ", ") + all[first] + (i > first ? "-" + all[i] : "");
  }
  return words;
}

// One reason and the places for which it was given: the cells of a cause differ in a release's number at most.
struct Reason {
  Fit fit = Fit::Fails;
  std::string cause, text;
  std::set<std::string> torch, python;
};

std::vector<Reason> reasons_of(const FileGroup& group) {
  std::vector<Reason> reasons;
  for (const MatrixCell& one : group.cells) {
    if (one.cell.fit != Fit::Fails && one.cell.fit != Fit::Unknown) continue;
    const std::string text = tr(one.cell.reason);
    auto same = std::ranges::find_if(reasons, [&](const Reason& reason) {
      return reason.fit == one.cell.fit && reason.cause == one.cell.cause &&
             (!reason.cause.empty() || reason.text == text);
    });
    if (same == reasons.end())
      same = reasons.insert(reasons.end(), {one.cell.fit, one.cell.cause, text, {}, {}});
    same->torch.insert(one.torch);
    same->python.insert(one.python);
  }
  return reasons;
}

// "torch 2.4-2.6, Python 3.9: ... (torch_version_mismatch)"; the Python only where others than these were judged.
std::string reason_line(const FileGroup& group, const Reason& reason) {
  std::set<std::string> judged;
  for (const MatrixCell& cell : group.cells)
    if (cell.cell.fit != Fit::NoTorch && cell.cell.fit != Fit::NotOffered) judged.insert(cell.python);
  const std::string torch = runs(values(group, &MatrixCell::torch), reason.torch);
  const std::string where =
      reason.python == judged
          ? say("torch {}", torch)
          : say("torch {} with Python {}", torch, runs(values(group, &MatrixCell::python), reason.python));
  return reason.cause.empty() ? say("{}: {}", where, reason.text)
                              : say("{}: {} ({})", where, reason.text, reason.cause);
}

std::string facts_line(const FileGroup& group) {
  std::string line = say_n(group.libraries, "{} compiled file", "{} compiled files", group.libraries);
  if (!group.machine.empty()) line += say(" for {}", group.machine);
  if (!group.glibc_min.empty()) line += say(", glibc {} or newer", group.glibc_min);
  if (!group.executable_stack.empty())
    line += say(", an executable stack requested by {}, which glibc 2.41 and newer refuse",
                join(group.executable_stack));
  if (!group.cuda_major.empty()) line += say(", CUDA {}", group.cuda_major);
  // The C++ runtime is everywhere where torch is.
  std::vector<std::string> others;
  for (const std::string& soname : group.system_libraries)
    if (!soname.starts_with("libstdc++.so") && !soname.starts_with("libgcc_s.so") &&
        !soname.starts_with("libgomp.so"))
      others.push_back(soname);
  constexpr std::size_t kNamed = 3;
  if (others.size() > kNamed)
    line += say(", {} and {} more libraries of the system", join({others.begin(), others.begin() + kNamed}),
                others.size() - kNamed);
  else if (!others.empty())
    line += say(", {} of the system", join(others));
  return line;
}

void table(report::Page& page, const FileGroup& group) {
  constexpr std::size_t kFirst = 8, kWidth = 6;
  const std::vector<std::string> pythons = values(group, &MatrixCell::python);
  std::string head = in_column(say("torch"), kFirst);
  for (const std::string& python : pythons) head += in_column(python, kWidth);
  page.verbatim(2, say("{}  (columns: Python)", head));
  std::set<Fit> seen;
  for (const std::string& torch : values(group, &MatrixCell::torch)) {
    std::string row = in_column(torch, kFirst);
    for (const std::string& python : pythons) {
      const Fit fit = fit_at(group, torch, python);
      seen.insert(fit);
      row += in_column(short_word(fit), kWidth);
    }
    page.verbatim(2, row.substr(0, row.find_last_not_of(' ') + 1));
  }
  if (seen.contains(Fit::NotOffered)) page.line(2, say("-  no file is for this Python"));
  if (seen.contains(Fit::NoTorch)) page.line(2, say(".  torch has no wheels for this Python"));
}

void axis(report::Page& page, const std::string& name, const std::vector<AxisCell>& cells) {
  if (cells.empty()) return;
  page.gap();
  for (const AxisCell& cell : cells) {
    const std::string what = in_column(name + " " + cell.value, 14) + in_column(short_word(cell.cell.fit), 4);
    const std::string reason = tr(cell.cell.reason);
    page.line(2, reason.empty() ? what.substr(0, what.find_last_not_of(' ') + 1) : what + reason);
  }
}

std::string verdict_line(const Matrix& matrix) {
  std::size_t works = 0, judged = 0;
  const auto take = [&](const Cell& cell) {
    judged += cell.fit != Fit::NoTorch ? 1 : 0;
    works += cell.fit == Fit::Works ? 1 : 0;
  };
  for (const FileGroup& group : matrix.groups) {
    for (const MatrixCell& cell : group.cells) take(cell.cell);
    for (const auto* axis : {&group.cudas, &group.glibcs, &group.gpus})
      for (const AxisCell& cell : *axis) take(cell.cell);
  }
  const std::string counts = say_n(judged, "{} of {} place", "{} of {} places", works, judged);
  switch (overall(matrix)) {
    case Fit::Works:
      return say("the files work at {}", counts);
    case Fit::Unknown:
      return say("the files are known to work at {} only", counts);
    default:
      return say("the files work at {} only", counts);
  }
}

Json cell_json(const Cell& cell) {
  return {{"fit", fit_word(cell.fit)},
          {"cause", report::or_null(cell.cause)},
          {"reason", report::or_null(english(cell.reason))},
          {"file", report::or_null(cell.file)}};
}

Json axis_json(const std::vector<AxisCell>& cells) {
  Json list = Json::array();
  for (const AxisCell& cell : cells) {
    Json one{{"value", cell.value}};
    one.update(cell_json(cell.cell));
    list.push_back(std::move(one));
  }
  return list;
}

}  // namespace

int exit_status_of(const Matrix& matrix) {
  const Fit fit = overall(matrix);
  if (fit == Fit::Works) return kExitClean;
  return fit == Fit::Unknown ? kExitInconclusive : kExitFindings;
}

std::string matrix_text(const Matrix& matrix, const report::TextStyle& style) {
  report::Page page(style);
  if (!style.quiet)
    for (const FileGroup& group : matrix.groups) {
      page.line(0, say("{}: {}", group.name, facts_line(group)));
      if (!group.device_code.empty()) page.line(2, say("device code: {}", join(group.device_code, " ")));
      page.gap();
      table(page, group);
      axis(page, "CUDA", group.cudas);
      axis(page, "glibc", group.glibcs);
      axis(page, "GPU", group.gpus);
      const std::vector<Reason> reasons = reasons_of(group);
      if (!reasons.empty()) page.gap();
      for (const Reason& reason : reasons) page.line(2, reason_line(group, reason));
      page.gap();
    }
  if (!style.quiet)
    for (const Message& note : matrix.notes) page.line(0, tr(note));
  page.marked(0, mark_of(overall(matrix)), "", verdict_line(matrix));
  return page.take();
}

std::string matrix_json(const Matrix& matrix) {
  Json groups = Json::array();
  for (const FileGroup& group : matrix.groups) {
    Json cells = Json::array();
    for (const MatrixCell& cell : group.cells) {
      Json one{{"torch", cell.torch}, {"python", cell.python}};
      one.update(cell_json(cell.cell));
      cells.push_back(std::move(one));
    }
    groups.push_back({{"name", group.name},
                      {"files", group.files},
                      {"libraries", group.libraries},
                      {"machine", report::or_null(group.machine)},
                      {"glibc_min", report::or_null(group.glibc_min)},
                      {"cuda_major", report::or_null(group.cuda_major)},
                      {"system_libraries", group.system_libraries},
                      {"executable_stack", group.executable_stack},
                      {"device_code", group.device_code},
                      {"cells", std::move(cells)},
                      {"cuda", axis_json(group.cudas)},
                      {"glibc", axis_json(group.glibcs)},
                      {"gpu", axis_json(group.gpus)}});
  }
  Json notes = Json::array();
  for (const Message& note : matrix.notes) notes.push_back(english(note));
  return json_document(Json{{"$schema", "urn:scankit:matrix:1"},
                            {"tool_version", kToolVersion},
                            {"verdict", fit_word(overall(matrix))},
                            {"notes", std::move(notes)},
                            {"groups", std::move(groups)}});
}

namespace {

report::Table cells_table(const FileGroup& group) {
  report::Table made{{say("torch")}, {}};
  const std::vector<std::string> pythons = values(group, &MatrixCell::python);
  for (const std::string& python : pythons) made.columns.push_back(say("Python {}", python));
  for (const std::string& torch : values(group, &MatrixCell::torch)) {
    std::vector<report::Spans> row{report::as_text(torch)};
    for (const std::string& python : pythons)
      row.push_back(report::as_text(short_word(fit_at(group, torch, python))));
    made.rows.push_back(std::move(row));
  }
  return made;
}

report::Table axes_table(const FileGroup& group) {
  report::Table made{{say("axis"), say("works"), say("reason")}, {}};
  for (const auto& [name, cells] :
       {std::pair{"CUDA", &group.cudas}, {"glibc", &group.glibcs}, {"GPU", &group.gpus}})
    for (const AxisCell& cell : *cells)
      made.rows.push_back({report::as_text(std::string(name) + " " + cell.value),
                           report::as_text(short_word(cell.cell.fit)),
                           report::as_text(tr(cell.cell.reason))});
  return made;
}

report::TestState state_of(Fit fit) {
  if (fit == Fit::Works) return report::TestState::Passed;
  if (fit == Fit::NoTorch) return report::TestState::Skipped;
  return fit == Fit::Unknown ? report::TestState::Error : report::TestState::Failed;
}

void add_test(report::Suite& suite, const std::string& name, const Cell& cell) {
  suite.tests.push_back({.group = "scankit.matrix",
                         .name = name,
                         .state = state_of(cell.fit),
                         .type = cell.cause.empty() ? std::string(fit_word(cell.fit)) : cell.cause,
                         .message = tr(cell.reason)});
}

report::Suite suite_of(const FileGroup& group) {
  report::Suite suite{group.name, {}};
  for (const MatrixCell& cell : group.cells)
    add_test(suite, "torch " + cell.torch + ", Python " + cell.python, cell.cell);
  for (const auto& [name, cells] :
       {std::pair{"CUDA", &group.cudas}, {"glibc", &group.glibcs}, {"GPU", &group.gpus}})
    for (const AxisCell& cell : *cells) add_test(suite, std::string(name) + " " + cell.value, cell.cell);
  return suite;
}

report::Problem problem_of(const FileGroup& group, const Reason& reason) {
  return {.rule = reason.cause.empty() ? "unknown" : reason.cause,
          .title = reason.text,
          .subject = group.files.size() == 1 ? group.files.front() : group.name,
          .told = {reason_line(group, reason)},
          .more = reason.cause.empty() ? "" : "scankit explain " + reason.cause};
}

}  // namespace

report::Document matrix_document(const Matrix& matrix) {
  const Fit fit = overall(matrix);
  report::Document document{.command = "doctor",
                            .verdict_word = std::string(fit_word(fit)),
                            .verdict = verdict_line(matrix),
                            .tone = tone_of(fit),
                            .exit_status = exit_status_of(matrix),
                            .metrics = {report::exit_status_metric(exit_status_of(matrix))},
                            .tool_version = kToolVersion};
  for (const Message& note : matrix.notes)
    document.blocks.emplace_back(report::Paragraph{report::as_text(tr(note))});
  for (const FileGroup& group : matrix.groups) {
    const std::size_t first = document.problems.size();
    for (const Reason& reason : reasons_of(group))
      if (reason.fit == Fit::Fails) document.problems.push_back(problem_of(group, reason));
    report::PageSection section{group.name,
                                {report::Paragraph{report::as_text(facts_line(group))}, cells_table(group)}};
    if (report::Table axes = axes_table(group); !axes.rows.empty())
      section.blocks.emplace_back(std::move(axes));
    if (document.problems.size() > first)
      section.blocks.emplace_back(report::Problems{first, document.problems.size() - first});
    document.blocks.emplace_back(std::move(section));
    document.suites.push_back(suite_of(group));
  }
  return document;
}

report::Views matrix_views(const Matrix& matrix) {
  return {.text = [&matrix](const report::TextStyle& style) { return matrix_text(matrix, style); },
          .json = [&matrix] { return matrix_json(matrix); },
          .document = [&matrix] { return matrix_document(matrix); }};
}

}  // namespace scankit::matrix
