// SPDX-License-Identifier: Apache-2.0
#include <charconv>

#include "doctor/base/date.h"
#include "doctor/base/files.h"
#include "doctor/base/text.h"
#include "envspec/history/history.h"

// The moment that `--since` names.
namespace scankit::envspec {
namespace {

// "7d", which is longer than parse_duration() takes; "12h" and "30m".
std::optional<std::int64_t> age_in_seconds(const std::string& text) {
  unsigned days = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, days);
  constexpr unsigned kMostDays = 36500;
  if (parsed.ec == std::errc() && parsed.ptr + 1 == end && *parsed.ptr == 'd' && days <= kMostDays)
    return std::int64_t{days} * 86400;
  if (text.empty() || (text.back() != 'h' && text.back() != 'm')) return std::nullopt;
  const auto age = parse_duration(text);
  return age ? std::optional<std::int64_t>(age->count() / 1000) : std::nullopt;
}

// A checkout gives every file the time of the checkout: where the content is a commit's, its time counts.
void take_time(const std::string& path, Since& since) {
  const GitFile file = git_file(path);
  add_once(since.problems, file.problem);
  add_once(since.limits, file.limit);
  if (file.unknown_until) add_once(since.limits, shallow_clone(file));
  const auto here = read_whole_file(path, 256u << 20);
  const auto committed = file.commits.empty() ? Result<std::string>(Error{Errc::NotFound, "", ""})
                                              : git_content(file, file.commits.front().hash);
  if (!committed && committed.error().code != Errc::NotFound)
    add_once(since.problems, committed.error().message);
  if (here && committed && *here == *committed) {
    since.time = file.commits.front().time;
    since.commit = file.commits.front().hash;
    return;
  }
  const auto info = make_real_host()->stat(path_normalize(path_join(current_directory(), path)));
  if (info) since.time = in_seconds(info->mtime_ns);
}

Result<Since> moment_of(const std::string& text, std::int64_t now) {
  Since since{.text = text};
  if (const auto time = parse_time(text)) {
    since.time = *time;
    return since;
  }
  if (const auto age = age_in_seconds(text)) {
    since.time = now - *age;
    return since;
  }
  const std::string path = path_normalize(path_join(current_directory(), text));
  const auto info = make_real_host()->stat(path);
  if (!info || info->kind == FileKind::Directory)
    return Error{Errc::InvalidArgument,
                 message("--since {} is neither a date, an age nor a file", printable(text)),
                 message("such as 2026-11-20, \"2026-11-20 14:05\" (UTC), 7d, or scankit.lock")};
  SCANKIT_TRY(Side base, read_operand(text));
  if (base.kind == "environment")
    return Error{Errc::InvalidArgument, message("--since {} is a program", printable(text)),
                 message("name a lock, a spec, a record or a snapshot")};
  since.base = std::move(base);
  take_time(text, since);
  return since;
}

}  // namespace

Result<Since> parse_since(const std::string& text, std::int64_t now) {
  SCANKIT_TRY(Since since, moment_of(text, now));
  // The clock of a file server may be ahead of ours.
  const std::int64_t slack = since.base ? 2 : 0;
  if (since.time <= now + slack) return since;
  return Error{Errc::InvalidArgument,
               message("--since {} is in the future: {}, and it is {}", printable(text), time_utc(since.time),
                       time_utc(now)),
               message("name a moment that has passed, such as 7d")};
}

}  // namespace scankit::envspec
