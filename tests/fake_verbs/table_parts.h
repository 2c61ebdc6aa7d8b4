// The functions of the table, by what they are about.
#pragma once

#include "csrc/transport/verbs/device/table.h"

namespace rdmacoll::fake {

void fill_devices(VerbsTable* table);
void fill_memory(VerbsTable* table);
void fill_completions(VerbsTable* table);
void fill_queue_pairs(VerbsTable* table);
void fill_posting(VerbsTable* table);

}  // namespace rdmacoll::fake
