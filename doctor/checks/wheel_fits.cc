// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "doctor/base/message.h"
#include "doctor/base/text.h"
#include "doctor/base/version.h"
#include "doctor/checks/check.h"
#include "doctor/checks/snapshot_queries.h"

// An installer refuses a wheel by its tags alone (PEP 425, 427, 600, 656), before it looks at any file in
// it. This check answers for the diagnosed environment as pip would there.
namespace scankit::checks {
namespace {

Message no_wheel(const Snapshot& snapshot) {
  return snapshot.wheels.empty() ? message("no wheel was given") : "";
}

// The Python series of a tag: "cp311" is 3.11; "py3" is any minor version of 3.
struct Series {
  unsigned major = 0, minor = 0;
  bool any_minor = false;
};

// Reads "cp311", "py3", "py310" and the ABI "cp313t": the first digit is the major version, the others
// are the minor one. Nothing for another prefix.
std::optional<Series> series_in(std::string_view tag, std::string_view prefix) {
  if (!tag.starts_with(prefix)) return std::nullopt;
  const std::string_view number = tag.substr(prefix.size());
  if (number.empty() || number[0] < '0' || number[0] > '9') return std::nullopt;
  Series series{static_cast<unsigned>(number[0] - '0'), 0, number.size() == 1};
  const auto parsed = std::from_chars(number.data() + 1, number.data() + number.size(), series.minor);
  if (!series.any_minor && parsed.ec != std::errc()) return std::nullopt;
  return series;
}

bool abi_fits(const Python& python, const Version& version, const Series& made_for, const std::string& abi) {
  const bool exact = made_for.major == version.part(0) && made_for.minor == version.part(1);
  if (abi == "none") return exact;
  // "none" needs exactly this series, because the tag's Python part is specific.
  // The stable ABI of that release and all newer ones. Free-threaded builds have one of their own from 3.15 on
  // (PEP 803); an installer takes it there only, although a 3.15 with the GIL would import the file.
  const bool new_enough = made_for.major == 3 && made_for.minor <= version.part(1);
  if (abi == "abi3") return new_enough && !python.free_threaded;
  if (abi == "abi3t") return new_enough && python.free_threaded && version.part(1) >= 15;
  // CPython before 3.8 marks its ABI with "m" (pymalloc).
  std::string own = "cp" + std::to_string(version.part(0)) + std::to_string(version.part(1));
  if (python.free_threaded) own += "t";
  return exact && (abi == own || (version.part(1) < 8 && abi == own + "m"));
}

// A wheel has sets of tags (PEP 425, compressed tag sets); any combination that fits is enough.
bool python_fits(const Python& python, const Version& version, const Wheel& wheel) {
  const auto one = [&](const std::string& tag, const std::string& abi) {
    if (const auto made_for = series_in(tag, "cp")) return abi_fits(python, version, *made_for, abi);
    const auto generic = series_in(tag, "py");
    return generic && abi == "none" && generic->major == version.part(0) &&
           (generic->any_minor || generic->minor <= version.part(1));
  };
  return std::ranges::any_of(wheel.python_tags, [&](const std::string& tag) {
    return std::ranges::any_of(wheel.abi_tags, [&](const std::string& abi) { return one(tag, abi); });
  });
}

// What a platform tag promises.
struct Platform {
  std::string machine;  // "x86_64"
  std::string libc;     // "glibc", "musl", "" for linux_x86_64, which promises nothing
  std::string floor;    // "2.28"
};

// Parses manylinux_2_28_x86_64, musllinux_1_2_aarch64, linux_x86_64 and the older names with a fixed
// glibc version (PEP 513, 571, 599). Nothing for other systems.
std::optional<Platform> platform_in(const std::string& tag) {
  struct Alias {
    std::string_view prefix;
    const char* floor;
  };
  for (const Alias& alias :
       {Alias{"manylinux1_", "2.5"}, Alias{"manylinux2010_", "2.12"}, Alias{"manylinux2014_", "2.17"}})
    if (tag.starts_with(alias.prefix)) return Platform{tag.substr(alias.prefix.size()), "glibc", alias.floor};
  if (tag.starts_with("linux_")) return Platform{tag.substr(6), "", ""};
  for (const auto& [prefix, libc] : {std::pair{"manylinux_", "glibc"}, std::pair{"musllinux_", "musl"}}) {
    if (!tag.starts_with(prefix)) continue;
    const auto from = std::string_view(prefix).size();
    const auto major = tag.find('_', from);
    const auto minor = major == std::string::npos ? major : tag.find('_', major + 1);
    if (minor == std::string::npos) return std::nullopt;
    return Platform{tag.substr(minor + 1), libc,
                    tag.substr(from, major - from) + "." + tag.substr(major + 1, minor - major - 1)};
  }
  return std::nullopt;
}

// Judges one wheel; the Python part and the platform part are independent findings.
class Judge {
 public:
  Judge(const Snapshot& snapshot, std::size_t index)
      : snapshot_(snapshot), wheel_(snapshot.wheels[index]), pointer_("/wheels/" + std::to_string(index)) {}

