//! From text to [`Config`]: serde for the shape, then the rules that span several keys.

use super::locate::{key_at, line_of};
use super::port::DEFAULT_MTU;
use super::{
    Config, ConfigError, CongestionSettings, ControlSettings, DeviceKind, Drive, EalSettings, LogLevel,
    MemifRole, MemoryKind, PollMode, PortSettings, QosSettings, WorkerSettings, links, raw,
};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::str::FromStr;
use toml::Spanned;
use wire::RoceVersion;

/// Why something is refused, before file and line are known.
pub(super) struct Refusal {
    span: Range<usize>,
    problem: String,
    remedy: String,
}

pub(super) type Checked<T> = Result<T, Refusal>;

pub(super) fn refuse<T>(
    span: Range<usize>,
    problem: impl Into<String>,
    remedy: impl Into<String>,
) -> Checked<T> {
    Err(Refusal { span, problem: problem.into(), remedy: remedy.into() })
}

pub(super) fn parse(text: &str, path: &Path) -> Result<Config, ConfigError> {
    let at = |refusal: Refusal| ConfigError {
        file: path.to_owned(),
        line: Some(line_of(text, refusal.span.start)),
        key: key_at(text, refusal.span.start),
        problem: refusal.problem,
        remedy: refusal.remedy,
    };
    let file: raw::File = toml::from_str(text).map_err(|error| at(shape_refusal(text, &error)))?;
    check(file).map_err(at)
}

/// What serde and TOML complain about, in our words.
fn shape_refusal(text: &str, error: &toml::de::Error) -> Refusal {
    let span = error.span().unwrap_or(0..0);
    let message = error.message().trim().replace('\n', " ");
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let (problem, remedy) =
        match (message.split(' ').take(2).collect::<Vec<_>>().join(" ").as_str(), &quoted[..]) {
            ("unknown field", [name, known @ ..]) => ("there is no such key".into(), nearest(name, known)),
            ("unknown variant", [name, known @ ..]) => {
                (format!("{name:?} is not a value it takes"), nearest(name, known))
            }
            ("missing field", [name, ..]) => {
                (format!("the key {name} is missing"), format!("add a line {name} = …"))
            }
            _ => {
                let shown = text.get(span.clone()).unwrap_or_default().lines().next().unwrap_or_default();
                let shown = if shown.is_empty() { String::new() } else { format!(" at {shown:?}") };
                (format!("{message}{shown}"), "write it as in the examples in configs/".into())
            }
        };
    Refusal { span, problem, remedy }
}

/// The known name nearest to a mistyped one, or all of them.
fn nearest(name: &str, known: &[&str]) -> String {
    let close = known.iter().map(|known| (strsim::jaro_winkler(name, known), known));
    match close.max_by(|a, b| a.0.total_cmp(&b.0)) {
        Some((likeness, best)) if likeness > 0.8 => format!("did you mean {best}?"),
        _ if known.is_empty() => "remove it".into(),
        _ => format!("use one of {}", known.join(", ")),
    }
}

fn check(file: raw::File) -> Checked<Config> {
    let ports = file
        .port
        .into_iter()
        .enumerate()
        .map(|(index, port)| check_port(index, port))
        .collect::<Checked<Vec<_>>>()?;
    let spans: Vec<Range<usize>> = ports.iter().map(|(span, _)| span.clone()).collect();
    let ports: Vec<PortSettings> = ports.into_iter().map(|(_, port)| port).collect();
    check_together(&ports, &spans)?;
    Ok(Config {
        eal: check_eal(file.eal)?,
        ports,
        workers: check_workers(file.workers)?,
        qos: check_qos(&file.qos)?,
        congestion: match file.congestion.algorithm {
            raw::Algorithm::None => CongestionSettings::None,
        },
        control: check_control(file.control)?,
    })
}

