#include "arrays.hpp"
#include "bindings.hpp"

namespace wm {

void bind_linear(nb::module_& m) {
    nb::module_ linear = m.def_submodule("linear");
}

}  // namespace wm
