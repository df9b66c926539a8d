// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/version.h"
#include "doctor/probes/packages/distributions.h"
#include "envspec/index/index.h"
#include "envspec/lock/build_facts.h"
#include "envspec/lock/install_metadata.h"
#include "envspec/lock/lock.h"

// Where each distribution's file comes from. Records and the older lock answer most questions, so that
// usually only new packages are asked of the index, in one run for all of them.
namespace scankit::envspec {
namespace {

constexpr std::string_view kOwnPrefix = "scankit-";  // distributions of our modules

class Resolver {
 public:
  Resolver(const Host& host, const Snapshot& snapshot, const ResolveRequest& request, EnvironmentLock& lock)
      : host_(host), snapshot_(snapshot), request_(request), lock_(lock) {}

  std::vector<std::string> all() {
    std::vector<LockedDistribution*> open;
    for (LockedDistribution& one : lock_.distributions)
      if (!by_records(one)) open.push_back(&one);
    const IndexReply reply = ask(open);
    for (LockedDistribution* one : open) by_index(*one, reply);
    describe_builds(reply);
    return reply.notes;
  }

 private:
  const Distribution& installed(const LockedDistribution& one) const {
    return *find_distribution(snapshot_.distributions.value, one.name);
  }

  // An artifact and a reason for its absence never occur together.
  void take(LockedDistribution& one, LockedArtifact artifact) {
    one.artifact = std::move(artifact);
    one.why_no_artifact.clear();
  }

  // Answers from what is on the disk. True where nothing more has to be asked, also if there
  // is no artifact.
  bool by_records(LockedDistribution& one) {
    if (one.source == "editable") {
      one.why_no_artifact = english(message("it is installed in place, from a source directory"));
      return true;
    }
    if (one.source == "conda") {
      one.why_no_artifact = english(message("conda installed it: conda_packages shows from where"));
      return true;
    }
    if (one.source == "here") return build_again(one);
    const DirectUrl direct = direct_url(host_, installed(one));
    if (direct.archive && !direct.url.empty() && !direct.sha256.empty() && !direct.file_name.empty()) {
      const LockedArtifact file{direct.file_name, direct.sha256, 0, direct.url};
      if (file.file.ends_with(".whl"))
        take(one, file);
      else
        by_source(one, file);
      return true;
    }
    // Installed from a directory or a repository: an index may have another file of the same version.
    if (direct.there && !direct.archive) return build_again(one);
    return by_older_lock(one);
  }

  // An entry of the older lock is only taken over where its file is still what is installed. One with
  // "here" is packed again, since the installed files may have changed under the same version.
  bool by_older_lock(LockedDistribution& one) {
    const LockedDistribution* known =
        request_.older == nullptr ? nullptr : find_locked(*request_.older, one.name);
    if (known == nullptr || known->version != one.version || !known->artifact) return false;
    if (known->source == "here") return build_again(one);
    if (known->source != "index") return false;
    if (!is_what_is_installed(one, *known->artifact)) return false;
    take(one, *known->artifact);
    return true;
  }

  // Always true, for its callers. The wheel itself is not kept: an export packs it again.
  bool build_again(LockedDistribution& one) {
    one.source = "here";
    const auto wheel = repack(host_, installed(one));
    if (!wheel) {
      one.why_no_artifact = english(wheel.error().message);
      return true;
    }
    take(one, {wheel->file, sha256_hex(wheel->bytes), wheel->bytes.size(), ""});
    packed_[one.name] = wheel->files;
    return true;
  }

  // Whether the installed distribution came from this file. An index may offer another build of the same
  // version, which has other tags. A distribution that was installed from a file has that file's hash in
  // its records. Without both, the version has to do.
  bool is_what_is_installed(const LockedDistribution& one, const LockedArtifact& offered) const {
    const Distribution& here = installed(one);
    const DirectUrl direct = direct_url(host_, here);
    if (!direct.sha256.empty()) return direct.sha256 == offered.sha256;
    const auto tags = installed_tags(host_, here);
    return tags.empty() || has_tags(offered.file, tags);
  }

