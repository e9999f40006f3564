//! Connecting a queue pair: what two ends tell each other, and the moves that follow from it.

use super::{Device, Qp, gid_type};
use crate::endpoint::{Destination, PathRequest};
use crate::error::{QpError, ResolveError};
use engine::{Access, QpAttr, QpAttrMask as Mask, QpState, QpType};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use wire::{Gid, Mtu, Psn, QKey, Qpn, RoceVersion};

/// What a peer has to know of a queue pair. It travels as JSON, see [`exchange`](crate::exchange).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QpInfo {
    /// Its number.
    pub qpn: u32,
    /// The PSN of its first packet.
    pub psn: u32,
    /// The address that it sends from and takes packets at.
    pub gid: IpAddr,
    /// The type of that address: both ends have to use one. `None` when it is not told.
    #[serde(default, with = "gid_type")]
    pub gid_type: Option<RoceVersion>,
    /// Largest path MTU that it will use, in bytes: that of its port, or the one asked for.
    pub mtu: u32,
    /// READs and atomics that it serves at a time.
    pub max_rd_atomic: u8,
    /// UD: its Q_Key.
    pub qkey: u32,
}

/// How to connect. The defaults suit a LAN.
#[derive(Clone, Debug)]
pub struct ConnectOptions {
    /// Index of our GID; it must be the one that the peer was told. By default the one that [`Qp::info`] or [`Qp::info_towards`]
    /// told, and if neither did, the one that leads to the peer.
    pub sgid_index: Option<usize>,
    /// Path MTU; by default the largest that both ports carry.
    pub path_mtu: Option<Mtu>,
    /// What the peer may do.
    pub access: Access,
    /// READs and atomics at a time, in each direction.
    pub max_rd_atomic: u8,
    /// Local ACK timeout, 4.096 µs × 2^n; 0 waits for ever. The default is 268 ms: two seconds over all retries, which a
    /// peer on a busy machine may need to get its turn. Losses are mostly found sooner, by what arrives after them.
    pub timeout: u8,
    /// Retries after timeouts, 0..=7.
    pub retry_cnt: u8,
    /// Retries after "receiver not ready", 0..=7; 7 has no end.
    pub rnr_retry: u8,
    /// RNR timer code, 0..=31: how long the peer waits when no receive is posted here.
    pub min_rnr_timer: u8,
    /// DSCP and ECN byte; by default the port's.
    pub traffic_class: Option<u8>,
    /// UD: our Q_Key.
    pub qkey: QKey,
}

/// What a peer may do where nobody says otherwise: what keys allow.
pub(crate) const EVERYTHING: Access = Access::LOCAL_WRITE
    .union(Access::REMOTE_WRITE)
    .union(Access::REMOTE_READ)
    .union(Access::REMOTE_ATOMIC)
    .union(Access::FLUSH_GLOBAL)
    .union(Access::FLUSH_PERSISTENT);

impl Default for ConnectOptions {
    fn default() -> Self {
        ConnectOptions {
            sgid_index: None,
            path_mtu: None,
            access: EVERYTHING,
            max_rd_atomic: 16,
            timeout: 16,
            retry_cnt: 7,
            rnr_retry: 7,
            min_rnr_timer: 12,
            traffic_class: None,
            qkey: DEFAULT_QKEY,
        }
    }
}

/// The Q_Key of datagram QPs that nobody gave another.
const DEFAULT_QKEY: QKey = QKey::new(0x1111_1111);

impl Qp {
    /// What to tell a peer of which nothing is known. `options` are those that [`connect`](Self::connect) will be called with. Where
    /// they name no GID, it is the one of the path that was found before, or [`Device::default_gid_index`].
    pub fn info(&self, options: &ConnectOptions) -> QpInfo {
        let chosen = options.sgid_index.or_else(|| self.sgid_index());
        self.info_of(chosen.unwrap_or_else(|| self.pd().device().default_gid_index()), options)
    }

