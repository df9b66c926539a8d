// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

// Encoders for text from files and children, one for each format. All of them call plain() first, so that
// no control byte, terminal escape or malformed UTF-8 remains, and several lines become one.

namespace scankit::report {

// For text and for quoted attributes, of XML 1.0 and of HTML.
std::string xml_escaped(std::string_view text);

// For a paragraph or a table cell of GitHub-flavoured Markdown. Nothing in the result is markup, a link
// to an issue or a mention of a user.
std::string markdown_escaped(std::string_view text);
// A code span that contains exactly this text, also inside a table cell. "" for empty text.
std::string markdown_code(std::string_view text);

// For the message and for a property of a GitHub workflow command ("::error title=PROPERTY::MESSAGE").
std::string github_message(std::string_view text);
std::string github_property(std::string_view text);

// For the value of a label in Prometheus' text format 0.0.4. The quotes around it are the caller's.
std::string prometheus_label(std::string_view text);

// "file:///a%20b" of an absolute path (RFC 8089).
std::string file_uri(std::string_view path);

// Makes text fit for a terminal and for one line: a line end or a tab becomes a space; control bytes, C1
// controls, letters that reorder text and bytes that are not UTF-8 become \xNN. With `ascii`, everything
// outside ASCII does too. Text that CI runners would take for a command is broken up.
std::string plain(std::string_view text, bool ascii);

}  // namespace scankit::report
