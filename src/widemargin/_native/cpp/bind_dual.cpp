#include "arrays.hpp"
#include "bindings.hpp"
#include "dual.hpp"
#include "subproblems.hpp"

namespace wm {
namespace {

// A box with the arrays that it views.
struct BoundBox {
    BoundBox(const Vector<const double>& target, const Vector<const double>& lo, const Vector<const double>& hi,
             const Vector<const double>& scale, double epsilon)
        : arrays{target, lo, hi, scale}, box{span(target), span(lo), span(hi), span(scale), epsilon} {
        if (!(epsilon >= 0.0)) throw nb::value_error("epsilon must be at least 0");
        check_size("len(lo)", box.lo.size, length());
        check_size("len(hi)", box.hi.size, length());
        check_size("len(scale)", box.scale.size, length());
    }
    Index length() const { return box.target.size; }

    Vector<const double> arrays[4];
    Box box;
};

// Memory of a bound object as an array that keeps the object alive.
template <class T> auto view(Span<T> v) {
    return nb::ndarray<nb::numpy, T, nb::ndim<1>>(v.data, {static_cast<std::size_t>(v.size)});
}
template <class T> auto view(Matrix<T> m) {
    return nb::ndarray<nb::numpy, T, nb::ndim<2>>(
        m.data, {static_cast<std::size_t>(m.rows), static_cast<std::size_t>(m.columns)}, {}, {m.stride, 1});
}

// The n first numbers, in an array of their own.
nb::object copy(Span<const Index> v) { return view(v).cast(nb::rv_policy::copy); }

void check_rows(const char* name, Index n) {
    check_at_least(name, n, 0);
    if (n > kMostRows)
        throw nb::value_error((std::string(name) + " must be at most " + std::to_string(kMostRows)).c_str());
}

template <class T> void bind_tile(nb::module_& m, const char* name) {
    using Bound = Tile<T>;
    nb::class_<Bound>(m, name, "A gathered piece of K with its problem: Q (size, size), the rest (size,).")
        .def(
            "__init__",
            [](Bound* tile, Index size) {
                check_rows("size", size);
                new (tile) Bound(size);
            },
            "size"_a)
        .def_ro("size", &Bound::size)
        .def_prop_ro("Q", [](const Bound& t) { return view<T>({t.Q.data, t.size, t.size, t.Q.stride}); })
        .def_prop_ro("diagonal", [](const Bound& t) { return view(t.diagonal.head(t.size)); })
        .def_prop_ro("grad", [](const Bound& t) { return view(t.grad.head(t.size)); })
        .def_prop_ro("lo", [](const Bound& t) { return view(t.lo.head(t.size)); })
        .def_prop_ro("hi", [](const Bound& t) { return view(t.hi.head(t.size)); })
        .def_prop_ro("step", [](const Bound& t) { return view(t.step.head(t.size)); });
    m.def(
        "solve_box_tile",
        [](Bound& tile, double tol) {
            nb::gil_scoped_release unlocked;
            return solve_box_tile(tile, tol);
        },
        "tile"_a, "tol"_a,
        "Minimise 1/2 d'Qd + grad'd over lo <= d <= hi, for Q of unit diagonal; the number of steps.\n\n"
        "tile.step is d; grad, lo and hi are those that are left at d.");
    m.def(
        "solve_equality_tile",
        [](Bound& tile, double tol) {
            nb::gil_scoped_release unlocked;
            return solve_equality_tile(tile, tol);
        },
        "tile"_a, "tol"_a, "As `solve_box_tile` with sum(d) = 0; `diagonal` is that of Q, which need not be 1.");
}

template <class Entry, class T> void bind_solver(nb::module_& m) {
    m.def(
        "solve_active",
        [](Team& team, const RowsArray<const Entry>& K, const BoundBox& box, const Vector<double>& beta,
           const Vector<double>& f, Tile<T>& tile, WorkingSet& work, double tol, bool equality, Index max_sets) {
            const Problem<Entry> problem{rows_matrix(K, "K"), box.box, equality};
            const Index size = box.length();
            check_at_least("len(K)", problem.K.rows, size);
            check_at_least("K.shape[1]", problem.K.columns, size);
            check_size("len(beta)", span(beta).size, size);
            check_size("len(f)", span(f).size, size);
            check_size("working_set.n_rows", as_span(work.violation).size, size);
            check_size("working_set.size", as_span(work.rows).size, tile.size);
            ActiveResult done;
            {
                nb::gil_scoped_release unlocked;
                SignalHandlers run_signal_handlers;
                const auto go_on = [&] { return team.may_go_on() && run_signal_handlers(); };
                done = solve_active(team, problem, {span(beta), span(f)}, tile, work, tol, max_sets, go_on);
                run_signal_handlers.rethrow();
            }
            return nb::make_tuple(done.n_sets, done.steps, done.left.offset, done.left.largest);
        },
        "team"_a, array("K"), "box"_a, array("beta"), array("f"), "tile"_a, "working_set"_a, "tol"_a, "equality"_a,
        "max_sets"_a,
        "Improve a feasible beta (m,) and f = K beta (m,) in place, by working sets on K (m, >= m).\n\n"
        "Until the violation is below tol, after max_sets sets, or when the team is stopped. Returns sets, steps in\n"
        "them, intercept and violation left. beta and f belong together whatever ends it, an exception too.");
}

// Starts of P problems within N places: ascending from 0 to N.
Index check_starts(Span<const Index> starts, Index n) {
    check_at_least("len(starts)", starts.size, 1);
    Index largest = 0;
    for (Index p = 0; p + 1 < starts.size; ++p) {
        check_at_least("starts", starts[p + 1], starts[p]);
        largest = most(largest, starts[p + 1] - starts[p]);
    }
    check_size("starts[0]", starts[0], 0);
    check_size("starts[-1]", starts[starts.size - 1], n);
    return largest;
}

// Problems with the arrays that they view, and what is carried over from call to call.
template <class Entry> class BoundSubproblems {
  public:
    BoundSubproblems(const RowsArray<const Entry>& K, const Vector<const Index>& rows, const Vector<const Index>& starts,
                     const BoundBox& box, const Vector<double>& beta, const Vector<double>& f, bool equality)
        : K_(K), rows_(rows), starts_(starts), box_(box), beta_(beta), f_(f), entries_(rows_matrix(K, "K")),
          problems_{span(rows), span(starts), box_.box, span(beta), span(f), {}, {}, equality} {
        check_indices("rows", span(rows), least(entries_.rows, entries_.columns));
        const Index n = span(rows).size;
        largest_ = check_starts(span(starts), n);
        check_size("len(box)", box.length(), n);
        check_size("len(beta)", span(beta).size, n);
        check_size("len(f)", span(f).size, n);
        works_.reserve(problems_.count());
        for (Index p = 0; p < problems_.count(); ++p) {
            const Index size = problems_.starts[p + 1] - problems_.starts[p];
            works_.emplace_back(least(size, kTileRows), size);
        }
    }

    nb::tuple solve(Team& team, const Vector<const double>& tol, const Vector<const Index>& max_sets, double seconds) {
        check_size("len(tol)", span(tol).size, problems_.count());
        check_size("len(max_sets)", span(max_sets).size, problems_.count());
        problems_.tol = span(tol);
        problems_.max_sets = span(max_sets);
        using Scratch = SubproblemScratch<Entry, double>;
        ScratchPool<Scratch> scratches(least<Index>(team.n_threads(), problems_.count()),
                                       [&] { return Scratch(largest_, least(largest_, kTileRows)); });
        std::vector<ActiveResult> found(problems_.count());
        {
            nb::gil_scoped_release unlocked;
            const std::int64_t end = nanoseconds_now() + static_cast<std::int64_t>(clip(seconds, 0.0, 1e9) * 1e9);
            std::atomic<bool> has_begun{false};  // some working set is solved in every call
            solve_subproblems<Entry, double>(team, entries_, problems_, works_, scratches, as_span(found), [&] {
                return team.may_go_on() && (!has_begun.exchange(true) || nanoseconds_now() < end);
            });
        }
        nb::list sets, steps, violations, stuck;
        for (const ActiveResult& result : found) {
            sets.append(result.n_sets);
            steps.append(result.steps);
            violations.append(result.left.largest);
            stuck.append(result.is_stuck);
        }
        return nb::make_tuple(sets, steps, violations, stuck);
    }

  private:
    static constexpr Index kTileRows = 512;
    RowsArray<const Entry> K_;
    Vector<const Index> rows_, starts_;
    BoundBox box_;
    Vector<double> beta_, f_;
    Matrix<const Entry> entries_;
    Subproblems problems_;
    Index largest_ = 0;
    std::vector<WorkingSet> works_;
};

template <class Entry> void bind_subproblems(nb::module_& m, const char* name) {
    using Bound = BoundSubproblems<Entry>;
    nb::class_<Bound>(m, name,
                      "P problems, each on some rows of K (n, n): problem p has rows[starts[p]:starts[p + 1]], and these\n"
                      "places of box, beta and f = K[rows, rows] beta (N,), of which beta and f are improved.")
        .def(nb::init<const RowsArray<const Entry>&, const Vector<const Index>&, const Vector<const Index>&,
                      const BoundBox&, const Vector<double>&, const Vector<double>&, bool>(),
             array("K"), array("rows"), array("starts"), "box"_a, array("beta"), array("f"), "equality"_a)
        .def("solve", &Bound::solve, "team"_a, array("tol"), array("max_sets"), "seconds"_a,
             "Go on for about so many seconds, a problem to a thread.\n\n"
             "Until violations are below tol (P,), for max_sets (P,) working sets at most. Returns lists: working sets,\n"
             "steps in them, violations left, whether nothing could be moved any more.");
}

}  // namespace

void bind_dual(nb::module_& m) {
    nb::module_ dual = m.def_submodule("dual", "Working sets of the kernel machine's dual.");
    dual.attr("STEPS_PER_ROW") = kStepsPerRow;
    dual.attr("BINS") = kBins;
    nb::class_<BoundBox>(dual, "Box",
                         "A signed dual problem on the rows of one kernel matrix: targets, bounds lo <= 0 <= hi and\n"
                         "1 / sqrt(diagonal of K), four float64 arrays of one length, which it keeps alive; and epsilon,\n"
                         "the factor of the 1-norm.")
        .def(nb::init<const Vector<const double>&, const Vector<const double>&, const Vector<const double>&,
                      const Vector<const double>&, double>(),
             array("target"), array("lo"), array("hi"), array("scale"), "epsilon"_a = 0.0)
        .def("__len__", &BoundBox::length)
        .def_prop_ro("target", [](const BoundBox& b) { return view(b.box.target); })
        .def_prop_ro("lo", [](const BoundBox& b) { return view(b.box.lo); })
        .def_prop_ro("hi", [](const BoundBox& b) { return view(b.box.hi); })
        .def_prop_ro("scale", [](const BoundBox& b) { return view(b.box.scale); })
        .def_prop_ro("epsilon", [](const BoundBox& b) { return b.box.epsilon; });
    nb::class_<WorkingSet>(dual, "WorkingSet",
                           "Carry-over between calls: at most `size` of `n_rows` rows; and scratch.")
        .def(
            "__init__",
            [](WorkingSet* work, Index size, Index n_rows) {
                check_rows("size", size);
                check_at_least("n_rows", n_rows, 0);
                new (work) WorkingSet(size, n_rows);
            },
            "size"_a, "n_rows"_a)
        .def_prop_ro(
            "rows", [](WorkingSet& w) { return copy(as_span(w.rows).head(w.filled)); }, "A copy, newest last.");
    bind_tile<float>(dual, "Tile32");
    bind_tile<double>(dual, "Tile64");
    dual.def(
        "kkt_violation",
        [](const BoundBox& box, const Vector<const double>& beta, const Vector<const double>& f, bool equality,
           const Vector<double>& out) {
            check_size("len(beta)", span(beta).size, box.length());
            check_size("len(f)", span(f).size, box.length());
            check_size("len(out)", span(out).size, box.length());
            Violation found;
            {
                nb::gil_scoped_release unlocked;
                found = kkt_violation(box.box, span(beta), span(f), equality, span(out));
            }
            return nb::make_tuple(found.offset, found.largest);
        },
        "box"_a, array("beta"), array("f"), "equality"_a, array("out"),
        "Write each row's violation of its optimality condition: positive where beta should rise.\n\n"
        "All arrays are (m,), f = K beta. Returns the intercept (0 without the equality) and the violation.");
    dual.def(
        "largest_violators",
        [](const Vector<const double>& violation, int side, Index k) {
            if (side < -1 || side > 1) throw nb::value_error("side must be -1, 0 or 1");
            const Span<const double> values = span(violation);
            std::vector<Index> out(most<Index>(least(k, values.size), 0));
            std::vector<std::int16_t> bins(values.size);
            const Index n = largest_violators(values, static_cast<Side>(side), as_span(out).size, as_span(bins), as_span(out));
            return copy(as_span(out).head(n));
        },
        array("violation"), "side"_a, "k"_a,
        "Indices of about the k rows of largest violation that ask to rise (side 1), to fall (-1), or both (0).");
    bind_solver<float, float>(dual);
    bind_solver<float, double>(dual);
    bind_solver<double, double>(dual);
    bind_subproblems<float>(dual, "Subproblems32");
    bind_subproblems<double>(dual, "Subproblems64");
}

}  // namespace wm
