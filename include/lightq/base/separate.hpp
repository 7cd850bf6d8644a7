/// Chooses whether the library's functions are inline in every translation unit, or compiled in one. Layer:
/// base.
///
/// By default the library is header-only. A program with many translation units compiles faster if it defines
/// LIGHTQ_SEPARATE_COMPILATION for all of them, and adds one source file of its own:
///
///     #include <lightq/source.hpp>
///
/// The CMake target lightq::separate does both. A program must not mix both ways.
#pragma once

#if defined(LIGHTQ_SEPARATE_COMPILATION)
#define LIGHTQ_INLINE
#else
#define LIGHTQ_INLINE inline
#endif

/// Defined in a header-only build, where each header includes its definitions. Otherwise <lightq/source.hpp>
/// includes all definitions.
#if !defined(LIGHTQ_SEPARATE_COMPILATION)
#define LIGHTQ_WITH_DEFINITIONS
#endif
