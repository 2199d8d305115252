#!/usr/bin/env bash
# Drives the example application over HTTP with requests that schemathesis makes up from its OpenAPI document.
# clause: A20
set -euo pipefail

case "${RUNYARD_PROOF:-sample}" in
    soak) examples=1000 ;;
    quick) examples=20 ;;
    *) examples=100 ;;
esac

cargo build --quiet --locked --package runyard-example-tasks
home=$(mktemp -d)
server=''
stop() {
    [[ -z "$server" ]] || kill "$server" 2>/dev/null || true
    rm -rf -- "$home"
}
trap stop EXIT

HOME="$home" TASKS_FILE="$home/tasks.json" target/debug/tasks serve --listen 127.0.0.1:0 >"$home/out" 2>"$home/err" &
server=$!
for _ in $(seq 100); do
    grep -q '^listening on ' "$home/out" && break
    sleep 0.1
done
url=$(sed -n 's/^listening on //p' "$home/out")
[[ -n "$url" ]] || { cat "$home/err" >&2; echo 'the example application did not start' >&2; exit 1; }
token=$(cat "$home/.tasks/token")

# A caller may ask for a timeout of a millisecond and then gets TIMEOUT, 504, as it should; any other 5xx is a failure.
cat >"$home/schemathesis.toml" <<'CONFIG'
[checks]
not_a_server_error.expected-statuses = ["2xx", "3xx", "4xx", "504"]
CONFIG

(
    # schemathesis keeps its own files where it runs.
    cd -- "$home"
    schemathesis run "$url/api/v1/openapi.json" --checks all --max-examples "$examples" --seed 1 \
        --header "Authorization: Bearer $token" --phases examples,coverage,fuzzing,stateful
)
if grep -qE '^[^ ]+ +ERROR |panicked' "$home/err"; then
    echo 'the server logged errors:' >&2
    grep -E '^[^ ]+ +ERROR |panicked' "$home/err" >&2
    exit 1
fi
