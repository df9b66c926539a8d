# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` and the wheel (pyproject.toml) hold: the program, and beside it ../share/scankit/modules, where
# builder/release looks for modules that need no compiler. Without SCANKIT_RELEASE_MODULES those are the host modules,
# which compute on the CPU. core and oflex take selective_scan's device code: the same bytes thrice would fill a wheel.
if(SKBUILD)
  set(scripts ${SKBUILD_SCRIPTS_DIR})
  set(share ${SKBUILD_DATA_DIR}/share/scankit)
else()
  set(scripts bin)
  set(share share/scankit)
  # The Python wrapper; kernels/python/README.md says how a program finds it. A wheel has it as a package.
  install(DIRECTORY kernels/python/scankit_kernels DESTINATION ${share}/python PATTERN __pycache__ EXCLUDE)
endif()
install(TARGETS scankit RUNTIME DESTINATION ${scripts})
foreach(module selective_scan_cuda causal_conv1d_cuda)
  set(file ${PROJECT_BINARY_DIR}/modules/${module}.abi3.so)
  if(SCANKIT_RELEASE_MODULES)
    set(file ${SCANKIT_RELEASE_MODULES}/${module}.abi3.so)
    if(NOT EXISTS ${file})
      message(FATAL_ERROR "SCANKIT_RELEASE_MODULES: no ${file}; make it with `scankit build --module ${module} --arch release`")
    endif()
  endif()
  install(PROGRAMS ${file} DESTINATION ${share}/modules)
endforeach()
