// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "doctor/model/finding.h"
#include "doctor/report/text.h"

// What every command's report is made of. doctor, env check, ci run, validate, fleet and selftest each turn their result into
// a Document; the sinks (below) write it as a page, for a CI server or for a collector, and know no command. All text in it is
// plain and not escaped yet, and may come from a file that a stranger wrote: escaping is the sinks' duty.
namespace scankit::report {

// Which of the style sheet's colours something has. A colour never stands alone: a word says the same.
enum class Tone : std::uint8_t { Good, Note, Warning, Error, Unknown, None };

// A run of text; `code` is in the letters of a terminal, and copied from the page as it is.
struct Span {
  std::string text;
  bool code = false;
};
using Spans = std::vector<Span>;  // a paragraph, or a cell of a table
inline Spans as_text(std::string text) { return {{std::move(text)}}; }
inline Spans as_code(std::string text) { return {{std::move(text), true}}; }

struct Paragraph {
  Spans spans;
};
struct CommandLine {
  std::string text;  // to paste into a shell
};
struct Table {
  std::vector<std::string> columns;
  std::vector<std::vector<Spans>> rows;  // each as long as `columns`
};

// Something that is wrong, in any of the commands: a finding of doctor, a failed case of validate, a failed node of a fleet.
struct Repair {
  std::string sentence, command;  // command: "" where there is none
};
struct Problem {
  Severity severity = Severity::Error, usual_severity = Severity::Error;  // of this one, of its rule
  std::string rule;     // "torch_version_mismatch", "wrong_result": what kinds of problems are told apart by
  std::string title;    // the rule in one line
  std::string help;     // what to do about any of its kind; may be empty
  std::string subject;  // file, package, node or case
  std::string module;   // the module that it concerns; may be empty
  std::vector<std::string> told;  // what happened, a sentence each
  std::string follows_from;  // the rule of the problem that it follows from; such a one comes after its cause
  std::vector<Repair> repairs;  // empty where it follows from another: that one's repair removes it
  std::vector<Evidence> evidence;
  std::string more;               // the command that explains it; may be empty
  std::optional<FileLine> place;  // the line of the user's file that demands something else
};

// A bar whose parts add up to a whole, each named with its number.
struct BarPart {
  std::string name;
  Tone tone;
  std::size_t count;
};
struct Bar {
  std::string title;
  std::vector<BarPart> parts;
};

// The range of an axis in the unit of its values. A logarithmic axis needs low > 0.
struct Axis {
  std::string label;
  double low = 0, high = 1;
  bool logarithmic = false;
};
struct PlotPoint {
  double x = 0, y = 0;
  std::string tip;  // what the mouse shows
  Tone tone = Tone::Good;
};
struct PlotLine {
  std::string name;  // written at its right end
  std::vector<std::pair<double, double>> points;
  bool dashed = false;
};
struct Plot {
  std::string title;
  Axis x, y;
  std::vector<PlotLine> lines;
  std::vector<PlotPoint> points;
};
// Axes that hold all points, with room around them.
void fit_axes(Plot& plot);

// Horizontal bars in groups that can be compared: all have one scale.
struct BarChart {
  std::string title, unit;
  struct Group {
    std::string name;
    std::vector<std::pair<std::string, double>> bars;  // who, how much
  };
  std::vector<Group> groups;
};

// How much of a section is seen at first: all of it, or its title, with the rest on a click. Markdown is pasted into issues and has
// to be short.
enum class Fold : std::uint8_t { Open, Folded, FoldedInMarkdown };
// Where a section is shown: what nobody asks for in an issue is only on the page.
enum class Shown : std::uint8_t { Everywhere, OnPage, InMarkdown };

// Problems of the document, each in a box of its own.
struct Problems {
  std::size_t first = 0, count = 0;
};

struct PageSection;
// Bars, plots and charts are drawn on a page, and left out of Markdown.
using Block = std::variant<Paragraph, CommandLine, Table, Problems, Bar, Plot, BarChart, PageSection>;
struct PageSection {
  std::string title;
  std::vector<Block> blocks;
  Fold fold = Fold::Open;
  Shown shown = Shown::Everywhere;
};

// What a CI server counts. Unknown is never green: it is an error, or skipped where nothing bad can hide behind it.
enum class TestState : std::uint8_t { Passed, Failed, Error, Skipped };
struct Test {
  std::string group;  // "scankit.torch", a class name of JUnit
  std::string name;
  TestState state = TestState::Passed;
  std::string type, message;         // of a failure or an error; of a skipped one the message alone
  std::vector<std::string> details;  // of a failure: line by line
  std::vector<std::string> output;   // said although it passed, or beside its failure
};
struct Suite {
  std::string name;
  std::vector<Test> tests;
};

// A metric family of Prometheus, all gauges: "finding" becomes scankit_finding. `help` is plain ASCII in one line.
struct Metric {
  std::string name, help;
  struct Sample {
    std::vector<std::pair<std::string, std::string>> labels;
    std::string value;
  };
  std::vector<Sample> samples;
};

// The first metric of every command.
Metric exit_status_metric(int status);

// A question that was not answered.
struct OpenQuestion {
  std::string check, question, why;
  bool could_hide_error = true;
  bool crashed = false;  // the check itself failed
};

struct Document {
  std::string command;        // "doctor", "fleet"
  std::string verdict_word;   // for programs: "healthy", "broken", "unknown", "passed", ...
  std::string verdict;        // for people: one sentence
  Tone tone = Tone::Unknown;  // of the verdict
  int exit_status = 0;
  std::vector<std::string> lead;  // what follows the verdict at once: the counts, and for what it holds
  std::vector<std::pair<std::string, std::string>> facts;  // what was looked at, as name and value
  std::vector<Problem> problems;                           // what follows from another comes after it
  std::vector<Block> blocks;
  std::vector<std::pair<std::string, std::string>>
      notices;  // worth a line where only problems have one: title, text
  std::vector<OpenQuestion> open;
  std::vector<Suite> suites;
  std::vector<Metric> metrics;
  std::string environment;  // the interpreter's path: where a problem without a file is shown
  std::string tool_version;
};

// The drawings of a page as inline SVG: no script, no font, no network. "" where there is nothing to draw. Their colours are
// classes of the page's style sheet, which has a light and a dark scheme.

// "c-good": the class that fills a shape.
std::string fill_class(Tone tone);

std::string bar_svg(const Bar& bar);
// Points outside of the axes are drawn at their edge.
std::string plot_svg(const Plot& plot);
std::string chart_svg(const BarChart& chart);

// The formats of `--report FORMAT=FILE`, for every command. Each sink turns a Document into the whole file. Same document, same
// bytes: no clock and no host name. None of them lets text of a file be anything but text (escape.h).

// One page that opens without a network, also as an attachment of a mail. Nothing in it runs or loads anything.
std::string html_of(const Document& document);
// For pasting into an issue: short at first sight, with everything else on a click.
std::string markdown_of(const Document& document);
// The dialect of Jenkins' xunit plugin (junit-10.xsd), which GitLab and others read as well.
std::string junit_of(const Document& document);
// SARIF 2.1.0, for GitHub's code scanning.
std::string sarif_of(const Document& document);
// GitHub workflow commands, which a step of a job prints with `cat`.
std::string annotations_of(const Document& document);
// The text format 0.0.4, as node_exporter's textfile collector reads it.
std::string prometheus_of(const Document& document);
// The metrics as an OTLP/HTTP request in JSON (ExportMetricsServiceRequest of opentelemetry-proto 1), which a collector
// accepts at /v1/metrics. Names and labels are those of prometheus_of(), so that one dashboard reads both. OTLP
// refuses a value without a time, so this is the one sink with a clock: `nanoseconds` since 1970, or now.
std::string otlp_at(const Document& document, std::uint64_t nanoseconds);
std::string otlp_of(const Document& document);

// What a command has to show. One of these is called, in the language of the format.
struct Views {
  std::function<std::string(const TextStyle&)> text;
  std::function<std::string()> json;
  std::function<Document()> document;
};

// In the order in which the help lists them.
const std::vector<std::string_view>& report_formats();
// `format` is one of them. What people read is in their language; what programs read is English, so that the same input gives
// the same bytes on every machine.
std::string render(std::string_view format, const Views& views, bool verbose = false);

}  // namespace scankit::report
