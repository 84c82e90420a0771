getent group jitney >/dev/null || groupadd --system jitney
getent passwd jitney >/dev/null ||
  useradd --system --gid jitney --home-dir /var/lib/jitney --no-create-home --shell /sbin/nologin --comment "Jitney message broker" jitney
