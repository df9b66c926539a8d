// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "doctor/base/result.h"

namespace scankit::compile {

// Label and value, in the order in which they were added.
using Inputs = std::vector<std::pair<std::string, std::string>>;

// What a result depends on: a list of labelled values. The digest covers labels, values and their lengths,
// so that ("flags", "-I -O2") and ("flags", "-I-O2") differ. The text is what `--explain` prints and what
// people can diff.
class Key {
 public:
  void add(std::string label, std::string value) { inputs_.emplace_back(std::move(label), std::move(value)); }
  std::string digest() const;  // 64 hex digits
  std::string text() const;    // "label: value" lines
  const Inputs& inputs() const { return inputs_; }

 private:
  Inputs inputs_;
};

// The inputs of a Key::text(). A value with a newline in it does not survive the way there and back.
Inputs parse_inputs(const std::string& text);

struct InputChange {
  std::string label, before, after;
  bool is_new = false, is_gone = false;  // neither: the value changed
};
// What differs, in the order of `after`; what is gone comes last.
std::vector<InputChange> changed_inputs(const Inputs& before, const Inputs& after);

inline constexpr std::uint64_t kDefaultCacheSize = 512ull << 20;  // all architectures of all modules: 150 MB

// A content-addressed store of build results below one directory. Entries appear by rename, so that
// concurrent builders see complete ones. Whatever is returned was hashed again, and only this user or root
// can have written it (doctor/base/files.h), since native code comes from here. A store that cannot
// be written makes a build slow and never makes it fail: the reason becomes a note. All member functions may
// be called by several threads at once.
class Cache {
 public:
  // `limit` is in bytes; 0 switches the cache off, and so does "" as the directory (usable_cache_folder).
  explicit Cache(std::string folder, std::uint64_t limit = kDefaultCacheSize)
      : folder_(std::move(folder)), limit_(folder_.empty() ? 0 : limit) {}
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  struct Lookup {
    std::optional<std::string> bytes;
    std::string damage;  // an entry was there whose bytes are not those that were stored; it is removed
  };
  Lookup look_up(const Key& key) const;
  std::optional<std::string> find(const Key& key) const { return look_up(key).bytes; }
  // `slot` names what the entry is for ("selective_scan.cu fwd_f32 sm_90"), so that a later miss can say
  // which input changed.
  void store(const Key& key, const std::string& slot, std::string_view bytes) const;
  // The inputs, as Key::text(), with which the slot was last built or found here.
  std::optional<std::string> last_inputs(const std::string& slot) const;
  // Notes the inputs of the slot. For a hit as well, which is a build of the slot too.
  void remember(const Key& key, const std::string& slot) const;
  // Removes the entries that were unused for longest until the rest is within the limit, but none that this
  // object stored or found; also what killed builders left. One process trims at a time; for any other the
  // call does nothing.
  void trim() const;
  // What the user should know about the cache, each thing once. Empties the list.
  std::vector<std::string> take_notes() const;

  const std::string& folder() const { return folder_; }

 private:
  std::string entry_path(const std::string& digest) const;
  std::string slot_path(const std::string& slot) const;
  void use(const std::string& path) const;
  void note(std::string text) const;

  std::string folder_;
  std::uint64_t limit_;
  mutable std::mutex mutex_;            // guards all members below
  mutable std::set<std::string> used_;  // paths
  mutable std::vector<std::string> notes_;
  mutable bool stored_ = false, unwritable_ = false;
};

// `asked` (--cache-dir), else $XDG_CACHE_HOME/scankit, else $HOME/.cache/scankit.
Result<std::string> cache_folder(const std::string& asked);
// The same, if the directory does not exist yet or only this user or root can write there. Otherwise "",
// after one line on stderr that says why the work is done without a cache.
Result<std::string> usable_cache_folder(const std::string& asked);
// --cache-size: "512M", "2G", "100000"; "" is the default.
Result<std::uint64_t> parse_cache_size(const std::string& text);

}  // namespace scankit::compile
