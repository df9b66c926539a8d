// SPDX-License-Identifier: Apache-2.0
// Runs one real transaction in a small folder, so that a test can kill it at every system call:
//   transaction_probe fix|install|repeat|restore|recover BASE
// BASE/site is the import folder. `fix` puts ours.abi3.so and a folder ours.dist-info there, in place of an
// older ours.abi3.so where there is one, and saves ours.cpython.so, which would win. `install` lets an
// installer change the folder before that: it exchanges a package, takes files away and brings others.
// `repeat` lets an installer install the exchanged package once more, as a second repair of it does.
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "builder/fix/transaction.h"
#include "builder/fix/tree.h"
#include "doctor/base/files.h"

namespace {

using namespace scankit;

Result<void> fix(const fix::StateFolder& state, const std::string& site) {
  fix::Journal journal;
  SCANKIT_TRY(journal.id, state.next_id());
  journal.module = "ours";
  const std::string staging = state.staging(journal.id), backup = state.backup(journal.id);
  SCANKIT_CHECK(make_directories(staging + "/ours.dist-info"));
  SCANKIT_CHECK(make_directories(backup));
  SCANKIT_CHECK(write_file_atomically(staging + "/ours.dist-info/RECORD", "record"));
  SCANKIT_CHECK(write_file_atomically(staging + "/ours.abi3.so", "new"));
  const std::string target = site + "/ours.abi3.so";
  const bool replaces = std::filesystem::exists(target);
  journal.operations = {
      {fix::Operation::Kind::Place, site + "/ours.dist-info", staging + "/ours.dist-info", "", ""},
      {replaces ? fix::Operation::Kind::Replace : fix::Operation::Kind::Place, target,
       staging + "/ours.abi3.so", replaces ? backup + "/ours.abi3.so" : "", sha256_hex("new")},
      {fix::Operation::Kind::Save, site + "/ours.cpython.so", "", backup + "/ours.cpython.so", ""}};
  return fix::run_transaction(state, journal, [] { return Result<void>(); });
}

// What pip does, in one process, so that each of its steps can be the last one.
Result<void> installer(const std::string& site) {
  namespace fs = std::filesystem;
  fs::rename(site + "/package", site + "/~ackage");
  fs::create_directories(site + "/package/parts");
  SCANKIT_CHECK(write_file_atomically(site + "/package/__init__.py", "2"));
  SCANKIT_CHECK(write_file_atomically(site + "/package/parts/more.py", "2"));
  std::ofstream(site + "/lines.pth", std::ios::app) << "/more\n";  // in place
  fs::rename(site + "/package-1.dist-info", site + "/~ackage-1.dist-info");
  fs::create_directories(site + "/package-2.dist-info");
  SCANKIT_CHECK(write_file_atomically(site + "/package-2.dist-info/RECORD", "2"));
  fs::remove_all(site + "/~ackage");
  fs::remove_all(site + "/~ackage-1.dist-info");
  return {};
}

// What pip does when the same release is installed again: every file is written anew.
Result<void> reinstaller(const std::string& site) {
  for (const char* file : {"/package/__init__.py", "/package-2.dist-info/RECORD"})
    SCANKIT_CHECK(write_file_atomically(site + file, "2, again"));
  return {};
}

// A repair that leaves the folder to `program`, and then places and saves what is in `operations`.
Result<void> leave_to(const fix::StateFolder& state, const fix::Journal& journal, const std::string& site,
                      Result<void> (*program)(const std::string&),
                      const std::vector<fix::Operation>& operations) {
  const std::string staging = state.staging(journal.id), backup = state.backup(journal.id);
  SCANKIT_CHECK(make_directories(backup));
  SCANKIT_CHECK(fix::save_tree(site, staging + "/tree"));
  fix::Transaction transaction(state, journal);
  Result<void> done =
      transaction.apply({{fix::Operation::Kind::Tree, site, staging + "/tree", backup + "/tree", ""}});
  if (done) done = program(site);
  if (done) done = transaction.note_ends();
  if (done && !operations.empty()) done = transaction.apply(operations);
  if (done) done = transaction.commit();
  return done ? done : transaction.roll_back(done.error());
}

Result<fix::Journal> new_journal(const fix::StateFolder& state) {
  fix::Journal journal;
  SCANKIT_TRY(journal.id, state.next_id());
  journal.run = journal.id;
  journal.module = "ours";
  return journal;
}

Result<void> install(const fix::StateFolder& state, const std::string& site) {
  SCANKIT_TRY(const fix::Journal journal, new_journal(state));
  const std::string staging = state.staging(journal.id), backup = state.backup(journal.id);
  SCANKIT_CHECK(make_directories(staging));
  SCANKIT_CHECK(write_file_atomically(staging + "/ours.abi3.so", "new"));
  return leave_to(
      state, journal, site, installer,
      {{fix::Operation::Kind::Place, site + "/ours.abi3.so", staging + "/ours.abi3.so", "",
        sha256_hex("new")},
       {fix::Operation::Kind::Save, site + "/ours.cpython.so", "", backup + "/ours.cpython.so", ""}});
}

Result<void> repeat(const fix::StateFolder& state, const std::string& site) {
  SCANKIT_TRY(const fix::Journal journal, new_journal(state));
  return leave_to(state, journal, site, reinstaller, {});
}

Result<void> run(const std::string& verb, const std::string& base) {
  const fix::StateFolder state(base);
  SCANKIT_TRY(const fix::Lock lock, fix::Lock::take(state.root()));
  std::vector<std::string> lines;
  SCANKIT_CHECK(fix::recover(state, lines));
  for (const std::string& line : lines) std::printf("%s\n", line.c_str());
  if (verb == "fix") return fix(state, base + "/site");
  if (verb == "install") return install(state, base + "/site");
  if (verb == "repeat") return repeat(state, base + "/site");
  if (verb == "restore") {
    SCANKIT_TRY(const fix::Journal undone, fix::undo_last(state));
    std::printf("undone %s\n", undone.id.c_str());
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const auto done = run(argv[1], argv[2]);
  if (!done) std::fprintf(stderr, "%s\n", english(done.error().message).c_str());
  return done ? 0 : 1;
}
