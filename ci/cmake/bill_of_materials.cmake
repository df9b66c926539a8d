# SPDX-License-Identifier: Apache-2.0
# scankit_bill_of_materials(TARGET): writes scankit.spdx.json (SPDX 2.3), which names what is linked into the program or
# compiled into it from headers, with version and licence. The linker's map, scankit.map, is what
# ci/tests/bill_of_materials.py holds it against. The time is that of the sources, so that two builds write the same bytes.

# The number in `#define NAME ...` of a header; empty where there is none.
function(scankit_header_number variable header name)
  set(${variable} "" PARENT_SCOPE)
  find_file(header_of_${name} ${header})
  mark_as_advanced(header_of_${name})
  if(header_of_${name})
    file(STRINGS ${header_of_${name}} lines REGEX "#[ \t]*define[ \t]+${name}[ \t]+\"?[0-9]")
    if(lines MATCHES "${name}[ \t]+\"?([0-9.]+)")
      set(${variable} ${CMAKE_MATCH_1} PARENT_SCOPE)
    endif()
  endif()
endfunction()

# The version of the distribution's package; where dpkg knows none, the one that pkg-config tells, which is no truth of
# libraries without releases (RE2's is 0.0.0 in Debian 12).
function(scankit_pkg_version variable module package)
  find_program(DPKG_QUERY_PROGRAM dpkg-query)
  mark_as_advanced(DPKG_QUERY_PROGRAM)
  if(DPKG_QUERY_PROGRAM)
    set(database "")
    if(CMAKE_SYSROOT)
      set(database --admindir=${CMAKE_SYSROOT}/var/lib/dpkg)
    endif()
    execute_process(COMMAND ${DPKG_QUERY_PROGRAM} ${database} -W -f "\${Version}" ${package} OUTPUT_VARIABLE found ERROR_QUIET
                    RESULT_VARIABLE status)
    if(status EQUAL 0 AND NOT found STREQUAL "")
      string(REGEX REPLACE "^[0-9]+:" "" found "${found}")
      set(${variable} "${found}" PARENT_SCOPE)
      return()
    endif()
  endif()
  find_program(PKG_CONFIG_PROGRAM NAMES pkg-config pkgconf)
  mark_as_advanced(PKG_CONFIG_PROGRAM)
  set(found "")
  if(PKG_CONFIG_PROGRAM)
    execute_process(COMMAND ${PKG_CONFIG_PROGRAM} --modversion ${module} OUTPUT_VARIABLE found ERROR_QUIET
                    OUTPUT_STRIP_TRAILING_WHITESPACE)
  endif()
  set(${variable} "${found}" PARENT_SCOPE)
endfunction()

# One package; `files` are the archives that are linked, as patterns, or "headers".
macro(scankit_material name version licence files)
  set(stated "${version}")
  if(stated STREQUAL "")
    set(stated NOASSERTION)
  endif()
  string(MAKE_C_IDENTIFIER "${name}" id)
  string(REPLACE "_" "-" id "${id}")
  list(APPEND packages "    {\"SPDXID\": \"SPDXRef-${id}\", \"name\": \"${name}\", \"versionInfo\": \"${stated}\", \"licenseDeclared\": \"${licence}\",
     \"licenseConcluded\": \"${licence}\", \"copyrightText\": \"NOASSERTION\", \"downloadLocation\": \"NOASSERTION\",
     \"filesAnalyzed\": false, \"comment\": \"${files}\"}")
  list(APPEND relations "    {\"spdxElementId\": \"SPDXRef-${id}\", \"relationshipType\": \"STATIC_LINK\", \"relatedSpdxElement\": \"SPDXRef-scankit\"}")
endmacro()

# SOURCE_DATE_EPOCH, else the time of the last commit.
function(scankit_source_time variable)
  set(seconds $ENV{SOURCE_DATE_EPOCH})
  if(NOT seconds)
    execute_process(COMMAND git log -1 --format=%ct WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE seconds ERROR_QUIET
                    OUTPUT_STRIP_TRAILING_WHITESPACE)
  endif()
  if(NOT seconds MATCHES "^[0-9]+$")
    set(seconds 315532800)  # 1980: a zip file, which a wheel is, knows no earlier time
  endif()
  set(ENV{SOURCE_DATE_EPOCH} ${seconds})
  string(TIMESTAMP text "%Y-%m-%dT%H:%M:%SZ" UTC)
  set(${variable} ${text} PARENT_SCOPE)
