# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# The life of the packages in a machine with systemd, and the managers of networks there. The script
# that sources this has sourced root.sh, and sets PROJECT, CACHE and OUT.

LIFE_PHASES=(install managers upgrade removal)
declare -A LIFE_MINUTES=([install]=5 [managers]=8 [upgrade]=5 [removal]=10)

# next_version: builds packages of a higher version from this tree, into out/deb-next
next_version()
{
	local dir=$OUT/next

	rm -rf "$dir" "$PROJECT/out/deb-next"
	copy_sources "$dir"
	sed -i 's/^PACKAGE_VERSION="\(.*\)"/PACKAGE_VERSION="\1.1"/' "$dir/dkms.conf"
	(cd "$dir" && GIT_DIR=/nowhere devel/deb) >"$OUT/next.log" 2>&1 && mv "$dir/out/deb" "$PROJECT/out/deb-next" && rm -rf "$dir"
}

# furnish ROOT: all that is to be compiled in the machine, whose CPU is emulated, is compiled before, by
# ccache, which keeps it for the next run; the packages are there, and not installed
furnish()
{
	local root=$1 kept=$CACHE/matrix/ccache

	[ ! -d "$kept" ] || cp -a "$kept" "$root/var/cache/ccache"
	mkdir -p "$root/var/lib/lowq/next"
	cp "$PROJECT"/out/deb/lowq-dkms_*.deb "$PROJECT"/out/deb/lowq-tools_*_amd64.deb "$root/var/lib/lowq/"
	cp "$PROJECT"/out/deb-next/lowq-dkms_*.deb "$PROJECT"/out/deb-next/lowq-tools_*_amd64.deb "$root/var/lib/lowq/next/"
	broken_headers 9.9.9-none "$root/var/lib/lowq/broken.deb_"
	# the machine's firmware has the newest life-guest: a mend of it needs no new disk
	cat >"$root/etc/systemd/system/lowq-life.service" <<-'END'
		[Unit]
		After=multi-user.target
		[Service]
		Type=simple
		ExecStartPre=/sbin/modprobe qemu_fw_cfg
		ExecStartPre=/bin/cp /sys/firmware/qemu_fw_cfg/by_name/opt/lowq/raw /run/lowq-life
		ExecStart=/bin/bash /run/lowq-life
		StandardOutput=file:/dev/ttyS1
		StandardError=file:/dev/ttyS1
		[Install]
		WantedBy=graphical.target
	END
	# shellcheck disable=SC2016 # the inner shell expands
	in_root "$root" sh -ec '
		for cc in gcc-14 x86_64-linux-gnu-gcc-14 gcc x86_64-linux-gnu-gcc; do ln -s /usr/bin/ccache /usr/local/bin/$cc; done
		echo "cache_dir = /var/cache/ccache" >/etc/ccache.conf
		INITRD=No dpkg -i /var/lib/other-kernel/*.deb
		for deb in /var/lib/lowq/lowq-dkms_*.deb /var/lib/lowq/next/lowq-dkms_*.deb; do
			dpkg -i "$deb"
			for k in /lib/modules/*/build; do dkms autoinstall -k "$(basename "$(dirname "$k")")"; done
			dkms status
			dpkg -P lowq-dkms
		done
		dpkg -P $(dpkg -l "linux-*cloud*" | sed -n "s/^ii *\([^ ]*\).*/\1/p")
		systemctl enable systemd-networkd NetworkManager networking lowq-life
		systemctl mask apt-daily.timer apt-daily-upgrade.timer man-db.timer serial-getty@ttyS0' || return
	rm -rf "$kept"
	cp -a "$root/var/cache/ccache" "$kept"
}

# flaps LOG MONITOR: takes the carrier off a card and gives it back when the machine's LOG asks for it.
# To be run in the background.
flaps()
{
	exec python3 - "$1" "$2" <<-'END'
		import json, socket, sys, time
		done = 0
		while True:
		    time.sleep(1)
		    try:
		        asked = [line.split()[-1] for line in open(sys.argv[1], errors="replace") if line.startswith("FLAP ")]
		    except FileNotFoundError:
		        continue
		    for card in asked[done:]:
		        monitor = socket.socket(socket.AF_UNIX)
		        monitor.connect(sys.argv[2])
		        file = monitor.makefile("rw")
		        file.readline()
		        for up in (None, False, True):
		            command = {"execute": "qmp_capabilities"} if up is None else {
		                "execute": "set_link", "arguments": {"name": card, "up": up}}
		            file.write(json.dumps(command) + "\n")
		            file.flush()
		            file.readline()
		            time.sleep(4)
		        monitor.close()
		    done = len(asked)
	END
}

