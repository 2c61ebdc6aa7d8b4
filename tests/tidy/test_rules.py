"""Each rule of the house fires on a planted violation, and only on that."""

from pathlib import Path

import pytest
import rules
from members import cpp_classes
from source import Function, Tree, cpp_functions, python_functions

LONG_BODY = "  x();\n" * 69
HEAD = "// What lives here. Floor: some.\n"


def plant(root: Path, files: dict[str, str]) -> Tree:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Tree(root)


def cpp_class(name: str, members: int) -> str:
    fields = "".join(f"  int a{i}_ = 0;\n" for i in range(members))
    return f"class {name} {{\n  void f();\n{fields}}};\n"


def include(header: str) -> str:
    return f'#include "{header}"\n'


# Seven files that name the transport, six that name the algorithm, and some that only mention both.
TRANSPORT = {
    "csrc/transport/known/transport.h": "class KnownTransport {};\n",
    "csrc/engine/a.cc": include("csrc/transport/known/transport.h"),
    "csrc/engine/b.cc": 'open("known");\n',
    "csrc/engine/c.cc": "KnownConfig config;\n",
    "rdmacoll/d.py": "x = 'known'\n",
    "CMakeLists.txt": "tests_of(unit transport_known)\n",
    "setup.py": "glob(f\"csrc/transport/{'no' if x else 'known'}/*.cc\")\n",
    ".ci/run": "RDMACOLL_TRANSPORT=known make test\n",
}
ALGORITHM = {
    "csrc/plan/algorithms/known.h": "Plan known_gather();\n",
    "csrc/plan/plan.h": "enum class Algorithm : uint8_t {\n  Ring,\n  Known,\n};\n",
    "csrc/plan/a.cc": "return Algorithm::Known;\n",
    "csrc/plan/b.cc": include("csrc/plan/algorithms/known.h"),
    "torch_ext/c.cc": 'R"(takes "ring" or "known")";\n',
    "rdmacoll/d.py": 'x = ["known"]\n',
    "Makefile": "\tRDMACOLL_ALGO=known $(BIN)/rdmarun\n",
}
MENTIONS = {
    "csrc/engine/mentions.cc": '// "known": Algorithm::Known\nint known = unknown("well known");\n',
    "rdmacoll/mentions.py": '"""Takes "known"."""\nx = 1  # or "known"\n',
    ".ci/mentions": "# RDMACOLL_TRANSPORT=known\n",
    "tests/unit/a.cc": 'open("known", Algorithm::Known);\n',
    "docs/a.md": '"known"\n',
}


def without(files: dict[str, str], *names: str) -> dict[str, str]:
    return {name: text for name, text in files.items() if name not in names}


