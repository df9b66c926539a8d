// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>
#include <sstream>

#include "doctor/base/columns.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/report/escape.h"
#include "doctor/report/text.h"
#include "validate/judge/judge.h"
#include "validate/report/report.h"

// The report for people, part by part in the order of whole_text().
namespace scankit::validate {
namespace {

constexpr std::size_t kFailuresShown = 12;

// Formats figures in columns, up to 511 bytes. Sentences go through say() instead, which translates them.
template <class... Args>
std::string format(const char* pattern, Args... args) {
  char text[512];
  std::snprintf(text, sizeof text, pattern, args...);
  return text;
}

std::string line(std::string label, const std::string& value, const std::string& remark) {
  return in_column(std::move(label), 9) + value + (remark.empty() ? "" : "  " + remark) + "\n";
}

std::string text_heading(const Validation& v) {
  const std::string versions =
      v.python_version.empty() ? "" : say("(Python {}, torch {})", v.python_version, v.torch_version);
  if (is_of_a_test(v)) return line(say("test"), v.module, "") + line("python", v.python, versions);
  std::string text = line(say("module"), v.module, v.module_file) + line("python", v.python, versions);
  if (!v.gpu.empty()) text += line(say("gpu"), gpus_in_words(v), "");
  return text + line(say("seed"), std::to_string(v.seed), say("(repeat with --seed)"));
}

}  // namespace

std::string gpus_in_words(const Validation& v) {
  const auto other = [&](const auto& each) { return each.second != v.gpu; };
  if (v.gpus.size() < 2) return v.gpu;
  if (std::ranges::none_of(v.gpus, other)) return std::to_string(v.gpus.size()) + " x " + v.gpu;
  std::string text;
  for (const auto& [device, name] : v.gpus) text += (text.empty() ? "" : ", ") + device + " " + name;
  return text;
}

namespace {

// One line for each device and way ("cuda:0+graph").
std::string devices(const Validation& v) {
  struct Count {
    std::size_t passed = 0, failed = 0, left = 0;
  };
  std::map<std::string, Count> counts;
  for (const CaseResult& c : v.cases) {
    Count& count = counts[c.device];
    ++(c.state == CaseState::Passed   ? count.passed
       : c.state == CaseState::NotRun ? count.left
                                      : count.failed);
  }
  std::string text;
  for (const auto& [device, n] : counts) {
    const std::size_t all = n.passed + n.failed + n.left;
    text += in_column(device, 9) +
            said_list({say_n(all, "{} of {} case passed", "{} of {} cases passed", n.passed, all),
                       n.failed > 0 ? say("{:d} failed", n.failed) : "",
                       n.left > 0 ? say("{:d} not run", n.left) : ""}) +
            "\n";
  }
  for (const auto& [device, words] : v.refused)
    text += say("{}: not validated, the module accepts no such tensors ({})", device, words) + "\n";
  return text;
}

// One line for each result and dtype: the case that came nearest to its bound. It shows how much margin
// there is even if everything passed.
std::string nearest(const Validation& v) {
  struct Row {
    const TensorResult* tensor;
    const CaseResult* of;
  };
  std::map<std::pair<std::string, std::string>, Row> rows;
  for (const CaseResult& c : v.cases) {
    for (const TensorResult& t : c.tensors) {
      const auto [row, fresh] = rows.try_emplace({t.name, t.dtype}, Row{&t, &c});
      if (!fresh && used(t) > used(*row->second.tensor)) row->second = {&t, &c};
    }
  }
  if (rows.empty()) return "";
  std::string text = "\n" + in_column(say("result"), 17) + in_column(say("dtype"), 11) +
                     in_column(say("error"), 10) + in_column(say("rounding"), 10) +
                     in_column(say("bound"), 10) + in_column(say("of bound"), 10) + say("nearest case") +
                     "\n";
  for (const auto& [key, row] : rows) {
    const double share = used(*row.tensor);
    const std::string percent = std::isinf(share) ? "inf"
                                : share >= 100    ? ">9999 %"
                                                  : format("%.1f %%", 100 * share);
    text += format("%-16s %-9s  %-8.2e  %-8.2e  %-8.2e  %-8s  ", key.first.c_str(), key.second.c_str(),
                   row.tensor->error, row.tensor->explained, row.tensor->bound, percent.c_str()) +
            row.of->device + " " + row.of->id + "\n";
  }
  return text;
}

// Of --device: a GPU by its number, in whatever way the case ran on it.
std::string device_option(const std::string& device) { return device.substr(0, device.find_first_of("+@")); }

// The command that repeats one case. Cases outside of the list (the model, upstream's tests) cannot be
// named by --case, so that their command repeats the whole run.
std::string reproducer(const Validation& v, const CaseResult& c) {
  if (is_of_a_test(v))
    return "scankit validate --python " + shell_quoted(v.python) + " --test " + shell_quoted(v.module);
  const bool of_the_list = !c.id.starts_with("model-") && !c.id.starts_with("timed-") &&
                           !c.id.starts_with("compute-") && !c.id.starts_with("upstream-");
  return "scankit validate --python " + v.python + " --module " + v.module + " --seed " +
         std::to_string(v.seed) + (v.mode == "full" ? " --full" : "") + " --device " +
         device_option(c.device) + (of_the_list ? " --case " + c.id : "");
}

std::string failures(const Validation& v) {
  std::string text;
  std::map<std::string, std::size_t> same;  // one and the same error in many cases is told once
  std::size_t shown = 0, hidden = 0;
  for (const CaseResult& c : v.cases)
    if (!c.error.empty()) ++same[c.error];
  std::set<std::string> told;
  for (const CaseResult& c : v.cases) {
    if (c.state == CaseState::Passed || c.state == CaseState::NotRun) continue;
    if (!c.error.empty() && !told.insert(c.error).second) continue;
    if (shown == kFailuresShown) {
      ++hidden;
      continue;
    }
    ++shown;
    text += "\n" + say("FAILED {} {}", c.device, c.id) + "\n";
    for (const std::string& reason : c.reasons) text += "  " + reason + "\n";
    if (const std::size_t others = c.error.empty() ? 0 : same[c.error] - 1; others > 0)
      text +=
          "  " +
          say_n(others, "(the same error in {} other case)", "(the same error in {} other cases)", others) +
          "\n";
    text += "  " + say("again: {}", reproducer(v, c)) + "\n";
  }
  if (hidden > 0)
    text += "\n" +
            say_n(hidden, "... and {} more failed case; --json lists all.",
                  "... and {} more failed cases; --json lists all.", hidden) +
            "\n";
  return text;
}

// Each reason once: if the time was up, every later case has that reason.
std::string not_run(const Validation& v) {
  std::string text;
  std::set<std::string> told;
  for (const CaseResult& c : v.cases) {
    if (c.state != CaseState::NotRun || c.reasons.empty() || !told.insert(c.reasons.front()).second) continue;
    text += "\n" + say("NOT RUN {} {}", c.device, c.id) + "\n";
    for (const std::string& reason : c.reasons) text += "  " + reason + "\n";
  }
  return text;
}

// The largest difference of each result on each device.
std::string nondeterminism(const Validation& v) {
  std::map<std::string, std::pair<std::size_t, double>> seen;
  for (const CaseResult& c : v.cases) {
    for (const auto& [name, difference] : c.nondeterministic) {
      auto& entry = seen[c.device + " " + name];
      ++entry.first;
      entry.second = std::max(entry.second, difference);
    }
  }
  if (seen.empty()) return "\n" + say("Every call gave identical bits when repeated.") + "\n";
  std::string text = "\n" + say("Not identical bits when repeated:") + "\n";
  for (const auto& [name, entry] : seen)
    text += "  " +
            say_n(entry.first, "{} in {} case, at most {:.2g} of its norm",
                  "{} in {} cases, at most {:.2g} of its norm", name, entry.first, entry.second) +
            "\n";
  return text;
}

// What the other module gets wrong. It has no influence on the verdict.
std::string about_against(const Validation& v) {
  if (v.against.empty()) return "";
  std::string text = "\n" + say("compared with {} {}", v.against, v.against_file) + "\n";
  if (!v.against_problem.empty()) return text + "  " + v.against_problem + "\n";
  std::size_t failed = 0;
  for (const CaseResult& c : v.against_cases) {
    if (c.state == CaseState::Passed || c.state == CaseState::NotRun) continue;
    if (++failed > kFailuresShown) continue;
    text += "  " + c.device.substr(0, c.device.find('@')) + " " + c.id + ": " +
            (c.reasons.empty() ? "" : c.reasons.front()) + "\n";
  }
  return text + "  " +
         say_n(v.against_cases.size(), "{} of its {} case failed", "{} of its {} cases failed", failed,
               v.against_cases.size()) +
         "\n";
}

}  // namespace

namespace {

// All lines, as they are made; what is of a file or of the module's own words is not fit for a terminal yet.
std::string whole_text(const Validation& v) {
  std::string text = text_heading(v) + devices(v) + nearest(v);
  const bool ran =
      std::any_of(v.cases.begin(), v.cases.end(), [](const auto& c) { return !c.tensors.empty(); });
  if (ran) text += nondeterminism(v);
  text += speed_text(v) + about_against(v) + failures(v) + not_run(v);
  if (v.module_problem == ModuleProblem::ImportFailed || v.module_problem == ModuleProblem::LacksFunctions)
    text += "\n" + say("FAILED {}", v.module_message) + "\n";
  for (const std::string& note : v.notes) text += say("note: {}", note) + "\n";
  if (!v.blocked.empty()) text += say("not completed: {}", v.blocked) + "\n";
  if (v.torch_import_failed || v.module_problem == ModuleProblem::ImportFailed)
    text += say("to find out why: {}", "scankit doctor --python " + shell_quoted(v.python)) + "\n";
  report::Legend legend;  // the module's directory is in most lines of a failure
  if (!v.module_file.empty()) legend.offer("SITE", path_dirname(v.module_file));
  text = report::with_legend(legend, text,
                             [](const std::string& line) { return line.find("scankit ") != line.npos; });
  return text + "\n" + verdict_line(v) + "\n";
}

}  // namespace

std::string text_report(const Validation& v, const report::TextStyle& style) {
  std::istringstream lines(style.quiet ? verdict_line(v) : whole_text(v));
  std::string out;
  for (std::string line; std::getline(lines, line);) out += report::plain(line, style.ascii) + "\n";
  return out;
}

namespace {

// What made judge() fail it, in its order.
std::string failure_line(const Validation& v) {
  if (v.module_problem == ModuleProblem::ImportFailed) return say("FAILED: {} cannot be imported", v.module);
  if (v.module_problem == ModuleProblem::LacksFunctions)
    return say("FAILED: {} lacks functions that it must have", v.module);
  const auto wrong = static_cast<std::size_t>(std::ranges::count_if(v.cases, [](const CaseResult& c) {
    return c.state != CaseState::Passed && c.state != CaseState::NotRun;
  }));
  if (wrong == 0) return say("FAILED: {} is slower than its baseline", v.module);
  return say("FAILED: {} of {} cases of {} failed", wrong, v.cases.size(), v.module);
}

}  // namespace

bool is_of_a_test(const Validation& v) { return v.mode == "test"; }

std::string verdict_line(const Validation& v) {
  if (is_of_a_test(v)) {
    const std::string sentence = v.verdict == Verdict::Passed ? say("PASSED: the test {}", v.module)
                                 : v.verdict == Verdict::Failed
                                     ? say("FAILED: the test {}", v.module)
                                     : say("INCONCLUSIVE: the test {} was not run", v.module);
    return sentence + say(" ({:.1f} s)", v.seconds);
  }
  const std::string sentence =
      v.verdict == Verdict::Passed   ? say("PASSED: the results of {} are correct", v.module)
      : v.verdict == Verdict::Failed ? failure_line(v)
                                     : say("INCONCLUSIVE: {} was not validated to the end", v.module);
  return sentence + say(" ({}, {:.1f} s)", v.mode, v.seconds);
}

}  // namespace scankit::validate