  // The second installer gets only the packages that the first refused and has no source archive of; its
  // notes replace the first one's where it found any.
  IndexReply ask(const std::vector<LockedDistribution*>& open) {
    std::vector<IndexQuestion> questions;
    for (const LockedDistribution* one : open) questions.push_back({one->name, one->version});
    if (open.empty() || request_.offline || request_.installer.kind == installer::Installer::Kind::Conda)
      return {};
    if (request_.installer.kind == installer::Installer::Kind::None) return nobody_to_ask();
    IndexReply reply = ask_index_of(request_.installer, questions, request_.node_deadline);
    if (!request_.second || reply.refused.empty()) return reply;
    find_addresses(questions, reply);
    std::erase_if(questions, [&](const IndexQuestion& one) {
      return !reply.refused.contains(one.name) || reply.sources.contains(one.name);
    });
    if (questions.empty()) return reply;
    const auto left = time_left();
    if (left.count() <= 0) return reply;
    IndexReply more = ask_index_of(*request_.second, questions, left);
    for (const auto& [name, offered] : more.offered) reply.refused.erase(name);
    reply.offered.merge(more.offered);
    reply.sources.merge(more.sources);
    if (!more.offered.empty() || !more.sources.empty()) reply.notes = more.notes;
    return reply;
  }

  // Nothing to say where the environment is not of this machine: then no installer was looked for.
  IndexReply nobody_to_ask() const {
    IndexReply reply;
    if (!request_.installer.why.empty())
      reply.notes = {
          say("no index was queried: {} ({})", request_.installer.why, request_.installer.instead)};
    return reply;
  }

  // The time is for all questions to both installers together: each gets what the ones before it have left. What is done
  // between them, as packing what was built here, is not the index's.
  std::chrono::seconds time_left() const {
    return request_.node_deadline - std::chrono::duration_cast<std::chrono::seconds>(spent_);
  }
  template <class Question>
  auto asked(const Question& question) {
    const auto begin = std::chrono::steady_clock::now();
    auto reply = question();
    spent_ += std::chrono::steady_clock::now() - begin;
    return reply;
  }

  // A uv whose log is silent names the hash of a source archive, and pip its URL too, by which it is downloaded.
  void find_addresses(const std::vector<IndexQuestion>& questions, IndexReply& reply) {
    for (const IndexQuestion& one : questions) {
      const auto source = reply.sources.find(one.name);
      if (source == reply.sources.end() || !source->second.url.empty()) continue;
      const auto left = time_left();
      if (left.count() <= 0) return;
      const SourceReply told = asked([&] { return ask_source(*request_.second, one, left); });
      if (told.archive && told.archive->sha256 == source->second.sha256) source->second = *told.archive;
    }
  }

  IndexReply ask_index_of(const installer::Installer& installer, const std::vector<IndexQuestion>& questions,
                          std::chrono::seconds time) {
    if (request_.progress) request_.progress(what_is_asked(installer, questions.size()));
    return asked([&] {
      return ask_index(
          {.installer = installer, .questions = questions, .node_deadline = time, .progress = request_.part});
    });
  }

  // The line that is shown while the index is asked. Before 25.3, `pip install --dry-run` downloads
  // whole wheels, even where the index serves their metadata separately, and the user should know why
  // it takes long.
  std::string what_is_asked(const installer::Installer& installer, std::size_t packages) const {
    const Distribution* pip = find_distribution(snapshot_.distributions.value, "pip");
    const auto version = pip == nullptr ? std::nullopt : Version::parse(pip->version);
    if (installer.kind == installer::Installer::Kind::Pip && version && *version < *Version::parse("25.3"))
      return say_n(
          packages,
          "asking pip for the files of {0} package in the index; pip {1} downloads it for that, 25.3 does "
          "not",
          "asking pip for the files of {0} packages in the index; pip {1} downloads them for that, 25.3 "
          "does not",
          packages, pip->version);
    return say_n(packages, "asking {1} for the files of {0} package in the index",
                 "asking {1} for the files of {0} packages in the index", packages,
                 installer::name_of(installer.kind));
  }

  // What the index does not have may have been built locally, and is then packed from the installed files.
  void by_index(LockedDistribution& one, const IndexReply& reply) {
    const auto offered = reply.offered.find(one.name);
    if (offered != reply.offered.end()) {
      for (const LockedArtifact& artifact : offered->second)
        if (is_what_is_installed(one, artifact)) return take(one, artifact);
      one.why_no_artifact =
          english(message("the index has another build of this version: {}", offered->second.front().file));
    } else if (const auto source = reply.sources.find(one.name); source != reply.sources.end()) {
      return by_source(one, source->second);
    } else if (const auto why = reply.refused.find(one.name); why != reply.refused.end()) {
      one.why_no_artifact = why->second;
    } else {
      one.why_no_artifact = english(message("the index was not queried"));
      return;
    }
    if (is_local_build(one)) build_again(one);
  }

  // The index has only a source archive, from which an installer built the package. The built files are
  // locked if they can be packed: building once more may need a compiler, a CUDA toolkit or variables that
  // nobody recorded. Else the archive is the artifact.
  void by_source(LockedDistribution& one, const LockedArtifact& source) {
    build_again(one);
    if (one.artifact) return;
    one.source = "index";
    take(one, source);
  }

