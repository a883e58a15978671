"""The functions of a header in C99: `@points` is a name of the header, `$D` a number or another template."""

LINEAR = """
static inline void @values(const float *x, float *values)
{
    for (int c = 0; c < $Q; ++c) {
        float sum = 0.0f;
        for (int j = 0; j < $D; ++j)
            sum += @weights(c * $D + j) * x[j];
        values[c] = @intercept(c) + sum;
    }
}
"""

# of a row and a point
SUM_OF_TERMS = """
static inline float @$NAME(const float *x, int i)
{
    float g = 0.0f;
    for (int j = 0; j < $D; ++j)
        g += $TERM;
    return g;
}
"""

TRANSFORM = """
static inline float @transform(float g)
{
    $VALUE
}
"""

_POWER = """const float base = $GAMMA * g + $COEF0;
    float power = 1.0f;
    for (int i = 0; i < $DEGREE; ++i)
        power *= base;
    return power;"""

_PRODUCT = "x[j] * @points(i * $D + j)"
SQUARE = "(x[j] - @points(i * $D + j)) * (x[j] - @points(i * $D + j))"
_EXP = "return expf(-$GAMMA * g);"

# of each kernel the terms of its argument g, and its value
KERNELS = {
    "rbf": (SQUARE, _EXP),
    "laplacian": ("fabsf(x[j] - @points(i * $D + j))", _EXP),
    "linear": (_PRODUCT, "return g;"),
    "poly": (_PRODUCT, _POWER),
    "sigmoid": (_PRODUCT, "return tanhf($GAMMA * g + $COEF0);"),
}

# kernel values, each added to all functions' sums
SUM = """
static inline void @add_sum(const float *x, int first, int last, float *values)
{
    for (int i = first; i < last; ++i) {
        const float k = @transform(@argument(x, i));
        for (int c = 0; c < $Q; ++c)
            values[c] += @coef(i * $Q + c) * k;
    }
}
"""

EXPANSION = """
static inline void @values(const float *x, float *values)
{
    for (int c = 0; c < $Q; ++c)
        values[c] = @intercept(c);
    @add_sum(x, 0, $N, values);
}
"""

INPUT_DISTANCE = """
static inline float @distance(const float *x, int c)
{
    return @square(x, $N + c);
}
"""

# in the kernel's feature space
KERNEL_DISTANCE = """
static inline float @distance(const float *x, int c)
{
    const int n = @sizes(c + 1) - @sizes(c);
    float sum = 0.0f, own = 0.0f;
    for (int i = @sizes(c); i < @sizes(c + 1); ++i)
        sum += @transform(@argument(x, $N + i));
    for (int j = 0; j < $D; ++j)
        own += x[j] * x[j];
    return ($IS_ONE ? 1.0f : @transform(own)) + @norms(c) - 2.0f * sum / (float)n;
}
"""

# the machine of the nearest cluster; of an uncertain row between two clusters the mean of both
CLUSTERED = """
static inline void @values_of(const float *x, int cluster, float *values)
{
    for (int c = 0; c < $Q; ++c)
        values[c] = @intercept(cluster * $Q + c);
    @add_sum(x, @starts(cluster), @starts(cluster + 1), values);
}

static inline void @values(const float *x, float *values)
{
    int first = 0, second = 0, is_uncertain = 0;
    float near = INFINITY, far = INFINITY;
    for (int c = 0; c < $K; ++c) {
        const float distance = fmaxf(@distance(x, c), 0.0f);
        if (distance < near) {
            second = first, far = near;
            first = c, near = distance;
        } else if (distance < far) {
            second = c, far = distance;
        }
    }
    @values_of(x, first, values);
    for (int c = 0; c < $Q; ++c)
        is_uncertain |= fabsf(values[c]) < $UNCERTAIN;
    if ($AVERAGES && is_uncertain && near >= $BETWEEN * far) {
        float others[$Q];
        @values_of(x, second, others);
        for (int c = 0; c < $Q; ++c)
            values[c] = 0.5f * (values[c] + others[c]);
    }
}
"""

