// SPDX-License-Identifier: GPL-2.0
/*
 * ns3-fabric - the fat-trees of devel/speed-fabric as a model in ns-3: the same flows, of DCTCP, packet by packet, on
 * links of 1 us, with a RED step and ECN at every switch port, and ECMP by flow.
 *
 * ns-3's point-to-point header has 2 bytes where Ethernet's has 14; the rate makes up for it, so that a full-size
 * packet takes the same time in both. ns-3's own ECMP chooses a path for each packet, and its global routes are
 * computed for each host: routes are taken from addresses here instead, which is faster. Also for speed: no tracing,
 * no logging, no IPv6, no checksums.
 *
 * usage: ns3-fabric [--scheduler=TypeId] FLOWS
 *
 * FLOWS has a line "K RATE MARK", RATE in bit/s, MARK in packets, and one for each flow: "FROM TO BYTES START", the
 * ends as P-E-I (host I at edge switch E of pod P), START in ns. Prints a line of JSON.
 */
#include <cstdio>
#include <fstream>
#include <iostream>
#include <string>
#include <sys/resource.h>
#include <vector>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include "ns3-common.hh"

using namespace ns3;

namespace
{

const uint16_t FIRST_PORT = 5000;

// Host I at edge switch E of pod P is 10.P.(16 E + I).1
struct Place
{
	uint32_t pod;
	uint32_t edge;
	uint32_t host;

	explicit Place(Ipv4Address a)
		: pod(a.Get() >> 16 & 255), edge(a.Get() >> 12 & 15), host(a.Get() >> 8 & 15)
	{
	}

	explicit Place(const std::string& name)
	{
		if (std::sscanf(name.c_str(), "%u-%u-%u", &pod, &edge, &host) != 3) {
			NS_FATAL_ERROR("'" << name << "' is no host");
		}
	}

	Ipv4Address Address() const
	{
		return Ipv4Address(10u << 24 | pod << 16 | (16 * edge + host) << 8 | 1);
	}
};

enum Tier { HOST, EDGE, AGGREGATION, CORE };

// Interface 0 is the loopback; then those down, then those up.
class FatTreeRouting : public Ipv4RoutingProtocol
{
      public:
	FatTreeRouting(Tier tier, uint32_t half, uint32_t pod = 0, uint32_t edge = 0)
		: m_tier(tier), m_half(half), m_pod(pod), m_edge(edge)
	{
	}

	void SetIpv4(Ptr<Ipv4> ipv4) override
	{
		m_ipv4 = ipv4;
	}

	Ptr<Ipv4Route> RouteOutput(Ptr<Packet>, const Ipv4Header&, Ptr<NetDevice>, Socket::SocketErrno& error) override
	{
		error = Socket::ERROR_NOTERROR;
		return Route(1);
	}

	bool RouteInput(Ptr<const Packet> packet, const Ipv4Header& header, Ptr<const NetDevice>,
			UnicastForwardCallback forward, MulticastForwardCallback, LocalDeliverCallback deliver,
			ErrorCallback) override
	{
		const Place to(header.GetDestination());

		if (m_tier == HOST) {
			deliver(packet, header, 1);
		} else if (m_tier == CORE) {
			forward(Route(1 + to.pod), packet, header);
		} else if (to.pod == m_pod && m_tier == AGGREGATION) {
			forward(Route(1 + to.edge), packet, header);
		} else if (to.pod == m_pod && to.edge == m_edge) {
			forward(Route(1 + to.host), packet, header);
		} else {
			forward(Route(1 + m_half + Hash(packet, header) % m_half), packet, header);
		}
		return true;
	}

	void NotifyInterfaceUp(uint32_t) override
	{
	}
	void NotifyInterfaceDown(uint32_t) override
	{
	}
	void NotifyAddAddress(uint32_t, Ipv4InterfaceAddress) override
	{
	}
	void NotifyRemoveAddress(uint32_t, Ipv4InterfaceAddress) override
	{
	}
	void PrintRoutingTable(Ptr<OutputStreamWrapper>, Time::Unit) const override
	{
	}

      private:
	// Addresses and ports; each tier has its own, as the kernel's switches have their own keys.
	uint32_t Hash(Ptr<const Packet> packet, const Ipv4Header& header) const
	{
		uint8_t ports[4];
		uint64_t hash = header.GetSource().Get() * 0x9E3779B97F4A7C15u + header.GetDestination().Get() + m_tier;

		packet->CopyData(ports, sizeof(ports));
		for (uint8_t byte : ports) {
			hash = (hash ^ byte) * 0x100000001B3u;
		}
		return (hash ^ hash >> 33) * 0xFF51AFD7ED558CCDu >> 40;
	}

