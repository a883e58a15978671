#include <atomic>
#include <variant>

#include "arrays.hpp"
#include "bindings.hpp"
#include "csr_matrix.hpp"
#include "nystroem.hpp"
#include "signals.hpp"

namespace wm {
namespace {

// An object for float32 rows, or for float64 rows.
template <template <class> class Of> class OfEitherType {
  public:
    template <class T> OfEitherType(std::shared_ptr<const Of<T>> one) : either_(std::move(one)) {}

    template <class T> const std::shared_ptr<const Of<T>>& as(const char* name) const {
        const auto* one = std::get_if<std::shared_ptr<const Of<T>>>(&either_);
        if (!one) throw nb::type_error((text(name) + " must be of the other arrays' dtype").c_str());
        return *one;
    }
    template <class F> decltype(auto) visit(F&& f) const {
        return std::visit([&](const auto& one) { return f(*one); }, either_);
    }

  private:
    std::variant<std::shared_ptr<const Of<float>>, std::shared_ptr<const Of<double>>> either_;
};

using AnyTree = OfEitherType<Tree>;
using AnyLandmarks = OfEitherType<Landmarks>;
using AnyMachine = OfEitherType<NystroemMachine>;

// Call f with an object and rows of its type of values (TypeError otherwise).
template <template <class> class Of, class T, class F>
void visit_with_rows(const OfEitherType<Of>& any, const RowsArray<const T>& X, const F& f) {
    f(*any.template as<T>("X"), rows_matrix(X, "X"));
}
template <template <class> class Of, class F>
void visit_with_rows(const OfEitherType<Of>& any, const CSRMatrix& X, const F& f) {
    any.visit([&](const auto& one) {
        using T = typename std::decay_t<decltype(one)>::Value;
        X.visit_as<T>("X", [&](const auto& rows) { f(one, rows); });
    });
}

template <class T> Stack<const T> flat_stack(const Array4<const T>& a) {
    return {a.data(), static_cast<Index>(a.shape(0) * a.shape(1)), static_cast<Index>(a.shape(2)),
            static_cast<Index>(a.shape(3))};
}

void check_tree(Index n_nodes, Index branching, Span<const std::int32_t> sizes, Matrix<const std::int32_t> children) {
    check_lengths(n_nodes, {{"sizes", sizes}});
    check_shape("children", children, n_nodes, branching);
    const TreeFault fault = find_fault(sizes, children);
    const std::string of_node = "node " + text(fault.node) + " of the tree has ";
    if (fault.kind == TreeFault::size)
        raise_value_error(of_node, fault.value, " children, which must be in [1, ", branching, "]");
    if (fault.kind == TreeFault::child)
        raise_value_error(of_node, "the child ", fault.value, ", which must be a later one of its ", n_nodes,
                          " nodes, or -1 - leaf");
}

template <class T> void bind_tree(nb::class_<AnyTree>& tree) {
    tree.def(
        "__init__",
        [](AnyTree* made, Stack<const T> centres, Span<const std::int32_t> sizes, Matrix<const std::int32_t> children) {
            check_tree(centres.size, centres.rows, sizes, children);
            new (made) AnyTree(std::make_shared<const Tree<T>>(centres, sizes, children));
        },
        array("centres"), array("sizes"), array("children"),
        "centres (n_nodes, b, d), copied; sizes (n_nodes,) int32, a node's number of centres; children (n_nodes, b) "
        "int32, a later node or -1 - leaf.");
}

template <class RowArrays> void bind_route(nb::class_<AnyTree>& tree) {
    tree.def(
        "route",
        [](const AnyTree& any, const RowArrays& X, Span<const Index> chosen, Span<std::int32_t> out) {
            visit_with_rows(any, X, [&](const auto& tree, const auto& rows) {
                check_size("X.shape[1]", rows.columns, tree.features());
                check_lengths(chosen.size, {{"out", out}});
                const std::vector<Index> numbers = checked_copy("rows", chosen, n_rows(rows));
                AlignedArray<typename std::decay_t<decltype(tree)>::Value> distances(tree.width());
                LockReleased unlocked;
                for (Index t = 0; t < out.size; ++t)
                    out[t] = static_cast<std::int32_t>(tree.find_leaf(rows, numbers[t], distances.data()));
            });
        },
        array("X"), array("rows"), array("out"), "Write the leaves of the rows X[rows], X (n, d): out (m,) int32.");
}

// Write out (n, n_values) for the rows of X: the first columns of the values (R, stride) that evaluate(row numbers (R,),
// values) writes, for R = 4 rows at a time or 1.
template <class T, class Rows, class Evaluate>
void write_values(const Landmarks<T>& landmarks, const Rows& X, Matrix<T> out, Index n_values, const Evaluate& evaluate) {
    check_size("X.shape[1]", X.columns, landmarks.features());
    check_shape("out", out, n_rows(X), n_values);
    const Index stride = landmarks.stride();
    AlignedArray<T> values(kTileRows * stride);
    const auto write = [&](Index i, Index r) {
        std::memcpy(out[i].data, values.data() + r * stride, sizeof(T) * out.columns);
    };
    LockReleased unlocked;
    Index i = 0;
    for (; i + kTileRows <= out.rows; i += kTileRows) {
        const Index four[kTileRows] = {i, i + 1, i + 2, i + 3};
        evaluate(four, values.span());
        for (Index r = 0; r < kTileRows; ++r) write(i + r, r);
    }
    for (; i < out.rows; ++i) {
        const Index one[1] = {i};
        evaluate(one, values.span());
        write(i, 0);
    }
}

template <class T, class RowArrays> void bind_values(nb::class_<AnyLandmarks>& landmarks) {
    landmarks
        .def(
            "pairwise",
            [](const AnyLandmarks& any, const RowArrays& X, Matrix<T> out) {
                const Landmarks<T>& typed = *any.as<T>("out");
                visit_rows_as<T>(X, [&](const auto& rows) {
                    write_values(typed, rows, out, typed.n_landmarks(), [&](const auto& i, Span<T> values) {
                        typed.pairwise(rows, i, 0, values.data);
                    });
                });
            },
            array("X"), array("out"),
            "Write the kernel arguments, <x, u>, |x - u|^2 or |x - u|_1, of the rows of X (n, d) and the landmarks of the\n"
            "first leaf: out (n, m).")
        .def(
            "evaluate",
            [](const AnyLandmarks& any, const RowArrays& X, Matrix<T> out) {
                const Landmarks<T>& typed = *any.as<T>("out");
                AlignedArray<T> scratch(kTileRows * typed.stride());
                visit_rows_as<T>(X, [&](const auto& rows) {
                    write_values(typed, rows, out, typed.n_values(), [&](const auto& i, Span<T> values) {
                        typed.evaluate(rows, i, 0, values, scratch.span());
                    });
                });
            },
            array("X"), array("out"),
            "Write the kernel values of the rows of X (n, d) with the landmarks and pseudo-landmarks of the first leaf:\n"
            "out (n, m + p).");
}

template <class T> void bind_landmarks(nb::class_<AnyLandmarks>& landmarks) {
    landmarks
        .def(
            "__init__",
            [](AnyLandmarks* made, const KernelFunction& kernel, Stack<const T> points, Stack<const T> pseudo_distances,
               Span<const std::int64_t> bounds) {
                check_at_least("len(landmarks)", points.size, 1);
                check_lengths(points.size, {{"pseudo_distances", pseudo_distances}, {"bounds", bounds}});
                check_size("pseudo_distances.shape[1]", pseudo_distances.rows, points.rows);
                for (const std::int64_t bound : bounds)
                    if (bound != kLowerBound && bound != kUpperBound)
                        raise_value_error("bounds must be 0 or 1, got ", bound);
                if (pseudo_distances.columns && kernel.argument() == KernelArgument::inner_product)
                    raise_value_error("pseudo_distances are for kernels of distances, rbf and laplacian");
                new (made) AnyLandmarks(std::make_shared<const Landmarks<T>>(kernel, points, pseudo_distances, bounds));
            },
            "kernel"_a, array("landmarks"), array("pseudo_distances"), array("bounds"),
            "landmarks (k, m, d); pseudo_distances (k, m, p), of pseudo-landmarks from landmarks; bounds (k,) int64, LOWER or "
            "UPPER. All are copied.");
    bind_values<T, RowsArray<const T>>(landmarks);
    bind_values<T, CSRMatrix>(landmarks);
}

template <class T>
void check_machine(const Tree<T>& tree, const Landmarks<T>& landmarks, Stack<const double> coef,
                   const Array4<const T>& products, Stack<const T> slopes, Matrix<const double> intercept) {
    const Index k = landmarks.n_leaves(), q = intercept.columns, m = landmarks.n_landmarks();
    check_size("tree's number of features", tree.features(), landmarks.features());
    if (tree.n_leaves() > k)
        raise_value_error("the tree has the leaf ", tree.n_leaves() - 1, ", but there are only ", k, " machines");
    check_lengths(k, {{"intercept", intercept.rows}, {"coef", coef}, {"slopes", slopes},
                      {"products", static_cast<Index>(products.shape(0))}});
    check_size("coef.shape[1]", coef.rows, q);
    check_size("coef.shape[2]", coef.columns, landmarks.n_values());
    check_size("products.shape[1]", static_cast<Index>(products.shape(1)), q);
    if (products.shape(2) || products.shape(3)) {
        check_size("products.shape[2]", static_cast<Index>(products.shape(2)), m);
        check_size("products.shape[3]", static_cast<Index>(products.shape(3)), m);
    }
    if (slopes.rows) check_size("slopes.shape[1]", slopes.rows, q);
    check_size("slopes.shape[2]", slopes.columns, landmarks.features());
}

template <class T> void bind_machine(nb::class_<AnyMachine>& machine) {
    machine.def(
        "__init__",
        [](AnyMachine* made, const AnyTree& tree, const AnyLandmarks& landmarks, Stack<const double> coef,
           const Array4<const T>& products, Stack<const T> slopes, Matrix<const double> intercept) {
            const auto& own_tree = tree.as<T>("tree");
            const auto& own_landmarks = landmarks.as<T>("landmarks");
            check_machine(*own_tree, *own_landmarks, coef, products, slopes, intercept);
            new (made) AnyMachine(std::make_shared<const NystroemMachine<T>>(
                own_tree, own_landmarks, coef, flat_stack(products), slopes, intercept));
        },
        "tree"_a, "landmarks"_a, array("coef"), array("products"), array("slopes"), array("intercept"),
        "coef (k, q, m + p) float64; products P (k, q, m, m), only lower triangles are read, or (k, q, 0, 0); slopes (k, "
        "q, d) or (k, 0, d); intercept (k, q) float64. All are copied.");
}

template <class RowArrays> void bind_decision_values(nb::class_<AnyMachine>& machine) {
    machine.def(
        "decision_values",
        [](const AnyMachine& any, Team& team, const RowArrays& X, Matrix<double> out) {
            visit_with_rows(any, X, [&](const auto& machine, const auto& rows) {
                check_size("X.shape[1]", rows.columns, machine.features());
                check_shape("out", out, n_rows(rows), machine.n_outputs());
                const Index n = out.rows, n_blocks = count_blocks(n, machine.block_rows());
                const Index size = n_blocks ? count_blocks(n, n_blocks) : 0;
                using Scratch = decltype(machine.make_scratch(size));
                ScratchPool<Scratch> pool(minimum<Index>(team.n_threads(), n_blocks), [&] { return machine.make_scratch(size); });
                LockReleased unlocked;
                for_each_block(team, n_blocks, [&](Index block) {
                    pool.with_one([&](Scratch& scratch) {
                        machine.decision_values(rows, block * size, minimum((block + 1) * size, n), scratch, out);
                    });
                });
            });
        },
        "team"_a, array("X"), array("out"),
        "Write the q decision values of each row of X (n, d), by the machines of its leaf: out (n, q) float64.");
}

KernelFunction make_kernel(const std::string& name, double gamma, double coef0, Index degree) {
    check_at_least("degree", degree, 0);
    std::string names;
    for (const auto& [known, kind] : kKernelNames) {
        if (name == known) return {kind, gamma, coef0, degree};
        names += std::string(names.empty() ? "" : ", ") + known;
    }
    raise_value_error("name must be one of ", names, ", got ", name);
}

}  // namespace

void bind_nystroem(nb::module_& m) {
    nb::module_ nystroem = m.def_submodule("nystroem", "Trees of local Nystroem machines: routing and prediction.");
    nystroem.attr("LOWER") = kLowerBound;
    nystroem.attr("UPPER") = kUpperBound;
    nb::class_<KernelFunction>(nystroem, "Kernel", "A kernel function of an inner product or a distance.")
        .def(
            "__init__",
            [](KernelFunction* made, const char* name, double gamma, double coef0, Index degree) {
                new (made) KernelFunction(make_kernel(name, gamma, coef0, degree));
            },
            "name"_a,
            "gamma"_a = 1.0, "coef0"_a = 0.0, "degree"_a = 1, "name: as in kernels/functions.py.");

    nb::class_<AnyTree> tree(
        nystroem, "Tree",
        "A tree of cluster centres, which routes a row to a leaf: at each node to the child of the nearest centre.");
    bind_tree<float>(tree);
    bind_tree<double>(tree);
    bind_route<RowsArray<const float>>(tree);
    bind_route<RowsArray<const double>>(tree);
    bind_route<CSRMatrix>(tree);
    tree.def_prop_ro("n_leaves", [](const AnyTree& t) { return t.visit([](const auto& own) { return own.n_leaves(); }); })
        .def_prop_ro(
            "depth", [](const AnyTree& t) { return t.visit([](const auto& own) { return own.depth(); }); },
            "The number of nodes on the longest path to a leaf.")
        .def_prop_ro(
            "n_distances", [](const AnyTree& t) { return t.visit([](const auto& own) { return own.n_distances(); }); },
            "The largest number of distances on a path to a leaf.");

    nb::class_<AnyLandmarks> landmarks(nystroem, "Landmarks", "k leaves, each with m landmarks and p pseudo-landmarks.");
    bind_landmarks<float>(landmarks);
    bind_landmarks<double>(landmarks);

    nb::class_<AnyMachine> machine(
        nystroem, "Machine",
        "q decision functions <coef, f> + <f, P f> + <slope, x> + intercept in each leaf of a tree; f are the kernel values\n"
        "with its landmarks and pseudo-landmarks.");
    bind_machine<float>(machine);
    bind_machine<double>(machine);
    bind_decision_values<RowsArray<const float>>(machine);
    bind_decision_values<RowsArray<const double>>(machine);
    bind_decision_values<CSRMatrix>(machine);
}

}  // namespace wm
