"""The bugs that are planted into what orders operations by name: mutants.py has them found."""

from __future__ import annotations

from mutant import Mutant

SEQUENCER = "csrc/order/sequencer.cc"
SUBMITTER = "csrc/order/submitter.cc"
REQUEST = "csrc/order/named_request.cc"


NAMES = (
    Mutant(
        "a name runs although a rank has not submitted it",
        SEQUENCER,
        "if (name.count == 0 || name.count + joined_count_ < ranks_) return false;",
        "if (name.count + 1 + joined_count_ < ranks_) return false; else return true;",
    ),
    Mutant(
        "a rank that has joined counts twice, as it had submitted the name before",
        SEQUENCER,
        "return lacks_none_but_joined(name.submitted);",
        "return true;",
    ),
    Mutant(
        "a name that waits is not looked at when a rank joins",
        SEQUENCER,
        "if (is_complete(*name)) complete.push_back(name.get());",
        "",
    ),
    Mutant(
        "what a rank has changed is not told to the others",
        SEQUENCER,
        "name->has_changed = true;",
        "",
    ),
    Mutant(
        "a bit is an answer although who had joined meanwhile has said something else before",
        SEQUENCER,
        "name.has_changed = name.has_changed && name.count < ranks_;",
        "name.has_changed = false;",
    ),
    Mutant(
        "what ranks have said of a name counts for its next submission",
        SEQUENCER,
        "if (name.submitted[rank] != nullptr) name.last[rank] = std::move(name.submitted[rank]);",
        "if (name.submitted[rank] != nullptr) name.last[rank] = name.submitted[rank];",
    ),
    Mutant(
        "a bit stands for what a rank had said first",
        SEQUENCER,
        "if (name.submitted[rank] != nullptr) name.last[rank] = std::move(name.submitted[rank]);",
        "if (name.last[rank] == nullptr) name.last[rank] = std::move(name.submitted[rank]);",
    ),
    Mutant(
        "a name that was refused waits for the ranks that are to submit it again",
        SEQUENCER,
        "name.submitted.assign(ranks_, nullptr);",
        "",
    ),
    Mutant(
        "a gather runs although a rank has joined",
        SEQUENCER,
        "if (kind == NamedKind::AllReduce || kind == NamedKind::Barrier) return Status();",
        "return Status();",
    ),
    Mutant(
        "the ranks that have joined are still taken for joined when all have",
        SEQUENCER,
        "joined_.assign(ranks_, false);",
        "",
    ),
    Mutant(
        "a rank that was refused says by a bit what the sequencer has forgotten",
        SUBMITTER,
        "known_.erase(name);",
        "",
    ),
    Mutant(
        "a rank says by a bit what has changed",
        SUBMITTER,
        "if (known != known_.end() && known->second.own == request) {",
        "if (known != known_.end() && known->second.own) {",
    ),
    Mutant(
        "a name is known by what another rank has said of it",
        SUBMITTER,
        "if (own.value()) known.own = in_flight_.at(name).request;",
        "known.own = agreed->request;",
    ),
    Mutant(
        "a name may be submitted again while it is in flight",
        SUBMITTER,
        "if (!is_new) {",
        "if (false) {",
    ),
    Mutant(
        "a rank goes on as one that has joined when all have",
        SUBMITTER,
        "has_joined_ = false;",
        "",
    ),
    Mutant(
        "ranks are not compared in the sizes of their tensors",
        REQUEST,
        "if (!is_common_equal(one_.kind, mine.dims, its.dims)) {",
        "if (false) {",
    ),
)
