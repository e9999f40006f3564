//! Work requests.

use super::names::access;
use super::{Agent, Memory, refused};
use conform::{CallError, Reply, Work};
use rockhopper::{Addressing, FastMr, Mw, MwBind, MwType, Placement, QKey, QpType, Qpn, RKey, SendWr, Srqn};
use wire::Gid;

impl Agent {
    pub(super) fn post(&mut self, name: &str, work: &Work) -> Result<Reply, CallError> {
        if work.op == "bind" {
            return self.bind(name, work);
        }
        let mut wr = self.request(name, work)?;
        for piece in &work.pieces {
            wr = wr.sge(self.sge(piece)?);
        }
        if work.fence {
            wr = wr.fence();
        }
        if work.solicited {
            wr = wr.solicited();
        }
        if work.unsignaled {
            wr = wr.unsignaled();
        }
        if let Some(srqn) = work.srqn {
            wr = wr.to_srq(Srqn::new(srqn));
        }
        self.pair(name)?.qp.post_send(wr).map_err(refused)?;
        if work.op == "fast_register" {
            let (addr, key) = (self.fast(work)?.addr(), self.fast(work)?.key().value());
            return Ok(Reply::Region { addr, rkey: key & !0xFF | work.key & 0xFF });
        }
        Ok(Reply::Done)
    }

    /// Binds a window; the answer has its key from then on.
    fn bind(&self, name: &str, work: &Work) -> Result<Reply, CallError> {
        let (qp, window) = (&self.pair(name)?.qp, self.window(work)?);
        let (addr, to) = match &work.pieces[..] {
            [] => (0, None),
            [piece, ..] => {
                let sge = self.sge(piece)?;
                let range = piece.offset as usize..(piece.offset + u64::from(piece.len)) as usize;
                let access = access(&work.access)?;
                let to: MwBind = match self.memory(&piece.region)? {
                    Memory::User(mr) => mr.window(range, access),
                    Memory::Fast(mr) => mr.window(range, access),
                };
                let zero_based = access.contains(rockhopper::Access::ZERO_BASED);
                (if zero_based { 0 } else { sge.addr }, Some(to))
            }
        };
        let key = match (window.mw_type(), to) {
            (MwType::Type1, to) => qp.bind_mw(work.id, window, to.as_ref()).map_err(refused)?,
            (MwType::Type2, None) => return Err(refused("a window of type 2 is freed by an invalidate")),
            (MwType::Type2, Some(to)) => {
                let byte = work.key as u8;
                qp.post_send(SendWr::bind_mw(work.id, window, byte, &to)).map_err(refused)?;
                window.key_with(byte)
            }
        };
        Ok(Reply::Window { addr, rkey: key.value() })
    }

    fn window(&self, work: &Work) -> Result<&Mw, CallError> {
        let name = work.window.as_deref().unwrap_or_default();
        self.windows.get(name).ok_or_else(|| refused("no such window"))
    }

    fn request(&mut self, name: &str, work: &Work) -> Result<SendWr, CallError> {
        let id = work.id;
        let remote = rockhopper::Remote { addr: work.at, rkey: RKey::new(work.key) };
        let imm = work.imm.to_be_bytes();
        if self.pair(name)?.qp.qp_type() == QpType::Ud {
            return self.datagram(name, work);
        }
        Ok(match work.op.as_str() {
            "send" => SendWr::send(id),
            "send_imm" => SendWr::send_imm(id, imm),
            "send_inv" => SendWr::send_inv(id, remote.rkey),
            "write" => SendWr::write(id, remote),
            "write_imm" => SendWr::write_imm(id, remote, imm),
            "read" => SendWr::read(id, remote),
            "cmp_swap" => SendWr::compare_swap(id, remote, work.compare, work.swap),
            "fetch_add" => SendWr::fetch_add(id, remote, work.swap),
            "atomic_write" => SendWr::atomic_write(id, remote),
            "flush" => {
                let placement = Placement::from_bits_retain(work.plt);
                match work.sel {
                    0 => SendWr::flush(id, remote, work.len, placement),
                    _ => SendWr::flush_region(id, remote.rkey, placement),
                }
            }
            "fast_register" => SendWr::reg_mr(id, self.fast(work)?, work.key as u8, access(&work.access)?),
            "local_invalidate" => SendWr::local_inv(id, self.own_key(work)?),
            other => return Err(CallError::Unsupported(other.into())),
        })
    }

    /// The key of what a request invalidates: a region, a window, or a key by its number.
    fn own_key(&self, work: &Work) -> Result<RKey, CallError> {
        Ok(match (&work.region, &work.window) {
            (Some(_), _) => self.fast(work)?.key(),
            (None, Some(_)) => self.window(work)?.rkey(),
            (None, None) => RKey::new(work.key),
        })
    }

    fn fast(&self, work: &Work) -> Result<&FastMr, CallError> {
        let name = work.region.as_deref().unwrap_or_default();
        match self.memory(name)? {
            Memory::Fast(mr) => Ok(mr),
            Memory::User(_) => Err(refused("the region is not for fast registration")),
        }
    }

    fn datagram(&mut self, name: &str, work: &Work) -> Result<SendWr, CallError> {
        let peer = work.remote_ip.ok_or_else(|| refused("a datagram needs an address"))?;
        let imm = match work.op.as_str() {
            "send" => None,
            "send_imm" => Some(work.imm.to_be_bytes()),
            other => return Err(refused(format!("UD has no {other}"))),
        };
        let pd = self.pair(name)?.qp.pd().clone();
        let addressing = Addressing { udp_sport: 0xC000, dst: Gid::from(peer), ..self.path(peer)? };
        let ah = rockhopper::Ah::new(&pd, addressing).map_err(refused)?;
        Ok(SendWr::ud_send(work.id, &ah, Qpn::new(work.remote_qpn), QKey::new(work.qkey), imm))
    }
}
