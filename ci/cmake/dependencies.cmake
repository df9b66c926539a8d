# SPDX-License-Identifier: Apache-2.0
# The one dependency file. CMake includes it; ci/install-deps.sh reads the "apt:" comments and installs those packages.
# What scankit is built with. ci/install-deps.sh --quickstart installs these and the "apt-demo:" ones, --demo only the latter.
# apt: g++ cmake ninja-build
# apt: libcli11-dev        (CLI11 2.1)
# apt: nlohmann-json3-dev  (nlohmann/json 3.11)
# apt: libyaml-cpp-dev     (yaml-cpp 0.7)
# apt: zlib1g-dev liblz4-dev libzstd-dev   (fatbin payloads)
# apt: zstd gettext       (programs: zstd compresses what scankit carries, msgfmt its translations; xgettext is for the tests)
# apt: libminizip-dev     (wheels; minizip of zlib 1.2.13)
# apt: libre2-dev          (RE2: log rules; no backtracking)
# apt: libfmt-dev          (fmt 9.1: sentences for people)
# What the story of ci/quickstart.sh needs after the build: an environment, and a module that is compiled the wrong way.
# apt-demo: g++ python3-venv python3-dev unzip
# The tests and the lints: Pythons, faults by a foreign compiler, a root file system of another release, JSON assertions.
# apt-test: libgtest-dev        (GoogleTest 1.12)
# apt-test: python3-pytest  (pytest 7.2: the end-to-end tests)
# apt-test: strace             (tests that kill a fix between any two of its system calls)
# apt-test: clang-format clang-tidy
# apt-test: jq gcc-aarch64-linux-gnu libc6-dev-arm64-cross debootstrap
# apt-test: ccache time git     (git: the lints look at what is tracked)
# apt-test: qemu-user          (the kernels on processors without AVX-512 and without AVX)
# apt-test: g++-aarch64-linux-gnu qemu-user-static  (the files of a release for aarch64, and what runs them)
# apt-test: zsh fish mandoc  (the completions in their shells, the manual page)
# apt-test: patchelf         (modules whose paths were rewritten)
# apt-test: lintian dash busybox-static wget  (the files of a release: the Debian package, and install.sh in other shells)
# apt-test: buildah            (the image of a release; without it only the recipe is judged)
# apt-test: openssh-client      (the signature of a release)
# The HTML report is opened in it; ci/install-deps.sh --browser.
# apt-browser: chromium fonts-dejavu-core
# The test of `scankit fleet` on a real Slurm; ci/install-deps.sh --slurm.
# apt-slurm: slurmctld slurmd slurm-client munge
find_package(Threads REQUIRED)
find_package(CLI11 2.1 REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(yaml-cpp 0.7 REQUIRED)
find_package(ZLIB REQUIRED)
if(SCANKIT_TESTS)
  find_package(GTest 1.12 REQUIRED)
endif()

# The distribution's yaml-cpp target is the shared library; a static main needs the archive beside it.
function(scankit_archive name library)
  if(SCANKIT_STATIC)
    find_library(${name}_LIBRARY lib${library}.a REQUIRED)
  else()
    find_library(${name}_LIBRARY ${library} REQUIRED)
  endif()
  add_library(scankit::${library} INTERFACE IMPORTED GLOBAL)
  target_link_libraries(scankit::${library} INTERFACE ${${name}_LIBRARY})
endfunction()
scankit_archive(YAMLCPP yaml-cpp)
scankit_archive(ZSTD zstd)
scankit_archive(LZ4 lz4)
scankit_archive(ZLIBA z)
scankit_archive(RE2 re2)
# RE2 from 2023 on (Debian 13) stands on Abseil, whose CMake targets are the shared libraries, and whose archives name each
# other in circles.
if(SCANKIT_STATIC)
  get_filename_component(folder ${RE2_LIBRARY} DIRECTORY)
  file(GLOB abseil ${folder}/libabsl_*.a)
  list(FILTER abseil EXCLUDE REGEX "test|benchmark")
  if(abseil)
    target_link_libraries(scankit::re2 INTERFACE -Wl,--start-group ${abseil} -Wl,--end-group)
  endif()
else()
  find_library(ABSL_STRINGS_LIBRARY absl_strings)
  if(ABSL_STRINGS_LIBRARY)
    target_link_libraries(scankit::re2 INTERFACE ${ABSL_STRINGS_LIBRARY})
  endif()
endif()
scankit_archive(MINIZIP minizip)
target_link_libraries(scankit::minizip INTERFACE ${ZLIBA_LIBRARY})  # it unpacks by zlib, which has to come behind it
find_package(fmt 9 REQUIRED)  # its headers: the distribution has no archive of it (doctor/base/say.cc)
find_program(ZSTD_PROGRAM zstd)
find_program(MSGFMT_PROGRAM msgfmt)
