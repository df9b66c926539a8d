// SPDX-License-Identifier: Apache-2.0
// The proof that all text for people is in the catalogue: it is translated into a language that can be told
// from everything else, and what stays in ASCII letters must be data of the snapshot.
#include "doctor/text/pseudo.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <set>

#include "doctor/base/files.h"
#include "doctor/base/process.h"
#include "doctor/checks/check.h"
#include "doctor/checks/recorded_cases.h"
#include "doctor/knowledge/faults.h"
#include "doctor/model/snapshot_json.h"
#include "doctor/report/fixes.h"
#include "doctor/report/text.h"
#include "doctor/text/catalogue.h"

namespace scankit {
namespace {
using Json = nlohmann::json;

const std::string kSource = SCANKIT_SOURCE_DIR, kScankit = SCANKIT_EXECUTABLE;

const std::string& pseudo_mo() {
  static const auto folder = TemporaryDirectory::create("pseudo");
  static const std::string path = [] {
    const std::string po = folder->path() + "/qps.po", mo = folder->path() + "/qps.mo";
    std::ofstream(po) << pseudo_po(read_pot(*read_whole_file(kSource + "/doctor/text/scankit.pot")));
    ProcessRequest request;
    request.argv = {"msgfmt", "-o", mo, po};
    const auto made = run_process(request);
    EXPECT_TRUE(made && made->ok()) << (made ? made->err : made.error().message);
    return mo;
  }();
  return path;
}

const Language& pseudo() {
  static const auto language = *read_catalogue(*read_whole_file(pseudo_mo()), "qps");
  return *language;
}

// Facts that are sentences. What they say counts only as a whole: else every English word would be data.
bool is_prose(const std::string& key) {
  static const std::set<std::string> keys{
      "note",        "file_detail",     "resolution_note", "why_not_run", "message", "why_not_selected",
      "text",        "nvml_error",      "meaning",         "settles",     "kind",    "source",
      "pretty_name", "libcuda_reached", "described"};
  return keys.contains(key);
}

void words_of(const std::string& text, std::set<std::string>& words) {
  std::string word;
  for (const char c : text + " ") {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_') {
      word += c;
      continue;
    }
    if (!word.empty()) words.insert(word);
    word.clear();
  }
}

// What may stand in a report untranslated: values of the snapshot, names of causes and checks, commands.
class Data {
 public:
  explicit Data(const Json& snapshot) : snapshot_(snapshot) {
    collect(snapshot, "");
    for (const CauseInfo& cause : all_causes()) words_.insert(std::string(cause.slug));
    for (const Check* check : all_checks()) add_whole(std::string(check->id));
    for (const char* command :
         {"scankit fix --python", "scankit restore --python", "-m pip install --no-build-isolation",
          "TORCH_CUDA_ARCH_LIST=", "CC=gcc CXX=g++", "selective_scan_cuda.fwd", "CUDA_HOME", "CPython",
          "ImportError", "PTX"})
      add_whole(command);
  }
  void add_whole(const std::string& text) {
    if (text.size() > 1) whole_.insert(text);
  }

  // The first word of the part that is no data; "" where there is none.
  std::string stranger(std::string part) const {
    const auto start = std::min(part.find_first_not_of(' '), part.size());
    const auto colon = std::min(part.find(": ", start), part.size());
    if (is_pointer(part.substr(start, colon - start))) {
      part.erase(0, colon);
      if (part == ": true" || part == ": false") return "";
    }
    if (is_line_of_python(part) || is_quoted(part)) return "";
    for (const std::string& whole : whole_) remove(whole, part);
    for (std::size_t at = 0; at < part.size();) {
      const auto end = std::min(part.find_first_of(" \t", at), part.size());
      std::set<std::string> pieces;
      words_of(part.substr(at, end - at), pieces);
      at = end + 1;
      for (const std::string& piece : pieces)
        if (!is_data(piece)) return piece;
    }
    return "";
  }

 private:
  struct LongestFirst {
    bool operator()(const std::string& a, const std::string& b) const {
      return a.size() != b.size() ? a.size() > b.size() : a < b;
    }
  };

