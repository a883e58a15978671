#include <nanobind/stl/optional.h>

#include <memory>
#include <optional>
#include <utility>

#include "arrays.hpp"
#include "bindings.hpp"
#include "dual.hpp"
#include "signals.hpp"
#include "subproblems.hpp"

namespace wm {
namespace {

// SeparableTerms, bound: with the arrays that they view.
struct BoundTerms {
    using Array = Vector<const double>;
    BoundTerms(const Array& target, const Array& lo, const Array& hi, const Array& scale, double epsilon,
               const std::optional<Array>& curvature)
        : arrays{target, lo, hi, scale}, curvature(curvature),
          terms{span(target), span(lo), span(hi), span(scale), epsilon, curvature ? span(*curvature) : Span<const double>{}} {
        if (!(epsilon >= 0.0)) raise_value_error("epsilon must be at least 0");
        check_lengths(length(), {{"lo", terms.lo}, {"hi", terms.hi}, {"scale", terms.scale}});
        if (curvature) check_lengths(length(), {{"curvature", terms.curvature}});
    }
    Index length() const { return terms.target.size; }

    Array arrays[4];
    std::optional<Array> curvature;
    SeparableTerms terms;
};

// Rows X (m, d) of an RBF or Laplacian kernel matrix, bound, with the arrays that they view.
template <class T> struct BoundRows {
    BoundRows(const RowsArray<const T>& X, const std::optional<Vector<const double>>& squares, double gamma, double limit,
              const std::optional<Vector<unsigned char>>& memory)
        : X(X), squares(squares), memory(memory), rows(rows_matrix(X, "X")), gamma(gamma) {
        if (squares) check_lengths(rows.rows, {{"squares", span(*squares)}});
        if (!(limit < kInfinity<double>)) return;
        boxes = RowBoxes<T>(rows, limit);
        const Index width = RowBoxes<T>::kRows;
        if (memory)
            cache = std::make_unique<EntryCache<T>>(rows.rows, count_blocks(rows.rows, width), width, span(*memory));
    }
    // Entries of their kernel matrix, for tiles of `size` rows. Its diagonal is 1, and so must be the terms' scale.
    ComputedEntries<T> entries(const SeparableTerms& terms, Index size, const Team& team,
                               EntryCache<T>* lent = nullptr) const {
        check_size("len(rows)", rows.rows, terms.target.size);
        for (const double scale : terms.scale)
            if (!(std::abs(scale - 1.0) < 1e-3)) raise_value_error("scale must be 1 with the rows of a kernel, got ", scale);
        return make_entries(size, team, lent);
    }
    ComputedEntries<T> make_entries(Index size, const Team& team, EntryCache<T>* lent) const {
        return {rows, squares ? span(*squares) : Span<const double>{}, squares.has_value(), gamma, boxes, size,
                team.n_threads(), cache ? cache.get() : lent};
    }
    // Compute the entries of all rows that have room in the cache, which solves of several threads then read.
    void fill(Team& team) {
        if (!cache || !cache->is_open()) return;
        std::unique_ptr<EntryCache<T>> filled = std::move(cache);  // lost if it is stopped, half filled
        {
            LockReleased unlocked;
            ComputedEntries<T> entries = make_entries(kBatch, team, filled.get());
            std::vector<Index> batch;
            run_until_stopped(team, [&](const auto& go_on) {
                const auto run = [&](Index n_blocks, const auto& visit) { team.for_each_block(n_blocks, visit, go_on); };
                for (Index first = 0; first < rows.rows && filled->is_open(); first += kBatch) {
                    batch.clear();
                    for (Index i = first; i < minimum(first + kBatch, rows.rows); ++i) batch.push_back(i);
                    entries.fill_cache(as_span(std::as_const(batch)), run);
                }
            });
        }
        filled->close();
        cache = std::move(filled);
    }

    RowsArray<const T> X;
    std::optional<Vector<const double>> squares;
    std::optional<Vector<unsigned char>> memory;
    Matrix<const T> rows;
    double gamma;
    RowBoxes<T> boxes;
    static constexpr Index kBatch = 512;  // rows whose entries are computed together
    std::unique_ptr<EntryCache<T>> cache;
};

// The cache of rows while it is open, for one solve at a time: another one has none meanwhile. It is made and ended under
// the interpreter's lock.
template <class T> class LentCache {
  public:
    explicit LentCache(BoundRows<T>& rows) : rows_(rows), cache_(is_open(rows) ? std::move(rows.cache) : nullptr) {}
    ~LentCache() {
        if (cache_) rows_.cache = std::move(cache_);
    }
    LentCache(const LentCache&) = delete;
    LentCache& operator=(const LentCache&) = delete;
    EntryCache<T>* get() const { return cache_.get(); }

  private:
    static bool is_open(const BoundRows<T>& rows) { return rows.cache && rows.cache->is_open(); }
    BoundRows<T>& rows_;
    std::unique_ptr<EntryCache<T>> cache_;
};

void check_tile_size(Index size) {
    check_at_least("size", size, 0);
    check_at_most("size", size, kMostRows);
}

template <class T> void bind_tile(nb::module_& m, const char* name) {
    nb::class_<Tile<T>>(m, name, "A working set's quadratic program of `size` coordinates: scratch, kept from call to call.")
        .def(
            "__init__",
            [](Tile<T>* tile, Index size) {
                check_tile_size(size);
                new (tile) Tile<T>(size);
            },
            "size"_a);
}

// What `solve_working_sets` updates: a point, the tile and the working set, of the sizes of a problem of m coordinates.
template <class T> struct DualState {
    DualState(Index m, Span<double> beta, Span<double> f, Tile<T>& tile, WorkingSet& work)
        : point{beta, f}, tile(tile), work(work) {
        check_lengths(m, {{"beta", beta}, {"f", f}});
        check_size("working_set.n_rows", as_span(work.violation).size, m);
        check_size("working_set.size", as_span(work.rows).size, tile.size);
    }
    Point point;
    Tile<T>& tile;
    WorkingSet& work;
};

template <class Entry, class T>
nb::tuple solve_working_sets(Team& team, const Problem<Entry>& problem, const DualState<T>& state, double tol,
                             Index max_sets) {
    WorkingSetsResult done;
    {
        LockReleased unlocked;
        SignalHandlers run_signal_handlers;
        const auto go_on = [&] { return team.may_go_on() && run_signal_handlers(); };
        done = solve_working_sets(team, problem, state.point, state.tile, state.work, tol, max_sets, go_on);
        run_signal_handlers.rethrow();
    }
    return nb::make_tuple(done.n_sets, done.steps, done.violation.intercept, done.violation.largest);
}

template <class Entry, class T> void bind_solver(nb::module_& m) {
    m.def(
        "solve_working_sets",
        [](Team& team, const RowsArray<const Entry>& K, const BoundTerms& terms, Span<double> beta, Span<double> f,
           Tile<T>& tile, WorkingSet& work, double tol, bool has_intercept, Index max_sets, const BoundRows<Entry>* rows) {
            Problem<Entry> problem{rows_matrix(K, "K"), terms.terms, has_intercept};
            check_at_least("len(K)", problem.K.rows, terms.length());
            check_at_least("K.shape[1]", problem.K.columns, terms.length());
            const DualState<T> state(terms.length(), beta, f, tile, work);
            std::optional<ComputedEntries<Entry>> computed;
            if (rows) {
                if (!std::is_same_v<T, Entry>) throw nb::type_error("rows are for a tile of their own dtype");
                problem.computed = &computed.emplace(rows->entries(terms.terms, tile.size, team));
            }
            return solve_working_sets(team, problem, state, tol, max_sets);
        },
        "team"_a, array("K"),
        "terms"_a, array("beta"), array("f"), "tile"_a, "working_set"_a, "tol"_a, "has_intercept"_a,
        "max_sets"_a, "rows"_a.none() = nb::none(),
        "Solve the dual on K (m, >= m) by working sets, from a feasible beta (m,) and f = K beta (m,), in place.\n\n"
        "rows: those whose kernel matrix K is; entries of a tile of their dtype are then computed, not read.\n"
        "Ends when the violation is below tol, after max_sets working sets, or when the team is stopped. Returns the\n"
        "numbers of working sets and of steps in them, the intercept, the violation. f = K beta holds after an exception\n"
        "too.");
}

// Rows of a kernel matrix, and the solver that computes all of its entries from them.
template <class T> void bind_rows(nb::module_& m, const char* name) {
    using Bound = BoundRows<T>;
    nb::class_<Bound>(m, name,
                      "Rows X (m, d) whose kernel matrix is exp(-gamma |x - z|^2), with squares (m,): |x|^2; or\n"
                      "exp(-gamma |x - z|_1), with None. Computed sums leave out entries between a row and blocks of 256\n"
                      "rows whose box is at a (squared) distance above `limit`; the others are kept for later sums, in\n"
                      "`memory`, bytes that nobody else uses meanwhile.")
        .def(nb::init<const RowsArray<const T>&, const std::optional<Vector<const double>>&, double, double,
                      const std::optional<Vector<unsigned char>>&>(),
             array("X"), array("squares").none(), "gamma"_a, "limit"_a = kInfinity<double>,
             array("memory").none() = nb::none())
        .def("__len__", [](const Bound& r) { return r.rows.rows; })
        .def("fill", &Bound::fill, "team"_a,
             "Compute and keep the entries of as many rows as have room. Solves may then use them at the same time. If the\n"
             "team is stopped, nothing is kept, then or later.");
    m.def(
        "solve_from_rows",
        [](Team& team, Bound& rows, const BoundTerms& terms, Span<double> beta, Span<double> f, Tile<T>& tile,
           WorkingSet& work, double tol, bool has_intercept, Index max_sets) {
            const DualState<T> state(terms.length(), beta, f, tile, work);
            const LentCache<T> cache(rows);
            ComputedEntries<T> computed = rows.entries(terms.terms, tile.size, team, cache.get());
            const Problem<T> problem{{}, terms.terms, has_intercept, &computed};
            return solve_working_sets(team, problem, state, tol, max_sets);
        },
        "team"_a, "rows"_a, "terms"_a, array("beta"), array("f"), "tile"_a, "working_set"_a, "tol"_a, "has_intercept"_a,
        "max_sets"_a,
        "As solve_working_sets, on the kernel matrix of `rows`: no matrix is in memory, all entries are computed.");
}

// Subproblems, bound: with the arrays that they view, and their working sets, kept from call to call.
template <class Entry> class BoundSubproblems {
  public:
    BoundSubproblems(const RowsArray<const Entry>& K, Span<const Index> rows, Span<const Index> starts,
                     const BoundTerms& terms, const Vector<double>& beta, const Vector<double>& f, bool has_intercept)
        : K_(K), rows_(rows.begin(), rows.end()), starts_(starts.begin(), starts.end()), terms_(terms), beta_(beta), f_(f),
          entries_(rows_matrix(K, "K")),
          problems_{as_span(rows_), as_span(starts_), terms_.terms, span(beta), span(f), {}, {}, has_intercept} {
        const Index n = problems_.rows.size;
        check_indices("rows", problems_.rows, minimum(entries_.rows, entries_.columns));
        largest_ = check_starts(problems_.starts, n);
        check_lengths(n, {{"terms", terms.length()}, {"beta", problems_.beta}, {"f", problems_.f}});
        working_sets_.reserve(problems_.count());
        for (Index p = 0; p < problems_.count(); ++p) {
            const Index size = problems_.starts[p + 1] - problems_.starts[p];
            working_sets_.emplace_back(minimum(size, kTileSize), size);
        }
    }

    void compute_decision_values() {
        LockReleased unlocked;
        wm::compute_decision_values(entries_, problems_);
    }

    nb::tuple solve(Team& team, Span<const double> tol, Span<const Index> max_sets, double seconds) {
        check_lengths(problems_.count(), {{"tol", tol}, {"max_sets", max_sets}});
        problems_.tol = tol;
        problems_.max_sets = max_sets;
        using Scratch = SubproblemScratch<Entry, double>;
        ScratchPool<Scratch> scratches(minimum<Index>(team.n_threads(), problems_.count()),
                                       [&] { return Scratch(largest_, minimum(largest_, kTileSize)); });
        std::vector<WorkingSetsResult> found(problems_.count());
        {
            LockReleased unlocked;
            const std::int64_t end = nanoseconds_now() + static_cast<std::int64_t>(clip(seconds, 0.0, 1e9) * 1e9);
            std::atomic<bool> has_begun{false};  // every call solves at least one working set
            solve_subproblems<Entry, double>(team, entries_, problems_, working_sets_, scratches, as_span(found), [&] {
                return team.may_go_on() && (!has_begun.exchange(true) || nanoseconds_now() < end);
            });
        }
        nb::list sets, steps, violations, stuck;
        for (const WorkingSetsResult& result : found) {
            sets.append(result.n_sets);
            steps.append(result.steps);
            violations.append(result.violation.largest);
            stuck.append(result.is_stuck);
        }
        return nb::make_tuple(sets, steps, violations, stuck);
    }

  private:
    static constexpr Index kTileSize = 512;  // rows of a tile, at most
    RowsArray<const Entry> K_;
    std::vector<Index> rows_, starts_;  // copies: the caller's may change after the checks
    BoundTerms terms_;
    Vector<double> beta_, f_;
    Matrix<const Entry> entries_;
    Subproblems problems_;
    Index largest_ = 0;  // rows of the largest problem
    std::vector<WorkingSet> working_sets_;
};

template <class Entry> void bind_subproblems(nb::module_& m, const char* name) {
    using Bound = BoundSubproblems<Entry>;
    nb::class_<Bound>(m, name,
                      "P duals on principal submatrices of K (n, n): problem p has the rows[starts[p]:starts[p + 1]] of K and\n"
                      "this slice of terms, beta and f = K[rows, rows] beta (N,); beta and f are updated in place.")
        .def(nb::init<const RowsArray<const Entry>&, Span<const Index>, Span<const Index>, const BoundTerms&,
                      const Vector<double>&, const Vector<double>&, bool>(),
             array("K"), array("rows"), array("starts"), "terms"_a, array("beta"), array("f"), "has_intercept"_a)
        .def("compute_decision_values", &Bound::compute_decision_values, "f = K[rows, rows] beta, of each problem.")
        .def("solve", &Bound::solve, "team"_a, array("tol"), array("max_sets"), "seconds"_a,
             "Solve each problem to a violation below tol (P,) in at most max_sets (P,) working sets, each problem in one\n"
             "thread; stop after about `seconds`. Returns lists: working sets, steps in them, violations, and whether the\n"
             "last working set made no step although the violation is not below tol.");
}

}  // namespace

void bind_dual(nb::module_& m) {
    nb::module_ dual = m.def_submodule(
        "dual",
        "The dual of kernel machines: KKT violations, working sets, coordinate pairs.\n\n"
        "STEPS_PER_ROW: steps of one solve of a tile, at most, divided by the tile's size.");
    dual.attr("STEPS_PER_ROW") = kStepsPerRow;
    nb::class_<BoundTerms>(dual, "SeparableTerms",
                           "The dual's terms of single coordinates, sum_i curvature_i beta_i^2 / 2 + epsilon |beta_i|\n"
                           "- target_i beta_i on lo_i <= beta_i <= hi_i, lo_i <= 0 <= hi_i, and the scale\n"
                           "1 / sqrt(K_ii + curvature_i) that gives tiles a unit diagonal: float64 arrays (m,), which it keeps\n"
                           "alive. No curvature is one of zero.")
        .def(nb::init<const BoundTerms::Array&, const BoundTerms::Array&, const BoundTerms::Array&,
                      const BoundTerms::Array&, double, const std::optional<BoundTerms::Array>&>(),
             array("target"), array("lo"), array("hi"), array("scale"), "epsilon"_a = 0.0,
             array("curvature").none() = nb::none())
        .def("__len__", &BoundTerms::length)
        .def_prop_ro("target", [](const BoundTerms& t) { return view(t.terms.target); })
        .def_prop_ro("lo", [](const BoundTerms& t) { return view(t.terms.lo); })
        .def_prop_ro("hi", [](const BoundTerms& t) { return view(t.terms.hi); })
        .def_prop_ro("scale", [](const BoundTerms& t) { return view(t.terms.scale); })
        .def_prop_ro("epsilon", [](const BoundTerms& t) { return t.terms.epsilon; })
        .def_prop_ro("curvature", [](const BoundTerms& t) { return t.curvature; });
    nb::class_<WorkingSet>(dual, "WorkingSet",
                           "A working set of at most `size` of `n_rows` coordinates, kept from one call to the next, and scratch.")
        .def(
            "__init__",
            [](WorkingSet* work, Index size, Index n_rows) {
                check_tile_size(size);
                check_at_least("n_rows", n_rows, 0);
                new (work) WorkingSet(size, n_rows);
            },
            "size"_a, "n_rows"_a);
    bind_tile<float>(dual, "Tile32");
    bind_tile<double>(dual, "Tile64");
    dual.def(
        "kkt_violation",
        [](const BoundTerms& terms, Span<const double> beta, Span<const double> f, bool has_intercept, Span<double> out) {
            check_lengths(terms.length(), {{"beta", beta}, {"f", f}, {"out", out}});
            Violation found;
            {
                LockReleased unlocked;
                found = kkt_violation(terms.terms, beta, f, has_intercept, out);
            }
            return nb::make_tuple(found.intercept, found.largest);
        },
        "terms"_a, array("beta"), array("f"), "has_intercept"_a, array("out"),
        "Write the KKT violation of each coordinate, positive where beta should rise; all arrays (m,), f = K beta. Returns\n"
        "the intercept (0 in a problem without one) and the violation that is compared with a tolerance.");
    bind_rows<float>(dual, "EntryRows32");
    bind_rows<double>(dual, "EntryRows64");
    bind_solver<float, float>(dual);
    bind_solver<float, double>(dual);
    bind_solver<double, double>(dual);
    bind_subproblems<float>(dual, "Subproblems32");
    bind_subproblems<double>(dual, "Subproblems64");
}

}  // namespace wm