    /// What to tell a peer at an address: where `options` name no GID, that of ours which leads there.
    ///
    /// Errors: no GID does, or not the one that `options` name; the words say which would.
    pub fn info_towards(
        &self,
        peer: impl Into<Destination>,
        options: &ConnectOptions,
    ) -> Result<QpInfo, ResolveError> {
        let request = PathRequest { sgid_index: options.sgid_index, ..PathRequest::to(peer) };
        Ok(self.info_of(self.pd().device().gid_index_for(&request)?, options))
    }

    fn info_of(&self, index: usize, options: &ConnectOptions) -> QpInfo {
        let device = self.pd().device();
        self.set_sgid_index(index);
        // An index that does not exist is refused by `connect`; until then the port's own address stands in.
        let entry = device.gid(index).or_else(|| device.gid(0));
        let gid = entry.map_or(Gid::UNSPECIFIED, |entry| entry.gid);
        QpInfo {
            qpn: self.qpn().value(),
            psn: self.first_psn().value(),
            gid: gid.ip(),
            gid_type: entry.map(|entry| entry.gid_type),
            mtu: options.path_mtu.unwrap_or_else(|| device.path_mtu()).bytes(),
            max_rd_atomic: options.max_rd_atomic,
            qkey: options.qkey.value(),
        }
    }

    /// Connects an RC, UC or XRC queue pair to a peer (an XRC initiator to a target): resolves its address, then goes from RESET (or INIT) to RTS. The peer does
    /// the same with our [`info`](Self::info). Receives may be posted before: see [`to_init`](Self::to_init).
    pub fn connect(&self, peer: &QpInfo, options: &ConnectOptions) -> Result<(), QpError> {
        if self.qp_type() == QpType::Ud {
            return Err(QpError::Type(QpType::Ud));
        }
        if self.state() == QpState::Reset {
            self.to_init(options)?;
        }
        self.to_rtr(peer, options)?;
        self.to_rts(peer, options)
    }

    /// Makes a UD queue pair ready to send and receive.
    pub fn activate(&self, options: &ConnectOptions) -> Result<(), QpError> {
        self.to_init(options)?;
        let to = |state| QpAttr { state, sq_psn: self.first_psn(), ..QpAttr::default() };
        self.modify(&to(QpState::Rtr), Mask::STATE)?;
        self.modify(&to(QpState::Rts), Mask::STATE | Mask::SQ_PSN)?;
        Ok(())
    }

    /// RESET → INIT: from now on receives may be posted.
    pub fn to_init(&self, options: &ConnectOptions) -> Result<(), QpError> {
        let attr =
            QpAttr { state: QpState::Init, access: options.access, qkey: options.qkey, ..QpAttr::default() };
        let mask = Mask::STATE | Mask::PKEY_INDEX | Mask::PORT;
        let own = if self.qp_type() == QpType::Ud { Mask::QKEY } else { Mask::ACCESS };
        self.modify(&attr, mask | own)?;
        Ok(())
    }

    /// INIT → RTR: from now on the peer's requests are executed.
    pub fn to_rtr(&self, peer: &QpInfo, options: &ConnectOptions) -> Result<(), QpError> {
        let device = self.pd().device();
        let dest_qpn = number(peer.qpn, "queue pair number")?;
        let chosen = options.sgid_index.or_else(|| self.sgid_index());
        if let Some(index) = chosen {
            same_gid_type(device, index, peer)?;
        }
        let request =
            PathRequest { sgid_index: chosen, gid_type: peer.gid_type, ..PathRequest::to(peer.gid) };
        let found = device.find_path(&request)?;
        self.set_sgid_index(found.gid_index);
        let mut path = found.addressing;
        path.udp_sport = wire::udp_sport(0, self.qpn(), dest_qpn);
        path.traffic_class = options.traffic_class.unwrap_or(path.traffic_class);
        let attr = QpAttr {
            state: QpState::Rtr,
            path: Some(path),
            path_mtu: common_mtu(device, peer, options)?,
            dest_qpn,
            rq_psn: number(peer.psn, "packet sequence number")?,
            max_dest_rd_atomic: options.max_rd_atomic,
            min_rnr_timer: options.min_rnr_timer,
            ..QpAttr::default()
        };
        let mask = Mask::STATE | Mask::AV | Mask::PATH_MTU | Mask::DEST_QPN | Mask::RQ_PSN;
        let answers = self.qp_type().is_reliable() && self.qp_type().has_responder();
        let reliable = Mask::MAX_DEST_RD_ATOMIC | Mask::MIN_RNR_TIMER;
        self.modify(&attr, if answers { mask | reliable } else { mask })?;
        Ok(())
    }

