# SPDX-License-Identifier: Apache-2.0
# Toolchain file: builds for aarch64 on another machine, with Debian's cross compiler.
#   cmake -DCMAKE_TOOLCHAIN_FILE=ci/cmake/aarch64.cmake -DSCANKIT_SYSROOT=DIR ...
# DIR holds the libraries of that processor: ci/fixture_arm64.sh makes one. Programs that the build has to run, scankit
# itself for its manual page, are run by qemu.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_ASM_COMPILER aarch64-linux-gnu-gcc)
set(SCANKIT_SYSROOT "" CACHE PATH "Root file system of the machine that is built for")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES SCANKIT_SYSROOT)
set(CMAKE_SYSROOT ${SCANKIT_SYSROOT})
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
# The cross compiler brings a C library of its own, which it would take first; this one has had the security fixes.
set(CMAKE_EXE_LINKER_FLAGS_INIT "-B${SCANKIT_SYSROOT}/usr/lib/aarch64-linux-gnu -L${SCANKIT_SYSROOT}/usr/lib/aarch64-linux-gnu")
set(CMAKE_MODULE_LINKER_FLAGS_INIT "${CMAKE_EXE_LINKER_FLAGS_INIT}")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
find_program(SCANKIT_QEMU NAMES qemu-aarch64-static qemu-aarch64)
if(SCANKIT_QEMU)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${SCANKIT_QEMU})
endif()
