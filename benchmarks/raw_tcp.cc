// What the kernel's TCP does between two hosts with blocking calls on one socket and memory that is
// already there: the limit that benchmarks/network.py reads times beside.
//
//   raw_tcp listen PORT     raw_tcp dial HOST PORT
//
// Both get the same lines on standard input, one at a time: OPERATION BYTES MESSAGES REPEATS.
// Whoever dialled prints the median of the repeats in microseconds, the other 0. ping_pong: a
// message of BYTES there and one back. one_way: MESSAGES of BYTES there, then one byte back. Floor:
// none, it stands alone. Thread: one.
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>
#include <vector>

namespace {

[[noreturn]] void fail(const std::string& what) {
  std::perror(("raw_tcp: " + what).c_str());
  std::exit(1);
}

int listen_and_accept(uint16_t port) {
  int listener = socket(AF_INET, SOCK_STREAM, 0);
  int yes = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  if (bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) fail("bind");
  if (listen(listener, 1) != 0) fail("listen");
  int connection = accept(listener, nullptr, nullptr);
  if (connection < 0) fail("accept");
  return connection;
}

// The other may not listen yet.
int dial(const char* host, const char* port) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  if (getaddrinfo(host, port, &hints, &found) != 0) fail(std::string("no address of ") + host);
  for (int tries = 0; tries < 300; ++tries) {
    int connection = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(connection, found->ai_addr, found->ai_addrlen) == 0) {
      freeaddrinfo(found);
      return connection;
    }
    close(connection);
    usleep(100'000);
  }
  fail("connect");
}

void send_all(int connection, const char* data, size_t bytes) {
  while (bytes > 0) {
    ssize_t sent = send(connection, data, bytes, MSG_NOSIGNAL);
    if (sent <= 0) fail("send");
    data += sent;
    bytes -= static_cast<size_t>(sent);
  }
}

void receive_all(int connection, char* data, size_t bytes) {
  while (bytes > 0) {
    ssize_t received = recv(connection, data, bytes, 0);
    if (received <= 0) fail("recv");
    data += received;
    bytes -= static_cast<size_t>(received);
  }
}

struct Operation {
  std::string name;
  size_t bytes = 0;
  int messages = 0;
  int repeats = 0;
};

void once(int connection, bool dialled, const Operation& operation, std::vector<char>& memory) {
  bool ping_pong = operation.name == "ping_pong";
  size_t answer_bytes = ping_pong ? operation.bytes : 1;
  for (int i = 0; i < operation.messages; ++i) {
    if (dialled) {
      send_all(connection, memory.data(), operation.bytes);
    } else {
      receive_all(connection, memory.data(), operation.bytes);
    }
  }
  if (dialled) {
    receive_all(connection, memory.data(), answer_bytes);
  } else {
    send_all(connection, memory.data(), answer_bytes);
  }
}

double median_us(int connection, bool dialled, const Operation& operation) {
  std::vector<char> memory(std::max<size_t>(operation.bytes, 1), 'x');
  std::vector<double> times_us;
  once(connection, dialled, operation, memory);  // not timed: caches and windows are another's
  for (int i = 0; i < operation.repeats; ++i) {
    auto began = std::chrono::steady_clock::now();
    once(connection, dialled, operation, memory);
    std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - began;
    times_us.push_back(took.count());
  }
  auto middle = times_us.begin() + static_cast<ptrdiff_t>(times_us.size() / 2);
  std::nth_element(times_us.begin(), middle, times_us.end());
  return dialled ? *middle : 0;
}

}  // namespace

int main(int argc, char** argv) {
  bool dialled = argc == 4 && std::strcmp(argv[1], "dial") == 0;
  if (!dialled && (argc != 3 || std::strcmp(argv[1], "listen") != 0)) {
    std::fprintf(stderr, "usage: raw_tcp listen PORT | raw_tcp dial HOST PORT\n");
    return 2;
  }
  int connection = dialled ? dial(argv[2], argv[3])
                           : listen_and_accept(static_cast<uint16_t>(std::atoi(argv[2])));
  int yes = 1;
  setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  Operation operation;
  while (std::cin >> operation.name >> operation.bytes >> operation.messages >> operation.repeats) {
    std::printf("%.3f\n", median_us(connection, dialled, operation));
    std::fflush(stdout);
  }
}
