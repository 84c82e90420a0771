# A removal, and no upgrade.
if [ "$1" -eq 0 ] && [ -d /run/systemd/system ]; then
  systemctl --no-reload disable --now jitney.service
fi
