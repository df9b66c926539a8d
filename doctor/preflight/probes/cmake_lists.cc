// SPDX-License-Identifier: Apache-2.0
// What a CMakeLists.txt says about its build. The language is read down to commands and words. Everything
// inside a block (if, function, foreach, ...) gets the guard "CMake", a condition that no check can answer.
#include <algorithm>
#include <array>
#include <map>

#include "doctor/base/text.h"
#include "doctor/preflight/probes/sources.h"

namespace scankit::preflight {
namespace {

struct Command {
  std::string name;  // lower case: CMake does not tell them apart
  unsigned line = 0;
  std::vector<std::string> words;  // of its arguments; ";" separates as well as a blank does
};

// Quotes count as blanks, so that "a;b c" becomes three words. CMake would split it at the semicolon alone;
// no fact here depends on a word that contains a blank.
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '"' || c == ';'; }

// CMake's language manual: name ( arguments ), where an argument may span lines and hold parentheses.
class Commands {
 public:
  explicit Commands(std::string_view text) : text_(text) {}

  bool next(Command& command) {
    std::string name;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#') {
        skip_comment();
      } else if (c == '(') {
        command = {lowered(trimmed(name)), line_, {}};
        ++at_;
        read_arguments(command.words);
        return true;
      } else {
        step();
        if (c == '\n')
          name.clear();
        else
          name += c;
      }
    }
    return false;
  }

 private:
  void step() {
    if (text_[at_] == '\n') ++line_;
    ++at_;
  }
  void skip_comment() {
    while (at_ < text_.size() && text_[at_] != '\n') ++at_;
  }
  void read_arguments(std::vector<std::string>& words) {
    words.emplace_back();
    bool quoted = false;
    for (int depth = 1; at_ < text_.size(); step()) {
      const char c = text_[at_];
      if (c == '"') quoted = !quoted;
      if (c == '#' && !quoted) {
        skip_comment();
        if (at_ == text_.size()) break;
      }
      if (c == '(' && !quoted) ++depth;
      if (c == ')' && !quoted && --depth == 0) {
        ++at_;
        break;
      }
      if (is_blank(text_[at_]))
        words.emplace_back();
      else if (c != '#' || quoted)
        words.back() += c;
    }
    std::erase(words, "");
  }

  std::string_view text_;
  std::size_t at_ = 0;
  unsigned line_ = 1;
};

bool opens_block(const std::string& name) {
  return name == "if" || name == "function" || name == "macro" || name == "foreach" || name == "while";
}

class Lists {
 public:
  Lists(std::string_view text, SourceTree& tree) : commands_(text), tree_(tree) {}

  void read() {
    Command command;
    while (commands_.next(command)) {
      if (opens_block(command.name)) ++depth_;
      if (command.name.starts_with("end") && depth_ > 0) --depth_;
      read_command(command);
    }
    // target_compile_features() and the property CXX_STANDARD set a standard for one target, which may be
    // another than the variable says: all standards of the file become uncertain.
    if (features_)
      for (SourceFact& standard : tree_.standards) standard.guards.emplace_back("CMake");
  }

 private:
  SourceFact fact(const Command& command, std::string value) const {
    return {tree_.build_file, command.line, std::move(value),
            depth_ > 0 ? std::vector<std::string>{"CMake"} : std::vector<std::string>{}};
  }

  void read_command(const Command& command) {
    const auto& words = command.words;
    if (command.name == "project" && !words.empty() && tree_.name.empty()) tree_.name = words[0];
    if (command.name == "project" || command.name == "enable_language")
      if (std::ranges::find(words, "CUDA") != words.end()) tree_.cuda.push_back(fact(command, "CUDA"));
    if (command.name == "set" && words.size() >= 2) read_variable(command);
    // A target's own demand beats the variable.
    features_ = features_ || command.name == "target_compile_features" ||
                std::ranges::find(words, "CXX_STANDARD") != words.end();
    static constexpr std::array<std::string_view, 4> kFlags{"set", "list", "add_compile_options",
                                                            "target_compile_options"};
    if (std::ranges::find(kFlags, command.name) == kFlags.end()) return;
    for (const std::string& word : words) {
      // CMake's own -std, from CMAKE_CXX_STANDARD, comes after those of the flags, and the last one counts.
      for (const std::string& standard : standards_in(word)) {
        tree_.standards.push_back(fact(command, standard));
        tree_.standards.back().guards.emplace_back("CMake");
      }
      for (const std::string& arch : architectures_in(word)) add_arch(command, arch);
    }
  }

  // The variables that decide for all targets. An unconditional set() replaces the one before it, whose fact
  // goes; a conditional one is added to it.
  void read_variable(const Command& command) {
    const auto& words = command.words;
    const bool standard = words[0] == "CMAKE_CXX_STANDARD" || words[0] == "CMAKE_CUDA_STANDARD";
    if (standard && words[1].size() == 2 && words[1].find_first_not_of("0123456789") == std::string::npos) {
      if (depth_ == 0)
        std::erase_if(tree_.standards, [&](const SourceFact& each) { return each.line == last_[words[0]]; });
      tree_.standards.push_back(fact(command, words[1]));
      last_[words[0]] = command.line;
    }
    if (words[0] != "CMAKE_CUDA_ARCHITECTURES") return;
    tree_.passes_archs = true;
    for (std::size_t i = 1; i < words.size() && words[i] != "CACHE"; ++i)
      if (std::string number = words[i].substr(0, words[i].find_first_not_of("0123456789"));
          number.size() >= 2)
        add_arch(command, std::move(number));
  }

  void add_arch(const Command& command, std::string arch) {
    tree_.passes_archs = true;
    tree_.archs.push_back(fact(command, std::move(arch)));
  }

  Commands commands_;
  SourceTree& tree_;
  int depth_ = 0;
  bool features_ = false;
  std::map<std::string, unsigned> last_;  // where a variable was set
};

}  // namespace

// Commands are read by name, variables are not followed: what stands behind ${...} is not known here.
void read_cmake_lists(std::string_view text, SourceTree& tree) { Lists(text, tree).read(); }

bool finds_torch(std::string_view cmake_lists) {
  Commands commands(cmake_lists);
  Command command;
  while (commands.next(command))
    if (command.name == "find_package" && !command.words.empty() && lowered(command.words[0]) == "torch")
      return true;
  return false;
}

}  // namespace scankit::preflight
