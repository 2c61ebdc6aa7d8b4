// Cards. Floor: engine/connect. Thread: see cards.h.
#include "csrc/engine/connect/cards.h"

#include <map>

namespace rdmacoll {

Cards::Cards(const std::vector<std::string>& records, const Islands& islands) {
  struct OfOneSize {
    uint16_t table = 0;
    std::vector<Columns::Row> rows{};
  };
  std::map<size_t, OfOneSize> by_size;
  std::vector<const OfOneSize*> tables;
  places_.reserve(records.size());
  for (uint32_t rank = 0; rank < records.size(); ++rank) {
    const auto [found, is_new] = by_size.try_emplace(records[rank].size());
    OfOneSize& alike = found->second;
    if (is_new) {
      alike.table = static_cast<uint16_t>(tables.size());
      tables.push_back(&alike);
    }
    places_.push_back({alike.table, static_cast<uint16_t>(alike.rows.size())});
    alike.rows.push_back({records[rank], islands.of(rank)});
  }
  tables_.reserve(tables.size());
  for (const OfOneSize* alike : tables) tables_.emplace_back(alike->rows);
}

GroupRecord Cards::of(uint32_t rank) const {
  const auto [table, row] = places_[rank];
  return GroupRecord::decode(tables_[table].row(row)).take();
}

}  // namespace rdmacoll
