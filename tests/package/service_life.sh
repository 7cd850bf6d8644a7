#!/usr/bin/env bash
# Installs, starts, uses, upgrades, removes and purges the package `lightq` in the root in which it runs, which it
# changes: usage: service_life.sh PACKAGE OLDER_PACKAGE. Requires: root, the packages that LightQ depends on, no broker's
# data in /var/lib/lightq, and /proc. It runs the unit's command as the unit's user, because no systemd runs there.
set -euo pipefail
new=$1
old=$2
export DEBIAN_FRONTEND=noninteractive LC_ALL=C
# Any free ports, and not those of the settings.
export LIGHTQ_CONTROL=tcp://127.0.0.1:0 LIGHTQ_HTTP=off

fail() { echo "service_life: $*" >&2; exit 1; }
equal() { [ "$1" = "$2" ] || fail "'$1' instead of '$2': $3"; }
state() { dpkg-query -W -f '${db:Status-Status} ${Version}' lightq 2>/dev/null || true; }

unit=/usr/lib/systemd/system/lightq.service
broker=
start() {
  local command user deadline=$((SECONDS + 20))
  command=$(sed -n 's/^ExecStart=//p' "$unit")
  user=$(sed -n 's/^User=//p' "$unit")
  # shellcheck disable=SC2086  # the command has arguments
  setpriv --reuid="$user" --regid="$user" --init-groups --no-new-privs --bounding-set=-all $command \
    </dev/null >/tmp/broker.log 2>&1 &
  broker=$!
  until lightq ping >/dev/null 2>&1; do
    kill -0 "$broker" 2>/dev/null && [ "$SECONDS" -lt "$deadline" ] || { cat /tmp/broker.log >&2; fail "no broker"; }
    sleep 0.05
  done
}
stop() {
  kill -TERM "$broker"
  wait "$broker" || { cat /tmp/broker.log >&2; fail "the broker ended with $?"; }
  broker=
}
trap '[ -z "$broker" ] || kill -KILL "$broker"' EXIT

# Installed.
dpkg -i "$old" >/dev/null
[[ $(state) == "installed "* ]] || fail "after the installation: $(state)"
older=$(state)
equal "$(stat -c '%U:%G %a' /var/lib/lightq)" "lightq:lightq 755" "the data directory"
equal "$(getent passwd lightq | cut -d: -f6-)" "/var/lib/lightq:/usr/sbin/nologin" "the user"
equal "$(dpkg --verify lightq | grep -v /usr/share/doc/ | grep -v /usr/share/man/ || true)" "" "files differ from the package"
[ -L /etc/systemd/system/multi-user.target.wants/lightq.service ] || fail "the unit is not enabled"

# Started and used.
start
lightq topic create letters --type file >/dev/null
printf 'one\ntwo\n' | lightq produce letters >/dev/null 2>&1
equal "$(lightq consume letters -n 1 2>/dev/null)" one "the first message"
equal "$(stat -c %U /var/lib/lightq/topics)" lightq "the topics' owner"
as_nobody() { setpriv --reuid=nobody --regid=nogroup --clear-groups "$@"; }
as_nobody cat /var/lib/lightq/broker.json >/dev/null || fail "other users cannot find the broker"
! as_nobody cat /var/lib/lightq/admin.json 2>/dev/null || fail "other users can read the administrator's password"
stop

# Upgraded: the settings and the messages stay.
echo "# a setting of the administrator" >>/etc/lightq/lightq.toml
dpkg -i --force-confold "$new" >/dev/null
[[ $(state) == "installed "* ]] || fail "after the upgrade: $(state)"
[ "$(state)" != "$older" ] || fail "the upgrade kept the version: $older"
grep -q "a setting of the administrator" /etc/lightq/lightq.toml || fail "the upgrade changed the settings"
start
equal "$(lightq consume letters -n 1 2>/dev/null)" two "the message from before the upgrade"
stop

# Removed: settings and messages stay. Purged: they are gone.
dpkg -r lightq >/dev/null
[ -e /etc/lightq/lightq.toml ] && [ -e /var/lib/lightq/topics ] || fail "the removal took settings or messages"
[ ! -e /usr/bin/lightq ] || fail "the removal left the program"
dpkg -P lightq >/dev/null
equal "$(state)" "" "after the purge"
for path in /etc/lightq /var/lib/lightq /var/log/lightq "$unit" /etc/systemd/system/multi-user.target.wants/lightq.service \
  /etc/systemd/system/lightq.service /var/lib/systemd/deb-systemd-helper-enabled/lightq.service.dsh-also; do
  [ ! -e "$path" ] && [ ! -L "$path" ] || fail "the purge left $path"
done
getent passwd lightq >/dev/null || fail "the purge removed the user"
echo "service_life: passed"
