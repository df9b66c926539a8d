// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "doctor/base/files.h"
#include "doctor/probes/extensions/extensions.h"
#include "doctor/torch_abi/date.h"

// scankit_date_files FILE...: one line a file and one for all together, for ci/dating.sh:
// "FILE <tab> number of torch names <tab> releases that fit, or the two that it lies between <tab> words".
// Not part of the product.
namespace {

void print(const scankit::Dating& dating) {
  std::string releases;
  if (dating.between_known_releases) releases = *dating.torch_min + "," + *dating.torch_max;
  for (const std::string& release : dating.releases) releases += (releases.empty() ? "" : ",") + release;
  const std::string words = scankit::dating_words(dating);
  std::printf("%s\t%u\t%s\t%s\n", dating.file.c_str(), dating.torch_names, releases.c_str(),
              words.empty() ? dating.why_not_narrower.c_str() : words.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  const auto host = scankit::make_real_host();
  std::vector<scankit::Dating> datings;
  for (int i = 1; i < argc; ++i) {
    scankit::Extension copy;
    copy.path = argv[i];
    const std::string name = scankit::path_basename(copy.path);
    if (const auto first = name.find('.'); first != name.rfind('.'))
      copy.tag = name.substr(first + 1, name.rfind('.') - first - 1);
    scankit::inspect_file(*host, copy);
    datings.push_back(copy.dating);
    print(datings.back());
  }
  print(scankit::date_together(scankit::Atlas::built_in(), "together", datings));
  return 0;
}
