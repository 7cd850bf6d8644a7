# CPack runs this after the packing. CPack's package of a shared library calls ldconfig in scripts and has no shlibs file
# of its own; Debian asks for a trigger and that file. So this packs liblightq0 again, with the same bytes each time.
cmake_minimum_required(VERSION 3.25)

foreach(package IN LISTS CPACK_PACKAGE_FILES)
  if(NOT package MATCHES "/liblightq0_[^/]*$")
    continue()
  endif()
  set(unpacked ${package}.unpacked)
  execute_process(COMMAND dpkg-deb -R ${package} ${unpacked} COMMAND_ERROR_IS_FATAL ANY)
  file(REMOVE ${unpacked}/DEBIAN/postinst ${unpacked}/DEBIAN/postrm)
  file(WRITE ${unpacked}/DEBIAN/triggers "activate-noawait ldconfig\n")
  file(WRITE ${unpacked}/DEBIAN/shlibs "liblightq 0 liblightq0 (>= ${CPACK_PACKAGE_VERSION})\n")
  execute_process(COMMAND chmod 644 ${unpacked}/DEBIAN/triggers ${unpacked}/DEBIAN/shlibs COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND chmod 755 ${unpacked} ${unpacked}/DEBIAN COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND dpkg-deb --root-owner-group -Zxz -b ${unpacked} ${package} OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  file(REMOVE_RECURSE ${unpacked})
endforeach()
