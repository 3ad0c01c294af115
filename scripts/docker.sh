#!/usr/bin/env bash
# A private Docker engine for tests, on a UNIX socket in DIR, with one small image. Leaves every other engine alone.
#
#   scripts/docker.sh up DIR     starts it and prints its socket; DIR must be missing or empty, its path short
#   scripts/docker.sh again DIR  starts it again where it was killed
#   scripts/docker.sh down DIR   stops it and removes DIR
#
# Needs root. The engine and busybox are Debian's packages, installed if they are missing. It lives in a mount and a
# network namespace of its own, so that it changes no rule, route or interface of the machine. Exit code 3 where such
# an engine cannot be had here; what is missing is said.
set -euo pipefail

image=clawsmith-test/busybox:latest

fail() {
    echo "scripts/docker.sh: $1" >&2
    exit "${2:-1}"
}

missing() {
    fail "$1" 3
}

install_engine() {
    [ "$(id -u)" -eq 0 ] || missing "an engine of our own needs root"
    local wanted=()
    [ -x /usr/sbin/dockerd ] || command -v dockerd >/dev/null || wanted+=(docker.io)
    [ -x /bin/busybox ] || wanted+=(busybox-static)
    command -v curl >/dev/null || wanted+=(curl)
    if [ ${#wanted[@]} -gt 0 ]; then
        command -v apt-get >/dev/null || missing "missing: ${wanted[*]}; install them with your package manager"
        echo "installing ${wanted[*]}, once" >&2
        local log
        log=$(mktemp)
        # The packages must not start a second engine for everybody.
        if ! { apt-get update -qq && RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive \
            apt-get install -qq -y --no-install-recommends "${wanted[@]}"; } >"$log" 2>&1; then
            cat "$log" >&2
            rm -f "$log"
            missing "${wanted[*]} cannot be installed"
        fi
        rm -f "$log"
    fi
    # A busybox that needs libraries would not run alone.
    if LC_ALL=C ldd /bin/busybox >/dev/null 2>&1; then
        missing "/bin/busybox is not static; install busybox-static"
    fi
}

ask() {
    curl --silent --fail --show-error --unix-socket "$dir/docker.sock" "$@"
}

# A root with busybox and nothing else.
build_root() {
    local root=$dir/root name
    mkdir -p "$root"/{bin,proc,dev,sys,etc,workspace}
    mkdir -p -m 1777 "$root/tmp"
    cp /bin/busybox "$root/bin/"
    for name in $(/bin/busybox --list); do
        [ "$name" = busybox ] || ln -sf busybox "$root/bin/$name"
    done
    printf 'root:x:0:0::/workspace:/bin/sh\n' >"$root/etc/passwd"
}

up() {
    [ -z "$(ls -A "$dir" 2>/dev/null)" ] || fail "\`$dir\` is not empty; give a directory that is"
    [ ${#dir} -le 85 ] || fail "\`$dir\` is too long for a socket; give a shorter path"
    install_engine
    mkdir -p "$dir"
    chmod 711 "$dir"
    build_root
    echo "/engine-for-tests-$$" >"$dir/groups"
    # Not that of the machine's own engine.
    echo '{}' >"$dir/configuration.json"
    start
    tar -C "$dir/root" -c . | ask --request POST --header 'Content-Type: application/x-tar' \
        --data-binary @- "http://engine/images/create?fromSrc=-&repo=$image" >/dev/null ||
        fail "the image cannot be made: $(tail -n 5 "$dir/log")"
    rm -rf "$dir/root"
    echo "$dir/docker.sock"
}

start() {
    # With no terminal and no stream of ours, it outlives this script and holds up nobody who reads from it.
    setsid unshare --mount --net --propagation private dockerd \
        --data-root "$dir/data" --exec-root "$dir/exec" --pidfile "$dir/pid" --host "unix://$dir/docker.sock" \
        --group root --cgroup-parent "$(cat "$dir/groups")" --config-file "$dir/configuration.json" \
        --iptables=false --ip6tables=false --ip-forward=false --ip-masq=false --log-level warn \
        >>"$dir/log" 2>&1 </dev/null &
    local engine=$!
    for _ in $(seq 300); do
        kill -0 "$engine" 2>/dev/null || break
        if ask http://engine/_ping >/dev/null 2>&1; then
            return
        fi
        sleep 0.1
    done
    missing "the engine does not come up: $(tail -n 5 "$dir/log")"
}

again() {
    [ -f "$dir/groups" ] || fail "\`$dir\` holds no engine of ours"
    # What was killed says nothing any more, even where nobody has taken notice of its end.
    rm -f "$dir/pid" "$dir/docker.sock" "$dir/exec/containerd/containerd.pid"
    start
    echo "$dir/docker.sock"
}

down() {
    [ -f "$dir/groups" ] || fail "\`$dir\` holds no engine of ours"
    local pid
    # Containers first: the engine waits long for those that do not listen.
    if [ -S "$dir/docker.sock" ] && ask http://engine/_ping >/dev/null 2>&1; then
        for id in $(ask 'http://engine/containers/json?all=true' | grep -o '"Id":"[0-9a-f]*"' | cut -d'"' -f4); do
            ask --request DELETE "http://engine/containers/$id?force=true" >/dev/null 2>&1 || true
        done
    fi
    pid=$(cat "$dir/pid" 2>/dev/null || true)
    if [ -n "$pid" ]; then
        kill "$pid" 2>/dev/null || true
        for _ in $(seq 300); do
            kill -0 "$pid" 2>/dev/null || break
            sleep 0.1
        done
        kill -0 "$pid" 2>/dev/null && fail "the engine $pid does not end"
    fi
    find /sys/fs/cgroup -depth -path "*$(cat "$dir/groups")*" -type d -exec rmdir {} \; 2>/dev/null || true
    rm -rf "$dir"
}

[ $# -eq 2 ] || fail "usage: scripts/docker.sh up|again|down DIR"
dir=$(realpath -m "$2")
case $1 in
up) up ;;
again) again ;;
down) down ;;
*) fail "usage: scripts/docker.sh up|again|down DIR" ;;
esac