  // What was built somewhere, and not by us: our modules have a manifest.
  static bool is_built(const LockedDistribution& one) {
    if (one.source == "here") return !one.name.starts_with(kOwnPrefix);
    return one.source == "index" && one.artifact && !one.artifact->file.ends_with(".whl");
  }

  static std::string why_no_archive(const LockedDistribution& one, const IndexReply& reply) {
    if (const auto refused = reply.refused.find(one.name); refused != reply.refused.end())
      return refused->second;
    return reply.offered.contains(one.name)
               ? english(
                     message("the index has other wheels of this version, and no source archive was found"))
               : english(message("the index was not queried"));
  }

  // One installer's answer about an archive, and in `why` the reason where it has none.
  std::optional<LockedArtifact> archive_of(const installer::Installer& installer,
                                           const IndexQuestion& question, std::string& why) {
    const auto left = time_left();
    const SourceReply reply = left.count() > 0 ? asked([&] { return ask_source(installer, question, left); })
                                               : SourceReply{.timed_out = true};
    if (!reply.archive && reply.timed_out)
      why = english(message("the index did not answer within {} seconds", request_.node_deadline.count()));
    else if (!reply.archive && !reply.refused)
      why = english(message("whether the index has a source archive of {} {} is not known: {}", question.name,
                            question.version, last_line(reply.said)));
    return reply.archive;
  }

  // The index has wheels of this version, and what is installed was built all the same (`from: source`, --no-binary): its
  // archive is what it can be built from again. Nothing where somebody else knows the archive.
  std::optional<LockedArtifact> archive_next_to_wheels(const LockedDistribution& one, const IndexReply& reply,
                                                       const std::string& cache, std::string& why) {
    if (!reply.offered.contains(one.name) || direct_url(host_, installed(one)).there ||
        find_cached_build(host_, cache, installed(one)))
      return {};
    if (request_.progress) request_.progress(what_is_asked(request_.installer, 1));
    const IndexQuestion question{one.name, one.version};
    auto archive = archive_of(request_.installer, question, why);
    if (!request_.second || (archive && !archive->url.empty())) return archive;
    auto more = archive_of(*request_.second, question, why);
    const bool same = archive && more && archive->sha256 == more->sha256;
    return same || !archive ? more : archive;
  }

  void describe_builds(const IndexReply& reply) {
    std::optional<PlacedLibraries> libraries;  // of all packages; none is read if nothing was built
    for (LockedDistribution& one : lock_.distributions) {
      if (!is_built(one)) continue;
      if (!libraries) libraries = placed_libraries(host_, snapshot_);
      BuildHints hints{.cache = built_wheels_folder(host_), .prefix = snapshot_.python.value.prefix};
      if (const auto source = reply.sources.find(one.name); source != reply.sources.end())
        hints.index = &source->second;
      hints.why_not_index = why_no_archive(one, reply);
      const auto archive = archive_next_to_wheels(one, reply, hints.cache, hints.why_not_index);
      if (archive) hints.index = &*archive;
      const LockedDistribution* known =
          request_.older == nullptr ? nullptr : find_locked(*request_.older, one.name);
      if (known != nullptr && known->build && known->artifact && one.artifact &&
          known->artifact->sha256 == one.artifact->sha256)
        hints.older = &*known->build;
      else if (known != nullptr && known->version == one.version)
        hints.older_archive = source_archive(*known);
      one.build = build_facts(host_, *libraries, installed(one), hints);
      if (const auto packed = packed_.find(one.name); packed != packed_.end())
        one.build->files = packed->second;
    }
  }

  // PyPI refuses wheels with the bare tag linux_x86_64, so that such a wheel was probably built locally.
  // torch's own index has such wheels, but that index was just asked and does not have this one.
  bool is_local_build(const LockedDistribution& one) const {
    if (direct_url(host_, installed(one)).local) return true;
    const auto tags = installed_tags(host_, installed(one));
    return std::ranges::any_of(
        tags, [](const std::string& tag) { return tag.find("-linux_") != std::string::npos; });
  }

  const Host& host_;
  const Snapshot& snapshot_;
  const ResolveRequest& request_;
  EnvironmentLock& lock_;
  std::chrono::steady_clock::duration spent_{};                       // on questions
  std::map<std::string, std::map<std::string, std::string>> packed_;  // package -> its files -> hashes
};

}  // namespace

std::vector<std::string> resolve_artifacts(const Host& host, const Snapshot& snapshot,
                                           const ResolveRequest& request, EnvironmentLock& lock) {
  return Resolver(host, snapshot, request, lock).all();
}

}  // namespace scankit::envspec