TREE = """
static inline void @add_tree$T(const float *x, float *values)
{
    int leaf = 0;$ROUTE
    float g[$M], f[$M + $P];
    for (int i = 0; i < $M; ++i) {
        g[i] = @argument(x, $LANDMARKS + leaf * $M + i);
        f[i] = @transform(g[i]);
    }$PSEUDO
    for (int c = 0; c < $Q; ++c) {
        const int own = leaf * $Q + c;
        float sum = @leaf_intercept$T(own);
        for (int i = 0; i < $M + $P; ++i)
            sum += @coef$T(own * ($M + $P) + i) * f[i];$PRODUCTS$SLOPES
        values[c] += sum;
    }
}
"""

ROUTE = """
    for (int node = 0; node >= 0; leaf = -1 - node) {
        int best = 0;
        float least = INFINITY;
        for (int b = 0; b < @size$T(node); ++b) {
            const float distance = @square(x, $START + node * $B + b);
            if (distance < least)
                best = b, least = distance;
        }
        node = @child$T(node * $B + best);
    }"""

# kernel values estimated by the triangle inequality
PSEUDO = """
    for (int j = 0; j < $P; ++j) {
        float lower = 0.0f, upper = INFINITY;
        for (int i = 0; i < $M; ++i) {
            const float u = $DISTANCE, v = @pseudo$T((leaf * $M + i) * $P + j);
            lower = fmaxf(lower, fabsf(u - v));
            upper = fminf(upper, u + v);
        }
        const float bound = @is_lower$T(leaf) ? lower : upper;
        f[$M + j] = @transform($BOUND);
    }"""

# of two kernel values
PRODUCTS = """
        for (int a = 0, i = own * ($M * ($M + 1) / 2); a < $M; ++a) {
            float part = 0.0f;
            for (int b = 0; b <= a; ++b, ++i)
                part += @products$T(i) * f[b];
            sum += part * f[a];
        }"""

SLOPES = """
        for (int j = 0; j < $D; ++j)
            sum += @weights$T(own * $D + j) * x[j];"""

FOREST = """
static inline void @values(const float *row, float *values)
{
    $PROJECT
    for (int c = 0; c < $Q; ++c)
        values[c] = 0.0f;
    $TREES
    for (int c = 0; c < $Q; ++c)
        values[c] /= $N;
}
"""

PROJECT = """float x[$D];
    for (int i = 0; i < $D; ++i) {
        x[i] = 0.0f;
        for (int j = 0; j < $WIDTH; ++j)
            x[i] += @projection(i * $WIDTH + j) * row[j];
    }"""

OPERATIONS = """
static inline void @$LABEL(const float *from, float *to)
{
    for (int j = 0; j < $N; ++j) {
        float v = from[j];
        $LINES
        to[j] = v;
    }
}
"""

# of decision values for pairs of classes: the class, and votes ordered by these values
VOTE = """
static inline int @vote(const float *values, float *scores)
{
    float votes[$K], sums[$K];
    int i = 0;
    for (int a = 0; a < $K; ++a)
        votes[a] = sums[a] = scores[a] = 0.0f;
    for (int a = 0; a < $K; ++a)
        for (int b = a + 1; b < $K; ++b, ++i) {
            votes[a] += values[i] > 0.0f ? 1.0f : 0.0f;
            votes[b] += values[i] < 0.0f ? 1.0f : 0.0f;
            scores[values[i] < 0.0f ? b : a] += 1.0f;
            sums[a] += values[i];
            sums[b] -= values[i];
        }
    for (int a = 0; a < $K; ++a)
        scores[a] += sums[a] / (3.0f * (fabsf(sums[a]) + 1.0f));
    $LARGEST
}
"""

PREDICT = """
static inline $KIND @predict(const float *row, float *scores)
{
    $BODY
}
"""

# of equal values the class that the order names first
LARGEST = """int best = $FIRST;
    for (int c = 1; c < $K; ++c)
        best = $RANKS[$CLASS] > $RANKS[best] ? $CLASS : best;
    return best;"""
