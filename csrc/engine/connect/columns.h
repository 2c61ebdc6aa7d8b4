// Columns: many strings of one size, kept by their columns, the bytes at one place of each. Ranks'
// records are alike in most: a column that is the same in all strings is kept once, one that is the
// same in all strings of a part (an island) once for each part, and equal columns are one.
// Floor: engine/connect. Thread: immutable once built.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rdmacoll {

class Columns {
 public:
  // A string, and of which part it is.
  struct Row {
    std::string_view text;
    uint16_t part = 0;
  };
  // At least one row, at most 65,536; all of one size.
  explicit Columns(const std::vector<Row>& rows);

  std::string row(uint32_t index) const;

 private:
  enum class Kept : uint8_t { Once, ByPart, ByRow };
  struct Column {
    Kept kept = Kept::Once;
    uint16_t index = 0;  // among those that are kept so
  };
  // Bytes of several columns, one row after the other.
  struct Table {
    uint16_t width = 0;
    std::vector<char> bytes{};
    char at(uint32_t row, uint16_t column) const { return bytes[size_t{row} * width + column]; }
  };
  static Table table_of(const std::vector<std::string>& columns, size_t rows);

  std::string first_;              // the first row: what is kept once
  std::vector<Column> columns_;    // by place in a row
  std::vector<uint16_t> part_of_;  // by row: counted in the order in which they come
  Table by_part_;
  Table by_row_;
};

}  // namespace rdmacoll