# run_life PHASE ROOT IMAGE: until the machine powers off; the kernel is the root's. What it says is in
# life-PHASE.log, its kernel's log in life-PHASE-console.log.
run_life()
{
	local version cards=() n pid log=$OUT/life-$1

	version=$(version_in "$2")
	for n in 0 1 2; do
		cards+=(-netdev "user,id=u$n,restrict=on,net=10.2$n.0.0/24"
			-device "virtio-net-pci,netdev=u$n,id=eth$n,romfile=,mac=52:54:00:00:01:0$n")
	done
	(cd "$OUT" && exec timeout "$BOOT_TIMEOUT" qemu-system-x86_64 -accel tcg -cpu max,-cx16 -smp 1 -m 2G \
		-nodefaults -display none -no-reboot -serial "file:$log-console.log" -serial "file:$log.log" \
		-kernel "$2/boot/vmlinuz-$version" -initrd "$2/boot/initrd.img-$version" \
		-fw_cfg "name=opt/lowq,file=$PROJECT/devel/matrix.d/life-guest" \
		-drive "file=$3,if=virtio,format=raw" -qmp unix:life-monitor,server=on,wait=off "${cards[@]}" \
		-append "root=/dev/vda rw console=ttyS0 quiet panic=-1 net.ifnames=0 systemd.show_status=no lowq_phase=$1" \
		</dev/null >"$log-qemu.log" 2>&1) &
	pid=$!
	flaps "$log.log" "$OUT/life-monitor" &
	wait $pid
	kill $! 2>/dev/null
}

# life_disk: makes the disk with which the first phase begins
life_disk()
{
	local dir=$CACHE/matrix/life

	next_version
	result $? "life: packages of a higher version" "$OUT/next.log" || return
	umount "$dir/root" 2>/dev/null
	rm -rf "$dir"
	mkdir -p "$dir"/{upper,work,root}
	mount -t overlay overlay -o "lowerdir=$(root_of systemd),upperdir=$dir/upper,workdir=$dir/work" "$dir/root" || return
	furnish "$dir/root" >"$OUT/life-furnish.log" 2>&1 && mke2fs -q -t ext4 -d "$dir/root" "$dir/disk-begin" 5000M >>"$OUT/life-furnish.log" 2>&1
	result $? "life: a disk, and all modules compiled once" "$OUT/life-furnish.log"
	set -- $?
	umount "$dir/root"
	rm -rf "$dir"/{upper,work,root}
	return "$1"
}

# life [PHASE]: TAP. Each phase is a boot with the disk that the phase before has left; only PHASE: with
# the one that it left last time.
life()
{
	local root dir=$CACHE/matrix/life phase last=begin log

	root=$(root_of systemd)
	[ "${1:-}" ] || life_disk || return
	for phase in "${LIFE_PHASES[@]}"; do
		if [ "${1:-$phase}" = "$phase" ]; then
			log=$OUT/life-$phase
			rm -f "$log".log "$log"-*.log
			cp --sparse=always "$dir/disk-$last" "$dir/disk-$phase" || die "life: no disk of phase '$last': run devel/matrix life"
			say "life: $phase (about ${LIFE_MINUTES[$phase]} minutes)"
			run_life "$phase" "$root" "$dir/disk-$phase"
			tr -d '\r' <"$log.log" | grep -E '^(ok|not ok|#)' |
				sed "s/^\(not ok\|ok\) [0-9]*/\1 - life, $phase:/" | tee -a "$OUT/said"
			N=$((N + $(grep -cE '^(ok|not ok)' "$log.log")))
			FAILED=$((FAILED + $(grep -c '^not ok' "$log.log")))
			! grep -E "$SPLATS" "$log-console.log" >"$log-splats.log"
			result $? "life, $phase: the kernel's log" "$log-splats.log"
			tr -d '\r' <"$log.log" | grep -q '^done$'
			result $? "life, $phase: the machine ran to the end" "$log.log" || return
		fi
		last=$phase
	done
}
