#include "arrays.hpp"
#include "bindings.hpp"

namespace wm {

void bind_dense(nb::module_& m) {
    nb::module_ dense = m.def_submodule("dense");
}

}  // namespace wm
