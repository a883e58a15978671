// Shapley values of kernel expansions whose kernel is a product over the columns, by Gauss-Legendre quadrature.
#pragma once
#include <string_view>

#include "aligned.hpp"
#include "denormals.hpp"
#include "exponential.hpp"
#include "registers.hpp"

namespace wm {

constexpr Index kNodes = 8;           // of a quadrature, at a time
constexpr Index kExplainedRows = 16;  // of a block: the factors of the background are computed once for so many
constexpr Index kPackedNodes = kNodes / kLanes;

// The term of one column in the argument g of a kernel exp(-gamma g).
struct SquaredDifference {
    static constexpr std::string_view name = "rbf";
    WM_INLINE static double of(double x, double z) { return (x - z) * (x - z); }
};
struct AbsoluteDifference {
    static constexpr std::string_view name = "laplacian";
    WM_INLINE static double of(double x, double z) { return std::abs(x - z); }
};
struct RelativeSquare {
    static constexpr std::string_view name = "chi2";
    WM_INLINE static double of(double x, double z) { return x + z == 0.0 ? 0.0 : (x - z) * (x - z) / (x + z); }
};

// Rules of 8, 16, 24, ... nodes in (0, 1), one after the other. Rule m is exact to rounding for products of up to
// 16 (m + 1) factors, and of any number of them whose differences have absolute values of the sum limits[m] at most.
struct Quadratures {
    Span<const double> nodes, weights, limits;

    Index find(Index n_factors, double differences) const {
        Index m = 0;
        while (m + 1 < limits.size && n_factors > 2 * kNodes * (m + 1) && differences > limits[m]) ++m;
        return m;
    }
};

// A sum over r points of coefficients times products over p players, each a group of columns.
struct ProductExpansion {
    Matrix<const double> points, coef;  // (r, d), (r, q)
    Span<const Index> players;          // (d,): in [0, p)
    Index n_players;
    bool is_grouped;  // whether there are other players than single columns in their order
    double gamma;
    Matrix<const double> background;  // (b, d); without rows the factors of absent players are 1
    Quadratures rules;

    Index n_backgrounds() const { return maximum<Index>(1, background.rows); }
};

struct ShapleyScratch {
    AlignedArray<double> terms, present, absent;  // of columns; factors of players
    AlignedArray<double> factor, difference, total, kept;
    AlignedArray<Index> player;

