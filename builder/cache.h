// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "builder/key.h"
#include "doctor/base/result.h"

namespace scankit {

// A content-addressed store of build results below one folder. Entries appear by rename, so that concurrent
// builders see whole ones; what is returned was hashed again. A store that cannot be written is a slow build,
// never a failed one.
class Cache {
 public:
  explicit Cache(std::string folder) : folder_(std::move(folder)) {}

  // Nothing where there is none, or where its bytes are not those that were stored (the entry is then
  // removed).
  std::optional<std::string> find(const Key& key) const;
  // `slot` names what the entry is for ("fwd_f32 sm_90"), so that a later miss can say which input changed.
  Result<void> store(const Key& key, const std::string& slot, std::string_view bytes) const;
  // The labels that differ from what was last stored in the slot; empty where nothing was.
  std::vector<std::string> why_missed(const Key& key, const std::string& slot) const;

  const std::string& folder() const { return folder_; }

 private:
  std::string entry_path(const std::string& digest) const;
  std::string slot_path(const std::string& slot) const;
  std::string folder_;
};

// `asked` (--cache-dir), else $XDG_CACHE_HOME/scankit, else $HOME/.cache/scankit.
Result<std::string> cache_folder(const std::string& asked);

}  // namespace scankit
