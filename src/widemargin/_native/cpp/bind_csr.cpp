#include "arrays.hpp"
#include "bindings.hpp"

namespace wm {

void bind_csr(nb::module_& m) {
    nb::module_ csr = m.def_submodule("csr");
}

}  // namespace wm
