// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

// Text from files and children, made fit for one format each. All of them pass through plain() first, so that
// no control byte, terminal escape or malformed UTF-8 is left, and what was several lines is one.

namespace scankit {

// For text and for attributes in double quotes, of XML 1.0 and of HTML.
std::string xml_escaped(std::string_view text);

// For a paragraph or a table cell of GitHub-flavoured Markdown: nothing in it is markup, a link to an issue
// or a mention of a user.
std::string markdown_escaped(std::string_view text);
// A code span that ends where the text ends, also inside a table cell.
std::string markdown_code(std::string_view text);

// For the message and for a property of a GitHub workflow command ("::error title=PROPERTY::MESSAGE").
std::string github_message(std::string_view text);
std::string github_property(std::string_view text);

// For a label's value in Prometheus' text format 0.0.4, without its quotes.
std::string prometheus_label(std::string_view text);

// "file:///a%20b" of an absolute path (RFC 8089).
std::string file_uri(std::string_view path);

// Text from files and children, made fit for a terminal: control bytes, terminal escapes, C1 controls and
// bytes that are not UTF-8 become \xNN. With `ascii`, everything beyond ASCII does too.
std::string plain(std::string_view text, bool ascii);

// As a POSIX shell reads it back: quoted only where needed.
std::string shell_quoted(const std::string& word);

}  // namespace scankit
