/// The source file of a program that is compiled with LIGHTQ_SEPARATE_COMPILATION. The CMake target
/// lightq::separate adds it to a program. Other build systems compile it like one of the program's own files.
#include <lightq/source.hpp>
