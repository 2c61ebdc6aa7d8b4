"""A process that a verbs transport can meet, in pyverbs: its own address, handshakes, queue
pairs, signal ring and records, and nothing of ours but what verbs_wire.py says.

Floor: tests.
"""

import secrets
import socket
import time

import pyverbs.enums as e
from pyverbs.addr import AH, GID, AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR
from transport_shell import TransportShell
from verbs_wire import (
    BOTH,
    HELLO_BYTES,
    LINE_BYTES,
    MAILBOX_BYTES,
    NOTHING,
    RECEIVE_BATCH,
    RECEIVE_DEPTH,
    SIGNAL_BYTES,
    YOURS,
    Address,
    Hello,
    Key,
    SignalRecord,
    immediate,
)

PORT = 1
LIMIT_S = 30  # for any completion
GREET_AGAIN_S = 0.05
GRH_BYTES = 40  # in front of a datagram
LISTENER_RECEIVES = 16
SCRATCH_BYTES = 1 << 20
ACCESS = e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ
# A dead or deaf peer shows after 67 ms x 4, and one that is not ready after 4 tries.
TIMEOUT_EXPONENT = 14
RETRIES = 3


class Peer:
    """Its region is `size` bytes; `stripes` is the number of its queue pairs."""

    def __init__(self, device: str, size: int = 1 << 20, stripes: int = 1) -> None:
        self._context = Context(name=device)
        self._pd = PD(self._context)
        attributes = self._context.query_port(PORT)
        self._gid_index, gid = self._routed_gid(attributes.gid_tbl_len)
        self._mtu = attributes.active_mtu
        self._signal_ring = MR(self._pd, MAILBOX_BYTES, ACCESS)
        self._signal_ring.write(bytes(MAILBOX_BYTES), MAILBOX_BYTES)
        self._scratch = MR(self._pd, SCRATCH_BYTES, ACCESS)
        self.region = MR(self._pd, size, ACCESS)
        self.region.write(bytes(size), size)

        self._sequence = secrets.randbits(24)
        self._completions = CQ(self._context, 4096)
        self._queue_pairs = [self._make_queue_pair() for _ in range(stripes)]
        self._stripe_of = {qp.qp_num: stripe for stripe, qp in enumerate(self._queue_pairs)}
        self._arrivals: list[list[tuple[int, int]]] = [[] for _ in range(stripes)]
        self._signals_sent = 0
        self._letters_taken = 0

        self._listener_key = secrets.randbits(31)
        self._listener_completions = CQ(self._context, 64)
        self._listener = self._make_listener()
        self.address = Address(
            process=secrets.token_bytes(16),
            gid=gid,
            pid=0,
            listener=self._listener.qp_num,
            listener_key=self._listener_key,
            lid=attributes.lid,
            mtu=self._mtu,
            is_ethernet=attributes.link_layer == e.IBV_LINK_LAYER_ETHERNET,
            host=b"written-with-pyverbs",
        )

    def close(self) -> None:
        self._context.close()  # and all that was made of it

    def _routed_gid(self, count: int) -> tuple[int, bytes]:
        for index in range(count):
            gid = socket.inet_pton(socket.AF_INET6, self._context.query_gid(PORT, index).gid)
            if gid.startswith(bytes(10) + b"\xff\xff"):  # holds an IPv4 address
                return index, gid
        raise AssertionError(f"{self._context.name} has no GID with an IPv4 address")

    def _make_queue_pair(self) -> QP:
        depth = RECEIVE_DEPTH + RECEIVE_BATCH
        cap = QPCap(max_send_wr=1024, max_recv_wr=depth, max_send_sge=1, max_recv_sge=1)
        made = QPInitAttr(
            qp_type=e.IBV_QPT_RC, scq=self._completions, rcq=self._completions, cap=cap
        )
        attributes = QPAttr(port_num=PORT)
        attributes.qp_access_flags = ACCESS
        queue_pair = QP(self._pd, made, attributes)
        unused = SGE(self._scratch.buf, 0, self._scratch.lkey)  # pyverbs insists on one
        for _ in range(depth):
            queue_pair.post_recv(RecvWR(wr_id=0, num_sge=1, sg=[unused]))
        return queue_pair

    # --- meeting --------------------------------------------------------------------------------

    def _make_listener(self) -> QP:
        cap = QPCap(max_send_wr=16, max_recv_wr=LISTENER_RECEIVES, max_send_sge=1, max_recv_sge=1)
        made = QPInitAttr(
            qp_type=e.IBV_QPT_UD,
            scq=self._listener_completions,
            rcq=self._listener_completions,
            cap=cap,
        )
        attributes = QPAttr(port_num=PORT)
        attributes.qkey = self._listener_key
        listener = QP(self._pd, made, attributes)
        self._listener_space = GRH_BYTES + HELLO_BYTES
        self._listener_memory = MR(self._pd, self._listener_space * (LISTENER_RECEIVES + 1), ACCESS)
        for index in range(LISTENER_RECEIVES):
            self._post_listener_receive(listener, index)
        return listener

    def _post_listener_receive(self, listener: QP, index: int) -> None:
        address = self._listener_memory.buf + index * self._listener_space
        sge = SGE(address, self._listener_space, self._listener_memory.lkey)
        listener.post_recv(RecvWR(wr_id=index, num_sge=1, sg=[sge]))

    def meet(self, shell: TransportShell, limit_ms: int = 20_000) -> int:
        """Both sides connect; how the shell's transport calls this peer."""
        self.owner = Address.unpack(shell.address)
        self._joined_to: Hello | None = None
        self._knows_me = False
        self._way = AH(self._pd, attr=self._address_vector())
        shell.ask("connect", self.address.pack().hex(), limit_ms)
        while not shell.answered(GREET_AGAIN_S):
            self._greet()
            time.sleep(GREET_AGAIN_S)
            self._answer_datagrams()
        peer = int(shell.answer())
        assert self._joined_to is not None
        return peer

    def _address_vector(self) -> AHAttr:
        gid = GID(self.owner.gid.hex(":", 2))
        route = GlobalRoute(dgid=gid, sgid_index=self._gid_index, hop_limit=64)
        return AHAttr(port_num=PORT, is_global=1, gr=route, dlid=self.owner.lid)

    def _greet(self) -> None:
        hello = Hello(
            sender=self.address,
            receiver=self.owner.process,
            signal_ring=self._signal_ring.buf,
            signal_ring_rkey=self._signal_ring.rkey,
            sequence=self._sequence,
            numbers=tuple(qp.qp_num for qp in self._queue_pairs),
            knows=BOTH if self._knows_me else YOURS if self._joined_to else NOTHING,
        )
        offset = LISTENER_RECEIVES * self._listener_space
        self._listener_memory.write(hello.pack(), HELLO_BYTES, offset)
        sge = SGE(self._listener_memory.buf + offset, HELLO_BYTES, self._listener_memory.lkey)
        request = SendWR(wr_id=LISTENER_RECEIVES, num_sge=1, sg=[sge])
        request.set_wr_ud(self._way, self.owner.listener, self.owner.listener_key)
        self._listener.post_send(request)

    def _answer_datagrams(self) -> None:
        for completion in self._listener_completions.poll(LISTENER_RECEIVES)[1]:
            assert completion.status == e.IBV_WC_SUCCESS
            if completion.wr_id == LISTENER_RECEIVES:
                continue
            offset = completion.wr_id * self._listener_space + GRH_BYTES
            hello = Hello.unpack(self._listener_memory.read(HELLO_BYTES, offset))
            self._post_listener_receive(self._listener, completion.wr_id)
            assert hello.sender.process == self.owner.process
            assert hello.receiver == self.address.process
            if self._joined_to is None:
                self._join(hello)
            self._knows_me |= hello.knows != NOTHING
            if hello.knows != BOTH:
                self._greet()

    def _join(self, hello: Hello) -> None:
        self._joined_to = hello
        assert len(hello.numbers) == len(self._queue_pairs)
        for queue_pair, number in zip(self._queue_pairs, hello.numbers, strict=True):
            attributes = QPAttr(port_num=PORT)
            attributes.qp_access_flags = ACCESS
            attributes.dest_qp_num = number
            attributes.path_mtu = min(self._mtu, self.owner.mtu)
            attributes.rq_psn = hello.sequence
            attributes.sq_psn = self._sequence
            attributes.ah_attr = self._address_vector()
            attributes.min_rnr_timer = 1
            attributes.max_dest_rd_atomic = attributes.max_rd_atomic = 4
            attributes.timeout = TIMEOUT_EXPONENT
            attributes.retry_cnt = attributes.rnr_retry = RETRIES
            queue_pair.to_rts(attributes)

    # --- data -----------------------------------------------------------------------------------

    def key(self, region: int) -> bytes:
        """Of its region, under this id."""
        return Key(
            self.address.process, 1, self.region.buf, self.region.length, region, self.region.rkey
        ).pack()

    def write(self, data: bytes, address: int, rkey: int, stripe: int = 0) -> int:
        """The status of its completion; so do all that follow."""
        self._post(e.IBV_WR_RDMA_WRITE, data, address, rkey, stripe)
        return self._finish()

    def read(self, size: int, address: int, rkey: int) -> tuple[int, bytes]:
        self._post(e.IBV_WR_RDMA_READ, bytes(size), address, rkey)
        return self._finish(), self._scratch.read(size, 0)

    def notify(self, number: int, stripe: int = 0) -> int:
        """A notice, or a mark; of stripe 0 it takes the place of a record."""
        self._post(e.IBV_WR_RDMA_WRITE_WITH_IMM, b"", 0, 0, stripe, number)
        self._signals_sent += stripe == 0
        return self._finish()

    def post_signal(self, key: Key, offset: int, record: SignalRecord) -> None:
        """Finished by finish_signals()."""
        assert self._joined_to is not None
        place = self._signals_sent % RECEIVE_DEPTH * SIGNAL_BYTES
        address = self._joined_to.signal_ring + place
        number = immediate(key.region, offset // LINE_BYTES)
        self._post(
            e.IBV_WR_RDMA_WRITE_WITH_IMM,
            record.pack(),
            address,
            self._joined_to.signal_ring_rkey,
            0,
            number,
        )
        self._signals_sent += 1

    def signal(self, key: Key, offset: int, record: SignalRecord) -> int:
        self.post_signal(key, offset, record)
        return self._finish()

    def finish_signals(self, count: int) -> list[int]:
        return [self._finish() for _ in range(count)]

    def take_signal(self) -> tuple[tuple[int, int], SignalRecord]:
        """The next one that has come, and the region and line that it names."""
        (place,) = self.arrivals_on(stripe=0, count=1)
        offset = self._letters_taken % RECEIVE_DEPTH * SIGNAL_BYTES
        self._letters_taken += 1
        return place, SignalRecord.unpack(self._signal_ring.read(SIGNAL_BYTES, offset))

    def arrivals_on(self, stripe: int, count: int) -> list[tuple[int, int]]:
        """What the next immediates on a queue pair name: a region and a line."""
        end = time.monotonic() + LIMIT_S
        arrived = self._arrivals[stripe]
        while len(arrived) < count:
            assert time.monotonic() < end, f"{len(arrived)} of {count} arrivals in {LIMIT_S} s"
            assert self._poll() is None
        taken, self._arrivals[stripe] = arrived[:count], arrived[count:]
        return taken

    def _post(
        self, opcode: int, data: bytes, address: int, rkey: int, stripe: int = 0, number: int = 0
    ) -> None:
        self._scratch.write(data, len(data), 0)
        request = SendWR(
            wr_id=1,
            opcode=opcode,
            num_sge=1,
            sg=[SGE(self._scratch.buf, len(data), self._scratch.lkey)],
            imm_data=socket.htonl(number),
            send_flags=e.IBV_SEND_SIGNALED,
        )
        request.set_wr_rdma(rkey, address)
        self._queue_pairs[stripe].post_send(request)

    def _finish(self) -> int:
        """The status of the next request that is done."""
        end = time.monotonic() + LIMIT_S
        while (status := self._poll()) is None:
            assert time.monotonic() < end, f"no completion in {LIMIT_S} s"
        return status

    def _poll(self) -> int | None:
        """The status of a request that is done; receives go to the arrivals."""
        for completion in self._completions.poll(1)[1]:
            if completion.wr_id == 1:
                return int(completion.status)
            if completion.status == e.IBV_WC_SUCCESS:
                number = socket.ntohl(completion.imm_data)
                stripe = self._stripe_of[completion.qp_num]
                self._arrivals[stripe].append((number >> 20, number & 0xFFFFF))
        return None