  void collect(const Json& value, const std::string& key) {
    if (value.is_string()) {
      add_whole(value.get<std::string>());
      if (!is_prose(key)) words_of(value.get<std::string>(), words_);
    }
    for (const auto& [name, member] : value.items()) {
      if (key == "environment") words_.insert(name);
      if (value.is_structured()) collect(member, value.is_object() ? name : key);
    }
  }

  static bool is_word_character(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  }

  // Not inside a word: "it" is no part of "with".
  static void remove(const std::string& whole, std::string& part) {
    for (auto at = part.find(whole); at != std::string::npos; at = part.find(whole, at + 1)) {
      const auto end = at + whole.size();
      const bool starts = at == 0 || !is_word_character(part[at - 1]) || !is_word_character(whole.front());
      const bool ends =
          end == part.size() || !is_word_character(part[end]) || !is_word_character(whole.back());
      if (starts && ends) part.replace(at, whole.size(), " ");
    }
  }

  bool is_pointer(const std::string& text) const {
    if (!text.starts_with('/')) return false;
    try {
      return snapshot_.contains(Json::json_pointer(text));
    } catch (const Json::exception&) {
      return false;
    }
  }

  // A piece of a fact that is itself a sentence, such as what the interpreter printed.
  bool is_quoted(const std::string& part) const {
    return part.find(' ') != std::string::npos && std::ranges::any_of(whole_, [&](const std::string& whole) {
             return whole.find(part) != std::string::npos;
           });
  }

  bool is_line_of_python(const std::string& part) const {
    if (!part.starts_with("from ") || part.find(" import ") == std::string::npos) return false;
    std::set<std::string> names;
    words_of(part, names);
    return std::ranges::all_of(
        names, [&](const std::string& name) { return name == "from" || name == "import" || is_data(name); });
  }

  bool is_data(const std::string& word) const {
    const bool letters = std::ranges::any_of(word, [](unsigned char c) { return std::isalpha(c) != 0; });
    if (!letters || words_.contains(word)) return true;
    if (std::isdigit(static_cast<unsigned char>(word.front())) != 0 && is_chip(word)) return true;
    for (const std::string_view kind : {"sm_", "compute_"})
      if (word.starts_with(kind) && word.size() > kind.size() && is_chip(word.substr(kind.size())))
        return true;
    return false;
  }
  static bool is_chip(const std::string& text) {
    return text.find_first_not_of("0123456789af") == std::string::npos;
  }

  const Json& snapshot_;
  std::set<std::string> words_;
  std::set<std::string, LongestFirst> whole_;
};

void expect_translated(const std::string& text, const Data& data, const std::string& where) {
  bool open = false;
  const auto parts = parts_outside_sentences(text, open);
  EXPECT_FALSE(open) << where << ": a sentence was cut in\n" << text;
  std::set<std::string> told;
  for (const std::string& part : parts)
    if (const std::string word = data.stranger(part); !word.empty() && told.insert(part).second)
      ADD_FAILURE() << where << ": \"" << word << "\" is neither translated nor data in: " << part;
}

TEST(PseudoLanguage, IsMadeOfWideLettersAndBrackets) {
  const std::string made = pseudo_sentence("{} is {b:x}, {{c}}");
  bool open = true;
  EXPECT_EQ(parts_outside_sentences(made, open), (std::vector<std::string>{"{}", "{b:x}"}));
  EXPECT_FALSE(open);
  EXPECT_EQ(parts_outside_sentences("a " + made + "\nb", open),
            (std::vector<std::string>{"a ", "{}", "{b:x}", "b"}));
  parts_outside_sentences(made.substr(0, made.size() - 3), open);
  EXPECT_TRUE(open);
  const auto entries = read_pot(
      "msgid \"\"\nmsgstr \"x\"\n\n#. c\nmsgid \"a\"\n\"b\\n\\\"\"\nmsgid_plural \"c\"\n"
      "msgstr[0] \"\"\n");
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].one + entries[0].many, "ab\n\"c");
}