  void run(CheckResult& result) {
    if (wheel_.tags_from.empty()) {
      result.unknown.push_back(message("{}: neither its name nor its WHEEL file contains tags", wheel_.path));
      return;
    }
    const Python& python = snapshot_.python.value;
    const auto version = Version::parse(python.version);
    if (!version)
      result.unknown.push_back(message("{}: the version of this Python is not known", wheel_.path));
    else if (!python_fits(python, *version, wheel_))
      add(result, Cause::PythonAbiTagMismatch,
          python.free_threaded
              ? message("the wheel is built for {}; this is CPython {}, free-threaded", tags(),
                        python.version)
              : message("the wheel is built for {}; this is CPython {}", tags(), python.version),
          {{pointer_ + "/python_tags/0", wheel_.python_tags.front()},
           {pointer_ + "/abi_tags/0", wheel_.abi_tags.front()},
           {"/python/value/version", python.version}},
          message("build or download the wheel for this Python"));
    judge_platform(result);
  }

 private:
  std::string tags() const { return join(wheel_.python_tags, ".") + "-" + join(wheel_.abi_tags, "."); }

  void add(CheckResult& result, Cause cause, const Message& summary, std::vector<Evidence> evidence,
           const Message& advice) {
    result.findings.push_back({.cause = cause,
                               .subject = wheel_.path,
                               .module = wheel_.name.empty() ? path_basename(wheel_.path) : wheel_.name,
                               .summary = summary,
                               .evidence = std::move(evidence),
                               .fixes = {Advice{advice}}});
  }

  // The best of the platform tags decides: the right machine first, then a C library that is new enough.
  void judge_platform(CheckResult& result) {
    const std::string machine = interpreter_machine(snapshot_);
    const Evidence tag{pointer_ + "/platform_tags/0", wheel_.platform_tags.front()};
    std::vector<Platform> here;
    for (const std::string& text : wheel_.platform_tags) {
      if (text == "any") return;
      const auto platform = platform_in(text);
      if (platform && (machine.empty() || platform->machine == machine)) here.push_back(*platform);
    }
    if (here.empty())
      return add(result, Cause::WrongMachineArch,
                 message("the wheel is built for {}; this Python runs on linux {}",
                         join(wheel_.platform_tags), machine),
                 {tag}, message("build or download the wheel for linux {}", machine));
    // "linux_x86_64" promises nothing about the C library, and installers accept it.
    if (std::ranges::any_of(here, [](const Platform& p) { return p.libc.empty(); })) return;
    const LibC& libc = snapshot_.libc.value;
    const auto have = Version::parse(libc.version);
    if (!snapshot_.libc.present() || (libc.kind == "glibc" && !have)) {
      result.unknown.push_back(message("{}: the C library of the target is not known", wheel_.path));
      return;
    }
    std::string floor;
    for (const Platform& p : here) {
      const auto need = Version::parse(p.floor);
      if (p.libc != libc.kind || !need) continue;
      if (libc.kind != "glibc" || *have >= *need) return;
      floor = p.floor;
    }
    if (floor.empty())
      result.unknown.push_back(
          message("{} is built for {}, this system has {}", wheel_.path, here.front().libc, libc.kind));
    else
      add(result, Cause::GlibcTooOld,
          message("the wheel needs glibc {}, this system has {}", floor, libc.version),
          {tag, {"/libc/value/version", libc.version}},
          message("use a wheel built for an older glibc, or build it on this system"));
  }

  const Snapshot& snapshot_;
  const Wheel& wheel_;
  std::string pointer_;
};

CheckResult wheel_fits(const Snapshot& snapshot) {
  CheckResult result;
  for (std::size_t i = 0; i < snapshot.wheels.size(); ++i) Judge(snapshot, i).run(result);
  return result;
}

}  // namespace

extern const Check kWheelFits{.id = "wheel-fits",
                              .question = "Does each named wheel fit this Python and system?",
                              .needs = kPython,
                              .confirmed_by_import = false,
                              .not_applicable = no_wheel,
                              .run = wheel_fits,
                              .asked = [](const Snapshot& snapshot) { return !snapshot.wheels.empty(); }};
}  // namespace scankit::checks