fn check_eal(eal: raw::Eal) -> Checked<EalSettings> {
    if let Some(mb) = eal.memory_mb.as_ref() {
        if eal.memory != raw::Memory::NoHuge {
            return refuse(
                mb.span(),
                "has an effect only without hugepages",
                "add memory = \"no-huge\", or remove it",
            );
        }
        if *mb.get_ref() < 64 {
            return refuse(mb.span(), "is too little for the packet pools", "give 64 or more");
        }
    }
    if let Some(prefix) = eal.file_prefix.as_ref() {
        let text = prefix.get_ref();
        if text.is_empty() || text.contains('/') || text.chars().any(char::is_whitespace) {
            return refuse(prefix.span(), "is no file name", "use letters, digits and dashes");
        }
    }
    Ok(EalSettings {
        memory: match eal.memory {
            raw::Memory::Auto => MemoryKind::Auto,
            raw::Memory::Hugepages => MemoryKind::Hugepages,
            raw::Memory::NoHuge => MemoryKind::NoHuge,
        },
        memory_mb: eal.memory_mb.map(Spanned::into_inner),
        file_prefix: eal.file_prefix.map(Spanned::into_inner),
        log: match eal.log {
            raw::Log::Quiet => LogLevel::Quiet,
            raw::Log::Error => LogLevel::Error,
            raw::Log::Warning => LogLevel::Warning,
            raw::Log::Info => LogLevel::Info,
            raw::Log::Debug => LogLevel::Debug,
        },
        extra_args: eal.extra_args,
    })
}

fn check_workers(workers: raw::Workers) -> Checked<WorkerSettings> {
    let drive = match workers.drive {
        raw::Drive::Threads => Drive::Threads,
        raw::Drive::Caller => Drive::Caller,
    };
    if let (Drive::Caller, Some(poll)) = (drive, workers.poll.as_ref()) {
        return refuse(
            poll.span(),
            "has no effect: the caller decides when to poll",
            "remove it, or drive by threads",
        );
    }
    if let (Drive::Caller, Some(core)) = (drive, workers.cores.first()) {
        return refuse(
            core.span(),
            "has no effect: the caller's thread polls",
            "remove it, or drive by threads",
        );
    }
    for (index, core) in workers.cores.iter().enumerate() {
        if workers.cores[..index].iter().any(|earlier| earlier.get_ref() == core.get_ref()) {
            return refuse(core.span(), "the core is named twice", "give each worker a core of its own");
        }
    }
    Ok(WorkerSettings {
        drive,
        cores: workers.cores.into_iter().map(Spanned::into_inner).collect(),
        poll: match workers.poll.map(Spanned::into_inner) {
            Some(raw::Poll::Busy) => PollMode::Busy,
            Some(raw::Poll::Adaptive) | None => PollMode::Adaptive,
        },
    })
}

fn check_qos(qos: &raw::Qos) -> Checked<QosSettings> {
    let default = QosSettings::default();
    if let Some(dscp) = qos.dscp.as_ref().filter(|dscp| *dscp.get_ref() > 63) {
        return refuse(dscp.span(), "a DSCP has six bits", "give 0 to 63; 26 is usual for RoCE");
    }
    if let Some(limit) = qos.hop_limit.as_ref().filter(|limit| *limit.get_ref() == 0) {
        return refuse(limit.span(), "a packet with no hop left goes nowhere", "give 1 to 255");
    }
    Ok(QosSettings {
        dscp: qos.dscp.as_ref().map_or(default.dscp, |dscp| *dscp.get_ref()),
        ecn: qos.ecn,
        hop_limit: qos.hop_limit.as_ref().map_or(default.hop_limit, |limit| *limit.get_ref()),
    })
}

fn check_control(control: raw::Control) -> Checked<ControlSettings> {
    if let Some(socket) = control.socket.as_ref() {
        // The kernel's sockaddr_un has room for 108 bytes with their NUL.
        if socket.get_ref().is_empty() || socket.get_ref().len() > 107 {
            return refuse(socket.span(), "is no path for a socket", "give a path of 1 to 107 bytes");
        }
    }
    let listen = control.listen.map(|text| {
        parsed(
            &text,
            "is no address to listen on",
            "write ADDRESS:PORT, as in \"0.0.0.0:18591\" or \"[::]:18591\"",
        )
    });
    Ok(ControlSettings {
        socket: control.socket.map(|socket| socket.into_inner().into()),
        listen: listen.transpose()?,
    })
}

