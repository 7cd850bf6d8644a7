/// Gives the target of the precompiled test headers a source file, which CMake requires. Layer: tests.
int main() {}
