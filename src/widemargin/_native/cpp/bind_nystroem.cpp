#include "arrays.hpp"
#include "bindings.hpp"

namespace wm {

void bind_nystroem(nb::module_& m) {
    nb::module_ nystroem = m.def_submodule("nystroem");
}

}  // namespace wm
