# Runs the programs of a control plane for a test, and ends them when the test is gone.
#
#   sh -c "$(cat supervise.sh)" supervise DIR        DIR/NAME.run starts the program NAME
#
# The test holds the other end of standard input: `start NAME` and `keep` come from there, and its
# end comes however the test ends, by a kill as well. Then the programs are killed (nothing of
# theirs is worth a goodbye) and DIR is removed, unless `keep` asked for the logs: then the rest of it.
dir=$1
trap '' INT TERM HUP

while read -r word name; do
  case $word in
    start)
      sh -c 'echo $$ >"$1.pid" && exec sh "$1.run"' start "$dir/$name" >"$dir/$name.log" 2>&1 </dev/null &
      ;;
    keep) keep=1 ;;
  esac
done

for file in "$dir"/*.pid; do
  [ -f "$file" ] && kill -9 "$(cat "$file")" 2>/dev/null
done
wait
if [ -n "${keep:-}" ]; then
  rm -rf "$dir/etcd" "$dir"/*.pid
else
  rm -rf "$dir"
fi
