// SPDX-License-Identifier: Apache-2.0
// A venv names its own path: in the first line of programs, in activation scripts and in pyvenv.cfg. All of
// them are text that an installer wrote. conda writes its prefix into other files too, and lists them. Whatever
// else contains the path cannot be moved, and is named.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>

#include "builder/fix/distribution.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "envspec/create/conda.h"
#include "envspec/create/create.h"

namespace scankit::envspec {
namespace {

// Larger files are data of wheels, which were packed before this path existed. A local build can put the path
// into a library, and those of scripts and extensions are smaller.
constexpr std::uint64_t kMostMovedBytes = 64u << 20;

std::string without_part(std::string text, const std::string& part) {
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at))
    text.erase(at, part.size());
  return text;
}

class Mover {
 public:
  explicit Mover(const std::string& root)
      : root_(root), work_(path_basename(path_dirname(root))), conda_(prefix_files(root)) {}

  Result<std::vector<std::string>> all() {
    // conda's own byte code names no prefix, and its records list it.
    SCANKIT_CHECK(conda_.conda ? Result<void>() : remove_byte_code());
    SCANKIT_CHECK(every_file());
    if (!stuck_.empty())
      return Error{Errc::Unsupported,
                   message("{} contains the path where it was made, so that the environment cannot be moved",
                           stuck_[0]),
                   message("lock a wheel of that package: scankit env lock where it is installed")};
    SCANKIT_CHECK(correct_records());
    if (conda_.conda) SCANKIT_CHECK(correct_conda_records(root_, rewritten_));
    return rewritten_;
  }

 private:
  Result<void> every_file() {
    std::error_code code;
    for (auto at = std::filesystem::recursive_directory_iterator(root_, code);
         !code && at != std::filesystem::recursive_directory_iterator(); at.increment(code)) {
      if (at->is_symlink(code)) {
        SCANKIT_CHECK(link(at->path()));
      } else if (at->is_regular_file(code) && at->file_size(code) <= kMostMovedBytes) {
        SCANKIT_CHECK(file(at->path()));
      }
    }
    if (!code) return {};
    return Error{Errc::Io, message("cannot read {}: {}", root_, code.message()), ""};
  }

  // Made again by the first import. It contains the path of its source.
  Result<void> remove_byte_code() const {
    std::vector<std::filesystem::path> folders;
    std::error_code code;
    for (auto at = std::filesystem::recursive_directory_iterator(root_, code);
         !code && at != std::filesystem::recursive_directory_iterator(); at.increment(code))
      if (at->path().filename() == "__pycache__" && at->is_directory(code) && !at->is_symlink(code)) {
        folders.push_back(at->path());
        at.disable_recursion_pending();
      }
    for (const std::filesystem::path& folder : folders) std::filesystem::remove_all(folder, code);
    if (code)
      return Error{Errc::Io, message("cannot remove byte code below {}: {}", root_, code.message()), ""};
    return {};
  }

  std::string inner(const std::string& path) const { return path.substr(root_.size() + 1); }

  Result<void> link(const std::string& path) const {
    std::error_code code;
    const std::string target = std::filesystem::read_symlink(path, code),
                      moved = without_part(target, work_ + "/");
    if (code || moved == target) return {};
    std::filesystem::remove(path, code);
    std::filesystem::create_symlink(moved, path, code);
    if (code) return Error{Errc::Io, message("cannot rewrite the link {}: {}", path, code.message()), ""};
    return {};
  }

  bool is_binary_of_conda(const std::string& path) const { return conda_.binary.contains(inner(path)); }

  // Programs, activation scripts, pyvenv.cfg. Of conda, what its records list, and every text outside of
  // site-packages: its history, and what the scripts of its packages write.
  bool may_be_rewritten(const std::string& path, const std::string& text) const {
    if (conda_.binary.contains(path)) return true;
    if (text.find('\0') != std::string::npos) return false;
    return path.starts_with("bin/") || path == "pyvenv.cfg" || conda_.text.contains(path) ||
           (conda_.conda && path.find("/site-packages/") == std::string::npos);
  }

  static Result<void> drop_byte_code(const std::string& path) {
    std::error_code code;
    std::filesystem::remove(path, code);
    if (code) return Error{Errc::Io, message("cannot remove {}: {}", path, code.message()), ""};
    return {};
  }

  // A new file takes the place of the old one, which may be a second name of a file in the installer's cache.
  Result<void> file(const std::string& path) {
    SCANKIT_TRY(const std::string text, read_whole_file(path, kMostMovedBytes + 1));
    if (text.find(work_) == std::string::npos) return {};
    if (conda_.conda && path.ends_with(".pyc")) return drop_byte_code(path);
    const std::string moved = is_binary_of_conda(path) ? without_part_in_strings(text, work_ + "/")
                                                       : without_part(text, work_ + "/");
    if (!may_be_rewritten(inner(path), text) || moved.find(work_) != std::string::npos) {
      stuck_.push_back(inner(path));
      return {};
    }
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) return Error{Errc::Io, message("cannot read {}", path), ""};
    SCANKIT_CHECK(write_file_atomically(path, moved, info.st_mode & 07777));
    rewritten_.push_back(inner(path));
    return {};
  }

  // RECORD has hash and size of every program, as its path from site-packages: "../../../bin/tool".
  Result<void> correct_records() const {
    std::set<std::string> programs;
    for (const std::string& path : rewritten_)
      if (path.starts_with("bin/")) programs.insert(path);
    std::error_code code;
    for (auto at = std::filesystem::recursive_directory_iterator(root_ + "/lib", code);
         !programs.empty() && !code && at != std::filesystem::recursive_directory_iterator();
         at.increment(code))
      if (at->path().filename() == "RECORD" && at->path().parent_path().extension() == ".dist-info")
        SCANKIT_CHECK(correct_record(at->path(), programs));
    return {};
  }

  Result<void> correct_record(const std::string& path, const std::set<std::string>& programs) const {
    const std::string site = path_dirname(path_dirname(path));
    SCANKIT_TRY(const std::string text, read_whole_file(path));
    std::string corrected;
    for (const std::string_view line : lines_of(text)) {
      const std::string listed(line.substr(0, line.find(',')));
      const std::string real = path_normalize(path_join(site, listed));
      const bool program = real.starts_with(root_ + "/") && programs.contains(inner(real));
      if (program) {
        SCANKIT_TRY(std::string bytes, read_whole_file(real));
        corrected += fix::record_line({listed, std::move(bytes)});
      } else {
        corrected.append(line).append("\n");
      }
    }
    return corrected == text ? Result<void>() : write_file_atomically(path, corrected);
  }

  const std::string& root_;
  const std::string work_;  // scripts quote a path each in their own way, and none of them quotes this part
  const CondaPrefixFiles conda_;
  std::vector<std::string> rewritten_, stuck_;
};

}  // namespace

Result<std::vector<std::string>> relocate(const std::string& environment) { return Mover(environment).all(); }

}  // namespace scankit::envspec
