// From here on in the file that includes this, no product is fused with the sum behind it. GCC does
// so by itself where the processor can, which rounds once instead of twice: other bits than those
// of processors that cannot. Floor: reduce.
#pragma once

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#else
#pragma GCC optimize("fp-contract=off")
#endif