# rule, files, what the complaint must contain (None: no complaint)
CASES: list[tuple[rules.Rule, dict[str, str], str | None]] = [
    (
        rules.floors,
        {"csrc/plan/a.cc": include("csrc/reduce/b.h"), "csrc/reduce/b.h": ""},
        "csrc/plan/a.cc:1: csrc/plan may not see csrc/reduce",
    ),
    (
        rules.floors,
        {
            "csrc/transport/shm/a.cc": include("csrc/transport/sim/b.h"),
            "csrc/transport/sim/b.h": "",
        },
        "csrc/transport/shm may not see csrc/transport/sim",
    ),
    (
        rules.floors,
        {"csrc/engine/a.cc": include("csrc/transport/sim/b.h"), "csrc/transport/sim/b.h": ""},
        "csrc/engine may not see csrc/transport/sim",
    ),
    (
        rules.floors,
        {"csrc/base/a.h": include("csrc/memory/b.h"), "csrc/memory/b.h": ""},
        "csrc/base may not see csrc/memory",
    ),
    (rules.floors, {"csrc/base/a.cc": include("a.h"), "csrc/base/a.h": ""}, "does not exist"),
    (rules.floors, {"csrc/misc/a.cc": ""}, "csrc/misc is no floor"),
    (rules.floors, {"torch_ext/a.cc": include("csrc/base/b.h"), "csrc/base/b.h": ""}, None),
    (
        rules.link_edges,
        {"CMakeLists.txt": "floor(base base)\nfloor(plan plan base)\nfloor(reduce reduce plan)\n"},
        "CMakeLists.txt:3: csrc/reduce may not link csrc/plan",
    ),
    (
        rules.link_edges,
        {"CMakeLists.txt": "floor(plan plan base)\nif(X)\n  floor(reduce reduce plan)\nendif()\n"},
        "CMakeLists.txt:3: csrc/reduce may not link csrc/plan",
    ),
    (rules.engine_is_alone, {"csrc/base/a.h": "#include <torch/x.h>\n"}, "torch/x.h"),
    (rules.engine_is_alone, {"csrc/base/a.h": "#include <Python.h>\n"}, "Python.h"),
    (rules.confined, {"csrc/engine/a.cc": "ibv_post_send(q);\n"}, "ibv_ belongs in"),
    (rules.confined, {"csrc/engine/a.cc": "// as ibv_post_send\n"}, None),
    (rules.confined, {"csrc/transport/verbs/a.cc": "ibv_post_send(q);\n"}, None),
    (rules.confined, {"torch_ext/a.cc": "\nstd::getenv(name);\n"}, "a.cc:2: getenv belongs in"),
    (rules.confined, {"csrc/base/settings.cc": "std::getenv(name);\n"}, None),
    (rules.confined, {"launcher/a.py": "import torch\n"}, "torch belongs in"),
    (rules.confined, {"rdmacoll/a.py": "    from mpi4py import MPI\n"}, "mpi4py belongs in"),
    (rules.confined, {"launcher/a.py": "from mpi4py import MPI\n"}, None),
    (rules.header_comments, {"csrc/base/a.cc": "\n// late\n"}, "begins without a comment"),
    (rules.header_comments, {"csrc/base/a.h": "// What lives here.\n"}, "does not name its floor"),
    (rules.header_comments, {"csrc/base/a.h": HEAD}, None),
    (rules.header_comments, {"rdmacoll/a.py": "import os\n"}, "begins without a comment"),
    (rules.header_comments, {"rdmacoll/__init__.py": ""}, "begins without a comment"),
    (rules.header_comments, {".ci/run": "#!/bin/sh\n# What it runs.\n"}, None),
    (rules.sizes, {"csrc/base/a.cc": "\n" * 401}, "401 lines"),
    (rules.sizes, {"csrc/base/a.cc": "\n" * 400}, None),
    (rules.sizes, {"csrc/base/a.cc": f"void f() {{\n{LONG_BODY}}}\n"}, "a function of 71 lines"),
    (rules.sizes, {"rdmacoll/a.py": "def f():\n" + "    x()\n" * 69}, "a function of 70 lines"),
    (rules.sizes, {"rdmacoll/a.py": "def f():\n" + "    x()\n" * 68}, None),
    (rules.lines, {"csrc/base/a.cc": "x" * 101 + "\n"}, "101 columns"),
    (rules.lines, {"docs/a.md": "x" * 120 + "\n"}, None),
    (rules.lines, {"docs/a.md": "x" * 121 + "\n"}, "121 columns"),
    (rules.lines, {"docs/a.md": "x \n"}, "blanks at the end"),
    (rules.lines, {"csrc/base/a.cc": "x\n// TO" + "DO: more\n"}, "a.cc:2: unfinished"),
    (rules.lines, {"csrc/base/a.cc": "x"}, "no newline at the end"),
    (rules.links, {"docs/a.md": "\nsee [b](b.md#part)\n"}, "docs/a.md:2: b.md does not exist"),
    (rules.links, {"docs/a.md": "[b](../README.md#x) [c](https://c.org)\n", "README.md": ""}, None),
    (rules.named_files, {"csrc/base/a.h": "\nint a;  // as b.cc does\n"}, "a.h:2: b.cc does not"),
    (rules.named_files, {"csrc/base/a.h": "// base/a.h, not <b.h>, Python.h or 'x'.cc\n"}, None),
    (rules.dead_headers, {"csrc/base/a.h": ""}, "csrc/base/a.h:1: nobody includes it"),
    (
        rules.dead_headers,
        {"csrc/base/a.h": "", "csrc/base/a.cc": include("csrc/base/a.h")},
        None,
    ),
    (
        rules.python_floors,
        {"rdmacoll/debug/a.py": "from rdmacoll.launcher.base import b\n", "launcher/base/b.py": ""},
        "rdmacoll/debug/a.py:1: rdmacoll.debug may not see rdmacoll.launcher.base",
    ),
    (
        rules.python_floors,
        {"launcher/agent/a.py": "if x:\n  from ..command import b\n", "launcher/command/b.py": ""},
        "launcher/agent/a.py:2: rdmacoll.launcher.agent may not see rdmacoll.launcher.command",
    ),
    (
        rules.python_floors,
        {"rdmacoll/info/a.py": "import rdmacoll\n", "rdmacoll/__init__.py": ""},
        "rdmacoll/info/a.py:1: rdmacoll.info may not see rdmacoll (its face)",
    ),
    (
        rules.python_floors,
        {"rdmacoll/tune/a.py": "import rdmacoll\nimport rdmacoll.bench\n"},
        None,
    ),
    (rules.python_floors, {"rdmacoll/new/a.py": ""}, "rdmacoll.new is no floor"),
    (rules.rooms, {f"csrc/plan/a{i}.cc": "" for i in range(21)}, "csrc/plan:1: 21 sources"),
    (
        rules.rooms,
        {f"csrc/plan/a{i}.{suffix}": "" for i in range(20) for suffix in ("h", "cc")},
        None,
    ),
    (rules.rooms, {f"tests/unit/a{i}.cc": "" for i in range(21)}, None),
    (rules.tests_exist, {"csrc/plan/a.cc": ""}, "no test in tests/unit/plan/"),
    (rules.tests_exist, {"csrc/transport/shm/a.cc": ""}, "no test in tests/contract/"),
    (rules.tests_exist, {"csrc/plan/a.cc": "", "tests/unit/plan/a_test.cc": ""}, None),
    (
        rules.test_names,
        {"tests/a/test_x.py": "", "tests/b/test_x.py": ""},
        "tests/b/test_x.py:1: tests/a/test_x.py has this name, too",
    ),
    (rules.test_names, {"tests/a/conftest.py": "", "tests/b/conftest.py": ""}, None),
    (
        rules.test_namespaces,
        {"tests/unit/a/b_test.cc": "namespace rdmacoll {\nnamespace {\n"},
        "tests/unit/a/b_test.cc:1: has no namespace rdmacoll::b_test",
    ),
    (rules.test_namespaces, {"tests/unit/a/b_test.cc": "namespace rdmacoll::a::b_test {\n"}, None),
    (
        rules.packages,
        {"pyproject.toml": 'packages = ["rdmacoll"]\n', "rdmacoll/plot/a.py": ""},
        "package rdmacoll.plot is not in",
    ),
    (
        rules.packages,
        {"pyproject.toml": 'packages = ["rdmacoll.launcher"]\n', "launcher/a.py": ""},
        None,
    ),
    (
        rules.data_members,
        {"csrc/plan/a.h": "\n" + cpp_class("A", 21)},
        "csrc/plan/a.h:2: A has 21 data members, more than 20",
    ),
    (rules.data_members, {"torch_ext/a.cc": cpp_class("A", 20)}, None),
    (rules.data_members, {"tests/a.cc": cpp_class("A", 21)}, None),
    (
        rules.data_members,
        {"csrc/plan/a.h": "struct A {\n" + "  int (*f)(B* b, void (*g)(int));\n" * 21 + "};\n"},
        None,
    ),
    (
        rules.touches,
        TRANSPORT | MENTIONS,
        "known/:1: 7 files elsewhere name the transport known, more than 6: .ci/run,",
    ),
    (rules.touches, without(TRANSPORT, "setup.py") | MENTIONS, None),
    (
        rules.touches,
        ALGORITHM | MENTIONS,
        "6 files elsewhere name the algorithm known, more than 5: Makefile, csrc/plan/a.cc,",
    ),
    (rules.touches, without(ALGORITHM, "csrc/plan/plan.h") | MENTIONS, None),
    (
        rules.own_names,
        {
            "csrc/plan/a.cc": "namespace {\nconstexpr int kMost{1};\n}  // namespace\n",
            "csrc/plan/b.cc": "namespace {\n\nconstexpr long kMost = 2;\n}  // namespace\n",
        },
        "csrc/plan/b.cc:3: csrc/plan/a.cc defines this, too; give it another name: kMost",
    ),
    (
        rules.own_names,
        {
            "csrc/plan/a.cc": "namespace {\nvoid f(int i) {}\n}  // namespace\n",
            "csrc/plan/b.cc": "namespace {\nvoid f(long i) {}\n}  // namespace\nvoid f(int i) {}\n",
            "csrc/base/c.cc": "namespace {\nvoid f(int i) {}\n}  // namespace\n",
        },
        None,
    ),
    (
        rules.virtuals,
        {"csrc/transport/transport.h": "  virtual void f() = 0;\n" * 22},
        "csrc/transport/transport.h:1: 22 virtual functions, more than 21",
    ),
    (
        rules.virtuals,
        {"csrc/transport/transport.h": "// virtual\n" + "  virtual void f() = 0;\n" * 21},
        None,
    ),
]


