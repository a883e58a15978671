// The dual of the cutting planes' master problem: a quadratic program over the simplex.
#pragma once
#include <cmath>
#include <memory>

#include "registers.hpp"

namespace wm {

struct SimplexResult {
    Index n_rounds;
    double gap;
};

// Solve   min_beta  1/2 beta' H beta - b' beta   s.t.  beta >= 0, sum(beta) that of the first point
// Given   H (>= t, >= t), whose first t rows and columns are positive semi-definite; b (t,); beta (t,), the first point,
//         updated in place
// Returns number of rounds; the duality gap sum(beta) max(-grad) + beta' grad, with grad = H beta - b
// Cost    a round: an SMO step, O(t), and Newton steps in the face it leads to, O(t m + m^3 / 6) with m planes in it
// Source  SMO: Fan, Chen, Lin 2005, JMLR 6, as in the paper; Newton steps within a face: active-set method, our
//         addition
// Twin    tests/naive/cutting_plane.py::solve_simplex
class SimplexQP {
  public:
    SimplexQP(Matrix<const double> H, Span<const double> b, Span<double> beta)
        : t_(beta.size), memory_(new double[t_ * (t_ + 4)]), indices_(new Index[t_]), H_(H), b_(b), beta_(beta),
          grad_(scratch(0)), diagonal_(scratch(1)), gain_(scratch(2)),
          system_{memory_.get() + 3 * t_, t_, t_ + 1, t_ + 1}, face_{indices_.get(), t_} {
        for (Index i = 0; i < t_; ++i) diagonal_[i] = H_[i][i];
    }

    SimplexResult solve(double tol, Index max_rounds) {
        if (t_ == 0) return {0, 0.0};
        update_gradient();
        double gap = 0.0, latest = value();
        for (Index done = 0; done < max_rounds; ++done) {
            const Index steepest = find_gap(gap);
            if (!(gap > tol) || !move_pair(steepest)) return {done, gap};  // a gap of NaN ends it too
            for (Index k = 0; k < t_ && move_in_face(); ++k) {}
            if (done % kRoundsBetween != kRoundsBetween - 1) continue;
            update_gradient();
            const double now = value();
            if (!(now < latest)) return {done + 1, gap};  // rounding of gradients is left, of planes of large normals
            latest = now;
        }
        return {max_rounds, gap};
    }

  private:
    static constexpr Index kRoundsBetween = 16;  // fresh gradients: their changes' rounding adds up
    static constexpr double kRidge = 1e-12;  // relative, added to the diagonal: planes may be linearly dependent
    static constexpr double kTiny = 1e-300;

    const Index t_;
    std::unique_ptr<double[]> memory_;
    std::unique_ptr<Index[]> indices_;
    Matrix<const double> H_;
    Span<const double> b_;
    Span<double> beta_, grad_, diagonal_;
    Span<double> gain_;  // of move_pair, by partner; in Newton steps, the step
    Matrix<double> system_;  // (t, t + 1): of the Newton step, m equations with the right-hand side in column m
    Span<Index> face_;       // the coordinates beta_i > 0, the largest last

    // The k-th vector (t,) of the memory, before system_
    Span<double> scratch(Index k) { return {memory_.get() + k * t_, t_}; }

    void update_gradient() {
        const double* beta = beta_.data;
        for (Index i = 0; i < t_; ++i) {
            const double* h = H_[i].data;
            double value = -b_[i];
            for (Index j = 0; j < t_; ++j) value += h[j] * beta[j];
            grad_[i] = value;
        }
    }

    // 1/2 beta' H beta - b' beta
    double value() const {
        double sum = 0.0;
        for (Index i = 0; i < t_; ++i) sum += 0.5 * beta_[i] * (grad_[i] - b_[i]);
        return sum;
    }

    // Write the duality gap; returns the coordinate of least gradient.
    Index find_gap(double& gap) const {
        const double *beta = beta_.data, *grad = grad_.data;
        double total = 0.0, product = 0.0;
        for (Index j = 0; j < t_; ++j) {
            total += beta[j];
            product += beta[j] * grad[j];
        }
        Index steepest = 0;
        for (Index j = 1; j < t_; ++j)
            if (grad[j] < grad[steepest]) steepest = j;
        gap = product - total * grad[steepest];
        return steepest;
    }

    // SMO step: raise coordinate i and lower the one of the largest second-order gain. False if there is none.
    bool move_pair(Index i) {
        const Index j = find_partner(i);
        if (j < 0) return false;
        const double *h = H_[i].data, *other = H_[j].data;
        const double curvature = maximum(diagonal_[i] + diagonal_[j] - 2.0 * h[j], kTiny);
        const double step = minimum(beta_[j], (grad_[j] - grad_[i]) / curvature);
        beta_[i] += step;
        beta_[j] -= step;
        double* __restrict grad = grad_.data;
        for (Index k = 0; k < t_; ++k) grad[k] += step * (h[k] - other[k]);
        return true;
    }

