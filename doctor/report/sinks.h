// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/report/document.h"
#include "doctor/report/text.h"

// The formats of `--report FORMAT=FILE`, for every command. Each sink turns a Document into the whole file. Same document, same
// bytes: no clock and no host name. None of them lets text of a file be anything but text (escape.h).
namespace scankit {

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

}  // namespace scankit