	Ptr<Ipv4Route> Route(uint32_t interface)
	{
		if (m_routes.size() <= interface) {
			m_routes.resize(interface + 1);
		}
		if (!m_routes[interface]) {
			m_routes[interface] = Create<Ipv4Route>();
			m_routes[interface]->SetOutputDevice(m_ipv4->GetNetDevice(interface));
			// any: on a point-to-point link it only has to be there
			m_routes[interface]->SetGateway(Ipv4Address::GetLoopback());
			m_routes[interface]->SetSource(m_ipv4->GetAddress(interface, 0).GetLocal());
		}
		return m_routes[interface];
	}

	Ptr<Ipv4> m_ipv4;
	std::vector<Ptr<Ipv4Route>> m_routes;
	Tier m_tier;
	uint32_t m_half, m_pod, m_edge;
};

class Fabric
{
      public:
	Fabric(uint32_t k, double rate, uint32_t mark)
	{
		m_link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(rate / ETHERNET_FRAME * PPP_FRAME)));
		m_link.SetChannelAttribute("Delay", TimeValue(MicroSeconds(1)));
		// At a switch the whole queue is in the queue discipline, and the device holds one packet.
		m_link.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue("1p"));
		m_red.SetRootQueueDisc("ns3::RedQueueDisc", "MinTh", DoubleValue(mark), "MaxTh", DoubleValue(mark), "QW",
				       DoubleValue(1), "UseEcn", BooleanValue(true), "UseHardDrop", BooleanValue(false),
				       "Gentle", BooleanValue(false), "MaxSize", StringValue("666p"), "MeanPktSize",
				       UintegerValue(1500), "LinkBandwidth", DataRateValue(DataRate(rate)), "LinkDelay",
				       TimeValue(MicroSeconds(1)));
		const uint32_t half = k / 2;
		NodeContainer hosts, edges, aggregations, cores;
		hosts.Create(k * half * half);
		edges.Create(k * half);
		aggregations.Create(k * half);
		cores.Create(half * half);
		for (uint32_t p = 0; p < k; p++) {
			for (uint32_t e = 0; e < half; e++) {
				for (uint32_t i = 0; i < half; i++) {
					Install(hosts.Get((p * half + e) * half + i), new FatTreeRouting(HOST, half));
				}
				Install(edges.Get(p * half + e), new FatTreeRouting(EDGE, half, p, e));
				Install(aggregations.Get(p * half + e), new FatTreeRouting(AGGREGATION, half, p));
			}
		}
		for (uint32_t c = 0; c < half * half; c++) {
			Install(cores.Get(c), new FatTreeRouting(CORE, half));
		}
		// in the order of interfaces: down, then up
		for (uint32_t p = 0; p < k; p++) {
			for (uint32_t e = 0; e < half; e++) {
				for (uint32_t i = 0; i < half; i++) {
					Link(hosts.Get((p * half + e) * half + i), edges.Get(p * half + e), false,
					     Ipv4Address(10u << 24 | p << 16 | (16 * e + i) << 8));
				}
			}
		}
		for (uint32_t p = 0; p < k; p++) {
			for (uint32_t a = 0; a < half; a++) {
				for (uint32_t e = 0; e < half; e++) {
					Link(edges.Get(p * half + e), aggregations.Get(p * half + a), true,
					     Ipv4Address(172u << 24 | (16 + p) << 16 | (16 * e + a) << 8));
				}
			}
		}
		for (uint32_t p = 0; p < k; p++) {
			for (uint32_t a = 0; a < half; a++) {
				for (uint32_t c = 0; c < half; c++) {
					Link(aggregations.Get(p * half + a), cores.Get(a * half + c), true,
					     Ipv4Address(192u << 24 | p << 16 | (16 * a + c) << 8));
				}
			}
		}
		m_hosts = hosts;
		m_half = half;
	}

	Ptr<Node> Host(const Place& at) const
	{
		return m_hosts.Get((at.pod * m_half + at.edge) * m_half + at.host);
	}

	// Over all links, both ways
	uint64_t Packets() const
	{
		uint64_t sum = 0;

		for (uint32_t d = 0; d < m_devices.GetN(); d++) {
			sum += DynamicCast<PointToPointNetDevice>(m_devices.Get(d))->GetQueue()->GetTotalReceivedPackets();
		}
		return sum;
	}

	void Marks(uint64_t& marks, uint64_t& drops) const
	{
		for (const Ptr<QueueDisc>& queue : m_queues) {
			marks += queue->GetStats().nTotalMarkedPackets;
			drops += queue->GetStats().nTotalDroppedPackets;
		}
	}

      private:
	void Install(Ptr<Node> node, FatTreeRouting* routing)
	{
		InternetStackHelper stack;

		stack.SetIpv6StackInstall(false);
		stack.Install(node);
		node->GetObject<Ipv4>()->SetRoutingProtocol(Ptr<Ipv4RoutingProtocol>(routing, false));
	}

	// The lower end is .1, the upper one .254; a host's end has no queue of its own
	void Link(Ptr<Node> below, Ptr<Node> above, bool isSwitch, Ipv4Address net)
	{
		NetDeviceContainer ends = m_link.Install(below, above);

		Assign(ends.Get(0), Ipv4Address(net.Get() + 1));
		Assign(ends.Get(1), Ipv4Address(net.Get() + 254));
		m_queues.push_back(m_red.Install(ends.Get(1)).Get(0));
		if (isSwitch) {
			m_queues.push_back(m_red.Install(ends.Get(0)).Get(0));
		} else {
			DynamicCast<PointToPointNetDevice>(ends.Get(0))->GetQueue()->SetMaxSize(QueueSize("100000p"));
		}
		m_devices.Add(ends);
	}

	static void Assign(Ptr<NetDevice> device, Ipv4Address address)
	{
		Ptr<Ipv4> ipv4 = device->GetNode()->GetObject<Ipv4>();
		const uint32_t interface = ipv4->AddInterface(device);

		ipv4->AddAddress(interface, Ipv4InterfaceAddress(address, Ipv4Mask("255.255.255.0")));
		ipv4->SetUp(interface);
	}

	PointToPointHelper m_link;
	TrafficControlHelper m_red;
	NodeContainer m_hosts;
	NetDeviceContainer m_devices;
	std::vector<Ptr<QueueDisc>> m_queues;
	uint32_t m_half;
};

