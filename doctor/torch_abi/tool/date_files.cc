// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "doctor/base/files.h"
#include "doctor/probes/extensions/extensions.h"
#include "doctor/torch_abi/infer_release.h"

// scankit_date_files FILE...: one line a file and one for all together, for ci/release/built_for.sh:
// "FILE <tab> number of torch names <tab> releases that fit, or the two that it lies between <tab> words".
// Not part of the product.
namespace {

void print(const scankit::BuiltFor& built_for) {
  std::string releases;
  if (built_for.between_known_releases) releases = *built_for.torch_min + "," + *built_for.torch_max;
  for (const std::string& release : built_for.releases) releases += (releases.empty() ? "" : ",") + release;
  const std::string words = scankit::torch_abi::built_for_words(built_for);
  std::printf("%s\t%u\t%s\t%s\n", built_for.file.c_str(), built_for.torch_names, releases.c_str(),
              (words.empty() ? built_for.why_not_narrower.english() : words).c_str());
}

}  // namespace

int main(int argc, char** argv) {
  const auto host = scankit::make_real_host();
  std::vector<scankit::BuiltFor> built_for;
  for (int i = 1; i < argc; ++i) {
    scankit::Extension copy;
    copy.path = argv[i];
    const std::string name = scankit::path_basename(copy.path);
    if (const auto first = name.find('.'); first != name.rfind('.'))
      copy.tag = name.substr(first + 1, name.rfind('.') - first - 1);
    scankit::probes::inspect_file(*host, copy);
    built_for.push_back(copy.built_for);
    print(built_for.back());
  }
  print(
      scankit::torch_abi::date_together(scankit::torch_abi::SymbolIndex::built_in(), "together", built_for));
  return 0;
}