    Index find_partner(Index i) const {
        const double *h = H_[i].data, *beta = beta_.data, *grad = grad_.data, *diagonal = diagonal_.data;
        double* __restrict gain = gain_.data;
        const double own = diagonal[i], lowest = grad[i];
        for (Index k = 0; k < t_; ++k) {
            const double slope = beta[k] > 0.0 ? maximum(grad[k] - lowest, 0.0) : 0.0;
            gain[k] = slope * slope / maximum(own + diagonal[k] - 2.0 * h[k], kTiny);
        }
        double best = 0.0;
        Index partner = -1;
        for (Index k = 0; k < t_; ++k)
            if (gain[k] > best) best = gain[k], partner = k;
        return partner;
    }

    // A Newton step within the face, up to its boundary. Returns whether it reached the boundary.
    bool move_in_face() {
        const Index m = list_face();
        make_system(m);
        factor(m);
        const double* step = solve_factored(m);
        double total = 0.0, length = 1.0;
        Index stop = -1;
        for (Index p = 0; p < m; ++p) total += step[p];
        if (!std::isfinite(total)) return false;
        const auto step_of = [&](Index p) { return p == m ? -total : step[p]; };  // the largest: minus the sum of the others
        for (Index p = 0; p <= m; ++p) {
            const double rate = step_of(p), value = beta_[face_[p]];
            if (rate < 0.0 && value < -rate * length) length = -value / rate, stop = face_[p];
        }
        for (Index p = 0; p <= m; ++p) {
            const Index i = face_[p];
            beta_[i] = i == stop ? 0.0 : maximum(0.0, beta_[i] + length * step_of(p));
        }
        for (Index p = 0; p <= m; p += 4) {
            double scale[4] = {};
            const double* rows[4];
            for (Index q = 0; q < 4; ++q) {
                if (p + q <= m) scale[q] = length * step_of(p + q);
                rows[q] = H_[face_[minimum(p + q, m)]].data;
            }
            add_four(rows, scale, grad_.data, t_);
        }
        return stop >= 0;
    }

    // List the face's m + 1 coordinates; returns m.
    Index list_face() const {
        Index largest = 0, m = 0;
        for (Index i = 1; i < t_; ++i)
            if (beta_[i] > beta_[largest]) largest = i;
        for (Index i = 0; i < t_; ++i)
            if (beta_[i] > 0.0 && i != largest) face_[m++] = i;
        face_[m] = largest;
        return m;
    }

    // The Newton system in the coordinates of the face but the largest, which is eliminated: the upper triangle, and
    // the negative gradient in column m.
    void make_system(Index m) {
        const Index r = face_[m];
        const double* base = H_[r].data;
        const Index* __restrict face = face_.data;
        for (Index p = 0; p < m; ++p) {
            const Index i = face[p];
            const double *h = H_[i].data, rest = base[r] - h[r];
            double* __restrict row = system_[p].data;
            for (Index q = p; q < m; ++q) row[q] = h[face[q]] - base[face[q]] + rest;
            row[p] += kRidge * (diagonal_[i] + diagonal_[r]) + kTiny;
            row[m] = grad_[r] - grad_[i];
        }
    }

    // Cholesky factorisation U'U x = y in place, with the forward substitution of y; four rows at a time.
    void factor(Index m) {
        for (Index k = 0; k < m; k += 4) {
            const Index end = minimum(k + 4, m);
            for (Index p = k; p < end; ++p) {
                double* __restrict row = system_[p].data;
                const double scale = 1.0 / std::sqrt(row[p]);
                for (Index j = p; j <= m; ++j) row[j] *= scale;
                for (Index i = p + 1; i < end; ++i) add_scaled(row + i, -row[i], system_[i].data + i, m + 1 - i);
            }
            for (Index i = end; i < m; ++i) {
                double scale[4];
                const double* rows[4];
                for (Index q = 0; q < 4; ++q) {
                    rows[q] = system_[k + q].data + i;
                    scale[q] = -rows[q][0];
                }
                add_four(rows, scale, system_[i].data + i, m + 1 - i);
            }
        }
    }

    // Back substitution; returns x (m,), in scratch.
    const double* solve_factored(Index m) {
        double* __restrict x = gain_.data;
        for (Index k = m - 1; k >= 0; --k) {
            const double* row = system_[k].data;
            double value = row[m];
            for (Index j = k + 1; j < m; ++j) value -= row[j] * x[j];
            x[k] = value / row[k];
        }
        return x;
    }
};

}  // namespace wm
