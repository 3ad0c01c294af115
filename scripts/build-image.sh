#!/usr/bin/env bash
# Builds the container image from scratch: the binary, the libraries it is linked with, certificates, and nothing else.
#
#   scripts/build-image.sh [--binary FILE] [--tag NAME:TAG] [--output FILE.tar]
#
# --binary  the program; the optimised one is built where none is given
# --tag     the image's name; clawsmith:latest where none is given
# --output  writes the root file system there instead of handing it to an engine
#
# The engine is the one at $DOCKER_HOST (unix://...), or /var/run/docker.sock. Nothing is pulled.
set -euo pipefail

fail() {
    echo "scripts/build-image.sh: $1" >&2
    exit 1
}

binary=
tag=clawsmith:latest
output=
while [ $# -gt 0 ]; do
    [ $# -ge 2 ] || fail "\`$1\` takes a value"
    case $1 in
    --binary) binary=$2 ;;
    --tag) tag=$2 ;;
    --output) output=$2 ;;
    *) fail "\`$1\` is not known; see the head of this file" ;;
    esac
    shift 2
done
if [ -z "$binary" ]; then
    repository=$(cd "$(dirname "$0")/.." && pwd)
    (cd "$repository" && "${CARGO:-cargo}" build --release --locked --package claw-cli --bin clawsmith)
    binary=$repository/target/release/clawsmith
fi
[ -x "$binary" ] || fail "\`$binary\` is no program"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
user=65532
mkdir -p "$root"/{usr/bin,etc/clawsmith,etc/ssl/certs,var/lib/clawsmith}
mkdir -m 1777 "$root/tmp"
install -m 0755 "$binary" "$root/usr/bin/clawsmith"
# Names of functions are for debuggers.
! command -v strip >/dev/null || strip "$root/usr/bin/clawsmith"

# A static binary has no libraries. The loader is among those of another one.
if libraries=$(LC_ALL=C ldd "$binary" 2>/dev/null); then
    for library in $(grep -o '/[^ ]*' <<<"$libraries"); do
        mkdir -p "$root$(dirname "$library")"
        cp -L "$library" "$root$library"
    done
fi

certificates=/etc/ssl/certs/ca-certificates.crt
[ -f "$certificates" ] || fail "\`$certificates\` is missing; install ca-certificates: models are reached by TLS"
cp -L "$certificates" "$root$certificates"
printf 'root:x:0:0:root:/:/sbin/nologin\nclawsmith:x:%s:%s::/var/lib/clawsmith:/sbin/nologin\n' $user $user \
    >"$root/etc/passwd"
printf 'root:x:0:\nclawsmith:x:%s:\n' $user >"$root/etc/group"
printf 'hosts: files dns\n' >"$root/etc/nsswitch.conf"

tar=$work/image.tar
# The same files give the same archive. The data directory is the user's own, everything else is root's.
tar --create --file "$tar" --directory "$root" --sort=name --mtime=@0 --numeric-owner --owner=0 --group=0 \
    --exclude=./var/lib/clawsmith .
tar --append --file "$tar" --directory "$root" --mtime=@0 --numeric-owner --owner=$user --group=$user --mode=0700 \
    ./var/lib/clawsmith
if [ -n "$output" ]; then
    mv "$tar" "$output"
    echo "$output"
    exit 0
fi

socket=${DOCKER_HOST:-unix:///var/run/docker.sock}
[[ $socket == unix://* ]] || fail "\`$socket\` is no socket of this machine; write a file with --output and import it there"
socket=${socket#unix://}
[ -S "$socket" ] || fail "no engine listens at \`$socket\`; start one, or write a file with --output"
query=(--data-urlencode fromSrc=- --data-urlencode "repo=${tag%:*}" --data-urlencode "tag=${tag##*:}")
for change in 'ENTRYPOINT ["/usr/bin/clawsmith"]' 'CMD ["serve"]' "USER $user:$user" 'WORKDIR /var/lib/clawsmith' \
    'VOLUME /var/lib/clawsmith' 'EXPOSE 7373' 'ENV HOME=/var/lib/clawsmith' 'ENV XDG_CONFIG_HOME=/etc' \
    'ENV CLAWSMITH_DATA_DIR=/var/lib/clawsmith'; do
    query+=(--data-urlencode "changes=$change")
done
# The parameters go into the address, the archive is the body.
address=$(curl --silent --get --output /dev/null --write-out '%{url_effective}' --unix-socket "$socket" \
    "${query[@]}" http://engine/_ping)
answer=$(curl --silent --show-error --unix-socket "$socket" --request POST --header 'Content-Type: application/x-tar' \
    --upload-file "$tar" "http://engine/images/create?${address#*\?}")
! grep -q '"error"' <<<"$answer" || fail "the engine refuses the image: $answer"
echo "$tag"
