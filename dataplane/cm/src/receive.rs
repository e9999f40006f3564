//! MADs that come in: to whom they belong, and what belongs to nobody.

use crate::build::stateless_rej;
use crate::slab::Handle;
use crate::{Cm, DropReason, Path};
use wire::mad::{
    Answered, Apr, AprStatus, Area, CmMad, CmMessage, CommId, Lap, MadError, MadHeader, MessageKind,
    RejectReason,
};

/// What becomes of a MAD: taken, or dropped under a name.
pub(crate) type Taken = Result<(), DropReason>;

impl Cm {
    /// Takes a MAD that came to QP 1 with the right Q_Key: `path.local` is where it was sent to, `path.remote` whence. Whatever
    /// it holds, it is taken, answered, or counted by name; never more than one answer is sent.
    pub fn on_mad(&mut self, now: u64, path: &Path, bytes: &[u8]) {
        let taken = match CmMad::parse(bytes) {
            Ok(mad) => {
                self.counters.count_received(&mad.message);
                self.dispatch(now, path, mad)
            }
            Err(error) => {
                self.refuse_version(path, error, bytes);
                Err(error.into())
            }
        };
        if let Err(reason) = taken {
            self.counters.count_drop(reason);
        }
    }

    fn dispatch(&mut self, now: u64, path: &Path, mad: CmMad) -> Taken {
        let tid = mad.transaction_id;
        match mad.message {
            CmMessage::Req(req) => self.on_req(now, path, tid, req),
            CmMessage::Rep(rep) => self.on_rep(now, path, tid, rep),
            CmMessage::Rtu(rtu) => self.on_rtu(path, rtu),
            CmMessage::Rej(rej) => self.on_rej(now, path, rej),
            CmMessage::Mra(mra) => self.on_mra(now, path, mra),
            CmMessage::Dreq(dreq) => self.on_dreq(now, path, tid, dreq),
            CmMessage::Drep(drep) => self.on_drep(now, path, drep),
            CmMessage::Lap(lap) => self.on_lap(path, tid, lap),
            CmMessage::SidrReq(req) => self.on_sidr_req(now, path, tid, req),
            CmMessage::SidrRep(rep) => self.on_sidr_rep(path, rep),
            // We never send a LAP.
            CmMessage::Apr(_) => Err(DropReason::Unexpected),
        }
    }

    /// A REQ of another class version is told that we do not speak it: its first field is the sender's ID, whatever the rest.
    fn refuse_version(&mut self, path: &Path, error: MadError, bytes: &[u8]) {
        let Some(header) = MadHeader::parse(bytes) else { return };
        let is_req = header.attribute_id == MessageKind::Req.attribute();
        if let (MadError::ClassVersion(_), true, Some(id)) =
            (error, is_req, bytes.get(MadHeader::LEN..).and_then(|body| body.first_chunk()))
        {
            let ids = (CommId(0), CommId(u32::from_be_bytes(*id)));
            let reason = RejectReason::INVALID_CLASS_VERSION;
            let rej = stateless_rej(header.transaction_id, ids, Answered::Req, reason, &[]);
            self.transmit(*path, &rej);
        }
    }

    /// The connection that a message is for: ours by its second ID, and the peer's by its first.
    pub(crate) fn find(&self, path: &Path, theirs: CommId, ours: CommId) -> Result<Handle, DropReason> {
        let handle = self.find_ours(path, ours)?;
        match self.conns.get(handle) {
            Some(conn) if theirs == conn.remote_id && theirs != CommId(0) => Ok(handle),
            _ => Err(DropReason::UnknownId),
        }
    }

    /// The same, when the peer's ID may be told for the first time.
    pub(crate) fn find_ours(&self, path: &Path, ours: CommId) -> Result<Handle, DropReason> {
        let &handle = self.index.by_local.get(&ours).ok_or(DropReason::UnknownId)?;
        match self.conns.get(handle) {
            Some(conn) if conn.path.same_ends(path) => Ok(handle),
            _ => Err(DropReason::WrongPeer),
        }
    }

    /// Alternate paths are not used: a LAP of a connection is refused (rocev2 facts, CM 7).
    fn on_lap(&mut self, path: &Path, tid: u64, lap: Lap) -> Taken {
        let handle = self.find(path, lap.local_id, lap.remote_id)?;
        let conn = self.conns.get(handle).ok_or(DropReason::UnknownId)?;
        if conn.local_qpn != Some(lap.remote_qpn) {
            return Err(DropReason::WrongQpn);
        }
        let apr = Apr {
            local_id: conn.local_id,
            remote_id: conn.remote_id,
            info_len: 0,
            status: AprStatus::UNSUPPORTED,
            info_area: Area::EMPTY,
            private_data: Area::EMPTY,
        };
        self.transmit(*path, &CmMad::new(tid, apr));
        Ok(())
    }
}
