# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# The life of the packages in a machine with systemd, and the managers of networks there. The script
# that sources this has sourced root.sh, and sets PROJECT, CACHE and OUT.

# next_version: builds packages of a higher version from this tree, into out/deb-next
next_version()
{
	local dir=$OUT/next

	rm -rf "$dir" "$PROJECT/out/deb-next"
	copy_sources "$dir"
	sed -i 's/^PACKAGE_VERSION="\(.*\)"/PACKAGE_VERSION="\1.1"/' "$dir/dkms.conf"
	(cd "$dir" && GIT_DIR=/nowhere devel/deb) >"$OUT/next.log" 2>&1 && mv "$dir/out/deb" "$PROJECT/out/deb-next" && rm -rf "$dir"
}

# furnish ROOT: the packages are installed there, DKMS has built the modules, and all that is to be
# compiled in the machine, whose CPUs are emulated, has been compiled before, by ccache
furnish()
{
	local root=$1 version

	version=$(version_in "$root")
	cp "$PROJECT"/out/deb/lowq-dkms_*.deb "$PROJECT"/out/deb/lowq-tools_*_amd64.deb "$root/var/lib/lowq/"
	cp "$PROJECT"/out/deb-next/lowq-dkms_*.deb "$PROJECT"/out/deb-next/lowq-tools_*_amd64.deb "$root/var/lib/lowq/next/"
	# shellcheck disable=SC2016 # the inner shell expands
	in_root "$root" sh -ec '
		for cc in gcc-14 x86_64-linux-gnu-gcc-14 gcc x86_64-linux-gnu-gcc; do ln -s /usr/bin/ccache /usr/local/bin/$cc; done
		echo "cache_dir = /var/cache/ccache" >/etc/ccache.conf
		INITRD=No dpkg -i /var/lib/other-kernel/*.deb
		dpkg -i /var/lib/lowq/next/lowq-dkms_*.deb
		for k in /lib/modules/*/build; do dkms autoinstall -k "$(basename "$(dirname "$k")")"; done
		dpkg -P lowq-dkms $(dpkg -l "linux-*cloud*" | sed -n "s/^ii *\([^ ]*\).*/\1/p")
		dpkg -i /var/lib/lowq/*.deb
		dkms autoinstall -k "$1"
		dkms status
		systemctl enable systemd-networkd NetworkManager networking lowq-life
		systemctl mask apt-daily.timer apt-daily-upgrade.timer serial-getty@ttyS0' sh "$version"
}

# flaps LOG MONITOR: takes the carrier off a card and gives it back when the machine's console asks
# for it
flaps()
{
	python3 - "$1" "$2" <<-'END'
		import json, socket, sys, time
		done = 0
		while True:
		    time.sleep(1)
		    try:
		        asked = [line.split()[-1] for line in open(sys.argv[1], errors="replace") if "FLAP " in line]
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

# run_life ROOT IMAGE LOG: until the machine powers off. Its kernel is the root's also after it
# restarts.
run_life()
{
	local version cards=() n pid

	version=$(version_in "$1")
	for n in 0 1 2; do
		cards+=(-netdev "user,id=u$n,restrict=on,net=10.$((n + 20)).0.0/24"
			-device "virtio-net-pci,netdev=u$n,id=eth$n,romfile=,mac=52:54:00:00:01:0$n")
	done
	rm -f "$3"
	(cd "$OUT" && exec timeout "$BOOT_TIMEOUT" qemu-system-x86_64 -accel tcg -cpu max,-cx16 -smp 1 -m 2G \
		-nodefaults -display none -serial "file:$3" -kernel "$1/boot/vmlinuz-$version" -initrd "$1/boot/initrd.img-$version" \
		-drive "file=$2,if=virtio,format=raw" -qmp unix:life-monitor,server=on,wait=off "${cards[@]}" \
		-append "root=/dev/vda rw console=ttyS0 quiet panic=-1 net.ifnames=0 systemd.show_status=no" \
		</dev/null >"$3.qemu" 2>&1) &
	pid=$!
	flaps "$3" "$OUT/life-monitor" &
	wait $pid
	kill $! 2>/dev/null
}

# life: TAP
life()
{
	local root=$CACHE/matrix/life image=$CACHE/matrix/life.img log=$OUT/life-console.log

	next_version
	result $? "life: packages of a higher version" "$OUT/next.log" || return
	umount "$root/root" 2>/dev/null
	rm -rf "$root"
	mkdir -p "$root"/{upper,work,root}
	mount -t overlay overlay -o "lowerdir=$(root_of systemd),upperdir=$root/upper,workdir=$root/work" "$root/root" || return
	mkdir -p "$root/root/var/lib/lowq/next"
	install -m 755 "$PROJECT/devel/matrix.d/life-guest" "$root/root/var/lib/lowq/"
	broken_headers 9.9.9-none "$root/root/var/lib/lowq/broken.deb_"
	cat >"$root/root/etc/systemd/system/lowq-life.service" <<-'END'
		[Unit]
		After=multi-user.target
		[Service]
		Type=simple
		ExecStart=/var/lib/lowq/life-guest
		StandardOutput=file:/dev/ttyS0
		StandardError=file:/dev/ttyS0
		[Install]
		WantedBy=graphical.target
	END
	furnish "$root/root" >"$OUT/life-furnish.log" 2>&1
	result $? "life: packages installed, DKMS has built the modules" "$OUT/life-furnish.log" || return
	rm -f "$image"
	mke2fs -q -t ext4 -d "$root/root" "$image" 5000M >"$OUT/life-image.log" 2>&1
	run_life "$root/root" "$image" "$log"
	umount "$root/root"
	rm -rf "$root" "$image"
	tr -d '\r' <"$log" | sed -n 's/^.*LOWQ: //p' >"$OUT/life-guest.log"
	grep -E '^(ok|not ok|#)' "$OUT/life-guest.log" | sed "s/^\(not ok\|ok\) [0-9]*/\1 - life/"
	N=$((N + $(grep -cE '^(ok|not ok)' "$OUT/life-guest.log")))
	FAILED=$((FAILED + $(grep -c '^not ok' "$OUT/life-guest.log")))
	grep -q '^done$' "$OUT/life-guest.log"
	result $? "life: the machine ran to the end" "$log"
}
