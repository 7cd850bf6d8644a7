# CPack runs this between the installation into its staging directory and the packing. It brings the files into the form
# that Debian asks for, and gives them bytes, modes and times that depend on the sources and SOURCE_DATE_EPOCH only.
cmake_minimum_required(VERSION 3.25)

set(deploy ${CMAKE_CURRENT_LIST_DIR}/../deploy)
set(epoch $ENV{SOURCE_DATE_EPOCH})
if(NOT epoch MATCHES "^[0-9]+$")
  message(FATAL_ERROR "SOURCE_DATE_EPOCH is not set: build packages with scripts/package")
endif()

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# stage(ROOT PACKAGE): adds the documents that each package has, and compresses them and the manual pages.
function(stage root package)
  set(documents ${root}/usr/share/doc/${package})
  file(MAKE_DIRECTORY ${documents})
  file(COPY_FILE ${deploy}/debian/copyright ${documents}/copyright)
  execute_process(COMMAND date -u -R -d @${epoch} OUTPUT_VARIABLE date OUTPUT_STRIP_TRAILING_WHITESPACE
                  COMMAND_ERROR_IS_FATAL ANY)
  file(WRITE ${documents}/changelog "${package} (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium\n\n"
       "  * The changes of this version are in /usr/share/doc/${package}/NEWS.md.gz.\n\n"
       " -- ${CPACK_PACKAGE_CONTACT}  ${date}\n")
  file(COPY_FILE ${CMAKE_CURRENT_LIST_DIR}/../CHANGELOG.md ${documents}/NEWS.md)
  file(GLOB pages ${root}/usr/share/man/man*/*)
  run(gzip -9nf ${documents}/changelog ${documents}/NEWS.md ${pages})

  if(EXISTS ${root}/usr/share/zsh/site-functions)  # Debian's zsh searches another directory
    file(RENAME ${root}/usr/share/zsh/site-functions ${root}/usr/share/zsh/vendor-completions)
  endif()
  if(EXISTS ${root}/usr/bin/lightq)
    run(strip --strip-unneeded --remove-section=.comment --remove-section=.note ${root}/usr/bin/lightq)
  endif()
  file(GLOB_RECURSE libraries ${root}/usr/lib/*.so.*.*)
  if(libraries)
    run(strip --strip-unneeded --remove-section=.comment --remove-section=.note ${libraries})
  endif()
  file(GLOB_RECURSE archives ${root}/usr/lib/*.a)
  if(archives)
    run(strip --strip-debug --enable-deterministic-archives --remove-section=.comment ${archives})
  endif()
  run(chmod -R u=rwX,go=rX ${root})
  run(find ${root} -exec touch --no-dereference --date=@${epoch} {} +)
endfunction()

stage(${CPACK_TEMPORARY_DIRECTORY}/server lightq)
stage(${CPACK_TEMPORARY_DIRECTORY}/library liblightq0)
stage(${CPACK_TEMPORARY_DIRECTORY}/development liblightq-dev)
