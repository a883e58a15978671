// One extension module for each processor level: the same source, other compiler flags (WM_MODULE is its name).
#include "bindings.hpp"

NB_MODULE(WM_MODULE, m) {
    nanobind::set_leak_warnings(false);  // an interpreter that ends leaves what its modules refer to
    m.doc() = "Compiled loops: arrays in, arrays out.";
    wm::bind_threads(m);
    wm::bind_kernels(m);
    wm::bind_gradients(m);
    wm::bind_dual(m);
    wm::bind_csr(m);
    wm::bind_dense(m);
    wm::bind_hinge(m);
    wm::bind_smooth(m);
    wm::bind_linear(m);
    wm::bind_budget(m);
    wm::bind_nystroem(m);
    wm::bind_shapley(m);
}
