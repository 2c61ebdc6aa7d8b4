#!/bin/bash
# Does RDMA work here at all, without us? libibverbs' own ibv_rc_pingpong, between the first device
# of this host and the last, or that of another host that ssh reaches: `pingpong.sh [host]`.
set -euo pipefail
cd "$(dirname "$0")/../.."
port=18515
limit_s=60

arguments() {  # arguments <device>; RoCE needs the index of an address that is routed
  local gids=/sys/class/infiniband/$1/ports/1/gids gid
  # A link-local one may have :ffff: in it, too: of a card whose third byte is ff.
  gid=$(grep -l "^0000:.*:ffff:" "$gids"/* 2>/dev/null | sort -V | head -1)
  echo "-p $port -d $1 -n 100 ${gid:+-g $(basename "$gid")}"
}

mapfile -t devices < <(ls /sys/class/infiniband)
last=${devices[-1]:?no RDMA device}
if [ "${1:-}" = --serve ]; then
  # shellcheck disable=SC2046
  exec timeout $limit_s ibv_rc_pingpong $(arguments "$last")
fi

peer=${1:-localhost}
there=()
[ $# = 0 ] || there=(ssh "$peer")
"${there[@]}" "$PWD/tests/rdma/pingpong.sh" --serve >/dev/null &
server=$!
until "${there[@]}" ss -Hltn "sport = $port" | grep -q .; do
  kill -0 $server || exit 1
  sleep 0.2
done
ibv_devinfo -d "${devices[0]}" | grep -E 'hca_id|state|active_mtu'
# shellcheck disable=SC2046
timeout $limit_s ibv_rc_pingpong $(arguments "${devices[0]}") "$peer" | tail -2
wait $server
