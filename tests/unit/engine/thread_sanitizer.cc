// What ThreadSanitizer is told in these tests, where ranks are threads that speak tcp. Floor:
// tests.
#ifdef __SANITIZE_THREAD__

// It notes what sendmsg() has read only after the call, when the receiver may have answered already
// and its answer may lie in the same memory: no race. And the kernel reads, for a peer that asks,
// what a rank counts and says meanwhile, as a device does. contract_test watches these reads.
extern "C" const char* __tsan_default_options();
extern "C" const char* __tsan_default_options() { return "intercept_send=0"; }

#endif
