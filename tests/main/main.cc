// main() of the tests in C++. A test that ends its process by a signal is named: ctest has gtest
// print those alone that fail (GTEST_BRIEF), and a log of CI may be cut where it is long.
// Floor: tests. Thread: the main one; a handler in any.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <string>

namespace rdmacoll {
namespace {

char running[256];  // the test's name, and a new line; read by a signal handler

class Names : public ::testing::EmptyTestEventListener {
  void OnTestStart(const ::testing::TestInfo& test) override {
    const std::string name =
        "died in " + std::string(test.test_suite_name()) + "." + test.name() + "\n";
    std::fill(std::begin(running), std::end(running), '\0');
    name.copy(running, sizeof(running) - 1);
  }
};

// The signal takes its course when this returns: by then its handler is the default (SA_RESETHAND).
void name_the_test(int signal) {
  size_t bytes = 0;
  while (running[bytes] != '\0') ++bytes;
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, running, bytes);
  ::raise(signal);
}

void name_tests_that_die() {
  for (const int signal : {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV}) {
    struct sigaction present{};
    ::sigaction(signal, nullptr, &present);
    if (present.sa_handler != SIG_DFL) continue;  // a sanitizer's, which says more
    struct sigaction action{};
    action.sa_handler = name_the_test;
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    ::sigaction(signal, &action, nullptr);
  }
}

}  // namespace
}  // namespace rdmacoll

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  ::testing::UnitTest::GetInstance()->listeners().Append(new rdmacoll::Names);
  rdmacoll::name_tests_that_die();
  return RUN_ALL_TESTS();
}
