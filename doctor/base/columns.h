// SPDX-License-Identifier: Apache-2.0
// The one place that knows how wide text is on a terminal: East Asian letters (Width W and F of Unicode's UAX 11) take two
// columns, combining marks none, all others one. Bytes that are not UTF-8 take one each.
#pragma once
#include <string>
#include <string_view>

namespace scankit {

std::size_t columns_of(std::string_view text);

// The text, cut at its end so that it takes at most `columns`, with "..." if there is room for that. The cut is between
// letters, never inside one.
std::string cut_to(std::string_view text, std::size_t columns);

// Filled up to its column with spaces, at least one.
std::string in_column(std::string text, std::size_t columns);

// Breaks the text into lines of at most `columns` and indents all but the first by `indent`; `at` is the column where the
// first one begins. It breaks at spaces, and beside East Asian letters, but neither before punctuation that closes (a comma, a
// bracket) nor after an opening bracket. What has no such place, a long path, gets a line of its own and is never broken.
std::string wrapped(std::string_view text, std::size_t at, std::size_t indent, std::size_t columns);

}  // namespace scankit