// A test that cannot fail proves nothing: a sentence that is glued is seen.
TEST(PseudoLanguage, ShowsWhatWasNotTranslated) {
  const Json snapshot{{"path", "/lib/libx.so"}, {"note", "it is here"}};
  const Data data(snapshot);
  EXPECT_EQ(data.stranger("/lib/libx.so"), "");
  EXPECT_EQ(data.stranger("libx.so, it is here"), "");
  EXPECT_EQ(data.stranger("  /path: /lib/libx.so sm_90a 2.1 torch_version_mismatch"), "");
  EXPECT_EQ(data.stranger("from libx import so"), "");
  EXPECT_EQ(data.stranger("from libx import other"), "from");
  EXPECT_EQ(data.stranger("libx.so is here"), "is");
  EXPECT_EQ(data.stranger("/other: x"), "other");
  EXPECT_EQ(data.stranger("sm_x"), "sm_x");
}

class PseudoCases : public ::testing::TestWithParam<std::string> {};

TEST_P(PseudoCases, SayNothingThatIsNotInTheCatalogue) {
  const Json test = case_file(GetParam());
  const Speaking speaking(&pseudo());
  const Report report = diagnosed(test);
  const Json snapshot = Json::parse(snapshot_to_json(report.snapshot));
  Data data(snapshot);
  for (const Finding& finding : report.findings)
    for (const Fix& fix : finding.fixes) data.add_whole(fix_command(fix, report.snapshot));
  expect_translated(doctor_text(report, {.ascii = false, .verbose = true}), data, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Doctor, PseudoCases, ::testing::ValuesIn(case_names()), [](const auto& test) {
  std::string name = test.param;
  std::ranges::replace(name, '.', '_');
  return name;
});

std::string output_of(std::vector<std::string> words) {
  ProcessRequest request;
  request.argv = {kScankit, "--lang", pseudo_mo()};
  request.argv.insert(request.argv.end(), words.begin(), words.end());
  request.environment = {{"LC_ALL=C.UTF-8", "PATH=/usr/bin:/bin"}};
  const auto ran = run_process(request);
  EXPECT_TRUE(ran) << ran.error().message;
  return ran ? ran->out + ran->err : "";
}

TEST(PseudoProgram, TranslatesTheReportOfEveryRecordedMachine) {
  for (const auto& entry : std::filesystem::directory_iterator(kSource + "/doctor/tests/machines")) {
    const std::string path = entry.path().string() + "/snapshot.json";
    const Json snapshot = Json::parse(*read_whole_file(path));
    const std::string text = output_of({"doctor", "--from", path, "--color", "never"});
    EXPECT_NE(text.find("\xE2\x9F\xA6"), std::string::npos) << text;
    Data data(snapshot);
    data.add_whole(path);
    expect_translated(text, data, path);
  }
}

TEST(PseudoProgram, TranslatesWhatItExplains) {
  Json words = Json::array();
  for (const FaultClass& fault : fault_classes()) {
    words.push_back(fault.id);
    for (const std::string& line : fault.error_lines) words.push_back(line);
    for (const std::string& line : fault.seen_with) words.push_back(line);
    for (const std::string& source : fault.sources) words.push_back(source);
  }
  for (const char* column : {"fil", "fi-", "f-l", "f--", "-il", "-i-", "--l"}) words.push_back(column);
  const Data data(words);
  expect_translated(output_of({"explain", "--list"}), data, "explain --list");
  for (const char* slug : {"torch_version_mismatch", "missing_cudart", "no_kernel_image"})
    expect_translated(output_of({"explain", slug}), data, slug);
}

TEST(PseudoProgram, KeepsWhatProgramsReadInEnglish) {
  const std::string path = kSource + "/doctor/tests/machines/cpu_torch211/snapshot.json";
  for (const char* format : {"json=-", "sarif=-", "junit=-", "github=-"})
    EXPECT_EQ(output_of({"doctor", "--from", path, "--report", format}).find("\xE2\x9F\xA6"),
              std::string::npos)
        << format;
  for (const char* format : {"text=-", "markdown=-", "html=-"})
    EXPECT_NE(output_of({"doctor", "--from", path, "--report", format}).find("\xE2\x9F\xA6"),
              std::string::npos)
        << format;
}

}  // namespace
}  // namespace scankit
