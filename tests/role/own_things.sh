#!/bin/sh
# What an operator may have at the role's paths before it comes, and a user of the role's list: run it on a host.
set -eu
settings=/etc/flink-gpu-discovery.conf
drop_ins=/etc/systemd/system/taskmanager.service.d
useradd older
groupadd flink
echo 'ours = yes' >$settings
chown older $settings
chmod 0640 $settings
ln -s /opt/ours/discover /usr/local/bin/flink-gpu-discovery
mkdir $drop_ins
printf '[Service]\nNice=1\n' >$drop_ins/10-ours.conf