fn check_port(index: usize, port: Spanned<raw::Port>) -> Checked<(Range<usize>, PortSettings)> {
    let span = port.span();
    let mut port = port.into_inner();
    let device = check_device(&span, &mut port)?;
    let addresses = links::addresses(&port.addresses)?;
    let vlans = links::vlans(port.vlan.as_ref().map(|vlan| *vlan.get_ref()), &port.vlans)?;
    if let Some(vlan) = port.vlan.as_ref().filter(|vlan| !(1..=4094).contains(vlan.get_ref())) {
        return refuse(
            vlan.span(),
            "there is no such VLAN",
            "give 1 to 4094, or remove the key for untagged",
        );
    }
    if let Some(mtu) = port.mtu.as_ref().filter(|mtu| !(1280..=9600).contains(mtu.get_ref())) {
        return refuse(mtu.span(), "is out of range", "give 1280 to 9600; 4200 carries a path MTU of 4096");
    }
    let gid_types = check_gid_types(port.gid_types.as_ref())?;
    for descriptors in [&port.rx_descriptors, &port.tx_descriptors].into_iter().flatten() {
        if !(64..=32_768).contains(descriptors.get_ref()) {
            return refuse(descriptors.span(), "is out of range", "give 64 to 32768");
        }
    }
    let name = match port.name {
        Some(name) if name.get_ref().is_empty() => {
            return refuse(name.span(), "is empty", "give it a name, or remove it");
        }
        Some(name) => name.into_inner(),
        None => format!("port{index}"),
    };
    let mac = port.mac.map(|mac| {
        parsed::<wire::Mac>(&mac, "is no Ethernet address", "write it as in \"02:00:00:00:00:0a\"")
    });
    let impair = port.impair.map(|text| {
        impair::Plan::parse(text.get_ref()).or_else(|why| refuse(text.span(), why.problem(), why.remedy()))
    });
    let number = |value: Option<Spanned<u16>>, default| value.map_or(default, Spanned::into_inner);
    let settings = PortSettings {
        name,
        device,
        mac: mac.transpose()?,
        addresses,
        gid_types,
        vlan: port.vlan.map(Spanned::into_inner),
        vlans,
        mtu: number(port.mtu, DEFAULT_MTU),
        gateway_v4: port.gateway.map(Spanned::into_inner),
        gateway_v6: port.gateway6.map(Spanned::into_inner),
        neighbour_timeout: links::neighbour_timeout(port.neighbour_timeout_ms.as_ref())?,
        rx_descriptors: number(port.rx_descriptors, 1024),
        tx_descriptors: number(port.tx_descriptors, 1024),
        zero_copy: port.zero_copy.is_none_or(Spanned::into_inner),
        impair: impair.transpose()?,
    };
    Ok((span, settings))
}

fn check_gid_types(given: Option<&Spanned<Vec<raw::GidType>>>) -> Checked<Vec<RoceVersion>> {
    let Some(given) = given else { return Ok(vec![RoceVersion::V2]) };
    let types = given.get_ref();
    if types.is_empty() || (types.len() > 1 && types[0] == types[1]) || types.len() > 2 {
        return refuse(
            given.span(),
            "each type is named once, one at least",
            "write [\"v2\"], [\"v1\"] or [\"v1\", \"v2\"]",
        );
    }
    let version = |&gid_type: &raw::GidType| match gid_type {
        raw::GidType::V1 => RoceVersion::V1,
        raw::GidType::V2 => RoceVersion::V2,
    };
    Ok(types.iter().map(version).collect())
}

