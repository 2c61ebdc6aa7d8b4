// Errand: what a worker asks one server to do, as a part of an operation, and what is needed to ask
// another one if that server is lost, or has given the bucket away.
// Floor: ps/client. Thread: under the client's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/memory/copy.h"
#include "csrc/ps/client/batch.h"
#include "csrc/ps/table/bucket_map.h"
#include "csrc/ps/table/table_spec.h"
#include "csrc/ps/wire/record.h"

namespace rdmacoll::ps {

struct Errand {
  BatchPtr batch;
  RecordHead head;
  // Of what is answered: where it goes, or each of its rows.
  std::byte* into = nullptr;
  std::vector<uint32_t> rows{};
  std::shared_ptr<const void> keeps{};  // what that is in, if nobody else keeps it
  std::span<const float> lent{};        // of a push, the values that were not sent
  bool awaits = false;  // of a pull: it asks whether its step is reached, and reads it then
  Stores stores = Stores::Cached;  // of a pull, to where it goes, if that is read without asking
  uint64_t redone = 0;             // pushes that had been asked again when it was asked

  // What is answered, and how many bytes that are at most.
  RecordKind answer() const;
  uint64_t answer_bytes(const TableSpec& spec) const;
  // What is wrong with the body of the answer.
  Status take(std::span<const std::byte> answered, const TableSpec& spec) const;
};

// One that is to be asked again, with the body that was sent.
struct Redo {
  Errand errand;
  std::vector<std::byte> body;
};

// What is answered of a row to a request of this kind.
uint64_t answered_row_floats(RecordKind kind, const TableSpec& spec);

// Of nothing, with the number of a push of a dense table that was refused. body: what was sent.
Redo filler(const RecordHead& refused, std::span<const std::byte> body);
// As another server is asked: with the values of a push that were lent, and for those of a pull.
Redo for_another(Redo redo);
std::vector<uint32_t> buckets_of(const Redo& redo);
// The same by the servers that have its buckets now.
std::map<ServerId, Redo> split(const Redo& redo, const TableSpec& spec, const BucketMap& map);

}  // namespace rdmacoll::ps
