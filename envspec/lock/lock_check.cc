// SPDX-License-Identifier: Apache-2.0
#include "envspec/lock/lock_check.h"

#include "builder/compile/cache.h"
#include "envspec/lock/lock_drift.h"

namespace scankit {

Result<std::vector<Outcome>> check_lock(const LockCheckOptions& options, const Subject& subject) {
  SCANKIT_TRY(const EnvironmentLock lock, read_lock(options.lock));
  const LockView view{options.lock, lock, subject};
  std::vector<Outcome> outcomes = {locked_python(view), locked_torch(view), locked_machine(view),
                                   locked_packages(view)};
  const auto folder = usable_cache_folder(options.cache_dir);  // without one every file is read again
  HashCache cache(folder ? *folder : "");
  outcomes.push_back(subject.host ? locked_files(view, *subject.host, cache) : locked_build_ids(view));
  return outcomes;
}

}  // namespace scankit