struct Flow
{
	uint64_t left;
	double start, end;
};

uint32_t unfinished;

void
received(Flow* flow, Ptr<const Packet> packet, const Address&)
{
	if (packet->GetSize() < flow->left) {
		flow->left -= packet->GetSize();
		return;
	}
	flow->left = 0;
	flow->end = Simulator::Now().GetSeconds();
	if (--unfinished == 0) {
		Simulator::Stop();
	}
}

} // namespace

int
main(int argc, char** argv)
{
	std::string scheduler = "ns3::HeapScheduler";
	std::string file, from, to;
	uint32_t k, mark;
	double rate;
	uint64_t bytes, start;

	CommandLine cmd(__FILE__);
	cmd.AddValue("scheduler", "ns-3's event scheduler", scheduler);
	cmd.AddNonOption("flows", "fabric and flows", file);
	cmd.Parse(argc, argv);

	useDctcp(scheduler, MilliSeconds(10));
	// its DCTCP goes down to one packet, for which a receiver would wait 200 ms
	Config::SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(MilliSeconds(1)));

	std::ifstream input(file);
	if (!(input >> k >> rate >> mark)) {
		NS_FATAL_ERROR("no fabric in '" << file << "'");
	}
	Fabric fabric(k, rate, mark);
	std::vector<Flow*> flows;
	while (input >> from >> to >> bytes >> start) {
		const Place source(from), sink(to);
		const uint16_t port = FIRST_PORT + flows.size();

		flows.push_back(new Flow{bytes, start / 1e9, 0});
		PacketSinkHelper server("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port));
		ApplicationContainer sinks = server.Install(fabric.Host(sink));
		sinks.Start(Seconds(0));
		sinks.Get(0)->TraceConnectWithoutContext("Rx", MakeBoundCallback(&received, flows.back()));
		BulkSendHelper client("ns3::TcpSocketFactory", InetSocketAddress(sink.Address(), port));
		client.SetAttribute("MaxBytes", UintegerValue(bytes));
		client.SetAttribute("SendSize", UintegerValue(PAYLOAD));
		client.Install(fabric.Host(source)).Start(NanoSeconds(start));
	}
	unfinished = flows.size();
	Simulator::Stop(Seconds(60));

	const double setUp = cpuSeconds();
	Simulator::Run();

	uint64_t marks = 0, drops = 0;
	fabric.Marks(marks, drops);
	rusage used;
	getrusage(RUSAGE_SELF, &used);
	std::cout << "{\"unfinished\":" << unfinished << ",\"packets\":" << fabric.Packets() << ",\"marks\":" << marks
		  << ",\"drops\":" << drops << ",\"setup_cpu_s\":" << setUp << ",\"cpu_s\":" << cpuSeconds()
		  << ",\"memory_kb\":" << used.ru_maxrss << ",\"durations_us\":[";
	for (std::size_t f = 0; f < flows.size(); f++) {
		std::cout << (f ? "," : "") << (flows[f]->end - flows[f]->start) * 1e6;
	}
	std::cout << "]}\n";
	return unfinished ? 1 : 0;
}
