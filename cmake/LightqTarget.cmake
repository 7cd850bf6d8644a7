# Compile settings that every target of this project shares.
if(PROJECT_IS_TOP_LEVEL)
  # Sources that a unity build compiles as one. Most of the time goes into headers, which each unit compiles again.
  set(CMAKE_UNITY_BUILD_BATCH_SIZE 16)
  find_program(LIGHTQ_CCACHE ccache)
  if(LIGHTQ_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    set(CMAKE_CXX_COMPILER_LAUNCHER ${LIGHTQ_CCACHE})
  endif()
  # Links with mold if it is installed: it is several times as fast as GNU ld. GCC accepts it from version 12.1 on.
  find_program(LIGHTQ_MOLD mold)
  if(LIGHTQ_MOLD AND (CMAKE_CXX_COMPILER_ID STREQUAL "Clang"
                      OR CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 12.1))
    add_link_options(-fuse-ld=mold)
  endif()
  # The optimised build keeps assert(), because assertions protect users' data.
  string(REPLACE "-DNDEBUG" "" CMAKE_CXX_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")
  string(REPLACE "-DNDEBUG" "" CMAKE_CXX_FLAGS_RELWITHDEBINFO "${CMAKE_CXX_FLAGS_RELWITHDEBINFO}")
  if(LIGHTQ_BUILD_FUZZ)
    add_compile_options(-fsanitize=fuzzer-no-link)
  endif()
  if(LIGHTQ_SANITIZE)
    add_compile_options(-fsanitize=${LIGHTQ_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
    add_link_options(-fsanitize=${LIGHTQ_SANITIZE})
    # GCC defines these, clang 19 does not.
    foreach(sanitizer address thread)
      string(TOUPPER ${sanitizer} upper)
      if(LIGHTQ_SANITIZE MATCHES ${sanitizer} AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
        add_compile_definitions(__SANITIZE_${upper}__=1)
      endif()
    endforeach()
    if(LIGHTQ_SANITIZE MATCHES "address")
      # A program at a fixed address starts in two thirds of the time. The tests start thousands.
      add_link_options($<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-no-pie>)
    endif()
    if(LIGHTQ_SANITIZE MATCHES "undefined")
      # The check of an object's dynamic type opens a pipe to see whether memory can be read. Without a free descriptor,
      # which tests bring about, it reports sound objects.
      add_compile_options(-fno-sanitize=vptr)
    endif()
  endif()
endif()

# lightq_target(NAME): sets warnings as errors (top level only), C++20 and position-independent code.
function(lightq_target name)
  target_compile_features(${name} PUBLIC cxx_std_20)
  set_target_properties(${name} PROPERTIES CXX_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON)
  if(LIGHTQ_SANITIZE AND NOT LIGHTQ_BUILD_FUZZ AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang"
     AND CMAKE_CURRENT_SOURCE_DIR MATCHES "^${PROJECT_SOURCE_DIR}/tests")
    target_compile_options(${name} PRIVATE -w)  # GCC reports the warnings of tests
  elseif(PROJECT_IS_TOP_LEVEL)
    target_compile_options(${name} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor
                                           -Woverloaded-virtual -Werror)
    # GCC 12 mistakes "literal" + std::string for overlapping memory and warns (its bug 105329).
    target_compile_options(${name} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
    lightq_harden(${name})
  endif()
endfunction()

# lightq_harden(NAME): hardens installed targets. Overwritten stacks are detected, and library calls check the length
# of their arguments, which requires optimisation. Sanitizers do both better, so their builds do not need it.
function(lightq_harden name)
  if(LIGHTQ_SANITIZE OR NOT CMAKE_CURRENT_SOURCE_DIR MATCHES "^${PROJECT_SOURCE_DIR}/(src|apps)")
    return()
  endif()
  target_compile_options(${name} PRIVATE -fstack-protector-strong)
  if(CMAKE_BUILD_TYPE MATCHES "^(Release|RelWithDebInfo|MinSizeRel)$")
    target_compile_options(${name} PRIVATE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
  endif()
endfunction()

# lightq_compile_alone(FILE…): excludes files from unity builds, in which their names clash with those of another
# file. The sanitizer presets use unity builds, which halve the compile time.
function(lightq_compile_alone)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()
