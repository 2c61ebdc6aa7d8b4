// Columns. Floor: engine/connect. Thread: see columns.h.
#include "csrc/engine/connect/columns.h"

#include <algorithm>
#include <map>

#include "csrc/base/check.h"

namespace rdmacoll {
namespace {

// Columns that differ, in the order in which they come.
class Distinct {
 public:
  uint16_t add(std::string column) {
    const auto [found, is_new] =
        index_.try_emplace(std::move(column), static_cast<uint16_t>(columns_.size()));
    if (is_new) columns_.push_back(found->first);
    return found->second;
  }
  const std::vector<std::string>& all() const { return columns_; }

 private:
  std::map<std::string, uint16_t> index_;
  std::vector<std::string> columns_;
};

bool is_constant(const std::string& column) {
  return column.find_first_not_of(column.front()) == std::string::npos;
}

}  // namespace

Columns::Columns(const std::vector<Row>& rows) : first_(rows.at(0).text) {
  std::map<uint16_t, uint16_t> parts;
  std::vector<uint32_t> first_of_part;  // rows
  part_of_.reserve(rows.size());
  columns_.reserve(first_.size());
  for (const Row& row : rows) {
    RDMACOLL_CHECK(row.text.size() == first_.size());
    const auto [part, is_new] = parts.try_emplace(row.part, static_cast<uint16_t>(parts.size()));
    if (is_new) first_of_part.push_back(static_cast<uint32_t>(part_of_.size()));
    part_of_.push_back(part->second);
  }
  Distinct by_part, by_row;
  for (size_t place = 0; place < first_.size(); ++place) {
    std::string column, of_parts;
    for (const Row& row : rows) column += row.text[place];
    for (const uint32_t row : first_of_part) of_parts += column[row];
    bool is_by_part = true;
    for (size_t row = 0; is_by_part && row < rows.size(); ++row) {
      is_by_part = column[row] == of_parts[part_of_[row]];
    }
    if (is_constant(column)) {
      columns_.push_back({});
    } else if (is_by_part) {
      columns_.push_back({Kept::ByPart, by_part.add(std::move(of_parts))});
    } else {
      columns_.push_back({Kept::ByRow, by_row.add(std::move(column))});
    }
  }
  by_part_ = table_of(by_part.all(), first_of_part.size());
  by_row_ = table_of(by_row.all(), rows.size());
}

Columns::Table Columns::table_of(const std::vector<std::string>& columns, size_t rows) {
  Table table{.width = static_cast<uint16_t>(columns.size())};
  table.bytes.reserve(rows * columns.size());
  for (size_t row = 0; row < rows; ++row) {
    for (const std::string& column : columns) table.bytes.push_back(column[row]);
  }
  return table;
}

std::string Columns::row(uint32_t index) const {
  std::string text = first_;
  for (size_t place = 0; place < text.size(); ++place) {
    const auto [kept, column] = columns_[place];
    if (kept == Kept::ByPart) text[place] = by_part_.at(part_of_[index], column);
    if (kept == Kept::ByRow) text[place] = by_row_.at(index, column);
  }
  return text;
}

}  // namespace rdmacoll
