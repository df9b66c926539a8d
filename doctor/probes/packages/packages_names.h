// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <string>
#include <string_view>

#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"

namespace scankit {

// "yes": the files offer it. "no": they do not, for the reason `why`. "absent": the top-level package is not
// on the path. "unknown": the files do not decide, for the reason `why`.
struct NameOffer {
  std::string answer;  // "yes", "no", "absent", "unknown"
  std::string why;
  std::string package_path;  // of the top-level package
};

// Does `from TARGET import NAME` find what it asks for, by the files? "no" only where the name occurs in no
// file that could define it: a name that is made at run time is written somewhere as text, if only in a table
// of lazy imports.
class NameSearch {
 public:
  NameSearch(const Host& host, const Python& python) : host_(host), python_(python) {}
  NameOffer ask(const std::string& target, const std::string& name);
  bool is_module(const std::string& target) { return ask(target, "").answer == "yes"; }

 private:
  NameOffer find_target(const std::string& target, const std::string& top, std::string& file,
                        std::string& folder);
  NameOffer search_folder(const std::string& folder, const std::string& name, const std::string& where);
  bool has_child(const std::string& folder, const std::string& name) const;

  const Host& host_;
  const Python& python_;
  // By "TARGET:NAME". Packages ask the same question from many files.
  std::map<std::string, NameOffer> known_;
};

// As a word of its own: not a part of a longer name.
bool has_word(std::string_view text, std::string_view word);

}  // namespace scankit
