#include "arrays.hpp"
#include "bindings.hpp"

namespace wm {

void bind_dual(nb::module_& m) {
    nb::module_ dual = m.def_submodule("dual");
}

}  // namespace wm
