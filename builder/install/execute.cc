// SPDX-License-Identifier: Apache-2.0
#include "builder/install/execute.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <filesystem>
#include <system_error>

#include "builder/install/distribution.h"
#include "builder/install/transaction.h"
#include "builder/install/verify.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/tool_version.h"

namespace scankit {
namespace {

bool is_there(const std::string& path) {
  struct stat info;
  return ::lstat(path.c_str(), &info) == 0;
}

Result<void> same_file_system(const std::string& path, const std::string& folder) {
  struct stat file, other;
  if (::lstat(path.c_str(), &file) != 0 || ::stat(folder.c_str(), &other) != 0 || file.st_dev == other.st_dev)
    return {};
  return Error{Errc::Unsupported,
               say("{} hides the module and lies on another file system than the backup {}", path, folder),
               say("move it away yourself, then run scankit fix again")};
}

class Execution {
 public:
  Execution(const Host& host, const StateFolder& state, const ExecuteRequest& request)
      : host_(host), state_(state), request_(request), plan_(*request.plan) {}

  Result<void> prepare() {
    SCANKIT_TRY(journal_.id, state_.next_id());
    journal_.module = request_.module;
    journal_.version = kToolVersion;
    staging_ = state_.staging(journal_.id);
    backup_ = state_.backup(journal_.id);
    for (const std::string& folder : {staging_, backup_, plan_.place.site})
      SCANKIT_CHECK(make_directories(folder));
    if (plan_.install) SCANKIT_CHECK(stage());
    for (const FixPlan::Move& move : plan_.moves) {
      SCANKIT_CHECK(same_file_system(move.path, backup_));
      journal_.operations.push_back({Operation::Kind::Save, move.path, "", backup_for(move.path), ""});
    }
    return {};
  }

  Result<void> run() {
    const Language* language = spoken_language();
    return run_transaction(state_, journal_, [&]() -> Result<void> {
      verifying_ = true;
      tell_in(language);
      const std::string expected = plan_.install ? target() : "";
      const std::string extra = plan_.place.how_to_reach.empty() ? "" : plan_.place.site;
      return verify_import(request_.python, request_.module, expected, extra);
    });
  }

  bool verifying() const { return verifying_; }

 private:
  void tell(const std::string& line) const {
    if (request_.progress) request_.progress(line);
  }
  // A transaction speaks English, for its journal.
  void tell_in(const Language* language) const {
    const Speaking to_the_user(language);
    tell(say("verifying: import torch, import {}, one call", request_.module));
  }
  std::string target() const { return path_join(plan_.place.site, module_file(request_.module)); }

  // Two hiding copies may have the same name in two folders.
  std::string backup_for(const std::string& path) {
    return path_join(backup_, std::to_string(++saved_) + "-" + path_basename(path));
  }

  Result<void> stage() {
    const std::string file = path_join(staging_, module_file(request_.module));
    SCANKIT_CHECK(write_module(host_, *request_.built, file));
    tell(say("loading the built module without torch"));
    SCANKIT_CHECK(verify_loads(request_.python, request_.module, file));
    SCANKIT_CHECK(make_directories(path_join(staging_, dist_info_name(request_.module))));
    for (const InstalledFile& part :
         dist_info_files(request_.module, request_.built->bytes, request_.built->manifest))
      SCANKIT_CHECK(write_file_atomically(path_join(staging_, part.path), part.bytes));
    // The records first, the file that Python imports after them: until then nothing has changed for an
    // import.
    SCANKIT_CHECK(save_older_records());
    journal_.operations.push_back({Operation::Kind::Place,
                                   path_join(plan_.place.site, dist_info_name(request_.module)),
                                   path_join(staging_, dist_info_name(request_.module)), "", ""});
    const bool replaces = is_there(target());
    journal_.operations.push_back({replaces ? Operation::Kind::Replace : Operation::Kind::Place, target(),
                                   file, replaces ? backup_for(target()) : "",
                                   sha256_hex(request_.built->bytes)});
    return {};
  }

  Result<void> save_older_records() {
    std::error_code code;
    for (const auto& entry : std::filesystem::directory_iterator(plan_.place.site, code)) {
      const std::string name = entry.path().filename();
      if (name.starts_with(distribution_stem(request_.module) + "-") && name.ends_with(".dist-info"))
        journal_.operations.push_back(
            {Operation::Kind::Save, entry.path(), "", backup_for(entry.path()), ""});
    }
    if (code) return Error{Errc::Io, say("cannot read {}: {}", plan_.place.site, code.message()), ""};
    return {};
  }

  const Host& host_;
  const StateFolder& state_;
  const ExecuteRequest& request_;
  const FixPlan& plan_;
  Journal journal_;
  std::string staging_, backup_;
  unsigned saved_ = 0;
  bool verifying_ = false;
};

}  // namespace

Result<void> execute_fix(const Host& host, const StateFolder& state, const ExecuteRequest& request,
                         FailedAt& failed_at) {
  Execution execution(host, state, request);
  failed_at = FailedAt::Preparation;
  if (auto prepared = execution.prepare(); !prepared) {
    std::error_code ignored;
    std::filesystem::remove_all(state.root() + "/staging", ignored);
    return prepared;
  }
  auto done = execution.run();
  failed_at = done                    ? FailedAt::Nothing
              : execution.verifying() ? FailedAt::Verification
                                      : FailedAt::Preparation;
  return done;
}

}  // namespace scankit
