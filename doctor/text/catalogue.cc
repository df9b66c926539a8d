// SPDX-License-Identifier: Apache-2.0
// The format: GNU gettext manual, "The Format of GNU MO Files". Key and translation of a counted sentence
// hold their forms one after the other, each ended by a zero byte.
#include "doctor/text/catalogue.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include "doctor/base/embedded.h"

// languages.def is made by CMake: LANGUAGE(code) for each .po file of this folder, in order.
#define LANGUAGE(code) SCANKIT_EMBEDDED(scankit_language_##code);
#include "doctor/text/languages.def"
#undef LANGUAGE

namespace scankit {
namespace {

class MoCatalogue : public Language {
 public:
  explicit MoCatalogue(std::string bytes) : bytes_(std::move(bytes)) {}

  // What is wrong with it; "" where every entry lies inside the file and the keys are in order.
  std::string problem() {
    constexpr std::uint32_t kMagic = 0x950412deu;
    if (bytes_.size() < 28) return say("it is truncated");
    swapped_ = word(0) != kMagic;
    if (word(0) != kMagic) return say("it does not start like a .mo file");
    if (word(4) >> 16 > 1) return say("its format is newer than this program");
    const std::uint64_t count = word(8), keys = word(12), values = word(16);
    if (keys + count * 8 > bytes_.size() || values + count * 8 > bytes_.size()) return say("it is truncated");
    entries_.reserve(count);
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto key = text(keys + i * 8ull), value = text(values + i * 8ull);
      if (!key || !value) return say("an entry extends beyond the file");
      if (!entries_.empty() && first_form(*key) <= entries_.back().key)
        return say("its entries are not sorted");
      entries_.push_back({first_form(*key), *key, *value});
    }
    if (!entries_.empty() && entries_.front().key.empty()) header_ = entries_.front().forms;
    const auto charset = header_.find("charset=");
    if (charset != std::string_view::npos && !header_.substr(charset).starts_with("charset=UTF-8"))
      return say("it is not in UTF-8");
    return "";
  }

  std::optional<std::string_view> sentence(std::string_view english) const override {
    const auto all = forms(english);
    return all ? std::optional(first_form(*all)) : std::nullopt;
  }

  std::optional<std::string_view> counted(std::string_view one, std::size_t n) const override {
    auto rest = forms(one);
    const auto wanted = plural_form(header_, n);
    if (!rest || !wanted) return std::nullopt;
    for (std::size_t i = 0; i < *wanted; ++i) {
      const auto end = rest->find('\0');
      if (end == std::string_view::npos) return std::nullopt;
      rest->remove_prefix(end + 1);
    }
    return first_form(*rest);
  }

  std::vector<std::string> misplaced() const {
    std::vector<std::string> sentences;
    for (const Entry& entry : entries_) {
      if (entry.key.empty()) continue;
      // The forms of a counted sentence may follow either English form: "one name", "{} names".
      const std::string_view many =
          entry.all_keys.substr(std::min(entry.key.size() + 1, entry.all_keys.size()));
      for (std::string_view rest = entry.forms;;) {
        const std::string_view form = first_form(rest);
        if (!same_places(entry.key, form) && (many.empty() || !same_places(many, form)))
          sentences.emplace_back(entry.key);
        if (form.size() == rest.size()) break;
        rest.remove_prefix(form.size() + 1);
      }
    }
    return sentences;
  }

  std::string_view code() const override {
    constexpr std::string_view kField = "Language: ";
    const auto at = header_.find(kField);
    if (at == std::string_view::npos) return "";
    const std::string_view rest = header_.substr(at + kField.size());
    return rest.substr(0, rest.find_first_of("\n\r"));
  }

 private:
  struct Entry {
    std::string_view key, all_keys, forms;
  };

  static std::string_view first_form(std::string_view text) { return text.substr(0, text.find('\0')); }

  std::optional<std::string_view> forms(std::string_view key) const {
    const auto found = std::ranges::lower_bound(entries_, key, {}, &Entry::key);
    if (key.empty() || found == entries_.end() || found->key != key) return std::nullopt;
    return found->forms;
  }

  std::uint32_t word(std::uint64_t at) const {
    std::uint32_t value = 0;
    std::memcpy(&value, bytes_.data() + at, sizeof value);
    return swapped_ ? __builtin_bswap32(value) : value;
  }
  std::optional<std::string_view> text(std::uint64_t at) const {
    const std::uint64_t length = word(at), start = word(at + 4);
    if (start + length > bytes_.size()) return std::nullopt;
    return std::string_view(bytes_).substr(start, length);
  }

  std::string bytes_;
  bool swapped_ = false;
  std::string_view header_;
  std::vector<Entry> entries_;
};

struct Compiled {
  std::string_view code;
  const char *begin, *end;  // compressed
};
const std::vector<Compiled>& compiled() {
  static const std::vector<Compiled> all = {
#define LANGUAGE(code) {#code, scankit_language_##code, scankit_language_##code##_end},
#include "doctor/text/languages.def"
#undef LANGUAGE
  };
  return all;
}

}  // namespace

namespace {

Result<std::unique_ptr<MoCatalogue>> opened(std::string bytes, const std::string& name) {
  auto catalogue = std::make_unique<MoCatalogue>(std::move(bytes));
  if (const std::string problem = catalogue->problem(); !problem.empty())
    return Error{Errc::Malformed, message("{} is not a catalogue of translations: {}", name, problem),
                 message("create it with msgfmt from a .po file")};
  return catalogue;
}

}  // namespace

Result<std::unique_ptr<Language>> read_catalogue(std::string bytes, const std::string& name) {
  auto catalogue = opened(std::move(bytes), name);
  if (!catalogue) return catalogue.error();
  return std::unique_ptr<Language>(*std::move(catalogue));
}

Result<std::vector<std::string>> misplaced_sentences(std::string bytes, const std::string& name) {
  const auto catalogue = opened(std::move(bytes), name);
  if (!catalogue) return catalogue.error();
  return (*catalogue)->misplaced();
}

std::vector<std::string> compiled_languages() {
  std::vector<std::string> codes;
  for (const Compiled& language : compiled()) codes.emplace_back(language.code);
  return codes;
}

std::unique_ptr<Language> compiled_language(std::string_view code) {
  const auto found = std::ranges::find(compiled(), code, &Compiled::code);
  if (found == compiled().end()) return nullptr;
  auto catalogue = read_catalogue(unpacked(found->begin, found->end), std::string(code));
  return catalogue ? *std::move(catalogue) : nullptr;
}

// The rule for plural forms is a C expression over n (GNU gettext manual, "Additional functions for plural forms").

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
