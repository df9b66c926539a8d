// SPDX-License-Identifier: Apache-2.0
// The promise of --redact, line by line: testdata/redaction.tsv.
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "doctor/model/redact.h"

namespace scankit {
namespace {

std::vector<std::string> split_at(const std::string& text, char by) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const auto end = std::min(text.find(by, at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

struct CorpusLine {
  bool hide = false;
  std::string text;
  std::vector<std::string> gone, stays;
};

std::vector<CorpusLine> read_corpus() {
  std::ifstream file(SCANKIT_SOURCE_DIR "/doctor/model/testdata/redaction.tsv");
  std::vector<CorpusLine> lines;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    const auto fields = split_at(line, '\t');
    CorpusLine one{fields[0] == "hide", fields.at(1), {}, {}};
    for (auto at = one.text.find("\\n"); at != std::string::npos && one.text.starts_with("---");
         at = one.text.find("\\n"))
      one.text.replace(at, 2, "\n");
    if (one.hide) {
      one.gone = split_at(fields.at(2), '|');
      if (!fields.at(3).empty()) one.stays = split_at(fields.at(3), '|');
    }
    lines.push_back(std::move(one));
  }
  return lines;
}

Owner corpus_owner() {
  Owner owner{.users = {"knownuser"}, .homes = {"/data/homes7/knownuser"}, .hosts = {"knownhost7"}};
  add_accounts("root:x:0:0:root:/root:/bin/sh\nknown2:x:1000:1000:Known Person,,,:/home/known2:/bin/sh\n", 0,
               owner);
  return owner;
}

void expect_cleaned(const CorpusLine& line, const std::string& clean) {
  if (!line.hide) {
    EXPECT_EQ(clean, line.text);
    return;
  }
  for (const std::string& secret : line.gone)
    EXPECT_EQ(clean.find(secret), std::string::npos)
        << secret << " stays of: " << line.text << "\n  " << clean;
  for (const std::string& fact : line.stays)
    EXPECT_NE(clean.find(fact), std::string::npos) << fact << " is lost of: " << line.text << "\n  " << clean;
}

std::string as_log_line(const std::string& text) {
  Snapshot snapshot;
  snapshot.log.state = ProbeState::Present;
  snapshot.log.value.unexplained = {{1, text}};
  return redacted(snapshot, corpus_owner()).log.value.unexplained.front().text;
}

TEST(RedactionCorpus, HidesAndKeepsEachLineByItself) {
  const auto lines = read_corpus();
  ASSERT_GE(lines.size(), 200u);
  for (const CorpusLine& line : lines) expect_cleaned(line, as_log_line(line.text));
}

// What one line teaches must not destroy another.
TEST(RedactionCorpus, HidesAndKeepsAllLinesTogether) {
  const auto lines = read_corpus();
  Snapshot snapshot;
  snapshot.log.state = ProbeState::Present;
  for (const CorpusLine& line : lines) snapshot.log.value.unexplained.push_back({1, line.text});
  const Snapshot clean = redacted(snapshot, corpus_owner());
  for (std::size_t i = 0; i < lines.size(); ++i)
    expect_cleaned(lines[i], clean.log.value.unexplained[i].text);
}

TEST(RedactionCorpus, NothingChangesTheSecondTime) {
  Snapshot snapshot;
  snapshot.log.state = ProbeState::Present;
  for (const CorpusLine& line : read_corpus()) snapshot.log.value.unexplained.push_back({1, line.text});
  const Snapshot once = redacted(snapshot, corpus_owner()), twice = redacted(once);
  for (std::size_t i = 0; i < once.log.value.unexplained.size(); ++i)
    EXPECT_EQ(twice.log.value.unexplained[i].text, once.log.value.unexplained[i].text);
}

}  // namespace
}  // namespace scankit
