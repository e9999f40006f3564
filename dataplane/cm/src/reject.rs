//! REJ, in both directions, and connections that only one side remembers (rocev2 facts, CM 7, 8 and 11).

use crate::build::{area, rej_of_req};
use crate::index::Peer;
use crate::receive::Taken;
use crate::slab::Handle;
use crate::{Cm, CmError, ConnId, DisconnectCause, DropReason, Event, Path, State};
use wire::mad::{Answered, Area, CmMessage, Rej, RejectReason, Req};

impl Cm {
    /// Refuses a request or a reply. No event but [`Event::TimewaitExit`] follows.
    pub fn send_rej(
        &mut self,
        now: u64,
        conn: ConnId,
        reason: RejectReason,
        ari: &[u8],
        private_data: &[u8],
    ) -> Result<(), CmError> {
        let (ari_area, private_data) = (area::<72>(ari)?, area(private_data)?);
        let handle = conn.0;
        let conn = self.conns.get(handle).ok_or(CmError::UnknownId)?;
        if !conn.state.is_half_open() && !conn.state.is_replied() {
            return Err(CmError::WrongState(conn.state));
        }
        let mut mad = conn.rej(conn.rejects(), reason, &[]);
        if let CmMessage::Rej(rej) = &mut mad.message {
            (rej.ari_len, rej.ari_area, rej.private_data) = (ari.len() as u8, ari_area, private_data);
        }
        self.transmit(conn.path, &mad);
        self.enter_timewait(now, handle, Some(mad));
        Ok(())
    }

    pub(crate) fn on_rej(&mut self, now: u64, path: &Path, rej: Rej) -> Taken {
        let handle = self.find_rejected(path, &rej)?;
        let Some(conn) = self.conns.get(handle) else { return Err(DropReason::UnknownId) };
        let (id, state, rej) = (conn.id, conn.state, Box::new(rej));
        match state {
            State::Timewait => return Err(DropReason::Duplicate),
            State::Established | State::DreqSent => {
                self.tell(handle, Event::Disconnected { conn: id, cause: DisconnectCause::Rejected(rej) });
            }
            _ => self.tell(handle, Event::Rejected { conn: id, rej }),
        }
        self.enter_timewait(now, handle, None);
        Ok(())
    }

    /// A peer that gave up may not know our ID: it names itself by GUID and its own ID. One that refuses a REQ has no ID.
    fn find_rejected(&self, path: &Path, rej: &Rej) -> Result<Handle, DropReason> {
        if let (RejectReason::TIMEOUT, Some(guid)) = (rej.reason, rej.ari().first_chunk()) {
            let peer = Peer::new(path, u64::from_be_bytes(*guid));
            if let Some(&handle) = self.index.by_remote.get(&(peer, rej.local_id)) {
                return Ok(handle);
            }
        }
        if let Ok(handle) = self.find(path, rej.local_id, rej.remote_id) {
            return Ok(handle);
        }
        let handle = self.find_ours(path, rej.remote_id)?;
        let asking = self.conns.get(handle).is_some_and(|conn| conn.state.is_asking());
        match rej.message {
            Answered::Req if asking => Ok(handle),
            _ => Err(DropReason::UnknownId),
        }
    }

    /// A request from a QP that is connected with us already: the peer has forgotten that. It is told, and the old connection
    /// is ended.
    pub(crate) fn reject_stale_req(
        &mut self,
        now: u64,
        path: &Path,
        tid: u64,
        req: &Req,
        old: Handle,
    ) -> Taken {
        self.transmit(*path, &rej_of_req(tid, req, RejectReason::STALE_CONNECTION, &[]));
        self.end_stale(now, old);
        Ok(())
    }

    /// The same of a reply: the new connection is refused as well.
    pub(crate) fn reject_stale_rep(&mut self, now: u64, handle: Handle, old: Handle) -> Taken {
        let Some(conn) = self.conns.get(handle) else { return Err(DropReason::UnknownId) };
        let mad = conn.rej(Answered::Rep, RejectReason::STALE_CONNECTION, &[]);
        let (id, path) = (conn.id, conn.path);
        self.transmit(path, &mad);
        if let CmMessage::Rej(rej) = &mad.message {
            let rej = Rej { private_data: Area::EMPTY, ..rej.clone() };
            self.tell(handle, Event::Rejected { conn: id, rej: Box::new(rej) });
        }
        self.enter_timewait(now, handle, Some(mad));
        self.end_stale(now, old);
        Ok(())
    }

    fn end_stale(&mut self, now: u64, old: Handle) {
        let Some(conn) = self.conns.get(old) else { return };
        let (id, state) = (conn.id, conn.state);
        if matches!(state, State::DreqSent | State::Timewait) {
            return;
        }
        self.tell(old, Event::Disconnected { conn: id, cause: DisconnectCause::Stale });
        if let Some(conn) = self.conns.get_mut(old) {
            conn.silent = true;
        }
        if state.is_asked() {
            let mad = conn_rej(self, old);
            self.enter_timewait(now, old, mad);
        } else {
            self.begin_dreq(now, old, Area::EMPTY);
        }
    }
}

fn conn_rej(cm: &Cm, handle: Handle) -> Option<wire::mad::CmMad> {
    cm.conns.get(handle).map(|conn| conn.rej(Answered::Req, RejectReason::STALE_CONNECTION, &[]))
}
