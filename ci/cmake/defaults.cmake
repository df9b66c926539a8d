# SPDX-License-Identifier: Apache-2.0
# Language level, warnings, and how the shipped executable is linked.
set(CMAKE_CXX_STANDARD 20)  # nvcc 13 ends at C++20, and kernels share headers with the tool
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
# -O3 costs a fifth more of the compiler's time, and nothing here that is not a kernel (those bring their own flags) gains.
string(REPLACE "-O3" "-O2" CMAKE_CXX_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")
if(SCANKIT_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "SCANKIT_FUZZ needs clang, which has libFuzzer: -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_C_COMPILER=clang")
  endif()
  set(SCANKIT_SANITIZE ON)
  set(SCANKIT_STATIC OFF)
  set(SCANKIT_TESTS OFF)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
if(SCANKIT_SANITIZE AND SCANKIT_STATIC)
  message(FATAL_ERROR "SCANKIT_SANITIZE needs -DSCANKIT_STATIC=OFF: a sanitizer cannot be linked statically")
endif()
if(SCANKIT_ASSERTIONS)
  string(REPLACE "-DNDEBUG" "" CMAKE_CXX_FLAGS_RELWITHDEBINFO "${CMAKE_CXX_FLAGS_RELWITHDEBINFO}")
endif()
find_program(SCANKIT_CCACHE ccache)
if(SCANKIT_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${SCANKIT_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${SCANKIT_CCACHE})
endif()

# Only our own code links this: the distribution's headers are not ours to mend. Errors they are where we build it (ci/test.sh
# sets CMAKE_COMPILE_WARNING_AS_ERROR): a compiler that is newer than this file must not keep anybody from a scankit.
add_library(scankit_warnings INTERFACE)
target_compile_options(scankit_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
                            -Wno-missing-field-initializers>
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:
    -Wno-dangling-reference  # g++ 13 and 14 take any reference that a function returns for one to its argument
    -Wno-restrict>)          # g++ 12 cries wolf in std::string (GCC bug 105329)
if(SCANKIT_SANITIZE)
  # A null pointer that is used faults under AddressSanitizer as well; its checks at every member access were a third of
  # the generated code. vptr and object-size find nothing here that the others do not.
  add_compile_options(-fsanitize=address,undefined -fno-sanitize=null,vptr,object-size -fno-sanitize-recover=undefined
                      -fno-omit-frame-pointer)
  string(REPLACE "-g" "-g1" CMAKE_CXX_FLAGS_DEBUG "${CMAKE_CXX_FLAGS_DEBUG}")  # lines for the reports, no variables
  add_link_options(-fsanitize=address,undefined)
endif()
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-ffunction-sections> $<$<COMPILE_LANGUAGE:CXX>:-fdata-sections>)
# g++ collects its garbage each time its heap has doubled. With several sources in a unit that is a sixth of its time;
# the first collection at 1 GiB costs half a GiB more for each compiler that runs, and no byte of the output.
add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=1048576>)

# What reads other people's files is compiled so that a slip ends the program instead of running what the file says:
# scankit and its helpers. Not the kernels' modules, whose loops have flags of their own. _FORTIFY_SOURCE wants an
# optimising compiler, and a sanitizer sees more than either; 3 is of GCC 12 and Clang 12. ci/tests/hardening.sh looks.
add_library(scankit_hardening INTERFACE)
if(NOT SCANKIT_SANITIZE)
  set(fortify 2)
  if(CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 12)
    set(fortify 3)
  endif()
  target_compile_options(scankit_hardening INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fPIE -fstack-protector-strong>
    $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<NOT:$<CONFIG:Debug>>>:-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=${fortify}>)
  target_compile_definitions(scankit_hardening INTERFACE $<$<COMPILE_LANGUAGE:CXX>:_GLIBCXX_ASSERTIONS>)
endif()

# Relative relocations as a bitmap (DT_RELR) are a hundredth of their table, 200 KB of scankit. The program relocates itself
# at its start, which glibc's start files can do from 2.36 on, whatever an older one's ld offers.
include(CheckCXXSourceCompiles)
include(CheckLinkerFlag)
check_cxx_source_compiles("#include <features.h>
#if !__GLIBC_PREREQ(2, 36)
#error
#endif
int main() {}" SCANKIT_GLIBC_READS_RELR)
# ld only warns of a -z that it does not know. In one flag: the check takes nothing else to the linker.
check_linker_flag(CXX -Wl,--fatal-warnings,-z,pack-relative-relocs SCANKIT_LD_PACKS_RELOCATIONS)
set(pack_relocations "")
if(SCANKIT_GLIBC_READS_RELR AND SCANKIT_LD_PACKS_RELOCATIONS)
  set(pack_relocations -Wl,-z,pack-relative-relocs)
endif()

# A static glibc program dies in dlopen, getpw*, getaddrinfo and iconv on a host with another glibc.
# ld warns of the first three; --fatal-warnings makes that an error (ARCHITECTURE.md, decision 1).
function(scankit_link_as_shipped target)
  if(SCANKIT_STATIC)
    target_link_options(${target} PRIVATE -static-pie -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack -Wl,--fatal-warnings
                        -Wl,--gc-sections ${pack_relocations} $<$<CONFIG:Release>:-s>)
  endif()
endfunction()
