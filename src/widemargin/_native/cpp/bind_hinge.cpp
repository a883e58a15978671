#include "arrays.hpp"
#include "bindings.hpp"

namespace wm {

void bind_hinge(nb::module_& m) {
    nb::module_ hinge = m.def_submodule("hinge");
}

}  // namespace wm
