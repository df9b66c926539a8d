# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` and the wheel (pyproject.toml) hold: the program, and beside it ../share/scankit/modules, where
# builder/release looks for modules that need no compiler. Without SCANKIT_RELEASE_MODULES those are the host modules,
# which compute on the CPU. core and oflex take selective_scan's device code: the same bytes thrice would fill a wheel.
if(SKBUILD)
  set(scripts ${SKBUILD_SCRIPTS_DIR})
  set(data ${SKBUILD_DATA_DIR}/share)
else()
  set(scripts bin)
  set(data share)
  # The Python wrapper; kernels/python/README.md says how a program finds it. A wheel has it as a package.
  install(DIRECTORY kernels/python/scankit_kernels DESTINATION ${data}/scankit/python PATTERN __pycache__ EXCLUDE)
endif()
set(share ${data}/scankit)
install(TARGETS scankit RUNTIME DESTINATION ${scripts})
install(FILES ${PROJECT_BINARY_DIR}/scankit.spdx.json DESTINATION ${share})
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

# What the shells and man look for below a prefix, an environment too, written by the program itself.
if(NOT CMAKE_CROSSCOMPILING OR CMAKE_CROSSCOMPILING_EMULATOR)
  set(written ${PROJECT_BINARY_DIR}/shell)
  function(scankit_writes file folder)  # file, folder below share, the command's words
    add_custom_command(OUTPUT ${written}/${file} DEPENDS scankit VERBATIM
                       COMMAND ${CMAKE_COMMAND} -E make_directory ${written}
                       COMMAND ${CMAKE_COMMAND} -E env LC_ALL=C LANGUAGE= ${CMAKE_CROSSCOMPILING_EMULATOR} $<TARGET_FILE:scankit> ${ARGN} > ${written}/${file})
    install(FILES ${written}/${file} DESTINATION ${data}/${folder})
    set_property(GLOBAL APPEND PROPERTY scankit_written ${written}/${file})
  endfunction()
  scankit_writes(scankit bash-completion/completions completion bash)
  scankit_writes(_scankit zsh/site-functions completion zsh)
  scankit_writes(scankit.fish fish/vendor_completions.d completion fish)
  scankit_writes(scankit.1 man/man1 man)
  get_property(files GLOBAL PROPERTY scankit_written)
  add_custom_target(scankit_shell_files ALL DEPENDS ${files})
endif()