    /// RTR → RTS: from now on sends may be posted.
    pub fn to_rts(&self, peer: &QpInfo, options: &ConnectOptions) -> Result<(), QpError> {
        let attr = QpAttr {
            state: QpState::Rts,
            sq_psn: self.first_psn(),
            timeout: options.timeout,
            retry_cnt: options.retry_cnt,
            rnr_retry: options.rnr_retry,
            max_rd_atomic: options.max_rd_atomic.min(peer.max_rd_atomic),
            ..QpAttr::default()
        };
        let mask = Mask::STATE | Mask::SQ_PSN;
        let own = match self.qp_type() {
            QpType::Rc | QpType::XrcIni => {
                Mask::TIMEOUT | Mask::RETRY_CNT | Mask::RNR_RETRY | Mask::MAX_RD_ATOMIC
            }
            QpType::XrcTgt => Mask::TIMEOUT,
            QpType::Uc | QpType::Ud => Mask::empty(),
        };
        self.modify(&attr, mask | own)?;
        Ok(())
    }
}

/// A 24-bit number that a peer gave.
fn number<T: TryFrom<u32>>(value: u32, what: &'static str) -> Result<T, QpError> {
    T::try_from(value).map_err(|_| QpError::Peer { what, value: value.to_string() })
}

/// Packets of v1 and of v2 are not taken by an end that expects the other. An index that does not exist is refused elsewhere.
pub(crate) fn same_gid_type(device: &Device, index: usize, peer: &QpInfo) -> Result<(), QpError> {
    let (Some(ours), Some(theirs)) = (device.gid(index), peer.gid_type) else { return Ok(()) };
    if ours.gid_type == theirs {
        return Ok(());
    }
    let remedy = match device.gid_index_of_type(ours.gid, theirs) {
        Some(other) => format!("use index {other} here, or another at the peer"),
        None => "use another at the peer, or give the port here both gid_types".into(),
    };
    let (ours, theirs) = (gid_type::name(ours.gid_type), gid_type::name(theirs));
    Err(QpError::GidType { index, ours, theirs, remedy })
}

/// The MTU asked for, or the largest that both ends carry.
fn common_mtu(device: &Device, peer: &QpInfo, options: &ConnectOptions) -> Result<Mtu, QpError> {
    let theirs = Mtu::from_bytes(peer.mtu)
        .ok_or_else(|| QpError::Peer { what: "path MTU", value: peer.mtu.to_string() })?;
    let ours = device.path_mtu();
    let Some(asked) = options.path_mtu else { return Ok(theirs.min(ours)) };
    match () {
        _ if asked > ours => Err(QpError::PathMtu { asked, whose: "this port", most: ours }),
        // A packet longer than the peer's path MTU would be refused there, one after the other.
        _ if asked > theirs => Err(QpError::PathMtu { asked, whose: "the peer", most: theirs }),
        _ => Ok(asked),
    }
}

impl QpInfo {
    /// Its number, checked.
    pub fn qpn(&self) -> Result<Qpn, QpError> {
        number(self.qpn, "queue pair number")
    }

    /// Its first PSN, checked.
    pub fn psn(&self) -> Result<Psn, QpError> {
        number(self.psn, "packet sequence number")
    }
}