@pytest.mark.parametrize(("rule", "files", "complaint"), CASES)
def test_planted(
    tmp_path: Path, rule: rules.Rule, files: dict[str, str], complaint: str | None
) -> None:
    check(list(rule(plant(tmp_path, files))), complaint)


def check(complaints: list[str], complaint: str | None) -> None:
    if complaint is None:
        assert complaints == []
    else:
        assert len(complaints) == 1
        assert complaint in complaints[0]


def test_every_rule_is_planted() -> None:
    assert {rule for rule, _, complaint in CASES if complaint} == set(rules.RULES)


@pytest.mark.parametrize(
    ("text", "functions"),
    [
        ("int f() { return 1; }\n", [Function(1, 1)]),
        (
            "namespace a {\nstruct B {\n  int f() {\n    return 1'000;\n  }\n};\n}\n",
            [Function(3, 3)],
        ),
        ("class alignas(64) A {\n  int x_ = 0;\n  void g();\n};\n", []),
        ("A::A()\n    : a_{1}, b_{2} {\n  if (x) {\n    y();\n  }\n}\n", [Function(1, 6)]),
        ("const int kTable[] = {\n    1,\n    2,\n};\nint f() {\n}\n", [Function(5, 2)]),
        ("template <class T>\nvoid f(T t) {\n  auto g = [&] {\n  };\n}\n", [Function(1, 5)]),
        ("void f() {\n  puts(\"}{{\");  // }\n  char c = '}';\n}\n", [Function(1, 4)]),
        ("enum class E : int { A, B };\nvoid f() const {\n}\n", [Function(2, 2)]),
        ("#define M(x) \\\n  do { x; \\\n  } while (0)\nvoid f() {\n}\n", [Function(4, 2)]),
    ],
)
def test_cpp_functions(text: str, functions: list[Function]) -> None:
    assert list(cpp_functions(text)) == functions


