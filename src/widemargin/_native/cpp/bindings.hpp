// One function for each subject: it adds a submodule to the module of a processor level.
#pragma once
#include <nanobind/nanobind.h>

namespace wm {

void bind_threads(nanobind::module_& m);
void bind_kernels(nanobind::module_& m);    // kernel functions of a tile, sums of kernel rows
void bind_gradients(nanobind::module_& m);  // weighted sums of the gradients of distances
void bind_dual(nanobind::module_& m);       // working sets of the kernel machine's dual
void bind_csr(nanobind::module_& m);        // the CSR view, and products with it
void bind_dense(nanobind::module_& m);      // products with dense rows, copies and second moments of rows
void bind_hinge(nanobind::module_& m);      // line search and planes of hinge risks, with and without an intercept
void bind_smooth(nanobind::module_& m);     // line search and planes of smooth losses
void bind_linear(nanobind::module_& m);     // Crammer-Singer's risk, the master problem, dual coordinate ascent
void bind_budget(nanobind::module_& m);     // stochastic steps on a budget
void bind_nystroem(nanobind::module_& m);   // trees of local Nystroem machines
void bind_shapley(nanobind::module_& m);    // Shapley values of kernels that are products over the columns

}  // namespace wm
