"""The bugs that are planted into the engine, and in which files: mutants.py has them found."""

from __future__ import annotations

from mutant import Mutant

PORT = "csrc/engine/channel/port.cc"
POINT_TO_POINT = "csrc/engine/p2p/p2p.cc"
EXECUTOR = "csrc/engine/collective/executor.cc"
P2P_DATA = "csrc/engine/p2p/p2p_data.cc"
PLACEMENT = "csrc/engine/collective/direct_placement.cc"
LEADERS = "csrc/plan/layered/leaders.cc"
LIFE = "csrc/engine/group/group_life.cc"
MEMBERS = "csrc/engine/group/members.cc"
SHRINKING = "csrc/engine/shrinking.cc"
SHRINK_STATE = "csrc/engine/failure/shrink_state.cc"
QUEUE = "csrc/engine/group/collective_queue.cc"
LINKED_GROUP = "csrc/engine/connect/linked_group.cc"
SNAPSHOT = "csrc/remote/snapshot.cc"
READ_WRITE = "csrc/engine/session/read_write.cc"
UPDATE_WORD = "csrc/engine/session/update_word.cc"
MOVER = "csrc/engine/session/mover.cc"
SESSION = "csrc/engine/session/session.cc"
SESSIONS = "csrc/engine/session/sessions.cc"
CLOSING = "csrc/engine/session/sessions_closing.cc"