@pytest.mark.parametrize(
    ("text", "members"),
    [
        ("int a_ = 0;\n  const B& b_;\n  std::map<int, int> c_, d_{1};\n", "a_ b_ c_ d_"),
        ("public:\n  A() : b_{1}, c_(2) { int d; }\n private:\n  int b_{1};\n  int c_;\n", "b_ c_"),
        ("std::function<void(int)> a_{};\n  int b_[2][3] = {1};\n  uint8_t c_ : 3;\n", "a_ b_ c_"),
        ("int f(int a = g(1), B b = {});\n  int g() const { return 1; }\n  int a_;\n", "a_"),
        (
            "static constexpr int kA = 1;\n  static int b_;\n  using C = D;\n  friend D;\n",
            "",
        ),
        ("enum class B : int { X, Y };\n  struct C;\n  struct D { int x; };\n  D d_;\n", "d_"),
        ("bool operator==(const A&) const = default;\n  template <class T>\n  void f(T t);\n", ""),
        ("decltype(&::open) open = nullptr;\n  int (*close)(int);\n", "open"),
        ("alignas(64) std::atomic<int> a_{0};\n  [[maybe_unused]] int b_ = 1 << 2;\n", "a_ b_"),
        ("F a_ = [](int x) { return x; };\n  int b_;  // int c_;\n", "a_ b_"),
    ],
)
def test_data_members(text: str, members: str) -> None:
    text = f"namespace n {{\ntemplate <class T>\nclass A final : public B<T> {{\n  {text}}};\n}}\n"
    found = {one.name: one.members for one in cpp_classes(text)}
    assert found["A"] == members.split()


def test_python_functions() -> None:
    text = "class A:\n    def f(self):\n        def g():\n            pass\n        return g\n"
    assert sorted(f.lines for f in python_functions(text)) == [2, 4]
