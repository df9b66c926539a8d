// SPDX-License-Identifier: Apache-2.0
// scankit_check_translation FILE.mo NAME: fails where a translation lost or garbled a place for a value, and
// names the sentences. scankit itself would say these in English.
#include <cstdio>

#include "doctor/base/files.h"
#include "doctor/text/catalogue.h"

namespace {

int check(const char* file, const char* name) {
  auto bytes = scankit::read_whole_file(file);
  if (!bytes) return std::fprintf(stderr, "%s\n", english(bytes.error().message).c_str()), 2;
  const auto bad = scankit::misplaced_sentences(*std::move(bytes), name);
  if (!bad) return std::fprintf(stderr, "%s\n", english(bad.error().message).c_str()), 2;
  for (const std::string& sentence : *bad)
    std::printf("%s: the places in braces differ from those of: %s\n", name, sentence.c_str());
  return bad->empty() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3) return check(argv[1], argv[2]);
  std::fprintf(stderr, "usage: scankit_check_translation FILE.mo NAME\n");
  return 2;
}
