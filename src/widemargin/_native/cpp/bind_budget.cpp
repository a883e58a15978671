#include "arrays.hpp"
#include "bindings.hpp"

namespace wm {

void bind_budget(nb::module_& m) {
    nb::module_ budget = m.def_submodule("budget");
}

}  // namespace wm
