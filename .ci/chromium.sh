#!/usr/bin/env bash
# Find the browser of the tests that need one; on Debian, as root, install it. Never fails: without a browser those
# tests are skipped and say so.
set -u

for name in chromium chromium-browser google-chrome; do
    if command -v "$name" >/dev/null; then exit 0; fi
done

if [ "$(id -u)" = 0 ] && [ -f /etc/debian_version ] && command -v apt-get >/dev/null; then
    echo "Installing Chromium for the browser tests (apt-get install chromium) ..."
    log=$(mktemp)
    export DEBIAN_FRONTEND=noninteractive
    if apt-get update >"$log" 2>&1 && apt-get install -y --no-install-recommends chromium >>"$log" 2>&1 </dev/null; then
        rm -f "$log"
        exit 0
    fi
    tail -n 5 "$log"
    rm -f "$log"
fi
echo "No Chromium here, so the browser tests will be skipped. Install Chromium or Google Chrome to run it."
