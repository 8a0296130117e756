# What stands in front of a page's commands. A node that a command starts serves until the next one is started, or the
# page ends, as if its reader had another terminal for it.
set -Eeuo pipefail
unset BASH_ENV

serving=

serve() {
    stop_serving
    : > "$OUTPUTS/serving"
    command "$@" > "$OUTPUTS/serving" 2> "$OUTPUTS/serving.log" < /dev/null &
    serving=$!
    local deadline=$((SECONDS + 90))
    until grep -q ' ready' "$OUTPUTS/serving"; do
        if ! kill -0 "$serving" 2> /dev/null || ((SECONDS > deadline)); then
            echo "'$*' does not serve:" >&2
            cat "$OUTPUTS/serving.log" >&2
            return 1
        fi
        sleep 0.05
    done
    cat "$OUTPUTS/serving"
}

stop_serving() {
    if [ -n "$serving" ]; then
        kill "$serving" 2> /dev/null || true
        wait "$serving" || true
        serving=
    fi
}

pykbroker() {
    case " $* " in
        *' --help '* | *' -h '* | *' --check-config '*) command pykbroker "$@" ;;
        ' start '* | ' cluster '*) serve pykbroker "$@" ;;
        *) command pykbroker "$@" ;;
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
