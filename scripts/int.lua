-- SPDX-License-Identifier: GPL-2.0
--
-- Wireshark's dissector for HPCC++'s telemetry probes and responses (int_wire.h):
--
--	tshark -X lua_script:scripts/int.lua -r FILE -Y int
--
-- or put it into Wireshark's folder for personal Lua plugins. It dissects TCP segments
-- that have PSH as their only flag and begin with the magic number, or with INT-MD's shim
-- (int_md.h), whose metadata are shown as int_md. Messages of IFA (int_ifa.h), IP protocol
-- 253, are shown with their metadata, as ifa.

local int = Proto("int", "In-band Network Telemetry of HPCC++ over TCP")

local MAGIC = 0x494e5431
local HEAD, BASE, HOP, OPTIONS = 20, 4, 8, 4

local types = { [1] = "probe", [2] = "response", [3] = "window" }
local mbps = { [0] = 0, 10, 100, 1000, 2500, 5000, 10000, 20000, 25000, 40000, 50000,
	100000, 200000, 400000, 800000, 1600000 }

local f = {
	type = ProtoField.uint8("int.type", "Type", base.DEC, types),
	room = ProtoField.uint8("int.room", "Room for hops"),
	flags = ProtoField.uint8("int.flags", "Flags", base.HEX),
	receiver = ProtoField.bool("int.flags.receiver", "Receiver computes the window", 8, nil, 0x01),
	id = ProtoField.uint32("int.id", "Probe ID"),
	cookie = ProtoField.uint64("int.cookie", "Cookie", base.HEX),
	nhop = ProtoField.uint8("int.nhop", "nHop"),
	path_id = ProtoField.uint16("int.path_id", "pathID", base.HEX),
	hop = ProtoField.none("int.hop", "Hop"),
	speed = ProtoField.uint8("int.hop.speed", "Speed index"),
	mbps = ProtoField.uint32("int.hop.mbps", "Speed (Mb/s)"),
	ts = ProtoField.uint32("int.hop.ts", "Timestamp (64 ns)"),
	tx = ProtoField.uint32("int.hop.tx", "txBytes (units)"),
	unit = ProtoField.uint32("int.hop.tx_unit", "Unit of txBytes (bytes)"),
	qlen = ProtoField.uint32("int.hop.qlen", "Queue length (80 bytes)"),
	options = ProtoField.uint32("int.options", "Options"),
}
int.fields = f

-- 128 bytes up to 25 Gb/s, doubled with the speed beyond
local function tx_unit(speed)
	local m, unit = mbps[speed], 128
	while m > 25000 do
		m = math.floor((m + 1) / 2)
		unit = unit * 2
	end
	return unit
end

local function dissect(buf, pinfo, tree)
	local len = buf:len()
	if len < HEAD or buf(0, 4):uint() ~= MAGIC then
		return
	end
	local room = buf(5, 1):uint()
	if room > 14 or len ~= HEAD + BASE + room * HOP + OPTIONS then
		return
	end

	local base = buf(HEAD, 4):uint()
	local nhop = math.floor(base / 2 ^ 28)
	local kind = types[buf(4, 1):uint()] or "unknown"
	local t = tree:add(int, buf(), ("In-band telemetry: %s, %d hops"):format(kind, nhop))

	pinfo.cols.protocol = "INT"
	pinfo.cols.info = ("%s id %u, %d hops"):format(kind, buf(8, 4):uint(), nhop)
	t:add(f.type, buf(4, 1))
	t:add(f.room, buf(5, 1))
	t:add(f.flags, buf(6, 1)):add(f.receiver, buf(6, 1))
	t:add(f.id, buf(8, 4))
	t:add(f.cookie, buf(12, 8))
	t:add(f.nhop, buf(HEAD, 1), nhop)
	t:add(f.path_id, buf(HEAD, 2), math.floor(base / 2 ^ 16) % 2 ^ 12)
	for i = 0, math.min(nhop, room) - 1 do
		local at = HEAD + BASE + i * HOP
		local a, b = buf(at, 4):uint(), buf(at + 4, 4):uint()
		local speed = math.floor(a / 2 ^ 28)
		local h = t:add(f.hop, buf(at, HOP))

		h:append_text((" %d"):format(i + 1))
		h:add(f.speed, buf(at, 1), speed)
		h:add(f.mbps, buf(at, 1), mbps[speed]):set_generated()
		h:add(f.ts, buf(at, 4), math.floor(a / 16) % 2 ^ 24)
		h:add(f.tx, buf(at + 3, 3), a % 16 * 2 ^ 16 + math.floor(b / 2 ^ 16))
		h:add(f.unit, buf(at, 1), tx_unit(speed)):set_generated()
		h:add(f.qlen, buf(at + 6, 2), b % 2 ^ 16)
	end
	t:add(f.options, buf(len - OPTIONS, 3))
end

