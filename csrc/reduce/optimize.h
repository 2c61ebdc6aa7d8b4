// optimize(): gradients folded and applied to values in one pass, at memory speed, as torch.optim
// applies them. Pure: no I/O, no allocation. Floor: reduce. Thread: any.
//
// A step has number t, from 1. With the names of optimizer.h, g the gradient, negated to maximize,
// and p the value; what stands in brackets is one number for the whole step, computed in double
// and rounded to float once. All else is float, each operation rounded by itself, in the order that
// the brackets and the usual precedence give.
//
//   all but AdamW, if weight_decay is not 0:   g = g + [weight_decay] * p
//
//   Sgd              if momentum is 0:         p = p + [-lr] * g
//                    else, at t = 1:           b = g
//                    else, from t = 2:         b = b * [momentum] + [1 - dampening] * g
//                    nesterov:                 p = p + [-lr] * (g + [momentum] * b)
//                    else:                     p = p + [-lr] * b
//
//   Adagrad                                    s = s + g * g
//                                              p = p + [-rate] * g / (sqrt(s) + [eps])
//                    where                     rate = lr / (1 + (t - 1) * lr_decay)
//
//   RowwiseAdagrad                             as Adagrad, with one s for all elements of a row:
//                                              s = s + (the sum of g * g over the row) / elements
//
//   Adam, AdamW      AdamW only:               p = p * [1 - lr * weight_decay]
//                    if 1 - beta1 < 0.5:       m = m + [1 - beta1] * (g - m)
//                    else:                     m = g + ([1 - beta1] - 1) * (g - m)
//                                              v = v * [beta2] + [1 - beta2] * g * g
//                                              p = p + [-rate] * m / (sqrt(v) / [root] + [eps])
//                    where                     rate = lr / (1 - beta1^t), root = sqrt(1 - beta2^t)
//
// No processor fuses a product with the sum behind it here. So the bits of a result depend on the
// values, the state and the order of the gradients only: not on the instruction set, the size, the
// alignment, or where a range is cut into parts. NaN and infinities pass as the arithmetic has it.
//
// The sum over a row has an order of its own, which no vector's width changes: 16 partial sums, of
// which number j adds up the elements j, j + 16, j + 32, ... in this order; then number j of the
// first half takes number j of the second (8 + 8, 4 + 4, 2 + 2, 1 + 1) until one is left.
#pragma once

#include <cstddef>
#include <cstdint>

#include "csrc/memory/copy.h"
#include "csrc/reduce/optimizer.h"

namespace rdmacoll {

// One step of an optimizer, in float. Where a kind lacks a part, its number changes nothing.
struct OptimizerStep {
  OptimizerKind kind;
  bool maximize;
  bool nesterov;
  bool has_momentum;
  bool is_first;          // at which momentum begins with the gradient
  bool is_near_gradient;  // from which the first moment is reached then: 1 - beta1 >= 0.5
  float decay;            // weight_decay; 0 for AdamW
  float shrink;           // AdamW: 1 - lr * weight_decay; 1 for the others
  float rate;             // a value moves by this times its direction: below 0
  float momentum;
  float intake;         // what momentum takes of the gradient, or the second moment of its square
  float moment_intake;  // Adam: 1 - beta1, less 1 if is_near_gradient
  float beta2;
  float root;  // Adam: sqrt(1 - beta2^t)
  float eps;
};

// The step of number `t`, from 1, of an optimizer that check() has taken.
OptimizerStep step_of(const Optimizer& optimizer, uint64_t t);

// The gradient of an element is what reduce() makes of float32 sources with Avg: folded from left
// to right, and divided if `divisor` is not 1. Sources need no alignment.
struct Gradients {
  const void* const* sources;
  size_t source_count;  // at least 1
  uint32_t divisor = 1;
};

// Steps `count` elements from `value` to `next`: the same pointer, or memory that overlaps nothing
// else. state[0..] are as many arrays as states_per_element() says, and are updated in place: b of
// Sgd, s of Adagrad, m and v of Adam. Streamed: `next` is written past the caches, which is for
// other memory than `value`, and more of it than they hold. Not for RowwiseAdagrad.
void optimize(const OptimizerStep& step, const Gradients& gradients, const float* value,
              float* next, float* const* state, uint64_t count, Stores stores = Stores::Cached);

// The same for one whole row of RowwiseAdagrad, whose s is `*sum`. A row of no elements keeps it.
void optimize_row(const OptimizerStep& step, const Gradients& gradients, const float* value,
                  float* next, float* sum, uint64_t count);

}  // namespace rdmacoll