ENGINE = (
    Mutant(
        "a snapshot is good although its buffer was begun anew",
        SNAPSHOT,
        "if (landed().begun.load(std::memory_order_relaxed) < reading_ + 2) {",
        "if (landed().begun.load(std::memory_order_relaxed) < reading_ + 3) {",
    ),
    Mutant(
        "a snapshot looks again for what was begun while its data are under way",
        SNAPSHOT,
        "while (mover_.is_done()) {",
        "while (step_ == Step::Data ? mover_.is_posted() : mover_.is_done()) {",
    ),
    Mutant(
        "of the parts of a snapshot the first alone is read",
        MOVER,
        "range_ = ranges_[next_++];",
        "range_ = ranges_[std::exchange(next_, ranges_.size())];",
    ),
    Mutant(
        "the data of a snapshot are taken for read when they are asked for",
        MOVER,
        "while (!pieces_.empty() && pieces_.front().ticket.done()) {",
        "while (!pieces_.empty()) {",
    ),
    Mutant(
        "a write is notified of before all of it has left",
        READ_WRITE,
        "if (mover_.is_posted() && notification_.counter > 0 && way.may_notify) {",
        "if (notification_.counter > 0 && way.may_notify) {",
    ),
    Mutant(
        "a write is notified of before those that were asked for before it",
        READ_WRITE,
        "if (mover_.is_posted() && notification_.counter > 0 && way.may_notify) {",
        "if (mover_.is_posted() && notification_.counter > 0) {",
    ),
    Mutant(
        "an update is asked for again as long as it is not answered",
        UPDATE_WORD,
        "is_posted_ = true;",
        "",
    ),
    Mutant(
        "what was there before an update is taken before it has come",
        UPDATE_WORD,
        "if (!ticket_.done() || !transport.peer_status(way.link.peer).ok()) return state;",
        "if (!transport.peer_status(way.link.peer).ok()) return state;",
    ),
    Mutant(
        "a session is closed though one of the two uses it",
        CLOSING,
        "(!known.is_used() && known.session()->say_close());",
        "known.session()->say_close();",
    ),
    Mutant(
        "who has asked for the end of a session does not take a new one for the answer",
        CLOSING,
        "if (known != nullptr && known->state == KnownSession::State::Asks) close(*known);",
        "",
    ),
    Mutant(
        "a session is used though this process has said that it does not use it",
        SESSIONS,
        "if (known != nullptr && known->state == KnownSession::State::Open) {",
        "if (known != nullptr && known->state != KnownSession::State::Closed) {",
    ),
    Mutant(
        "a message that comes after the word of it is not looked for",
        SESSION,
        "return due <= kMessages.depth ? due : 0;",
        "return due * 0;",
    ),
    Mutant(
        "all peers write into the room that a rank has for itself",
        LINKED_GROUP,
        "link->room = rooms_.room_of(room);",
        "link->room = rooms_.room_of(room * 0 + kOwnRoom);",
    ),
    Mutant(
        "an operation does not ask for the peers that it has not met",
        QUEUE,
        "for (const uint16_t peer : plan.peers) links_.want(peer);",
        "",
    ),
    Mutant(
        "a slot is reused before it is given back",
        PORT,
        "if (!has_room()) return false;",
        "",
    ),
    Mutant(
        "a message is taken that has not come",
        PORT,
        "return line.counter.load(std::memory_order_acquire) == received_ + 1 ? &line : nullptr;",
        "return &line;",
    ),
    Mutant(
        "credit is returned too late",
        PORT,
        "if (consumed_ - credited_ < memory_.depth() / 2 && credited_ >= zero_copy_read_) return;",
        "if (consumed_ - credited_ < memory_.depth() + 1 && credited_ >= zero_copy_read_) return;",
    ),
    Mutant(
        "old credit counts as new",
        PORT,
        "if (step <= sent_ - returned_) returned_ += step;",
        "returned_ += step % 16;",
    ),
    Mutant(
        "credit that has lain for hundreds of messages counts as new",
        PORT,
        "const uint32_t step = credit - static_cast<uint32_t>(returned_);",
        "const uint32_t step = static_cast<uint8_t>(credit - static_cast<uint32_t>(returned_));",
    ),
    Mutant(
        "credit in messages that are not taken is overlooked",
        PORT,
        "const uint64_t come = arrived();",
        "const uint64_t come = 0;",
    ),
    Mutant(
        "a message that was placed is looked for in the slot",
        PORT,
        "if (put_posted_ && put_placed_) where = kPlaced;",
        "",
    ),
    Mutant(
        "an eager message is sent though no slot is free",
        POINT_TO_POINT,
        "if (!out.can_send()) return true;",
        "",
    ),
    Mutant(
        "the last byte of a copy is left out",
        EXECUTOR,
        "copy_bytes(to, from, from_piece.bytes, stores_for(operands[i]));",
        "copy_bytes(to, from, from_piece.bytes - 1, stores_for(operands[i]));",
    ),
    Mutant(
        "an operation ends while its source is read",
        EXECUTOR,
        "if (source) keep_unsettled(step.channel, step.peer);",
        "",
    ),
    Mutant(
        "a send ends while its receiver reads its tensor",
        P2P_DATA,
        "return out.has_them_back();",
        "return true;",
    ),
    Mutant(
        "a send ends while a device reads its tensor",
        P2P_DATA,
        "return op.is_placed() || (op.is_zero_copy && !port(kDataChannel, peer).is_mapped());",
        "return op.is_placed();",
    ),
    Mutant(
        "the tensor of a sender that gave up is trusted",
        P2P_DATA,
        "if (is_zero_copy && links_.has_given_up(peer.rank)) return false;",
        "",
    ),
    Mutant(
        "a source is trusted after its rank gave up",
        EXECUTOR,
        "if (zero_copy && links_.has_given_up(step.peer)) return false;",
        "",
    ),
    Mutant(
        "results are placed one byte off",
        PLACEMENT,
        "given.grant.offset = part->offset + static_cast<uint64_t>(given.block_at - given.begin);",
        "given.grant.offset = part->offset + 1;",
    ),
    Mutant(
        "a failed operation ends while peers may write",
        LIFE,
        "runs && executor_.may_write_output(peer) && !members_.links().has_given_up(peer);",
        "false;",
    ),
    Mutant(
        "a failed operation ends while a device reads its input",
        LIFE,
        "const bool reads = (runs && executor_.is_sending_to(peer)) || p2p_.is_sending_to(peer);",
        "const bool reads = false;",
    ),
    Mutant(
        "a peer that is gone is not cut off",
        MEMBERS,
        "return link.transport->fence(link.peer, Deadline::after_ms(clock_, kFenceMs)).ok();",
        "return true;",
    ),
    Mutant(
        "a smaller group is decided before all hold it",
        SHRINKING,
        "return said && said->excluded == excluded_ && said->stage >= stage_;",
        "return said && said->excluded == excluded_ &&"
        " (said->stage >= stage_ || stage_ == ShrinkStage::Made);",
    ),
    Mutant(
        "what others have decided is overlooked",
        SHRINKING,
        "if (adopted.value()) return Turn::Over;",
        "",
    ),
    Mutant(
        "a group that was made is forgotten when one more dies",
        SHRINKING,
        "excluded_ = std::move(excluded);",
        "excluded_ = std::move(excluded); made_.clear();",
    ),
    Mutant(
        "who has decided and left is taken for dead",
        SHRINKING,
        "if (gone_[rank] || (said && said->stage == ShrinkStage::Declined)) {",
        "if (group_.members().is_gone(rank) || (said && said->stage == ShrinkStage::Declined)) {",
    ),
    Mutant(
        "who is not linked yet is taken for a fault of one's own",
        SHRINKING,
        "if (opens && is_not_yet) return false;",
        "",
    ),
    Mutant(
        "who cannot take part keeps silent",
        SHRINKING,
        "RDMACOLL_RETURN_IF_ERROR(say(ShrinkStage::Declined));",
        "",
    ),
    Mutant(
        "half of a statement is believed",
        SHRINK_STATE,
        "words[0] != sum_of(std::span(words).subspan(1, count - 1))) {",
        "false) {",
    ),
    # Those that show on several hosts alone.
    Mutant(
        "what a rank sends to itself is announced by nothing but its number",
        PORT,
        "store(*reinterpret_cast<Line*>(link_.slab.base + line), counter, header);",
        "store(*reinterpret_cast<Line*>(link_.slab.base + line), counter, Header{});",
    ),
    Mutant(
        "a part of a neighbour's buffer is looked for at its beginning",
        EXECUTOR,
        "return piece.offset - tiling_->piece({operand.source_first, 1}, tile).offset;",
        "return 0;",
    ),
    Mutant(
        "a part of a message is written at its beginning",
        EXECUTOR,
        "return port(operand.channel, operand.rank).outgoing(part.bytes) + part.offset;",
        "return port(operand.channel, operand.rank).outgoing(part.bytes);",
    ),
    Mutant(
        "the own host's sum is not waited for",
        LEADERS,
        "plan.wait(Counter::Data, rank, kSums, kAll);",
        "",
    ),
)