endfunction()

function(scankit_bill_of_materials target)
  set(packages "")
  set(relations "")
  foreach(part MAJOR MINOR RELEASE)
    scankit_header_number(zstd_${part} zstd.h ZSTD_VERSION_${part})
    scankit_header_number(lz4_${part} lz4.h LZ4_VERSION_${part})
  endforeach()
  scankit_header_number(glibc_minor features.h __GLIBC_MINOR__)
  scankit_pkg_version(minizip minizip libminizip-dev)
  scankit_pkg_version(re2 re2 libre2-dev)
  scankit_material(yaml-cpp "${yaml-cpp_VERSION}" MIT "libyaml-cpp.a")
  scankit_material(zstd "${zstd_MAJOR}.${zstd_MINOR}.${zstd_RELEASE}" BSD-3-Clause "libzstd.a")
  scankit_material(lz4 "${lz4_MAJOR}.${lz4_MINOR}.${lz4_RELEASE}" BSD-2-Clause "liblz4.a")
  scankit_material(zlib "${ZLIB_VERSION_STRING}" Zlib "libz.a")
  scankit_material(minizip "${minizip}" Zlib "libminizip.a")
  scankit_material(re2 "${re2}" BSD-3-Clause "libre2.a")
  get_target_property(libraries scankit::re2 INTERFACE_LINK_LIBRARIES)
  if(libraries MATCHES "libabsl_")
    scankit_pkg_version(abseil absl_base libabsl-dev)
    scankit_material(abseil "${abseil}" Apache-2.0 "libabsl_*.a")
  endif()
  scankit_material(fmt "${fmt_VERSION}" MIT headers)
  scankit_material(nlohmann-json "${nlohmann_json_VERSION}" MIT headers)
  scankit_material(CLI11 "${CLI11_VERSION}" BSD-3-Clause headers)
  scankit_material(glibc "2.${glibc_minor}" LGPL-2.1-or-later "libc.a libm.a libm-*.a libmvec.a libpthread.a libdl.a")
  scankit_material(gcc-runtime "${CMAKE_CXX_COMPILER_VERSION}" "GPL-3.0-or-later WITH GCC-exception-3.1"
                   "libstdc++.a libgcc.a libgcc_eh.a")
  list(JOIN packages ",\n" packages)
  list(JOIN relations ",\n" relations)
  scankit_source_time(created)
  string(SHA256 digest "${PROJECT_VERSION}${CMAKE_SYSTEM_PROCESSOR}${packages}${created}")
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/scankit.spdx.json @ONLY CONTENT [[
{
  "spdxVersion": "SPDX-2.3",
  "dataLicense": "CC0-1.0",
  "SPDXID": "SPDXRef-DOCUMENT",
  "name": "scankit-@PROJECT_VERSION@-linux-@CMAKE_SYSTEM_PROCESSOR@",
  "documentNamespace": "https://spdx.org/spdxdocs/scankit-@PROJECT_VERSION@-@digest@",
  "creationInfo": {"created": "@created@", "creators": ["Tool: scankit-build-@PROJECT_VERSION@"]},
  "documentDescribes": ["SPDXRef-scankit"],
  "packages": [
    {"SPDXID": "SPDXRef-scankit", "name": "scankit", "versionInfo": "@PROJECT_VERSION@", "licenseDeclared": "Apache-2.0",
     "licenseConcluded": "Apache-2.0", "copyrightText": "NOASSERTION", "downloadLocation": "NOASSERTION",
     "filesAnalyzed": false, "primaryPackagePurpose": "APPLICATION"},
@packages@
  ],
  "relationships": [
    {"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": "SPDXRef-scankit"},
@relations@
  ]
}
]])
  target_link_options(${target} PRIVATE -Wl,-Map=${PROJECT_BINARY_DIR}/scankit.map)
endfunction()
