# They may have keys.
chgrp jitney /etc/jitney/Config.json /etc/jitney/jitney.env
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  # An upgrade; a first installation starts nothing.
  if [ "$1" -gt 1 ]; then
    systemctl try-restart jitney.service
  fi
fi
