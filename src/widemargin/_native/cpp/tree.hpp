// Routing by a tree of cluster centres: from the root to the child of the nearest centre, until a leaf.
#pragma once
#include <vector>

#include "pairwise.hpp"

namespace wm {

template <class T> class Tree {
  public:
    using Value = T;
    // centres (n_nodes, b, d); sizes (n_nodes,): how many of a node's centres there are, from 1 to b; children
    // (n_nodes, b): the number of a later node, or -1 - leaf. Node 0 is the root; without nodes there is one leaf.
    Tree(Stack<const T> centres, Span<const std::int32_t> sizes, Matrix<const std::int32_t> children)
        : centres_(centres, KernelArgument::squared_distance), sizes_(sizes.begin(), sizes.end()),
          children_(children.data, children.data + children.rows * children.columns) {
        std::vector<Index> depths(sizes.size), distances(sizes.size);
        for (Index node = sizes.size - 1; node >= 0; --node) {  // children come after their node
            Index below = 0, most_distances = 0;
            for (Index j = 0; j < sizes[node]; ++j) {
                const Index next = child(node, j);
                if (next < 0) n_leaves_ = maximum(n_leaves_, -next);
                else below = maximum(below, depths[next]), most_distances = maximum(most_distances, distances[next]);
            }
            depths[node] = 1 + below;
            distances[node] = sizes[node] + most_distances;
        }
        if (sizes.size) depth_ = depths[0], n_distances_ = distances[0];
    }

    Index features() const { return centres_.packed.features; }  // d
    Index width() const { return centres_.packed.width; }  // numbers of scratch for a row's distances
    Index n_leaves() const { return n_leaves_; }
    Index depth() const { return depth_; }              // nodes on the longest path to a leaf
    Index n_distances() const { return n_distances_; }  // the most distances on a path to a leaf

    // Given   X dense or CSR, its rows i[0] to i[R - 1]; distances (R width(),): scratch; leaf (R,): written
    // Cost    depth times b distances a row; of equally near centres the first counts
    // Twin    tests/naive/nystroem.py::route
    template <int R, class Rows> void find_leaves(const Rows& X, const Index (&i)[R], T* distances, Index* leaf) const {
        Index node[R] = {};
        if (!sizes_.empty()) step(X, i, 0, distances, node);
        for (int r = 0; r < R; ++r) {
            Index current[1] = {sizes_.empty() ? -1 : node[r]};
            while (current[0] >= 0) step(X, {i[r]}, current[0], distances, current);
            leaf[r] = -1 - current[0];
        }
    }
    template <class Rows> Index find_leaf(const Rows& X, Index i, T* distances) const {
        Index leaf[1];
        find_leaves(X, {i}, distances, leaf);
        return leaf[0];
    }

  private:
    PairwisePoints<T> centres_;
    std::vector<std::int32_t> sizes_, children_;
    Index n_leaves_ = 1, depth_ = 0, n_distances_ = 0;

    // Write the child of a node whose centre is nearest, for each row: next (R,).
    template <int R, class Rows>
    void step(const Rows& X, const Index (&i)[R], Index node, T* distances, Index (&next)[R]) const {
        Index best[R] = {};
        T least_distance[R];
        centres_.pairwise(X, i, node, distances, width());
        for (int r = 0; r < R; ++r) least_distance[r] = distances[r * width()];
        for (Index j = 1; j < sizes_[node]; ++j)
            for (int r = 0; r < R; ++r) {
                const T distance = distances[r * width() + j];
                best[r] = distance < least_distance[r] ? j : best[r];
                least_distance[r] = minimum(distance, least_distance[r]);
            }
        for (int r = 0; r < R; ++r) next[r] = child(node, best[r]);
    }
    Index child(Index node, Index j) const { return children_[node * centres_.packed.points + j]; }
};

// The first node whose size or child is out of range, and that value.
struct TreeFault {
    enum Kind { none, size, child } kind = none;
    Index node = 0, value = 0;
};

inline TreeFault find_fault(Span<const std::int32_t> sizes, Matrix<const std::int32_t> children) {
    for (Index node = 0; node < sizes.size; ++node) {
        if (sizes[node] < 1 || sizes[node] > children.columns) return {TreeFault::size, node, sizes[node]};
        for (const Index next : children[node].head(sizes[node]))
            if (next >= sizes.size || (0 <= next && next <= node)) return {TreeFault::child, node, next};
    }
    return {};
}

}  // namespace wm
