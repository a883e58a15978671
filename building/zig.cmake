# A toolchain: Clang, its linker and archiver as the ziglang package brings them, all in one program ($ENV{ZIG}).
set(CMAKE_CXX_COMPILER $ENV{ZIG} c++)
set(CMAKE_C_COMPILER $ENV{ZIG} cc)
set(CMAKE_C_FLAGS_INIT "-O3 -mcpu=baseline")
set(CMAKE_CXX_FLAGS_INIT "-O3 -mcpu=baseline") # by default it compiles for the processor that it runs on
# Trials need no C++ library: Zig compiles it (a minute) when it is first linked, so beside the modules and not before.
set(CMAKE_CXX_COMPILER_ID_FLAGS_ALWAYS -nostdlib++)
set(CMAKE_EXE_LINKER_FLAGS_INIT -nostdlib++)
set(CMAKE_CXX_ARCHIVE_CREATE "\"$ENV{ZIG}\" ar qc <TARGET> <OBJECTS>")
set(CMAKE_CXX_ARCHIVE_APPEND "\"$ENV{ZIG}\" ar q <TARGET> <OBJECTS>")
set(CMAKE_CXX_ARCHIVE_FINISH "\"$ENV{ZIG}\" ranlib <TARGET>")
set(WIDEMARGIN_ARCHITECTURE -mcpu=x86_64_) # where other compilers say -march=x86-64-
