// SPDX-License-Identifier: Apache-2.0
#include "doctor/base/say.h"
#include "doctor/report/audit.h"
#include "doctor/report/escape.h"
#include "doctor/report/html_page.h"

namespace scankit {
namespace {

std::string reason(const AuditLine& line) {
  if (line.cause.empty() || line.why.empty()) return line.why;
  return line.cause + ": " + line.why;
}

bool needs_a_look(const AuditLine& line) {
  return line.verdict == AuditVerdict::Fails || line.verdict == AuditVerdict::Unknown;
}

std::string markdown_rows(const AuditTable& table) {
  std::string out;
  for (const AuditLine& line : table.lines)
    if (needs_a_look(line))
      out += "| " + markdown_escaped(line.word) + " | " + markdown_escaped(line.package) + " | " +
             markdown_code(line.file) + " | " + markdown_escaped(reason(line)) + " | " +
             markdown_escaped(line.built_for) + " |\n";
  for (const std::string& part : table.not_read)
    out += "| " + markdown_escaped(say("not read")) + " | | | " + markdown_escaped(part) + " | |\n";
  return out;
}

std::string cell(const std::string& html) { return "<td>" + html + "</td>"; }

std::string html_table(const AuditTable& table, bool broken) {
  std::string rows;
  for (const AuditLine& line : table.lines)
    if (needs_a_look(line) == broken)
      rows += "<tr>" + cell(xml_escaped(line.word)) + cell(xml_escaped(line.package)) +
              cell(html::code(line.file)) + cell(xml_escaped(reason(line))) +
              (table.any_built_for ? cell(xml_escaped(line.built_for)) : "") + "</tr>\n";
  if (broken)
    for (const std::string& part : table.not_read)
      rows += "<tr>" + cell(xml_escaped(say("not read"))) + cell("") + cell("") + cell(xml_escaped(part)) +
              (table.any_built_for ? cell("") : "") + "</tr>\n";
  if (rows.empty()) return "";
  return "<table class=\"wide\"><thead><tr><th scope=\"col\">" + xml_escaped(say("answer")) +
         "</th><th scope=\"col\">" + xml_escaped(say("package")) + "</th><th scope=\"col\">" +
         xml_escaped(say("extension")) + "</th><th scope=\"col\">" + xml_escaped(say("why")) + "</th>" +
         (table.any_built_for ? "<th scope=\"col\">" + xml_escaped(say("its torch")) + "</th>" : "") +
         "</tr></thead><tbody>\n" + rows + "</tbody></table>\n";
}

}  // namespace

std::string audit_markdown(const Snapshot& snapshot) {
  if (const std::string note = audit_note(snapshot); !note.empty()) return markdown_escaped(note) + "\n\n";
  const auto table = audit_table(snapshot);
  if (!table) return "";
  std::string out =
      "### " + markdown_escaped(say("Every extension")) + "\n\n" + markdown_escaped(table->title) + "\n\n";
  if (const std::string rows = markdown_rows(*table); !rows.empty())
    out += "| " + say("answer") + " | " + say("package") + " | " + say("extension") + " | " + say("why") +
           " | " + say("its torch") + " |\n| --- | --- | --- | --- | --- |\n" + rows + "\n";
  if (table->loading.empty()) return out;
  out += "<details><summary>" + markdown_escaped(say("Those that load")) + "</summary>\n\n| " +
         say("package") + " | " + say("extensions") + " |\n| --- | --- |\n";
  for (const auto& [package, n] : table->loading)
    out += "| " + markdown_escaped(package) + " | " + std::to_string(n) + " |\n";
  return out + "\n</details>\n\n";
}

std::string audit_html(const Snapshot& snapshot) {
  if (const std::string note = audit_note(snapshot); !note.empty())
    return "<p>" + xml_escaped(note) + "</p>\n";
  const auto table = audit_table(snapshot);
  if (!table) return "";
  std::string out = "<h2>" + xml_escaped(say("Every extension")) + "</h2>\n<p>" + xml_escaped(table->title) +
                    "</p>\n" + html_table(*table, true);
  if (const std::string rest = html_table(*table, false); !rest.empty())
    out += "<details><summary>" + xml_escaped(say("Those that load, and those for another Python")) +
           "</summary>\n" + rest + "</details>\n";
  return out;
}

}  // namespace scankit
