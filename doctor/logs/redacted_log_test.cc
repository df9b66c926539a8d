// SPDX-License-Identifier: Apache-2.0
// What redaction takes out of a log is no part of what the log means: the rules find the same causes.
#include <gtest/gtest.h>

#include <filesystem>

#include "doctor/base/files.h"
#include "doctor/logs/explainer.h"
#include "doctor/model/redact.h"

namespace scankit::logs {
namespace {

std::string redacted_log(const std::string& text) {
  TextRedactor redactor;
  redactor.learn_from(text);
  return redactor.clean(text);
}

std::vector<std::string> causes_in(const std::string& text) {
  std::vector<std::string> causes;
  for (const LogHit& hit : explain_text(text).hits)
    causes.push_back(hit.role + " " + hit.rule + " " + hit.cause);
  return causes;
}

TEST(RedactedLog, HasTheSameCauses) {
  std::size_t logs = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(SCANKIT_SOURCE_DIR "/doctor/tests/logs")) {
    if (!entry.is_regular_file()) continue;
    const std::string text = read_whole_file(entry.path().string()).value();
    EXPECT_EQ(causes_in(redacted_log(text)), causes_in(text)) << entry.path();
    ++logs;
  }
  EXPECT_GT(logs, 10u);
}

TEST(RedactedLog, KnowsWhomThePromptsName) {
  const Log log = explain_text(
      "(base) ann@node17:~/x$ python train.py\nordinary line\nImportError: libx.so: cannot open\n");
  EXPECT_EQ(log.prompts, std::vector<std::string>{"ann@node17:~"});
}

}  // namespace
}  // namespace scankit::logs