/// Takes the keys of the port's driver; one that is left over would have no effect.
fn check_device(span: &Range<usize>, port: &mut raw::Port) -> Checked<DeviceKind> {
    let driver = port.driver;
    let need = |key: &str, example: &str| {
        refuse(span.clone(), format!("the key {key} is missing"), format!("add a line {key} = {example}"))
    };
    let device = match driver {
        raw::Driver::Ring => match port.pair.take() {
            Some(pair) => DeviceKind::Ring { pair: pair.into_inner() },
            None => return need("pair", "\"a-name\""),
        },
        raw::Driver::Tap | raw::Driver::AfPacket | raw::Driver::Pcap => {
            let Some(interface) = port.interface.take().map(Spanned::into_inner) else {
                return need("interface", "\"NAME\"");
            };
            match driver {
                raw::Driver::Tap => DeviceKind::Tap { interface },
                raw::Driver::Pcap => DeviceKind::Pcap { interface },
                _ => DeviceKind::AfPacket { interface },
            }
        }
        raw::Driver::Memif => {
            let Some(socket) = port.socket.take() else { return need("socket", "\"/run/memif.sock\"") };
            let Some(role) = port.role.take() else {
                return need("role", "\"server\" on one side, \"client\" on the other");
            };
            DeviceKind::Memif {
                socket: socket.into_inner().into(),
                role: match role.into_inner() {
                    raw::Role::Server => MemifRole::Server,
                    raw::Role::Client => MemifRole::Client,
                },
                id: port.id.take().map_or(0, Spanned::into_inner),
            }
        }
        raw::Driver::Pci => match port.address.take() {
            Some(address) if !is_pci_address(address.get_ref()) => {
                return refuse(
                    address.span(),
                    "is no PCI address",
                    "write it as `dpdk-devbind.py --status` lists it, as in \"0000:3b:00.0\"",
                );
            }
            Some(address) => DeviceKind::Pci { address: address.into_inner() },
            None => return need("address", "\"0000:3b:00.0\""),
        },
        raw::Driver::Vdev => match port.device.take() {
            Some(device) => DeviceKind::Vdev {
                name: device.into_inner(),
                args: port.args.take().map(Spanned::into_inner).unwrap_or_default(),
            },
            None => return need("device", "\"net_null_0\""),
        },
    };
    check_left_over(port)?;
    if let (Some(mac), DeviceKind::Pci { .. }) = (&port.mac, &device) {
        return refuse(
            mac.span(),
            "the address of this device is its own",
            "remove the key, or change the device's address",
        );
    }
    if let (Some(zero_copy), DeviceKind::Pci { .. } | DeviceKind::Pcap { .. }) = (&port.zero_copy, &device) {
        return refuse(zero_copy.span(), "this driver sends from its own buffers only", "remove the key");
    }
    Ok(device)
}

/// `[DOMAIN:]BUS:DEVICE.FUNCTION`, perhaps with driver arguments after a comma.
fn is_pci_address(text: &str) -> bool {
    let address = text.split(',').next().unwrap_or_default();
    let mut fields = address.rsplit([':', '.']);
    let mut number =
        |most| fields.next().is_some_and(|text| u32::from_str_radix(text, 16).is_ok_and(|n| n <= most));
    let shaped = address.matches('.').count() == 1 && address.rfind('.') > address.rfind(':');
    let (function, device, bus) = (number(7), number(31), number(255));
    let domain = fields.next().is_none_or(|text| u32::from_str_radix(text, 16).is_ok());
    shaped && function && device && bus && domain && fields.next().is_none()
}

fn check_left_over(port: &raw::Port) -> Checked<()> {
    let left = [&port.pair, &port.interface, &port.socket, &port.address, &port.device, &port.args];
    let span = left.into_iter().flatten().map(Spanned::span).next();
    let span = span.or(port.role.as_ref().map(Spanned::span)).or(port.id.as_ref().map(Spanned::span));
    match span {
        Some(span) => {
            refuse(span, "this driver has no such key", "remove it, or choose the driver that it belongs to")
        }
        None => Ok(()),
    }
}

/// Rules between ports.
fn check_together(ports: &[PortSettings], spans: &[Range<usize>]) -> Checked<()> {
    let mut pairs: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, port) in ports.iter().enumerate() {
        if ports[..index].iter().any(|earlier| earlier.name == port.name) {
            return refuse(
                spans[index].clone(),
                format!("two ports are called {:?}", port.name),
                "give each a name of its own",
            );
        }
        if let DeviceKind::Ring { pair } = &port.device {
            pairs.entry(pair).or_default().push(index);
        }
    }
    for (pair, ends) in pairs {
        if let (1, Some(&end)) | (3.., Some(&end)) = (ends.len(), ends.last()) {
            let problem = format!("a ring pair has two ends, {pair:?} has {}", ends.len());
            return refuse(spans[end].clone(), problem, "give exactly two ports the same pair");
        }
    }
    Ok(())
}

fn parsed<T: FromStr>(text: &Spanned<String>, problem: &str, remedy: &str) -> Checked<T> {
    text.get_ref().parse().or_else(|_| refuse(text.span(), problem, remedy))
}
