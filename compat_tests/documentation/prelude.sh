# What stands in front of a page's commands. A node that a command starts serves until the next one is started, or the
# page ends, as if its reader had another terminal for it. Behind `first: beside=1` nodes serve beside each other, as
# those of a cluster do, until `stop_serving`; `stop_node FILE` and `kill_node FILE` end one of them, which is known by its
# last argument. Behind `first: fails=1` a start is one that ends by itself. A log that the command sends into a file
# goes there.
set -Eeuo pipefail
unset BASH_ENV

serving=
beside=
fails=
declare -A nodes starting

serve() {
    local output="$OUTPUTS/serving" name="${*: -1}"
    if [ -n "$beside" ]; then
        output="$OUTPUTS/serving-${name//\//-}"
    else
        stop_serving
    fi
    : > "$output"
    if [ -f /dev/stderr ]; then
        command "$@" > "$output" < /dev/null &
    else
        command "$@" > "$output" 2> "$output.log" < /dev/null &
    fi
    serving=$!
    if [ -n "$beside" ]; then
        nodes[$name]=$serving
        starting[$name]=$serving
    else
        wait_ready "$serving" "$output" "$@"
        cat "$output"
    fi
}

wait_ready() {
    local pid="$1" output="$2" deadline=$((SECONDS + 90))
    shift 2
    until grep -q ' ready' "$output"; do
        if ! kill -0 "$pid" 2> /dev/null || ((SECONDS > deadline)); then
            echo "'$*' does not serve:" >&2
            if [ -f "$output.log" ]; then cat "$output.log" >&2; fi
            return 1
        fi
        sleep 0.05
    done
}

# Nodes of a cluster are ready together.
all_ready() {
    local name
    for name in "${!starting[@]}"; do
        wait_ready "${starting[$name]}" "$OUTPUTS/serving-${name//\//-}" pykbroker start "$name"
        unset "starting[$name]"
    done
}

stop_node() {
    all_ready
    kill -s "${2:-TERM}" "${nodes[$1]}"
    wait "${nodes[$1]}" || true
    unset "nodes[$1]"
}

kill_node() {
    stop_node "$1" KILL
}

stop_serving() {
    local pid
    for pid in $serving "${nodes[@]}"; do
        kill "$pid" 2> /dev/null || true
    done
    for pid in $serving "${nodes[@]}"; do
        wait "$pid" || true
    done
    serving=
    beside=
    nodes=()
    starting=()
}

pykbroker() {
    case " $* " in
        *' --help '* | *' -h '* | *' --check-config '*) command pykbroker "$@" ;;
        ' start '* | ' cluster '*)
            if [ -n "$fails" ]; then
                timeout 60 pykbroker "$@"
            else
                serve pykbroker "$@"
            fi
            ;;
        *)
            all_ready
            command pykbroker "$@"
            ;;
    esac
}

make() {
    if [ "$*" = run ]; then
        serve pykbroker start
    else
        command make "$@"
    fi
}

trap stop_serving EXIT
# The line of the page, whichever function above has failed.
trap 'lines=("$LINENO" "${BASH_LINENO[@]}"); echo "line ${lines[-2]}: $(sed -n "${lines[-2]}p" "$0")" >&2' ERR
# For whoever ends a page that hangs.
trap 'echo "$LINENO" > "$OUTPUTS/running"' DEBUG
