#!/usr/bin/env bash
# Installs Debian packages that tests use: install-system-packages.sh java kcat buildah
# Without root or apt-get it installs nothing, and says in one line for each what is left out. It never fails: whether
# a test may be left out is decided where it is (PYKBROKER_REQUIRE).
set -euo pipefail

newest_java_is_17() {
    local command=${JAVA_HOME:+$JAVA_HOME/bin/}java
    [[ $("$command" -version 2>&1) =~ version\ \"([0-9]+) ]] && ((BASH_REMATCH[1] >= 17))
}

is_there() {
    case $1 in
        java) newest_java_is_17 2>/dev/null ;;
        *) command -v "$1" >/dev/null ;;
    esac
}

packages=()
for name in "$@"; do
    if ! is_there "$name"; then
        case $name in
            java) package=openjdk-17-jre-headless without="the tests against Apache Kafka and of Spark" ;;
            javac) package=openjdk-17-jdk-headless without="Apache Kafka's own tests" ;;
            chromedriver) package=chromium-driver without="the tests of the console in a browser" ;;
            chromium) package=$name without="the tests of the console in a browser" ;;
            promtool) package=prometheus without="the tests that use $name" ;;
            go) package=golang-go without="the tests of old clients" ;;
            gcc) package=$name without="the tests of old clients" ;;
            ip) package=iproute2 without="the tests that use $name" ;;
            *) package=$name without="the tests that use $name" ;;
        esac
        if [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null; then
            packages+=("$package")
        else
            echo "$name is missing and cannot be installed from here (needs root and apt-get): leaving out $without" >&2
        fi
    fi
done

if ((${#packages[@]})); then
    export DEBIAN_FRONTEND=noninteractive
    if ! { apt-get update -q && apt-get install -q -y --no-install-recommends "${packages[@]}"; }; then
        echo "apt-get cannot install ${packages[*]}: leaving out the tests that need it" >&2
    fi
fi