-- INT-MD 2.1: shim and header, the stack, and the message
local md = Proto("int_md", "In-band Network Telemetry, INT-MD 2.1")
local m = {
	len = ProtoField.uint8("int_md.length", "Length (words)"),
	flags = ProtoField.uint8("int_md.flags", "D, E, M", base.HEX, nil, 0x0e),
	ml = ProtoField.uint8("int_md.hop_ml", "Metadata of a node (words)", base.DEC, nil, 0x1f),
	hops = ProtoField.uint8("int_md.remaining_hops", "Remaining hops"),
	instructions = ProtoField.uint16("int_md.instructions", "Instructions", base.HEX),
	node = ProtoField.uint32("int_md.node", "Node"),
	port = ProtoField.uint16("int_md.port", "Egress port"),
	queue = ProtoField.uint8("int_md.queue", "Queue"),
	cells = ProtoField.uint24("int_md.cells", "Queue occupancy (cells)"),
	ts = ProtoField.uint64("int_md.ts", "Departure (ns)"),
	util = ProtoField.uint32("int_md.util", "Utilisation (millionths)"),
}
md.fields = m

local MD_WORDS, MD_INSTRUCTIONS = 6, 0xd500

-- Returns what follows the metadata: the message.
local function dissect_md(buf, tree)
	if buf:len() < 16 or buf(0, 1):uint() ~= 0x10 or buf(4, 1):uint() < 0x20 or buf(4, 1):uint() > 0x2f then
		return buf
	end
	local after = 4 + buf(1, 1):uint() * 4
	if after < 16 or buf:len() < after then
		return buf
	end
	local known = buf(6, 1):uint() % 32 == MD_WORDS and buf(8, 2):uint() == MD_INSTRUCTIONS
	local t = tree:add(md, buf(0, after), "INT-MD")

	t:add(m.len, buf(1, 1))
	t:add(m.flags, buf(4, 1))
	t:add(m.ml, buf(6, 1))
	t:add(m.hops, buf(7, 1))
	t:add(m.instructions, buf(8, 2))
	for at = 16, known and after - 24 or 0, 24 do
		local h = t:add(md, buf(at, 24), "Metadata")

		h:add(m.node, buf(at, 4))
		h:add(m.port, buf(at + 6, 2))
		h:add(m.queue, buf(at + 8, 1))
		h:add(m.cells, buf(at + 9, 3))
		h:add(m.ts, buf(at + 12, 8))
		h:add(m.util, buf(at + 20, 4))
	end
	return after < buf:len() and buf(after) or buf
end

-- Messages have old sequence numbers on purpose, and TCP's dissector does not pass
-- retransmissions on. Therefore this is a postdissector, which sees every packet.
local payload, flags = Field.new("tcp.payload"), Field.new("tcp.flags")

function int.dissector(buf, pinfo, tree)
	local data, set = payload(), flags()

	if data and set and set.value == 0x08 then
		dissect(dissect_md(data.range, tree), pinfo, tree)
	end
end

register_postdissector(int)

-- IFA 2.0, LNS 1: the headers before and after TCP's, the stack, and the message
local ifa = Proto("ifa", "Inband Flow Analyzer 2.0")
local g = {
	max = ProtoField.uint8("ifa.max_length", "Max length (words)"),
	hops = ProtoField.uint8("ifa.hop_limit", "Hop limit"),
	len = ProtoField.uint8("ifa.length", "Length (words)"),
	device = ProtoField.uint32("ifa.device", "Device"),
	speed = ProtoField.uint8("ifa.speed", "Speed (code)"),
	port = ProtoField.uint16("ifa.port", "Egress port"),
	rx_ns = ProtoField.uint32("ifa.rx_ns", "Arrival (ns)"),
	residence = ProtoField.uint32("ifa.residence", "Residence (ns)"),
	tx = ProtoField.uint32("ifa.tx", "Bytes sent"),
	cells = ProtoField.uint16("ifa.cells", "Queue (cells)"),
}
ifa.fields = g

function ifa.dissector(buf, pinfo, tree)
	if buf:len() < 28 or buf(0, 1):uint() ~= 0x2f or buf(1, 1):uint() ~= 6 then
		return 0
	end
	local stack = buf(27, 1):uint() * 4
	if buf:len() < 28 + stack then
		return 0
	end
	local t = tree:add(ifa, buf(0, 28 + stack), ("IFA: %d nodes"):format(math.floor(stack / 32)))

	t:add(g.max, buf(3, 1))
	t:add(g.hops, buf(26, 1))
	t:add(g.len, buf(27, 1))
	for at = 28, 28 + stack - 32, 32 do
		local h = t:add(ifa, buf(at, 32), "Metadata")

		h:add(g.device, buf(at, 3), buf(at, 3):uint() % 2 ^ 20)
		h:add(g.speed, buf(at + 4, 1), math.floor(buf(at + 4, 1):uint() / 16))
		h:add(g.port, buf(at + 8, 2))
		h:add(g.rx_ns, buf(at + 12, 4))
		h:add(g.residence, buf(at + 16, 4))
		h:add(g.tx, buf(at + 20, 4))
		h:add(g.cells, buf(at + 26, 2))
	end
	dissect(buf(28 + stack), pinfo, tree)
	return buf:len()
end

DissectorTable.get("ip.proto"):add(253, ifa)
