// SPDX-License-Identifier: Apache-2.0
// The rule is a C expression over n (GNU gettext manual, "Additional functions for plural forms").
#include <array>
#include <charconv>

#include "doctor/text/catalogue.h"

namespace scankit {
namespace {

class Expression {
 public:
  Expression(std::string_view text, unsigned long n) : rest_(text), n_(n) {}

  std::optional<unsigned long> value() {
    const unsigned long result = choice();
    skip();
    const bool whole = rest_.empty() || rest_.front() == ';' || rest_.front() == '\n';
    return good_ && whole ? std::optional(result) : std::nullopt;
  }

 private:
  struct Operator {
    std::string_view sign;
    int rank;  // binds tighter, the higher
  };
  // The longer of two signs with one start comes first.
  static constexpr std::array kOperators{
      Operator{"||", 1}, Operator{"&&", 2}, Operator{"==", 3}, Operator{"!=", 3}, Operator{"<=", 4},
      Operator{">=", 4}, Operator{"<", 4},  Operator{">", 4},  Operator{"+", 5},  Operator{"-", 5},
      Operator{"*", 6},  Operator{"/", 6},  Operator{"%", 6}};
  static constexpr int kDeepest = 100;  // brackets in brackets; the longest rule in use has four

  void skip() {
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\t')) rest_.remove_prefix(1);
  }
  bool take(std::string_view sign) {
    skip();
    if (!rest_.starts_with(sign)) return false;
    rest_.remove_prefix(sign.size());
    return true;
  }
  unsigned long fail() {
    good_ = false;
    rest_ = {};
    return 0;
  }

  unsigned long choice() {
    if (++depth_ > kDeepest) return fail();
    const unsigned long condition = binary(1);
    unsigned long result = condition;
    if (take("?")) {
      const unsigned long yes = choice();
      if (!take(":")) return fail();
      const unsigned long no = choice();
      result = condition != 0 ? yes : no;
    }
    --depth_;
    return result;
  }

  const Operator* next_operator(int lowest) {
    skip();
    for (const Operator& candidate : kOperators)
      if (rest_.starts_with(candidate.sign)) return candidate.rank >= lowest ? &candidate : nullptr;
    return nullptr;
  }

  unsigned long binary(int lowest) {
    unsigned long left = unary();
    while (const Operator* found = next_operator(lowest)) {
      rest_.remove_prefix(found->sign.size());
      left = apply(found->sign, left, binary(found->rank + 1));
    }
    return left;
  }

  unsigned long apply(std::string_view sign, unsigned long a, unsigned long b) {
    if (sign == "||") return a != 0 || b != 0 ? 1 : 0;
    if (sign == "&&") return a != 0 && b != 0 ? 1 : 0;
    if (sign == "==") return a == b ? 1 : 0;
    if (sign == "!=") return a != b ? 1 : 0;
    if (sign == "<=") return a <= b ? 1 : 0;
    if (sign == ">=") return a >= b ? 1 : 0;
    if (sign == "<") return a < b ? 1 : 0;
    if (sign == ">") return a > b ? 1 : 0;
    if (sign == "+") return a + b;
    if (sign == "-") return a - b;
    if (sign == "*") return a * b;
    if (b == 0) return fail();
    return sign == "/" ? a / b : a % b;
  }

  unsigned long unary() {
    if (++depth_ > kDeepest) return fail();
    unsigned long result = 0;
    if (take("!")) {
      result = unary() == 0 ? 1 : 0;
    } else if (take("(")) {
      result = choice();
      if (!take(")")) return fail();
    } else if (take("n")) {
      result = n_;
    } else {
      const auto read = std::from_chars(rest_.data(), rest_.data() + rest_.size(), result);
      if (read.ec != std::errc()) return fail();
      rest_.remove_prefix(static_cast<std::size_t>(read.ptr - rest_.data()));
    }
    --depth_;
    return result;
  }

  std::string_view rest_;
  unsigned long n_;
  int depth_ = 0;
  bool good_ = true;
};

}  // namespace

std::optional<std::size_t> plural_form(std::string_view header, std::size_t n) {
  const auto field = header.find("Plural-Forms:");
  if (field == std::string_view::npos) return n == 1 ? 0 : 1;  // the Germanic rule, as gettext assumes
  const std::string_view rule = header.substr(field, header.find('\n', field) - field);
  const auto forms = rule.find("nplurals="), start = rule.find("plural=", forms + 9);
  if (forms == std::string_view::npos || start == std::string_view::npos) return std::nullopt;
  const auto count = Expression(rule.substr(forms + 9), 0).value();
  const auto form = Expression(rule.substr(start + 7), n).value();
  if (!count || !form || *form >= *count) return std::nullopt;
  return *form;
}

}  // namespace scankit