    explicit ShapleyScratch(const ProductExpansion& f)
        : terms(f.points.columns), present(f.n_players), absent(f.n_backgrounds() * f.n_players), factor(f.n_players + 1),
          difference(f.n_players + 1), total(f.n_players + 1), kept((f.n_players + 1) * kNodes), player(f.n_players + 1) {}
};

// out (p,): the factors of the players
template <class Term>
void product_factors(const ProductExpansion& f, const double* __restrict x, const double* __restrict z, ShapleyScratch& s,
                     double* __restrict out) {
    const Index d = f.points.columns, p = f.n_players;
    double* __restrict terms = f.is_grouped ? s.terms.data() : out;
    for (Index k = 0; k < d; ++k) terms[k] = Term::of(x[k], z[k]);
    if (f.is_grouped) {
        for (Index g = 0; g < p; ++g) out[g] = 0.0;
        for (Index k = 0; k < d; ++k) out[f.players.data[k]] += terms[k];
    }
    for (Index g = 0; g < p; ++g) out[g] = exp_of_nonpositive(-f.gamma * out[g]);
}

// total (n,), n even: the integrals over t in [0, 1] of the products of all factors r_j + t v_j but the i-th
//
// Left to right and right to left at the same time: two chains of products, of which a half is kept (n, kNodes).
inline void integrate_products(const Quadratures& rules, Index rule, const double* __restrict r, const double* __restrict v,
                               Index n, double* __restrict kept, double* __restrict total) {
    const Index first = kNodes * rule * (rule + 1) / 2, half = n / 2;
    for (Index i = 0; i < n; ++i) total[i] = 0.0;
    for (Index node = first; node < first + kNodes * (rule + 1); node += kNodes) {
        Lanes t[kPackedNodes], left[kPackedNodes], right[kPackedNodes];
        WM_UNROLL
        for (Index l = 0; l < kPackedNodes; ++l) {
            t[l] = load_lanes(rules.nodes.data + node + l * kLanes);
            left[l] = load_lanes(rules.weights.data + node + l * kLanes);
            right[l] = Lanes{} + 1.0;
        }
        for (Index i = 0, j = n - 1; i < half; ++i, --j) {
            WM_UNROLL
            for (Index l = 0; l < kPackedNodes; ++l) {
                store_lanes(kept + i * kNodes + l * kLanes, left[l]);
                store_lanes(kept + j * kNodes + l * kLanes, right[l]);
                left[l] *= r[i] + v[i] * t[l];
                right[l] *= r[j] + v[j] * t[l];
            }
        }
        for (Index i = half, j = half - 1; i < n; ++i, --j) {
            Lanes of_i{}, of_j{};
            WM_UNROLL
            for (Index l = 0; l < kPackedNodes; ++l) {
                of_i += left[l] * load_lanes(kept + i * kNodes + l * kLanes);
                of_j += right[l] * load_lanes(kept + j * kNodes + l * kLanes);
                left[l] *= r[i] + v[i] * t[l];
                right[l] *= r[j] + v[j] * t[l];
            }
            total[i] += sum_lanes(of_i);
            total[j] += sum_lanes(of_j);
        }
    }
}

// out (c, q (p + 1)) += the Shapley values of p players, and the value without any, of q functions at c rows
//
// Solve   phi_k = mean_z sum_s a_s (k_k(x, s) - k_k(z, s)) int_0^1 prod_{j != k} (k_j(z, s) + t (k_j(x, s) - k_j(z, s))) dt
//         over the rows z of the background; without these with k_j(z, s) = 1: the weights |S|! (p - |S| - 1)! / p! of the
//         coalitions are int t^|S| (1 - t)^(p - |S| - 1) dt
// Given   X (c, d); coef divided by the number of rows z
// Returns sums to rounding: all factors are in [0, 1], and none is divided by
// Cost    for each x, s and z the factors, and 8 multiply-adds for each node and each player whose two factors differ; nodes
//         by `Quadratures`, about 3 sqrt(p) at most
// Source  the product game: Mohammadi et al. 2025, arXiv 2505.16516; the integral: Owen, "Multilinear extensions of games"
// Twin    tests/naive/shapley.py::shapley_values
template <class Term>
void add_shapley_values(const ProductExpansion& f, Matrix<const double> X, Index first_point, Index end_point,
                        ShapleyScratch& s, Matrix<double> out) {
    const FlushDenormals flush;
    const Index p = f.n_players, b = f.n_backgrounds(), q = f.coef.columns;
    double *present = s.present.data(), *factor = s.factor.data(), *difference = s.difference.data(), *total = s.total.data();
    Index* player = s.player.data();
    for (Index i = first_point; i < end_point; ++i) {
        const double *point = f.points[i].data, *coef = f.coef[i].data;
        double without_any = 0.0;
        for (Index z = 0; z < b; ++z) {
            double* absent = s.absent.data() + z * p;
            if (f.background.rows) product_factors<Term>(f, f.background[z].data, point, s, absent);
            else std::fill_n(absent, p, 1.0);
            double product = 1.0;
            for (Index g = 0; g < p; ++g) product *= absent[g];
            without_any += product;
        }
        for (Index x = 0; x < X.rows; ++x) {
            double* values = out[x].data;
            product_factors<Term>(f, X[x].data, point, s, present);
            for (Index a = 0; a < q; ++a) values[a * (p + 1) + p] += coef[a] * without_any;
            for (Index z = 0; z < b; ++z) {
                const double* absent = s.absent.data() + z * p;
                Index n = 0;  // players whose factors differ; the others have no share, but a common factor
                double common = 1.0, differences = 0.0;
                for (Index g = 0; g < p; ++g) {
                    const double v = present[g] - absent[g];
                    player[n] = g, factor[n] = absent[g], difference[n] = v;
                    n += v != 0.0;
                    common *= v != 0.0 ? 1.0 : absent[g];
                    differences += std::abs(v);
                }
                if (common == 0.0) continue;
                const Index even = n + n % 2;
                if (n < even) factor[n] = 1.0, difference[n] = 0.0;
                integrate_products(f.rules, f.rules.find(n, differences), factor, difference, even, s.kept.data(), total);
                for (Index g = 0; g < n; ++g) total[g] *= common * difference[g];
                for (Index a = 0; a < q; ++a) {
                    if (coef[a] == 0.0) continue;
                    double* of_function = values + a * (p + 1);
                    for (Index g = 0; g < n; ++g) of_function[player[g]] += coef[a] * total[g];
                }
            }
        }
    }
}

}  // namespace wm
